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
    api::{DeleteParams, DynamicObject, ListParams, VersionMatch},
    core::{ApiResource, GroupVersionKind},
};

use super::{NAMESPACE, Scene, clock::WrongClock};
use crate::{lease::TERMS, place::SOON};

/// By how many seconds clocks are wrong.
const OFFSETS: [i64; 5] = [0, -600, 0, 60, -90];

/// Who has the only place in a storm; nobody else asks as this user.
const OCCUPANT: &str = "occupant";

/// A priority at which the API server answers 429 to everything while one request is under way: even a level
/// without a share takes one at a time.
const PRIORITY: &str = "\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: storm}
spec:
  type: Limited
  limited: {nominalConcurrencyShares: 0, lendablePercent: 0, borrowingLimitPercent: 0, limitResponse: {type: Reject}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: occupant}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: occupant}]
";

/// A version that is never reached: the API server waits three seconds for it before it says so.
const FAR: &str = "9000000000000000000";

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
        self.restart_ended(scene);
    }

    /// One that lost its lease has ended by itself, as a pod does that is started again.
    fn restart_ended(&mut self, scene: &Scene) {
        for replica in &mut self.replicas {
            if replica.operator.exited().is_some() {
                replica.start(scene);
            }
        }
    }

    /// Lasts until an operator has felt it, and some seconds longer.
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
            subject(OCCUPANT),
        );
        let begin = Timestamp::now();
        scene.stack.apply(&schema).await.unwrap();
        let occupied = Kind::Cluster.api(&scene.stack.client(OCCUPANT).await.unwrap(), Some(NAMESPACE));
        let occupant = tokio::spawn(async move {
            let far = ListParams::default().at(FAR).matching(VersionMatch::NotOlderThan);
            loop {
                // Refused as everybody is, it tries again at once.
                if occupied.list(&far).await.is_err_and(|error| is_throttled(&error)) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        });
        eventually("an operator that is refused", SOON, || {
            // Those that ended are silent: with all of them, nobody would feel anything.
            self.restart_ended(scene);
            let requests = scene.stack.audit().requests().unwrap().since(begin);
            let refused = requests.iter().any(|it| it.code == 429 && [USER, SECOND_USER].contains(&it.user.as_str()));
            async move { if refused { Ok(()) } else { Err("none so far".to_owned()) } }
        })
        .await
        .unwrap();
        tokio::time::sleep(Duration::from_millis(2000 + self.throw(4000))).await;
        schemas.delete("storm", &DeleteParams::default()).await.unwrap();
        occupant.abort();
    }

    /// Fails unless the operators noticed.
    pub(super) fn was_felt(&self, scene: &Scene) {
        let requests = scene.stack.audit().requests().unwrap();
        let count = |user: &str, is: &dyn Fn(&capt_stack::Request) -> bool| {
            requests.iter().filter(|request| request.user == user && is(request)).count()
        };
        for Replica { user, clock: _, operator: _ } in &self.replicas {
            let wrote = count(user, &|request| {
                request.code < 300
                    && ["create", "patch"].contains(&request.verb.as_str())
                    && request.group.ends_with("cluster.x-k8s.io")
            });
            assert!(wrote > 0, "{user} never led");
            // An API server that was just started does not know the roles yet.
            let is_late = |request: &capt_stack::Request| {
                let soon = |back: Timestamp| back + SignedDuration::from_secs(10);
                self.restarts.iter().all(|(gone, back)| request.at < *gone || request.at > soon(*back))
            };
            let forbidden = count(user, &|request| request.code == 403 && is_late(request));
            let [conflicts, refused] = [409, 429].map(|code| count(user, &|request| request.code == code));
            println!("{user}: {wrote} writes, {conflicts} conflicts, {refused} refused in storms");
            assert_eq!(forbidden, 0, "{user} lacks rights");
        }
    }
}

impl Replica {
    fn start(&mut self, scene: &Scene) {
        self.operator = start(scene, self.user, &self.clock);
    }
}

fn is_throttled(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 429)
}

fn start(scene: &Scene, user: &str, clock: &WrongClock) -> Operator {
    Operator::start_in(&scene.stack, user, &TERMS, &clock.environment()).unwrap()
}
