//! Label and field selectors, as lists and watches take them.

use serde_json::Value;

use super::meta;

/// One requirement of a label selector.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Label {
    Exists(String),
    Absent(String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
}

impl Label {
    /// Whether a label could have this name and one of these values.
    fn is_valid(&self) -> bool {
        let is_value = |value: &String| value.is_empty() || (value.len() <= 63 && meta::is_name(value));
        match self {
            Self::Exists(name) | Self::Absent(name) => meta::is_qualified(name),
            Self::In(name, values) | Self::NotIn(name, values) => {
                meta::is_qualified(name) && values.iter().all(is_value)
            }
        }
    }
}

/// Which objects are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    labels: Vec<Label>,
    /// Field path, value, and whether it must be equal.
    fields: Vec<(String, String, bool)>,
}

impl Selector {
    /// Parses `labelSelector` and `fieldSelector`; the text that is wrong otherwise.
    pub fn parse(labels: &str, fields: &str) -> Result<Self, String> {
        let mut selector = Self::default();
        for term in terms(labels) {
            let parsed = label(term).filter(Label::is_valid);
            selector.labels.push(parsed.ok_or_else(|| format!("unable to parse requirement: {term}"))?);
        }
        for term in fields.split(',').filter(|term| !term.is_empty()) {
            let (name, value, equal) = equation(term).ok_or_else(|| format!("invalid selector: '{term}'"))?;
            selector.fields.push((name, value, equal));
        }
        Ok(selector)
    }

    /// The fields that it asks for.
    pub fn field_names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|(name, _, _)| name.as_str())
    }

    /// Whether `object` is wanted.
    pub fn matches(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        let value = |name: &str| labels.get(name).and_then(Value::as_str);
        self.labels.iter().all(|label| match label {
            Label::Exists(name) => value(name).is_some(),
            Label::Absent(name) => value(name).is_none(),
            Label::In(name, values) => value(name).is_some_and(|value| values.iter().any(|wanted| wanted == value)),
            Label::NotIn(name, values) => value(name).is_none_or(|value| values.iter().all(|wanted| wanted != value)),
        }) && self.fields.iter().all(|(name, wanted, equal)| {
            let found = object.pointer(&format!("/{}", name.replace('.', "/")));
            let text =
                found.map_or_else(String::new, |value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            (text == *wanted) == *equal
        })
    }
}

/// Splits at commas that are not inside parentheses.
fn terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (index, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                terms.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms.into_iter().map(str::trim).filter(|term| !term.is_empty()).collect()
}

fn equation(term: &str) -> Option<(String, String, bool)> {
    let (name, value, equal) = if let Some((name, value)) = term.split_once("!=") {
        (name, value, false)
    } else {
        let (name, value) = term.split_once("==").or_else(|| term.split_once('='))?;
        (name, value, true)
    };
    Some((name.trim().to_owned(), value.trim().to_owned(), equal))
}

fn label(term: &str) -> Option<Label> {
    if let Some((name, value, equal)) = equation(term) {
        return Some(if equal { Label::In(name, vec![value]) } else { Label::NotIn(name, vec![value]) });
    }
    if let Some(name) = term.strip_prefix('!') {
        return Some(Label::Absent(name.trim().to_owned()));
    }
    let Some((head, values)) = term.split_once('(') else {
        return (!term.contains(char::is_whitespace)).then(|| Label::Exists(term.to_owned()));
    };
    let values: Vec<String> = values.strip_suffix(')')?.split(',').map(|value| value.trim().to_owned()).collect();
    match head.split_whitespace().collect::<Vec<_>>()[..] {
        [name, "in"] => Some(Label::In(name.to_owned(), values)),
        [name, "notin"] => Some(Label::NotIn(name.to_owned(), values)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_select() {
        let object = json!({"metadata": {"name": "n", "labels": {"a": "1", "b": ""}}, "type": "Opaque"});
        for (labels, fields, wanted) in [
            ("", "", true),
            ("a=1", "", true),
            ("a==1,b", "", true),
            ("a!=1", "", false),
            ("c!=1,!c", "", true),
            ("a in (1, 2),c notin (x)", "", true),
            ("a in (2)", "", false),
            ("!a", "", false),
            ("", "metadata.name=n,type!=x", true),
            ("", "metadata.name=m", false),
        ] {
            assert_eq!(Selector::parse(labels, fields).unwrap().matches(&object), wanted, "{labels} {fields}");
        }
        assert!(Selector::parse("a in 1", "").is_err() && Selector::parse("", "x").is_err());
    }
}
