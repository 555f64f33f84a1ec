//! The models go through the same states in the same order as the real components did in the same situations.
//!
//! What provider-terraform 1.1 and Cluster API core 1.14 showed, event by event, is written down here as a
//! list for each situation. States that lasted less than a tenth of a second, between two writes of one
//! pass, are left out of it, and so are times and checksums.

use std::{cell::RefCell, rc::Rc};

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::object::{Kind, ObjectKey};
use capt_sim::{
    Api,
    core::{self, Release},
    provider::{Ending, Outputs, Provider},
};
use capt_status::{Span, Time};
use serde_json::{Value, json};

const BEGIN: Time = Time::from_unix(1_767_225_600);

fn key(api: WorkspaceApi) -> ObjectKey {
    ObjectKey::new(Kind::Workspace(api), "default", "w")
}

/// A Workspace in one line: `f`inalizer, external-`n`ame, creation `p`ending, `s`ucceeded, `x` failed, being
/// `d`eleted; Ready; Synced with the begin of its message; whether outputs are shown.
fn shown(workspace: &Value) -> String {
    let metadata = &workspace["metadata"];
    let has = |annotation: &str| metadata["annotations"].get(annotation).is_some();
    let marks = [
        ('f', metadata["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())),
        ('n', has("crossplane.io/external-name")),
        ('p', has("crossplane.io/external-create-pending")),
        ('s', has("crossplane.io/external-create-succeeded")),
        ('x', has("crossplane.io/external-create-failed")),
        ('d', !metadata["deletionTimestamp"].is_null()),
    ];
    let marks: String = marks.iter().filter(|(_, set)| *set).map(|(mark, _)| *mark).collect();
    let mut parts: Vec<String> = vec![if marks.is_empty() { "-".to_owned() } else { marks }];
    for type_ in ["Ready", "Synced"] {
        let conditions = workspace["status"]["conditions"].as_array().into_iter().flatten();
        if let Some(condition) = conditions.into_iter().find(|condition| condition["type"] == type_) {
            let text = |field: &str| condition[field].as_str().unwrap_or_default();
            let message = text("message").split(':').next().unwrap_or_default();
            parts.push(format!("{} {} {message}", text("status"), text("reason")).trim().to_owned());
        }
    }
    if workspace["status"]["atProvider"]["outputs"].as_object().is_some_and(|outputs| !outputs.is_empty()) {
        parts.push("outputs".to_owned());
    }
    parts.join(", ")
}

/// What an object showed, one line for each change of it, and at last that it is gone.
fn history(api: &Api, key: &ObjectKey, shown: impl Fn(&Value) -> String) -> Vec<String> {
    let changes = api.changes(0).iter().filter(|change| change.key == *key);
    let mut lines: Vec<String> = changes
        .map(|change| change.object.as_ref().map_or_else(|| "gone".to_owned(), |object| shown(object)))
        .collect();
    lines.dedup();
    lines
}

/// A Workspace whose Terraform a test decides.
struct Workspace {
    api: Api,
    key: ObjectKey,
    provider: Provider,
    outputs: Rc<RefCell<Outputs>>,
}

impl Workspace {
    fn new(api: WorkspaceApi, annotations: &Value) -> Self {
        let key = key(api);
        let mut outputs = Outputs::default();
        outputs.plain.insert("endpoint".into(), json!("https://demo.example"));
        let mut world = Self {
            api: Api::default(),
            key: key.clone(),
            provider: Provider::default(),
            outputs: Rc::new(RefCell::new(outputs)),
        };
        world.api.now = BEGIN;
        let reference = json!({"name": "w-connection", "namespace": "default"});
        world.api.create(
            &key,
            json!({"apiVersion": key.kind.api_version(), "kind": "Workspace",
                "metadata": {"name": "w", "namespace": key.namespace, "annotations": annotations},
                "spec": {"forProvider": {"module": "a"}, "writeConnectionSecretToRef": reference}}),
        );
        world
    }

    /// Lets the provider go on until it has nothing more to do.
    fn rests(&mut self) {
        for _ in 0..20 {
            self.api.now = self.api.now.plus(Span::from_seconds(1));
            let outputs = Rc::clone(&self.outputs);
            if !self.provider.step(&mut self.api, &move |_: &Value| outputs.borrow().clone()) {
                return;
            }
        }
        panic!("the provider never rests: {:?}", self.history());
    }

    fn ends(&mut self, result: Ending) {
        self.outputs.borrow_mut().result = result;
        self.rests();
    }

    /// A user changes the spec, and Terraform ends like this.
    fn changes(&mut self, module: &str, result: Ending) {
        self.outputs.borrow_mut().result = result;
        self.api.edit(&self.key, |workspace| workspace["spec"]["forProvider"]["module"] = json!(module));
        self.rests();
    }

    fn deleted(&mut self) {
        self.api.delete(&self.key, None);
        self.rests();
    }

    fn history(&self) -> Vec<String> {
        history(&self.api, &self.key, shown)
    }
}

fn failure() -> Ending {
    Ending::Failure("Error: local-exec provisioner error".to_owned())
}

fn plan_failure() -> Ending {
    Ending::PlanFailure("Error: Resource precondition failed".to_owned())
}

/// The same in both APIs.
fn in_both(play: impl Fn(&mut Workspace), annotations: &Value, seen: &[&str]) {
    for api in WorkspaceApi::ALL {
        let mut workspace = Workspace::new(api, annotations);
        play(&mut workspace);
        assert_eq!(workspace.history(), seen, "{api:?}");
    }
}

#[test]
fn a_workspace_is_made_changed_refused_and_deleted() {
    let play = |workspace: &mut Workspace| {
        workspace.rests();
        workspace.changes("b", Ending::Success);
        workspace.changes("c", plan_failure());
        workspace.changes("d", Ending::Success);
        workspace.deleted();
    };
    in_both(
        play,
        &json!({}),
        &[
            "-",
            "n",
            "fnp",
            "fnps",
            "fnps, False Creating, True ReconcileSuccess",
            "fnps, True Available, True ReconcileSuccess, outputs",
            "fnps, True Available, False ReconcileError observe failed, outputs",
            "fnps, True Available, True ReconcileSuccess, outputs",
            "fnpsd, True Available, True ReconcileSuccess, outputs",
            "fnpsd, False Deleting, True ReconcileSuccess, outputs",
            "gone",
        ],
    );
}

#[test]
fn an_apply_fails_half_way_heals_and_fails_again() {
    let play = |workspace: &mut Workspace| {
        workspace.outputs.borrow_mut().leaves.insert("net".into(), json!("n"));
        workspace.ends(failure());
        workspace.changes("b", Ending::Success);
        workspace.changes("c", failure());
        workspace.changes("d", Ending::Success);
        workspace.deleted();
    };
    // What the first try left is found by the second, which is an update: that the creation succeeded is
    // never written down.
    in_both(
        play,
        &json!({}),
        &[
            "-",
            "n",
            "fnp",
            "fnpx",
            "fnpx, False Creating, False ReconcileError create failed",
            "fnpx, False Creating, False ReconcileError update failed, outputs",
            "fnpx, True Available, True ReconcileSuccess, outputs",
            "fnpx, True Available, False ReconcileError update failed, outputs",
            "fnpx, True Available, True ReconcileSuccess, outputs",
            "fnpxd, True Available, True ReconcileSuccess, outputs",
            "fnpxd, False Deleting, True ReconcileSuccess, outputs",
            "gone",
        ],
    );
}

#[test]
fn a_destroy_fails_and_is_tried_again() {
    let play = |workspace: &mut Workspace| {
        workspace.rests();
        workspace.outputs.borrow_mut().undestroyable = Some("Error: local-exec provisioner error".to_owned());
        workspace.deleted();
        workspace.outputs.borrow_mut().undestroyable = None;
        workspace.rests();
    };
    in_both(
        play,
        &json!({}),
        &[
            "-",
            "n",
            "fnp",
            "fnps",
            "fnps, False Creating, True ReconcileSuccess",
            "fnps, True Available, True ReconcileSuccess, outputs",
            "fnpsd, True Available, True ReconcileSuccess, outputs",
            "fnpsd, False Deleting, False ReconcileError delete failed, outputs",
            "fnpsd, False Deleting, False ReconcileError delete failed",
            "fnpsd, False Deleting, True ReconcileSuccess",
            "gone",
        ],
    );
}

#[test]
fn a_plan_fails_before_anything_was_made() {
    let play = |workspace: &mut Workspace| {
        workspace.ends(plan_failure());
        workspace.changes("b", Ending::Success);
        workspace.deleted();
    };
    in_both(
        play,
        &json!({}),
        &[
            "-",
            "n",
            "n, False ReconcileError observe failed",
            "fnp, False ReconcileError observe failed",
            "fnps, False ReconcileError observe failed",
            "fnps, False Creating, True ReconcileSuccess",
            "fnps, True Available, True ReconcileSuccess, outputs",
            "fnpsd, True Available, True ReconcileSuccess, outputs",
            "fnpsd, False Deleting, True ReconcileSuccess, outputs",
            "gone",
        ],
    );
}

#[test]
fn what_the_provider_never_began_with_is_gone_at_once() {
    for (result, stage) in [
        (plan_failure(), "observe failed"),
        (Ending::ConnectFailure("failed to resolve provider config".to_owned()), "connect failed"),
    ] {
        let play = |workspace: &mut Workspace| {
            workspace.ends(result.clone());
            workspace.deleted();
        };
        in_both(play, &json!({}), &["-", "n", &format!("n, False ReconcileError {stage}"), "gone"]);
    }
}

#[test]
fn a_workspace_that_is_paused_from_birth_keeps_saying_so_until_its_first_success() {
    let play = |workspace: &mut Workspace| {
        workspace.rests();
        workspace.api.edit(&workspace.key.clone(), |object| object["metadata"]["annotations"] = json!({}));
        workspace.rests();
        workspace.deleted();
    };
    in_both(
        play,
        &json!({"crossplane.io/paused": "true"}),
        &[
            "-",
            "-, False ReconcilePaused",
            "n, False ReconcilePaused",
            "fnp, False ReconcilePaused",
            "fnps, False ReconcilePaused",
            "fnps, False Creating, True ReconcileSuccess",
            "fnps, True Available, True ReconcileSuccess, outputs",
            "fnpsd, True Available, True ReconcileSuccess, outputs",
            "fnpsd, False Deleting, True ReconcileSuccess, outputs",
            "gone",
        ],
    );
}

#[test]
fn a_module_that_makes_nothing_is_never_ready_and_goes_without_a_word() {
    let play = |workspace: &mut Workspace| {
        workspace.outputs.borrow_mut().plain.clear();
        workspace.rests();
        workspace.deleted();
    };
    in_both(
        play,
        &json!({}),
        &[
            "-",
            "n",
            "fnp",
            "fnps",
            "fnps, False Creating, True ReconcileSuccess",
            "fnpsd, False Creating, True ReconcileSuccess",
            "gone",
        ],
    );
}

/// Core beside provider objects that a test writes.
struct Core {
    api: Api,
}

impl Core {
    fn key(kind: Kind) -> ObjectKey {
        ObjectKey::new(kind, "default", "demo")
    }

    fn new() -> Self {
        let mut api = Api::default();
        api.now = BEGIN;
        let reference = |kind: Kind| json!({"apiGroup": kind.group(), "kind": kind.name(), "name": "demo"});
        api.create(
            &Self::key(Kind::Cluster),
            json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
                "metadata": {"namespace": "default", "name": "demo"},
                "spec": {"infrastructureRef": reference(Kind::CaptCluster), "controlPlaneRef": reference(Kind::CaptControlPlane)}}),
        );
        Self { api }
    }

    fn provider(&mut self, kind: Kind) {
        self.api.create(
            &Self::key(kind),
            json!({"apiVersion": kind.api_version(), "kind": kind.name(),
                "metadata": {"namespace": "default", "name": "demo", "finalizers": ["example.com/provider"]}}),
        );
    }

    fn edit(&mut self, kind: Kind, edit: impl FnOnce(&mut Value)) {
        self.api.edit(&Self::key(kind), edit);
        self.rests();
    }

    fn rests(&mut self) {
        for _ in 0..20 {
            self.api.now = self.api.now.plus(Span::from_seconds(1));
            if !core::step(&mut self.api, Release::default()) {
                return;
            }
        }
        panic!("core never rests");
    }
}

#[test]
fn core_adopts_mirrors_and_deletes_in_the_order_of_the_real_one() {
    let mut world = Core::new();
    world.rests();
    world.provider(Kind::CaptCluster);
    world.provider(Kind::CaptControlPlane);
    world.rests();
    // The control plane has an endpoint before the infrastructure is there, and is initialized after it.
    let endpoint = json!({"host": "127.0.0.1", "port": 26_999});
    world.edit(Kind::CaptControlPlane, |plane| plane["spec"]["controlPlaneEndpoint"] = endpoint);
    world.edit(Kind::CaptCluster, |cluster| cluster["status"]["initialization"]["provisioned"] = json!(true));
    world.edit(Kind::CaptControlPlane, |plane| {
        plane["status"]["initialization"]["controlPlaneInitialized"] = json!(true);
    });
    world.api.delete(&Core::key(Kind::Cluster), None);
    world.rests();
    world.edit(Kind::CaptControlPlane, |plane| plane["metadata"]["finalizers"] = json!([]));
    world.edit(Kind::CaptCluster, |cluster| cluster["metadata"]["finalizers"] = json!([]));
    let deleting = |object: &Value| if object["metadata"]["deletionTimestamp"].is_null() { "" } else { " deleting" };
    let cluster = history(&world.api, &Core::key(Kind::Cluster), |object| {
        let status = &object["status"];
        let set = |name: &str, is_set: bool| if is_set { format!(" {name}") } else { String::new() };
        format!(
            "{}{}{}{}{}{}",
            status["phase"].as_str().unwrap_or("-"),
            set("finalizer", object["metadata"]["finalizers"][0] == "cluster.cluster.x-k8s.io"),
            set("infrastructure", status["initialization"]["infrastructureProvisioned"] == true),
            set("endpoint", object["spec"]["controlPlaneEndpoint"].is_object()),
            set("initialized", status["initialization"]["controlPlaneInitialized"] == true),
            deleting(object),
        )
    });
    assert_eq!(
        cluster,
        [
            "-",
            "Provisioning finalizer",
            "Provisioning finalizer infrastructure",
            "Provisioned finalizer infrastructure endpoint initialized",
            "Provisioned finalizer infrastructure endpoint initialized deleting",
            "Deleting finalizer infrastructure endpoint initialized deleting",
            "gone",
        ]
    );
    // An owner reference that is no controller's, and the label, in one write; the control plane goes first.
    for kind in [Kind::CaptCluster, Kind::CaptControlPlane] {
        let provider = history(&world.api, &Core::key(kind), |object| {
            let owner = &object["metadata"]["ownerReferences"][0];
            let label = &object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"];
            format!("{} {} {label}{}", owner["kind"], owner["controller"], deleting(object))
        });
        let adopted = "\"Cluster\" null \"demo\"";
        assert_eq!(provider, ["null null null", adopted, &format!("{adopted} deleting"), "gone"], "{kind:?}");
    }
    let gone = |kind| {
        let (changes, key) = (world.api.changes(0), Core::key(kind));
        let deleted = |object: &Value| !object["metadata"]["deletionTimestamp"].is_null();
        let is =
            |change: &&capt_sim::api::Change| change.key == key && change.object.as_ref().is_none_or(|o| deleted(o));
        let mut of = changes.iter().filter(is).map(|change| change.resource_version);
        (of.next().unwrap(), of.next_back().unwrap())
    };
    let (plane, infrastructure) = (gone(Kind::CaptControlPlane), gone(Kind::CaptCluster));
    assert!(plane.1 < infrastructure.0, "the infrastructure is deleted when the control plane is gone");
}
