//! Defects put into what CAPT decides and sends, most of them read in the Go implementation: each must be
//! seen by a layer of the proof.
//!
//! They rewrite what a pass sees, plans or asks for, and stay outside of the product.

use capt_reconcile::{
    executor::Request,
    object::{Kind, Object, ObjectKey},
    plan::{Action, Event, EventType, Op, Plan, Precondition},
    world::World,
};
use capt_sim::api::Change;
use capt_status::{Span, Time};
use serde_json::{Value, json};

/// Where a defect sits.
pub enum Way {
    /// In what a pass decides.
    Plan(fn(&World, &mut Plan, Time)),
    /// In what is sent.
    Request(fn(&mut Request)),
    /// In what a pass sees.
    Sees(fn(&World) -> Option<World>),
    /// In what a watch delivers.
    Watch(fn(&Change) -> Option<Span>),
}

/// A defect.
pub struct Mutant {
    pub id: &'static str,
    pub what: &'static str,
    pub way: Way,
}

const fn plan(id: &'static str, what: &'static str, way: fn(&World, &mut Plan, Time)) -> Mutant {
    Mutant { id, what, way: Way::Plan(way) }
}

const fn request(id: &'static str, what: &'static str, way: fn(&mut Request)) -> Mutant {
    Mutant { id, what, way: Way::Request(way) }
}

/// An object of ours as JSON.
fn object(world: &World, key: &ObjectKey) -> Value {
    match world.peek(key) {
        Some(Object::CaptCluster(object)) => serde_json::to_value(&**object).unwrap(),
        Some(Object::ControlPlane(object)) => serde_json::to_value(&**object).unwrap(),
        Some(Object::Apply(object)) => serde_json::to_value(&**object).unwrap(),
        _ => Value::Null,
    }
}

fn guard(object: &Value) -> Precondition {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    Precondition::Observed { uid: text("uid"), resource_version: text("resourceVersion") }
}

fn act(plan: &mut Plan, op: Op, target: ObjectKey, precondition: Precondition) {
    plan.actions.push(Action { op, target, precondition, unless: Vec::new(), reason: "a defect".to_owned() });
}

/// Rewrites the status that the plan writes, or the stored one if it writes none.
fn status(world: &World, plan: &mut Plan, rewrite: impl Fn(&mut Value)) {
    for action in &mut plan.actions {
        if let (Op::ApplyStatus { manager: _, status }, true) = (&mut action.op, action.target == plan.object) {
            return rewrite(status);
        }
    }
    let stored = object(world, &plan.object);
    let mut status = stored["status"].clone();
    if status.is_null() {
        return;
    }
    rewrite(&mut status);
    if status != stored["status"] {
        let op = Op::ApplyStatus { manager: "capt-controlplane", status };
        act(plan, op, plan.object.clone(), guard(&stored));
    }
}

/// The same, of objects of one kind.
fn status_of(kind: Kind, world: &World, plan: &mut Plan, rewrite: impl Fn(&mut Value)) {
    if plan.object.kind == kind {
        status(world, plan, rewrite);
    }
}

fn set(status: &mut Value, type_: &str, value: &str) {
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        if condition["type"] == type_ {
            condition["status"] = json!(value);
        }
    }
}

fn is_deleting(world: &World, plan: &Plan) -> bool {
    !object(world, &plan.object)["metadata"]["deletionTimestamp"].is_null()
}

/// Every Workspace or apply that the plan makes.
fn created(plan: &mut Plan, kind: fn(Kind) -> bool, rewrite: impl Fn(&mut Value)) {
    for action in plan.actions.iter_mut().filter(|action| kind(action.target.kind)) {
        if let Op::Create { body } = &mut action.op {
            rewrite(body);
        }
    }
}

fn is_workspace(kind: Kind) -> bool {
    matches!(kind, Kind::Workspace(_))
}

fn workspace_of(plan: &Plan) -> ObjectKey {
    let name = plan.object.name.strip_suffix("-apply").unwrap_or(&plan.object.name);
    ObjectKey::new(Kind::Workspace(capt_api::foreign::WorkspaceApi::Cluster), "", name)
}

/// All of them.
pub const ALL: &[Mutant] = &[
    request("S1", "the host of the endpoint keeps `https://`", |request| {
        if let Request::MergePatch { body, .. } = request
            && let Some(host) = body["spec"]["controlPlaneEndpoint"]["host"].as_str()
        {
            body["spec"]["controlPlaneEndpoint"]["host"] = json!(format!("https://{host}"));
        }
    }),
    plan("S2", "an endpoint that is found counts as an error and makes it Failed", |world, plan, _| {
        status_of(Kind::CaptControlPlane, world, plan, |status| {
            if status["endpoint"].is_string() {
                status["state"] = json!("Failed");
                status["phase"] = json!("Failed");
                status["failureReason"] = json!("CreateError");
            }
        });
    }),
    plan("S3", "two parsers of the endpoint disagree", |world, plan, _| {
        status_of(Kind::CaptControlPlane, world, plan, |status| {
            if let Some(endpoint) = status["endpoint"].as_str().map(str::to_owned) {
                let other = endpoint.strip_suffix(":443").map_or_else(|| format!("{endpoint}:443"), str::to_owned);
                status["endpoint"] = json!(other);
            }
        });
    }),
    plan("S4", "without an endpoint it is Ready", |world, plan, _| {
        status_of(Kind::CaptControlPlane, world, plan, |status| {
            if status["state"] == "Provisioning" || status["state"] == "Configuring" {
                status["state"] = json!("Ready");
            }
        });
    }),
    plan("S5", "an empty endpoint counts", |world, plan, _| {
        status_of(Kind::CaptControlPlane, world, plan, |status| {
            if status["endpoint"].is_null() {
                status["endpoint"] = json!(":443");
                status["state"] = json!("Ready");
            }
        });
    }),
    plan("S6", "not ready means not initialized", |world, plan, _| {
        status_of(Kind::CaptControlPlane, world, plan, |status| {
            if status["state"] != "Ready" {
                status["initialized"] = json!(false);
                status["initialization"] = Value::Null;
            }
        });
    }),
    plan("S7", "every error is a failureReason", |world, plan, _| {
        status(world, plan, |status| {
            if status["state"] == "Degraded" || status["state"] == "Recovering" {
                status["failureReason"] = json!("CreateError");
            }
        });
    }),
    plan("S8", "two passes write the status of the Cluster", |_, plan, now| {
        if let Kind::CaptCluster | Kind::CaptControlPlane = plan.object.kind
            && !plan.actions.is_empty()
        {
            let target = ObjectKey::new(Kind::Cluster, plan.object.namespace.as_deref().unwrap_or_default(), "demo");
            let status = json!({"failureMessage": format!("{} {now}", plan.object)});
            act(plan, Op::MergeStatus { manager: "capt-cluster-status", status }, target, Precondition::MustNotExist);
            let last = plan.actions.pop().unwrap();
            plan.actions.push(Action { precondition: Precondition::Uid("uid-3".to_owned()), ..last });
        }
    }),
    plan("S9", "Ready is written and taken back in the same pass", |_, plan, now| {
        let Some(index) = plan.actions.iter().position(|action| {
            matches!(action.op, Op::ApplyStatus { .. }) && matches!(action.precondition, Precondition::Observed { .. })
        }) else {
            return;
        };
        let mut first = plan.actions[index].clone();
        if let Op::ApplyStatus { status, .. } = &mut first.op {
            for condition in status["conditions"].as_array_mut().into_iter().flatten() {
                if condition["type"] == "Ready" {
                    condition["status"] = json!(if condition["status"] == "True" { "False" } else { "True" });
                    condition["lastTransitionTime"] = json!(now);
                }
            }
        }
        plan.actions.insert(index, first);
        plan.actions[index + 1].precondition = Precondition::AfterAction(index);
    }),
    plan("S10", "last outputs are dropped while the Workspace is not ready", |world, plan, _| {
        status_of(Kind::CaptControlPlane, world, plan, |status| {
            if status["workspaceStatus"]["ready"] != true {
                status["workspaceStatus"] = Value::Null;
            }
        });
    }),
    plan("S11", "Synced is ignored", |world, plan, _| {
        status_of(Kind::CaptControlPlane, world, plan, |status| {
            if status["state"] == "Degraded" {
                status["state"] = json!("Ready");
                set(status, "Healthy", "True");
            }
        });
    }),
    plan("S12", "no deadline is ever looked at", |world, plan, _| {
        plan.next = None;
        status(world, plan, |status| {
            if status["state"] == "Failed" {
                status["state"] = json!("Provisioning");
                status["failureReason"] = Value::Null;
            }
        });
    }),
    Mutant {
        id: "S13",
        what: "a pause is ignored",
        way: Way::Sees(|world| {
            let key = world.keys(Kind::Cluster).next()?.clone();
            let Some(Object::Cluster(cluster)) = world.peek(&key) else { return None };
            let mut cluster = (**cluster).clone();
            cluster.paused = false;
            let mut other = world.clone();
            other.deleted(&key, 0);
            other.watched(key, 0, Object::Cluster(std::sync::Arc::new(cluster)));
            Some(other)
        }),
    },
    plan("S14", "a status does not say which generation it is about", |_, plan, _| {
        for action in &mut plan.actions {
            if let Op::ApplyStatus { status, .. } = &mut action.op {
                status["observedGeneration"] = Value::Null;
            }
        }
    }),
    plan("S15", "without its Cluster an object says nothing", |world, plan, _| {
        if object(world, &plan.object)["metadata"]["ownerReferences"].is_null() {
            plan.actions.clear();
        }
    }),
    plan("S16", "a Cluster that is not seen is taken for gone, and the VPC is deleted", |world, plan, _| {
        if plan.object.kind == Kind::CaptCluster && world.keys(Kind::Cluster).next().is_none() {
            let name = format!("{}-vpc", plan.object.name);
            let apply = ObjectKey::new(Kind::Apply, plan.object.namespace.as_deref().unwrap_or_default(), &name);
            let stored = object(world, &apply);
            if !stored.is_null() {
                act(plan, Op::Delete, apply, guard(&stored));
            }
        }
    }),
    plan("S17", "the owner reference is written by itself", |world, plan, _| {
        let stored = object(world, &plan.object);
        let Some(owners) = stored["metadata"]["ownerReferences"].as_array() else { return };
        if plan.object.kind == Kind::CaptCluster && !owners.iter().any(|owner| owner["controller"] == true) {
            let mut owners = owners.clone();
            owners[0]["controller"] = json!(true);
            let body = json!({"metadata": {"ownerReferences": owners}});
            act(plan, Op::MergePatch { body }, plan.object.clone(), guard(&stored));
        }
    }),
    request("S18", "retainVpcOnDelete does not reach the apply", |request| {
        if let Request::Create { body, .. } | Request::MergePatch { body, .. } = request
            && let Some(spec) = body["spec"].as_object_mut()
        {
            spec.remove("retainWorkspaceOnDelete");
        }
    }),
    plan("S19", "VPCFailed is never taken back", |world, plan, _| {
        let had = object(world, &plan.object)["status"]["conditions"]
            .as_array()
            .is_some_and(|all| all.iter().any(|it| it["type"] == "VPCFailed" && it["status"] == "True"));
        if had {
            status_of(Kind::CaptCluster, world, plan, |status| set(status, "VPCFailed", "True"));
        }
    }),
    plan("S20", "the spec of the apply is written in every pass", |world, plan, _| {
        if plan.object.kind == Kind::CaptCluster {
            let name = format!("{}-vpc", plan.object.name);
            let apply = ObjectKey::new(Kind::Apply, plan.object.namespace.as_deref().unwrap_or_default(), &name);
            let stored = object(world, &apply);
            if !stored.is_null() {
                act(plan, Op::MergePatch { body: json!({"spec": stored["spec"]}) }, apply, guard(&stored));
            }
        }
    }),
    plan("S21", "a Workspace that is there and not in the status is made again", |world, plan, _| {
        let (stored, workspace) = (object(world, &plan.object), workspace_of(plan));
        if plan.object.kind == Kind::Apply
            && stored["status"]["workspaceName"].is_null()
            && world.peek(&workspace).is_some()
        {
            plan.actions.clear();
            act(plan, Op::Create { body: json!({}) }, workspace, Precondition::MustNotExist);
        }
    }),
    plan("S22", "changes never reach a Workspace", |_, plan, _| {
        plan.actions.retain(|action| {
            !(is_workspace(action.target.kind)
                && matches!(&action.op, Op::MergePatch { body } if !body["spec"].is_null()))
        });
    }),
    plan("S23", "an apply stays Ready without its Workspace", |world, plan, _| {
        if world.peek(&workspace_of(plan)).is_none() && !is_deleting(world, plan) {
            status_of(Kind::Apply, world, plan, |status| {
                if status["workspaceName"].is_string() {
                    set(status, "Ready", "True");
                    set(status, "Synced", "True");
                }
            });
        }
    }),
    plan("S24", "each pass tells an event", |_, plan, _| {
        plan.events.push(Event { type_: EventType::Normal, reason: "Seen", note: String::new() });
    }),
    plan("S25", "without its template an apply tells nothing any more", |world, plan, _| {
        if plan.object.kind == Kind::Apply && world.keys(Kind::Template).count() < 2 {
            plan.actions.clear();
        }
    }),
    plan("S26", "values are put into the template as JSON text", |_, plan, _| {
        for action in plan.actions.iter_mut().filter(|action| is_workspace(action.target.kind)) {
            let (Op::Create { body } | Op::MergePatch { body }) = &mut action.op else { continue };
            for variable in body["spec"]["forProvider"]["vars"].as_array_mut().into_iter().flatten() {
                if let Some(text) = variable["value"].as_str() {
                    variable["value"] = json!(text.split('"').next());
                }
            }
        }
    }),
    plan("S27", "the Workspace of somebody else is taken", |world, plan, _| {
        let (stored, workspace) = (object(world, &plan.object), workspace_of(plan));
        let collides = stored["status"]["conditions"].to_string().contains("NameCollision");
        if plan.object.kind == Kind::Apply
            && collides
            && let Some(Object::Workspace(theirs)) = world.peek(&workspace)
        {
            let labels = json!({"capt.cluster.x-k8s.io/owner-uid": stored["metadata"]["uid"]});
            let uid = theirs.meta.uid.clone();
            plan.actions.clear();
            act(
                plan,
                Op::MergePatch { body: json!({"metadata": {"labels": labels}}) },
                workspace,
                Precondition::Uid(uid),
            );
        }
    }),
    plan("S28", "secretsReady before there is a kubeconfig", |world, plan, _| {
        status_of(Kind::CaptControlPlane, world, plan, |status| status["secretsReady"] = json!(true));
    }),
    plan("S29", "Secrets go to a fixed namespace", |_, plan, _| {
        for action in plan.actions.iter_mut().filter(|action| action.target.kind == Kind::Secret) {
            action.target = ObjectKey::new(action.target.kind, "fixed", &action.target.name);
        }
    }),
    plan("S30", "a deletion clears the endpoint of the Cluster", |world, plan, _| {
        if plan.object.kind == Kind::CaptControlPlane && is_deleting(world, plan) {
            let name = object(world, &plan.object)["metadata"]["ownerReferences"][0].clone();
            let (namespace, text) = (plan.object.namespace.clone().unwrap_or_default(), |field: &str| {
                name[field].as_str().unwrap_or_default().to_owned()
            });
            let cluster = ObjectKey::new(Kind::Cluster, &namespace, &text("name"));
            let op = Op::MergePatch { body: json!({"spec": {"controlPlaneEndpoint": null}}) };
            act(plan, op, cluster, Precondition::Uid(text("uid")));
        }
    }),
    plan("S31", "a VPC does not wait for the control plane in it", |world, plan, _| {
        let workspace = workspace_of(plan);
        if plan.object.kind == Kind::Apply
            && is_deleting(world, plan)
            && let Some(Object::Workspace(ours)) = world.peek(&workspace)
        {
            let uid = ours.meta.uid.clone();
            plan.actions.retain(|action| action.target != workspace);
            act(plan, Op::Delete, workspace, Precondition::Uid(uid));
        }
    }),
    Mutant {
        id: "S32",
        what: "children are not watched but polled each five minutes",
        way: Way::Watch(|change| {
            matches!(change.key.kind, Kind::Apply | Kind::Workspace(_)).then(|| Span::from_minutes(5))
        }),
    },
    request("S33", "nothing keeps an old leader from writing: no resourceVersion is sent", |request| match request {
        Request::MergePatch { body, .. } | Request::ApplyStatus { body, .. } | Request::MergeStatus { body, .. } => {
            if let Some(metadata) = body["metadata"].as_object_mut() {
                metadata.remove("resourceVersion");
            }
        }
        Request::JsonPatch { operations, .. } => {
            operations.retain(|operation| operation["path"] != "/metadata/resourceVersion");
        }
        Request::Create { .. } | Request::Delete { .. } | Request::Get { .. } | Request::List { .. } => {}
    }),
    plan("L1", "a finalizer goes when its children are not seen, without a look at what is there", |_, plan, _| {
        for action in &mut plan.actions {
            action.unless.clear();
        }
    }),
    plan("L2", "a Workspace does not say whose it is", |_, plan, _| {
        created(plan, is_workspace, |body| {
            if let Some(labels) = body["metadata"]["labels"].as_object_mut() {
                labels.remove("capt.cluster.x-k8s.io/owner-uid");
            }
        });
    }),
    plan("L3", "what vanished is made again although it was ready", |world, plan, _| {
        let workspace = workspace_of(plan);
        let stored = object(world, &plan.object);
        if plan.object.kind == Kind::Apply
            && stored["status"]["workspaceName"].is_string()
            && world.peek(&workspace).is_none()
            && !is_deleting(world, plan)
        {
            let body = json!({
                "apiVersion": "tf.upbound.io/v1beta1", "kind": "Workspace", "metadata": {"name": workspace.name},
                "spec": {"forProvider": {"module": "output \"vpc_id\" {}"}},
            });
            plan.actions.clear();
            act(plan, Op::Create { body }, workspace, Precondition::MustNotExist);
        }
    }),
    request("L4", "an update selects another Terraform state", |request| {
        if let Request::MergePatch { target, body } = request
            && is_workspace(target.kind)
        {
            body["metadata"]["annotations"]["crossplane.io/external-name"] = json!("another");
        }
    }),
    plan("L5", "a change of another version replaces the Workspace", |world, plan, _| {
        let workspace = workspace_of(plan);
        let changes = plan.actions.iter().any(|action| {
            action.target == workspace && matches!(&action.op, Op::MergePatch { body } if !body["spec"].is_null())
        });
        if changes && let Some(Object::Workspace(ours)) = world.peek(&workspace) {
            let uid = ours.meta.uid.clone();
            plan.actions.clear();
            act(plan, Op::Delete, workspace, Precondition::Uid(uid));
        }
    }),
];
