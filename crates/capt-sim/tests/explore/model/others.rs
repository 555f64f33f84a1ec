//! What everybody but CAPT does: core, the provider, the garbage collector, users.

use capt_reconcile::{
    executor::Request,
    object::{Kind, ObjectKey},
};
use capt_sim::{
    core::{self, Release},
    provider::{Ending, Outputs, Provider},
};
use serde_json::Value;

use super::{Model, Writes};
use crate::{common, deeds::Deed, state::State, versions::Slot};

const SUCCEEDED: &str = "crossplane.io/external-create-succeeded";

impl Model {
    pub(super) fn core(&mut self, state: &State, slot: Slot) -> Option<Writes> {
        if self.kind_of(slot) != Some(Kind::Cluster) || state.live[usize::from(slot)] == 0 {
            return None;
        }
        let slots: Vec<Slot> = [Kind::Cluster, Kind::CaptCluster, Kind::CaptControlPlane]
            .into_iter()
            .flat_map(|kind| self.versions.slots_of(kind, None))
            .collect();
        let values = slots.iter().map(|slot| state.live[usize::from(*slot)]).collect();
        let memo = (state.tick, values);
        if let Some(writes) = self.cores.get(&memo) {
            return Some(writes.clone());
        }
        let mut api = self.api(state, &slots);
        core::step(&mut api, Release::default());
        let writes = self.changed(&api, state);
        self.cores.insert(memo, writes.clone());
        Some(writes)
    }

    /// What Terraform makes of the Workspace now, and the deeds that say so, by bit.
    fn outputs(&self, state: &State, workspace: &Value) -> (u16, Outputs) {
        let name = workspace["metadata"]["name"].as_str().unwrap_or_default();
        let (mut number, mut outputs) = (0, common::terraform(workspace));
        for (index, deed) in self.config.deeds.iter().enumerate() {
            if !deed.is_about_runs_of(name) || !state.did(index) {
                continue;
            }
            number |= 1 << index;
            match deed {
                Deed::Fail(_, text) | Deed::FailForGood(_, text) => {
                    outputs.result = Ending::Failure((*text).to_owned());
                }
                Deed::Puts(_, output, value) => {
                    outputs.plain.insert((*output).to_owned(), value.clone());
                }
                Deed::Delete(_) | Deed::Edit(..) => {}
            }
        }
        (number, outputs)
    }

    pub(super) fn provider(&mut self, state: &mut State, slot: Slot) -> Option<()> {
        let Some(Kind::Workspace(_)) = self.kind_of(slot) else { return None };
        let workspace = self.object(state, slot)?.clone();
        let key = self.versions.key(slot).clone();
        let reference = &workspace["spec"]["writeConnectionSecretToRef"];
        let namespace = reference["namespace"].as_str().or(key.namespace.as_deref()).unwrap_or_default();
        let secret = ObjectKey::new(Kind::Secret, namespace, reference["name"].as_str().unwrap_or("-"));
        let secret = self.versions.slot(&secret);
        let (number, outputs) = self.outputs(state, &workspace);
        let of = |slot: Slot| state.live[usize::from(slot)];
        let memo = (state.tick, number, state.born[usize::from(secret)], of(slot), of(secret));
        let writes = if let Some(writes) = self.providers.get(&memo) {
            writes.clone()
        } else {
            let mut api = self.api(state, &[slot, secret]);
            let terraform = |_: &Value| outputs.clone();
            // A process that never died, so that nothing that it remembers counts.
            Provider::default().step(&mut api, &terraform);
            let writes = self.changed(&api, state);
            self.providers.insert(memo, writes.clone());
            writes
        };
        let terraform = &mut state.terraform[usize::from(slot)];
        for (written, id) in &writes {
            if *written != slot {
                continue;
            }
            if *id == 0 {
                terraform.destroyed += u8::from(terraform.exists);
                terraform.exists = false;
            } else if !self.versions.get(*id).value["metadata"]["annotations"][SUCCEEDED].is_null() && !terraform.exists
            {
                terraform.exists = true;
                terraform.created += 1;
            }
        }
        self.write(state, &writes);
        Some(())
    }

    pub(super) fn is_orphan(&self, state: &State, slot: Slot) -> bool {
        let id = match state.live.get(usize::from(slot)) {
            None | Some(0) => return false,
            Some(id) => *id,
        };
        let owners = &self.versions.get(id).owners;
        let lives = |uid: &String| state.live.iter().any(|id| *id != 0 && self.versions.get(*id).uid == *uid);
        !owners.is_empty() && !owners.iter().any(lives)
    }

    /// What somebody else does to an object; `None` if it is not there.
    pub(super) fn outside(&mut self, state: &mut State, number: u8, deed: &Deed) -> Option<()> {
        let key = match deed {
            Deed::Delete(key) | Deed::Edit(key, _) => key,
            Deed::Fail(..) | Deed::FailForGood(..) | Deed::Puts(..) => return Some(()),
        };
        let slot = self.versions.known_slot(key)?;
        self.object(state, slot)?;
        let memo = (number, state.tick, state.live[usize::from(slot)]);
        let id = if let Some(id) = self.outside.get(&memo) {
            *id
        } else {
            let mut api = self.api(state, &[slot]);
            match deed {
                Deed::Delete(key) => api.delete(key, None),
                Deed::Edit(key, edit) => api.respond(&Request::MergePatch { target: key.clone(), body: edit.clone() }),
                Deed::Fail(..) | Deed::FailForGood(..) | Deed::Puts(..) => return Some(()),
            };
            let written = self.changed(&api, state);
            let id = written.first().map_or(state.live[usize::from(slot)], |(_, id)| *id);
            self.outside.insert(memo, id);
            id
        };
        self.write(state, &[(slot, id)]);
        Some(())
    }
}
