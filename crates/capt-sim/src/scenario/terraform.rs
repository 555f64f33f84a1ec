//! What Terraform does in a scenario: as the module's outputs suggest, changed by behaviours.

use std::collections::BTreeMap;

use capt_status::Span;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    provider::{Ending, Outputs},
    terraform::guess,
};

use super::percentile;

/// How Terraform behaves for some Workspaces; one that says nothing else lets everything succeed.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Behaviour {
    /// Name of the Workspaces; `*` at its end stands for anything.
    pub workspace: String,
    /// Of how many in a hundred of them; which ones is always the same.
    pub share: Option<u8>,
    /// How long a run takes; by default what is usual for such a module.
    pub takes: Option<Span>,
    /// The apply fails with this text.
    pub fail: Option<String>,
    /// The plan fails with this text.
    pub fail_plan: Option<String>,
    /// The provider cannot begin, and says this.
    pub fail_connect: Option<String>,
    /// The apply destroys, and fails with this text to make the new one.
    pub fail_replacement: Option<String>,
    /// The destroy fails with this text.
    pub fail_destroy: Option<String>,
    /// A run never ends.
    #[serde(default)]
    pub hang: bool,
    /// Outputs other than the usual ones; null for none of that name.
    #[serde(default)]
    pub outputs: BTreeMap<String, Value>,
    /// Sensitive outputs other than the usual ones; null for none of that name.
    #[serde(default)]
    pub secret_outputs: BTreeMap<String, Value>,
    /// Outputs of what a failing first apply has made.
    #[serde(default)]
    pub leaves: BTreeMap<String, Value>,
}

impl Behaviour {
    fn concerns(&self, name: &str) -> bool {
        let is_meant = match self.workspace.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == self.workspace,
        };
        is_meant && self.share.is_none_or(|share| percentile(name) < share)
    }
}

/// What Terraform makes of `workspace` where it behaves like this; what is said later counts.
pub fn run(behaviours: &[Behaviour], workspace: &Value) -> Outputs {
    let mut outputs = guess(workspace);
    let name = workspace["metadata"]["name"].as_str().unwrap_or_default();
    let Some(behaviour) = behaviours.iter().rev().find(|behaviour| behaviour.concerns(name)) else { return outputs };
    outputs.takes = behaviour.takes.unwrap_or(outputs.takes);
    for (name, value) in &behaviour.outputs {
        match value {
            Value::Null => outputs.plain.remove(name),
            value => outputs.plain.insert(name.clone(), value.clone()),
        };
    }
    for (name, value) in &behaviour.secret_outputs {
        match value {
            Value::Null => outputs.sensitive.remove(name),
            Value::String(text) => outputs.sensitive.insert(name.clone(), text.clone()),
            other => outputs.sensitive.insert(name.clone(), other.to_string()),
        };
    }
    outputs.leaves.clone_from(&behaviour.leaves);
    outputs.undestroyable.clone_from(&behaviour.fail_destroy);
    if let Some(text) = &behaviour.fail {
        outputs.result = Ending::Failure(text.clone());
    }
    if let Some(text) = &behaviour.fail_replacement {
        outputs.result = Ending::FailedReplacement(text.clone());
    }
    if let Some(text) = &behaviour.fail_plan {
        outputs.result = Ending::PlanFailure(text.clone());
    }
    if let Some(text) = &behaviour.fail_connect {
        outputs.result = Ending::ConnectFailure(text.clone());
    }
    if behaviour.hang {
        outputs.result = Ending::Hang;
    }
    outputs
}
