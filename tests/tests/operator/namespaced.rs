//! With namespaced Workspaces the life is the same; and an operator with nothing to do is silent.

use std::time::Duration;

use capt_tests::{
    history::Kind,
    operator::{Operator, USER},
};

use crate::place::Place;

/// After this long nothing that core or the provider does can be a late consequence of the creation;
/// the provider looks at each Workspace every ten seconds.
const SETTLED: Duration = Duration::from_secs(12);
/// Three rounds of the provider.
const REST: Duration = Duration::from_secs(30);

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn namespaced_workspaces_serve_as_well_and_at_rest_there_is_silence() {
    let mut place = Place::own("namespaced").await;
    place.workspaces = Kind::NamespacedWorkspace;
    let operator = Operator::start(&place.stack, &["--workspace-api", "namespaced"]).unwrap();
    place.templates().await;
    place.cluster("own").await;
    place.ready("own").await;
    for name in Place::<Box<capt_stack::Stack>>::workspace_names("own") {
        let workspace = place.latest(Kind::NamespacedWorkspace, &name).unwrap();
        assert_eq!(workspace.namespace(), "namespaced");
        let annotations = workspace.object.metadata.annotations.unwrap();
        assert_eq!(annotations["crossplane.io/external-name"], format!("namespaced-{name}"));
    }
    assert!(place.history.first(|change| change.kind == Kind::Workspace).is_none(), "none of the other kind");

    tokio::time::sleep(SETTLED).await;
    let mark = jiff::Timestamp::now();
    tokio::time::sleep(REST).await;
    let seen = place.stack.audit().requests_of(USER).unwrap().since(mark);
    let others = seen.clone().filter(|request| request.verb != "watch");
    assert!(others.is_empty(), "at rest the operator only watches:\n{}", seen.table());

    place.delete_quickly("own").await;
    place.assert_order_of_deletion("own");
    place.assert_rights_suffice();
    drop(operator);
}
