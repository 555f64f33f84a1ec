//! What the pass of an apply depends on.

use std::sync::Arc;

use capt_api::{WorkspaceTemplate, WorkspaceTemplateApply, names::conditions};
use capt_status::condition;
use kube::ResourceExt;

use super::{
    owner::{self, Owner},
    waits::{self, Dependents, Wait},
};
use crate::{
    meta,
    object::ObjectKey,
    ownership::{self, Claim},
    pass::Settings,
    pause::Pause,
    world::{Seen, View},
};

/// What the pass of an apply depends on.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The apply.
    pub apply: Arc<WorkspaceTemplateApply>,
    /// Whether it is paused.
    pub pause: Pause,
    /// The provider object that owns it; `None` if it is a user's own.
    pub owner: Option<Seen<Owner>>,
    /// Its template.
    pub template: Seen<Arc<WorkspaceTemplate>>,
    /// Its Workspace.
    pub claim: Claim,
    /// Where somebody else's Workspaces are under its recorded name; asked only when it is being deleted and
    /// has none.
    pub strangers: Vec<ObjectKey>,
    /// What it waits for, in the order of its spec; only what is not there yet.
    pub waits: Vec<Wait>,
    /// Other applies of its owner that stand for the same; asked only when it has no Workspace. `None` if not
    /// all are known.
    pub rivals: Option<Rivals>,
    /// The Terraform state that its Workspace would have; asked only when it has none. `None` if not all who may use
    /// it are known.
    pub state: Option<State>,
    /// Who keeps it from going; asked only when it is being deleted. `None` if not all are known.
    pub dependents: Option<Dependents>,
}

/// A Terraform state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// Its name: what the apply has recorded, else what a new Workspace gets.
    pub name: String,
    /// The Workspaces that use it: names of other namespaces can come to the same.
    pub users: Vec<ObjectKey>,
}

impl State {
    fn observe(view: &View<'_>, apply: &WorkspaceTemplateApply, claim: &Claim, namespace: &str) -> Option<Self> {
        let recorded = ownership::recorded_state(apply).cloned();
        let name = recorded.unwrap_or_else(|| ownership::external_name(claim.api, namespace, &claim.key.name));
        Some(Self { users: view.users_of_state(&name)?, name })
    }
}

/// Applies that stand for the same to their owner, which used them under a former name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rivals {
    /// Names of those that have a Workspace, in order.
    pub with_workspace: Vec<String>,
    /// Names of those that have none as far as is seen: a request that makes one may still be on its way.
    pub may_get_one: Vec<String>,
    /// uids of those whose Workspace cannot be made, since somebody else's has its name.
    pub colliding: Vec<String>,
}

/// Whether the infrastructure behind an apply was ever ready, as its owner remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// No owner that remembers, or it says no.
    NeverReady,
    /// The owner says so.
    WasReady,
    /// The owner is not known; counts as ready.
    Unknown,
}

impl Evidence {
    /// Both together: one that says yes is enough, and one that does not know leaves it open.
    pub(super) const fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::WasReady, _) | (_, Self::WasReady) => Self::WasReady,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::NeverReady, Self::NeverReady) => Self::NeverReady,
        }
    }
}

impl Observed {
    /// What the owner remembers.
    pub(super) fn evidence(&self) -> Evidence {
        match &self.owner {
            Some(Seen::Present(owner)) => owner.evidence,
            Some(Seen::Unknown) => Evidence::Unknown,
            Some(Seen::Absent { live: _ }) | None => Evidence::NeverReady,
        }
    }
}

/// Takes out of the world what the pass of `apply` depends on.
pub fn observe(view: &View<'_>, apply: Arc<WorkspaceTemplateApply>, settings: Settings) -> Observed {
    let namespace = apply.namespace().unwrap_or_default();
    let reference = &apply.spec.template_ref;
    let template = view.template(
        reference.namespace.as_deref().filter(|name| !name.is_empty()).unwrap_or(&namespace),
        &reference.name,
    );
    let owner = owner::observe(view, &apply, &namespace);
    let claim = ownership::claim(view, &apply, settings.workspace_api);
    let deleting = meta::is_deleting(apply.as_ref());
    let has_none = claim.ours().is_none();
    let asks = has_none && !deleting;
    Observed {
        pause: owner::pause(view, &apply, owner.as_ref(), &namespace),
        template,
        // What is there already waits for nothing.
        waits: if asks { waits::observe(view, &apply, &namespace, settings) } else { Vec::new() },
        rivals: match owner.as_ref().and_then(Seen::present).filter(|_| asks) {
            Some(owner) => owner::rivals(view, &apply, owner, settings.workspace_api),
            None => Some(Rivals::default()),
        },
        dependents: if deleting { waits::dependents(view, &apply, &namespace) } else { Some(Dependents::default()) },
        state: if asks { State::observe(view, &apply, &claim, &namespace) } else { Some(State::default()) },
        strangers: if has_none && deleting { ownership::strangers(view, &apply) } else { Vec::new() },
        owner,
        claim,
        apply,
    }
}

/// Whether the apply's Workspace carries what the apply's current spec renders to, or differs from it only
/// by what was there before a takeover and waits for a release.
pub(crate) fn is_current(apply: &WorkspaceTemplateApply) -> bool {
    apply.status.as_ref().is_some_and(|status| {
        (status.applied || condition::is_true(&status.conditions, conditions::PENDING_TAKEOVER_CHANGES))
            && status.observed_generation == Some(meta::generation(apply))
            && condition::is_true(&status.conditions, conditions::SYNCED)
    })
}
