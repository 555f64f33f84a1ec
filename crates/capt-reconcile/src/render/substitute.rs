//! `${NAME}` in a template's Workspace spec.
//!
//! A reference is exactly `${IDENT}`, or `${key}` where `key` is literally a key of the apply's
//! variables. Known ones are replaced once, as text; everything else that Terraform writes with a
//! dollar stays byte for byte. An unknown identifier stays inside the module text (it may be
//! Terraform's) and is an error elsewhere.

use std::collections::BTreeMap;

use serde_json::Value;

use super::RenderError;

/// Where in the spec the module text is.
const MODULE: &str = "forProvider.module";
/// Fields of the provider that are boolean.
const BOOLEANS: [&str; 1] = ["forProvider.enableTerraformCLILogging"];

/// Replaces the references in every string of `spec`.
pub fn spec(spec: &mut Value, variables: &BTreeMap<String, String>, template: &str) -> Result<(), RenderError> {
    walk(spec, "", variables, template)
}

fn walk(
    value: &mut Value,
    path: &str,
    variables: &BTreeMap<String, String>,
    template: &str,
) -> Result<(), RenderError> {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        Value::String(string) => {
            let replaced = text(string, variables, path == MODULE).map_err(|variable| {
                RenderError::UndefinedVariable { variable, field: path.to_owned(), template: template.to_owned() }
            })?;
            *value = if BOOLEANS.contains(&path) {
                Value::Bool(replaced.trim().parse().map_err(|_| RenderError::NotABoolean {
                    field: path.to_owned(),
                    value: replaced.clone(),
                    template: template.to_owned(),
                })?)
            } else {
                Value::String(replaced)
            };
            Ok(())
        }
        Value::Array(items) => items
            .iter_mut()
            .enumerate()
            .try_for_each(|(index, item)| walk(item, &format!("{path}[{index}]"), variables, template)),
        Value::Object(fields) => fields.iter_mut().try_for_each(|(name, field)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            walk(field, &path, variables, template)
        }),
    }
}

/// `input` with its references replaced; the name of an unknown one unless `keep_unknown`.
pub fn text(input: &str, variables: &BTreeMap<String, String>, keep_unknown: bool) -> Result<String, String> {
    let mut output = String::with_capacity(input.len());
    let mut rest = input;
    while let Some(dollar) = rest.find('$') {
        let (before, from_dollar) = rest.split_at(dollar);
        output.push_str(before);
        if let Some(after) = from_dollar.strip_prefix("$${") {
            // Terraform's escape of a literal `${`.
            output.push_str("$${");
            rest = after;
            continue;
        }
        let reference = from_dollar.strip_prefix("${").and_then(|body| body.split_once('}'));
        match reference {
            Some((name, after)) if variables.contains_key(name) => {
                output.push_str(&variables[name]);
                rest = after;
            }
            Some((name, _)) if is_identifier(name) && !keep_unknown => return Err(name.to_owned()),
            Some(_) | None => {
                output.push('$');
                rest = &from_dollar[1..];
            }
        }
    }
    output.push_str(rest);
    Ok(output)
}

fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|character| character.is_ascii_alphanumeric() || character == '_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn variables() -> BTreeMap<String, String> {
        [("name", "demo"), ("tags_a-b", "x"), ("loop", "${name}"), ("quote", "a\"b\nc")]
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    }

    #[test]
    fn known_references_are_replaced_and_everything_else_stays() {
        for (input, expected) in [
            ("${name}", "demo"),
            ("a-${name}-${name}", "a-demo-demo"),
            ("${tags_a-b}", "x"),
            ("${loop}", "${name}"),
            ("${quote}", "a\"b\nc"),
            ("${var.name}", "${var.name}"),
            ("${jsonencode({a = 1})}", "${jsonencode({a = 1})}"),
            ("$${name}", "$${name}"),
            ("${ name }", "${ name }"),
            ("$name $ ${", "$name $ ${"),
            ("${a${name}", "${ademo"),
        ] {
            assert_eq!(text(input, &variables(), true).as_deref(), Ok(expected), "{input}");
        }
    }

    #[test]
    fn an_unknown_identifier_is_an_error_where_terraform_does_not_read() {
        assert_eq!(text("x-${missing}", &variables(), false), Err("missing".to_owned()));
        assert_eq!(text("x-${missing}", &variables(), true).as_deref(), Ok("x-${missing}"));
        assert_eq!(text("${var.missing}", &variables(), false).as_deref(), Ok("${var.missing}"));
    }

    proptest! {
        #[test]
        fn a_text_without_known_references_stays_byte_for_byte(input in "[a-z${}. \\n]{0,60}") {
            prop_assert_eq!(text(&input, &BTreeMap::new(), true).unwrap(), input);
        }

        #[test]
        fn values_are_text_and_never_read_again(value in "[a-z${}\"\\\\\\n]{0,20}") {
            let variables = BTreeMap::from([("v".to_owned(), value.clone())]);
            prop_assert_eq!(text("<${v}>", &variables, false).unwrap(), format!("<{value}>"));
        }
    }
}
