//! Which recovery action it is the turn of, and what it writes.
//!
//! The state machine says when an attempt begins ([`capt_status::backoff`]). An attempt goes through the
//! actions of the strategy in order: each has its time, and if the failure still stands when that is
//! over, the next one is taken. The next attempt begins no sooner than all actions had their turn. While
//! an apply may be running no action is taken; the one that is due waits.
//!
//! What recreates infrastructure is left out of the list unless the user has confirmed it and nothing
//! of it was ever ready; who asks must know that ([`Child::may_recreate`]).

use std::sync::Arc;

use capt_api::foreign::ClusterView;
use capt_status::{
    ActionType, Class, Recovery, RecoveryStrategy, State, Time,
    backoff::Pace,
    machine::{Facts, Limits, Next},
    recovery::EffectiveAction,
};

use crate::{
    child::Child,
    memory::Remembered,
    meta::Writer,
    object::{Kind, ObjectKey},
    ownership::{Claim, Owner},
    pass::Features,
    plan::{Counts, Op, Precondition, Query},
    status::Draft,
    world::Seen,
};

/// The actions that an attempt goes through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actions(Vec<EffectiveAction>);

/// The action that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Running {
    index: usize,
    started_at: Time,
}

/// What an attempt is at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// What is to be done now.
    pub act: Option<ActionType>,
    /// The action that runs, with its type.
    running: Option<(Running, ActionType)>,
    /// When the next attempt may begin at the earliest, where an action of this one begins now.
    not_before: Option<Time>,
    /// Whether the action that ran had its time and the failure is not what shows now.
    timed_out: bool,
    /// When to look again.
    pub at: Option<Time>,
}

impl Actions {
    /// Those of `strategy` that may be taken; none if recovery is off. `may_recreate` says whether nothing was
    /// ever ready.
    pub fn of(strategy: Option<&RecoveryStrategy>, may_recreate: bool, features: Features) -> Self {
        if !features.recovery {
            return Self(Vec::new());
        }
        let mut actions = strategy.cloned().unwrap_or_default().effective().actions;
        actions.retain(|action| match action.type_ {
            ActionType::Reread | ActionType::RetryWorkspace => true,
            ActionType::RecreateWorkspace => may_recreate && action.is_allowed(),
        });
        Self(actions)
    }

    /// Whether there is nothing to try.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the attempt that `stored` tells of has further actions, so that no other one begins.
    pub fn are_pending(&self, stored: Option<&Recovery>) -> bool {
        running(stored).is_some_and(|running| running.index + 1 < self.0.len())
    }

    /// What it is the turn of; `next` is the machine's step from `facts`, `busy` whether an apply may
    /// be running.
    pub fn turn(
        &self,
        stored: Option<&Recovery>,
        facts: &Facts,
        next: &Next,
        limits: &Limits,
        busy: bool,
        now: Time,
    ) -> Turn {
        let start = |index: usize| match self.0.get(index) {
            Some(action) => Turn {
                act: Some(action.type_),
                running: Some((Running { index, started_at: now }, action.type_)),
                not_before: Some(now.plus(limits.budget.interval(next.memory.attempts.made, pace(facts)))),
                timed_out: false,
                at: Some(now.plus(action.timeout)),
            },
            None => Turn::none(),
        };
        if next.act {
            return start(0);
        }
        let attempts = next.memory.attempts;
        let Some(running) = running(stored).filter(|_| attempts.made > 0 && !attempts.spent) else {
            return Turn::none();
        };
        let Some(action) = self.0.get(running.index) else { return Turn::none() };
        let ends = running.started_at.plus(action.timeout);
        if now < ends {
            let running = Some((running, action.type_));
            return Turn { running, at: Some(ends), ..Turn::none() };
        }
        let is_recovering = match next.state {
            State::Recovering | State::Degraded => facts.failure().is_some(),
            State::Pending
            | State::Validating
            | State::Provisioning
            | State::Configuring
            | State::Ready
            | State::Failed
            | State::Deleting => false,
        };
        if !is_recovering || attempts.next.is_none() {
            return Turn { timed_out: facts.failure().is_none(), ..Turn::none() };
        }
        if busy && running.index + 1 < self.0.len() {
            // Waits for an event and not for a time.
            return Turn { running: Some((running, action.type_)), ..Turn::none() };
        }
        start(running.index + 1)
    }
}

impl Turn {
    const fn none() -> Self {
        Self { act: None, running: None, not_before: None, timed_out: false, at: None }
    }

    /// Takes over into `wanted`, which has the machine's memory already, what the attempt is at.
    pub fn record<S: Remembered>(&self, wanted: &mut Draft<'_, S>, begins: bool) {
        let Some(mut recovery) = wanted.recovery().cloned() else { return };
        recovery.current_action = self.running.map(|(_, type_)| type_);
        recovery.action_index = self.running.map(|(running, _)| i32::try_from(running.index).unwrap_or(i32::MAX));
        recovery.action_started_at = self.running.map(|(running, _)| running.started_at);
        if self.act.is_some() && !begins {
            recovery.next_attempt_time = recovery.next_attempt_time.max(self.not_before);
        }
        if begins && recovery.attempts > 1 {
            recovery.last_result = Some("Failed".to_owned());
        } else if self.timed_out {
            recovery.last_result = Some("TimedOut".to_owned());
        }
        if wanted.recovery() != Some(&recovery) {
            *wanted.to_mut().kept().recovery = Some(recovery);
        }
    }

    /// The writes of the action that is to be done now, on the Workspace of `child`. `guards` must find
    /// nothing before anything is deleted.
    pub fn carry_out(&self, child: &Child, guards: impl FnOnce() -> Vec<Query>, writer: &mut Writer, now: Time) {
        let Some(Claim { key, api: _, found: Seen::Present((workspace, owner)) }) = &child.claim else { return };
        match (self.act, owner) {
            (Some(ActionType::RetryWorkspace), Owner::Ours) => {
                child.ask(writer, now, "recovery: ask the provider to try again");
            }
            (Some(ActionType::RecreateWorkspace), Owner::Ours) if child.may_recreate() => {
                let precondition = Precondition::Observed {
                    uid: workspace.meta.uid.clone(),
                    resource_version: workspace.meta.resource_version.clone(),
                };
                let reason = "recovery: delete the Workspace, which was never ready, so that it is made anew";
                writer.other(key.clone(), Op::Delete, precondition, reason).unless = guards();
            }
            // Everything is watched, so a pass is a look.
            (Some(ActionType::Reread) | None, _)
            | (
                Some(ActionType::RetryWorkspace | ActionType::RecreateWorkspace),
                Owner::Ours | Owner::Adopted | Owner::Promised | Owner::Foreign(_) | Owner::Unknown,
            ) => {}
        }
    }
}

/// What must not be there when a Workspace is deleted to be made anew: a kubeconfig tells of a control plane
/// that was ready.
pub fn guards(cluster: Option<&Arc<ClusterView>>) -> Vec<Query> {
    let secret = |cluster: &Arc<ClusterView>| {
        let namespace = cluster.meta.namespace.as_deref().unwrap_or_default();
        let key = ObjectKey::new(Kind::Secret, namespace, &format!("{}-kubeconfig", cluster.meta.name));
        Query::Object { key, counts: Counts::Any }
    };
    cluster.map(secret).into_iter().collect()
}

/// The action that runs, as the status tells it.
fn running(stored: Option<&Recovery>) -> Option<Running> {
    let stored = stored?;
    let index = usize::try_from(stored.action_index?).ok()?;
    Some(Running { index, started_at: stored.action_started_at? })
}

/// A quota is not there again in seconds.
const fn pace(facts: &Facts) -> Pace {
    match facts.failure() {
        Some(Class::Quota) => Pace::Longest,
        Some(Class::Transient | Class::Permission | Class::Config | Class::Unknown) | None => Pace::Growing,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use capt_api::control_plane::CAPTControlPlaneStatus;
    use capt_status::{
        RecoveryAction, Span,
        backoff::Attempts,
        machine::{
            Because, Checks, Configuration, Infrastructure, Inputs, Lifecycle, Memory, Owner as ClusterOwner, Role,
            Workspace,
        },
    };

    use super::*;

    const BEGUN: Time = Time::from_unix(1000);
    const TIMEOUT: Span = Span::from_minutes(1);

    fn actions() -> Actions {
        let action = |type_| RecoveryAction { type_, parameters: BTreeMap::new(), timeout: Some(TIMEOUT) };
        let actions = [ActionType::Reread, ActionType::RetryWorkspace].map(action);
        let strategy = RecoveryStrategy { actions: Some(actions.into()), ..RecoveryStrategy::default() };
        Actions::of(Some(&strategy), false, Features::default())
    }

    fn turn(index: i32, workspace: Workspace, attempts: Attempts, busy: bool, after: i64) -> Turn {
        let facts = Facts {
            role: Role::ControlPlane,
            lifecycle: Lifecycle::Active,
            owner: ClusterOwner::Known,
            inputs: Inputs::Valid,
            infrastructure: Infrastructure::Ready,
            workspace,
            busy,
            configuration: Configuration::Incomplete,
            checks: Checks::Passing,
            same_failure: true,
            user_changed: false,
        };
        let memory = Memory { attempts, ..Memory::default() };
        let (because, state) = (Because::Facts, State::Recovering);
        let next = Next { memory, state, because, stalled: false, act: false, at: None };
        let stored =
            Recovery { action_index: Some(index), action_started_at: Some(BEGUN), attempts: 1, ..Recovery::default() };
        let now = BEGUN.plus(Span::from_seconds(after));
        actions().turn(Some(&stored), &facts, &next, &Limits::default(), busy, now)
    }

    const FAILING: Workspace = Workspace::Failing(Class::Transient);
    const MADE: Attempts = Attempts { made: 1, last: Some(BEGUN), next: Some(Time::from_unix(5000)), spent: false };

    #[test]
    fn an_action_has_its_time_and_then_the_next_one_is_taken() {
        let waits = turn(0, FAILING, MADE, false, 59);
        assert_eq!((waits.act, waits.at, waits.timed_out), (None, Some(BEGUN.plus(TIMEOUT)), false));
        assert_eq!(waits.running.map(|(_, type_)| type_), Some(ActionType::Reread));
        let next = turn(0, FAILING, MADE, false, 60);
        assert_eq!((next.act, next.at), (Some(ActionType::RetryWorkspace), Some(BEGUN.plus(TIMEOUT).plus(TIMEOUT))));
        assert_eq!(turn(1, FAILING, MADE, false, 60), Turn::none(), "there is no third one");
    }

    #[test]
    fn while_an_apply_may_be_running_the_next_action_waits_for_an_event() {
        let waits = turn(0, FAILING, MADE, true, 60);
        assert_eq!((waits.act, waits.at), (None, None));
        assert_eq!(waits.running.map(|(_, type_)| type_), Some(ActionType::Reread));
        assert_eq!(turn(1, FAILING, MADE, true, 60), Turn::none());
    }

    #[test]
    fn an_attempt_without_a_failure_or_without_a_successor_ends() {
        let timed_out = Turn { timed_out: true, ..Turn::none() };
        assert_eq!(turn(0, Workspace::Applying, MADE, false, 60), timed_out);
        assert_eq!(turn(0, FAILING, Attempts { next: None, ..MADE }, false, 60), Turn::none());
    }

    #[test]
    fn what_is_recorded_of_an_attempt() {
        let record = |turn: &Turn, attempts: i32, begins: bool| {
            let next_attempt_time = Some(Time::from_unix(2000));
            let recovery = Recovery { attempts, next_attempt_time, ..Recovery::default() };
            let mut wanted: Draft<'_, CAPTControlPlaneStatus> =
                Draft::Owned(CAPTControlPlaneStatus { recovery: Some(recovery), ..Default::default() });
            turn.record(&mut wanted, begins);
            let recovery = wanted.into_owned().recovery.unwrap();
            (recovery.last_result, recovery.next_attempt_time)
        };
        let (before, later) = (Some(Time::from_unix(2000)), Some(Time::from_unix(3000)));
        let acts = Turn { act: Some(ActionType::Reread), not_before: later, ..Turn::none() };
        assert_eq!(record(&acts, 1, false), (None, later), "a further action moves the next attempt");
        assert_eq!(record(&acts, 1, true), (None, before), "the first attempt has none before it");
        assert_eq!(record(&acts, 2, true), (Some("Failed".to_owned()), before));
        let idle = Turn { not_before: later, ..Turn::none() };
        assert_eq!(record(&idle, 2, false), (None, before));
        let timed_out = Turn { timed_out: true, ..Turn::none() };
        assert_eq!(record(&timed_out, 2, false), (Some("TimedOut".to_owned()), before));
    }
}
