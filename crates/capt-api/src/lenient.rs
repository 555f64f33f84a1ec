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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{BoolOrText, CAPTClusterStatus, CAPTControlPlaneSpec, CAPTControlPlaneStatus, WorkspaceSpec};

    fn parse<T: serde::de::DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn null_is_absent() {
        let spec: CAPTControlPlaneSpec = parse(json!({
            "version": "1.31", "workspaceTemplateRef": {"name": "t", "namespace": null}, "additionalTags": null,
            "controlPlaneConfig": {"region": "eu-west-1", "addons": null, "endpointAccess": {"public": null, "publicCIDRs": null}},
            "timeouts": null,
        }));
        let written = serde_json::to_value(&spec).unwrap();
        assert_eq!(
            written,
            json!({"version": "1.31", "workspaceTemplateRef": {"name": "t"}, "controlPlaneConfig": {"region": "eu-west-1", "endpointAccess": {}}})
        );
        let status: CAPTControlPlaneStatus =
            parse(json!({"ready": null, "conditions": null, "versions": null, "deadlines": null}));
        assert_eq!(status, CAPTControlPlaneStatus::default());
    }

    #[test]
    fn flags_of_a_status_are_always_written() {
        let written = serde_json::to_value(CAPTControlPlaneStatus::default()).unwrap();
        assert_eq!(written, json!({"ready": false, "initialized": false, "secretsReady": false}));
    }

    #[test]
    fn failure_domains_are_read_as_list_and_as_map() {
        let list: CAPTClusterStatus = parse(
            json!({"failureDomains": [{"name": "a", "controlPlane": true}, {"name": "b", "attributes": {"id": "1"}}]}),
        );
        let map: CAPTClusterStatus =
            parse(json!({"failureDomains": {"a": {"controlPlane": true}, "b": {"attributes": {"id": "1"}}}}));
        assert_eq!(list, map);
        assert_eq!(list.failure_domains.len(), 2);
        assert!(serde_json::to_value(&map).unwrap()["failureDomains"].is_array());
        let none: CAPTClusterStatus = parse(json!({"failureDomains": null}));
        assert!(none.failure_domains.is_empty());
    }

    #[test]
    fn a_flag_may_be_a_text_and_nothing_else_stops_a_template() {
        for (value, expected) in [
            (json!(true), BoolOrText::Bool(true)),
            (json!("${logging}"), BoolOrText::Text("${logging}".into())),
            (json!(3), BoolOrText::Text("3".into())),
            (json!({"a": 1}), BoolOrText::Text("{\"a\":1}".into())),
        ] {
            let spec: WorkspaceSpec =
                parse(json!({"forProvider": {"source": "Inline", "module": "#", "enableTerraformCLILogging": value}}));
            assert_eq!(spec.for_provider.enable_terraform_cli_logging, Some(expected));
        }
    }

    /// An empty list pauses a Workspace, so it must not become the default.
    #[test]
    fn no_management_policies_are_not_all_of_them() {
        let for_provider = json!({"source": "Inline", "module": "#"});
        let paused: WorkspaceSpec = parse(json!({"managementPolicies": [], "forProvider": for_provider}));
        assert_eq!(serde_json::to_value(&paused).unwrap()["managementPolicies"], json!([]));
        let absent: WorkspaceSpec = parse(json!({"forProvider": for_provider}));
        assert_eq!(serde_json::to_value(&absent).unwrap()["managementPolicies"], json!(["*"]));
    }
}
