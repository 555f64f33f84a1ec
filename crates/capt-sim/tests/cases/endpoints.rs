//! Endpoints: in every form, from every place, and whose they are.

use base64::{Engine, engine::general_purpose::STANDARD};
use capt_sim::Simulation;
use serde_json::{Value, json};

use crate::{
    common::{condition, ready, terraform},
    help::{
        assert_still, cluster_key, created_with, fresh_as, infrastructure, minutes, plane, plane_key, statuses, wait,
        with_output, with_output_beside, writes_to,
    },
};

fn endpoint(simulation: &Simulation) -> Value {
    simulation.api.get(&plane_key()).unwrap()["spec"]["controlPlaneEndpoint"].clone()
}

fn assert_read(forms: &[(&str, &str, u16)]) {
    for (output, host, port) in forms {
        let simulation = created_with(with_output("cluster_endpoint", json!(output)));
        let expected = json!({"host": host, "port": port});
        assert_eq!(endpoint(&simulation), expected, "{output}");
        assert_eq!(simulation.api.get(&cluster_key()).unwrap()["spec"]["controlPlaneEndpoint"], expected, "{output}");
        assert_eq!(plane(&simulation)["state"], "Ready", "{output}");
    }
}

#[test]
fn cb_033_a_port_of_the_output_is_the_port() {
    assert_read(&[
        ("ha.example.elb.amazonaws.com:443", "ha.example.elb.amazonaws.com", 443),
        ("ha.example.elb.amazonaws.com:6443", "ha.example.elb.amazonaws.com", 6443),
    ]);
}

#[test]
fn cb_034_without_a_port_it_is_443() {
    assert_read(&[("ABC.gr7.eu-west-1.eks.amazonaws.com", "ABC.gr7.eu-west-1.eks.amazonaws.com", 443)]);
}

#[test]
fn cb_035_a_host_has_no_scheme_and_no_path() {
    for text in ["https://ABC.gr7.eu-west-1.eks.amazonaws.com", "https://ABC.gr7.eu-west-1.eks.amazonaws.com/a/"] {
        assert_read(&[(text, "ABC.gr7.eu-west-1.eks.amazonaws.com", 443)]);
    }
}

#[test]
fn cb_036_addresses_of_ipv6_are_hosts_without_brackets() {
    assert_read(&[
        ("2001:db8::1", "2001:db8::1", 443),
        ("[2001:db8::1]:6443", "2001:db8::1", 6443),
        ("https://[2001:db8::1]", "2001:db8::1", 443),
    ]);
}

#[test]
fn cb_038_an_endpoint_of_the_user_stays_and_the_difference_is_told_once() {
    let mine = json!({"host": "nlb.corp", "port": 443});
    let mut simulation = ready();
    let before = simulation.requests.len();
    simulation.api.edit(&plane_key(), |object| object["spec"]["controlPlaneEndpoint"] = mine.clone());
    wait(&mut simulation, minutes(60));
    assert_eq!(endpoint(&simulation), mine);
    let told = condition(&plane(&simulation), "EndpointAvailable");
    assert_eq!([&told["status"], &told["reason"]], ["True", "EndpointOverridden"], "{told:#}");
    assert!(told["message"].as_str().unwrap().contains("demo.eks.invalid:443"), "{told:#}");
    assert_eq!(writes_to(&simulation, before, "CAPTControlPlane"), ["status CAPTControlPlane/default/demo"]);
    assert_still(&mut simulation, &[1, 3600]);
    // One that stands in the Cluster from the beginning is not overwritten either.
    let chosen = mine.clone();
    let mut simulation = fresh_as(move |kind, object| {
        if kind == "Cluster" {
            object["spec"]["controlPlaneEndpoint"] = chosen.clone();
        }
    });
    wait(&mut simulation, minutes(60));
    assert_eq!(simulation.api.get(&cluster_key()).unwrap()["spec"]["controlPlaneEndpoint"], mine);
    assert_still(&mut simulation, &[1, 3600]);
}

#[test]
fn cb_039_an_endpoint_that_changes_is_told_and_nothing_flaps() {
    let mut simulation = ready();
    let before = simulation.requests.len();
    simulation.terraform(with_output("cluster_endpoint", json!("https://b.invalid")));
    wait(&mut simulation, minutes(10));
    assert_eq!(endpoint(&simulation)["host"], "demo.eks.invalid");
    assert_eq!(plane(&simulation)["endpoint"], "demo.eks.invalid:443");
    let told = condition(&plane(&simulation), "EndpointAvailable");
    assert_eq!(told["reason"], "EndpointChanged");
    assert!(told["message"].as_str().unwrap().contains("b.invalid:443"), "{told:#}");
    assert_eq!(writes_to(&simulation, before, "patch CAPTControlPlane"), [""; 0]);
    let shown: Vec<Value> =
        statuses(&simulation, &plane_key(), before).iter().map(|status| status["endpoint"].clone()).collect();
    assert!(shown.iter().all(|shown| shown == "demo.eks.invalid:443"), "{shown:?}");
    assert_still(&mut simulation, &[1, 3600]);
}

#[test]
fn cb_041_nothing_is_nothing_in_every_spelling() {
    // In the Secret alone, as text; in the status as null, beside an old value in the Secret; as text.
    for (plain, in_secret) in [
        (None, "null"),
        (None, "  "),
        (Some(Value::Null), "https://old.invalid"),
        (Some(json!("null")), "null"),
        (Some(json!(" ")), ""),
    ] {
        let value = plain.clone();
        let simulation = created_with(move |workspace| {
            let mut outputs = terraform(workspace);
            if outputs.plain.remove("cluster_endpoint").is_some() {
                outputs.plain.extend(value.clone().map(|value| ("cluster_endpoint".to_owned(), value)));
                outputs.sensitive.insert("cluster_endpoint".into(), in_secret.into());
            }
            outputs
        });
        let plane = plane(&simulation);
        assert_eq!([&plane["ready"], &plane["initialized"]], [false; 2], "{plain:?} {in_secret}");
        assert_eq!(endpoint(&simulation), Value::Null, "{plain:?} {in_secret}");
        assert_eq!(condition(&plane, "Ready")["reason"], "EndpointNotReady");
    }
}

#[test]
fn cb_042_the_cluster_gets_the_endpoint_and_no_failure_stands_beside_ready() {
    let mut simulation = ready();
    simulation.api.edit(&cluster_key(), |cluster| {
        cluster["spec"].as_object_mut().unwrap().remove("controlPlaneEndpoint");
    });
    simulation.api.edit(&plane_key(), |object| {
        object["status"]["failureReason"] = json!("CreateError");
        object["status"]["failureMessage"] = json!("once upon a time");
    });
    wait(&mut simulation, minutes(1));
    assert_eq!(
        simulation.api.get(&cluster_key()).unwrap()["spec"]["controlPlaneEndpoint"],
        json!({"host": "demo.eks.invalid", "port": 443})
    );
    let plane = plane(&simulation);
    assert_eq!(plane["state"], "Ready");
    assert_eq!([&plane["failureReason"], &plane["failureMessage"]], [&Value::Null; 2]);
}

#[test]
fn cb_043_an_api_server_that_nobody_here_reaches_is_ready_all_the_same() {
    let mut simulation = ready();
    let now = simulation.api.now;
    let probe = json!({"type": "RemoteConnectionProbe", "status": "False", "reason": "ProbeFailed", "message": "timeout",
        "lastTransitionTime": now});
    simulation.api.edit(&cluster_key(), |cluster| cluster["status"]["conditions"] = json!([probe]));
    wait(&mut simulation, minutes(120));
    let plane = plane(&simulation);
    for type_ in ["Ready", "Available", "Initialized"] {
        assert_eq!(condition(&plane, type_)["status"], "True", "{type_}");
    }
    assert_eq!([&plane["ready"], &plane["initialized"]], [true; 2]);
    assert_eq!(condition(&plane, "Healthy")["reason"], "ConnectionDown", "and it is told");
    assert_still(&mut simulation, &[60, 3600]);
}

#[test]
fn cb_044_a_sensitive_endpoint_is_read_from_the_secret_as_it_is() {
    let url = "https://sensitive.eks.invalid:8443";
    for text in [url.to_owned(), STANDARD.encode(url), "sensitive.eks.invalid:8443".to_owned()] {
        let value = text.clone();
        let simulation = created_with(move |workspace| {
            let mut outputs = terraform(workspace);
            if outputs.plain.remove("cluster_endpoint").is_some() {
                outputs.sensitive.insert("cluster_endpoint".into(), value.clone());
            }
            outputs
        });
        assert_eq!(endpoint(&simulation), json!({"host": "sensitive.eks.invalid", "port": 8443}), "{text}");
        assert_eq!(plane(&simulation)["state"], "Ready");
        assert!(!plane(&simulation)["workspaceStatus"].to_string().contains("sensitive.eks"), "it stays in the Secret");
    }
}

#[test]
fn cb_045_an_output_of_another_type_is_told_by_its_name() {
    for value in [json!(42), json!({}), json!([]), json!(true), Value::Null, json!("")] {
        let simulation = created_with(with_output("cluster_endpoint", value.clone()));
        let plane = plane(&simulation);
        let told = condition(&plane, "EndpointAvailable");
        assert_eq!([&plane["ready"], &told["status"]], [&json!(false), &json!("False")], "{value}");
        assert!(told["message"].as_str().unwrap().contains("cluster_endpoint"), "{value}: {told:#}");

        let simulation = created_with(with_output_beside("vpc_id", "vpc_id", value.clone()));
        let vpc = infrastructure(&simulation);
        let told = condition(&vpc, "VPCReady");
        assert_eq!([&vpc["ready"], &told["status"], &vpc["vpcId"]], [&json!(false), &json!("False"), &Value::Null]);
        assert!(told["message"].as_str().unwrap().contains("vpc_id"), "{value}: {told:#}");
    }
}
