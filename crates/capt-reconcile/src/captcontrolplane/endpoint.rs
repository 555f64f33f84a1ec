//! Which endpoint the control plane has, and whether it is written into its spec.
//!
//! Precedence: a value that the user set in the spec stays and wins; else the Workspace's output, from its
//! status or else its connection Secret; else the Cluster's. The value in the spec is ours if it is what
//! Terraform put out before, or a URL that parses to our output (the Go implementation wrote those).

use base64::{Engine, engine::general_purpose::STANDARD};
use capt_api::ApiEndpoint;
use capt_status::{Endpoint, endpoint::EndpointError, machine::Cause};

use crate::reasons;

/// What to do about the endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    /// The spec carries it.
    Keep {
        /// The endpoint.
        endpoint: Endpoint,
        /// Another one that Terraform puts out now.
        other: Option<Other>,
    },
    /// It goes into the spec.
    Write(Endpoint),
    /// There is none yet.
    Missing(Cause),
}

/// An endpoint that Terraform puts out beside the one in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Other {
    /// Terraform put out the one in use before.
    Changed(Endpoint),
    /// The one in use is the user's.
    Overridden(Endpoint),
}

/// What is known of the endpoint, in the order in which it counts.
#[derive(Debug)]
pub(super) struct Known<'a> {
    /// The value in the spec.
    pub(super) spec: Option<&'a ApiEndpoint>,
    /// What Terraform put out before, which tells whether the value in the spec is ours.
    pub(super) put_out: Option<&'a str>,
    /// Whether the status tells already that Terraform puts out another one than ours in the spec.
    pub(super) told: bool,
    /// Terraform's output, or what is wrong with it.
    pub(super) output: Result<Endpoint, Cause>,
    /// The value in the Cluster's spec.
    pub(super) cluster: Option<&'a ApiEndpoint>,
}

/// Decides from what is known, and from whether the control plane was ever ready.
pub(super) fn decide(known: Known<'_>, was_ready: bool) -> Decision {
    let Known { spec, put_out, told, output, cluster } = known;
    let Some(spec) = spec.filter(|spec| spec.is_set()) else {
        return match output {
            Ok(endpoint) => Decision::Write(endpoint),
            Err(cause) => match cluster.and_then(|endpoint| meant(endpoint).ok()) {
                Some(endpoint) => Decision::Write(endpoint),
                None => Decision::Missing(cause),
            },
        };
    };
    let current = match meant(spec) {
        Ok(current) => current,
        Err(error) => {
            return Decision::Missing(Cause::new(
                reasons::ENDPOINT_NOT_READY,
                format!("spec.controlPlaneEndpoint.host: {error}"),
            ));
        }
    };
    let is_ours = told || put_out.and_then(|text| text.parse().ok()).as_ref() == Some(&current);
    if Endpoint::new(&spec.host, 443).is_err() {
        // Not a host: a URL from the Go implementation, or a mistake of the user.
        return match output {
            Ok(endpoint) if endpoint == current => Decision::Write(endpoint),
            Ok(_) | Err(_) if is_ours => Decision::Write(current),
            Ok(endpoint) => Decision::Keep { endpoint: current, other: Some(Other::Overridden(endpoint)) },
            Err(_) => Decision::Keep { endpoint: current, other: None },
        };
    }
    match output {
        Ok(endpoint) if endpoint != current => match (is_ours, was_ready) {
            (true, true) => Decision::Keep { endpoint: current, other: Some(Other::Changed(endpoint)) },
            (true, false) => Decision::Write(endpoint),
            (false, _) => Decision::Keep { endpoint: current, other: Some(Other::Overridden(endpoint)) },
        },
        Ok(_) | Err(_) => Decision::Keep { endpoint: current, other: None },
    }
}

/// The endpoint that an output says. Some modules put out the URL in base64, as the Go implementation read it.
pub(super) fn parse(output: &str) -> Result<Endpoint, EndpointError> {
    let decoded = STANDARD.decode(output.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.filter(|text| is_url(text)).as_deref().unwrap_or(output).parse()
}

/// Whether a host is a URL, as the Go implementation wrote them.
pub(super) fn is_url(host: &str) -> bool {
    host.contains("://")
}

/// The endpoint that is meant: host and port, or the URL in the place of the host.
pub(super) fn meant(endpoint: &ApiEndpoint) -> Result<Endpoint, EndpointError> {
    let port = u16::try_from(endpoint.port).unwrap_or_default();
    Endpoint::new(&endpoint.host, port).or_else(|_| endpoint.host.parse())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(text: &str) -> Endpoint {
        text.parse().unwrap()
    }

    fn missing() -> Cause {
        Cause::new(reasons::ENDPOINT_NOT_READY, "no output")
    }

    fn decide_with(
        spec: Option<(&str, i32)>,
        put_out: Option<&str>,
        output: Option<&str>,
        was_ready: bool,
    ) -> Decision {
        decide_beside(spec, put_out, output, None, was_ready)
    }

    fn decide_beside(
        spec: Option<(&str, i32)>,
        put_out: Option<&str>,
        output: Option<&str>,
        cluster: Option<(&str, i32)>,
        was_ready: bool,
    ) -> Decision {
        let value = |pair: Option<(&str, i32)>| pair.map(|(host, port)| ApiEndpoint { host: host.to_owned(), port });
        let (spec, cluster) = (value(spec), value(cluster));
        let output = output.map(endpoint).ok_or_else(missing);
        decide(Known { spec: spec.as_ref(), put_out, told: false, output, cluster: cluster.as_ref() }, was_ready)
    }

    #[test]
    fn spec_goes_before_output_and_output_before_the_cluster() {
        let (mine, out, theirs) = (Some(("mine", 6443)), Some("out:443"), Some(("https://theirs", 443)));
        let keep = Decision::Keep { endpoint: endpoint("mine:6443"), other: None };
        assert_eq!(decide_beside(mine, None, None, theirs, false), keep);
        let keep =
            Decision::Keep { endpoint: endpoint("mine:6443"), other: Some(Other::Overridden(endpoint("out:443"))) };
        assert_eq!(decide_beside(mine, None, out, theirs, false), keep);
        assert_eq!(decide_beside(None, None, out, theirs, false), Decision::Write(endpoint("out:443")));
        assert_eq!(decide_beside(None, None, None, theirs, false), Decision::Write(endpoint("theirs:443")));
        assert_eq!(decide_beside(None, None, None, Some(("no host", 443)), false), Decision::Missing(missing()));
    }

    #[test]
    fn the_output_is_written_once() {
        assert_eq!(decide_with(None, None, Some("a:443"), false), Decision::Write(endpoint("a:443")));
        assert_eq!(decide_with(Some(("", 0)), None, Some("a:443"), false), Decision::Write(endpoint("a:443")));
        let keep = Decision::Keep { endpoint: endpoint("a:443"), other: None };
        assert_eq!(decide_with(Some(("a", 443)), Some("a:443"), Some("a:443"), true), keep);
        assert_eq!(decide_with(None, None, None, false), Decision::Missing(missing()));
    }

    #[test]
    fn a_value_of_the_user_is_never_overwritten() {
        let keep =
            Decision::Keep { endpoint: endpoint("mine:6443"), other: Some(Other::Overridden(endpoint("a:443"))) };
        for put_out in [None, Some("https://a"), Some("b:443")] {
            for was_ready in [false, true] {
                assert_eq!(decide_with(Some(("mine", 6443)), put_out, Some("a:443"), was_ready), keep);
            }
        }
        let keep = Decision::Keep { endpoint: endpoint("mine:6443"), other: None };
        for output in [None, Some("mine:6443")] {
            assert_eq!(decide_with(Some(("mine", 6443)), None, output, false), keep);
        }
    }

    #[test]
    fn a_url_from_go_is_repaired_and_only_if_it_is_our_output() {
        assert_eq!(
            decide_with(Some(("https://a", 443)), None, Some("a:443"), true),
            Decision::Write(endpoint("a:443"))
        );
        // What Terraform put out before is ours too, and its form is put right before anything else is said of it.
        for output in [None, Some("a:443")] {
            let decision = decide_with(Some(("https://b", 443)), Some("https://b"), output, true);
            assert_eq!(decision, Decision::Write(endpoint("b:443")));
        }
        for put_out in [None, Some("a:443")] {
            // That another one is put out is told, as for a host that is one.
            let other = Some(Other::Overridden(endpoint("a:443")));
            let keep = |other| Decision::Keep { endpoint: endpoint("b:443"), other };
            assert_eq!(decide_with(Some(("https://b", 443)), put_out, Some("a:443"), true), keep(other));
            assert_eq!(decide_with(Some(("https://b", 443)), put_out, None, true), keep(None));
        }
    }

    #[test]
    fn after_ready_another_endpoint_is_told_and_not_written() {
        let keep = Decision::Keep { endpoint: endpoint("a:443"), other: Some(Other::Changed(endpoint("b:443"))) };
        assert_eq!(decide_with(Some(("a", 443)), Some("a:443"), Some("b:443"), true), keep);
        assert_eq!(
            decide_with(Some(("a", 443)), Some("a:443"), Some("b:443"), false),
            Decision::Write(endpoint("b:443"))
        );
    }
}
