//! provider-terraform: takes each Workspace through the states that the real one was seen to show.
//!
//! One call of [`Provider::step`] moves each Workspace by one state, as far as its runs of Terraform are
//! over: name, finalizer, annotations and an empty connection Secret; then the apply's success (conditions
//! without outputs, full Secret); then Ready with outputs; on deletion the destroy, then the finalizer.
//! One worker carries out the runs, one after the other. What Terraform would do is asked of a function of
//! the Workspace; annotations on it ([`faults`]) change that from outside.
//!
//! It also counts what was made and destroyed in each Terraform state, which is what must never be more
//! than a user asked for.

pub mod faults;
mod secrets;
mod show;

use std::collections::{BTreeMap, BTreeSet};

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::object::{Kind, ObjectKey};
use capt_status::{Span, Time};
use serde_json::{Value, json};

use crate::objects::Objects;
use show::{Told, condition, encountered, tell};

const FINALIZER: &str = "finalizer.managedresource.crossplane.io";
const PENDING: &str = "crossplane.io/external-create-pending";
const SUCCEEDED: &str = "crossplane.io/external-create-succeeded";
const FAILED: &str = "crossplane.io/external-create-failed";
const EXTERNAL_NAME: &str = "crossplane.io/external-name";
const PAUSED: &str = "crossplane.io/paused";

/// What Terraform makes of a Workspace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outputs {
    /// How it ends.
    pub result: Ending,
    /// How long a run takes; nothing by default.
    pub takes: Span,
    /// Shown in the status and in the connection Secret.
    pub plain: BTreeMap<String, Value>,
    /// In the connection Secret alone.
    pub sensitive: BTreeMap<String, String>,
    /// What a first apply that fails has made already, as outputs; nothing by default.
    pub leaves: BTreeMap<String, Value>,
    /// Why a destroy fails, each time it is tried.
    pub undestroyable: Option<String>,
}

impl Outputs {
    /// Whether the module makes nothing at all; without outputs there is no resource worth one.
    fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.sensitive.is_empty()
    }

    /// What the connection Secret holds, in plain text.
    pub fn secret_data(&self) -> BTreeMap<String, String> {
        let plain = self.plain.iter().map(|(name, value)| (name.clone(), text(value)));
        plain.chain(self.sensitive.clone()).collect()
    }
}

/// As the provider writes an output into the connection Secret: a string as it is, anything else as JSON.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// How a run of Terraform ends.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Ending {
    /// With outputs.
    #[default]
    Success,
    /// The apply fails with this text on standard error, each time it is tried.
    Failure(String),
    /// The apply has destroyed what it was to replace, and fails with this text to make the new one.
    FailedReplacement(String),
    /// The plan fails with this text: nothing was made.
    PlanFailure(String),
    /// The provider does not get as far as Terraform; this is its whole message.
    ConnectFailure(String),
    /// Not at all.
    Hang,
}

/// What happened to one Terraform state over the life of the world.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Something is there now.
    pub exists: bool,
    /// How often it was made.
    pub created: u32,
    /// How often it was destroyed.
    pub destroyed: u32,
}

/// The process of the provider, and what Terraform has made.
#[derive(Debug, Clone)]
pub struct Provider {
    /// How many runs there may be at a time; 1 is what the real one does unless told otherwise.
    pub workers: usize,
    /// The runs under way: uid of the Workspace and the end of the run.
    runs: BTreeMap<String, Time>,
    /// Workspaces of which an earlier process did not note how their creation ended, by uid.
    lost: BTreeSet<String>,
    /// Terraform states, by name.
    states: BTreeMap<String, Counts>,
}

/// How far a run is.
#[derive(PartialEq, Eq)]
enum Run {
    /// It takes no time, or is over.
    Over,
    /// It is under way, or waits for its turn.
    Waits,
}

impl Default for Provider {
    fn default() -> Self {
        Self { workers: 1, runs: BTreeMap::new(), lost: BTreeSet::new(), states: BTreeMap::new() }
    }
}

impl Provider {
    /// When the first of the runs under way is over.
    pub fn next(&self) -> Option<Time> {
        self.runs.values().min().copied()
    }

    /// The Terraform states, by name.
    pub const fn states(&self) -> &BTreeMap<String, Counts> {
        &self.states
    }

    /// What was made before anybody looked, for worlds that begin with Workspaces.
    pub fn made_before(&mut self, object: &Value) {
        if object["kind"] == "Workspace" && has(object, SUCCEEDED) {
            self.states.insert(state_name(object), Counts { exists: true, created: 1, destroyed: 0 });
        }
    }

    /// The process dies and comes back: the run is lost, and so is how a creation under way ended.
    pub fn crash(&mut self, objects: &impl Objects) {
        self.runs.clear();
        for key in workspaces(objects) {
            if let Some(workspace) = objects
                .get(&key)
                .filter(|workspace| has(workspace, PENDING) && !has(workspace, SUCCEEDED) && !has(workspace, FAILED))
            {
                self.lost.insert(uid(workspace));
            }
        }
    }

    /// Moves every Workspace by one state; true if something was written.
    pub fn step(&mut self, objects: &mut impl Objects, terraform: &dyn Fn(&Value) -> Outputs) -> bool {
        let before = objects.writes();
        let mut uids = BTreeSet::new();
        for key in workspaces(objects) {
            if let Some(workspace) = objects.shared(&key) {
                uids.insert(uid(&workspace));
                self.reconcile(objects, &key, &workspace, terraform);
            }
        }
        let (now, runs) = (objects.now(), self.runs.len());
        // A run that ended and that nobody waits for any more, or whose Workspace is gone; its worker is free then.
        self.runs.retain(|uid, end| *end > now && uids.contains(uid));
        objects.writes() != before || self.runs.len() != runs
    }

    /// Starts or follows the run of a Workspace.
    fn run(&mut self, workspace: &Value, takes: Span, now: Time) -> Run {
        let uid = uid(workspace);
        match self.runs.get(&uid) {
            Some(end) if *end <= now => {
                self.runs.remove(&uid);
                Run::Over
            }
            Some(_) => Run::Waits,
            None if takes == Span::default() => Run::Over,
            None => {
                self.runs.insert(uid, now.plus(takes));
                Run::Waits
            }
        }
    }

    /// Whether the workers are busy with other Workspaces.
    fn is_busy(&self, workspace: &Value) -> bool {
        self.runs.len() >= self.workers && !self.runs.contains_key(&uid(workspace))
    }

    fn made(&mut self, workspace: &Value) {
        let counts = self.states.entry(state_name(workspace)).or_default();
        counts.created += u32::from(!counts.exists);
        counts.exists = true;
    }

    fn destroyed(&mut self, workspace: &Value) {
        let counts = self.states.entry(state_name(workspace)).or_default();
        counts.destroyed += u32::from(counts.exists);
        counts.exists = false;
    }

    fn reconcile(
        &mut self,
        objects: &mut impl Objects,
        key: &ObjectKey,
        workspace: &Value,
        terraform: &dyn Fn(&Value) -> Outputs,
    ) {
        let metadata = &workspace["metadata"];
        // A pass that is under way goes on to its end.
        if metadata["annotations"][PAUSED] == "true" && !self.runs.contains_key(&uid(workspace)) {
            let synced = Told::new("Synced", "False", "ReconcilePaused");
            // The provider says so once and does nothing else, not even for a deletion.
            return tell(objects, key, &[synced]);
        }
        if self.is_busy(workspace) {
            return;
        }
        let outputs = faults::applied(workspace, terraform(workspace));
        if !metadata["deletionTimestamp"].is_null() {
            return self.destroy(objects, key, workspace, &outputs);
        }
        if faults::loses_secret(workspace) {
            secrets::lose(objects, key, workspace);
        }
        if !has(workspace, EXTERNAL_NAME) {
            return objects.edit(key, |workspace| {
                workspace["metadata"]["annotations"][EXTERNAL_NAME] = workspace["metadata"]["name"].clone();
            });
        }
        match &outputs.result {
            Ending::ConnectFailure(message) => {
                return tell(objects, key, &[Told::error(format!("connect failed: {message}"))]);
            }
            Ending::PlanFailure(stderr) => {
                let message =
                    format!("observe failed: cannot diff (i.e. plan) Terraform configuration: {}", encountered(stderr));
                return tell(objects, key, &[Told::error(message)]);
            }
            Ending::Success | Ending::Failure(_) | Ending::FailedReplacement(_) | Ending::Hang => {}
        }
        if let Some(refusal) = secrets::refusal(objects, key, workspace) {
            return tell(objects, key, &[Told::error(refusal)]);
        }
        if is_observed_only(workspace) {
            return show::only_observed(objects, key, &outputs);
        }
        self.apply(objects, key, workspace, &outputs);
    }

    fn apply(&mut self, objects: &mut impl Objects, key: &ObjectKey, workspace: &Value, outputs: &Outputs) {
        // What a first apply that failed has left is found by the next one, and updated: that the creation
        // succeeded is then never written down.
        let (made, now) = (has(workspace, SUCCEEDED) || shows_outputs(workspace), objects.now());
        // A person may take the annotation away at any time; what is there is observed and not made.
        if !has(workspace, PENDING) && !made {
            self.lost.remove(&uid(workspace));
            show::begun(objects, key, workspace);
            // Long runs begin at once; those without time end in the next step.
            if outputs.takes != Span::default() {
                self.run(workspace, outputs.takes, now);
            }
            return;
        }
        if !made && !has(workspace, FAILED) && self.lost.contains(&uid(workspace)) {
            let message =
                format!("cannot determine creation result - remove the {PENDING} annotation if it is safe to proceed");
            return tell(objects, key, &[Told::error(message), Told::new("Ready", "False", "Creating")]);
        }
        let observed =
            condition(&workspace["status"], "Synced").and_then(|synced| synced["observedGeneration"].as_i64());
        let serves = condition(&workspace["status"], "Ready").is_some_and(|ready| ready["status"] == "True");
        let needs_run =
            !(has(workspace, SUCCEEDED) || serves) || observed != workspace["metadata"]["generation"].as_i64();
        if outputs.result == Ending::Hang || (needs_run && self.run(workspace, outputs.takes, now) == Run::Waits) {
            return;
        }
        match &outputs.result {
            Ending::Failure(stderr) => show::failed(objects, key, workspace, outputs, stderr, made),
            Ending::FailedReplacement(stderr) => {
                self.destroyed(workspace);
                show::failed(objects, key, workspace, outputs, stderr, made);
            }
            Ending::Success => {
                if !outputs.is_empty() {
                    self.made(workspace);
                }
                if made {
                    show::observed_fully(objects, key, workspace, outputs);
                } else {
                    show::succeeded(objects, key, workspace, outputs);
                }
            }
            Ending::PlanFailure(_) | Ending::ConnectFailure(_) | Ending::Hang => {}
        }
    }

    fn destroy(&mut self, objects: &mut impl Objects, key: &ObjectKey, workspace: &Value, outputs: &Outputs) {
        let finalizers = workspace["metadata"]["finalizers"].as_array().map_or(&[][..], Vec::as_slice);
        // Somebody else is not done with it: the provider does not begin.
        if !finalizers.iter().all(|finalizer| finalizer == FINALIZER) {
            return;
        }
        let is_deleting = condition(&workspace["status"], "Ready").is_some_and(|ready| ready["reason"] == "Deleting");
        let failed_before = condition(&workspace["status"], "Synced").is_some_and(|synced| synced["status"] == "False");
        // Nothing was ever made, and no run is under way that might.
        let is_nothing = !shows_outputs(workspace)
            && !self.runs.contains_key(&uid(workspace))
            && match (has(workspace, SUCCEEDED), has(workspace, FAILED)) {
                (true, _) => outputs.is_empty(),
                (false, failed) => failed,
            };
        if is_kept(workspace)
            || (is_nothing && !is_deleting)
            || (is_deleting && outputs.undestroyable.is_none() && !failed_before)
        {
            objects.edit(key, |workspace| workspace["metadata"]["finalizers"] = json!([]));
            return;
        }
        let now = objects.now();
        if !is_deleting && self.run(workspace, outputs.takes, now) == Run::Waits {
            return;
        }
        match &outputs.undestroyable {
            None => {
                self.destroyed(workspace);
                tell(
                    objects,
                    key,
                    &[Told::new("Synced", "True", "ReconcileSuccess"), Told::new("Ready", "False", "Deleting")],
                );
            }
            Some(stderr) => show::undestroyed(objects, key, stderr, is_deleting),
        }
    }
}

/// Whether what Terraform made stays when the Workspace goes.
fn is_kept(workspace: &Value) -> bool {
    let spec = &workspace["spec"];
    let policies = spec["managementPolicies"].as_array();
    let may = policies.is_none_or(|policies| policies.iter().any(|policy| policy == "*" || policy == "Delete"));
    spec["deletionPolicy"] == "Orphan" || !may
}

fn is_observed_only(workspace: &Value) -> bool {
    workspace["spec"]["managementPolicies"] == json!(["Observe"])
}

fn workspaces(objects: &impl Objects) -> Vec<ObjectKey> {
    WorkspaceApi::ALL.into_iter().flat_map(|scope| objects.keys(Kind::Workspace(scope))).collect()
}

/// The name of the Terraform state of a Workspace.
pub fn state_name(workspace: &Value) -> String {
    let metadata = &workspace["metadata"];
    metadata["annotations"][EXTERNAL_NAME].as_str().or(metadata["name"].as_str()).unwrap_or_default().to_owned()
}

fn has(workspace: &Value, annotation: &str) -> bool {
    workspace["metadata"]["annotations"].get(annotation).is_some()
}

/// Whether the Workspace shows outputs, so that something is there.
fn shows_outputs(workspace: &Value) -> bool {
    workspace["status"]["atProvider"]["outputs"].as_object().is_some_and(|outputs| !outputs.is_empty())
}

fn uid(workspace: &Value) -> String {
    workspace["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

/// The namespace and name of the connection Secret, if there is to be one.
fn connection_secret(key: &ObjectKey, workspace: &Value) -> Option<ObjectKey> {
    let reference = &workspace["spec"]["writeConnectionSecretToRef"];
    let namespace = match key.kind {
        Kind::Workspace(WorkspaceApi::Namespaced) => key.namespace.as_deref(),
        Kind::Workspace(WorkspaceApi::Cluster)
        | Kind::Cluster
        | Kind::CaptCluster
        | Kind::CaptControlPlane
        | Kind::Template
        | Kind::Apply
        | Kind::Secret => reference["namespace"].as_str(),
    };
    Some(ObjectKey::new(Kind::Secret, namespace?, reference["name"].as_str()?))
}
