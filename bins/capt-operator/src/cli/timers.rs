//! Flags for how long things may take, where no spec says otherwise.

use capt_status::{
    Span,
    machine::{Timeouts, Timer},
};
use clap::Args;

use super::{TIMERS, values::minutes};

/// How long each timer may run where neither `spec.timeouts` nor the Go implementation's field says so.
#[derive(Debug, Clone, Args)]
pub struct TimerArgs {
    /// Until the provider has begun on the Workspace of a VPC.
    #[arg(long, env = "CAPT_VPC_CREATION_TIMEOUT", value_name = "DURATION", default_value = "30m", value_parser = minutes, help_heading = TIMERS)]
    pub vpc_creation_timeout: Span,
    /// For which a control plane waits for its VPC, once the provider has begun on that.
    #[arg(long, env = "CAPT_VPC_READY_TIMEOUT", value_name = "DURATION", default_value = "15m", value_parser = minutes, help_heading = TIMERS)]
    pub vpc_ready_timeout: Span,
    /// Until a Workspace is ready, once the provider has begun on it.
    #[arg(long, env = "CAPT_WORKSPACE_READY_TIMEOUT", value_name = "DURATION", default_value = "30m", value_parser = minutes, help_heading = TIMERS)]
    pub workspace_ready_timeout: Span,
    /// For the whole creation or upgrade of a control plane.
    #[arg(long, env = "CAPT_CONTROL_PLANE_TIMEOUT", value_name = "DURATION", default_value = "30m", value_parser = minutes, help_heading = TIMERS)]
    pub control_plane_timeout: Span,
    /// Until endpoint, certificate authority and kubeconfig are known, once the Workspace is ready.
    #[arg(long, env = "CAPT_SECRET_TIMEOUT", value_name = "DURATION", default_value = "5m", value_parser = minutes, help_heading = TIMERS)]
    pub secret_timeout: Span,
}

impl TimerArgs {
    /// For the passes.
    pub fn timeouts(&self) -> Timeouts {
        let Self {
            vpc_creation_timeout,
            vpc_ready_timeout,
            workspace_ready_timeout,
            control_plane_timeout,
            secret_timeout,
        } = self;
        [
            (Timer::VpcCreation, vpc_creation_timeout),
            (Timer::VpcReady, vpc_ready_timeout),
            (Timer::WorkspaceReady, workspace_ready_timeout),
            (Timer::ControlPlane, control_plane_timeout),
            (Timer::Secret, secret_timeout),
        ]
        .into_iter()
        .fold(Timeouts::default(), |all, (timer, limit)| all.with(timer, *limit))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        timers: TimerArgs,
    }

    #[test]
    fn flags_without_a_word_are_the_defaults_of_the_state_machine() {
        assert_eq!(Only::try_parse_from(["x"]).unwrap().timers.timeouts(), Timeouts::default());
    }

    #[test]
    fn each_flag_moves_its_timer_and_no_other() {
        for (flag, timer) in [
            ("--vpc-creation-timeout", Timer::VpcCreation),
            ("--vpc-ready-timeout", Timer::VpcReady),
            ("--workspace-ready-timeout", Timer::WorkspaceReady),
            ("--control-plane-timeout", Timer::ControlPlane),
            ("--secret-timeout", Timer::Secret),
        ] {
            let found = Only::try_parse_from(["x", flag, "77m"]).unwrap().timers.timeouts();
            assert_eq!(found, Timeouts::default().with(timer, Span::from_minutes(77)), "{flag}");
        }
        assert!(Only::try_parse_from(["x", "--secret-timeout", "30s"]).is_err(), "whole minutes, as in a spec");
    }
}
