//! The operator as its users run it: the built program, as its own process, with its own user.
//!
//! The demo and the integration tests start it through here, against a [`Stack`]. Nothing here looks
//! into the operator; what it does is seen in its objects, its log and the audit log.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

use capt_stack::Stack;

use crate::root;

/// The operator's user name, in RBAC and in the audit log.
pub const USER: &str = "capt-operator";
/// The user name of a second operator beside it.
pub const SECOND_USER: &str = "capt-operator-b";
/// Where the lease of `deploy/rbac` is.
pub const LEASE_NAMESPACE: &str = "capt-system";
/// The cluster role of `deploy/rbac`.
const ROLE: &str = "capt-operator";

/// Why the operator cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program was not built.
    #[error("{path} is not there: build it with `cargo build --bins --examples`")]
    NotBuilt {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The program or one of its files cannot be used.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the operating system says.
        source: io::Error,
    },
    /// A command that prints something ended with an error.
    #[error("`capt-operator {what}` ended with {status}: {stderr}")]
    Printing {
        /// Its arguments.
        what: String,
        /// Its exit status.
        status: ExitStatus,
        /// What it said.
        stderr: String,
    },
    /// The stack has no kubeconfig for it.
    #[error(transparent)]
    Stack(#[from] capt_stack::Error),
}

fn cannot(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    |source| Error::System { what: what.into(), source }
}

/// The built program: in the same target directory as the program that asks.
pub fn program() -> Result<PathBuf, Error> {
    let own = std::env::current_exe().map_err(cannot("find the running program"))?;
    // Tests run in <target>/<profile>/deps, examples in <target>/<profile>/examples.
    let path = own.ancestors().nth(2).unwrap_or(&own).join("capt-operator");
    if path.is_file() { Ok(path) } else { Err(Error::NotBuilt { path }) }
}

/// What an administrator installs before the operator runs, as YAML: the CRDs that the program
/// prints, and the role of `deploy/rbac`, given to the user [`USER`] instead of a service account.
pub fn manifests() -> Result<String, Error> {
    let crds = printed(&["crds"])?;
    let role = root().join("deploy/rbac/role.yaml");
    let role = fs::read_to_string(&role).map_err(cannot(format!("read {}", role.display())))?;
    Ok([crds, role, binding(USER), binding(SECOND_USER)].join("\n---\n"))
}

/// As [`manifests`], with the roles of an operator of the namespaces `watched` and no others; `namespaces` are made.
pub fn limited_manifests(namespaces: &[&str], watched: &[&str]) -> Result<String, Error> {
    let mut documents: Vec<String> = [namespaces, &[LEASE_NAMESPACE]]
        .concat()
        .into_iter()
        .map(|name| format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n"))
        .collect();
    documents.push(printed(&["crds"])?);
    let roles = printed(&["rbac", &format!("--namespace={}", watched.join(","))])?;
    let (account, user) = (
        format!("- kind: ServiceAccount\n  name: {ROLE}\n  namespace: {LEASE_NAMESPACE}\n"),
        format!("- {{apiGroup: rbac.authorization.k8s.io, kind: User, name: {USER}}}\n"),
    );
    documents.push(roles.replace(&account, &user));
    Ok(documents.join("---\n"))
}

/// What the program prints.
fn printed(arguments: &[&str]) -> Result<String, Error> {
    let output = Command::new(program()?).args(arguments).output().map_err(cannot("run capt-operator"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Error::Printing { what: arguments.join(" "), status: output.status, stderr })
}

fn binding(user: &str) -> String {
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\n\
         kind: ClusterRoleBinding\n\
         metadata: {{name: {user}}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {ROLE}}}\n\
         subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {user}}}]\n"
    )
}

/// What the lease needs, as YAML: its namespace, and the role of `deploy/rbac` given to both users.
pub fn lease_manifests() -> Result<String, Error> {
    let path = root().join("deploy/rbac/leader-election.yaml");
    let text = fs::read_to_string(&path).map_err(cannot(format!("read {}", path.display())))?;
    let users = [USER, SECOND_USER]
        .map(|user| format!("- {{apiGroup: rbac.authorization.k8s.io, kind: User, name: {user}}}\n"));
    let (head, _) = text.split_once("subjects:\n").unwrap_or((&text, ""));
    Ok(format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {LEASE_NAMESPACE}}}\n---\n{head}subjects:\n{}",
        users.concat()
    ))
}

/// Memory of a process, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Resident now.
    pub resident: u64,
    /// Resident at most, so far.
    pub peak: u64,
}

/// A running operator. Dropping it kills it, and it does not outlive its stack either.
#[derive(Debug)]
pub struct Operator {
    child: Option<Child>,
    log: PathBuf,
}

impl Operator {
    /// Starts `capt-operator run` with `arguments` against `stack`. Its log is appended to, so that a
    /// restart keeps what came before. It takes no lease, so that one that follows a killed one need
    /// not wait; `--leader-elect` in `arguments` makes it take one.
    pub fn start(stack: &Stack, arguments: &[&str]) -> Result<Self, Error> {
        Self::start_as(stack, USER, arguments)
    }

    /// As [`Operator::start`], with the rights of `user`; its log is `<user>.log`.
    pub fn start_as(stack: &Stack, user: &str, arguments: &[&str]) -> Result<Self, Error> {
        Self::start_in(stack, user, arguments, &[])
    }

    /// As [`Operator::start_as`], with more variables in its environment.
    pub fn start_in(
        stack: &Stack,
        user: &str,
        arguments: &[&str],
        environment: &[(&str, &Path)],
    ) -> Result<Self, Error> {
        let log = stack.directory().join(format!("logs/{user}.log"));
        let output = OpenOptions::new().create(true).append(true).open(&log);
        let output = output.map_err(cannot(format!("open {}", log.display())))?;
        let clone = |output: &File| output.try_clone().map_err(cannot("share the log"));
        let program = program()?;
        let child = Command::new(&program)
            .arg("run")
            .args(arguments)
            // Only what it is given here: no setting of the user's environment may reach it.
            .env_clear()
            .env("CAPT_KUBECONFIG", stack.kubeconfig_for(user)?)
            .env("CAPT_LEADER_ELECT", "false")
            // Any number of them run on one machine.
            .env("CAPT_HEALTH_ADDRESS", "127.0.0.1:0")
            .env("CAPT_METRICS_ADDRESS", "127.0.0.1:0")
            .env("CAPT_LEADER_ELECT_NAMESPACE", LEASE_NAMESPACE)
            .envs(environment.iter().copied())
            // In there the stack's end finds it, whatever happened to this process.
            .current_dir(stack.directory())
            // Not the terminal's group: Ctrl-C is for whoever owns it.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(clone(&output)?)
            .stderr(output)
            .spawn()
            .map_err(cannot(format!("start {}", program.display())))?;
        Ok(Self { child: Some(child), log })
    }

    /// Its process id; absent once it is killed.
    pub fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        fs::read(&self.log).map_or_else(
            |error| format!("(cannot read {}: {error})", self.log.display()),
            |bytes| String::from_utf8_lossy(&bytes).into_owned(),
        )
    }

    /// The last `count` lines of its log.
    pub fn last_lines(&self, count: usize) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(count)..].join("\n")
    }

    /// How it ended, if it did by itself.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.child.as_mut().and_then(|child| child.try_wait().ok().flatten())
    }

    /// Its memory; absent when it is not running.
    pub fn memory(&self) -> Option<Memory> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id()?)).ok()?;
        let bytes = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field))?;
            line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
        };
        Some(Memory { resident: bytes("VmRSS:")?, peak: bytes("VmHWM:")? })
    }

    /// Ends it as `kill -9` does: it can neither finish nor say goodbye.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Either fails only if it is gone already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Lets it run on after this process; the end of its stack ends it.
    pub fn leave_running(mut self) {
        self.child = None;
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.kill();
    }
}
