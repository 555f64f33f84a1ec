//! Who publishes a Cluster's status: Cluster API core, or this operator in its place.
//!
//! Contract unless standalone is proved. To take over from a core that is merely slow would make two writers of
//! one status; to wait for one that never comes only delays a display.

use capt_api::foreign::ClusterView;
use capt_status::{Span, Time};

/// Core may be slow to look at a new Cluster.
const CORE_MAY_BE_SLOW: Span = Span::from_minutes(5);

/// What the user wants (`--cluster-status`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClusterStatus {
    /// Decided for each Cluster.
    #[default]
    Auto,
    /// Core publishes it.
    Contract,
    /// We publish it, as core would.
    Standalone,
}

/// Where the CRD of Cluster comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClusterCrd {
    /// Nobody has looked.
    #[default]
    Unknown,
    /// It carries the label `cluster.x-k8s.io/provider`: installed together with core.
    OfCore,
    /// It carries no such label: installed by hand.
    Bare,
}

/// Who publishes the status of one Cluster, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// Core does.
    Contract(&'static str),
    /// Not decided before this moment; until then as [`Mode::Contract`].
    Undecided(Time),
    /// We do.
    Standalone(&'static str),
}

/// Decides it. `core_seen` says whether core was ever seen at work on any Cluster.
pub fn decide(wanted: ClusterStatus, crd: ClusterCrd, core_seen: bool, cluster: &ClusterView, now: Time) -> Mode {
    match wanted {
        ClusterStatus::Contract => return Mode::Contract("--cluster-status=contract"),
        ClusterStatus::Standalone => return Mode::Standalone("--cluster-status=standalone"),
        ClusterStatus::Auto => {}
    }
    if cluster.shows_core() {
        return Mode::Contract("Cluster API core has worked on this Cluster");
    }
    if core_seen {
        return Mode::Contract("Cluster API core has worked on another Cluster");
    }
    match crd {
        ClusterCrd::OfCore => return Mode::Contract("the CRD of Cluster was installed together with Cluster API core"),
        ClusterCrd::Unknown => return Mode::Contract("it is not known where the CRD of Cluster comes from"),
        ClusterCrd::Bare => {}
    }
    let Some(created) = cluster.meta.created else {
        return Mode::Contract("it is not known how old the Cluster is");
    };
    let proved_at = created.plus(CORE_MAY_BE_SLOW);
    if now < proved_at {
        return Mode::Undecided(proved_at);
    }
    Mode::Standalone("there is no sign of Cluster API core on any Cluster")
}
