//! Many clusters cost what one costs, times their number.

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::object::Kind;
use capt_status::Span;
use serde_json::{Value, json};

use crate::{
    common::{FILES, key, simulation},
    whole_life::{Cost, cost},
};

/// How many clusters, where nobody asks for more.
const MANY: u64 = 50;

#[test]
fn each_of_many_clusters_is_written_as_often_as_one_and_at_rest_nothing_is_asked() {
    let many = std::env::var("CAPT_CLUSTERS").map_or(MANY, |many| many.parse().unwrap());
    let times = usize::try_from(many).unwrap();
    let one = cost(1);
    println!("one cluster: {one:?}");
    let Cost { writes, requests, at_rest, changes } = one;
    assert_eq!(at_rest, 0);
    assert_eq!(writes, 42, "for a whole life with an update");
    let expected =
        Cost { writes: times * writes, requests: times * requests, at_rest: 0, changes: many * (changes - 2) + 2 };
    assert_eq!(cost(times), expected, "two templates, and {many} lives");
    println!("{many} clusters: {expected:?}");
}

/// What is forgotten is what nobody can ask for: a process that starts anew in between still finds everything.
#[test]
fn a_world_that_forgets_goes_on_as_one_that_does_not() {
    let life = |forgets: bool| {
        let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
        simulation.forgets = forgets;
        for hour in 0..4 {
            assert!(simulation.run_for(Span::from_minutes(60)));
            simulation.api.edit(&key(Kind::CaptControlPlane, "demo"), |object| {
                object["spec"]["additionalTags"]["Hour"] = json!(hour.to_string());
            });
            simulation.restart();
        }
        assert!(simulation.run_for(Span::from_minutes(60)));
        let objects: Vec<Value> =
            simulation.api.keys().map(|key| simulation.api.get(key).cloned().unwrap_or_default()).collect();
        (objects, simulation.counts, simulation.api.version(), simulation.api.changes(0).len())
    };
    let (kept, forgotten) = (life(false), life(true));
    assert_eq!((&kept.0, kept.1, kept.2), (&forgotten.0, forgotten.1, forgotten.2));
    assert_eq!(kept.3 as u64, kept.2, "everything is there");
    assert!(forgotten.3 < kept.3 / 2, "{} of {}", forgotten.3, kept.3);
}
