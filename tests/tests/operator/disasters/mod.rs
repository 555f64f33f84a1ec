//! Everything that goes wrong in production, one after the other and without a pause, while clusters are made, changed
//! and deleted beside the real API server and the real Cluster API core: nothing is lost and nothing is doubled.
//!
//! Terraform is played ([`Provider`]): what the real one makes of an API server that dies is not what is tested.
//! `CAPT_DISASTERS=all` takes 50 clusters, 200 kills, 20 restarts of the API server and ten minutes of rest.

mod clock;
mod trouble;

use std::{collections::BTreeMap, time::Duration};

use capt_stack::{Effect, Stack, Tier, eventually};
use capt_tests::{
    history::{History, Kind},
    operator::{self, SECOND_USER, USER},
    provider::{self, Provider},
    root,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use trouble::{Disaster, Trouble};

use crate::place::SOON;

const NAMESPACE: &str = "default";
/// Each run of Terraform.
const TERRAFORM: Duration = Duration::from_millis(300);
/// How long clusters may take after the last disaster.
const PATIENCE: Duration = Duration::from_mins(10);
/// What is only a detail is written up to a minute late.
const SETTLED: Duration = Duration::from_secs(75);
/// After this long CAPT believes core that an endpoint is dead.
const JUDGED: Duration = Duration::from_mins(4);

/// How much of it there is.
struct Size {
    clusters: usize,
    kills: usize,
    restarts: usize,
    storms: usize,
    jumps: usize,
    rest: Duration,
}

impl Size {
    fn asked() -> Self {
        match std::env::var("CAPT_DISASTERS").as_deref() {
            Ok("all") => {
                Self { clusters: 50, kills: 200, restarts: 20, storms: 12, jumps: 20, rest: Duration::from_mins(10) }
            }
            Ok(other) => panic!("CAPT_DISASTERS is `{other}`: it can be `all`"),
            Err(_) => Self { clusters: 6, kills: 18, restarts: 3, storms: 3, jumps: 3, rest: Duration::from_secs(20) },
        }
    }

    /// What goes wrong in each of the three parts of the clusters' lives, in an order that repeats itself.
    fn parts(&self) -> [Vec<Disaster>; 3] {
        let mut parts: [Vec<Disaster>; 3] = Default::default();
        for (disaster, count) in [
            (Disaster::Kill, self.kills),
            (Disaster::Restart, self.restarts),
            (Disaster::Storm, self.storms),
            (Disaster::Jump, self.jumps),
        ] {
            for number in 0..count {
                let part = &mut parts[number % 3];
                // Spread over what is there already.
                let at = (number / 3 * 7 + 3) % (part.len() + 1);
                part.insert(at, disaster);
            }
        }
        parts
    }
}

struct Scene {
    stack: Stack,
    client: Client,
    clusters: Vec<String>,
}

impl Scene {
    async fn new(clusters: usize) -> Self {
        let mut manifests = vec![operator::manifests().unwrap(), operator::lease_manifests().unwrap()];
        manifests.extend(provider::workspace_crds().unwrap());
        let stack = Stack::builder(Tier::Core).install(manifests.join("\n---\n")).start().await.unwrap();
        let client = stack.admin_client().await.unwrap();
        for file in ["vpc-template.yaml", "eks-template.yaml"] {
            stack.apply(&std::fs::read_to_string(root().join("examples").join(file)).unwrap()).await.unwrap();
        }
        let clusters = (0..clusters).map(|number| format!("c-{number}")).collect();
        Self { stack, client, clusters }
    }

    async fn make(&self, name: &str) {
        let example = std::fs::read_to_string(root().join("examples/cluster.yaml")).unwrap();
        self.stack.apply(&example.replace("name: demo", &format!("name: {name}"))).await.unwrap();
    }

    async fn change(&self, name: &str) {
        let api = Kind::ControlPlane.api(&self.client, Some(NAMESPACE));
        let change = Patch::Merge(json!({"spec": {"version": "1.32"}}));
        persist("a changed control plane", async || api.patch(name, &PatchParams::default(), &change).await).await;
    }

    async fn delete(&self, name: &str) {
        let api = Kind::Cluster.api(&self.client, Some(NAMESPACE));
        persist("a deleted Cluster", async || api.delete(name, &DeleteParams::background()).await).await;
    }

    async fn objects(&self, kind: Kind) -> Result<Vec<DynamicObject>, String> {
        let list = kind.api(&self.client, None).list(&ListParams::default()).await;
        list.map(|list| list.items).map_err(|error| error.to_string())
    }

    /// Waits until all serve at `version`. Nobody answers at their endpoints, so in time they are Degraded, and right so.
    async fn serve(&self, version: &str) {
        let all = self.clusters.len();
        eventually("that all clusters serve", PATIENCE, || async {
            let planes = self.objects(Kind::ControlPlane).await?;
            let is_ready = |object: &&DynamicObject| {
                object.data["status"]["ready"] == true
                    && ["Ready", "Degraded"].contains(&object.data["status"]["state"].as_str().unwrap_or_default())
            };
            let of_version = |object: &&DynamicObject| object.data["status"]["version"] == version;
            let done = planes.iter().filter(is_ready).filter(of_version).count();
            let networks = self.objects(Kind::CaptCluster).await?.iter().filter(is_ready).count();
            let provisioned = |object: &&DynamicObject| object.data["status"]["phase"] == "Provisioned";
            let clusters = self.objects(Kind::Cluster).await?.iter().filter(provisioned).count();
            if (done, networks, clusters) == (all, all, all) {
                Ok(())
            } else {
                Err(format!("of {all}: {done} control planes, {networks} networks, {clusters} clusters"))
            }
        })
        .await
        .unwrap();
    }

    /// Waits until nothing is left.
    async fn gone(&self) {
        eventually("that everything is gone", PATIENCE, || async {
            let mut left = Vec::new();
            for kind in Kind::ALL {
                left.extend(self.objects(kind).await?.iter().map(|object| format!("{kind:?} {}", object.name_any())));
            }
            let secrets: Api<Secret> = Api::namespaced(self.client.clone(), NAMESPACE);
            let secrets = secrets.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            left.extend(secrets.iter().map(|secret| format!("Secret {}", secret.name_any())));
            if left.is_empty() { Ok(()) } else { Err(left.join(", ")) }
        })
        .await
        .unwrap();
    }

    /// How many control planes core has found dead so far.
    async fn degraded(&self) -> Result<usize, String> {
        let planes = self.objects(Kind::ControlPlane).await?;
        Ok(planes.iter().filter(|plane| plane.data["status"]["state"] == "Degraded").count())
    }

    /// Fails if an operator asks for anything but its lease within `time`.
    async fn assert_rest(&self, time: Duration) {
        if time > JUDGED {
            eventually("that core has found all endpoints dead", PATIENCE, || async {
                let left = self.clusters.len() - self.degraded().await?;
                if left == 0 { Ok(()) } else { Err(format!("{left} are not Degraded")) }
            })
            .await
            .unwrap();
        }
        tokio::time::sleep(SETTLED).await;
        loop {
            let (mark, degraded) = (Timestamp::now(), self.degraded().await.unwrap());
            tokio::time::sleep(time).await;
            let asked = self.stack.audit().requests().unwrap().since(mark).filter(|request| {
                let is_ours = [USER, SECOND_USER].contains(&request.user.as_str());
                is_ours && request.effect() != Effect::Watch && request.resource != "leases"
            });
            // What core finds out meanwhile is news, and each finds it out once.
            if asked.is_empty() || self.degraded().await.unwrap() == degraded {
                assert!(asked.is_empty(), "not at rest:\n{}", asked.table());
                return;
            }
        }
    }
}

/// Asks until there is an answer: a connection from before a restart of the API server may break at the first request.
async fn persist<T>(what: &str, ask: impl AsyncFn() -> kube::Result<T>) {
    eventually(what, SOON, || async {
        match ask().await {
            Ok(_) => Ok(Ok(())),
            // Refused is refused.
            Err(error @ kube::Error::Api(_)) => Ok(Err(error)),
            Err(error) => Err(error.to_string()),
        }
    })
    .await
    .unwrap()
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the real stack: just test-stack"]
async fn clusters_live_through_all_that_goes_wrong() {
    let size = Size::asked();
    let mut scene = Scene::new(size.clusters).await;
    let provider = Provider::start(&scene.client, TERRAFORM);
    let history = History::start(&scene.client).await.unwrap();
    let mut trouble = Trouble::new(&scene).await;
    let begin = std::time::Instant::now();
    let [making, changing, deleting] = size.parts();

    trouble.strikes(&mut scene, &making, Scene::make).await;
    scene.serve("v1.31.0").await;
    println!("all made after {} s: {trouble}", begin.elapsed().as_secs());
    scene.assert_rest(size.rest).await;

    trouble.strikes(&mut scene, &changing, Scene::change).await;
    scene.serve("v1.32.0").await;
    println!("all changed after {} s: {trouble}", begin.elapsed().as_secs());
    let destroyed = provider.ledger().values().flat_map(BTreeMap::values).filter(|life| life.destroyed).count();
    assert_eq!(destroyed, 0, "something was destroyed that nobody deleted");

    trouble.strikes(&mut scene, &deleting, Scene::delete).await;
    scene.gone().await;
    println!("all gone after {} s: {trouble}", begin.elapsed().as_secs());

    let ledger = provider.ledger();
    assert_eq!(ledger.len(), 2 * size.clusters, "{:?}", ledger.keys());
    for (name, lives) in &ledger {
        assert_eq!(lives.len(), 1, "{name} was made more than once: {lives:?}");
        assert!(lives.values().all(|life| life.applied > 0 && life.destroyed), "{name}: {lives:?}");
    }
    nothing_was_taken_back(&history);
    trouble.was_felt(&scene);
}

/// The laws that can be seen from outside, over every version that the watches told.
fn nothing_was_taken_back(history: &History) {
    let mut last: BTreeMap<(Kind, String), DynamicObject> = BTreeMap::new();
    let time = |condition: &Value| condition["lastTransitionTime"].as_str().unwrap().parse::<Timestamp>().unwrap();
    let mut seen = 0;
    for change in history.changes().into_iter().filter(|it| [Kind::CaptCluster, Kind::ControlPlane].contains(&it.kind))
    {
        let now = change.object;
        let Some(before) = last.insert((change.kind, now.name_any()), now.clone()) else { continue };
        let what = format!("{:?} {}", change.kind, now.name_any());
        assert_eq!(before.uid(), now.uid(), "{what} was made again");
        // A list after an interruption repeats what is known.
        if before.resource_version() == now.resource_version() {
            continue;
        }
        seen += 1;
        for field in
            ["/status/ready", "/status/initialization/provisioned", "/status/initialization/controlPlaneInitialized"]
        {
            let was = before.data.pointer(field) == Some(&json!(true));
            assert!(!was || now.data.pointer(field) == Some(&json!(true)), "{what}: {field} was taken back");
        }
        for field in ["/status/vpcId", "/spec/controlPlaneEndpoint/host"] {
            let was = before.data.pointer(field).filter(|value| value.as_str().is_some_and(|text| !text.is_empty()));
            assert!(was.is_none() || was == now.data.pointer(field), "{what}: {field} was {was:?}");
        }
        for condition in now.data["status"]["conditions"].as_array().into_iter().flatten() {
            let conditions = before.data["status"]["conditions"].as_array().into_iter().flatten();
            let Some(old) = conditions.into_iter().find(|it| it["type"] == condition["type"]) else { continue };
            if old["status"] == condition["status"] {
                assert_eq!(old["lastTransitionTime"], condition["lastTransitionTime"], "{what}: {condition}");
            } else {
                assert!(time(old) <= time(condition), "{what} goes back in time: {old} then {condition}");
            }
        }
    }
    assert!(seen > 50, "only {seen} changes were looked at");
}
