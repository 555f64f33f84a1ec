//! Deserialising what other writers leave behind: `null` where a list, a map or a flag belongs.
//!
//! The API server drops nulls of fields that are not nullable, files do not. Only reading is
//! lenient; what is written has neither nulls nor empty lists.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use crate::captcluster::FailureDomain;

/// `null` counts as absent.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Failure domains as the list of contract v1beta2, or as the map of contract v1beta1, which the
/// Go implementation's CRD allowed.
pub(crate) fn failure_domains<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<FailureDomain>, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Entry {
        control_plane: Option<bool>,
        #[serde(default, deserialize_with = "or_default")]
        attributes: BTreeMap<String, String>,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Form {
        List(Vec<FailureDomain>),
        Map(BTreeMap<String, Entry>),
    }
    Ok(match Option::<Form>::deserialize(deserializer)? {
        None => Vec::new(),
        Some(Form::List(list)) => list,
        Some(Form::Map(map)) => map
            .into_iter()
            .map(|(name, Entry { control_plane, attributes })| FailureDomain { name, control_plane, attributes })
            .collect(),
    })
}
