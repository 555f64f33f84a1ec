//! The 21 states that a Workspace of provider-terraform was seen in: the model reaches each of them, by
//! name, with the annotations, conditions, outputs and Secret that the real one shows.

use std::{cell::RefCell, rc::Rc};

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::object::{Kind, ObjectKey};
use capt_sim::{
    Api,
    provider::{Ending, Outputs, Provider},
};
use capt_status::{Span, Time};
use serde_json::{Value, json};

const PENDING: &str = "crossplane.io/external-create-pending";
const SUCCEEDED: &str = "crossplane.io/external-create-succeeded";
const FAILED: &str = "crossplane.io/external-create-failed";

/// A Workspace, the provider, and what Terraform does.
struct World {
    api: Api,
    provider: Provider,
    outputs: Rc<RefCell<Outputs>>,
}

fn outputs() -> Outputs {
    let mut outputs = Outputs { takes: Span::from_minutes(5), ..Outputs::default() };
    outputs.plain.insert("id".into(), json!("a"));
    outputs.sensitive.insert("password".into(), "secret".into());
    outputs
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(Kind::Workspace(WorkspaceApi::Cluster), "", name)
}

fn secret() -> ObjectKey {
    ObjectKey::new(Kind::Secret, "default", "w-connection")
}

impl World {
    fn empty() -> Self {
        let mut api = Api::default();
        api.now = Time::from_unix(1_767_225_600);
        Self { api, provider: Provider::default(), outputs: Rc::new(RefCell::new(outputs())) }
    }

    fn new() -> Self {
        let mut world = Self::empty();
        world.create("w");
        world
    }

    fn create(&mut self, name: &str) {
        let body = json!({
            "apiVersion": "tf.upbound.io/v1beta1", "kind": "Workspace", "metadata": {"name": name},
            "spec": {"forProvider": {"module": "a"}, "writeConnectionSecretToRef": {"namespace": "default", "name": format!("{name}-connection")}},
        });
        self.api.create(&key(name), body);
    }

    fn step(&mut self) {
        let outputs = Rc::clone(&self.outputs);
        self.provider.step(&mut self.api, &move |_: &Value| outputs.borrow().clone());
    }

    fn wait(&mut self, minutes: i64) {
        self.api.now = self.api.now.plus(Span::from_minutes(minutes));
        self.step();
    }

    fn ends(&mut self, result: Ending) {
        self.outputs.borrow_mut().result = result;
    }

    fn edit(&mut self, edit: impl FnOnce(&mut Value)) {
        self.api.edit(&key("w"), edit);
    }

    /// Steady: made, and looked at.
    fn steady() -> Self {
        let mut world = Self::new();
        world.step();
        world.step();
        world.wait(5);
        world.step();
        world.expect("True Available", "True ReconcileSuccess", "");
        world
    }

    fn workspace(&self) -> &Value {
        self.api.get(&key("w")).unwrap_or_else(|| panic!("the Workspace is gone"))
    }

    fn condition(&self, type_: &str) -> (String, String) {
        let conditions = self.workspace()["status"]["conditions"].as_array().into_iter().flatten();
        let found = conditions.into_iter().find(|condition| condition["type"] == type_).cloned().unwrap_or_default();
        let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
        (format!("{} {}", text("status"), text("reason")).trim().to_owned(), text("message"))
    }

    /// Ready and Synced as "status reason", and how the message of Synced begins.
    fn expect(&self, ready: &str, synced: &str, message: &str) {
        assert_eq!((self.condition("Ready").0.as_str(), self.condition("Synced").0.as_str()), (ready, synced));
        let found = self.condition("Synced").1;
        assert!(found.starts_with(message) && found.is_empty() == message.is_empty(), "{found}");
    }

    fn has(&self, annotation: &str) -> bool {
        self.workspace()["metadata"]["annotations"].get(annotation).is_some()
    }

    fn has_finalizer(&self) -> bool {
        self.workspace()["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
    }

    fn at_provider(&self) -> &Value {
        &self.workspace()["status"]["atProvider"]
    }

    /// Keys in the connection Secret; `None` if there is none.
    fn secret(&self) -> Option<Vec<String>> {
        let data = self.api.get(&secret())?["data"].as_object().cloned().unwrap_or_default();
        Some(data.keys().cloned().collect())
    }

    fn full(&self) {
        assert_eq!(*self.at_provider(), json!({"checksum": "0", "outputs": {"id": "a"}}));
        assert_eq!(self.secret().unwrap(), ["id", "password"]);
    }
}

#[test]
fn state_01_queued_behind_another_workspace() {
    let mut world = World::empty();
    world.create("first");
    world.step();
    world.step();
    world.create("w");
    world.step();
    world.wait(1);
    assert!(world.workspace()["status"].is_null() && world.workspace()["metadata"]["annotations"].is_null());
    assert_eq!((world.has_finalizer(), world.secret()), (false, None));
}

#[test]
fn state_02_first_plan() {
    let mut world = World::new();
    world.step();
    assert!(world.has("crossplane.io/external-name") && !world.has(PENDING) && !world.has_finalizer());
    assert_eq!((&world.workspace()["status"], world.secret()), (&Value::Null, None));
}

#[test]
fn state_03_connect_failed_first() {
    let mut world = World::new();
    world.ends(Ending::ConnectFailure("no credentials".into()));
    world.step();
    world.step();
    world.expect("", "False ReconcileError", "connect failed: no credentials");
    assert_eq!((world.has_finalizer(), world.at_provider()), (false, &json!({})));
}

#[test]
fn state_04_plan_failed_first() {
    let mut world = World::new();
    world.ends(Ending::PlanFailure("bad module".into()));
    world.step();
    world.step();
    world.expect("", "False ReconcileError", "observe failed: ");
    assert_eq!((world.has_finalizer(), world.secret()), (false, None));
}

#[test]
fn state_05_first_apply_running() {
    let mut world = World::new();
    world.step();
    world.step();
    world.wait(1);
    world.expect("", "", "");
    assert!(world.has(PENDING) && !world.has(SUCCEEDED) && world.has_finalizer());
    assert_eq!((&world.workspace()["status"], world.secret()), (&Value::Null, Some(vec![])));
}

#[test]
fn state_06_first_apply_failed_and_nothing_made() {
    let mut world = World::new();
    world.ends(Ending::Failure("odd".into()));
    world.step();
    world.step();
    world.wait(5);
    world.expect("False Creating", "False ReconcileError", "create failed: ");
    assert!(world.has(FAILED) && !world.has(SUCCEEDED));
    assert_eq!((world.at_provider(), world.secret()), (&json!({}), Some(vec![])));
}

#[test]
fn state_07_first_apply_failed_after_something_was_made() {
    let mut world = World::new();
    world.ends(Ending::Failure("odd".into()));
    world.outputs.borrow_mut().leaves.insert("id".into(), json!("half"));
    world.step();
    world.step();
    world.wait(5);
    world.step();
    world.wait(5);
    world.expect("False Creating", "False ReconcileError", "update failed: ");
    assert_eq!(*world.at_provider(), json!({"checksum": "0", "outputs": {"id": "half"}}), "partial outputs");
    assert_eq!(world.secret().unwrap(), ["id"]);
}

#[test]
fn state_08_made_and_not_looked_at() {
    let mut world = World::new();
    world.step();
    world.step();
    world.wait(5);
    world.expect("False Creating", "True ReconcileSuccess", "");
    assert!(world.has(SUCCEEDED));
    assert_eq!((world.at_provider(), world.secret().unwrap().len()), (&json!({}), 2));
}

#[test]
fn state_09_steady() {
    let world = World::steady();
    world.full();
    assert!(world.workspace()["status"]["conditions"][1]["observedGeneration"].is_null(), "Ready has no generation");
}

#[test]
fn state_10_spec_changed_and_apply_running() {
    let mut world = World::steady();
    world.edit(|workspace| workspace["spec"]["forProvider"]["module"] = json!("b"));
    world.step();
    world.wait(1);
    world.expect("True Available", "True ReconcileSuccess", "");
    world.full();
    let conditions = world.workspace()["status"]["conditions"].as_array().unwrap();
    assert!(
        conditions.iter().any(|synced| synced["observedGeneration"] == 1),
        "of the generation before: {conditions:?}"
    );
}

#[test]
fn state_11_apply_again_failed() {
    let mut world = World::steady();
    world.ends(Ending::Failure("odd".into()));
    world.edit(|workspace| workspace["spec"]["forProvider"]["module"] = json!("b"));
    world.step();
    world.wait(5);
    world.expect("True Available", "False ReconcileError", "update failed: ");
    world.full();
}

#[test]
fn state_12_plan_failed_later() {
    let mut world = World::steady();
    world.ends(Ending::PlanFailure("odd".into()));
    world.step();
    world.expect("True Available", "False ReconcileError", "observe failed: ");
    world.full();
}

#[test]
fn state_13_failed_replacement() {
    let mut world = World::steady();
    world.ends(Ending::FailedReplacement("odd".into()));
    world.edit(|workspace| workspace["spec"]["forProvider"]["module"] = json!("b"));
    world.step();
    world.wait(5);
    world.expect("True Available", "False ReconcileError", "update failed: ");
    // The outputs of what is not there any more.
    world.full();
    assert_eq!(world.provider.states()["w"].destroyed, 1);
}

#[test]
fn state_14_destroy_running() {
    let mut world = World::steady();
    world.api.delete(&key("w"), None);
    world.step();
    world.wait(1);
    world.expect("True Available", "True ReconcileSuccess", "");
    assert!(world.workspace()["metadata"]["deletionTimestamp"].is_string());
    world.full();
}

#[test]
fn state_15_destroy_failed() {
    let mut world = World::steady();
    world.outputs.borrow_mut().undestroyable = Some("in use".into());
    world.api.delete(&key("w"), None);
    world.step();
    world.wait(5);
    world.expect("False Deleting", "False ReconcileError", "delete failed: ");
    world.full();
    world.step();
    assert_eq!(*world.at_provider(), json!({}), "from the second time on no outputs, though resources remain");
    assert_eq!(world.secret().unwrap().len(), 2, "stale keys stay");
    assert_eq!(world.provider.states()["w"].destroyed, 0);
}

#[test]
fn state_16_destroyed_and_confirming() {
    let mut world = World::steady();
    world.api.delete(&key("w"), None);
    world.step();
    world.wait(5);
    world.expect("False Deleting", "True ReconcileSuccess", "");
    assert_eq!(world.provider.states()["w"].destroyed, 1);
    world.step();
    assert!(world.api.get(&key("w")).is_none(), "and then it is gone");
}

#[test]
fn state_17_paused() {
    let mut world = World::steady();
    world.edit(|workspace| workspace["metadata"]["annotations"]["crossplane.io/paused"] = json!("true"));
    world.step();
    world.expect("True Available", "False ReconcilePaused", "");
    world.full();
}

#[test]
fn state_18_unpaused_and_pass_still_running() {
    let mut world = World::steady();
    world.edit(|workspace| workspace["metadata"]["annotations"]["crossplane.io/paused"] = json!("true"));
    world.step();
    world.edit(|workspace| {
        workspace["metadata"]["annotations"]["crossplane.io/paused"] = Value::Null;
        workspace["spec"]["forProvider"]["module"] = json!("b");
    });
    world.step();
    world.wait(1);
    world.expect("True Available", "False ReconcilePaused", "");
    world.wait(5);
    world.expect("True Available", "True ReconcileSuccess", "");
}

#[test]
fn state_19_creation_incomplete() {
    let mut world = World::new();
    world.step();
    world.step();
    world.provider.crash(&world.api);
    world.wait(30);
    world.expect("False Creating", "False ReconcileError", "cannot determine creation result - remove the ");
    world.wait(600);
    assert_eq!(world.provider.states().get("w"), None, "nothing happens until a person looks");
    world.edit(|workspace| {
        workspace["metadata"]["annotations"].as_object_mut().unwrap().remove(PENDING);
    });
    world.step();
    world.wait(5);
    world.step();
    world.expect("True Available", "True ReconcileSuccess", "");
}

#[test]
fn state_20_only_observed_with_a_difference() {
    let mut world = World::new();
    world.edit(|workspace| workspace["spec"]["managementPolicies"] = json!(["Observe"]));
    world.step();
    world.step();
    world.expect("", "True ReconcileSuccess", "");
    assert_eq!(world.at_provider()["outputs"], json!({"id": "a"}));
    assert_eq!(world.provider.states().get("w"), None, "nothing is made");
}

#[test]
fn state_21_neither_resources_nor_outputs() {
    let mut world = World::new();
    *world.outputs.borrow_mut() = Outputs::default();
    for _ in 0..10 {
        world.step();
    }
    world.expect("False Creating", "True ReconcileSuccess", "");
    assert_eq!((world.at_provider(), world.secret()), (&json!({}), Some(vec![])));
}

#[test]
fn an_orphan_is_left_as_it_is() {
    let mut world = World::steady();
    world.edit(|workspace| workspace["spec"]["deletionPolicy"] = json!("Orphan"));
    world.wait(10);
    world.api.delete(&key("w"), None);
    world.step();
    assert!(world.api.get(&key("w")).is_none());
    assert_eq!(world.provider.states()["w"].destroyed, 0);
}

#[test]
fn a_connection_secret_that_another_controls_is_left_alone_and_holds_up_the_apply() {
    for (kind, owners, why) in [
        (
            "connection.crossplane.io/v1alpha1",
            json!([{"controller": true, "uid": "other"}]),
            "is not controlled by UID",
        ),
        ("Opaque", json!([]), "refusing to modify uncontrolled secret of type \"Opaque\""),
    ] {
        let mut world = World::empty();
        let body = json!({"apiVersion": "v1", "kind": "Secret", "type": kind, "data": {"id": "YQ=="},
            "metadata": {"namespace": "default", "name": "w-connection", "ownerReferences": owners}});
        world.api.create(&secret(), body);
        let before = world.api.get(&secret()).unwrap().clone();
        world.create("w");
        for _ in 0..3 {
            world.step();
        }
        world.wait(10);
        world.expect("", "False ReconcileError", "cannot create or update connection secret: ");
        let shown = world.api.get(&key("w")).unwrap();
        assert!(shown.to_string().contains(&why.replace('"', "\\\"")), "{shown}");
        assert_eq!(shown["metadata"]["annotations"][PENDING], Value::Null, "nothing is made");
        assert_eq!(world.api.get(&secret()), Some(&before));
    }
    // One without a controller that looks like one is taken over, and what is in it stays.
    let mut world = World::empty();
    let body = json!({"apiVersion": "v1", "kind": "Secret", "type": "connection.crossplane.io/v1alpha1",
        "data": {"old": "YQ=="}, "metadata": {"namespace": "default", "name": "w-connection"}});
    world.api.create(&secret(), body);
    world.create("w");
    world.step();
    world.step();
    world.wait(5);
    world.step();
    world.expect("True Available", "True ReconcileSuccess", "");
    let found = world.api.get(&secret()).unwrap();
    assert_eq!([found["data"]["old"].is_null(), found["data"]["id"].is_null()], [false; 2]);
}
