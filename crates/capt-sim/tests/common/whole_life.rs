//! Whole lives of many clusters in one world, counted: created together, Ready, three hours of rest, an
//! update, deleted.

#![allow(dead_code, unreachable_pub)] // a test and a benchmark use their part of it

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    object::{Kind, ObjectKey},
    pass::Settings,
};
use capt_sim::{Simulation, terraform};
use capt_status::Span;
use serde_json::{Value, json};

/// What so many lives cost.
#[derive(Debug, PartialEq, Eq)]
pub struct Cost {
    /// Writes of CAPT.
    pub writes: usize,
    /// Requests of CAPT, live reads included.
    pub requests: usize,
    /// Requests of CAPT in three hours in which nothing happens.
    pub at_rest: usize,
    /// Changes of all objects, by anybody.
    pub changes: u64,
}

/// What the lives of `clusters` clusters cost; panics where one does not come to be, or does not go.
pub fn cost(clusters: usize) -> Cost {
    let mut simulation = Simulation::new(Settings::default(), terraform::guess);
    // A provider with a worker for each, so that the lives are all the same.
    simulation.provider.workers = usize::MAX;
    simulation.forgets = true;
    let key = |kind, name: &str| ObjectKey::new(kind, "default", name);
    let mut create = |object: Value| {
        let group = object["apiVersion"].as_str().unwrap().split_once('/').unwrap().0;
        let kind = Kind::find(group, object["kind"].as_str().unwrap()).unwrap();
        simulation.api.create(&key(kind, object["metadata"]["name"].as_str().unwrap()), object);
    };
    crate::common::documents("vpc-template.yaml").into_iter().for_each(&mut create);
    crate::common::documents("eks-template.yaml").into_iter().for_each(&mut create);
    let one = crate::common::documents("cluster.yaml");
    let name = |index: usize| format!("demo-{index:05}");
    for index in 0..clusters {
        for object in &one {
            let mut object = object.clone();
            object["metadata"]["name"] = json!(name(index));
            for reference in ["infrastructureRef", "controlPlaneRef"] {
                if let Some(reference) = object["spec"].get_mut(reference) {
                    reference["name"] = json!(name(index));
                }
            }
            create(object);
        }
    }
    assert!(simulation.run_for(Span::from_minutes(30)));
    assert_eq!(ready(&simulation), clusters);
    let before = simulation.counts.requests;
    assert!(simulation.run_for(Span::from_minutes(180)));
    let at_rest = simulation.counts.requests - before;
    for index in 0..clusters {
        simulation.api.edit(&key(Kind::CaptControlPlane, &name(index)), |object| {
            object["spec"]["additionalTags"]["Owner"] = json!("platform");
        });
    }
    assert!(simulation.run_for(Span::from_minutes(30)));
    assert_eq!(ready(&simulation), clusters);
    for index in 0..clusters {
        simulation.api.delete(&key(Kind::Cluster, &name(index)), None);
    }
    assert!(simulation.run_for(Span::from_minutes(60)));
    for kind in [Kind::Cluster, Kind::Apply, Kind::Workspace(WorkspaceApi::Cluster), Kind::Secret] {
        assert_eq!(simulation.api.keys_of(kind), [], "everything is gone");
    }
    let states = simulation.provider.states();
    assert_eq!(states.len(), 2 * clusters);
    assert!(states.values().all(|counts| counts.created == 1 && counts.destroyed == 1));
    Cost {
        writes: simulation.counts.writes,
        requests: simulation.counts.requests,
        at_rest,
        changes: simulation.api.version(),
    }
}

fn ready(simulation: &Simulation) -> usize {
    let is_ready = |kind, key: &ObjectKey| {
        simulation
            .api
            .get(&ObjectKey::new(kind, key.namespace.as_deref().unwrap_or_default(), &key.name))
            .is_some_and(|object| object["status"]["state"] == "Ready")
    };
    let planes = simulation.api.keys_of(Kind::CaptControlPlane);
    planes.iter().filter(|key| is_ready(Kind::CaptControlPlane, key) && is_ready(Kind::CaptCluster, key)).count()
}
