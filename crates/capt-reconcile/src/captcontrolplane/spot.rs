//! The service-linked role for Spot instances, for control planes that have applies for it.
//!
//! The Go implementation made two applies for every control plane: one looks whether the account has the
//! role, one makes it. They are kept where they are and made for nobody else. What becomes of them has a
//! condition of its own; it never fails the control plane and is never waited for.

use std::collections::BTreeMap;

use capt_api::{TemplateReference, WorkspaceReference, foreign::ClusterView, names::conditions};
use capt_status::{
    condition::{self, Verdict},
    machine::Cause,
};
use kube::ResourceExt;
use serde_json::Value;

use super::observe::Observed;
use crate::{
    child::{Child, ChildProgress, Wanted},
    meta::Writer,
    object::Kind,
    outputs, reasons,
    world::{Seen, View},
};

pub(super) const CHECK: &str = "spot-role-check";
pub(super) const CREATE: &str = "spot-role-create";

/// The two applies and the template of the second.
#[derive(Debug, Clone)]
pub struct Spot {
    /// The apply that looks for the role.
    pub check: Child,
    /// The apply that makes it.
    pub create: Child,
    /// The template of the second, beside that of the first; present only if both exist.
    pub template: Seen<TemplateReference>,
}

impl Spot {
    /// Looks for both; `child` finds an apply of the control plane.
    pub(super) fn observe(view: &View<'_>, name: &str, child: impl Fn(&str) -> Child) -> Self {
        let (check, create) = (child(&format!("{name}-{CHECK}")), child(&format!("{name}-{CREATE}")));
        let template = check.apply.present().map_or(Seen::Absent { live: false }, |apply| {
            let reference = &apply.spec.template_ref;
            let own = apply.namespace().unwrap_or_default();
            let namespace = reference.namespace.clone().filter(|name| !name.is_empty()).unwrap_or(own);
            match view.template(&namespace, &reference.name) {
                Seen::Present(_) => view
                    .template(&namespace, CREATE)
                    .map(|_| TemplateReference { name: CREATE.to_owned(), namespace: Some(namespace.clone()) }),
                Seen::Absent { live } => Seen::Absent { live },
                Seen::Unknown => Seen::Unknown,
            }
        });
        Self { check, create, template }
    }
}

/// What is to be said of the role; nothing for control planes without these applies.
pub(super) fn role(observed: &Observed, cluster: &ClusterView, writer: &mut Writer) -> Option<Verdict> {
    let Spot { check, create, template } = &observed.spot;
    let exist = [check, create].map(|child| child.apply.present().is_some());
    if exist == [false, false] {
        return None;
    }
    if check.is_unknown() || create.is_unknown() || template.is_unknown() {
        let stored = observed.control_plane.status.as_ref()?;
        let shown = condition::find(&stored.conditions, conditions::SPOT_ROLE_READY)?;
        return Some(Verdict::new(
            conditions::SPOT_ROLE_READY,
            shown.status,
            shown.reason.clone(),
            shown.message.clone(),
        ));
    }
    let told = |cause: Cause| Verdict::new(conditions::SPOT_ROLE_READY, false, cause.reason, cause.message);
    let there = |reason| Verdict::new(conditions::SPOT_ROLE_READY, true, reason, "");
    if exist[0] {
        match check.progress() {
            ChildProgress::Ready(workspace) if is_true(workspace.outputs().get("role_exists")) => {
                return Some(there("RoleExists"));
            }
            ChildProgress::Ready(_) => {}
            ChildProgress::Unresolved(cause)
            | ChildProgress::InProgress { cause, begun: _ }
            | ChildProgress::Failing(cause, _) => return Some(told(cause)),
        }
    }
    if !exist[1] {
        let Some(template) = template.present() else {
            let message =
                format!("the account has no role for Spot instances, and there is no template {CREATE} to make it");
            return Some(told(Cause::new(reasons::TEMPLATE_NOT_FOUND, message)));
        };
        let wanted = Wanted {
            template: template.clone(),
            variables: BTreeMap::new(),
            secret: None,
            wait_for: vec![WorkspaceReference { name: check.key.name.clone(), namespace: check.key.namespace.clone() }],
            retain: None,
        };
        let owner = observed.control_plane.as_ref();
        create.ensure(writer, Kind::CaptControlPlane, owner, &cluster.meta.name, &wanted);
        return Some(told(create.waiting()));
    }
    Some(match create.progress() {
        ChildProgress::Ready(_) => there("RoleCreated"),
        ChildProgress::Unresolved(cause)
        | ChildProgress::InProgress { cause, begun: _ }
        | ChildProgress::Failing(cause, _) => told(cause),
    })
}

/// Modules put out a bool or a text.
fn is_true(output: Option<&Value>) -> bool {
    output.is_some_and(|value| outputs::as_variable(value).trim() == "true")
}
