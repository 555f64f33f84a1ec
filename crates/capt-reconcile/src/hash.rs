//! Digests of JSON by content: independent of field order, the same in every release.

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The first `digits` hexadecimal digits (at most 64) of the SHA-256 of `value`.
pub fn hex(value: &Value, digits: usize) -> String {
    let mut text = String::new();
    canonical(value, &mut text);
    of_text(&text, digits)
}

/// The first `digits` hexadecimal digits (at most 64) of the SHA-256 of `text`.
pub fn of_text(text: &str, digits: usize) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex.truncate(digits);
    hex
}

/// JSON with sorted keys; serde_json sorts only as long as no crate asks it to keep the order.
fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => out.push_str(&value.to_string()),
        Value::Array(items) => {
            out.push('[');
            for item in items {
                canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort();
            out.push('{');
            for name in names {
                out.push_str(&Value::String(name.clone()).to_string());
                out.push(':');
                canonical(&fields[name], out);
                out.push(',');
            }
            out.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn content_decides_and_nothing_else() {
        let value = json!({"a": [1, "x"], "b": {"c": null}});
        assert_eq!(hex(&value, 12), hex(&json!({"b": {"c": null}, "a": [1, "x"]}), 12));
        assert_ne!(hex(&value, 12), hex(&json!({"a": ["x", 1], "b": {"c": null}}), 12));
        assert_ne!(hex(&json!({"a": "1"}), 12), hex(&json!({"a": 1}), 12));
        assert_eq!(hex(&value, 12).len(), 12);
    }

    #[test]
    fn the_digest_is_the_known_one() {
        assert_eq!(of_text("abc", 12), "ba7816bf8f01");
    }
}
