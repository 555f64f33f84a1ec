//! Two operators with one lease, and what befalls them and their API server.

use std::{fmt, time::Duration};

use capt_stack::eventually;
use capt_tests::{
    history::Kind,
    operator::{Operator, SECOND_USER, USER},
};
use jiff::{SignedDuration, Timestamp};
use kube::{
    Api,
    api::{DeleteParams, DynamicObject},
    core::{ApiResource, GroupVersionKind},
};

use super::{NAMESPACE, Scene, clock::WrongClock};
use crate::{lease::TERMS, place::SOON};

/// By how many seconds clocks are wrong.
const OFFSETS: [i64; 5] = [0, -600, 0, 60, -90];

/// Who is told whether there is a storm; nobody else asks as this user.
const WITNESS: &str = "witness";

/// A priority at which the API server answers 429 to everything.
const PRIORITY: &str = "\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: storm}
spec:
  type: Limited
  limited: {nominalConcurrencyShares: 0, lendablePercent: 0, borrowingLimitPercent: 0, limitResponse: {type: Reject}}
";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disaster {
    /// `kill -9` of one of the operators; its successor has another wrong clock.
    Kill,
    /// etcd forgets old versions, and the API server is killed and started again.
    Restart,
    /// For some seconds the API server answers 429 to the operators.
    Storm,
    /// The clock of a running operator is set back by ten minutes.
    Jump,
}

struct Replica {
    user: &'static str,
    clock: WrongClock,
    operator: Operator,
}

pub(super) struct Trouble {
    replicas: [Replica; 2],
    dice: u64,
    kills: usize,
    /// When the API server went, and when it was back.
    restarts: Vec<(Timestamp, Timestamp)>,
    storms: usize,
    jumps: usize,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { replicas: _, dice: _, kills, restarts, storms, jumps } = self;
        let restarts = restarts.len();
        write!(
            f,
            "{kills} kills, {restarts} restarts of the API server, {storms} storms, {jumps} clocks set back so far"
        )
    }
}

impl Trouble {
    pub(super) async fn new(scene: &Scene) -> Self {
        scene.stack.apply(PRIORITY).await.unwrap();
        let replicas = [USER, SECOND_USER].map(|user| {
            let clock = WrongClock::new(scene.stack.directory(), user);
            Replica { user, operator: start(scene, user, &clock), clock }
        });
        Self { replicas, dice: 1, kills: 0, restarts: Vec::new(), storms: 0, jumps: 0 }
    }

    /// A number below `limit`, the next of a sequence that repeats itself in each run.
    fn throw(&mut self, limit: u64) -> u64 {
        // Knuth's numbers for a linear congruence; its high bits are the good ones.
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % limit
    }

    /// Strikes with all of `disasters`, one after the other, while `begin` is done with one cluster after the other.
    pub(super) async fn strikes(
        &mut self,
        scene: &mut Scene,
        disasters: &[Disaster],
        begin: impl AsyncFn(&Scene, &str),
    ) {
        let mut so_far = 0;
        for (number, disaster) in disasters.iter().enumerate() {
            // The last cluster has some of it too.
            let due = ((number + 1) * scene.clusters.len() * 4).div_ceil(disasters.len() * 3).min(scene.clusters.len());
            for name in &scene.clusters[so_far..due] {
                begin(scene, name).await;
            }
            so_far = due;
            tokio::time::sleep(Duration::from_millis(300 + self.throw(3000))).await;
            self.strike(scene, *disaster).await;
        }
        assert_eq!(so_far, scene.clusters.len());
    }

    async fn strike(&mut self, scene: &mut Scene, disaster: Disaster) {
        match disaster {
            Disaster::Kill => {
                let (which, offset) = (usize::from(self.throw(2) == 1), self.throw(OFFSETS.len() as u64));
                let replica = &mut self.replicas[which];
                replica.operator.kill();
                replica.clock.set(OFFSETS[usize::try_from(offset).unwrap()]);
                replica.start(scene);
                self.kills += 1;
            }
            Disaster::Restart => {
                scene.stack.compact().await.unwrap();
                let gone = Timestamp::now();
                scene.stack.restart_api_server().await.unwrap();
                self.restarts.push((gone, Timestamp::now()));
            }
            Disaster::Storm => {
                self.storm(scene).await;
                self.storms += 1;
            }
            Disaster::Jump => {
                let which = usize::from(self.throw(2) == 1);
                self.replicas[which].clock.set(-600);
                self.jumps += 1;
            }
        }
        // One that lost its lease has ended by itself, as a pod does that is started again.
        for replica in &mut self.replicas {
            if replica.operator.exited().is_some() {
                replica.start(scene);
            }
        }
    }

    async fn storm(&mut self, scene: &Scene) {
        let kind = GroupVersionKind::gvk("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema");
        let schemas: Api<DynamicObject> = Api::all_with(scene.client.clone(), &ApiResource::from_gvk(&kind));
        let subject = |user: &str| format!("{{kind: User, user: {{name: {user}}}}}");
        let schema = format!(
            "apiVersion: flowcontrol.apiserver.k8s.io/v1\n\
             kind: FlowSchema\n\
             metadata: {{name: storm}}\n\
             spec:\n  \
               matchingPrecedence: 2\n  \
               priorityLevelConfiguration: {{name: storm}}\n  \
               rules:\n  \
               - subjects: [{}, {}, {}]\n    \
                 resourceRules: [{{verbs: ['*'], apiGroups: ['*'], resources: ['*'], clusterScope: true, namespaces: ['*']}}]\n",
            subject(USER),
            subject(SECOND_USER),
            subject(WITNESS),
        );
        scene.stack.apply(&schema).await.unwrap();
        // The API server takes some seconds to do what it is told.
        let witness = Kind::Cluster.api(&scene.stack.client(WITNESS).await.unwrap(), Some(NAMESPACE));
        eventually("a storm", SOON, || async {
            match witness.get("any").await {
                Err(kube::Error::Api(answer)) if answer.code == 429 => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await
        .unwrap();
        tokio::time::sleep(Duration::from_millis(2000 + self.throw(4000))).await;
        schemas.delete("storm", &DeleteParams::default()).await.unwrap();
    }

    /// Fails unless the operators noticed.
    pub(super) fn was_felt(&self, scene: &Scene) {
        let requests = scene.stack.audit().requests().unwrap();
        let count = |user: &str, is: &dyn Fn(&capt_stack::Request) -> bool| {
            requests.iter().filter(|request| request.user == user && is(request)).count()
        };
        let mut refused = 0;
        for Replica { user, clock: _, operator: _ } in &self.replicas {
            let wrote = count(user, &|request| {
                request.code < 300
                    && ["create", "patch"].contains(&request.verb.as_str())
                    && request.group.ends_with("cluster.x-k8s.io")
            });
            assert!(wrote > 0, "{user} never led");
            refused += count(user, &|request| request.code == 429);
            // An API server that was just started does not know the roles yet.
            let is_late = |request: &capt_stack::Request| {
                let soon = |back: Timestamp| back + SignedDuration::from_secs(10);
                self.restarts.iter().all(|(gone, back)| request.at < *gone || request.at > soon(*back))
            };
            let forbidden = count(user, &|request| request.code == 403 && is_late(request));
            println!("{user}: {wrote} writes, {} conflicts", count(user, &|request| request.code == 409));
            assert_eq!(forbidden, 0, "{user} lacks rights");
        }
        assert!(refused > self.storms, "{refused} requests were answered with 429");
    }
}

impl Replica {
    fn start(&mut self, scene: &Scene) {
        self.operator = start(scene, self.user, &self.clock);
    }
}

fn start(scene: &Scene, user: &str, clock: &WrongClock) -> Operator {
    Operator::start_in(&scene.stack, user, &TERMS, &clock.environment()).unwrap()
}
