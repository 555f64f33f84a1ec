//! The CRDs as YAML documents: what `capt-operator crds` prints and what `crds/` holds.
//!
//! Only the form is decided here, the content is `capt_api::crds`.

use std::io::{self, Write};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Number, Value};

/// Why the CRDs could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A CRD is no YAML, which only a bug of ours can bring about.
    #[error("cannot write the CRD {name} as YAML: {source}")]
    Yaml {
        /// Name of the CRD.
        name: String,
        /// What the serializer says.
        source: serde_saphyr::SerializeError,
    },
    /// As [`Error::Yaml`], one step earlier.
    #[error("cannot write the CRD {name} as JSON: {source}")]
    Json {
        /// Name of the CRD.
        name: String,
        /// What the serializer says.
        source: serde_json::Error,
    },
    /// The output is closed or full.
    #[error("cannot write the CRDs: {0}")]
    Output(#[from] io::Error),
}

/// Writes all CRDs to `output`, as YAML documents in the order of their names.
pub fn write(output: &mut impl Write) -> Result<(), Error> {
    for (_, document) in documents()? {
        output.write_all(b"---\n")?;
        output.write_all(document.as_bytes())?;
    }
    Ok(())
}

/// Name (`plural.group`) and YAML of every CRD.
pub fn documents() -> Result<Vec<(String, String)>, Error> {
    capt_api::crds::all().iter().map(document).collect()
}

fn document(crd: &CustomResourceDefinition) -> Result<(String, String), Error> {
    let name = crd.metadata.name.clone().unwrap_or_default();
    let mut value = match serde_json::to_value(crd) {
        Ok(value) => value,
        Err(source) => return Err(Error::Json { name, source }),
    };
    whole_numbers(&mut value);
    match serde_saphyr::to_string(&value) {
        Ok(yaml) => Ok((name, yaml)),
        Err(source) => Err(Error::Yaml { name, source }),
    }
}

/// Limits are floating-point numbers in the API types; `maximum: 65535.0` is for nobody's eyes.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(whole) = number.as_f64().and_then(whole_number) {
                *number = whole;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn whole_number(float: f64) -> Option<Number> {
    format!("{float}").parse::<i64>().ok().map(Number::from)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    #[test]
    fn the_directory_crds_holds_what_the_code_generates() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds");
        // For Kustomize; `just deploy` writes it.
        let mut expected = BTreeSet::from(["Kustomization".to_owned()]);
        for (name, document) in documents().unwrap() {
            let file = format!("{name}.yaml");
            let stored = fs::read_to_string(directory.join(&file)).unwrap_or_default();
            assert!(stored == document, "crds/{file} is stale: run `just crds`");
            expected.insert(file);
        }
        let found: BTreeSet<String> =
            fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert_eq!(found, expected, "crds/ holds other files than CRDs: run `just crds`");
    }

    #[test]
    fn what_is_printed_reads_back_as_the_same_crds() {
        let mut output = Vec::new();
        write(&mut output).unwrap();
        let text = String::from_utf8(output).unwrap();
        let printed: Vec<CustomResourceDefinition> = serde_saphyr::from_multiple(&text).unwrap();
        assert_eq!(printed, capt_api::crds::all());
    }
}
