//! Secret: its data, decoded, and never shown.

use std::{collections::BTreeMap, fmt};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::meta::{ViewMeta, text};

/// What we read of a Secret.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretView {
    /// Metadata.
    pub meta: ViewMeta,
    /// Type; empty if absent.
    pub type_: String,
    /// Entries, decoded.
    pub data: BTreeMap<String, SecretBytes>,
    /// Keys of entries that are not base64, which only a file can have.
    pub undecodable: Vec<String>,
}

/// Bytes that no log and no message may show.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretBytes(Vec<u8>);

impl SecretBytes {
    /// Takes `bytes` in.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// The bytes, for the one place that needs them.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// The bytes as text, if they are UTF-8.
    pub fn expose_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// As a Secret's `data` holds them.
    pub fn to_base64(&self) -> String {
        STANDARD.encode(&self.0)
    }

    /// Number of bytes.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} secret bytes>", self.0.len())
    }
}

impl SecretView {
    /// What `object` says; never fails. `stringData`, which only a file has, wins over `data` as it
    /// does in the API server.
    pub fn parse(object: &Value) -> Self {
        let (mut data, mut undecodable) = (BTreeMap::new(), Vec::new());
        for (key, value) in object["data"].as_object().into_iter().flatten() {
            match value.as_str().map(|encoded| STANDARD.decode(encoded)) {
                Some(Ok(bytes)) => {
                    data.insert(key.clone(), SecretBytes(bytes));
                }
                Some(Err(_)) | None => undecodable.push(key.clone()),
            }
        }
        for (key, value) in object["stringData"].as_object().into_iter().flatten() {
            if let Some(value) = value.as_str() {
                data.insert(key.clone(), SecretBytes::new(value));
                undecodable.retain(|other| other != key);
            }
        }
        Self { meta: ViewMeta::parse(object), type_: text(object, "type").unwrap_or_default(), data, undecodable }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn data_is_decoded_and_what_is_not_base64_is_named() {
        let view = SecretView::parse(&json!({
            "metadata": {"name": "s"}, "type": "Opaque", "data": {"good": "aGk=", "empty": "", "bad": "%", "odd": 3},
        }));
        assert_eq!(view.data["good"].expose_text(), Some("hi"));
        assert!(view.data["empty"].is_empty());
        assert_eq!(view.data.len(), 2);
        assert_eq!(view.undecodable, ["bad", "odd"]);
        assert_eq!(view.data["good"].to_base64(), "aGk=");
    }

    #[test]
    fn plain_text_of_a_file_wins() {
        let view = SecretView::parse(
            &json!({"data": {"key": "%", "other": "aGk="}, "stringData": {"key": "plain", "other": "ho"}}),
        );
        assert_eq!((view.data["key"].expose_text(), view.data["other"].expose_text()), (Some("plain"), Some("ho")));
        assert!(view.undecodable.is_empty());
    }

    #[test]
    fn a_value_is_never_shown() {
        let view = SecretView::parse(&json!({"data": {"token": "czNjcjN0"}}));
        let shown = format!("{view:?} {:#?}", view.data["token"]);
        assert!(shown.contains("<6 secret bytes>"), "{shown}");
        assert!(!shown.contains("s3cr3t") && !shown.contains("czNjcjN0"), "{shown}");
    }
}
