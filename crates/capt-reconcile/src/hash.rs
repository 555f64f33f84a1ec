//! Digests of JSON by content: independent of field order, the same in every release.

use std::borrow::Cow;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The first `digits` hexadecimal digits (at most 64) of the SHA-256 of `value`.
pub fn hex(value: &Value, digits: usize) -> String {
    let mut text = String::with_capacity(4096);
    canonical(value, &mut text);
    of_text(&text, digits)
}

/// The first `digits` hexadecimal digits (at most 64) of the SHA-256 of `text`.
pub fn of_text(text: &str, digits: usize) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or_default();
    let bytes = Sha256::digest(text.as_bytes());
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(digit).take(digits).collect()
}

/// JSON with sorted keys; serde_json sorts only as long as no crate asks it to keep the order.
fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => quoted(text, out),
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
        Value::Array(items) => {
            out.push('[');
            for item in items {
                canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (name, field) in sorted {
                quoted(name, out);
                out.push(':');
                canonical(field, out);
                out.push(',');
            }
            out.push('}');
        }
    }
}

/// A string as JSON has it, copied in one piece from escape to escape.
fn quoted(text: &str, out: &mut String) {
    out.push('"');
    let mut copied = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape: Cow<'_, str> = match byte {
            b'"' => r#"\""#.into(),
            b'\\' => r"\\".into(),
            b'\n' => r"\n".into(),
            b'\r' => r"\r".into(),
            b'\t' => r"\t".into(),
            0x08 => r"\b".into(),
            0x0c => r"\f".into(),
            0..0x20 => format!(r"\u{byte:04x}").into(),
            _ => continue,
        };
        out.push_str(&text[copied..at]);
        out.push_str(&escape);
        copied = at + 1;
    }
    out.push_str(&text[copied..]);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        #[test]
        fn a_string_is_quoted_as_serde_json_does(text in any::<String>(), low in "[\\x00-\\x7f]*") {
            for text in [text, low] {
                let mut quoted_text = String::new();
                quoted(&text, &mut quoted_text);
                prop_assert_eq!(quoted_text, Value::from(text).to_string());
            }
        }
    }

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
        assert_eq!(of_text("", 64), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    /// Objects carry digests of earlier releases.
    #[test]
    fn the_canonical_form_never_changes() {
        let mut text = String::new();
        canonical(&json!({"b": [null, true, 1.5, -2], "a\n": "q\"u\\o\u{1}t\u{7f}é", "": {}}), &mut text);
        assert_eq!(text, "{\"\":{},\"a\\n\":\"q\\\"u\\\\o\\u0001t\u{7f}é\",\"b\":[null,true,1.5,-2,],}");
    }
}
