//! Recovery on the wire: the strategy a user asks for and what was tried (requirements 003).
//!
//! Place in the flow: the spec is read through [`RecoveryStrategy::effective`], which fills in what
//! is absent; when something is tried is decided with [`crate::backoff`].

use alloc::{collections::BTreeMap, string::String, vec, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{
    backoff::{Attempts, Backoff, Budget},
    time::{Span, Time},
};

/// What to do about failures that may pass.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RecoveryStrategy {
    /// Attempts before the object is Failed; 0 means never act. 5 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemars", schemars(range(min = 0, max = 100)))]
    pub max_retries: Option<i32>,
    /// How long to wait between attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_config: Option<BackoffConfig>,
    /// Actions of one attempt, in order; RetryWorkspace if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemars", schemars(length(max = 8)))]
    pub actions: Option<Vec<RecoveryAction>>,
}

/// Exponential backoff between attempts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BackoffConfig {
    /// Before the first attempt; 30s if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_interval: Option<Span>,
    /// Factor from one interval to the next; 2 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemars", schemars(range(min = 1, max = 10)))]
    pub multiplier: Option<i32>,
    /// Longest interval; 10m if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_interval: Option<Span>,
}

/// One recovery action.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct RecoveryAction {
    /// What to do.
    #[serde(rename = "type")]
    pub type_: ActionType,
    /// Parameters of the action; RecreateWorkspace needs confirm: "true".
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schemars", schemars(schema_with = "parameters"))]
    pub parameters: BTreeMap<String, String>,
    /// How long the action may take; 10m if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

#[cfg(feature = "schemars")]
fn parameters(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "maxProperties": 8,
        "additionalProperties": {"type": "string", "maxLength": 256},
    })
}

/// Kind of a recovery action.
///
/// Reread looks again without a write, RetryWorkspace asks the provider to try again,
/// RecreateWorkspace deletes and makes a Workspace that was never ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[allow(missing_docs)]
pub enum ActionType {
    Reread,
    RetryWorkspace,
    RecreateWorkspace,
}

/// What was tried after a failure.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Recovery {
    /// Attempts so far.
    #[serde(default)]
    #[cfg_attr(feature = "schemars", schemars(range(min = 0)))]
    pub attempts: i32,
    /// When the last attempt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempt_time: Option<Time>,
    /// When the next attempt begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_time: Option<Time>,
    /// The action that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_action: Option<ActionType>,
    /// Which action of the strategy that is, counted from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemars", schemars(range(min = 0)))]
    pub action_index: Option<i32>,
    /// When the action that runs began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_started_at: Option<Time>,
    /// How the last attempt ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemars", schemars(length(max = 64)))]
    pub last_result: Option<String>,
    /// Whether the budget is spent.
    #[serde(default)]
    pub escalated: bool,
}

/// How long an action may take where nobody says otherwise.
const ACTION_TIMEOUT: Span = Span::from_minutes(10);

/// A strategy with everything filled in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EffectiveStrategy {
    /// How often and how patiently to try.
    pub budget: Budget,
    /// Actions of one attempt, in order.
    pub actions: Vec<EffectiveAction>,
}

/// An action with everything filled in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EffectiveAction {
    /// What to do.
    pub type_: ActionType,
    /// Its parameters.
    pub parameters: BTreeMap<String, String>,
    /// How long it may take.
    pub timeout: Span,
}

impl RecoveryStrategy {
    /// The strategy with defaults for what is absent, and the nearest valid value for what is not valid.
    ///
    /// ```
    /// use capt_status::{ActionType, RecoveryStrategy, Span};
    ///
    /// let strategy = RecoveryStrategy { max_retries: Some(2), ..Default::default() }.effective();
    /// assert_eq!((strategy.budget.max_retries, strategy.budget.backoff.initial), (2, Span::from_seconds(30)));
    /// assert_eq!(strategy.actions[0].type_, ActionType::RetryWorkspace);
    /// ```
    pub fn effective(&self) -> EffectiveStrategy {
        let Self { max_retries, backoff_config, actions } = self;
        let default = Budget::default();
        let backoff = backoff_config.as_ref().map_or(default.backoff, |config| {
            let BackoffConfig { initial_interval, multiplier, max_interval } = config;
            Backoff {
                initial: initial_interval.unwrap_or(default.backoff.initial),
                multiplier: multiplier
                    .map_or(default.backoff.multiplier, |factor| u32::try_from(factor).unwrap_or_default().max(1)),
                max: max_interval.unwrap_or(default.backoff.max),
            }
        });
        EffectiveStrategy {
            budget: Budget {
                max_retries: max_retries
                    .map_or(default.max_retries, |retries| u32::try_from(retries).unwrap_or_default()),
                backoff,
            },
            actions: match actions {
                Some(actions) => actions.iter().map(RecoveryAction::effective).collect(),
                None => vec![EffectiveAction {
                    type_: ActionType::RetryWorkspace,
                    parameters: BTreeMap::new(),
                    timeout: ACTION_TIMEOUT,
                }],
            },
        }
    }
}

impl RecoveryAction {
    fn effective(&self) -> EffectiveAction {
        let Self { type_, parameters, timeout } = self;
        EffectiveAction { type_: *type_, parameters: parameters.clone(), timeout: timeout.unwrap_or(ACTION_TIMEOUT) }
    }
}

impl EffectiveAction {
    /// Whether the user has confirmed it; only what recreates infrastructure needs that.
    pub fn is_allowed(&self) -> bool {
        match self.type_ {
            ActionType::Reread | ActionType::RetryWorkspace => true,
            ActionType::RecreateWorkspace => self.parameters.get("confirm").is_some_and(|value| value == "true"),
        }
    }
}

impl From<&Recovery> for Attempts {
    /// What the status remembers of the attempts.
    fn from(recovery: &Recovery) -> Self {
        Self {
            made: u32::try_from(recovery.attempts).unwrap_or_default(),
            last: recovery.last_attempt_time,
            next: recovery.next_attempt_time,
            spent: recovery.escalated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strategy(json: serde_json::Value) -> EffectiveStrategy {
        serde_json::from_value::<RecoveryStrategy>(json).unwrap().effective()
    }

    #[test]
    fn what_is_absent_has_its_default() {
        let effective = strategy(serde_json::json!({}));
        assert_eq!(effective, RecoveryStrategy::default().effective());
        assert_eq!(effective.budget, Budget::default());
        let retry = EffectiveAction {
            type_: ActionType::RetryWorkspace,
            parameters: BTreeMap::new(),
            timeout: Span::from_minutes(10),
        };
        assert_eq!(effective.actions, [retry]);
    }

    #[test]
    fn what_is_there_counts() {
        let effective = strategy(serde_json::json!({
            "maxRetries": 0,
            "backoffConfig": {"initialInterval": "10s", "multiplier": 3, "maxInterval": "1m"},
            "actions": [{"type": "Reread", "timeout": "1m"}, {"type": "RetryWorkspace"}],
        }));
        assert_eq!(effective.budget.max_retries, 0);
        assert_eq!([0, 1, 2].map(|made| effective.budget.backoff.interval(made).as_seconds()), [10, 30, 60]);
        let actions: Vec<_> = effective.actions.iter().map(|action| (action.type_, action.timeout)).collect();
        let (minute, default) = (Span::from_minutes(1), Span::from_minutes(10));
        assert_eq!(actions, [(ActionType::Reread, minute), (ActionType::RetryWorkspace, default)]);
        assert_eq!(strategy(serde_json::json!({"actions": []})).actions, []);
    }

    #[test]
    fn what_is_not_valid_becomes_the_nearest_valid_value() {
        let effective = strategy(serde_json::json!({"maxRetries": -1, "backoffConfig": {"multiplier": -4}}));
        assert_eq!((effective.budget.max_retries, effective.budget.backoff.multiplier), (0, 1));
    }

    #[test]
    fn recreating_needs_a_word_of_the_user() {
        for (parameters, allowed) in [
            (serde_json::json!({}), false),
            (serde_json::json!({"confirm": "yes"}), false),
            (serde_json::json!({"confirm": "true"}), true),
        ] {
            let actions = serde_json::json!([{"type": "RecreateWorkspace", "parameters": parameters}]);
            assert_eq!(strategy(serde_json::json!({"actions": actions})).actions[0].is_allowed(), allowed);
        }
    }

    #[test]
    fn the_status_remembers_the_attempts() {
        let recovery: Recovery = serde_json::from_value(serde_json::json!({
            "attempts": 2, "lastAttemptTime": "2026-01-01T00:00:00Z", "nextAttemptTime": "2026-01-01T00:02:00Z",
        }))
        .unwrap();
        let attempts = Attempts::from(&recovery);
        assert_eq!((attempts.made, attempts.spent), (2, false));
        assert_eq!(attempts.next.unwrap().since(attempts.last.unwrap()), Span::from_minutes(2));
    }
}
