//! The scenarios of `examples/scenarios`.

use std::path::{Path, PathBuf};

use capt_sim::scenario::{self, Deed, Scenario};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios")
}

/// Names of all scenarios, in order.
pub fn names() -> Vec<String> {
    let files = std::fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

/// The scenario of that name.
pub fn scenario(name: &str) -> Scenario {
    let path = directory().join(format!("{name}.yaml"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let read = |file: &str| std::fs::read_to_string(directory().join(file)).map_err(|error| error.to_string());
    scenario::parse(&text, &read).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The scenarios that are played again with faults: those of one cluster, where nothing happens by chance and what is
/// made does not depend on when.
pub fn for_faults() -> Vec<Scenario> {
    let all = names().into_iter().map(|name| scenario(&name));
    let is_in_time =
        |scenario: &Scenario| !scenario.events.iter().any(|event| matches!(event.deed, Deed::RestartWith(_)));
    all.filter(|scenario| scenario.chances.is_none() && scenario.workers == 1).filter(is_in_time).collect()
}
