//! The two Secrets that the Cluster API contract names: `<cluster>-kubeconfig` and `<cluster>-ca`.
//!
//! And `<control plane>-ca`, which the Go implementation made, where there is one.
//!
//! Made in one POST with type, label and owner; brought up to date when their source changes; left
//! alone if somebody else made them. Values appear in bodies only, never in a reason or a status.

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use capt_api::{
    CAPTControlPlane,
    foreign::SecretView,
    names::{CLUSTER_NAME_LABEL, CLUSTER_SECRET_TYPE},
};
use capt_status::machine::Cause;
use kube::ResourceExt;
use serde_json::json;

use super::observe::Observed;
use crate::{
    meta::{self, Writer},
    object::{Kind, ObjectKey},
    plan::{Op, Precondition},
    reasons,
    world::Seen,
};

const BEGIN_CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// The CA as PEM. EKS modules put out base64 of PEM; it is decoded at most once.
pub(super) fn ca_pem(output: &str) -> Result<String, Cause> {
    let output = output.trim();
    let error =
        |text: &str| Cause::new(reasons::CA_NOT_READY, format!("output cluster_certificate_authority_data {text}"));
    if output.starts_with(BEGIN_CERTIFICATE) {
        return Ok(output.to_owned());
    }
    let unwrapped: String = output.split_whitespace().collect();
    let bytes = STANDARD.decode(unwrapped).map_err(|_| error("is neither PEM nor base64"))?;
    let text = String::from_utf8(bytes).map_err(|_| error("is base64 of something that is no text"))?;
    if text.contains(BEGIN_CERTIFICATE) {
        Ok(text)
    } else {
        Err(error("is base64 of something that is no PEM certificate"))
    }
}

/// Makes the Secret, or brings the given keys up to date. `Err` says why it is not there, and a cause that
/// it is there and is not what we would write.
pub(super) fn ensure(
    writer: &mut Writer,
    control_plane: &CAPTControlPlane,
    cluster: &str,
    suffix: &str,
    found: &Seen<Arc<SecretView>>,
    data: &BTreeMap<&'static str, String>,
) -> Result<Option<Cause>, Cause> {
    let namespace = control_plane.namespace().unwrap_or_default();
    let key = ObjectKey::new(Kind::Secret, &namespace, &format!("{cluster}-{suffix}"));
    let encoded: BTreeMap<&str, String> = data.iter().map(|(key, value)| (*key, STANDARD.encode(value))).collect();
    match found {
        Seen::Unknown => Err(Cause::new(reasons::KUBECONFIG_NOT_READY, format!("{key} is not known yet"))),
        Seen::Absent { live: _ } => {
            let body = json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {
                    "namespace": namespace,
                    "name": key.name,
                    "labels": {CLUSTER_NAME_LABEL: cluster},
                    "ownerReferences": [meta::controller_reference(Kind::CaptControlPlane, control_plane)],
                },
                "type": CLUSTER_SECRET_TYPE,
                "data": encoded,
            });
            writer.other(
                key,
                Op::Create { body },
                Precondition::MustNotExist,
                format!("the contract's {suffix} Secret"),
            );
            Ok(None)
        }
        Seen::Present(secret) => {
            let is_current = data
                .iter()
                .all(|(key, value)| secret.data.get(*key).is_some_and(|bytes| bytes.expose() == value.as_bytes()));
            let has_label = secret.meta.labels.get(CLUSTER_NAME_LABEL).is_some_and(|found| found == cluster);
            if is_current && has_label {
                return Ok(None);
            }
            if !is_ours(control_plane, secret) {
                // Whoever made it decides what is in it; it only has to be usable.
                let is_usable = data.keys().all(|key| secret.data.get(*key).is_some_and(|bytes| !bytes.is_empty()));
                return if is_current {
                    Ok(None)
                } else if is_usable {
                    let message =
                        format!("{key} was made by somebody else: it is used as it is, and not kept up to date");
                    Ok(Some(Cause::new(reasons::SECRET_NOT_OURS, message)))
                } else {
                    let names: Vec<&str> = data.keys().copied().collect();
                    Err(Cause::new(
                        reasons::SECRET_NOT_OURS,
                        format!(
                            "{key} was made by somebody else and lacks {}; delete it, or fill it",
                            names.join(", ")
                        ),
                    ))
                };
            }
            let mut body = json!({});
            if !has_label {
                body["metadata"]["labels"] = json!({CLUSTER_NAME_LABEL: cluster});
            }
            if !is_current {
                body["data"] = json!(encoded);
            }
            let precondition = Precondition::Observed {
                uid: secret.meta.uid.clone(),
                resource_version: secret.meta.resource_version.clone(),
            };
            writer.other(
                key,
                Op::MergePatch { body },
                precondition,
                format!("the source of the {suffix} Secret changed"),
            );
            Ok(None)
        }
    }
}

/// Brings the CA Secret of the Go implementation up to date, which people mount; none is ever made. It is
/// known by its owner, or by holding exactly the two keys that were written, without an owner.
pub(super) fn keep_in_step(
    writer: &mut Writer,
    control_plane: &CAPTControlPlane,
    found: &Seen<Arc<SecretView>>,
    pem: &str,
) {
    const KEYS: [&str; 2] = ["ca.crt", "tls.crt"];
    let Some(secret) = found.present() else { return };
    let has_its_shape = secret.meta.owner_references.is_empty()
        && secret.data.keys().eq(KEYS)
        && secret.data.values().all(|value| value.expose_text().is_some_and(|text| text.contains(BEGIN_CERTIFICATE)));
    if !is_ours(control_plane, secret) && !has_its_shape {
        return;
    }
    let stale: BTreeMap<&str, String> = KEYS
        .into_iter()
        .filter(|key| secret.data.get(*key).is_none_or(|value| value.expose() != pem.as_bytes()))
        .map(|key| (key, STANDARD.encode(pem)))
        .collect();
    if stale.is_empty() {
        return;
    }
    let key = ObjectKey::of_view(Kind::Secret, &secret.meta);
    let precondition =
        Precondition::Observed { uid: secret.meta.uid.clone(), resource_version: secret.meta.resource_version.clone() };
    let reason = "the CA changed: keep the Secret of the Go implementation in step";
    writer.other(key, Op::MergePatch { body: json!({"data": stale}) }, precondition, reason);
}

/// Whether the control plane made the Secret, by its owner reference.
pub(super) fn is_ours(control_plane: &CAPTControlPlane, secret: &SecretView) -> bool {
    secret.meta.owner_references.iter().any(|owner| {
        owner.uid == meta::uid(control_plane)
            || owner.kind == Kind::CaptControlPlane.name()
                && owner.name == control_plane.name_any()
                && owner.group() == Kind::CaptControlPlane.group()
    })
}

/// Whether both Secrets of the contract are there and filled, whoever made them and from what.
pub(super) fn are_there(observed: &Observed) -> bool {
    is_filled(&observed.kubeconfig_secret, "value") && is_filled(&observed.ca_secret, "tls.crt")
}

/// Whether the Secret is there and has a value under `key`.
pub(super) fn is_filled(secret: &Seen<Arc<SecretView>>, key: &str) -> bool {
    secret.present().and_then(|secret| secret.data.get(key)).is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEM: &str = "-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n";

    #[test]
    fn the_ca_is_decoded_at_most_once() {
        assert_eq!(ca_pem(PEM).as_deref(), Ok(PEM.trim()));
        let once = STANDARD.encode(PEM);
        assert_eq!(ca_pem(&once).as_deref(), Ok(PEM));
        let wrapped = format!("{}\n{}", &once[..20], &once[20..]);
        assert_eq!(ca_pem(&wrapped).as_deref(), Ok(PEM));
        let reason = ca_pem(&STANDARD.encode(once)).unwrap_err().reason;
        assert_eq!(reason, reasons::CA_NOT_READY, "base64 of base64 is not PEM");
        assert!(ca_pem("***").is_err() && ca_pem("").is_err());
    }
}
