//! What the demo plays on: the stack, the operator, what happened so far, and what is shown of it.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use capt_stack::Stack;
use capt_tests::{history::History, operator::Operator, root};
use tokio::{process::Command, time::timeout};

use crate::{Error, NAME, NAMESPACE, names, table};

/// What a person would type. `workspace` alone means those of tf.m.upbound.io to kubectl, because that
/// group comes first in the alphabet.
const KINDS: &str = "cluster,captcluster,captcontrolplane,workspacetemplateapply,workspace.tf.upbound.io";
/// One change seldom comes alone; a table is printed when it is quiet for so long,
const QUIET: Duration = Duration::from_millis(150);
/// or at least so often.
const OFTEN: Duration = Duration::from_secs(1);
/// How long one kubectl may take.
const KUBECTL: Duration = Duration::from_secs(30);

/// Prints a line with the time since `start`.
pub(crate) fn say(start: Instant, line: &str) {
    println!("[{:5.1} s] {line}", start.elapsed().as_secs_f64());
}

pub(crate) struct Scene {
    start: Instant,
    pub(crate) stack: Stack,
    pub(crate) operator: Operator,
    pub(crate) history: History,
    shown: String,
}

impl Scene {
    pub(crate) fn new(start: Instant, stack: Stack, operator: Operator, history: History) -> Self {
        Self { start, stack, operator, history, shown: String::new() }
    }

    pub(crate) fn say(&self, line: &str) {
        say(self.start, line);
    }

    /// Applies a file of `examples/` with kubectl.
    pub(crate) async fn apply(&mut self, file: &str) -> Result<(), Error> {
        let path = root().join("examples").join(file);
        let path = fs::canonicalize(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        self.say(&format!("kubectl apply -f examples/{file}: {}", names(file)?));
        self.kubectl(&["apply", "-f", &path.display().to_string()]).await?;
        Ok(())
    }

    /// Waits until `missing` says nothing more, and shows each change of the tables meanwhile.
    pub(crate) async fn watch(
        &mut self,
        what: &str,
        limit: Duration,
        missing: fn(&History) -> Option<String>,
    ) -> Result<(), Error> {
        let end = Instant::now() + limit;
        let mut last_shown = Instant::now();
        loop {
            // Whatever changes comes as an event; the pause only bounds how late its table is.
            let is_quiet = timeout(QUIET, self.history.changed()).await.is_err();
            if is_quiet || last_shown.elapsed() >= OFTEN {
                self.show_if_changed().await?;
                last_shown = Instant::now();
            }
            if let Some(status) = self.operator.exited() {
                return Err(format!("capt-operator ended with {status}").into());
            }
            let Some(missing) = missing(&self.history) else { return Ok(()) };
            if Instant::now() >= end {
                let seconds = limit.as_secs();
                return Err(format!("it did not come true within {seconds} s that {what}: {missing}").into());
            }
        }
    }

    async fn show_if_changed(&mut self) -> Result<(), Error> {
        let printed = self.kubectl(&["get", KINDS]).await?;
        if table::without_ages(&printed) != table::without_ages(&self.shown) {
            self.print(printed);
        }
        Ok(())
    }

    /// Shows the tables as they are now, unless they were shown just so.
    pub(crate) async fn show(&mut self) -> Result<(), Error> {
        self.show_if_changed().await
    }

    fn print(&mut self, printed: String) {
        self.say(&format!("kubectl get {KINDS}"));
        let text = if printed.trim().is_empty() { "No resources found" } else { printed.trim_end() };
        for line in text.lines() {
            println!("          {line}");
        }
        self.shown = printed;
    }

    /// The tables as they were shown last.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// Runs kubectl, and shows the command and what it says.
    pub(crate) async fn kubectl_says(&self, arguments: &[&str]) -> Result<(), Error> {
        let said = self.kubectl(arguments).await?;
        self.say(&format!("kubectl {}: {}", arguments.join(" "), said.trim()));
        Ok(())
    }

    /// What kubectl prints.
    async fn kubectl(&self, arguments: &[&str]) -> Result<String, Error> {
        let words = format!("kubectl {}", arguments.join(" "));
        let output = Command::new(self.stack.kubectl()?)
            .arg("--kubeconfig")
            .arg(self.stack.admin()?)
            .args(["--namespace", NAMESPACE])
            .args(arguments)
            // It keeps what the server serves in there.
            .env("HOME", self.stack.directory())
            .kill_on_drop(true)
            .output();
        let output = timeout(KUBECTL, output)
            .await
            .map_err(|_| format!("`{words}` is not over after {} s", KUBECTL.as_secs()))?
            .map_err(|error| format!("`{words}` cannot be run: {error}"))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("`{words}` ended with {}: {}", output.status, said.trim()).into())
        }
    }

    /// Leaves everything running and says how to use and how to end it.
    pub(crate) fn leave_running(self) -> Result<(), Error> {
        let kubeconfig: PathBuf = self.stack.admin()?;
        let log = self.stack.directory().join("logs/capt-operator.log");
        self.operator.leave_running();
        let id = self.stack.leave_running()?;
        say(self.start, "everything is left running");
        println!("\nexport KUBECONFIG={}", kubeconfig.display());
        println!("kubectl get {KINDS}");
        println!("kubectl delete cluster {NAME}        # deletes all of it, control plane before VPC");
        println!("tail -f {}", log.display());
        println!("kill {id}                        # ends all processes and removes the directory");
        Ok(())
    }
}
