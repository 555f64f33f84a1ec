//! Asks at the start whether everything that is needed is allowed, so that what is missing is told
//! once and in full, and not piece by piece in the middle of somebody's cluster.

use std::{fmt, time::Duration};

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use tokio::time::timeout;

use crate::rbac::Rule;

/// One right that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    verb: &'static str,
    group: &'static str,
    resource: &'static str,
    namespace: Option<String>,
}

impl fmt::Display for Missing {
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

/// Asks for every verb of `rules`, in `namespace` or everywhere. An API server that does not answer
/// says so to the watches as well; here it is an error.
pub async fn missing(
    client: &Client,
    rules: impl IntoIterator<Item = Rule>,
    namespace: Option<&str>,
    patience: Duration,
) -> Result<Vec<Missing>, kube::Error> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let mut missing = Vec::new();
    for Rule { why: _, need: _, groups, resources, verbs } in rules {
        for (group, full, verb) in groups.iter().flat_map(|group| {
            resources.iter().flat_map(move |resource| verbs.iter().map(move |verb| (*group, *resource, *verb)))
        }) {
            let (resource, subresource) = full.split_once('/').map_or((full, None), |(name, sub)| (name, Some(sub)));
            let review = SelfSubjectAccessReview {
                metadata: ObjectMeta::default(),
                spec: SelfSubjectAccessReviewSpec {
                    resource_attributes: Some(ResourceAttributes {
                        group: Some(group.to_owned()),
                        resource: Some(resource.to_owned()),
                        subresource: subresource.map(str::to_owned),
                        verb: Some(verb.to_owned()),
                        namespace: namespace.map(str::to_owned),
                        ..ResourceAttributes::default()
                    }),
                    non_resource_attributes: None,
                },
                status: None,
            };
            let Ok(answer) = timeout(patience, reviews.create(&PostParams::default(), &review)).await else { continue };
            if !answer?.status.is_some_and(|status| status.allowed) {
                missing.push(Missing { verb, group, resource: full, namespace: namespace.map(str::to_owned) });
            }
        }
    }
    Ok(missing)
}
