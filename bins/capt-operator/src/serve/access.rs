//! Who may read the metrics: whoever the API server knows and allows it.
//!
//! The token of a request goes to a TokenReview and its user to a SubjectAccessReview. An answer is
//! remembered for a short time under a digest, so that tokens do not stay in memory.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use http::HeaderValue;
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use sha2::{Digest, Sha256};
use tokio::time::timeout;

use crate::causes::chain;

/// How long an answer counts.
const FRESH: Duration = Duration::from_mins(1);
/// Answers that are remembered; somebody who guesses tokens must not fill the memory.
const REMEMBERED: usize = 64;

/// Whether a request may be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Allowed,
    /// Nobody knows whose request it is.
    Unknown,
    /// It is known whose, and that they may not.
    Forbidden,
    /// The API server does not say.
    CannotTell,
}

type Answers = BTreeMap<[u8; 32], (Instant, Verdict)>;

/// Asks the API server; cheap to clone.
#[derive(Clone)]
pub struct Access {
    client: Client,
    timeout: Duration,
    answers: Arc<Mutex<Answers>>,
}

impl Access {
    /// Asks through `client`, each question for no longer than `timeout`.
    pub fn new(client: Client, timeout: Duration) -> Self {
        Self { client, timeout, answers: Arc::default() }
    }

    /// Whether the sender of `authorization` may do `verb` on `path`.
    pub async fn check(&self, authorization: Option<&HeaderValue>, verb: &str, path: &str) -> Verdict {
        let Some(token) = authorization.and_then(bearer) else { return Verdict::Unknown };
        let digest =
            Sha256::new().chain_update(verb).chain_update(path).chain_update("\n").chain_update(token).finalize();
        let digest: [u8; 32] = digest.into();
        if let Some(verdict) = self.remembered(digest) {
            return verdict;
        }
        match timeout(self.timeout, self.ask(token, verb, path)).await {
            Ok(Ok(verdict)) => {
                self.remember(digest, verdict);
                verdict
            }
            Ok(Err(error)) => {
                tracing::warn!(error = chain(&error), "cannot ask who may read the metrics");
                Verdict::CannotTell
            }
            Err(_) => Verdict::CannotTell,
        }
    }

    async fn ask(&self, token: &str, verb: &str, path: &str) -> kube::Result<Verdict> {
        let review = TokenReview {
            metadata: ObjectMeta::default(),
            spec: TokenReviewSpec { token: token.to_owned(), audiences: None },
            status: None,
        };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let status = reviews.create(&PostParams::default(), &review).await?.status.unwrap_or_default();
        let (Some(true), Some(user)) = (status.authenticated, status.user) else { return Ok(Verdict::Unknown) };
        let UserInfo { username, uid, groups, extra } = user;
        let review = SubjectAccessReview {
            metadata: ObjectMeta::default(),
            spec: SubjectAccessReviewSpec {
                user: username,
                uid,
                groups,
                extra,
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(path.to_owned()),
                    verb: Some(verb.to_owned()),
                }),
                resource_attributes: None,
            },
            status: None,
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let allowed =
            reviews.create(&PostParams::default(), &review).await?.status.is_some_and(|status| status.allowed);
        Ok(if allowed { Verdict::Allowed } else { Verdict::Forbidden })
    }

    fn remembered(&self, digest: [u8; 32]) -> Option<Verdict> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.get(&digest).filter(|(at, _)| at.elapsed() < FRESH).map(|(_, verdict)| *verdict)
    }

    fn remember(&self, digest: [u8; 32], verdict: Verdict) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.retain(|_, (at, _)| at.elapsed() < FRESH);
        if answers.len() < REMEMBERED {
            answers.insert(digest, (Instant::now(), verdict));
        }
    }
}

fn bearer(authorization: &HeaderValue) -> Option<&str> {
    let (scheme, token) = authorization.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::BodyExt;
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    /// An API server that knows one token, whose user may read metrics; returns what it was asked.
    fn server() -> (Access, Arc<Mutex<Vec<Value>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&asked);
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let record = Arc::clone(&record);
            async move {
                let bytes = request.into_body().collect().await.unwrap().to_bytes();
                let mut body: Value = serde_json::from_slice(&bytes).unwrap();
                record.lock().unwrap().push(body.clone());
                body["status"] = if body["kind"] == "TokenReview" {
                    match body["spec"]["token"].as_str().unwrap() {
                        "stranger" => json!({"authenticated": false}),
                        name => json!({"authenticated": true, "user": {"username": name, "groups": ["g"]}}),
                    }
                } else {
                    json!({"allowed": body["spec"]["user"] == "prometheus"
                        && body["spec"]["nonResourceAttributes"] == json!({"path": "/metrics", "verb": "get"})})
                };
                Ok::<_, Infallible>(http::Response::new(Body::from(serde_json::to_vec(&body).unwrap())))
            }
        });
        (Access::new(Client::new(service, "default"), Duration::from_secs(10)), asked)
    }

    async fn check(access: &Access, header: Option<&str>, verb: &str) -> Verdict {
        let header = header.map(|header| HeaderValue::from_str(header).unwrap());
        access.check(header.as_ref(), verb, "/metrics").await
    }

    #[tokio::test]
    async fn only_who_is_known_and_allowed_may_read() {
        let (access, asked) = server();
        for (header, verb, expected) in [
            (None, "get", Verdict::Unknown),
            (Some("Basic prometheus"), "get", Verdict::Unknown),
            (Some("Bearer stranger"), "get", Verdict::Unknown),
            (Some("Bearer somebody"), "get", Verdict::Forbidden),
            (Some("Bearer prometheus"), "put", Verdict::Forbidden),
            (Some("Bearer prometheus"), "get", Verdict::Allowed),
            (Some("bearer prometheus"), "get", Verdict::Allowed),
        ] {
            assert_eq!(check(&access, header, verb).await, expected, "{header:?} {verb}");
        }
        let asked = asked.lock().unwrap();
        assert_eq!(asked.len(), 1 + 2 + 2 + 2, "an answer is remembered for its verb alone");
        assert_eq!(asked.last().unwrap()["spec"]["groups"], json!(["g"]));
    }

    #[tokio::test]
    async fn without_an_api_server_nobody_may_and_nothing_is_remembered() {
        let service = tower::service_fn(|_: http::Request<Body>| async {
            Ok::<_, Infallible>(http::Response::builder().status(500).body(Body::empty()).unwrap())
        });
        let access = Access::new(Client::new(service, "default"), Duration::from_secs(10));
        assert_eq!(check(&access, Some("Bearer prometheus"), "get").await, Verdict::CannotTell);
        assert!(access.answers.lock().unwrap().is_empty());
    }
}
