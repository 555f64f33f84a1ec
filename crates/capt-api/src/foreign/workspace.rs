//! Workspace of provider-terraform, cluster-scoped or namespaced.

use std::sync::LazyLock;

use capt_status::failure::{Failure, classify};
use serde_json::{Map, Value};

use super::meta::{ForeignCondition, ViewMeta, condition};

/// Which of the provider's two kinds of Workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkspaceApi {
    /// `tf.upbound.io`, cluster-scoped.
    Cluster,
    /// `tf.m.upbound.io`, namespaced; served by providers from 1.0.
    Namespaced,
}

impl WorkspaceApi {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Cluster, Self::Namespaced];
    /// Kind of both.
    pub const KIND: &'static str = "Workspace";
    /// Plural of both.
    pub const PLURAL: &'static str = "workspaces";
    /// Version of both.
    pub const VERSION: &'static str = "v1beta1";

    /// API group.
    pub const fn group(self) -> &'static str {
        match self {
            Self::Cluster => "tf.upbound.io",
            Self::Namespaced => "tf.m.upbound.io",
        }
    }

    /// Group and version.
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::Cluster => "tf.upbound.io/v1beta1",
            Self::Namespaced => "tf.m.upbound.io/v1beta1",
        }
    }

    /// Whether its Workspaces live in a namespace.
    pub const fn is_namespaced(self) -> bool {
        match self {
            Self::Cluster => false,
            Self::Namespaced => true,
        }
    }

    /// The kind whose `apiVersion` is given, whatever the version.
    pub fn of_api_version(api_version: &str) -> Option<Self> {
        let (group, _) = api_version.split_once('/')?;
        Self::ALL.into_iter().find(|api| api.group() == group)
    }
}

/// What we read of a Workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceView {
    /// Which kind it is.
    pub api: WorkspaceApi,
    /// Metadata.
    pub meta: ViewMeta,
    /// The spec as it is, null if absent.
    pub spec: Value,
    /// Whether the provider accepted the spec; errors are told here.
    pub synced: Option<ForeignCondition>,
    /// What the error in `synced` means, where it tells one; classified once, when it comes in.
    pub failure: Option<Failure>,
    /// Whether Terraform has nothing to do.
    pub ready: Option<ForeignCondition>,
    /// `status.atProvider` as it is, with the outputs that are not sensitive; `None` if absent or not an object.
    pub at_provider: Option<Value>,
}

impl WorkspaceView {
    /// Reason of `Synced` where the provider tells an error.
    const RECONCILE_ERROR: &str = "ReconcileError";

    /// What `object` says; never fails.
    pub fn parse(api: WorkspaceApi, object: &Value) -> Self {
        let status = &object["status"];
        let synced = condition(&status["conditions"], "Synced");
        let at_provider = Some(&status["atProvider"]).filter(|value| value.is_object());
        Self {
            api,
            meta: ViewMeta::parse(object),
            spec: object["spec"].clone(),
            failure: synced
                .as_ref()
                .filter(|synced| synced.is_false() && synced.reason == Self::RECONCILE_ERROR)
                .map(|synced| classify(&synced.message)),
            synced,
            ready: condition(&status["conditions"], "Ready"),
            at_provider: at_provider.cloned(),
        }
    }

    /// Outputs that are not sensitive. They count only with `synced` of the current generation.
    pub fn outputs(&self) -> &Map<String, Value> {
        static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        let outputs = self.at_provider.as_ref().and_then(|at_provider| at_provider["outputs"].as_object());
        outputs.unwrap_or(&NONE)
    }
}
