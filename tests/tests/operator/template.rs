//! What is missing is named, and the cluster goes on by itself when it appears.

use capt_tests::history::Kind;

use crate::place::{Place, SOON};

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn a_template_that_comes_later_is_waited_for_by_name() {
    let mut place = Place::shared("template").await;
    place.apply_to("template", "vpc-template.yaml", "").await;
    place.cluster("late").await;
    place
        .until("a condition that names the template", SOON, |place| {
            let synced = place.condition(Kind::Apply, "late-eks-controlplane-apply", "Synced");
            let names_it = synced[2].contains("WorkspaceTemplate template/eks-template does not exist");
            if synced[..2] == ["False", "TemplateNotFound"] && names_it { Ok(()) } else { Err(format!("{synced:?}")) }
        })
        .await;
    place
        .until("a control plane that says so", SOON, |place| {
            let ready = place.condition(Kind::ControlPlane, "late", "Ready");
            if ready[0] == "False" && ready[2].contains("eks-template") { Ok(()) } else { Err(format!("{ready:?}")) }
        })
        .await;
    assert!(place.latest(Kind::Workspace, "late-eks-controlplane").is_none(), "nothing is made without a template");

    place.apply_to("template", "eks-template.yaml", "").await;
    place.ready("late").await;
    place.delete_quickly("late").await;
    place.assert_rights_suffice();
}
