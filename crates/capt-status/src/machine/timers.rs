//! The timers of the two provider kinds: which runs when, and what its expiry is called.
//!
//! | timer | starts when | ends when |
//! |---|---|---|
//! | vpcCreationTimeout | the VPC's apply is there | the provider has begun on its Workspace |
//! | workspaceReadyTimeout | the provider has begun | the Workspace is ready |
//! | vpcReadyTimeout | the provider has begun on the VPC | the CAPTCluster is ready |
//! | controlPlaneTimeout | the operation starts | everything is there |
//! | secretTimeout | the Workspace is ready | endpoint, CA and kubeconfig are there |
//!
//! A timer that ended is forgotten; one that expired stays, so that the state that follows from it
//! stays too. A start is stored, so neither a restart nor another leader moves it.

use super::facts::{Configuration, Facts, Infrastructure, Inputs, Owner, Role, Workspace};
use crate::{
    deadline::Running,
    time::{Span, Time},
};

/// A timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Timer {
    /// The VPC's Workspace waits for the provider.
    VpcCreation,
    /// The Workspace is being applied.
    WorkspaceReady,
    /// The control plane waits for the VPC.
    VpcReady,
    /// The whole creation or update of a control plane.
    ControlPlane,
    /// The ready Workspace's outputs are collected.
    Secret,
    /// A failure for lack of permission may pass: IAM is eventually consistent.
    PermissionGrace,
}

impl Timer {
    /// Every timer.
    pub const ALL: [Self; 6] = [
        Self::VpcCreation,
        Self::WorkspaceReady,
        Self::VpcReady,
        Self::ControlPlane,
        Self::Secret,
        Self::PermissionGrace,
    ];

    /// Name in `status.deadlines` and, but for the last, in `spec.timeouts`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::VpcCreation => "vpcCreationTimeout",
            Self::WorkspaceReady => "workspaceReadyTimeout",
            Self::VpcReady => "vpcReadyTimeout",
            Self::ControlPlane => "controlPlaneTimeout",
            Self::Secret => "secretTimeout",
            Self::PermissionGrace => "permissionGrace",
        }
    }

    /// Reason of a condition when it has expired.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::VpcCreation => "VPCCreationTimeout",
            Self::WorkspaceReady => "WorkspaceReadyTimeout",
            Self::VpcReady => "VPCReadyTimeout",
            Self::ControlPlane => "ControlPlaneTimeout",
            Self::Secret => "SecretTimeout",
            Self::PermissionGrace => "PermissionDenied",
        }
    }

    /// How long it runs where nobody says otherwise.
    pub const fn default_span(self) -> Span {
        Span::from_minutes(match self {
            Self::VpcCreation | Self::ControlPlane | Self::WorkspaceReady => 30,
            Self::VpcReady => 15,
            Self::Secret => 5,
            Self::PermissionGrace => 10,
        })
    }

    /// Whether it runs while `facts` hold, in an object that is alive.
    pub(super) const fn runs(self, facts: &Facts) -> bool {
        if matches!(facts.owner, Owner::Missing) {
            return false;
        }
        let workspace = facts.workspace;
        let not_ready = !matches!(facts.infrastructure, Infrastructure::Ready);
        match (self, facts.role) {
            // Also while a template that it needs again is not there: nothing else would end that.
            (Self::VpcCreation, Role::Infrastructure) => match workspace {
                Workspace::Queued => true,
                Workspace::Ready => matches!(facts.inputs, Inputs::Unresolved),
                Workspace::Applying | Workspace::Failing(_) => false,
            },
            (Self::VpcCreation, Role::ControlPlane) => false,
            (Self::WorkspaceReady, _) => !not_ready && matches!(workspace, Workspace::Applying | Workspace::Failing(_)),
            (Self::VpcReady, Role::ControlPlane) => matches!(facts.infrastructure, Infrastructure::Begun),
            (Self::VpcReady | Self::ControlPlane, Role::Infrastructure) => false,
            (Self::ControlPlane, Role::ControlPlane) => !facts.is_complete(),
            (Self::Secret, _) => {
                !not_ready
                    && matches!(facts.inputs, Inputs::Valid)
                    && matches!(workspace, Workspace::Ready)
                    && matches!(facts.configuration, Configuration::Incomplete)
            }
            (Self::PermissionGrace, _) => matches!(facts.failure(), Some(crate::failure::Class::Permission)),
        }
    }
}

/// The timers that run, by [`Timer::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Timers([Option<Running>; 6]);

/// How long each timer may run, by [`Timer::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts([Span; 6]);

impl Default for Timeouts {
    fn default() -> Self {
        Self(Timer::ALL.map(Timer::default_span))
    }
}

impl Timeouts {
    /// The same with another limit for `timer`.
    #[must_use]
    pub fn with(mut self, timer: Timer, limit: Span) -> Self {
        self.0[timer as usize] = limit;
        self
    }

    /// The limit of `timer`.
    pub const fn of(&self, timer: Timer) -> Span {
        self.0[timer as usize]
    }
}

impl Timers {
    /// The start of `timer`, if it runs.
    pub const fn get(&self, timer: Timer) -> Option<Running> {
        self.0[timer as usize]
    }

    /// Sets or forgets the start of `timer`.
    pub const fn set(&mut self, timer: Timer, running: Option<Running>) {
        self.0[timer as usize] = running;
    }

    /// Starts what runs now, forgets what does not; `afresh` starts everything anew.
    pub(super) fn advance(&mut self, facts: &Facts, afresh: bool, now: Time) {
        for timer in Timer::ALL {
            let started = self.get(timer).filter(|_| !afresh);
            // Another failure has its own grace.
            let started = started.filter(|_| timer != Timer::PermissionGrace || facts.same_failure);
            self.set(timer, timer.runs(facts).then(|| started.unwrap_or(Running::start(now))));
        }
    }

    /// Forgets what has not expired: nothing is waited for any more, so no deadline of it may pass.
    pub(super) fn give_up(&mut self, timeouts: &Timeouts, now: Time) {
        for timer in Timer::ALL {
            if !self.is_expired(timer, timeouts, now) {
                self.set(timer, None);
            }
        }
    }

    /// Adds a pause that lasted from `since` until `now` to everything that runs.
    pub fn resume(&mut self, since: Time, now: Time) {
        for running in self.0.iter_mut().flatten() {
            running.resume(since, now);
        }
    }

    /// The timer that expired first, the grace aside: one that expires later changes nothing of what is
    /// told.
    pub fn expired(&self, timeouts: &Timeouts, now: Time) -> Option<Timer> {
        Timer::ALL
            .into_iter()
            .filter(|timer| *timer != Timer::PermissionGrace && self.is_expired(*timer, timeouts, now))
            .min_by_key(|timer| self.get(*timer).map(|running| running.expires_at(timeouts.of(*timer))))
    }

    /// Whether `timer` runs and has expired.
    pub fn is_expired(&self, timer: Timer, timeouts: &Timeouts, now: Time) -> bool {
        self.get(timer).is_some_and(|running| running.is_expired(timeouts.of(timer), now))
    }

    /// When the next one that has not expired does.
    pub fn next(&self, timeouts: &Timeouts, now: Time) -> Option<Time> {
        Timer::ALL
            .into_iter()
            .filter_map(|timer| Some(self.get(timer)?.expires_at(timeouts.of(timer))))
            .filter(|at| *at > now)
            .min()
    }
}
