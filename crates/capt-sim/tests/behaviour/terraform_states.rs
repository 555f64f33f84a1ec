//! One Terraform state has one Workspace: names of two namespaces can come to the same external name, and each of the
//! two would change and destroy what the other one made.

use capt_api::{
    foreign::WorkspaceApi,
    names::{EXTERNAL_NAME_ANNOTATION, RECREATE_WORKSPACE_ANNOTATION},
};
use capt_reconcile::object::{Kind, ObjectKey};
use capt_sim::Simulation;
use capt_status::Span;
use serde_json::{Value, json};

use crate::common::{condition, create_cluster, simulation};

fn state(simulation: &Simulation, namespace: &str, name: &str) -> Value {
    let key = ObjectKey::new(Kind::CaptCluster, namespace, name);
    simulation.api.get(&key).unwrap()["status"]["state"].clone()
}

#[test]
fn a_state_that_another_workspace_has_is_not_shared() {
    let mut simulation = simulation(WorkspaceApi::Namespaced, &[]);
    create_cluster(&mut simulation, "team-a", "demo");
    assert!(simulation.run());
    assert_eq!(state(&simulation, "team-a", "demo"), "Ready");
    let workspace = ObjectKey::new(Kind::Workspace(WorkspaceApi::Namespaced), "team-a", "demo-vpc");
    let before = simulation.api.get(&workspace).unwrap().clone();
    assert_eq!(before["metadata"]["annotations"][EXTERNAL_NAME_ANNOTATION], "team-a-demo-vpc");
    // `team` and `a-demo-vpc` come to the same.
    create_cluster(&mut simulation, "team", "a-demo");
    assert!(simulation.run_for(Span::from_minutes(60)));
    let apply = ObjectKey::new(Kind::Apply, "team", "a-demo-vpc");
    let told = condition(&simulation.api.get(&apply).unwrap()["status"], "Synced");
    assert_eq!((&told["status"], &told["reason"]), (&json!("False"), &json!("NameCollision")));
    assert!(
        told["message"]
            .as_str()
            .unwrap()
            .starts_with("Workspace/team-a/demo-vpc has the Terraform state team-a-demo-vpc")
    );
    let own = ObjectKey::new(Kind::Workspace(WorkspaceApi::Namespaced), "team", "a-demo-vpc");
    assert!(simulation.api.get(&own).is_none());
    assert_eq!(*simulation.api.get(&workspace).unwrap(), before);
    assert_eq!(state(&simulation, "team-a", "demo"), "Ready");
    // With a state of its own it is made.
    simulation.api.edit(&apply, |apply| {
        apply["metadata"]["annotations"][EXTERNAL_NAME_ANNOTATION] = json!("another");
        apply["metadata"]["annotations"][RECREATE_WORKSPACE_ANNOTATION] = json!("a-demo-vpc");
    });
    assert!(simulation.run_for(Span::from_minutes(60)));
    assert_eq!(simulation.api.get(&own).unwrap()["metadata"]["annotations"][EXTERNAL_NAME_ANNOTATION], "another");
    let created = |name: &str| simulation.provider.states()[name].created;
    assert_eq!([created("another"), created("team-a-demo-vpc")], [1, 1]);
    assert_eq!(*simulation.api.get(&workspace).unwrap(), before);
}

/// The provider takes the Workspace's own name where it has no external name yet.
#[test]
fn a_state_is_known_by_the_name_of_a_workspace_that_somebody_just_made() {
    let mut simulation = simulation(WorkspaceApi::Namespaced, &[]);
    let somebodys = ObjectKey::new(Kind::Workspace(WorkspaceApi::Cluster), "", "team-demo-vpc");
    simulation.api.create(
        &somebodys,
        json!({"apiVersion": "tf.upbound.io/v1beta1", "kind": "Workspace", "metadata": {"name": "team-demo-vpc",
            "annotations": {"crossplane.io/paused": "true"}}, "spec": {"forProvider": {"source": "Inline", "module": ""}}}),
    );
    create_cluster(&mut simulation, "team", "demo");
    assert!(simulation.run_for(Span::from_minutes(10)));
    let own = ObjectKey::new(Kind::Workspace(WorkspaceApi::Namespaced), "team", "demo-vpc");
    assert!(simulation.api.get(&own).is_none());
    // Once it is gone, the state is free.
    simulation.api.delete(&somebodys, None);
    assert!(simulation.run_for(Span::from_minutes(60)));
    assert!(simulation.api.get(&own).is_some());
    assert_eq!(state(&simulation, "team", "demo"), "Ready");
}
