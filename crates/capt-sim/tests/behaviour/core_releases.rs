//! Whole lives beside each release of Cluster API core: what the Cluster shows in the end is right, CAPT writes
//! nothing of it but one repair, and nobody fights.

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{executor::Request, object::Kind, pass::Settings};
use capt_sim::{
    Simulation,
    core::Release,
    provider::{Ending, Outputs},
};
use capt_status::Span;
use serde_json::{Value, json};

use crate::common::{FILES, condition, create, documents, key, status, terraform};

const DENIED: &str = "Error: AccessDenied: User is not authorized to perform: eks:CreateCluster";

/// The example's Cluster as this release stores it.
fn as_stored(release: Release, mut object: Value) -> Value {
    if object["kind"] == "Cluster" && release.is_v1beta1() {
        object["apiVersion"] = json!(release.api_version());
        for reference in ["infrastructureRef", "controlPlaneRef"] {
            let reference = object["spec"][reference].as_object_mut().unwrap();
            let group = reference.remove("apiGroup").unwrap();
            reference.insert("apiVersion".to_owned(), json!(format!("{}/v1beta1", group.as_str().unwrap())));
            reference.insert("namespace".to_owned(), json!("default"));
        }
    }
    object
}

fn beside(release: Release, terraform: impl Fn(&Value) -> Outputs + 'static) -> Simulation {
    let settings = Settings { workspace_api: WorkspaceApi::Cluster, ..Settings::default() };
    let mut simulation = Simulation::new(settings, terraform);
    simulation.core = release;
    for object in FILES.iter().flat_map(|file| documents(file)) {
        create(&mut simulation, as_stored(release, object));
    }
    simulation
}

fn cluster(simulation: &Simulation) -> Value {
    simulation.api.get(&key(Kind::Cluster, "demo")).unwrap().clone()
}

fn writes_to_the_cluster(simulation: &Simulation) -> Vec<&Request> {
    let is_it = |request: &&Request| request.written().is_some_and(|target| target.kind == Kind::Cluster);
    simulation.writes().filter(is_it).collect()
}

/// What each release calls the two latches.
fn latches(release: Release, cluster: &Value) -> [Value; 2] {
    let status = &cluster["status"];
    if release.is_v1beta1() {
        [status["infrastructureReady"].clone(), status["controlPlaneReady"].clone()]
    } else {
        let done = &status["initialization"];
        [done["infrastructureProvisioned"].clone(), done["controlPlaneInitialized"].clone()]
    }
}

#[test]
fn a_life_is_the_same_and_the_cluster_is_never_written() {
    let mut lives = Vec::new();
    for release in Release::ALL {
        let mut simulation = beside(release, terraform);
        assert!(simulation.run(), "{release:?}");
        let made = cluster(&simulation);
        assert_eq!(made["status"]["phase"], "Provisioned", "{release:?}");
        assert_eq!(latches(release, &made), [json!(true), json!(true)], "{release:?}");
        assert_eq!(
            made["spec"]["controlPlaneEndpoint"],
            json!({"host": "demo.eks.invalid", "port": 443}),
            "{release:?}"
        );
        for (kind, name) in [(Kind::CaptCluster, "demo"), (Kind::CaptControlPlane, "demo")] {
            assert_eq!(status(&simulation, kind, name)["state"], "Ready", "{release:?}");
            let owners = &simulation.api.get(&key(kind, name)).unwrap()["metadata"]["ownerReferences"];
            assert_eq!(owners.as_array().map(Vec::len), Some(1), "{release:?}: {owners}");
        }
        let before = simulation.requests.len();
        assert!(simulation.run_for(Span::from_minutes(180)));
        assert_eq!(simulation.requests.len(), before, "{release:?}: not at rest");

        simulation.api.edit(&key(Kind::CaptControlPlane, "demo"), |plane| plane["spec"]["version"] = json!("1.32"));
        assert!(simulation.run(), "{release:?}");
        assert_eq!(status(&simulation, Kind::CaptControlPlane, "demo")["version"], "v1.32.0");
        assert_eq!(
            latches(release, &cluster(&simulation)),
            [json!(true), json!(true)],
            "{release:?}: nothing is taken back"
        );
        simulation.api.delete(&key(Kind::Cluster, "demo"), None);
        assert!(simulation.run(), "{release:?}");
        assert!(simulation.api.keys().all(|key| key.kind == Kind::Template), "{release:?}: something is left");
        assert_eq!(writes_to_the_cluster(&simulation), Vec::<&Request>::new(), "{release:?}");
        assert!(simulation.provider.states().values().all(|counts| (counts.created, counts.destroyed) == (1, 1)));
        lives.push(simulation.writes().count());
    }
    assert!(lives.iter().all(|writes| *writes == lives[0]), "{lives:?}");
}

#[test]
fn a_failure_is_copied_by_core_and_cleared_once_nobody_reports_it() {
    for release in Release::ALL {
        let mut simulation = beside(release, |workspace| {
            let fails = workspace["metadata"]["name"] == "demo-eks-controlplane";
            let result = if fails { Ending::Failure(DENIED.to_owned()) } else { Ending::Success };
            Outputs { result, ..terraform(workspace) }
        });
        assert!(simulation.run_for(Span::from_minutes(60)), "{release:?}");
        let plane = status(&simulation, Kind::CaptControlPlane, "demo");
        assert_eq!(plane["state"], "Failed", "{release:?}");
        let failed = cluster(&simulation)["status"].clone();
        let (told, phase) =
            if release.is_v1beta1() { (&failed, "Failed") } else { (&failed["deprecated"]["v1beta1"], "Provisioning") };
        assert_eq!((&failed["phase"], &told["failureReason"]), (&json!(phase), &plane["failureReason"]), "{release:?}");
        let message = told["failureMessage"].as_str().unwrap();
        assert!(message.ends_with(plane["failureMessage"].as_str().unwrap()), "{release:?}: {message}");
        assert_eq!(writes_to_the_cluster(&simulation), Vec::<&Request>::new(), "{release:?}");

        simulation.terraform(terraform);
        let retry = |plane: &mut Value| plane["metadata"]["annotations"]["capt.cluster.x-k8s.io/retry"] = json!("1");
        simulation.api.edit(&key(Kind::CaptControlPlane, "demo"), retry);
        assert!(simulation.run_for(Span::from_minutes(30)), "{release:?}");
        let plane = status(&simulation, Kind::CaptControlPlane, "demo");
        assert_eq!(
            (&plane["state"], condition(&plane, "Stalled")["status"].as_str()),
            (&json!("Ready"), Some("False"))
        );
        let repaired = cluster(&simulation);
        assert_eq!(repaired["status"]["phase"], "Provisioned", "{release:?}");
        // Where both versions are served the text of the older one has no effect, and is core's.
        let repairs = usize::from(release.is_v1beta1());
        let writes = writes_to_the_cluster(&simulation);
        assert_eq!(writes.len(), repairs, "{release:?}: {writes:?}");
        for write in writes {
            let Request::MergeStatus { body, .. } = write else { panic!("{write:?}") };
            assert_eq!(body["status"], json!({"failureReason": null, "failureMessage": null}));
        }
        let before = simulation.requests.len();
        assert!(simulation.run_for(Span::from_minutes(600)));
        assert_eq!(simulation.requests.len(), before, "{release:?}: not at rest");
    }
}

/// Release 1.8 takes back `infrastructureReady` with the provider's `ready`, which is a latch for that reason.
#[test]
fn while_a_vpc_is_updated_no_release_takes_anything_back() {
    for release in Release::ALL {
        let mut simulation = beside(release, terraform);
        assert!(simulation.run());
        simulation
            .terraform(|workspace| Outputs { result: Ending::Failure(DENIED.to_owned()), ..terraform(workspace) });
        let edit = |template: &mut Value| {
            let module = &mut template["spec"]["template"]["spec"]["forProvider"]["module"];
            *module = json!(format!("{}\n", module.as_str().unwrap()));
        };
        simulation.api.edit(&key(Kind::Template, "vpc-template"), edit);
        assert!(simulation.run_for(Span::from_minutes(60)), "{release:?}");
        assert_eq!(status(&simulation, Kind::CaptCluster, "demo")["state"], "Degraded", "{release:?}");
        let shown = cluster(&simulation);
        assert_eq!(
            (latches(release, &shown), &shown["status"]["phase"]),
            ([json!(true), json!(true)], &json!("Provisioned"))
        );
    }
}
