//! Starts a stack and holds it until Ctrl-C: `cargo run -p capt-stack --example stack -- provider`.
//!
//! The argument is the tier (`api-server`, `core` or `provider`; the last one by default), each
//! further argument a manifest file that is installed before the controllers start.

use std::io::Write as _;

use capt_stack::{Stack, Tier};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let tier = match arguments.next().as_deref() {
        None | Some("provider") => Tier::Provider,
        Some("core") => Tier::Core,
        Some("api-server") => Tier::ApiServer,
        Some(other) => {
            return Err(format!("unknown tier `{other}`: api-server, core or provider").into());
        }
    };
    let mut builder = Stack::builder(tier).progress(|what, took| println!("# {what}: {:.1} s", took.as_secs_f64()));
    for file in arguments {
        let yaml = std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
        builder = builder.install(yaml);
    }
    let stack = builder.start().await?;
    println!("# ready after {:.1} s", stack.took().as_secs_f64());
    for (name, id) in stack.components() {
        println!("# {name} {id}");
    }
    println!("export KUBECONFIG={}", stack.admin()?.display());
    std::io::stdout().flush()?;
    tokio::signal::ctrl_c().await?;
    Ok(())
}
