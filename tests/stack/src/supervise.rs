//! The life of a stack's processes: they end with their owner, however it ends.
//!
//! A small shell process (`supervise.sh`) holds the reading end of a pipe whose writing end only this
//! process has. The kernel closes it when this process is gone, kill -9 included, and the shell then
//! kills every process of the stack. The ordinary end takes the same way, so it is the one that is
//! tested. Nothing here may depend on a destructor having run.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};

/// Why a process of the stack could not be started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program or its log file could not be opened.
    #[error("cannot start {name}: {source}")]
    Start {
        /// The component.
        name: &'static str,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The supervising shell is gone, so nothing would clean up.
    #[error("the process that watches over the stack is gone: {0}; start the stack again")]
    Supervisor(std::io::Error),
}

/// The owner's end of the pipe. Dropping it ends the stack.
pub(crate) struct Supervisor {
    directory: PathBuf,
    shell: Child,
    pipe: Mutex<Option<ChildStdin>>,
    failed: Mutex<bool>,
}

impl Supervisor {
    /// Starts the shell that watches over `directory`.
    pub(crate) fn new(directory: &Path) -> Result<Self, Error> {
        let start = |source| Error::Start { name: "the supervising shell", source };
        // Its own group, so that neither Ctrl-C nor a killed test run takes it along; and outside
        // the directory, as it kills whatever works in there.
        let mut shell = Command::new("sh")
            .args(["-c", include_str!("supervise.sh"), "supervise.sh"])
            .arg(directory)
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(start)?;
        let pipe = Mutex::new(shell.stdin.take());
        Ok(Self { directory: directory.to_owned(), shell, pipe, failed: Mutex::new(false) })
    }

    /// Starts `command` as component `name` of this stack; its output goes to the end of `logs/<name>.log`.
    pub(crate) fn spawn(&self, name: &'static str, command: &mut Command) -> Result<Process, Error> {
        let start = |source| Error::Start { name, source };
        let log = self.directory.join("logs").join(format!("{name}.log"));
        let output = File::options().create(true).append(true).open(&log).map_err(start)?;
        let child = command
            .current_dir(&self.directory)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(output.try_clone().map_err(start)?)
            .stderr(output)
            .spawn()
            .map_err(start)?;
        // Between the two lines the working directory alone tells the shell whose it is.
        self.order(&format!("group {}", child.id()))?;
        Ok(Process { name, log, child })
    }

    /// Has `directory` removed with the stack.
    pub(crate) fn also_remove(&self, directory: &Path) -> Result<(), Error> {
        self.order(&format!("extra {}", directory.display()))
    }

    /// Says how the owner stands: after `true`, a sudden end leaves no logs.
    pub(crate) fn content(&self, content: bool) -> Result<(), Error> {
        self.order(if content { "discard" } else { "keep" })
    }

    /// Records a failure: the logs are kept, whatever happens later.
    pub(crate) fn fail(&self) {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Whether a failure was recorded.
    pub(crate) fn has_failed(&self) -> bool {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the stack outlive its owner; returns the process id whose termination ends it.
    pub(crate) fn stay(&self) -> Result<u32, Error> {
        self.order("stay")?;
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        *pipe = None;
        Ok(self.shell.id())
    }

    fn order(&self, order: &str) -> Result<(), Error> {
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        match pipe.as_mut() {
            Some(pipe) => writeln!(pipe, "{order}").map_err(Error::Supervisor),
            None => Ok(()),
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let keep = std::thread::panicking() || self.has_failed() || kept_by_environment();
        let pipe = self.pipe.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(mut end) = pipe.take() else {
            return; // The stack stays on purpose.
        };
        if keep {
            let logs = self.directory.join("logs");
            eprintln!("the logs of the stack are in {}", logs.display());
        }
        // A failing write means that the shell is gone; there is nobody left to tell.
        let _ = writeln!(end, "{}", if keep { "keep" } else { "discard" });
        drop(end);
        let _ = self.shell.wait();
    }
}

/// `CAPT_STACK_KEEP=1` keeps the logs of successful runs as well.
fn kept_by_environment() -> bool {
    std::env::var_os("CAPT_STACK_KEEP").is_some_and(|value| !value.is_empty())
}

/// A running component. It belongs to its supervisor; dropping this value only reaps it.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) name: &'static str,
    pub(crate) log: PathBuf,
    child: Child,
}

impl Process {
    /// How it ended, if it did.
    pub(crate) fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        // Either fails only if it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // By now the supervisor has killed it, and what is left is an entry in the process table.
        let _ = self.child.try_wait();
    }
}
