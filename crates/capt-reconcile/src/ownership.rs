//! Whose is a Workspace?
//!
//! A cluster-scoped Workspace cannot carry an owner reference to a namespaced apply, and its name
//! says nothing: applies of two namespaces can want the same one. So the proof is a label with the
//! apply's uid, or (after a move or a restore, which change uids) the owner annotations, or (made by
//! the Go implementation, which marked nothing) the name in the apply's own status. Whatever is not
//! proved is somebody else's and is not touched.

use std::{collections::BTreeSet, sync::Arc};

use capt_api::{
    WorkspaceTemplateApply,
    foreign::{WorkspaceApi, WorkspaceView},
    names::{
        ADOPT_ANNOTATION, EXTERNAL_NAME_ANNOTATION, OWNER_NAME_ANNOTATION, OWNER_NAMESPACE_ANNOTATION, OWNER_UID_LABEL,
        WORKSPACE_API_ANNOTATION,
    },
};
use kube::ResourceExt;

use crate::{
    hash, meta,
    object::{Kind, ObjectKey},
    world::{Seen, View},
};

/// Longest external name, in bytes: a valid label value.
const MAX_EXTERNAL_NAME: usize = 63;

/// The Workspace of an apply, and whose it is.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Where the Workspace is or would be made.
    pub key: ObjectKey,
    /// Its API.
    pub api: WorkspaceApi,
    /// What is there, and whose it is.
    pub found: Seen<(Arc<WorkspaceView>, Owner)>,
}

/// Whose a Workspace is, from the point of view of one apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// Made by this apply: its uid is in the label.
    Ours,
    /// Of this apply by its annotations, by its recorded name or by the user's word; made with
    /// inputs that we do not know, so its spec is not written before somebody releases that.
    Adopted,
    /// As [`Owner::Adopted`] by the user's word, but another apply that is there still has it. It can be taken over,
    /// and nothing else is done with it before: two would pause and resume it in turn, or delete it under the other.
    Promised,
    /// Of somebody else, named by the text.
    Foreign(String),
    /// Not to be told as long as not all applies are known.
    Unknown,
}

/// Which of two Workspaces of one name, in both APIs, is an apply's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Nothing,
    Promised,
    Adopted,
    /// It may be this apply's.
    Unknown,
    Ours,
}

impl Claim {
    /// The Workspace if it is there and ours, adopted or not.
    pub fn ours(&self) -> Option<&Arc<WorkspaceView>> {
        match self.found.present() {
            Some((workspace, Owner::Ours | Owner::Adopted)) => Some(workspace),
            Some((_, Owner::Promised | Owner::Foreign(_) | Owner::Unknown)) | None => None,
        }
    }

    fn rank(&self) -> Rank {
        match &self.found {
            Seen::Present((_, Owner::Ours)) => Rank::Ours,
            Seen::Unknown | Seen::Present((_, Owner::Unknown)) => Rank::Unknown,
            Seen::Present((_, Owner::Adopted)) => Rank::Adopted,
            Seen::Present((_, Owner::Promised)) => Rank::Promised,
            Seen::Absent { live: _ } | Seen::Present((_, Owner::Foreign(_))) => Rank::Nothing,
        }
    }

    /// Whether nothing may be concluded.
    pub fn is_unknown(&self) -> bool {
        self.rank() == Rank::Unknown
    }
}

/// Name of the Workspace that an apply called `apply` makes: without the suffix `-apply`.
pub fn workspace_name(apply: &str) -> &str {
    match apply.strip_suffix("-apply") {
        None | Some("") => apply,
        Some(name) => name,
    }
}

/// Value of `crossplane.io/external-name`, which selects the Terraform state: the Workspace's own
/// name where that is unique, with the namespace where it is not.
pub fn external_name(api: WorkspaceApi, namespace: &str, name: &str) -> String {
    match api {
        WorkspaceApi::Cluster => name.to_owned(),
        WorkspaceApi::Namespaced => {
            let full = format!("{namespace}-{name}");
            if full.len() <= MAX_EXTERNAL_NAME {
                return full;
            }
            let digest = hash::of_text(&format!("{namespace}/{name}"), 8);
            // Names of Kubernetes objects are ASCII, so every index is a character boundary.
            let head = full.get(..MAX_EXTERNAL_NAME - 9).unwrap_or_default().trim_end_matches(['-', '.']);
            format!("{head}-{digest}")
        }
    }
}

/// The Terraform state that a Workspace uses: its external name, for which the provider takes the Workspace's own where
/// there is none yet.
pub fn state_of(workspace: &WorkspaceView) -> &str {
    workspace.meta.annotations.get(EXTERNAL_NAME_ANNOTATION).unwrap_or(&workspace.meta.name)
}

/// The name of its Workspace that `apply` has recorded.
fn recorded_name(apply: &WorkspaceTemplateApply) -> Option<&str> {
    apply.status.as_ref().and_then(|status| status.workspace_name.as_deref())
}

/// The Terraform state that `apply` has recorded.
pub fn recorded_state(apply: &WorkspaceTemplateApply) -> Option<&String> {
    let in_status = apply.status.as_ref().and_then(|status| status.external_name.as_ref());
    in_status.or_else(|| apply.annotations().get(EXTERNAL_NAME_ANNOTATION))
}

/// The API that `apply` wants for a new Workspace: its annotation, else `default`.
pub fn wanted_api(apply: &WorkspaceTemplateApply, default: WorkspaceApi) -> WorkspaceApi {
    let said = apply.annotations().get(WORKSPACE_API_ANNOTATION);
    said.and_then(|said| WorkspaceApi::ALL.into_iter().find(|api| said == api_name(*api))).unwrap_or(default)
}

/// An API as an annotation names it.
pub const fn api_name(api: WorkspaceApi) -> &'static str {
    match api {
        WorkspaceApi::Cluster => "cluster",
        WorkspaceApi::Namespaced => "namespaced",
    }
}

/// Finds the Workspace of `apply`. An existing one keeps its API: whatever is this apply's in either API goes before
/// what it may still take over, and that before a stranger under the same name in the wanted API.
pub fn claim(view: &View<'_>, apply: &WorkspaceTemplateApply, default: WorkspaceApi) -> Claim {
    let namespace = apply.namespace().unwrap_or_default();
    let derived = apply.name_any();
    let name = recorded_name(apply).unwrap_or_else(|| workspace_name(&derived));
    let wanted = wanted_api(apply, default);
    let look = |api| {
        let key = ObjectKey::new(Kind::Workspace(api), &namespace, name);
        let found = view.workspace(key.clone()).map(|workspace| {
            let owner = owner(view, apply, &workspace);
            (workspace, owner)
        });
        Claim { key, api, found }
    };
    let first = look(wanted);
    if first.rank() == Rank::Ours || first.found.is_unknown() {
        return first;
    }
    let other = look(match wanted {
        WorkspaceApi::Cluster => WorkspaceApi::Namespaced,
        WorkspaceApi::Namespaced => WorkspaceApi::Cluster,
    });
    if other.rank() > first.rank() { other } else { first }
}

fn owner(view: &View<'_>, apply: &WorkspaceTemplateApply, workspace: &WorkspaceView) -> Owner {
    let labelled = workspace.meta.labels.get(OWNER_UID_LABEL);
    if labelled.is_some_and(|uid| uid == meta::uid(apply)) {
        return Owner::Ours;
    }
    let Some(applies) = view.applies() else { return Owner::Unknown };
    let named = |apply: &WorkspaceTemplateApply| {
        apply.annotations().get(ADOPT_ANNOTATION).is_some_and(|uid| *uid == workspace.meta.uid)
    };
    let records = |apply: &WorkspaceTemplateApply| {
        recorded_name(apply) == Some(workspace.meta.name.as_str()) && !records_another_state(apply, workspace)
    };
    let another = |is_theirs: &dyn Fn(&WorkspaceTemplateApply) -> bool| {
        applies.iter().find(|other| meta::uid(other.as_ref()) != meta::uid(apply) && is_theirs(other))
    };
    let of = |other: &WorkspaceTemplateApply| Owner::Foreign(meta::key_of(Kind::Apply, other).to_string());
    let labelled_owner = labelled.and_then(|uid| another(&|other| meta::uid(other) == uid));
    if named(apply) {
        // The user's word, but not against the same word on who has it already, nor on several.
        return match labelled_owner.filter(|other| named(other)).or_else(|| another(&named)) {
            Some(other) => of(other),
            None if labelled_owner.is_some() => Owner::Promised,
            None => Owner::Adopted,
        };
    }
    if let Some(other) = labelled_owner.or_else(|| another(&named)) {
        return of(other);
    }
    if labelled.is_some() {
        let annotation = |key| workspace.meta.annotations.get(key).map_or("", String::as_str);
        let (of_namespace, of_name) = (annotation(OWNER_NAMESPACE_ANNOTATION), annotation(OWNER_NAME_ANNOTATION));
        return if (of_namespace, of_name) == (apply.namespace().unwrap_or_default().as_str(), apply.name_any().as_str())
        {
            Owner::Adopted
        } else {
            Owner::Foreign(format!("WorkspaceTemplateApply/{of_namespace}/{of_name}"))
        };
    }
    if !records(apply) {
        return Owner::Foreign("nobody known (it carries no owner label)".to_owned());
    }
    match another(&records) {
        Some(other) => Owner::Foreign(format!("also claimed by {}", meta::key_of(Kind::Apply, other.as_ref()))),
        None => Owner::Adopted,
    }
}

/// Whether `apply` remembers another Terraform state than that of `workspace`: then it had another one of this name,
/// in the other API.
fn records_another_state(apply: &WorkspaceTemplateApply, workspace: &WorkspaceView) -> bool {
    match (recorded_state(apply), workspace.meta.annotations.get(EXTERNAL_NAME_ANNOTATION)) {
        (Some(recorded), Some(used)) => recorded != used,
        (None, _) | (_, None) => false,
    }
}

/// Where somebody else's Workspaces are under the name that `apply` has recorded, in either API, as far as is known.
pub fn strangers(view: &View<'_>, apply: &WorkspaceTemplateApply) -> Vec<ObjectKey> {
    let namespace = apply.namespace().unwrap_or_default();
    let keys = recorded_name(apply).into_iter().flat_map(|name| keys(&namespace, name));
    keys.filter(|key| {
        let workspace = view.workspace(key.clone());
        workspace
            .present()
            .is_some_and(|workspace| matches!(owner(view, apply, workspace), Owner::Promised | Owner::Foreign(_)))
    })
    .collect()
}

/// Where a Workspace of that name can be, in both APIs.
pub fn keys(namespace: &str, name: &str) -> [ObjectKey; 2] {
    WorkspaceApi::ALL.map(|api| ObjectKey::new(Kind::Workspace(api), namespace, name))
}

/// A Workspace that carries our label and whose apply is gone: retained on purpose, or left behind by a
/// removed finalizer, a move or a restore. It is told and never deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// The Workspace.
    pub key: ObjectKey,
    /// Its uid.
    pub uid: String,
    /// What to tell: whose it was and what may be done.
    pub message: String,
}

/// The orphans among all Workspaces; `None` if not all Workspaces and applies are known.
pub fn orphans(view: &View<'_>) -> Option<Vec<Orphan>> {
    let applies = view.applies()?;
    let living: BTreeSet<&str> = applies.iter().map(|apply| meta::uid(apply.as_ref())).collect();
    // After a move or a restore the apply has another uid and takes its Workspace over.
    let named: BTreeSet<(String, String)> =
        applies.iter().map(|apply| (apply.namespace().unwrap_or_default(), apply.name_any())).collect();
    let mut orphans = Vec::new();
    for api in WorkspaceApi::ALL {
        for workspace in view.workspaces(api)? {
            let meta = &workspace.meta;
            let Some(owner) = meta.labels.get(OWNER_UID_LABEL) else { continue };
            let annotation = |key| meta.annotations.get(key).map_or("?", String::as_str);
            let maker =
                (annotation(OWNER_NAMESPACE_ANNOTATION).to_owned(), annotation(OWNER_NAME_ANNOTATION).to_owned());
            if meta.deleting || living.contains(owner.as_str()) || named.contains(&maker) {
                continue;
            }
            let message = format!(
                "its WorkspaceTemplateApply {}/{} (uid {owner}) is gone; what it made still runs: make an apply of that \
                 namespace and name to take it over again, or delete the Workspace to destroy it",
                maker.0, maker.1,
            );
            let key = ObjectKey::of_view(Kind::Workspace(api), meta);
            orphans.push(Orphan { key, uid: meta.uid.clone(), message });
        }
    }
    Some(orphans)
}

#[cfg(test)]
mod tests;
