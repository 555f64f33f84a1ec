//! The API server's audit log, read back as "who requested what".
//!
//! It is the outside view of a component: exact, per user, and independent of what the component says
//! of itself. A request stands here once, a watch too (from its start). The API server writes a line
//! when it has answered, so the line may follow the answer by a few milliseconds.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Deserialize;

/// Why the audit log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be read.
    #[error("cannot read the audit log {path}: {source}; has the API server been started?")]
    Read {
        /// The log file.
        path: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A line of the log is no audit event.
    #[error("line {line} of the audit log is no audit event: {source}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// What the API server logs: metadata of every request to every resource and subresource. The stage
/// before the answer would only double the log.
pub(crate) const POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
";

/// Cuts off what a killed API server left of its last line.
pub(crate) fn end_at_a_line(log: &Path) -> Result<(), crate::Error> {
    let fail = |source| crate::Error::file(&log.display().to_string(), source);
    let text = std::fs::read(log).map_err(fail)?;
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let file = std::fs::File::options().write(true).open(log).map_err(fail)?;
    file.set_len(whole as u64).map_err(fail)
}

/// One request as the API server saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Who asked: the user name, after impersonation.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// Plural with subresource, such as `clusters/status`; the path of a request for no resource.
    pub resource: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Namespace, if the request has one.
    pub namespace: Option<String>,
    /// Object name, if the request has one.
    pub name: Option<String>,
    /// HTTP status; 0 while a watch is open and unanswered.
    pub code: u16,
    /// User-Agent header.
    pub user_agent: String,
    /// When the API server received it.
    pub at: Timestamp,
}

/// What a request does to the stored objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// `get` and `list`.
    Read,
    /// `watch`.
    Watch,
    /// Everything else.
    Write,
}

impl Request {
    /// Whether it reads, watches or writes.
    pub fn effect(&self) -> Effect {
        match self.verb.as_str() {
            "get" | "list" | "head" => Effect::Read,
            // A question that is put as an object and stored nowhere.
            "create" if self.resource.ends_with("reviews") => Effect::Read,
            "watch" => Effect::Watch,
            _ => Effect::Write,
        }
    }
}

/// The audit log of one stack.
#[derive(Clone, Debug)]
pub struct Audit(PathBuf);

impl Audit {
    pub(crate) fn new(log: PathBuf) -> Self {
        Self(log)
    }

    /// The log file: one JSON event of `audit.k8s.io/v1` per line.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Every request so far, oldest first.
    pub fn requests(&self) -> Result<Requests, Error> {
        let text = std::fs::read_to_string(&self.0)
            .map_err(|source| Error::Read { path: self.0.display().to_string(), source })?;
        parse(&text)
    }

    /// The requests of one user.
    pub fn requests_of(&self, user: &str) -> Result<Requests, Error> {
        Ok(self.requests()?.of(user))
    }
}

/// Requests, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests(Vec<Request>);

impl Requests {
    /// Those of one user.
    #[must_use]
    pub fn of(self, user: &str) -> Self {
        self.filter(|request| request.user == user)
    }

    /// Those received at `mark` or later; take the mark with [`Timestamp::now`].
    #[must_use]
    pub fn since(self, mark: Timestamp) -> Self {
        self.filter(|request| request.at >= mark)
    }

    /// Those received before `mark`.
    #[must_use]
    pub fn until(self, mark: Timestamp) -> Self {
        self.filter(|request| request.at < mark)
    }

    /// `get` and `list`.
    #[must_use]
    pub fn reads(self) -> Self {
        self.filter(|request| request.effect() == Effect::Read)
    }

    /// Watches, each counted at its start.
    #[must_use]
    pub fn watches(self) -> Self {
        self.filter(|request| request.effect() == Effect::Watch)
    }

    /// Everything that is neither read nor watch, refused ones included.
    #[must_use]
    pub fn writes(self) -> Self {
        self.filter(|request| request.effect() == Effect::Write)
    }

    /// Those for which `keep` holds.
    #[must_use]
    pub fn filter(mut self, keep: impl FnMut(&Request) -> bool) -> Self {
        self.0.retain(keep);
        self
    }

    /// The requests themselves.
    pub fn iter(&self) -> std::slice::Iter<'_, Request> {
        self.0.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How often each (verb, resource with group, status code) occurs.
    pub fn counts(&self) -> BTreeMap<(String, String, u16), usize> {
        let mut counts = BTreeMap::new();
        for request in &self.0 {
            let resource = match request.group.as_str() {
                "" => request.resource.clone(),
                group => format!("{}.{group}", request.resource),
            };
            *counts.entry((request.verb.clone(), resource, request.code)).or_default() += 1;
        }
        counts
    }

    /// The counts as an aligned table with a sum line, for people.
    pub fn table(&self) -> String {
        let counts = self.counts();
        let width = counts.keys().map(|key| key.1.len()).max().unwrap_or(0);
        let width = width.max("RESOURCE".len());
        let mut table = format!("{:<16} {:<width$} {:>4} {:>6}\n", "VERB", "RESOURCE", "CODE", "COUNT");
        for ((verb, resource, code), count) in counts {
            // Writing to a String cannot fail.
            let _ = writeln!(table, "{verb:<16} {resource:<width$} {code:>4} {count:>6}");
        }
        let of = |effect| self.iter().filter(|item| item.effect() == effect).count();
        let _ = writeln!(
            table,
            "{} requests: {} reads, {} watches, {} writes",
            self.len(),
            of(Effect::Read),
            of(Effect::Watch),
            of(Effect::Write)
        );
        table
    }
}

impl<'a> IntoIterator for &'a Requests {
    type Item = &'a Request;
    type IntoIter = std::slice::Iter<'a, Request>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The fields of `audit.k8s.io/v1` Event that are read; the API server writes many more.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    #[serde(rename = "auditID")]
    audit_id: String,
    verb: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    user: User,
    impersonated_user: Option<User>,
    #[serde(default)]
    user_agent: String,
    object_ref: Option<ObjectRef>,
    response_status: Option<ResponseStatus>,
    request_received_timestamp: Timestamp,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ObjectRef {
    #[serde(default)]
    resource: String,
    #[serde(default)]
    api_group: String,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

/// Reads the log. Its last line may still be in the writing, and is then left for the next time.
fn parse(text: &str) -> Result<Requests, Error> {
    let mut requests: Vec<Request> = Vec::new();
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if !line.ends_with('\n') {
            break;
        }
        let event: Event = serde_json::from_str(line).map_err(|source| Error::Line { line: index + 1, source })?;
        let code = event.response_status.as_ref().map_or(0, |it| it.code);
        // A watch has two lines, at its start and at its end.
        if let Some(first) = seen.get(&event.audit_id) {
            if let Some(request) = requests.get_mut(*first)
                && code != 0
            {
                request.code = code;
            }
            continue;
        }
        seen.insert(event.audit_id.clone(), requests.len());
        requests.push(request(event, code));
    }
    requests.sort_by_key(|request| request.at);
    Ok(Requests(requests))
}

fn request(event: Event, code: u16) -> Request {
    let path = event.request_uri.split('?').next().unwrap_or_default();
    let object = event.object_ref.unwrap_or(ObjectRef {
        resource: path.to_owned(),
        api_group: String::new(),
        subresource: None,
        namespace: None,
        name: None,
    });
    Request {
        user: event.impersonated_user.unwrap_or(event.user).username,
        verb: event.verb,
        resource: match object.subresource {
            Some(subresource) => format!("{}/{subresource}", object.resource),
            None => object.resource,
        },
        group: object.api_group,
        namespace: object.namespace,
        name: object.name,
        code,
        user_agent: event.user_agent,
        at: event.request_received_timestamp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = concat!(
        r#"{"auditID":"a","stage":"ResponseComplete","verb":"patch","requestURI":"/apis/x.io/v1/namespaces/n/things/t/status?force=true","user":{"username":"one","groups":["g"]},"userAgent":"agent/1","objectRef":{"resource":"things","namespace":"n","name":"t","apiGroup":"x.io","subresource":"status"},"responseStatus":{"metadata":{},"code":409},"requestReceivedTimestamp":"2026-01-01T00:00:02.000000Z"}"#,
        "\n",
        r#"{"auditID":"b","stage":"ResponseStarted","verb":"watch","requestURI":"/api/v1/secrets?watch=1","user":{"username":"two"},"objectRef":{"resource":"secrets"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:01.000000Z"}"#,
        "\n",
        r#"{"auditID":"b","stage":"ResponseComplete","verb":"watch","requestURI":"/api/v1/secrets?watch=1","user":{"username":"two"},"objectRef":{"resource":"secrets"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:01.000000Z"}"#,
        "\n",
        r#"{"auditID":"c","stage":"ResponseComplete","verb":"get","requestURI":"/readyz?verbose","user":{"username":"admin"},"impersonatedUser":{"username":"one"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:03.000000Z"}"#,
        "\n",
        r#"{"auditID":"d","stage":"Resp"#,
    );

    #[test]
    fn users_verbs_resources_and_times_are_told_apart() {
        let all = parse(LOG).unwrap();
        assert_eq!(all.len(), 3, "the watch counts once, the torn line not at all");
        assert_eq!(all.clone().watches().iter().next().unwrap().user, "two");

        let one = all.clone().of("one");
        assert_eq!(
            one.counts().into_iter().collect::<Vec<_>>(),
            [
                (("get".to_owned(), "/readyz".to_owned(), 200), 1),
                (("patch".to_owned(), "things/status.x.io".to_owned(), 409), 1),
            ]
        );
        let mark = "2026-01-01T00:00:02.5Z".parse().unwrap();
        assert_eq!(one.clone().since(mark).iter().next().unwrap().verb, "get");
        assert_eq!(one.until(mark).writes().len(), 1);
        assert!(all.table().ends_with("3 requests: 1 reads, 1 watches, 1 writes\n"), "{}", all.table());
    }

    #[test]
    fn a_line_that_is_no_event_is_named() {
        let error = parse("{}\n").unwrap_err().to_string();
        assert!(error.starts_with("line 1 of the audit log"), "{error}");
    }
}
