//! What else the outputs say of the EKS cluster: its name in AWS and its identity provider.

use capt_api::EksDetails;
use serde_json::{Map, Value};

use crate::outputs::as_variable;

/// Longest text that is taken over, in bytes.
const MAX: usize = 2048;

/// Details from the outputs, where these say any; what they do not say keeps its last value.
pub(super) fn updated(known: Option<&EksDetails>, outputs: &Map<String, Value>) -> Option<EksDetails> {
    let output = |names: &[&str]| {
        let text = as_variable(names.iter().find_map(|name| outputs.get(*name))?);
        (!text.trim().is_empty() && text.len() <= MAX).then(|| text.into_owned())
    };
    let arn = output(&["oidc_provider_arn"]);
    // The ARN ends in the issuer without its scheme.
    let issuer = output(&["cluster_oidc_issuer_url", "oidc_issuer_url"]).or_else(|| {
        let (_, issuer) = arn.as_deref()?.split_once(":oidc-provider/")?;
        Some(format!("https://{issuer}"))
    });
    let name = output(&["cluster_name"]);
    if name.is_none() && arn.is_none() && issuer.is_none() {
        return None;
    }
    let known = known.cloned().unwrap_or_default();
    Some(EksDetails {
        cluster_name: name.or(known.cluster_name),
        oidc_provider_arn: arn.or(known.oidc_provider_arn),
        oidc_issuer: issuer.or(known.oidc_issuer),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(pairs: &[(&str, &str)]) -> Map<String, Value> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect()
    }

    #[test]
    fn what_the_outputs_say_is_shown_and_what_they_do_not_say_stays() {
        const ARN: &str = "arn:aws:iam::1:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/AB";
        assert_eq!(updated(None, &outputs(&[("vpc_id", "vpc-1"), ("cluster_name", " ")])), None);
        let details = updated(None, &outputs(&[("cluster_name", "demo"), ("oidc_provider_arn", ARN)]));
        let mut expected = EksDetails {
            cluster_name: Some("demo".to_owned()),
            oidc_provider_arn: Some(ARN.to_owned()),
            oidc_issuer: Some("https://oidc.eks.eu-west-1.amazonaws.com/id/AB".to_owned()),
        };
        assert_eq!(details.as_ref(), Some(&expected));
        let details = updated(details.as_ref(), &outputs(&[("cluster_oidc_issuer_url", "https://issuer")]));
        expected.oidc_issuer = Some("https://issuer".to_owned());
        assert_eq!(details.as_ref(), Some(&expected));
        assert_eq!(updated(details.as_ref(), &outputs(&[("cluster_name", &"x".repeat(MAX + 1))])), None);
        let details = updated(details.as_ref(), &outputs(&[("cluster_name", "other")]));
        assert_eq!(details, Some(EksDetails { cluster_name: Some("other".to_owned()), ..expected }));
    }
}
