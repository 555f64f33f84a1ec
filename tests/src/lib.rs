//! What the integration tests of the whole workspace share: where things are and how manifests are read.

pub mod history;
pub mod operator;
pub mod provider;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// Why a manifest could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is not there or not readable.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The file is not YAML.
    #[error("{path} is not YAML: {message}")]
    Yaml {
        /// The file.
        path: PathBuf,
        /// What the parser says, with line and column.
        message: String,
    },
}

/// Root directory of the project.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The files of Rust code in `directory` and below it, in order; what was built from them is left out.
pub fn sources(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                found.extend(sources(&path)?);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Material for tests that some checkouts have beside the project's directory; `None` if it is absent.
pub fn beside(path: &str) -> Option<PathBuf> {
    Some(root().join("../shared").join(path)).filter(|path| path.exists())
}

/// The documents of a YAML file; empty ones are skipped.
pub fn documents(path: &Path) -> Result<Vec<Value>, Error> {
    let text = fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text)
        .map_err(|error| Error::Yaml { path: path.to_owned(), message: error.to_string() })?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// All YAML files below `directory`, in the order of their names.
pub fn yaml_files(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let fail = |source| Error::Read { path: directory.to_owned(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.is_dir() {
            files.extend(yaml_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Where `part` says something that `whole` does not say in the same way, as a JSON path. What
/// `whole` says in addition (defaults of a server, metadata) does not count.
pub fn missing(part: &Value, whole: &Value) -> Option<String> {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => part.iter().find_map(|(key, value)| {
            // The API server drops nulls of fields that cannot be null.
            if value.is_null() {
                return None;
            }
            let found = whole.get(key).map_or_else(|| Some(String::new()), |other| missing(value, other))?;
            Some(format!(".{key}{found}"))
        }),
        (Value::Array(part), Value::Array(whole)) if part.len() == whole.len() => part
            .iter()
            .zip(whole)
            .enumerate()
            .find_map(|(index, (value, other))| missing(value, other).map(|found| format!("[{index}]{found}"))),
        (part, whole) => (part != whole).then(String::new),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let whole = json!({"a": {"b": [1, {"c": 2}]}, "d": 1});
        for (part, path) in [
            (json!({"a": {"b": [1, {"c": 2}]}}), None),
            (json!({"a": {"b": [1, {"c": 3}]}}), Some(".a.b[1].c")),
            (json!({"a": {"b": [1]}}), Some(".a.b")),
            (json!({"e": null}), None),
            (json!({"e": 1}), Some(".e")),
        ] {
            assert_eq!(missing(&part, &whole).as_deref(), path, "{part}");
        }
    }
}
