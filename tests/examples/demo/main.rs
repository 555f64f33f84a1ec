//! The operator's main job on real software, for people to look at: `just demo [--keep]`.
//!
//! A real API server, Cluster API core and provider-terraform are started in a temporary directory,
//! the built operator runs beside them, and the Cluster of `examples/` is created and deleted again.
//! Every table is what `kubectl` prints. What the text claims is checked: this program ends with an
//! error, and the end of the operator's log, when it does not come true in time.

mod facts;
mod scene;
mod summary;
mod table;

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use capt_stack::{Stack, Tier};
use capt_tests::{
    documents,
    history::{History, Kind},
    operator::{self, Operator},
    root,
};
use tokio::signal::unix::{SignalKind, signal};

use scene::{Scene, say};

/// Lines of the operator's log that a failure shows.
const LOG_LINES: usize = 30;
/// Longest whole run. Two minutes are usual.
const LIMIT: Duration = Duration::from_mins(15);
/// From the first manifest to a provisioned Cluster. Ten seconds are usual on a quiet machine.
const CREATION: Duration = Duration::from_mins(3);
/// From the deletion of the Cluster until nothing is left; the provider itself takes up to 45 seconds
/// for a Workspace that is younger than 30 seconds, and there are two in a row.
const DELETION: Duration = Duration::from_mins(4);

/// Namespace and name of everything in `examples/cluster.yaml`.
const NAMESPACE: &str = "default";
const NAME: &str = "demo";

/// Anything that ends the demo early; its text is all that people need.
type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let keep = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [flag] if flag == "--keep" => true,
        other => {
            eprintln!("error: unknown arguments `{}`: use --keep, or nothing", other.join(" "));
            return ExitCode::FAILURE;
        }
    };
    let result = tokio::select! {
        result = tokio::time::timeout(LIMIT, demo(keep)) => {
            result.unwrap_or_else(|_| Err(format!("the demo is not over after {} s", LIMIT.as_secs()).into()))
        }
        () = stopped() => Err("stopped; everything that was started is ended".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Ctrl-C, or the polite kill. What was started ends as its owners are dropped.
async fn stopped() {
    match (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) {
        (Ok(mut interrupt), Ok(mut terminate)) => tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        },
        // Then the signals end this process, and with it the stack.
        (Err(_), _) | (_, Err(_)) => std::future::pending().await,
    }
}

async fn demo(keep: bool) -> Result<(), Error> {
    let start = Instant::now();
    say(start, "starting etcd, kube-apiserver, kube-controller-manager, Cluster API core and provider-terraform");
    let stack = Stack::builder(Tier::Provider)
        .install(operator::manifests()?)
        .progress(move |what, took| say(start, &format!("{what}: {:.1} s", took.as_secs_f64())))
        .start()
        .await?;
    let history = History::start(&stack.admin_client().await?).await?;
    say(start, "starting capt-operator run");
    let mark = jiff::Timestamp::now();
    let operator = Operator::start(&stack, &[])?;
    let mut scene = Scene::new(start, stack, operator, history);
    match play(&mut scene, keep, mark).await {
        Ok(()) if keep => scene.leave_running(),
        Ok(()) => {
            say(start, "done; everything that was started is ended");
            Ok(())
        }
        Err(error) => {
            let lines = scene.operator.last_lines(LOG_LINES);
            Err(format!("{error}\nthe operator's log ends with:\n{lines}\nCAPT_STACK_KEEP=1 keeps all logs").into())
        }
    }
}

async fn play(scene: &mut Scene, keep: bool, mark: jiff::Timestamp) -> Result<(), Error> {
    for file in ["vpc-template.yaml", "eks-template.yaml"] {
        scene.apply(file).await?;
    }
    let creation = Instant::now();
    scene.apply("cluster.yaml").await?;
    scene.watch("the Cluster is provisioned and everything is Ready", CREATION, facts::not_yet_ready).await?;
    let created = creation.elapsed();
    scene.show().await?;
    let endpoint = facts::ready(scene).await?;
    scene.say(&format!("ready after {:.1} s: the control plane serves at {endpoint}", created.as_secs_f64()));
    if keep {
        return Ok(());
    }

    let deletion = Instant::now();
    scene.kubectl_says(&["delete", "cluster", NAME, "--wait=false"]).await?;
    scene.say("(the provider waits until a Workspace is 30 seconds old before it believes what it sees)");
    scene.watch("nothing of the Cluster is left", DELETION, facts::not_yet_gone).await?;
    facts::gone(scene).await?;
    let deleted = deletion.elapsed();
    scene.show().await?;
    for line in facts::order(scene)? {
        scene.say(&line);
    }
    scene.say(&format!("everything is gone after {:.1} s", deleted.as_secs_f64()));
    summary::print(scene, mark, created, deleted)?;
    Ok(())
}

/// The kinds of the documents in a file of `examples/`, for people.
fn names(file: &str) -> Result<String, Error> {
    let documents = documents(&root().join("examples").join(file))?;
    let name = |document: &serde_json::Value| {
        let text = |pointer| document.pointer(pointer).and_then(serde_json::Value::as_str).unwrap_or_default();
        format!("{} {}", text("/kind"), text("/metadata/name"))
    };
    Ok(documents.iter().map(name).collect::<Vec<_>>().join(", "))
}

/// Kinds of which none may be left, with the words for them.
const OURS: [(Kind, &str); 6] = [
    (Kind::Cluster, "Cluster"),
    (Kind::ControlPlane, "CAPTControlPlane"),
    (Kind::CaptCluster, "CAPTCluster"),
    (Kind::Apply, "WorkspaceTemplateApply"),
    (Kind::Workspace, "Workspace"),
    (Kind::NamespacedWorkspace, "namespaced Workspace"),
];
