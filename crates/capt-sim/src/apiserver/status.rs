//! Refusals: what the API server answers instead of an object.
//!
//! The constructors are named after the reasons of `metav1.Status` and give the code, the text and the
//! details that clients look at. Nothing here decides whether something is refused.

use serde_json::{Value, json};

/// A `Status` of a request that was not carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// HTTP status code.
    pub code: u16,
    /// `StatusReason`, for example `NotFound`.
    pub reason: &'static str,
    /// Text for people.
    pub message: String,
    /// `details`; null if there are none.
    pub details: Value,
}

/// One thing that is wrong with an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// `CauseType`, for example `FieldValueInvalid`.
    pub reason: &'static str,
    /// Path of the field, such as `spec.region`.
    pub field: String,
    /// What is wrong.
    pub message: String,
}

impl Cause {
    /// A cause about `field`.
    pub fn new(reason: &'static str, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason, field: field.into(), message: message.into() }
    }
}

/// What a refusal is about: resource, group and name.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// API group, empty for core.
    pub group: &'a str,
    /// Plural name or, for invalid objects, the kind.
    pub kind: &'a str,
    /// Name of the object; empty for a collection.
    pub name: &'a str,
}

impl About<'_> {
    fn qualified(&self) -> String {
        if self.group.is_empty() { self.kind.to_owned() } else { format!("{}.{}", self.kind, self.group) }
    }

    fn details(&self) -> Value {
        let mut details = json!({"name": self.name, "kind": self.kind});
        if !self.group.is_empty() {
            details["group"] = json!(self.group);
        }
        details
    }
}

impl Status {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: Value::Null }
    }

    fn about(code: u16, reason: &'static str, about: &About<'_>, message: String) -> Self {
        Self { code, reason, message, details: about.details() }
    }

    /// 404: no such object.
    pub fn not_found(about: &About<'_>) -> Self {
        Self::about(404, "NotFound", about, format!("{} \"{}\" not found", about.qualified(), about.name))
    }

    /// 404: no such path.
    pub fn no_such_resource() -> Self {
        Self { details: json!({}), ..Self::new(404, "NotFound", "the server could not find the requested resource") }
    }

    /// 409: the name is taken.
    pub fn already_exists(about: &About<'_>) -> Self {
        Self::about(409, "AlreadyExists", about, format!("{} \"{}\" already exists", about.qualified(), about.name))
    }

    /// 409: a precondition does not hold.
    pub fn conflict(about: &About<'_>, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{}\": {why}", about.qualified(), about.name);
        Self::about(409, "Conflict", about, message)
    }

    /// 409: another resourceVersion.
    pub fn modified(about: &About<'_>) -> Self {
        Self::conflict(
            about,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 409: fields that an apply sets belong to other managers, with the manager and the field of each.
    pub fn apply_conflict(conflicts: &[(String, String)]) -> Self {
        let plural = if conflicts.len() == 1 { "" } else { "s" };
        let words: Vec<String> = conflicts.iter().map(|(manager, field)| format!("{manager}: {field}")).collect();
        let message = format!("Apply failed with {} conflict{plural}: {}", conflicts.len(), words.join("\n"));
        let causes: Vec<Value> = conflicts
            .iter()
            .map(|(manager, field)| json!({"reason": "FieldManagerConflict", "message": manager, "field": field}))
            .collect();
        Self { details: json!({"causes": causes}), ..Self::new(409, "Conflict", message) }
    }

    /// 422: the object breaks rules; `about.kind` is its kind.
    pub fn invalid(about: &About<'_>, causes: &[Cause]) -> Self {
        let words: Vec<String> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let listed = match &words[..] {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let mut details = about.details();
        details["causes"] = causes
            .iter()
            .map(|cause| json!({"reason": cause.reason, "field": cause.field, "message": cause.message}))
            .collect();
        Self {
            details,
            ..Self::new(422, "Invalid", format!("{} \"{}\" is invalid: {listed}", about.qualified(), about.name))
        }
    }

    /// 422: a JSON patch that cannot be carried out.
    pub fn unprocessable(why: &str) -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self { details: json!({}), ..Self::new(422, "Invalid", format!("{message}: {why}")) }
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 403.
    pub fn forbidden(about: &About<'_>, why: &str) -> Self {
        Self::about(403, "Forbidden", about, format!("{} \"{}\" is forbidden: {why}", about.qualified(), about.name))
    }

    /// 405.
    pub fn method_not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    }

    /// 410: a resourceVersion or a continue token that is too old.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 413.
    pub fn too_large(limit: usize) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {limit}"))
    }

    /// 415.
    pub fn unsupported_media_type(accepted: &str) -> Self {
        Self::new(
            415,
            "UnsupportedMediaType",
            format!("the body of the request was in an unknown format - accepted media types include: {accepted}"),
        )
    }

    /// 500: an error that the API server has no reason for.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// 504: a resourceVersion that lies in the future.
    pub fn too_new(wanted: u64, current: u64) -> Self {
        let message = format!("Too large resource version: {wanted}, current: {current}");
        Self {
            details: json!({"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}], "retryAfterSeconds": 1}),
            ..Self::new(504, "Timeout", message)
        }
    }

    /// The refusal that fault injection asks for.
    pub fn injected(code: u16) -> Self {
        let (reason, message) = match code {
            403 => ("Forbidden", "injected: forbidden"),
            409 => ("Conflict", "injected: the object has been modified"),
            429 => ("TooManyRequests", "injected: the server is busy, try again later"),
            503 => ("ServiceUnavailable", "injected: the server is not available"),
            _ => ("InternalError", "injected: internal error"),
        };
        Self::new(code, reason, message)
    }

    /// The object that is sent.
    pub fn body(&self) -> Value {
        let mut body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            body["reason"] = json!(self.reason);
        }
        if !self.details.is_null() {
            body["details"] = self.details.clone();
        }
        body
    }
}
