//! What else the outputs say of the EKS cluster: its name in AWS and its identity provider.

use std::collections::BTreeMap;

use capt_api::EksDetails;

/// Longest text that is taken over, in bytes.
const MAX: usize = 2048;

/// Details from the outputs, as texts; what they do not say keeps its last value.
pub(super) fn update(details: &mut Option<EksDetails>, outputs: &BTreeMap<String, String>) {
    let output = |names: &[&str]| {
        names
            .iter()
            .find_map(|name| outputs.get(*name))
            .filter(|text| !text.trim().is_empty() && text.len() <= MAX)
            .cloned()
    };
    let arn = output(&["oidc_provider_arn"]);
    // The ARN ends in the issuer without its scheme.
    let issuer = output(&["cluster_oidc_issuer_url", "oidc_issuer_url"]).or_else(|| {
        let (_, issuer) = arn.as_deref()?.split_once(":oidc-provider/")?;
        Some(format!("https://{issuer}"))
    });
    let name = output(&["cluster_name"]);
    if name.is_none() && arn.is_none() && issuer.is_none() {
        return;
    }
    let known = details.get_or_insert_with(EksDetails::default);
    for (field, value) in
        [(&mut known.cluster_name, name), (&mut known.oidc_provider_arn, arn), (&mut known.oidc_issuer, issuer)]
    {
        if let Some(value) = value {
            *field = Some(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_the_outputs_say_is_shown_and_what_they_do_not_say_stays() {
        const ARN: &str = "arn:aws:iam::1:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/AB";
        let mut details = None;
        update(&mut details, &outputs(&[("vpc_id", "vpc-1"), ("cluster_name", " ")]));
        assert_eq!(details, None);
        update(&mut details, &outputs(&[("cluster_name", "demo"), ("oidc_provider_arn", ARN)]));
        let mut expected = EksDetails {
            cluster_name: Some("demo".to_owned()),
            oidc_provider_arn: Some(ARN.to_owned()),
            oidc_issuer: Some("https://oidc.eks.eu-west-1.amazonaws.com/id/AB".to_owned()),
        };
        assert_eq!(details.as_ref(), Some(&expected));
        update(&mut details, &outputs(&[("cluster_oidc_issuer_url", "https://issuer")]));
        expected.oidc_issuer = Some("https://issuer".to_owned());
        assert_eq!(details.as_ref(), Some(&expected));
        update(&mut details, &outputs(&[("cluster_name", &"x".repeat(MAX + 1))]));
        assert_eq!(details, Some(expected));
    }
}
