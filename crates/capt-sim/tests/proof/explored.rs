//! What the exploration of small worlds sees of a defect, in the first states of each.

use capt_api::foreign::WorkspaceApi;

use crate::{
    deeds::{self, Deed},
    model::{Config, Defect, Model},
    mutants::{Mutant, Way},
    search,
};

/// How many states of each world are looked at; from each of them a whole life is lived.
const STATES: usize = 250;

const EKS: &str = "demo-eks-controlplane";

fn worlds(defect: Defect) -> Vec<(&'static str, Config)> {
    let world = |deeds: Vec<Deed>| Config { defect, ..Config::of(deeds) };
    let vanishes = Deed::Delete(deeds::workspace(WorkspaceApi::Cluster, EKS));
    vec![
        ("creation", world(vec![])),
        ("deletion, lagging", Config { lags: 1, ..world(vec![deeds::delete_cluster()]) }),
        ("upgrade", world(vec![deeds::upgrade(), Deed::Fail(EKS.to_owned(), "Error: something odd")])),
        ("pause", world(vec![deeds::pause(), deeds::unpause()])),
        ("missing", world(vec![vanishes])),
    ]
}

/// The first world in which something is wrong with `mutant` in it, and what.
pub fn seen_in(mutant: &Mutant) -> Option<(&'static str, String)> {
    let defect = match mutant.way {
        Way::Plan(plans) => Defect { plans, ..Defect::NONE },
        Way::Request(sends) => Defect { sends, ..Defect::NONE },
        Way::Sees(sees) => Defect { sees, ..Defect::NONE },
        // There are no watches that start a pass: any pass may run at any time.
        Way::Watch(_) => return None,
    };
    worlds(defect).into_iter().find_map(|(name, config)| {
        let (mut model, start) = Model::new(config);
        search::explore(&mut model, &start, STATES).violation.map(|violation| (name, violation))
    })
}
