//! What is collected of a ready EKS Workspace: endpoint, CA, kubeconfig.
//!
//! Endpoint and Secrets are written together, so that `initialized` is never said before a kubeconfig is
//! there. A kubeconfig whose token is about to expire is asked for anew where it is made.

use std::{collections::BTreeMap, sync::Arc};

use capt_api::{
    ApiEndpoint, CAPTControlPlaneStatus, SecretReference, WorkspaceReference,
    foreign::{ClusterView, SecretView, WorkspaceView},
    names::conditions,
};
use capt_status::{
    Endpoint, Span, Time, condition,
    machine::{Cause, Configuration},
};
use kube::ResourceExt;
use serde_json::json;

use super::{
    endpoint::{self, Decision},
    kubeconfig,
    observe::Observed,
    provision::Found,
    secrets, variables,
};
use crate::{
    child::{Child, ChildProgress, Wanted},
    meta::Writer,
    object::{Kind, ObjectKey},
    outputs,
    plan::{Counts, Op, Precondition, Query},
    reasons,
    world::Seen,
};

/// A fresh token is asked for this long before the old one expires, and again as long after.
const LEAD: Span = Span::from_minutes(5);

/// A kubeconfig and who makes it.
#[derive(Debug)]
struct Kubeconfig<'a> {
    text: String,
    made_by: &'a Child,
}

/// Endpoint, CA and kubeconfig of a ready Workspace; true if the spec changes with it.
pub(super) fn configure(
    observed: &Observed,
    cluster: &ClusterView,
    stored: &CAPTControlPlaneStatus,
    found: &mut Found,
    writer: &mut Writer,
    now: Time,
) -> bool {
    let control_plane = observed.control_plane.as_ref();
    let Some(workspace) = found.ready.clone() else {
        keep_fresh(observed, cluster, found, writer, now);
        return false;
    };
    let output = |name: &'static str, reason: &'static str| -> Result<String, Cause> {
        match outputs::text(&workspace, observed.eks.connection(), name) {
            Ok(Some(text)) => Ok(text),
            Ok(None) => Err(Cause::new(
                reason,
                format!(
                    "Workspace {} has no output {name}, neither in its status nor in its connection Secret",
                    workspace.meta.name
                ),
            )),
            Err(error) => Err(Cause::new(reason, format!("Workspace {}: {error}", workspace.meta.name))),
        }
    };
    let url = output("cluster_endpoint", reasons::ENDPOINT_NOT_READY);
    let parsed = url.clone().and_then(|url| {
        endpoint::parse(&url)
            .map_err(|error| Cause::new(reasons::ENDPOINT_NOT_READY, format!("output cluster_endpoint: {error}")))
    });
    let known = endpoint::Known {
        spec: control_plane.spec.control_plane_endpoint.as_ref(),
        put_out: stored
            .workspace_template_status
            .as_ref()
            .and_then(|template| template.outputs.get("cluster_endpoint"))
            .map(String::as_str),
        told: condition::find(&stored.conditions, conditions::ENDPOINT_AVAILABLE)
            .is_some_and(|condition| condition.reason == reasons::ENDPOINT_CHANGED),
        output: parsed,
        cluster: cluster.endpoint.as_ref(),
    };
    let mut changes_spec = false;
    found.endpoint = match endpoint::decide(known, stored.ready) {
        Decision::Keep { endpoint, other } => {
            found.other_endpoint = other;
            Ok(endpoint)
        }
        Decision::Write(endpoint) => {
            writer.own(Op::MergePatch { body: body(&endpoint) }, format!("endpoint {endpoint}"));
            changes_spec = true;
            Ok(endpoint)
        }
        Decision::Missing(cause) => Err(cause),
    };
    if let (Ok(endpoint), Some(written)) = (&found.endpoint, &cluster.endpoint) {
        repair_cluster(cluster, written, endpoint, writer);
    }
    let encoded_ca = output("cluster_certificate_authority_data", reasons::CA_NOT_READY);
    let ca = encoded_ca.clone().and_then(|encoded| secrets::ca_pem(&encoded)).and_then(|pem| {
        secrets::keep_in_step(writer, control_plane, &observed.go_ca_secret, &pem);
        let data = BTreeMap::from([("tls.crt", pem)]);
        secrets::ensure(writer, control_plane, &cluster.meta.name, "ca", &observed.ca_secret, &data)
    });
    let kubeconfig = find_kubeconfig(observed, cluster, &workspace, url.and_then(|url| Ok((url, encoded_ca?))), writer)
        .and_then(|kubeconfig| match kubeconfig {
            Some(kubeconfig) => publish(observed, cluster, &kubeconfig, found, writer, now),
            None => Ok(None),
        });
    // The kubeconfig first: without it nobody reaches the cluster.
    found.secrets = kubeconfig.and_then(|told| Ok(told.or(ca?)));
    match found.endpoint.as_ref().err().or_else(|| found.secrets.as_ref().err()) {
        Some(cause) => found.cause = cause.clone(),
        None => found.configuration = Configuration::Complete,
    }
    changes_spec
}

fn body(endpoint: &Endpoint) -> serde_json::Value {
    json!({"spec": {"controlPlaneEndpoint": {"host": endpoint.host(), "port": endpoint.port()}}})
}

/// The Go implementation wrote URLs as hosts, and Cluster API copied them. Only a URL of the endpoint that
/// is in use is repaired; nothing else of a Cluster's spec is ever written.
fn repair_cluster(cluster: &ClusterView, written: &ApiEndpoint, endpoint: &Endpoint, writer: &mut Writer) {
    let is_url_of_it = endpoint::is_url(&written.host) && endpoint::meant(written).as_ref() == Ok(endpoint);
    if !is_url_of_it || cluster.meta.deleting {
        return;
    }
    let precondition = Precondition::Observed {
        uid: cluster.meta.uid.clone(),
        resource_version: cluster.meta.resource_version.clone(),
    };
    let key = ObjectKey::of_view(Kind::Cluster, &cluster.meta);
    let reason = format!("the endpoint's host is a URL: it is {}", endpoint.host());
    writer.other(key, Op::MergePatch { body: body(endpoint) }, precondition, reason);
}

/// Writes the kubeconfig's Secret, and asks for a fresh token in time.
fn publish(
    observed: &Observed,
    cluster: &ClusterView,
    kubeconfig: &Kubeconfig<'_>,
    found: &mut Found,
    writer: &mut Writer,
    now: Time,
) -> Result<Option<Cause>, Cause> {
    if !kubeconfig::reaches_by_https(&kubeconfig.text) {
        let name = kubeconfig.made_by.workspace_name();
        let message =
            format!("the kubeconfig that Workspace {name} puts out names a server without https://; change the module");
        return Err(Cause::new(reasons::KUBECONFIG_NOT_READY, message));
    }
    let data = BTreeMap::from([("value", kubeconfig.text.clone())]);
    let (control_plane, secret) = (observed.control_plane.as_ref(), &observed.kubeconfig_secret);
    let told = secrets::ensure(writer, control_plane, &cluster.meta.name, "kubeconfig", secret, &data)?;
    let Some(expires) = kubeconfig::expiry(&kubeconfig.text) else { return Ok(told) };
    let due = Time::from_unix(expires.as_unix().saturating_sub(LEAD.as_seconds()));
    let asked = kubeconfig.made_by.asked_at();
    let ask_at = asked.filter(|asked| *asked >= due).map_or(due, |asked| asked.plus(LEAD));
    let mut look = vec![ask_at];
    if now >= ask_at {
        let reason = "the token in the kubeconfig expires: ask the provider for another one";
        kubeconfig.made_by.ask(writer, now, reason);
        look = vec![now.plus(LEAD)];
    }
    look.push(expires);
    found.next = look.into_iter().filter(|at| *at > now).min();
    if now < expires {
        return Ok(told);
    }
    let name = kubeconfig.made_by.workspace_name();
    let message = format!(
        "the token in the kubeconfig that Workspace {name} puts out expired at {expires}; waiting for the provider to put out \
         another one"
    );
    Err(Cause::new(reasons::KUBECONFIG_EXPIRED, message))
}

/// While the EKS Workspace is being changed, the kubeconfig of a further Workspace is kept fresh.
fn keep_fresh(observed: &Observed, cluster: &ClusterView, found: &mut Found, writer: &mut Writer, now: Time) {
    let made_by = &observed.kubeconfig;
    if made_by.apply.present().is_none() || observed.kubeconfig_secret.present().is_none() {
        return;
    }
    if let ChildProgress::Ready(made) = made_by.progress()
        && let Ok(Some(text)) = outputs::text(&made, made_by.connection(), "kubeconfig")
        && kubeconfig::expiry(&text).is_some()
    {
        // What is wrong with it is told once the EKS Workspace is ready.
        let _told_later = publish(observed, cluster, &Kubeconfig { text, made_by }, found, writer, now);
    }
}

/// The kubeconfig: the EKS Workspace's own output, else that of a further apply. `None` if the one in the
/// Secret serves until its source has made another one.
fn find_kubeconfig<'a>(
    observed: &'a Observed,
    cluster: &ClusterView,
    workspace: &WorkspaceView,
    inputs: Result<(String, String), Cause>,
    writer: &mut Writer,
) -> Result<Option<Kubeconfig<'a>>, Cause> {
    let not_ready = |message: String| Cause::new(reasons::KUBECONFIG_NOT_READY, message);
    let text = |workspace: &WorkspaceView, secret| {
        outputs::text(workspace, secret, "kubeconfig")
            .map_err(|error| not_ready(format!("Workspace {}: {error}", workspace.meta.name)))
    };
    if let Some(text) = text(workspace, observed.eks.connection())? {
        return Ok(Some(Kubeconfig { text, made_by: &observed.eks }));
    }
    // A sensitive output is in the connection Secret alone, so as long as that is not seen nobody
    // knows whether there is one.
    if observed.eks.secret.is_some() && observed.eks.connection().is_none_or(|secret| secret.data.is_empty()) {
        return Err(not_ready(format!("waiting for the connection Secret of Workspace {}", workspace.meta.name)));
    }
    let control_plane = observed.control_plane.as_ref();
    let Some(template) = observed.kubeconfig_template.present() else {
        return Err(Cause::new(
            reasons::KUBECONFIG_TEMPLATE_NOT_FOUND,
            format!(
                "Workspace {} has no output kubeconfig, and there is no template to make one: add the output, or create the \
                 WorkspaceTemplate of spec.kubeconfigTemplateRef or eks-kubeconfig-template",
                workspace.meta.name
            ),
        ));
    };
    let region = variables::region(observed).unwrap_or_default();
    let (url, ca) = inputs?;
    let wanted = Wanted {
        template: template.clone(),
        variables: variables::kubeconfig(&cluster.meta.name, region, url, ca),
        secret: Some(SecretReference {
            name: format!("{}-outputs-kubeconfig", cluster.meta.name),
            namespace: control_plane.namespace().unwrap_or_default(),
        }),
        wait_for: vec![WorkspaceReference {
            name: observed.eks.key.name.clone(),
            namespace: observed.eks.key.namespace.clone(),
        }],
        retain: None,
    };
    let kind = Kind::CaptControlPlane;
    let exists = observed.kubeconfig.apply.present().is_some();
    let changes = observed.kubeconfig.ensure(writer, kind, control_plane, &cluster.meta.name, &wanted);
    let changes_spec = changes.is_some();
    if let (Some(action), false, Some((secret, _))) = (changes, exists, &observed.eks.secret) {
        // The cache may lag behind the Secret; a further apply is made only if it truly has no kubeconfig.
        action.unless.push(Query::Object { key: secret.clone(), counts: Counts::SecretKey { key: "kubeconfig" } });
    }
    match observed.kubeconfig.progress() {
        ChildProgress::Ready(made) if !changes_spec => match text(&made, observed.kubeconfig.connection())? {
            Some(text) => Ok(Some(Kubeconfig { text, made_by: &observed.kubeconfig })),
            None => Err(not_ready(format!("Workspace {} has no output kubeconfig yet", made.meta.name))),
        },
        ChildProgress::Ready(_) | ChildProgress::InProgress { cause: _, begun: _ }
            if serves(&observed.kubeconfig_secret) =>
        {
            Ok(None)
        }
        ChildProgress::Ready(_) => {
            Err(not_ready(format!("waiting for Workspace {}", observed.kubeconfig.workspace_name())))
        }
        ChildProgress::InProgress { cause, begun: _ } => Err(not_ready(cause.message)),
        ChildProgress::Unresolved(cause) | ChildProgress::Failing(cause, _) => Err(cause),
    }
}

/// Whether there is a kubeconfig that can be used while another one is made.
fn serves(secret: &Seen<Arc<SecretView>>) -> bool {
    secret.present().and_then(|secret| secret.data.get("value")).is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_kubeconfig_serves_if_it_is_there_and_not_empty() {
        let secret = |data: Value| Seen::Present(Arc::new(SecretView::parse(&json!({"metadata": {}, "data": data}))));
        assert!(serves(&secret(json!({"value": "YQ=="}))));
        assert!(!serves(&secret(json!({"value": ""}))));
        assert!(!serves(&secret(json!({"other": "YQ=="}))));
        assert!(!serves(&Seen::Absent { live: true }));
        assert!(!serves(&Seen::Unknown));
    }
}
