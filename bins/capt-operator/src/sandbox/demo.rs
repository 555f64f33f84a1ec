//! `sandbox --demo`: a cluster's whole life, told as it happens.
//!
//! A line is printed when something changed that a person would see with kubectl. It ends by itself,
//! and with an error if the life does not come to its end.

use std::{io::Write, time::Duration};

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::object::{Kind, ObjectKey};
use capt_sim::{World, service::Service};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::{Error, clock, files};

/// How long the demonstration may take at speed 1.
const PATIENCE: Duration = Duration::from_hours(2);
/// How long it may take however fast the world is.
const LEAST_PATIENCE: Duration = Duration::from_mins(1);

/// What is shown of the world.
#[derive(Debug, Clone, PartialEq, Default)]
struct Row {
    cells: [String; 5],
    is_ready: bool,
    is_empty: bool,
}

const HEADINGS: [&str; 5] = ["CLUSTER", "CAPTCLUSTER", "CAPTCONTROLPLANE", "WORKSPACES", "READY?"];

/// Plays it.
pub(super) async fn play(service: &Service, speed: u32, out: &mut dyn Write) -> Result<(), Error> {
    let end = Instant::now() + (PATIENCE / speed.max(1)).max(LEAST_PATIENCE);
    let began = clock::now();
    writeln!(out, "A cluster's life in the sandbox: everything in this process, nothing outside is touched.")?;
    writeln!(out, "Terraform is a model of it that takes its time; here time runs {speed} times as fast.\n")?;
    writeln!(
        out,
        "$ kubectl apply -f examples/vpc-template.yaml -f examples/eks-template.yaml -f examples/cluster.yaml\n"
    )?;
    files::install(service, files::CLUSTER).await.map_err(Error::Refused)?;
    let mut show = Show { service, out, began, last: Row::default(), end };
    show.heading()?;
    show.until("the cluster is not Ready", |row| row.is_ready).await?;
    let key = ObjectKey::new(Kind::CaptControlPlane, "default", "demo");
    let endpoint =
        service.with(|world| world.get(&key).map(|object| object["status"]["endpoint"].clone())).unwrap_or_default();
    writeln!(show.out, "\nThe cluster is Ready and serves at {}.\n", endpoint.as_str().unwrap_or_default())?;
    writeln!(show.out, "$ kubectl delete cluster demo\n")?;
    service.with(|world| world.delete(&ObjectKey::new(Kind::Cluster, "default", "demo")));
    show.heading()?;
    show.until("something is left behind", |row| row.is_empty).await?;
    writeln!(show.out, "\nEverything is gone, the control plane before the VPC. To look at it yourself:\n")?;
    writeln!(show.out, "    cargo run -- sandbox                               # and kubectl in another terminal")?;
    writeln!(
        show.out,
        "    cargo run -- plan -f examples/first-pass.yaml      # what a single pass would write, and why"
    )?;
    writeln!(show.out, "    just demo                                          # the same against real components")?;
    Ok(())
}

struct Show<'a> {
    service: &'a Service,
    out: &'a mut dyn Write,
    began: capt_status::Time,
    last: Row,
    end: Instant,
}

impl Show<'_> {
    fn heading(&mut self) -> Result<(), Error> {
        self.line("TIME", &HEADINGS.map(str::to_owned))
    }

    fn line(&mut self, time: &str, cells: &[String; 5]) -> Result<(), Error> {
        let [cluster, infrastructure, plane, workspaces, why] = cells;
        writeln!(self.out, "{time:<8} {cluster:<13} {infrastructure:<13} {plane:<17} {workspaces:<24} {why}")?;
        self.out.flush()?;
        Ok(())
    }

    /// Tells what happens until `is_done`; `otherwise` says what is wrong if that takes too long.
    async fn until(&mut self, otherwise: &str, is_done: impl Fn(&Row) -> bool) -> Result<(), Error> {
        let mut changes = self.service.changes();
        loop {
            changes.mark_unchanged();
            let row = self.service.with(|world| row(world));
            if row.cells != self.last.cells {
                let seconds = clock::now().since(self.began).as_seconds();
                self.line(&format!("{}m{:02}s", seconds / 60, seconds % 60), &row.cells)?;
                self.last = row.clone();
            }
            if is_done(&row) {
                return Ok(());
            }
            let left = self.end.saturating_duration_since(Instant::now());
            match timeout(left, changes.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Err(Error::Stuck(otherwise.to_owned())),
            }
        }
    }
}

fn row(world: &World) -> Row {
    let status = |kind: Kind, field: &str| -> String {
        let object = world.get(&ObjectKey::new(kind, "default", "demo"));
        object.map_or("-", |object| object["status"][field].as_str().unwrap_or("")).to_owned()
    };
    let plane = world.get(&ObjectKey::new(Kind::CaptControlPlane, "default", "demo"));
    let ready = plane.and_then(|plane| condition(plane, "Ready"));
    let why = ready.map_or(String::new(), |ready| {
        let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
        format!("{} {}", text("status"), text("reason"))
    });
    let kind = Kind::Workspace(WorkspaceApi::Cluster);
    let workspaces: Vec<String> =
        world.keys(kind).iter().filter_map(|key| Some(workspace(key, world.get(key)?))).collect();
    let infrastructure = status(Kind::CaptCluster, "state");
    let state = status(Kind::CaptControlPlane, "state");
    Row {
        is_ready: infrastructure == "Ready" && state == "Ready" && status(Kind::Cluster, "phase") == "Provisioned",
        is_empty: Kind::ALL.into_iter().all(|kind| kind == Kind::Template || world.keys(kind).is_empty()),
        cells: [status(Kind::Cluster, "phase"), infrastructure, state, workspaces.join(", "), why],
    }
}

/// `vpc Ready`, `eks-controlplane Creating`.
fn workspace(key: &ObjectKey, workspace: &Value) -> String {
    let name = key.name.strip_prefix("demo-").unwrap_or(&key.name);
    let name = name.split('-').next().unwrap_or(name);
    let said = |type_: &str| condition(workspace, type_).map(|condition| condition["status"] == "True");
    let state = if workspace["metadata"]["deletionTimestamp"].is_null() {
        match (said("Synced"), said("Ready")) {
            (Some(false), _) => "failing",
            (_, Some(true)) => "ready",
            (_, Some(false)) => "made",
            (_, None) => "creating",
        }
    } else {
        "going"
    };
    format!("{name} {state}")
}

fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == type_)
}
