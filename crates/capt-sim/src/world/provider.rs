//! provider-terraform: takes each Workspace through the states that the real one was seen to show.
//!
//! One call of [`Provider::step`] moves each Workspace by one state, as far as its runs of Terraform are
//! over: finalizer, annotations and an empty connection Secret; then the apply's success (conditions
//! without outputs, full Secret); then Ready with outputs; on deletion the destroy, then the finalizer.
//! One worker carries out the runs, one after the other. What Terraform would do is asked of a function of
//! the Workspace; annotations on it ([`faults`]) change that from outside.

use std::collections::{BTreeMap, BTreeSet};

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::object::{Kind, ObjectKey};
use capt_status::{Span, Time};
use serde_json::{Value, json};

use super::{World, faults, secrets};

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
    /// Why a destroy fails, each time it is tried.
    pub undestroyable: Option<String>,
}

/// How a run of Terraform ends.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Ending {
    /// With outputs.
    #[default]
    Success,
    /// The apply fails with this text on standard error, each time it is tried.
    Failure(String),
    /// The plan fails with this text: nothing was made.
    PlanFailure(String),
    /// The provider does not get as far as Terraform; this is its whole message.
    ConnectFailure(String),
    /// Not at all.
    Hang,
}

/// What Terraform would do.
pub type Terraform = Box<dyn Fn(&Value) -> Outputs + Send>;

/// The provider.
pub struct Provider {
    /// What Terraform makes of a Workspace.
    pub terraform: Terraform,
    /// The run under way: uid of the Workspace and the end of the run.
    run: Option<(String, Time)>,
    /// Workspaces whose creation this process has started, by uid.
    started: BTreeSet<String>,
}

/// How far a run is.
enum Run {
    /// It takes no time, or is over.
    Over,
    /// It is under way, or waits for its turn.
    Waits,
}

impl Provider {
    /// A provider whose Terraform does what `terraform` says.
    pub fn new(terraform: impl Fn(&Value) -> Outputs + Send + 'static) -> Self {
        Self { terraform: Box::new(terraform), run: None, started: BTreeSet::new() }
    }

    /// When the run under way is over.
    pub fn next(&self) -> Option<Time> {
        self.run.as_ref().map(|(_, end)| *end)
    }

    /// The process dies and comes back: the run is lost, and so is whether its creation succeeded.
    pub fn crash(&mut self) {
        self.run = None;
        self.started.clear();
    }

    /// Moves every Workspace by one state; true if something was written.
    pub fn step(&mut self, world: &mut World) -> bool {
        let before = world.version();
        let workspaces =
            WorkspaceApi::ALL.into_iter().flat_map(|scope| world.keys(Kind::Workspace(scope))).collect::<Vec<_>>();
        let mut uids = BTreeSet::new();
        for key in workspaces {
            if let Some(workspace) = world.get(&key).cloned() {
                uids.insert(uid(&workspace));
                self.reconcile(world, &key, &workspace);
            }
        }
        // The run of a Workspace that is gone ends with it.
        self.run.take_if(|(uid, _)| !uids.contains(uid));
        world.version() != before
    }

    /// Starts or follows the run of a Workspace.
    fn run(&mut self, workspace: &Value, takes: Span, now: Time) -> Run {
        if takes == Span::default() {
            return Run::Over;
        }
        let uid = uid(workspace);
        match &self.run {
            None => {
                self.run = Some((uid, now.plus(takes)));
                Run::Waits
            }
            Some((running, end)) if *running == uid && *end <= now => {
                self.run = None;
                Run::Over
            }
            // Its own run, or that of another one: there is one worker.
            Some(_) => Run::Waits,
        }
    }

    fn reconcile(&mut self, world: &mut World, key: &ObjectKey, workspace: &Value) {
        let metadata = &workspace["metadata"];
        let has = |name: &str| metadata["annotations"].get(name).is_some();
        if metadata["annotations"][PAUSED] == "true" {
            let synced = Told::new("Synced", "False", "ReconcilePaused");
            // The provider says so once and does nothing else, not even for a deletion.
            return tell(world, key, &[synced]);
        }
        let outputs = faults::applied(workspace, (self.terraform)(workspace));
        if !metadata["deletionTimestamp"].is_null() {
            return self.destroy(world, key, workspace, &outputs);
        }
        if faults::loses_secret(workspace) {
            secrets::lose(world, key, workspace);
        }
        let (made, created) = (has(SUCCEEDED), has(PENDING));
        match &outputs.result {
            Ending::ConnectFailure(message) => {
                return tell(world, key, &[Told::error(format!("connect failed: {message}"))]);
            }
            Ending::PlanFailure(stderr) => {
                let message =
                    format!("observe failed: cannot diff (i.e. plan) Terraform configuration: {}", encountered(stderr));
                return tell(world, key, &[Told::error(message)]);
            }
            Ending::Success | Ending::Failure(_) | Ending::Hang => {}
        }
        if !created {
            self.started.insert(uid(workspace));
            begin(world, key, workspace);
            // Long runs begin at once; those without time end in the next step.
            self.run(workspace, outputs.takes, world.now);
            return;
        }
        if !made && !has(FAILED) && !self.started.contains(&uid(workspace)) {
            let message =
                format!("cannot determine creation result - remove the {PENDING} annotation if it is safe to proceed");
            return tell(world, key, &[Told::error(message), Told::new("Ready", "False", "Creating")]);
        }
        let observed =
            condition(&workspace["status"], "Synced").and_then(|synced| synced["observedGeneration"].as_i64());
        let needs_run = !made || observed != metadata["generation"].as_i64();
        if outputs.result == Ending::Hang
            || (needs_run && matches!(self.run(workspace, outputs.takes, world.now), Run::Waits))
        {
            return;
        }
        match &outputs.result {
            Ending::Failure(stderr) => failed(world, key, workspace, stderr, made),
            Ending::Success if !made => succeeded(world, key, workspace, &outputs),
            Ending::Success => observed_fully(world, key, workspace, &outputs),
            Ending::PlanFailure(_) | Ending::ConnectFailure(_) | Ending::Hang => {}
        }
    }

    fn destroy(&mut self, world: &mut World, key: &ObjectKey, workspace: &Value, outputs: &Outputs) {
        let finalizers = workspace["metadata"]["finalizers"].as_array().map_or(&[][..], Vec::as_slice);
        // Somebody else is not done with it: the provider does not begin.
        if !finalizers.iter().all(|finalizer| finalizer == FINALIZER) {
            return;
        }
        let spec = &workspace["spec"];
        let policies = spec["managementPolicies"].as_array();
        let may = policies.is_none_or(|policies| policies.iter().any(|policy| policy == "*" || policy == "Delete"));
        let is_deleting = condition(&workspace["status"], "Ready").is_some_and(|ready| ready["reason"] == "Deleting");
        let failed_before = condition(&workspace["status"], "Synced").is_some_and(|synced| synced["status"] == "False");
        if spec["deletionPolicy"] == "Orphan"
            || !may
            || (is_deleting && outputs.undestroyable.is_none() && !failed_before)
        {
            world.edit(key, |workspace| workspace["metadata"]["finalizers"] = json!([]));
            return;
        }
        if outputs.result == Ending::Hang
            || (!is_deleting && matches!(self.run(workspace, outputs.takes, world.now), Run::Waits))
        {
            return;
        }
        match &outputs.undestroyable {
            None => tell(
                world,
                key,
                &[Told::new("Synced", "True", "ReconcileSuccess"), Told::new("Ready", "False", "Deleting")],
            ),
            Some(stderr) => {
                let message = format!("delete failed: cannot destroy Terraform configuration: {}", encountered(stderr));
                let again = is_deleting;
                tell(world, key, &[Told::error(message), Told::new("Ready", "False", "Deleting")]);
                if again {
                    // From the second try on the state that it reads shows no outputs.
                    world.edit(key, |workspace| workspace["status"]["atProvider"] = json!({}));
                }
            }
        }
    }
}

/// A condition to be told.
struct Told {
    type_: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

impl Told {
    fn new(type_: &'static str, status: &'static str, reason: &'static str) -> Self {
        Self { type_, status, reason, message: String::new() }
    }

    fn error(message: String) -> Self {
        Self { message, ..Self::new("Synced", "False", "ReconcileError") }
    }
}

/// Writes conditions; others stay. As in the real one a condition is replaced when anything of it differs,
/// and Ready=True carries no observedGeneration.
fn tell(world: &mut World, key: &ObjectKey, told: &[Told]) {
    let now = world.now;
    world.edit(key, |workspace| {
        let generation = workspace["metadata"]["generation"].clone();
        let mut conditions = workspace["status"]["conditions"].as_array().cloned().unwrap_or_default();
        for Told { type_, status, reason, message } in told {
            let mut condition = json!({"type": type_, "status": status, "reason": reason});
            if !message.is_empty() {
                condition["message"] = json!(message);
            }
            if (*type_, *status) != ("Ready", "True") {
                condition["observedGeneration"] = generation.clone();
            }
            let before = conditions.iter().position(|before| before["type"] == *type_);
            let mut same = before.and_then(|index| conditions.get(index)).cloned().unwrap_or_default();
            let since = same.as_object_mut().and_then(|fields| fields.remove("lastTransitionTime"));
            condition["lastTransitionTime"] = match since {
                Some(since) if same == condition => since,
                Some(_) | None => json!(now),
            };
            match before {
                Some(index) => conditions[index] = condition,
                None => conditions.push(condition),
            }
        }
        workspace["status"]["conditions"] = json!(conditions);
        if workspace["status"]["atProvider"].is_null() {
            workspace["status"]["atProvider"] = json!({});
        }
    });
}

/// The first pass: names, finalizer, the mark of a creation, and an empty Secret.
fn begin(world: &mut World, key: &ObjectKey, workspace: &Value) {
    let now = json!(world.now);
    world.edit(key, |workspace| {
        workspace["metadata"]["finalizers"] = json!([FINALIZER]);
        let name = workspace["metadata"]["name"].clone();
        let annotations = &mut workspace["metadata"]["annotations"];
        if annotations[EXTERNAL_NAME].is_null() {
            annotations[EXTERNAL_NAME] = name;
        }
        annotations[PENDING] = now;
    });
    secrets::publish(world, key, workspace, &Outputs::default());
}

/// The first apply is over; what it made is not looked at yet.
fn succeeded(world: &mut World, key: &ObjectKey, workspace: &Value, outputs: &Outputs) {
    secrets::publish(world, key, workspace, outputs);
    let now = json!(world.now);
    world.edit(key, |workspace| {
        workspace["metadata"]["annotations"][SUCCEEDED] = now;
        workspace["status"]["atProvider"] = json!({});
    });
    tell(world, key, &[Told::new("Synced", "True", "ReconcileSuccess"), Told::new("Ready", "False", "Creating")]);
}

/// Everything is as wanted and was looked at.
fn observed_fully(world: &mut World, key: &ObjectKey, workspace: &Value, outputs: &Outputs) {
    if outputs.plain.is_empty() && outputs.sensitive.is_empty() {
        // Without resources and outputs it does not exist for the provider, for ever.
        return tell(
            world,
            key,
            &[Told::new("Synced", "True", "ReconcileSuccess"), Told::new("Ready", "False", "Creating")],
        );
    }
    secrets::publish(world, key, workspace, outputs);
    let shown = json!({"checksum": "0", "outputs": outputs.plain});
    world.edit(key, |workspace| workspace["status"]["atProvider"] = shown);
    tell(world, key, &[Told::new("Synced", "True", "ReconcileSuccess"), Told::new("Ready", "True", "Available")]);
}

/// What a failed run leaves: the text in Synced, and Ready as it was or, before the first success, False.
fn failed(world: &mut World, key: &ObjectKey, workspace: &Value, stderr: &str, made: bool) {
    let annotations = &workspace["metadata"]["annotations"];
    let stage =
        if made || annotations.get(FAILED).is_some() && workspace["status"]["atProvider"]["checksum"].is_string() {
            "update"
        } else {
            "create"
        };
    let message = format!("{stage} failed: cannot apply Terraform configuration: {}", encountered(stderr));
    if annotations.get(FAILED).is_none() && !made {
        let now = json!(world.now);
        world.edit(key, |workspace| workspace["metadata"]["annotations"][FAILED] = now);
    }
    let mut told = vec![Told::error(message)];
    if condition(&workspace["status"], "Ready").is_none() {
        told.push(Told::new("Ready", "False", "Creating"));
    }
    tell(world, key, &told);
}

/// The words around what Terraform wrote.
fn encountered(stderr: &str) -> String {
    format!("Terraform encountered an error. Summary: {stderr}")
}

fn uid(workspace: &Value) -> String {
    workspace["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

fn condition<'a>(status: &'a Value, type_: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == type_)
}

/// The namespace and name of the connection Secret, if there is to be one.
pub(crate) fn connection_secret(key: &ObjectKey, workspace: &Value) -> Option<ObjectKey> {
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
