//! Defects of the Go implementation around applies and their Workspaces, each as a test that it cannot
//! come back. The numbers are those of the list of defects that the project keeps.

use crate::workspaces::{
    APPLY, NAMESPACE, TEMPLATE, apply, assert_rest, condition, events, key, message, ready, shown, status, terraform,
    workspace, workspace_writes, world, writes,
};
use capt_api::foreign::WorkspaceApi;
use capt_reconcile::object::{Kind, ObjectKey};
use capt_sim::{
    Simulation,
    provider::{Ending, Outputs},
};
use capt_status::Span;
use serde_json::{Value, json};

fn fail(simulation: &mut Simulation, stderr: &'static str) {
    simulation.terraform(move |_| Outputs { result: Ending::Failure(stderr.to_owned()), ..Outputs::default() });
}

/// Only Ready was looked at, which has no message and stays True while a later apply fails.
#[test]
fn s11_an_error_that_only_synced_tells_is_told() {
    let mut simulation = ready();
    fail(&mut simulation, "creating EC2 VPC: VpcLimitExceeded: The maximum number of VPCs has been reached.");
    assert!(simulation.run());
    assert_eq!(
        [shown(&simulation, "Synced"), shown(&simulation, "Ready")],
        ["False VpcQuotaExceeded", "True Available"]
    );
    assert!(message(&simulation, "Synced").contains("maximum number of VPCs"));
    assert!(events(&simulation).contains(&"VpcQuotaExceeded"));
}

/// There was no pause at all.
#[test]
fn s13_a_paused_apply_changes_nothing() {
    let mut simulation = ready();
    crate::workspaces::annotate(&mut simulation, &key(Kind::Apply, APPLY), "cluster.x-k8s.io/paused", "");
    assert!(simulation.run());
    let seen = simulation.requests.len();
    simulation.api.edit(&key(Kind::Apply, APPLY), |apply| apply["spec"]["variables"]["cidr"] = json!("10.5.0.0/16"));
    simulation.api.delete(&key(Kind::Apply, APPLY), None);
    assert!(simulation.run());
    assert_eq!(writes(&simulation, seen), ["status WorkspaceTemplateApply/team/demo-apply"], "that it was seen");
    assert!(simulation.api.get(&workspace()).is_some());
}

/// No status said which generation it was about.
#[test]
fn s14_status_and_conditions_say_which_generation_they_are_about() {
    let mut simulation = ready();
    simulation.api.edit(&key(Kind::Apply, APPLY), |apply| apply["spec"]["variables"]["cidr"] = json!("10.5.0.0/16"));
    assert!(simulation.run());
    let apply = simulation.api.get(&key(Kind::Apply, APPLY)).unwrap();
    let generation = &apply["metadata"]["generation"];
    assert_ne!(*generation, json!(1));
    assert_eq!(apply["status"]["observedGeneration"], *generation);
    for condition in apply["status"]["conditions"].as_array().unwrap() {
        assert_eq!(condition["observedGeneration"], *generation, "{condition}");
    }
}

/// retainWorkspaceOnDelete was not honoured where the garbage collector took the apply.
#[test]
fn s18_a_retained_workspace_survives_its_apply() {
    let mut simulation = ready();
    simulation.api.edit(&key(Kind::Apply, APPLY), |apply| apply["spec"]["retainWorkspaceOnDelete"] = json!(true));
    assert!(simulation.run());
    let before = simulation.api.get(&workspace()).unwrap().clone();
    assert!(before["metadata"]["ownerReferences"].is_null(), "nothing for the garbage collector to follow");
    simulation.api.delete(&key(Kind::Apply, APPLY), None);
    assert!(simulation.run());
    assert!(simulation.api.get(&key(Kind::Apply, APPLY)).is_none());
    assert_eq!(*simulation.api.get(&workspace()).unwrap(), before);
}

/// The Workspace, the apply and its status were written on every pass.
#[test]
fn s20_a_pass_that_changes_nothing_writes_nothing() {
    let mut simulation = ready();
    // As the API server and the provider leave a spec: defaults filled in, empty lists dropped.
    simulation.api.edit(&workspace(), |workspace| {
        workspace["spec"]["forProvider"]["entrypoint"] = json!("");
        workspace["spec"]["forProvider"]["enableTerraformCLILogging"] = json!(false);
    });
    let seen = simulation.requests.len();
    assert!(simulation.run());
    assert_eq!(workspace_writes(&simulation, seen), [""; 0], "it means the same");
    assert_rest(&mut simulation);
}

/// A crash between the creation and the status made AlreadyExists for ever.
#[test]
fn s21_a_crash_after_any_write_ends_the_same() {
    let end = |simulation: &Simulation| {
        let conditions: Vec<String> =
            ["Synced", "Ready", "Stalled", "Paused"].map(|type_| shown(simulation, type_)).into();
        (simulation.api.get(&workspace()).unwrap()["spec"].clone(), status(simulation, "workspaceName"), conditions)
    };
    let undisturbed = ready();
    for crash in 0..=undisturbed.writes().count() {
        let mut simulation = world();
        simulation.api.create(&key(Kind::Apply, APPLY), apply(APPLY));
        simulation.run_capt_until_crash(crash);
        assert!(simulation.run());
        assert_eq!(end(&simulation), end(&undisturbed), "crash after {crash} writes");
        assert!(simulation.requests.iter().all(|(_, result)| result.is_ok()), "{crash}: {:#?}", simulation.requests);
        let creates = writes(&simulation, 0).iter().filter(|line| *line == "create Workspace/demo").count();
        assert_eq!(creates, 1, "crash after {crash} writes");
    }
}

/// Once applied, edits of template and variables went nowhere.
#[test]
fn s22_edits_reach_the_workspace_and_make_no_new_one() {
    let mut simulation = ready();
    let uid = simulation.api.get(&workspace()).unwrap()["metadata"]["uid"].clone();
    let seen = simulation.requests.len();
    simulation.api.edit(&key(Kind::Template, TEMPLATE), |template| {
        template["spec"]["template"]["spec"]["forProvider"]["module"] = json!("# edited");
    });
    assert!(simulation.run());
    simulation.api.edit(&key(Kind::Apply, APPLY), |apply| apply["spec"]["variables"]["cidr"] = json!("10.5.0.0/16"));
    assert!(simulation.run());
    assert_eq!(workspace_writes(&simulation, seen), ["patch Workspace/demo"; 2]);
    let workspace = simulation.api.get(&workspace()).unwrap();
    assert_eq!(workspace["metadata"]["uid"], uid);
    assert_eq!(workspace["spec"]["forProvider"]["module"], "# edited");
    assert_eq!(workspace["spec"]["forProvider"]["vars"][0]["value"], "10.5.0.0/16");
    assert!(
        status(&simulation, "lastAppliedRevision").as_str().unwrap().starts_with("2-"),
        "of the template's generation"
    );
}

/// A Workspace that was deleted by hand left the apply Ready and failing for ever.
#[test]
fn s23_a_workspace_that_is_gone_is_told() {
    let mut simulation = ready();
    simulation.api.delete(&workspace(), None);
    assert!(simulation.run());
    assert!(simulation.api.get(&workspace()).is_none(), "not made again: what it stood for was ready");
    assert_eq!(
        [shown(&simulation, "Ready"), shown(&simulation, "Stalled")],
        ["False WorkspaceMissing", "True WorkspaceMissing"]
    );
    assert!(events(&simulation).contains(&"WorkspaceMissing"));
}

/// Status and an event were written every ten seconds.
#[test]
fn s24_neither_status_nor_event_without_news() {
    let mut simulation = ready();
    // Times and ids in the provider's words change at each of its retries.
    for attempt in 0..50 {
        simulation.terraform(move |_| Outputs {
            result: Ending::Failure(format!(
                "creating EC2 VPC: operation error EC2: CreateVpc, https response error StatusCode: 400, RequestID: \
                 00000000-1111-2222-3333-{attempt:012}, api error VpcLimitExceeded: The maximum number of VPCs has been reached."
            )),
            ..Outputs::default()
        });
        assert!(simulation.run());
        if attempt == 0 {
            simulation.requests.clear();
            simulation.events.clear();
        }
    }
    assert_eq!(writes(&simulation, 0), [""; 0]);
    assert_eq!(events(&simulation), [""; 0]);
    simulation.api.now = simulation.api.now.plus(Span::from_seconds(7 * 24 * 3600));
    simulation.resync();
    assert_eq!(writes(&simulation, 0), [""; 0]);
}

/// Without its template an apply did not even look at its Workspace.
#[test]
fn s25_what_the_workspace_says_is_told_without_a_template() {
    let mut simulation = ready();
    simulation.api.delete(&key(Kind::Template, TEMPLATE), None);
    assert!(simulation.run());
    assert_eq!(
        [shown(&simulation, "Synced"), shown(&simulation, "Ready")],
        ["False TemplateNotFound", "True Available"]
    );
    fail(&mut simulation, "creating EC2 VPC: VpcLimitExceeded: The maximum number of VPCs has been reached.");
    assert!(simulation.run());
    assert!(message(&simulation, "Synced").contains("maximum number of VPCs"), "{}", message(&simulation, "Synced"));
    // And it goes without one.
    simulation.terraform(terraform);
    simulation.api.delete(&key(Kind::Apply, APPLY), None);
    assert!(simulation.run());
    assert!(simulation.api.get(&workspace()).is_none() && simulation.api.get(&key(Kind::Apply, APPLY)).is_none());
}

/// Values were put into JSON as text: a quote broke it, and could say more than one field.
#[test]
fn s26_a_value_stays_one_value_whatever_it_says() {
    let values = [
        "a\"b",
        "a\nb",
        "a\\b",
        "\", \"deletionPolicy\": \"Orphan",
        "${cidr}",
        "${WORKSPACE_NAME}",
        "$1",
        "{{ .x }}",
        "é\u{1f980}",
    ];
    for value in values {
        let mut simulation = world();
        let mut object = apply(APPLY);
        object["spec"]["variables"]["cidr"] = json!(value);
        simulation.api.create(&key(Kind::Apply, APPLY), object);
        assert!(simulation.run());
        let mut expected = crate::workspaces::spec();
        expected["forProvider"]["vars"][0]["value"] = json!(value);
        assert_eq!(simulation.api.get(&workspace()).unwrap()["spec"], expected, "{value}");
        assert_rest(&mut simulation);
    }
}

/// Two namespaces with equal names shared a Workspace.
#[test]
fn s27_equal_names_in_two_namespaces_share_nothing() {
    for api in WorkspaceApi::ALL {
        let mut simulation = world();
        let mut objects = Vec::new();
        for namespace in [NAMESPACE, "other"] {
            let mut object = apply(APPLY);
            object["metadata"]["namespace"] = json!(namespace);
            object["spec"]["templateRef"]["namespace"] = json!(NAMESPACE);
            object["spec"]["writeConnectionSecretToRef"] = json!({"name": "connection", "namespace": namespace});
            object["metadata"]["annotations"]["capt.cluster.x-k8s.io/workspace-api"] =
                json!(if api.is_namespaced() { "namespaced" } else { "cluster" });
            simulation.api.create(&ObjectKey::new(Kind::Apply, namespace, APPLY), object);
            assert!(simulation.run());
            objects.push(simulation.api.get(&ObjectKey::new(Kind::Workspace(api), namespace, "demo")).unwrap().clone());
        }
        if api.is_namespaced() {
            let names: Vec<&Value> = objects
                .iter()
                .map(|object| &object["metadata"]["annotations"]["crossplane.io/external-name"])
                .collect();
            assert_eq!(names, ["team-demo", "other-demo"], "each has a Terraform state of its own");
            continue;
        }
        assert_eq!(objects[0]["metadata"]["uid"], objects[1]["metadata"]["uid"]);
        assert_eq!(objects[0]["spec"], objects[1]["spec"], "the first one's is left alone");
        let other = ObjectKey::new(Kind::Apply, "other", APPLY);
        let told = simulation.api.get(&other).unwrap()["status"]["conditions"].to_string();
        assert!(told.contains("NameCollision") && told.contains("WorkspaceTemplateApply/team/demo-apply"), "{told}");
        simulation.api.delete(&other, None);
        assert!(simulation.run());
        assert!(simulation.api.get(&other).is_none(), "it goes");
        assert!(
            simulation.api.get(&workspace()).unwrap()["metadata"]["deletionTimestamp"].is_null(),
            "and takes nothing with it"
        );
        assert_eq!(condition(&simulation, APPLY, "Ready").0, "True");
    }
}
