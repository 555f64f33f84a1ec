//! Changes that a control plane in use cannot make: EKS refuses them, or Terraform would replace the
//! cluster to make them.
//!
//! They are told in a condition and nothing is written, until the spec asks for something else or the
//! cluster has come to where the change is allowed. The CRD's own rules refuse most of them on the way
//! in; they do not see what another object or a lost status says.

use std::collections::BTreeMap;

use capt_status::machine::Cause;

use super::report::minor;
use crate::reasons;

/// Variables whose change replaces the cluster.
const FIXED: [(&str, &str); 3] = [("cluster_name", "name"), ("region", "region"), ("vpc_id", "VPC")];

/// Why the change from the variables that the apply has to `wanted` is not made; `running` is the version
/// that runs, where it is known.
pub(super) fn change(
    have: &BTreeMap<String, String>,
    wanted: &BTreeMap<String, String>,
    running: Option<&str>,
) -> Option<Cause> {
    if let Some(cause) = fixed(have, wanted, &FIXED, "a control plane") {
        return Some(cause);
    }
    let unsupported = |message: String| Some(Cause::new(reasons::UNSUPPORTED_CHANGE, message));
    let version = |variables: &BTreeMap<String, String>| variables.get("kubernetes_version").cloned();
    let (from, to) = (running.map(str::to_owned).or_else(|| version(have))?, version(wanted)?);
    let ((major, running), (wanted_major, wanted)) = (minor(&from)?, minor(&to)?);
    if (wanted_major, wanted) < (major, running) {
        return unsupported(format!(
            "version {to} is older than {from}, which runs; EKS has no downgrade: write {from} again"
        ));
    }
    if (wanted_major, wanted) > (major, running + 1) {
        return unsupported(format!(
            "version {to} skips a minor version after {from}, which runs; EKS goes one at a time: write {major}.{} first",
            running + 1
        ));
    }
    None
}

/// Why one of the variables in `names`, each with what it is called, cannot change on `whose`, which is in
/// use. What was not handed over before is no change.
pub(crate) fn fixed(
    have: &BTreeMap<String, String>,
    wanted: &BTreeMap<String, String>,
    names: &[(&str, &str)],
    whose: &str,
) -> Option<Cause> {
    names.iter().find_map(|(variable, what)| {
        let (from, to) = (have.get(*variable)?, wanted.get(*variable)?);
        let message = format!(
            "the {what} of {whose} that is in use cannot be changed from {from} to {to}, it would be replaced: change it back, \
             or create a new Cluster"
        );
        (from != to).then(|| Cause::new(reasons::UNSUPPORTED_CHANGE, message))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_version_goes_up_by_one_minor_at_a_time() {
        for (running, have, wanted, refused) in [
            (Some("v1.31.0"), "1.31", "1.31", None),
            (Some("v1.31.0"), "1.31", "v1.31.9", None),
            (Some("v1.31.0"), "1.31", "1.32", None),
            (Some("v1.31.0"), "1.31", "1.33", Some("write 1.32 first")),
            (Some("v1.31.0"), "1.32", "1.33", Some("write 1.32 first")),
            (Some("v1.31.0"), "1.32", "1.31", None),
            (Some("v1.31.0"), "1.31", "1.30", Some("no downgrade")),
            (Some("v1.9.0"), "1.9", "1.10", None),
            (None, "1.31", "1.29", Some("no downgrade")),
            (None, "1.31", "1.34", Some("write 1.32 first")),
            (Some("odd"), "1.31", "1.34", None),
        ] {
            let (have, wanted) =
                (variables(&[("kubernetes_version", have)]), variables(&[("kubernetes_version", wanted)]));
            let found = change(&have, &wanted, running);
            assert_eq!(found.is_some(), refused.is_some(), "{running:?} {have:?} {wanted:?} {found:?}");
            if let (Some(found), Some(words)) = (found, refused) {
                assert!(found.message.contains(words), "{found:?}");
            }
        }
    }

    #[test]
    fn what_would_replace_the_cluster_is_fixed_and_what_is_new_is_no_change() {
        for (have, wanted, refused) in [
            (("region", "eu-west-1"), ("region", "eu-west-2"), true),
            (("vpc_id", "vpc-1"), ("vpc_id", "vpc-2"), true),
            (("cluster_name", "a"), ("cluster_name", "b"), true),
            (("region", "eu-west-1"), ("region", "eu-west-1"), false),
            (("a", "b"), ("region", "eu-west-1"), false),
            (("region", "eu-west-1"), ("a", "b"), false),
            (("tags_a", "1"), ("tags_a", "2"), false),
        ] {
            let found = change(&variables(&[have]), &variables(&[wanted]), Some("v1.31.0"));
            assert_eq!(found.is_some(), refused, "{have:?} {wanted:?} {found:?}");
        }
    }
}
