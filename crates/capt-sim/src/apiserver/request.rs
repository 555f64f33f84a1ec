//! A request as the API server understands it: path, query, media types.
//!
//! Everything that can be said without looking at an object is said here.

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::status::Status;

/// Largest body that is read.
pub const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// What is to be done with a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// GET, LIST and WATCH.
    Get,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
}

impl Method {
    /// From its name in HTTP.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "GET" => Some(Self::Get),
            "POST" => Some(Self::Post),
            "PUT" => Some(Self::Put),
            "PATCH" => Some(Self::Patch),
            "DELETE" => Some(Self::Delete),
            _ => None,
        }
    }
}

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// Path, percent-encoded, without the query.
    pub path: String,
    /// Names and values of the query, decoded.
    pub query: Vec<(String, String)>,
    /// `Content-Type`.
    pub content_type: String,
    /// `Accept`.
    pub accept: String,
    /// `User-Agent`.
    pub user_agent: String,
    /// Body.
    pub body: Vec<u8>,
}

impl Request {
    /// A request without headers; `target` is a path with an optional query.
    pub fn new(method: Method, target: &str, body: Vec<u8>) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let decode = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
        let query = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        });
        Self {
            method,
            path: path.to_owned(),
            query: query.collect(),
            content_type: String::new(),
            accept: String::new(),
            user_agent: String::new(),
            body,
        }
    }

    /// A parameter of the query; empty if it is not given.
    pub fn parameter(&self, name: &str) -> &str {
        self.query.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value)
    }

    /// Whether a parameter is given and true.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.parameter(name), "true" | "1")
    }

    /// A number in the query.
    pub fn number(&self, name: &str) -> Result<Option<u64>, Status> {
        match self.parameter(name) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| Status::bad_request(format!("{name}: not a number: {text}"))),
        }
    }

    /// The body as an object: JSON, or YAML where `yaml` is allowed.
    pub fn document(&self) -> Result<Value, Status> {
        if self.body.len() > BODY_LIMIT {
            return Err(Status::too_large(BODY_LIMIT));
        }
        let text = std::str::from_utf8(&self.body).map_err(|error| Status::bad_request(error.to_string()))?;
        match serde_json::from_str(text) {
            Ok(value) => Ok(value),
            Err(_) if self.content_type.contains("yaml") => serde_saphyr::from_str(text)
                .map_err(|error| Status::bad_request(format!("error decoding YAML: {error}"))),
            Err(error) => Err(Status::bad_request(format!("couldn't get version/kind; json parse error: {error}"))),
        }
    }

    /// Media type of the body, without parameters.
    pub fn media_type(&self) -> &str {
        self.content_type.split(';').next().unwrap_or_default().trim()
    }

    /// The field manager: the one that is named, else the first word of the user agent.
    pub fn manager(&self) -> String {
        match self.parameter("fieldManager") {
            "" => self.user_agent.split('/').next().unwrap_or_default().to_owned(),
            manager => manager.to_owned(),
        }
    }
}

/// Whom a path is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// API group, empty for core.
    pub group: String,
    /// Version.
    pub version: String,
    /// Namespace, if the path names one.
    pub namespace: Option<String>,
    /// Plural name of the resource.
    pub plural: String,
    /// Name of the object, if the path names one.
    pub name: Option<String>,
    /// Such as `status`, empty for the object itself.
    pub subresource: String,
}

impl Target {
    /// Reads a path below `/api` or `/apis`; `None` if it is not about a resource.
    pub fn parse(path: &str) -> Option<Self> {
        let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let segments: Vec<String> = path.split('/').filter(|segment| !segment.is_empty()).map(decode).collect();
        let words: Vec<&str> = segments.iter().map(String::as_str).collect();
        let (group, version, rest) = match &words[..] {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            // A namespace as an object, or its status, is not inside itself.
            ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => (None, rest),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some((*namespace).to_owned()), rest),
            rest => (None, rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (plural, None, ""),
            [plural, name] => (plural, Some(*name), ""),
            [plural, name, subresource] => (plural, Some(*name), *subresource),
            _ => return None,
        };
        Some(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace,
            plural: (*plural).to_owned(),
            name: name.map(str::to_owned),
            subresource: subresource.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_resources_objects_and_subresources() {
        let parsed = |path| {
            let target = Target::parse(path)?;
            Some((
                target.group,
                target.namespace.unwrap_or_default(),
                target.plural,
                target.name.unwrap_or_default(),
                target.subresource,
            ))
        };
        let owned = |parts: [&str; 5]| {
            let [group, namespace, plural, name, subresource] = parts.map(str::to_owned);
            Some((group, namespace, plural, name, subresource))
        };
        assert_eq!(parsed("/api/v1/namespaces"), owned(["", "", "namespaces", "", ""]));
        assert_eq!(parsed("/api/v1/namespaces/a"), owned(["", "", "namespaces", "a", ""]));
        assert_eq!(parsed("/api/v1/namespaces/a/status"), owned(["", "", "namespaces", "a", "status"]));
        assert_eq!(parsed("/api/v1/namespaces/a/secrets/b%20c"), owned(["", "a", "secrets", "b c", ""]));
        assert_eq!(parsed("/apis/g/v1/namespaces/a/things/b/status"), owned(["g", "a", "things", "b", "status"]));
        assert_eq!(parsed("/apis/g/v1/things"), owned(["g", "", "things", "", ""]));
        assert_eq!(parsed("/apis/g/v1"), None);
        assert_eq!(parsed("/version"), None);
    }

    #[test]
    fn the_query_is_decoded() {
        let request = Request::new(Method::Get, "/api?labelSelector=a%3Db&watch=1", Vec::new());
        assert_eq!((request.parameter("labelSelector"), request.flag("watch")), ("a=b", true));
    }
}
