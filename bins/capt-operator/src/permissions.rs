//! Asks at the start whether everything that is needed is allowed, so that what is missing is told
//! once and in full, and not piece by piece in the middle of somebody's cluster.

use std::{fmt, time::Duration};

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use tokio::time::timeout;

use crate::{causes::chain, rbac::Rule};

/// Questions at the same time.
const AT_ONCE: usize = 16;

/// Why it is not known what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No answer, or a refusal.
    #[error("{}", chain(.0.as_ref()))]
    Api(#[source] Box<kube::Error>),
    /// No answer in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
}

/// One right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Right {
    verb: &'static str,
    group: &'static str,
    /// Plural name, with subresource.
    resource: &'static str,
    /// Absent for everywhere.
    namespace: Option<String>,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, group, resource, namespace } = self;
        write!(f, "{verb} {resource}")?;
        if !group.is_empty() {
            write!(f, ".{group}")?;
        }
        match namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}

impl Right {
    fn review(&self) -> SelfSubjectAccessReview {
        let Self { verb, group, resource, namespace } = self;
        let (resource, subresource) =
            resource.split_once('/').map_or((*resource, None), |(name, sub)| (name, Some(sub)));
        SelfSubjectAccessReview {
            metadata: ObjectMeta::default(),
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    group: Some((*group).to_owned()),
                    resource: Some(resource.to_owned()),
                    subresource: subresource.map(str::to_owned),
                    verb: Some((*verb).to_owned()),
                    namespace: namespace.clone(),
                    ..ResourceAttributes::default()
                }),
                non_resource_attributes: None,
            },
            status: None,
        }
    }
}

/// Every single right of `rules` in `namespace`, or everywhere.
pub fn rights(rules: impl IntoIterator<Item = Rule>, namespace: Option<&str>) -> Vec<Right> {
    let mut rights = Vec::new();
    for Rule { why: _, need: _, reach: _, groups, resources, verbs } in rules {
        for group in groups {
            for resource in resources {
                let namespace = || namespace.map(str::to_owned);
                rights.extend(verbs.iter().map(|verb| Right { verb, group, resource, namespace: namespace() }));
            }
        }
    }
    rights
}

/// Those of `rights` that we do not have, in their order. Several are asked for at the same time.
pub async fn missing(client: &Client, rights: Vec<Right>, patience: Duration) -> Result<Vec<Right>, Error> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let answers = stream::iter(rights).map(|right| {
        let reviews = &reviews;
        async move {
            let answer = timeout(patience, reviews.create(&PostParams::default(), &right.review())).await;
            let answer = answer.map_err(|_| Error::Timeout(patience))?.map_err(|error| Error::Api(Box::new(error)))?;
            Ok((right, answer.status.is_some_and(|status| status.allowed)))
        }
    });
    let all: Vec<(Right, bool)> = answers.buffered(AT_ONCE).try_collect().await?;
    Ok(all.into_iter().filter(|(_, allowed)| !allowed).map(|(right, _)| right).collect())
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use http_body_util::BodyExt;
    use kube::client::Body;
    use serde_json::{Value, json};
    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::rbac::{Need, RULES};

    const ROUND_TRIP: Duration = Duration::from_millis(100);

    /// Allows everything but `verb`, after a round trip; counts the questions.
    fn server(verb: &'static str, asked: Arc<AtomicUsize>) -> Client {
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let asked = Arc::clone(&asked);
            async move {
                sleep(ROUND_TRIP).await;
                asked.fetch_add(1, Ordering::Relaxed);
                let body = request.into_body().collect().await.unwrap().to_bytes();
                let mut review: Value = serde_json::from_slice(&body).unwrap();
                let allowed = review["spec"]["resourceAttributes"]["verb"] != verb;
                review["status"] = json!({"allowed": allowed});
                Ok::<_, Infallible>(http::Response::new(Body::from(review.to_string().into_bytes())))
            }
        });
        Client::new(service, "default")
    }

    #[tokio::test(start_paused = true)]
    async fn everything_is_asked_once_and_not_one_after_the_other() {
        let asked = Arc::new(AtomicUsize::new(0));
        let wanted = rights(RULES.into_iter().filter(|rule| rule.need == Need::Passes), Some("ns"));
        let begin = Instant::now();
        let found =
            missing(&server("delete", Arc::clone(&asked)), wanted.clone(), Duration::from_secs(1)).await.unwrap();
        let expected: Vec<Right> = wanted.iter().filter(|right| right.verb == "delete").cloned().collect();
        assert_eq!((found, asked.load(Ordering::Relaxed)), (expected, wanted.len()));
        let rounds = u32::try_from(wanted.len().div_ceil(AT_ONCE)).unwrap();
        assert!(begin.elapsed() <= ROUND_TRIP * (rounds + 1), "{:?}", begin.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_answered_is_not_known() {
        let wanted = rights(RULES.into_iter().take(1), None);
        let patience = ROUND_TRIP / 2;
        assert!(matches!(missing(&server("", Arc::default()), wanted, patience).await, Err(Error::Timeout(_))));
    }

    #[test]
    fn a_right_is_told_as_people_write_it() {
        let all = rights(RULES.into_iter().filter(|rule| rule.need == Need::Lease), Some("capt-system"));
        assert_eq!(all[0].to_string(), "get leases.coordination.k8s.io in namespace capt-system");
    }
}
