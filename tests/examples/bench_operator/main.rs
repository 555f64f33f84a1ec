//! What the operator costs on a real API server: `just bench-operator [CLUSTERS...]`.
//!
//! For each number of clusters a fresh etcd and kube-apiserver are started and the built operator beside them. This
//! program makes the clusters and plays what is not measured: Cluster API core (owner references) and
//! provider-terraform (status and connection Secret at once), so that the operator is never waiting for anybody. It
//! prints a table for `docs/performance.md`. Nothing here is a test: figures depend on the machine.

#![allow(clippy::cast_precision_loss)] // figures with one digit behind the point

mod bare;

use std::{
    fs,
    process::ExitCode,
    time::{Duration, Instant},
};

use capt_stack::{Stack, Tier};
use capt_tests::{
    documents,
    history::Kind,
    operator::{self, Operator, USER},
    provider::Provider,
    root,
};
use futures::{StreamExt, stream};
use kube::{
    Client,
    api::{DynamicObject, ListParams, PostParams},
};
use serde_json::{Value, json};

type Error = Box<dyn std::error::Error + Send + Sync>;

const NAMESPACE: &str = "default";
/// Requests of this program at a time.
const PARALLEL: usize = 16;
/// How long the clusters may take to be Ready, for each of them; and for the first.
const PATIENCE: Duration = Duration::from_millis(500);
const LEAST_PATIENCE: Duration = Duration::from_mins(2);
/// How long it is watched at rest.
const REST: Duration = Duration::from_mins(1);

#[tokio::main]
async fn main() -> ExitCode {
    let numbers: Result<Vec<usize>, _> = std::env::args().skip(1).map(|text| text.parse()).collect();
    let numbers = match numbers {
        Ok(numbers) if numbers.is_empty() => vec![1, 100, 1000],
        Ok(numbers) => numbers,
        Err(error) => {
            eprintln!("error: {error}: give numbers of clusters, or nothing for 1, 100 and 1000");
            return ExitCode::FAILURE;
        }
    };
    println!(
        "| clusters | all Ready after | operator's writes | each | all writes, bare | ratio | memory | JSON of objects | CPU | requests in {} s of rest |",
        REST.as_secs()
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for number in numbers {
        match measure(number).await {
            Ok(row) => println!("{row}"),
            Err(error) => {
                eprintln!("error: {number} clusters: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

async fn measure(clusters: usize) -> Result<String, Error> {
    let stack = Stack::builder(Tier::ApiServer).install(manifests()?).start().await?;
    let client = stack.admin_client().await?;
    for file in ["vpc-template.yaml", "eks-template.yaml"] {
        stack.apply(&fs::read_to_string(root().join("examples").join(file))?).await?;
    }
    let operator = Operator::start(&stack, &["--workspace-api", "namespaced", "--cluster-status", "contract"])?;
    let provider = Provider::start(&client, Duration::ZERO);
    let example = documents(&root().join("examples/cluster.yaml"))?;
    let (begin, mark) = (Instant::now(), jiff::Timestamp::now());
    stream::iter(0..clusters)
        .map(|number| create(&client, &example, number))
        .buffer_unordered(PARALLEL)
        .collect::<Vec<Result<(), Error>>>()
        .await
        .into_iter()
        .collect::<Result<Vec<()>, Error>>()?;
    let patience = LEAST_PATIENCE.max(PATIENCE * u32::try_from(clusters)?);
    tokio::time::timeout(patience, all_ready(&client, clusters))
        .await
        .map_err(|_| format!("not all Ready in time; the operator's log ends\n{}", operator.last_lines(20)))??;
    let took = begin.elapsed();
    // The last statuses are written up to a minute later, all together.
    tokio::time::sleep(Duration::from_secs(70)).await;
    let (memory, cpu) = (operator.memory().ok_or("the operator is gone")?, cpu(&operator)?);
    let writes = stack.audit().requests_of(USER)?.writes();
    // What was written by all, since all share one API server.
    let by_all = stack.audit().requests()?.since(mark).writes();
    let resting = jiff::Timestamp::now();
    tokio::time::sleep(REST).await;
    let at_rest = stack.audit().requests_of(USER)?.since(resting).filter(|request| request.verb != "watch");
    let json = size(&client).await?;
    drop(provider);
    drop(operator);
    let bare = bare::rate(&client).await?;
    let expected = by_all.len() as f64 / bare;
    Ok(format!(
        "| {clusters} | {:.1} s | {} | {:.1} | {expected:.1} s at {bare:.0}/s | {:.2} | {:.1} MiB | {:.1} MiB | {:.1} s | {} |",
        took.as_secs_f64(),
        writes.len(),
        writes.len() as f64 / clusters as f64,
        took.as_secs_f64() / expected,
        mebibytes(memory.resident),
        mebibytes(json),
        cpu.as_secs_f64(),
        at_rest.len(),
    ))
}

/// What the operator needs, and the CRDs of others, of which no component runs here.
fn manifests() -> Result<String, Error> {
    let mut documents = vec![operator::manifests()?];
    documents.extend(capt_sim::definitions::all()?.iter().map(ToString::to_string));
    Ok(documents.join("\n---\n"))
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// One cluster, as core leaves it: the provider objects know their Cluster.
async fn create(client: &Client, example: &[Value], number: usize) -> Result<(), Error> {
    let name = format!("c-{number}");
    let mut owner = Value::Null;
    for document in example {
        let mut object = document.clone();
        object["metadata"]["name"] = json!(name);
        let kind = match object["kind"].as_str() {
            Some("Cluster") => Kind::Cluster,
            Some("CAPTCluster") => Kind::CaptCluster,
            _ => Kind::ControlPlane,
        };
        if kind == Kind::Cluster {
            for reference in ["infrastructureRef", "controlPlaneRef"] {
                object["spec"][reference]["name"] = json!(name);
            }
        } else {
            object["metadata"]["ownerReferences"] = json!([owner]);
            object["metadata"]["labels"] = json!({"cluster.x-k8s.io/cluster-name": name});
        }
        let object: DynamicObject = serde_json::from_value(object)?;
        let made = kind.api(client, Some(NAMESPACE)).create(&PostParams::default(), &object).await?;
        if kind == Kind::Cluster {
            owner = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": name, "uid": made.metadata.uid});
        }
    }
    Ok(())
}

async fn all_ready(client: &Client, clusters: usize) -> Result<(), Error> {
    let api = Kind::ControlPlane.api(client, Some(NAMESPACE));
    loop {
        let planes = api.list(&ListParams::default()).await?.items;
        if planes.iter().filter(|plane| plane.data["status"]["state"] == "Ready").count() >= clusters {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

/// User and system time of the operator.
fn cpu(operator: &Operator) -> Result<Duration, Error> {
    let id = operator.id().ok_or("the operator is gone")?;
    let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
    // Fields 14 and 15, of which the second is in brackets; a hundredth of a second each.
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks = |index: usize| fields.get(index).and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
    Ok(Duration::from_millis((ticks(11) + ticks(12)) * 10))
}

/// JSON of all objects that the operator watches, in bytes.
async fn size(client: &Client) -> Result<u64, Error> {
    let mut bytes = 0;
    for kind in Kind::ALL {
        let objects = kind.api(client, None).list(&ListParams::default()).await?;
        bytes += serde_json::to_vec(&objects.items)?.len() as u64;
    }
    Ok(bytes)
}
