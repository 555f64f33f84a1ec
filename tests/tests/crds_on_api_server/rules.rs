//! Each CEL rule refuses its bad object, and says which field and what to write instead.

use std::collections::BTreeSet;

use capt_stack::{Tier, shared};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::{Value, json};

use crate::server::Server;

/// A step that a rule refuses, or one that looks like it and is allowed.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Spec and status of the stored object; `None` for a creation.
    pub(crate) before: Option<(Value, Value)>,
    pub(crate) spec: Value,
    /// What the refusal must say; `None` if the step is allowed.
    pub(crate) refusal: Option<&'static str>,
}

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Cluster,
    ControlPlane,
    Apply,
    Template,
    ClusterTemplate,
    ControlPlaneTemplate,
}

impl Kind {
    pub(crate) fn object(self, name: &str, spec: &Value) -> Value {
        let (group, kind) = match self {
            Self::Cluster => ("infrastructure", "CAPTCluster"),
            Self::ControlPlane => ("controlplane", "CAPTControlPlane"),
            Self::Apply => ("infrastructure", "WorkspaceTemplateApply"),
            Self::Template => ("infrastructure", "WorkspaceTemplate"),
            Self::ClusterTemplate => ("infrastructure", "CAPTClusterTemplate"),
            Self::ControlPlaneTemplate => ("controlplane", "CAPTControlPlaneTemplate"),
        };
        json!({
            "apiVersion": format!("{group}.cluster.x-k8s.io/v1beta1"),
            "kind": kind,
            "metadata": {"name": name},
            "spec": spec,
        })
    }
}

fn create(name: &'static str, kind: Kind, spec: Value, refusal: impl Into<Option<&'static str>>) -> Step {
    Step { name, kind, before: None, spec, refusal: refusal.into() }
}

fn update(
    name: &'static str,
    kind: Kind,
    before: Value,
    spec: Value,
    refusal: impl Into<Option<&'static str>>,
) -> Step {
    Step { name, kind, before: Some((before, Value::Null)), spec, refusal: refusal.into() }
}

fn with_status(mut step: Step, status: Value) -> Step {
    step.before = step.before.map(|(spec, _)| (spec, status));
    step
}

fn cluster(more: Value) -> Value {
    with(json!({"region": "eu-west-1"}), more)
}

fn control_plane(more: Value) -> Value {
    with(json!({"version": "1.31", "workspaceTemplateRef": {"name": "eks"}}), more)
}

fn template(more: Value) -> Value {
    json!({"template": {"spec": {"forProvider": with(json!({"source": "Inline", "module": "#"}), more)}}})
}

#[allow(clippy::needless_pass_by_value, reason = "called like its neighbours")]
fn class_template(spec: Value) -> Value {
    json!({"template": {"spec": spec}})
}

fn with(mut base: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("an object is needed") };
    base.as_object_mut().unwrap().extend(more);
    base
}

pub(crate) fn steps() -> Vec<Step> {
    let mut steps = cluster_steps();
    steps.extend(control_plane_steps());
    steps.extend(other_steps());
    steps
}

const REGION: &str = "region must be the code of an AWS region: write it like";
const ONE_SOURCE: &str = "existingVpcId and vpcTemplateRef exclude each other: keep";
const VPC_ID: &str = "existingVpcId must be the id of a VPC: write it like";
const VPC_STAYS: &str = "existingVpcId cannot be changed or removed";
const TEMPLATE_STAYS: &str = "vpcTemplateRef cannot be removed";
const APPLY_NAME: &str = "workspaceTemplateApplyName cannot be changed once ready";
const CONFIRM: &str = "RecreateWorkspace delete infrastructure: add parameters";
const CLUSTER_TIMEOUT: &str = "timeouts.controlPlaneTimeout has no meaning for a VPC: set it on the CAPTControlPlane";
const CP_REGION: &str = "controlPlaneConfig.region cannot be changed or removed";
const VERSION: &str = "version must be a Kubernetes version: write it like";
const FILES: &str = "varFiles need the reference that their source names: secretKeyRef for SecretKey";
const ITSELF: &str = "waitForWorkspaces names this apply itself, which would wait for ever: remove that entry";
const DOWNGRADE: &str = "version cannot go below the version that runs";

fn cluster_steps() -> Vec<Step> {
    use Kind::{Cluster, ClusterTemplate};
    let (template_ref, id) = (json!({"name": "vpc"}), "vpc-0a1b2c3d4e5f67890");
    let templated = || cluster(json!({"vpcTemplateRef": {"name": "vpc"}}));
    let existing = || cluster(json!({"existingVpcId": "vpc-0a1b2c3d4e5f67890"}));
    let named = |name: &str| cluster(json!({"workspaceTemplateApplyName": name}));
    let ready = || json!({"ready": true});
    let recreate = |parameters: Value| json!({"recoveryStrategy": {"actions": [{"type": "Reread"}, with(json!({"type": "RecreateWorkspace"}), parameters)]}});
    vec![
        create("no VPC at all", Cluster, cluster(json!({})), None),
        create("a region of a partition", Cluster, json!({"region": "us-isob-east-1"}), None),
        create("a city as region", Cluster, json!({"region": "Ireland"}), REGION),
        create("no region", Cluster, json!({"region": ""}), REGION),
        update(
            "another region",
            Cluster,
            cluster(json!({})),
            json!({"region": "eu-west-2"}),
            "region cannot be changed",
        ),
        create("both VPCs", Cluster, cluster(json!({"vpcTemplateRef": template_ref, "existingVpcId": id})), ONE_SOURCE),
        create("an empty id", Cluster, cluster(json!({"vpcTemplateRef": template_ref, "existingVpcId": ""})), None),
        update("both VPCs later", Cluster, templated(), with(templated(), json!({"existingVpcId": id})), ONE_SOURCE),
        create(
            "both VPCs in a template",
            ClusterTemplate,
            class_template(json!({"vpcTemplateRef": template_ref, "existingVpcId": id})),
            ONE_SOURCE,
        ),
        create("a region in a template", ClusterTemplate, class_template(json!({"region": "Ireland"})), REGION),
        create("an ARN as id", Cluster, cluster(json!({"existingVpcId": "arn:aws:ec2:eu-west-1:1:vpc/vpc-1"})), VPC_ID),
        create("an ARN in a template", ClusterTemplate, class_template(json!({"existingVpcId": "arn"})), VPC_ID),
        update("a VPC after none", Cluster, cluster(json!({})), existing(), None),
        update("a template after none", Cluster, cluster(json!({})), templated(), None),
        update("another VPC", Cluster, existing(), cluster(json!({"existingVpcId": "vpc-1"})), VPC_STAYS),
        update("no VPC any more", Cluster, existing(), cluster(json!({})), VPC_STAYS),
        update("another template", Cluster, templated(), cluster(json!({"vpcTemplateRef": {"name": "vpc-v2"}})), None),
        update("no template any more", Cluster, templated(), cluster(json!({})), TEMPLATE_STAYS),
        update("a VPC instead of a template", Cluster, templated(), existing(), TEMPLATE_STAYS),
        create(
            "a control plane's timeout",
            Cluster,
            cluster(json!({"timeouts": {"controlPlaneTimeout": 5}})),
            CLUSTER_TIMEOUT,
        ),
        create(
            "the same in a template",
            ClusterTemplate,
            class_template(json!({"timeouts": {"controlPlaneTimeout": 5}})),
            CLUSTER_TIMEOUT,
        ),
        create("recreation by chance", Cluster, cluster(recreate(json!({}))), CONFIRM),
        create("recreation refused", Cluster, cluster(recreate(json!({"parameters": {"confirm": "no"}}))), CONFIRM),
        create("recreation confirmed", Cluster, cluster(recreate(json!({"parameters": {"confirm": "true"}}))), None),
        create("recreation in a template", ClusterTemplate, class_template(recreate(json!({}))), CONFIRM),
        update("another apply before ready", Cluster, named("taken"), named("free"), None),
        with_status(update("an apply's name at last", Cluster, cluster(json!({})), named("mine"), None), ready()),
        with_status(update("another apply", Cluster, named("mine"), named("yours"), APPLY_NAME), ready()),
        with_status(update("no apply", Cluster, named("mine"), cluster(json!({})), APPLY_NAME), ready()),
        update("no spec any more", Cluster, cluster(json!({})), Value::Null, "spec cannot be removed"),
    ]
}

fn control_plane_steps() -> Vec<Step> {
    use Kind::{ControlPlane, ControlPlaneTemplate};
    let config = |region: &str| control_plane(json!({"controlPlaneConfig": {"region": region}}));
    let version = |version: &str| control_plane(json!({"version": version}));
    let named = |name: &str| control_plane(json!({"workspaceTemplateApplyName": name}));
    let endpoint = |host: &str| control_plane(json!({"controlPlaneEndpoint": {"host": host, "port": 443}}));
    let ready = || json!({"ready": true});
    let runs = |version: &str| json!({"version": version});
    let recreate = json!({"recoveryStrategy": {"actions": [{"type": "RecreateWorkspace"}]}});
    vec![
        create("a version with a patch level", ControlPlane, version("v1.31.4-eks-1+x"), None),
        create("a word as version", ControlPlane, version("latest"), VERSION),
        create("a major version", ControlPlane, version("1"), VERSION),
        create("a region of China", ControlPlane, config("cn-north-1"), None),
        create("a zone as region", ControlPlane, config("eu-west-1a"), REGION),
        create(
            "a zone in a template",
            ControlPlaneTemplate,
            class_template(
                json!({"workspaceTemplateRef": {"name": "eks"}, "controlPlaneConfig": {"region": "eu-west-1a"}}),
            ),
            REGION,
        ),
        create(
            "a placeholder in a template",
            ControlPlaneTemplate,
            class_template(
                json!({"workspaceTemplateRef": {"name": "eks"}, "version": "${builtin.controlPlane.version}"}),
            ),
            None,
        ),
        create(
            "recreation in a template",
            ControlPlaneTemplate,
            class_template(with(json!({"workspaceTemplateRef": {"name": "eks"}}), recreate.clone())),
            CONFIRM,
        ),
        create("recreation by chance", ControlPlane, control_plane(recreate), CONFIRM),
        update("a region at last", ControlPlane, control_plane(json!({})), config("eu-west-1"), None),
        update("another region", ControlPlane, config("eu-west-1"), config("eu-west-2"), CP_REGION),
        update("no region any more", ControlPlane, config("eu-west-1"), control_plane(json!({})), CP_REGION),
        with_status(update("an upgrade", ControlPlane, version("1.31"), version("1.32"), None), runs("v1.31.4")),
        with_status(update("a wish taken back", ControlPlane, version("1.32"), version("1.31"), None), runs("v1.31.4")),
        with_status(update("a downgrade", ControlPlane, version("1.31"), version("1.9"), DOWNGRADE), runs("v1.31.4")),
        with_status(
            update("a downgrade written otherwise", ControlPlane, version("v1.31.4"), version("1.30.9"), DOWNGRADE),
            runs("1.31"),
        ),
        with_status(update("another apply", ControlPlane, named("mine"), named("yours"), APPLY_NAME), ready()),
        with_status(
            update("another apply before ready", ControlPlane, named("mine"), named("yours"), None),
            json!({"ready": false}),
        ),
        with_status(update("an apply's name at last", ControlPlane, named(""), named("yours"), None), ready()),
        with_status(
            update("an endpoint at last", ControlPlane, control_plane(json!({})), endpoint("a.invalid"), None),
            ready(),
        ),
        with_status(
            update("an endpoint repaired", ControlPlane, endpoint("https://a.invalid"), endpoint("a.invalid"), None),
            ready(),
        ),
        update("no spec any more", ControlPlane, control_plane(json!({})), Value::Null, "spec cannot be removed"),
    ]
}

fn other_steps() -> Vec<Step> {
    use Kind::{Apply, ClusterTemplate, ControlPlaneTemplate, Template};
    let waits = |other: Value| json!({"templateRef": {"name": "t"}, "waitForWorkspaces": [{"name": "else"}, other]});
    let file = |file: Value| template(json!({"varFiles": [file]}));
    let key = json!({"name": "n", "namespace": "ns", "key": "k"});
    vec![
        create("a wait for itself", Apply, waits(json!({"name": SELF})), ITSELF),
        create(
            "a wait for one of that name elsewhere",
            Apply,
            waits(json!({"name": SELF, "namespace": "elsewhere"})),
            None,
        ),
        update("a wait for itself later", Apply, waits(json!({"name": "x"})), waits(json!({"name": SELF})), ITSELF),
        update("another template", Apply, waits(json!({"name": "x"})), json!({"templateRef": {"name": "t2"}}), None),
        create(
            "a Secret's file without its Secret",
            Template,
            file(json!({"source": "SecretKey", "configMapKeyRef": key})),
            FILES,
        ),
        create("a ConfigMap's file without its ConfigMap", Template, file(json!({"source": "ConfigMapKey"})), FILES),
        create("a file with its key", Template, file(json!({"source": "ConfigMapKey", "configMapKeyRef": key})), None),
        create(
            "an empty module",
            Template,
            template(json!({"module": ""})),
            "module must not be empty: write the Terraform module",
        ),
        update("no spec any more", Apply, waits(json!({"name": "x"})), Value::Null, "spec cannot be removed"),
        update("no spec any more", Template, template(json!({})), Value::Null, "spec cannot be removed"),
        update("no spec any more", ClusterTemplate, class_template(json!({})), Value::Null, "spec cannot be removed"),
        update(
            "no spec any more",
            ControlPlaneTemplate,
            class_template(json!({"workspaceTemplateRef": {"name": "eks"}})),
            Value::Null,
            "spec cannot be removed",
        ),
    ]
}

/// Stands for the name of the object itself.
const SELF: &str = "SELF";

fn named(spec: &Value, name: &str) -> Value {
    serde_json::from_str(&spec.to_string().replace(SELF, name)).unwrap()
}

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn each_rule_refuses_its_bad_object_and_nothing_else() {
    let stack = shared(Tier::ApiServer).await.unwrap();
    let server = Server::new(&stack, "rules", &capt_api::crds::all()).await;
    let mut uncovered = all_rules();
    let mut wrong = Vec::new();
    for (number, Step { name, kind, before, spec, refusal }) in steps().into_iter().enumerate() {
        let object_name = format!("step-{number}");
        let bad = kind.object(&object_name, &named(&spec, &object_name));
        let outcome = match before {
            None => server.create(&bad).await,
            Some((before, status)) => {
                let stored = kind.object(&object_name, &named(&before, &object_name));
                server.create(&stored).await.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
                if !status.is_null() {
                    server.set_status(&stored, &status).await.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
                }
                server.replace_spec(&stored, &bad["spec"]).await
            }
        };
        match (outcome, refusal) {
            (Ok(_), None) => {}
            (Err(said), Some(expected)) if said.contains(expected) => {
                let kind = bad["kind"].as_str().unwrap();
                uncovered.retain(|(of, message)| of != kind || !said.contains(message.as_str()));
            }
            (Ok(_), Some(expected)) => wrong.push(format!("{name} is accepted instead of refused with: {expected}")),
            (Err(said), _) => wrong.push(format!("{name} is refused with: {said}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(uncovered.is_empty(), "rules that refused nothing: {uncovered:?}");
}

/// The same steps without an API server, so that a broken rule is found wherever there is a compiler.
///
/// The evaluator gives `oldSelf` as it is where the API server gives an optional value, so that rules
/// which look at it report an error instead of their message; they refuse all the same.
#[test]
fn each_rule_judges_the_same_in_process() {
    let mut wrong = Vec::new();
    for Step { name, kind, before, spec, refusal } in steps() {
        let object = |spec: &Value, status: &Value| {
            let mut object = kind.object("step", &named(spec, "step"));
            for (field, value) in [("spec", spec), ("status", status)] {
                if value.is_null() {
                    object.as_object_mut().unwrap().remove(field);
                } else if field == "status" {
                    object[field] = value.clone();
                }
            }
            object
        };
        let status = before.as_ref().map_or(Value::Null, |(_, status)| status.clone());
        let old = before.map(|(spec, status)| object(&spec, &status));
        let new = object(&spec, &status);
        let crd = capt_api::crds::all().into_iter().find(|crd| new["kind"] == crd.spec.names.kind.as_str()).unwrap();
        let schema = crd.spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
        let mut schema = serde_json::to_value(schema).unwrap();
        // What the API server adds by itself.
        schema["properties"]["metadata"] = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        let said = match kube_cel::Validator::new().validate(&schema, &new, old.as_ref()) {
            Ok(()) => String::new(),
            Err(errors) => errors.to_string(),
        };
        match refusal {
            None if said.is_empty() => {}
            Some(expected) if said.contains(expected) || said.contains("want 'optional_type'") => {}
            None | Some(_) => wrong.push(format!("{name}: {refusal:?} expected, but: {said}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The default name of an apply may be dropped, since it is filled in again.
#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn the_default_name_of_an_apply_may_be_dropped() {
    let stack = shared(Tier::ApiServer).await.unwrap();
    let server = Server::new(&stack, "dropped", &capt_api::crds::all()).await;
    for (kind, spec, name) in [
        (Kind::Cluster, cluster(json!({})), "demo-vpc"),
        (Kind::ControlPlane, control_plane(json!({})), "demo-eks-controlplane-apply"),
    ] {
        let object = kind.object("demo", &with(spec.clone(), json!({"workspaceTemplateApplyName": name})));
        server.create(&object).await.unwrap();
        server.set_status(&object, &json!({"ready": true})).await.unwrap();
        server.replace_spec(&object, &spec).await.unwrap();
    }
}

/// Kind and message of every rule.
fn all_rules() -> BTreeSet<(String, String)> {
    let mut rules = BTreeSet::new();
    for crd in capt_api::crds::all() {
        let schema = crd.spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
        each_rule(schema, "", &mut |_, message| {
            rules.insert((crd.spec.names.kind.clone(), message.to_owned()));
        });
    }
    rules
}

fn each_rule(schema: &JSONSchemaProps, field: &str, visit: &mut impl FnMut(&str, &str)) {
    for rule in schema.x_kubernetes_validations.iter().flatten() {
        let field = rule.field_path.as_deref().and_then(|path| path.rsplit('.').next()).unwrap_or(field);
        visit(field, rule.message.as_deref().unwrap());
    }
    for (name, property) in schema.properties.iter().flatten() {
        each_rule(property, name, visit);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        each_rule(items, field, visit);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
        each_rule(values, field, visit);
    }
}

#[test]
fn each_message_names_the_field_and_a_fix() {
    for crd in capt_api::crds::all() {
        let schema = crd.spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
        each_rule(schema, "spec", &mut |field, message| {
            assert!(message.contains(field), "{field} is not named: {message}");
            assert!(message.contains(": "), "no fix is named: {message}");
        });
    }
}
