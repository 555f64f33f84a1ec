//! Cases about names: what fits into a label, and what leaves no room.

use capt_reconcile::{executor::Request, object::Kind};
use capt_sim::Simulation;
use serde_json::json;

use crate::{
    common::{condition, key},
    help::{assert_still, fresh_as, infrastructure, minutes, plane, wait},
    ownership::made,
};

/// Names as long as the API server takes them.
fn named(cluster: &str, others: &str) -> Simulation {
    let (cluster, others) = (cluster.to_owned(), others.to_owned());
    fresh_as(move |kind, object| {
        if kind == "Cluster" {
            object["metadata"]["name"] = json!(cluster);
            object["spec"]["infrastructureRef"]["name"] = json!(others);
            object["spec"]["controlPlaneRef"]["name"] = json!(others);
        } else {
            object["metadata"]["name"] = json!(others);
        }
    })
}

#[test]
fn cb_111_labels_hold_what_a_label_holds() {
    let name = "c".repeat(63);
    let mut simulation = named(&name, &name);
    assert!(simulation.run());
    assert_eq!(simulation.api.get(&key(Kind::CaptControlPlane, &name)).unwrap()["status"]["state"], "Ready");
    let mut labels = 0;
    for request in simulation.writes() {
        if let Request::Create { target, body } = request {
            for value in body["metadata"]["labels"].as_object().into_iter().flat_map(|labels| labels.values()) {
                assert!(value.as_str().unwrap().len() <= 63, "{target}: {value}");
                labels += 1;
            }
        }
    }
    assert!(labels > 6);
    // A name that no label holds is told, and nothing is tried with it.
    let mut simulation = named(&"c".repeat(64), "demo");
    wait(&mut simulation, minutes(5));
    for status in [plane(&simulation), infrastructure(&simulation)] {
        assert_eq!(condition(&status, "Stalled")["reason"], "NameTooLong", "{status:#}");
    }
    assert_eq!(made(&simulation), [""; 0]);
    assert_still(&mut simulation, &[1, 3600]);
}

#[test]
fn cb_112_a_name_that_leaves_no_room_for_its_childrens_is_told() {
    for (length, fits) in [(63, true), (230, true), (231, false), (253, false)] {
        let name = "c".repeat(length);
        let mut simulation = named("demo", &name);
        wait(&mut simulation, minutes(5));
        let status = simulation.api.get(&key(Kind::CaptControlPlane, &name)).unwrap()["status"].clone();
        if fits {
            assert_eq!(status["state"], "Ready", "{length}");
        } else {
            assert_eq!(condition(&status, "Stalled")["reason"], "NameTooLong", "{length}: {status:#}");
            assert_eq!(status["state"], "Failed");
        }
        for line in made(&simulation) {
            assert!(line.rsplit('/').next().unwrap().len() <= 253, "{line}");
        }
        assert!(simulation.requests.iter().all(|(_, result)| result.is_ok()));
        assert_still(&mut simulation, &[1, 3600]);
    }
}
