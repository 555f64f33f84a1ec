//! `sandbox --scenario`: the objects of a scenario, and what happens to them, in the time of the sandbox.
//!
//! Expectations are for `simulate`; here people look themselves.

use std::{io::Write, sync::PoisonError, time::Duration};

use capt_sim::scenario::{
    Deed, Process, Scenario,
    play::{behaves, change},
};
use tokio::time::{Instant, sleep_until};

use super::{Error, Models, World};

/// Whether the sandbox can play it; names what it cannot.
pub(super) fn check(scenario: &Scenario) -> Result<(), Error> {
    let clock = scenario.events.iter().any(|event| matches!(event.deed, Deed::Clock(_)));
    let problem = if !scenario.stored.is_empty() {
        "spec.stored: a sandbox has no objects from before it began"
    } else if clock {
        "spec.events: the clock of a sandbox does not jump"
    } else if scenario.chances.is_some() {
        "spec.chances: nothing goes wrong by chance in a sandbox"
    } else {
        return Ok(());
    };
    Err(Error::Unplayable(format!("scenario {}: {problem}", scenario.name)))
}

/// What is so from the beginning, before there is any object.
pub(super) fn begin(scenario: &Scenario, models: &mut Models) {
    models.core = scenario.core;
    models.provider.workers = scenario.workers;
    models.behaviours.clone_from(&scenario.terraform);
}

/// Lets happen what the scenario says, and tells it.
pub(super) async fn play(scenario: &Scenario, world: &mut World, speed: u32, out: &mut dyn Write) -> Result<(), Error> {
    let began = Instant::now();
    for event in &scenario.events {
        let after = Duration::from_secs(event.at.as_seconds().unsigned_abs()) / speed.max(1);
        sleep_until(began + after).await;
        writeln!(out, "{:>8}  {}", event.at.to_string(), event.deed)?;
        out.flush()?;
        match &event.deed {
            Deed::Restart(Process::Capt) => world.restart_operator()?,
            Deed::RestartWith(api) => {
                world.how.workspace_api = (*api).into();
                world.restart_operator()?;
            }
            Deed::Restart(Process::Provider) => {
                let models = &world.models;
                world.service.with(|objects| {
                    models.lock().unwrap_or_else(PoisonError::into_inner).provider.crash(objects);
                });
            }
            Deed::Terraform(behaviour) => {
                behaves(&mut world.models.lock().unwrap_or_else(PoisonError::into_inner).behaviours, behaviour);
            }
            deed @ (Deed::Create(..) | Deed::Patch(..) | Deed::Delete(_) | Deed::Conditions(..) | Deed::Clock(_)) => {
                world.service.with(|objects| change(objects, deed));
            }
        }
    }
    Ok(())
}
