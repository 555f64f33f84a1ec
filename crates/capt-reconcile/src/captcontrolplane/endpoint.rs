//! Which endpoint the control plane has, and whether it is written into its spec.
//!
//! Precedence: a value that the user set in the spec stays and wins; else the Workspace's output,
//! from its status or its connection Secret. The value in the spec is ours if it is the one our
//! status shows, or a URL that parses to our output (the Go implementation wrote those).

use capt_api::ApiEndpoint;
use capt_status::{Endpoint, machine::Cause};

use crate::reasons;

/// What to do about the endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    /// The spec carries it.
    Keep {
        /// The endpoint.
        endpoint: Endpoint,
        /// Another one that Terraform puts out now, if it differs from one of ours.
        changed_to: Option<Endpoint>,
    },
    /// It goes into the spec.
    Write(Endpoint),
    /// There is none yet.
    Missing(Cause),
}

/// Decides from the spec's value, the one our status shows, Terraform's output (or what is wrong
/// with it), and whether the control plane was ever ready.
pub(super) fn decide(
    spec: Option<&ApiEndpoint>,
    shown: Option<&str>,
    output: Result<Endpoint, Cause>,
    was_ready: bool,
) -> Decision {
    let Some(spec) = spec.filter(|spec| spec.is_set()) else {
        return match output {
            Ok(endpoint) => Decision::Write(endpoint),
            Err(cause) => Decision::Missing(cause),
        };
    };
    let port = u16::try_from(spec.port).unwrap_or_default();
    let Ok(current) = Endpoint::new(&spec.host, port) else {
        // Not a host: a URL from the Go implementation, or a mistake of the user.
        return match (spec.host.parse::<Endpoint>(), output) {
            (Ok(meant), Ok(endpoint)) if meant == endpoint => Decision::Write(endpoint),
            (Ok(meant), _) => Decision::Keep { endpoint: meant, changed_to: None },
            (Err(error), _) => Decision::Missing(Cause::new(
                reasons::ENDPOINT_NOT_READY,
                format!("spec.controlPlaneEndpoint.host: {error}"),
            )),
        };
    };
    let is_ours = shown == Some(current.to_string().as_str());
    match output {
        Ok(endpoint) if is_ours && endpoint != current => {
            if was_ready {
                Decision::Keep { endpoint: current, changed_to: Some(endpoint) }
            } else {
                Decision::Write(endpoint)
            }
        }
        Ok(_) | Err(_) => Decision::Keep { endpoint: current, changed_to: None },
    }
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

    fn decide_with(spec: Option<(&str, i32)>, shown: Option<&str>, output: Option<&str>, was_ready: bool) -> Decision {
        let spec = spec.map(|(host, port)| ApiEndpoint { host: host.to_owned(), port });
        decide(spec.as_ref(), shown, output.map(endpoint).ok_or_else(missing), was_ready)
    }

    #[test]
    fn the_output_is_written_once() {
        assert_eq!(decide_with(None, None, Some("a:443"), false), Decision::Write(endpoint("a:443")));
        assert_eq!(decide_with(Some(("", 0)), None, Some("a:443"), false), Decision::Write(endpoint("a:443")));
        let keep = Decision::Keep { endpoint: endpoint("a:443"), changed_to: None };
        assert_eq!(decide_with(Some(("a", 443)), Some("a:443"), Some("a:443"), true), keep);
        assert_eq!(decide_with(None, None, None, false), Decision::Missing(missing()));
    }

    #[test]
    fn a_value_of_the_user_is_never_overwritten() {
        let keep = Decision::Keep { endpoint: endpoint("mine:6443"), changed_to: None };
        for shown in [None, Some("a:443")] {
            for was_ready in [false, true] {
                assert_eq!(decide_with(Some(("mine", 6443)), shown, Some("a:443"), was_ready), keep);
            }
        }
        assert_eq!(decide_with(Some(("mine", 6443)), None, None, false), keep);
    }

    #[test]
    fn a_url_from_go_is_repaired_and_only_if_it_is_our_output() {
        assert_eq!(
            decide_with(Some(("https://a", 443)), None, Some("a:443"), true),
            Decision::Write(endpoint("a:443"))
        );
        let keep = Decision::Keep { endpoint: endpoint("b:443"), changed_to: None };
        assert_eq!(decide_with(Some(("https://b", 443)), None, Some("a:443"), true), keep);
    }

    #[test]
    fn after_ready_another_endpoint_is_told_and_not_written() {
        let keep = Decision::Keep { endpoint: endpoint("a:443"), changed_to: Some(endpoint("b:443")) };
        assert_eq!(decide_with(Some(("a", 443)), Some("a:443"), Some("b:443"), true), keep);
        assert_eq!(
            decide_with(Some(("a", 443)), Some("a:443"), Some("b:443"), false),
            Decision::Write(endpoint("b:443"))
        );
    }
}
