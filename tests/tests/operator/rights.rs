//! Every single right of the role is needed: without it the operator says which one, and does not start.

use std::time::{Duration, Instant};

use capt_operator::rbac::{Need, RULES};
use capt_stack::{Effect, Stack, Tier};
use capt_tests::operator::{self, Operator, USER};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::{
    Api,
    api::{ObjectMeta, Patch, PatchParams},
};

use crate::place::SOON;

fn policy() -> Vec<PolicyRule> {
    let texts = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
    let rules = RULES.iter().filter(|rule| rule.need != Need::Lease);
    rules
        .map(|rule| PolicyRule {
            api_groups: Some(texts(rule.groups)),
            resources: Some(texts(rule.resources)),
            verbs: texts(rule.verbs),
            ..PolicyRule::default()
        })
        .collect()
}

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn without_any_single_rule_the_operator_names_it_and_writes_nothing() {
    let stack = Stack::builder(Tier::ApiServer).install(operator::manifests().unwrap()).start().await.unwrap();
    let roles: Api<ClusterRole> = Api::all(stack.admin_client().await.unwrap());
    let all = policy();
    for index in 0..all.len() {
        let mut remaining = all.clone();
        let lacking = remaining.remove(index);
        let role = ClusterRole {
            metadata: ObjectMeta { name: Some("capt-operator".to_owned()), ..ObjectMeta::default() },
            rules: Some(remaining),
            aggregation_rule: None,
        };
        roles.patch("capt-operator", &PatchParams::default(), &Patch::Merge(&role)).await.unwrap();
        let operator = Operator::start(&stack, &[]).unwrap();
        let (resources, groups) = (lacking.resources.clone().unwrap(), lacking.api_groups.clone().unwrap());
        let resource = format!("{}.{}", resources[0], groups[0]);
        let expected = format!("not allowed to {} {}", lacking.verbs[0], resource.trim_end_matches('.'));
        let end = Instant::now() + SOON;
        // The log of the ones before is in the same file.
        while operator.log().matches(&expected).count() == 0 {
            assert!(Instant::now() < end, "{expected} is not said:\n{}", operator.last_lines(10));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        drop(operator);
    }
    let written = stack.audit().requests_of(USER).unwrap().filter(|request| {
        request.effect() == Effect::Write && !request.resource.ends_with("accessreviews") && request.code < 300
    });
    assert!(written.is_empty(), "{}", written.table());
}
