//! Waiting with a limit, and errors that say which component was slow or died, and what it logged.
//!
//! The one place of this crate that sleeps; what is waited for is the caller's probe.

use std::fmt;
use std::future::Future;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::supervise::Process;

/// How long between two looks.
const INTERVAL: Duration = Duration::from_millis(50);
/// How much of a log an error shows: enough for a panic's head, short enough to read.
const TAIL_LINES: usize = 20;

/// Why the wait ended without the thing waited for. Its `Debug` form is the message, so that a test's
/// `unwrap` shows the log's lines as lines.
#[derive(thiserror::Error)]
pub enum Error {
    /// The component ended instead of getting ready.
    #[error("{component} ended ({status}) before it was ready; its log {log} ends with:\n{tail}")]
    Died {
        /// The component.
        component: &'static str,
        /// Its exit status.
        status: String,
        /// Its log file.
        log: String,
        /// The last lines of the log.
        tail: String,
    },
    /// The component did not get ready in time.
    #[error("{component} was not ready after {seconds} s: {last}; its log {log} ends with:\n{tail}")]
    Slow {
        /// The component.
        component: &'static str,
        /// The limit, in seconds.
        seconds: u64,
        /// What the last look saw.
        last: String,
        /// Its log file.
        log: String,
        /// The last lines of the log.
        tail: String,
    },
    /// Something that is no component did not happen in time.
    #[error("{what} did not happen within {seconds} s; last seen: {last}")]
    Never {
        /// What was waited for.
        what: String,
        /// The limit, in seconds.
        seconds: u64,
        /// What the last look saw.
        last: String,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Waits until `probe` returns `Ok`, while all of `processes` live. The last one is waited for, the
/// others are what it needs: the API server says little when it is etcd that died.
pub(crate) async fn ready<T, F, Fut>(processes: &mut [&mut Process], limit: Duration, mut probe: F) -> Result<T, Error>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, String>>,
{
    let start = Instant::now();
    loop {
        let last = match probe().await {
            Ok(value) => return Ok(value),
            Err(last) => last,
        };
        for process in processes.iter_mut() {
            if let Some(status) = process.exited() {
                return Err(Error::Died {
                    component: process.name,
                    status: status.to_string(),
                    log: process.log.display().to_string(),
                    tail: tail(&process.log),
                });
            }
        }
        if start.elapsed() >= limit
            && let Some(process) = processes.last()
        {
            return Err(Error::Slow {
                component: process.name,
                seconds: limit.as_secs(),
                last,
                log: process.log.display().to_string(),
                tail: tail(&process.log),
            });
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Waits until `probe` returns `Ok`; its `Err` says what it saw, and stands in the error at the end.
pub async fn eventually<T, F, Fut>(what: &str, limit: Duration, mut probe: F) -> Result<T, Error>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, String>>,
{
    let start = Instant::now();
    loop {
        let last = match probe().await {
            Ok(value) => return Ok(value),
            Err(last) => last,
        };
        if start.elapsed() >= limit {
            return Err(Error::Never { what: what.to_owned(), seconds: limit.as_secs(), last });
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// The last lines of a log, or why there are none.
fn tail(log: &Path) -> String {
    match std::fs::read(log) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
        }
        Err(error) => format!("(cannot read it: {error})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_wait_that_fails_says_what_it_saw_last() {
        let mut looks = 0;
        let error = eventually("the third look", Duration::from_millis(60), || {
            looks += 1;
            let seen = format!("look {looks}");
            async move { Err::<(), _>(seen) }
        })
        .await
        .unwrap_err()
        .to_string();
        assert!(error.starts_with("the third look did not happen within 0 s; last seen: look "), "{error}");
    }
}
