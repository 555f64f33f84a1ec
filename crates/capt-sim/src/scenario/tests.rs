//! What a scenario's text becomes, and what is wrong with one that is not taken.

use serde_json::json;

use super::*;

fn scenario(spec: &str) -> Result<Scenario, Error> {
    let text = format!(
        "apiVersion: {API_VERSION}\nkind: Scenario\nmetadata: {{name: t}}\nspec:\n  description: d\n  until: 1h\n{spec}"
    );
    parse(&text, &|_| Err("no files here".to_owned()))
}

#[test]
fn an_event_says_exactly_one_thing() {
    let good = scenario("  events:\n  - {at: 5m, delete: Cluster/default/demo}\n  - {at: 1m, clock: -10m}\n").unwrap();
    assert_eq!(good.events[0], Event { at: Span::from_minutes(1), deed: Deed::Clock(-600) }, "in order of time");
    for bad in ["{at: 5m}", "{at: 5m, delete: Cluster/default/a, restart: capt}"] {
        assert!(matches!(scenario(&format!("  events:\n  - {bad}\n")), Err(Error::Event(_))), "{bad}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    assert!(matches!(scenario("  files: [a.yaml]\n"), Err(Error::File { name, .. }) if name == "a.yaml"));
    assert!(matches!(scenario("  objects: [{kind: Pod}]\n"), Err(Error::Object(_))));
    assert!(matches!(scenario("  expect: [{object: nothing}]\n"), Err(Error::Name(_))));
    assert!(matches!(scenario("  nonsense: 1\n"), Err(Error::Parse(text)) if text.contains("nonsense")));
    assert!(matches!(scenario("  chances: {lost: 0.6, refused: 0.6}\n"), Err(Error::Chances(_))));
    assert!(matches!(
        parse("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {description: d, until: 1m}\n", &|_| Err(
            String::new()
        )),
        Err(Error::Kind(_))
    ));
}

#[test]
fn keys_are_read_as_they_are_printed() {
    for name in ["Cluster/default/demo", "Workspace/demo-vpc", "Workspace/default/demo-vpc"] {
        assert_eq!(key(name).unwrap().to_string(), name);
    }
}

#[test]
fn copies_have_names_of_their_own_and_templates_are_shared() {
    let read = scenario(
        "  copies: {of: demo, count: 2}\n  objects:\n  - {apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: demo}, spec: {infrastructureRef: {name: demo}}}\n  - {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: WorkspaceTemplate, metadata: {name: vpc}}\n",
    )
    .unwrap();
    let names: Vec<String> = read.objects.iter().map(|(key, _)| key.to_string()).collect();
    assert_eq!(names, ["WorkspaceTemplate/default/vpc", "Cluster/default/demo-0", "Cluster/default/demo-1"]);
    assert_eq!(read.objects[2].1["spec"]["infrastructureRef"]["name"], json!("demo-1"));
}

#[test]
fn a_share_is_about_that_share() {
    let hit = (0..1000).filter(|index| percentile(&format!("demo-{index}-vpc")) < 30).count();
    assert!((250..350).contains(&hit), "{hit}");
}
