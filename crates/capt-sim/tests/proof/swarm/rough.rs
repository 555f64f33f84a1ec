//! What nobody should do and people do: finalizers, labels and owners that are taken away, statuses that are lost,
//! Workspaces edited by hand, everything deleted and made again, the same names in another namespace, and CAPT started
//! again with another flag.

use capt_api::{
    foreign::WorkspaceApi,
    names::{ADOPT_ANNOTATION, CROSSPLANE_PAUSED_ANNOTATION, OWNER_UID_LABEL, WORKSPACE_API_ANNOTATION},
};
use capt_reconcile::object::{Kind, ObjectKey};
use capt_sim::scenario::{Deed, Scenario};
use serde_json::{Value, json};

use super::{maker::Maker, of_users};

/// The namespace of other people's objects.
const OTHER: &str = "other";

/// What rough hands did, as far as it changes what is asked of a life.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Done {
    /// Something was made to forget what it knew: latches of it may be lost.
    pub(super) forgets: bool,
    /// There are the same names in another namespace.
    pub(super) doubles: bool,
}

impl Maker<'_> {
    /// Something rough happens to what a user has or to what CAPT made.
    pub(super) fn roughly(&mut self, base: &Scenario) {
        let api = self.one_of(&WorkspaceApi::ALL);
        let name = self.one_of(&Self::workspaces());
        let workspace = ObjectKey::new(Kind::Workspace(api), "default", name);
        let apply = self.one_of(&["demo-vpc", "demo-eks-controlplane-apply"]);
        let apply = ObjectKey::new(Kind::Apply, "default", apply);
        let provider = self.one_of(&[Kind::CaptCluster, Kind::CaptControlPlane]);
        let provider = ObjectKey::new(provider, "default", "demo");
        match self.dice.below(10) {
            0 => {
                let key = self.one_of(&[workspace, apply, provider]);
                self.does(Deed::Patch(key, json!({"metadata": {"finalizers": null}})));
            }
            1 => {
                self.rough.forgets = true;
                let key = self.one_of(&[apply, provider]);
                self.does(Deed::Patch(key, json!({"status": null})));
            }
            2 => self.does(Deed::Patch(workspace, json!({"metadata": {"labels": {OWNER_UID_LABEL: null}}}))),
            3 => {
                let paused = self.one_of(&[json!("true"), Value::Null]);
                self.does(annotation(workspace, CROSSPLANE_PAUSED_ANNOTATION, &paused));
            }
            4 => {
                let spec = self.one_of(&[
                    json!({"deletionPolicy": "Orphan"}),
                    json!({"managementPolicies": ["Observe"]}),
                    json!({"forProvider": {"vars": [{"key": "region", "value": "nowhere"}]}}),
                    json!({"writeConnectionSecretToRef": null}),
                ]);
                self.does(Deed::Patch(workspace, json!({"spec": spec})));
            }
            5 => {
                let api = self.one_of(&[json!("cluster"), json!("namespaced"), Value::Null]);
                self.does(annotation(apply, WORKSPACE_API_ANNOTATION, &api));
            }
            6 => self.does(Deed::RestartWith(api)),
            7 => {
                // Any object's, as somebody copies the wrong line.
                let uid = json!(format!("uid-{}", 1 + self.dice.below(20)));
                self.does(annotation(apply, ADOPT_ANNOTATION, &uid));
            }
            8 => {
                let key = self.one_of(&[apply, provider]);
                self.does(Deed::Patch(key, json!({"metadata": {"ownerReferences": null}})));
            }
            _ => self.twice(base),
        }
    }

    /// Everything is made once more: in another namespace, or here after some of it was deleted.
    fn twice(&mut self, base: &Scenario) {
        if self.dice.below(2) == 0 {
            self.rough.doubles = true;
            for (key, object) in of_users(base) {
                let mut object = object.clone();
                object["metadata"]["namespace"] = json!(OTHER);
                self.does(Deed::Create(ObjectKey::new(key.kind, OTHER, &key.name), object));
            }
            return;
        }
        self.deletes = true;
        let mine: Vec<(ObjectKey, Value)> =
            self.objects.iter().map(|(key, object)| (key.clone(), object.clone())).collect();
        for _ in 0..=self.dice.below(2) {
            let (key, _) = self.one_of(&mine);
            self.does(Deed::Delete(key));
        }
        self.passes();
        for (key, object) in mine {
            self.does(Deed::Create(key, object));
        }
    }
}

fn annotation(key: ObjectKey, name: &str, value: &Value) -> Deed {
    Deed::Patch(key, json!({"metadata": {"annotations": {name: value}}}))
}
