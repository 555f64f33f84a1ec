//! Who holds the lease and what to do next, as a pure machine: it does no I/O and reads no clock.
//!
//! A [`Moment`] is read from a clock of this machine that never goes back. No time that another
//! machine wrote is ever compared with it: a lease of somebody else is free once it has not changed
//! for its whole duration *as seen from here*, and ours counts from before the request that renewed
//! it was sent. Clocks that are set, and clocks that run up to `duration / renew_deadline` times
//! faster than others, therefore never make two holders.

use std::time::Duration;

/// A reading of a clock that never goes back, since any origin.
pub type Moment = Duration;

/// Why terms cannot be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TermsError {
    /// The holder would go on for longer than the others wait.
    #[error("the lease duration ({duration:?}) must be longer than the renew deadline ({renew_deadline:?})")]
    Overlap {
        /// How long the others wait.
        duration: Duration,
        /// How long the holder goes on.
        renew_deadline: Duration,
    },
    /// One slow answer would lose the lease.
    #[error("the renew deadline ({renew_deadline:?}) must be longer than the retry period ({retry:?})")]
    Hasty {
        /// How long the holder goes on.
        renew_deadline: Duration,
        /// Time between two renewals.
        retry: Duration,
    },
    /// The API keeps whole seconds.
    #[error("the lease duration must be whole seconds, and at least one")]
    Fraction,
}

/// How long things take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    duration: Duration,
    renew_deadline: Duration,
    retry: Duration,
}

impl Terms {
    /// A lease that others take when it has not been renewed for `duration`, that the holder takes
    /// for lost when it has not been renewed for `renew_deadline`, and renews each `retry`.
    pub fn new(duration: Duration, renew_deadline: Duration, retry: Duration) -> Result<Self, TermsError> {
        if duration.subsec_nanos() != 0 || duration.is_zero() {
            return Err(TermsError::Fraction);
        }
        if duration <= renew_deadline {
            return Err(TermsError::Overlap { duration, renew_deadline });
        }
        if renew_deadline <= retry {
            return Err(TermsError::Hasty { renew_deadline, retry });
        }
        Ok(Self { duration, renew_deadline, retry })
    }

    /// How long others wait.
    pub const fn duration(&self) -> Duration {
        self.duration
    }

    /// Time between two renewals, and before a request is repeated.
    pub const fn retry(&self) -> Duration {
        self.retry
    }
}

/// A lease as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Who holds it; absent when it was handed over.
    pub holder: Option<String>,
    /// How long its holder wants others to wait.
    pub duration: Duration,
    /// How often it changed hands.
    pub transitions: i32,
    /// Its resourceVersion.
    pub version: String,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Read the lease, then [`Machine::seen`].
    Look,
    /// Create the lease in our name, then [`Machine::written`].
    Create,
    /// Replace exactly this version of the lease by one in our name, then [`Machine::written`].
    Replace {
        /// resourceVersion that must still be the current one.
        version: String,
        /// How often it changed hands, this time included; absent if it is ours already.
        takeover: Option<i32>,
    },
    /// Nothing before this moment, unless the lease changes.
    Wait(Moment),
    /// It was ours and is not any more; there is no way back.
    Lost(Loss),
}

/// How a lease was lost.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// No renewal succeeded in time.
    #[error("the lease could not be renewed in time")]
    Expired,
    /// Somebody else has it.
    #[error("the lease was taken by {0}")]
    Taken(String),
}

/// What is known of the stored lease.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Known {
    /// Nothing for certain.
    Nothing,
    /// It is not there; before this moment its last holder may still believe in it.
    Absent { free_at: Moment },
    /// It is there, and has not changed since then as far as was seen.
    Stored { record: Record, since: Moment },
}

/// Our hold on the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    until: Moment,
    renew_at: Moment,
}

/// One candidate.
#[derive(Debug, Clone)]
pub struct Machine {
    identity: String,
    terms: Terms,
    known: Known,
    held: Option<Held>,
    /// Not to try before, after a failure.
    not_before: Moment,
}

impl Machine {
    /// A candidate called `identity`, a name that nobody ever had before.
    pub const fn new(identity: String, terms: Terms) -> Self {
        Self { identity, terms, known: Known::Nothing, held: None, not_before: Moment::ZERO }
    }

    /// Its name.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Until when writes may start; absent if none may.
    pub fn held_until(&self) -> Option<Moment> {
        self.held.as_ref().map(|held| held.until)
    }

    /// Whether a write may start at `now`.
    pub fn may_write(&self, now: Moment) -> bool {
        self.held_until().is_some_and(|until| now < until)
    }

    /// What to do at `now`.
    pub fn next(&self, now: Moment) -> Step {
        match &self.held {
            Some(held) => self.next_as_holder(held, now),
            None => self.next_as_candidate(now),
        }
    }

    fn next_as_holder(&self, held: &Held, now: Moment) -> Step {
        if now >= held.until {
            return Step::Lost(Loss::Expired);
        }
        match &self.known {
            Known::Stored { record, since: _ } if record.holder.as_ref() != Some(&self.identity) => {
                Step::Lost(Loss::Taken(record.holder.clone().unwrap_or_else(|| "nobody".to_owned())))
            }
            Known::Nothing | Known::Absent { free_at: _ } | Known::Stored { record: _, since: _ }
                if now < held.renew_at =>
            {
                Step::Wait(held.renew_at)
            }
            Known::Nothing => Step::Look,
            // Somebody deleted it. We still hold what it stood for.
            Known::Absent { free_at: _ } => Step::Create,
            Known::Stored { record, since: _ } => Step::Replace { version: record.version.clone(), takeover: None },
        }
    }

    fn next_as_candidate(&self, now: Moment) -> Step {
        if now < self.not_before {
            return Step::Wait(self.not_before);
        }
        match &self.known {
            Known::Nothing => Step::Look,
            Known::Absent { free_at } if now < *free_at => Step::Wait(*free_at),
            Known::Absent { free_at: _ } => Step::Create,
            Known::Stored { record, since } => {
                let ours = record.holder.as_ref() == Some(&self.identity);
                let free_at = match &record.holder {
                    Some(_) if !ours => since.saturating_add(record.duration),
                    Some(_) | None => now,
                };
                if now < free_at {
                    Step::Wait(free_at)
                } else {
                    let takeover = (!ours).then(|| record.transitions.saturating_add(1));
                    Step::Replace { version: record.version.clone(), takeover }
                }
            }
        }
    }

    /// The lease was read, or a watch told of it, at `now`.
    pub fn seen(&mut self, now: Moment, record: Option<Record>) {
        self.known = match (record, &self.known) {
            (Some(record), Known::Stored { record: known, since }) if known.version == record.version => {
                Known::Stored { record, since: *since }
            }
            (Some(record), Known::Nothing | Known::Absent { free_at: _ } | Known::Stored { record: _, since: _ }) => {
                Known::Stored { record, since: now }
            }
            (None, Known::Absent { free_at }) => Known::Absent { free_at: *free_at },
            (None, Known::Stored { record, since }) if record.holder.is_some() => {
                Known::Absent { free_at: since.saturating_add(record.duration) }
            }
            (None, Known::Nothing | Known::Stored { record: _, since: _ }) => Known::Absent { free_at: now },
        };
    }

    /// Our write succeeded: the request was sent at `sent`, and `record` is what is stored now.
    pub fn written(&mut self, sent: Moment, record: Record) {
        self.held = Some(Held {
            until: sent.saturating_add(self.terms.renew_deadline),
            renew_at: sent.saturating_add(self.terms.retry),
        });
        self.known = Known::Stored { record, since: sent };
    }

    /// Our write was refused since the lease is not as we thought.
    pub fn refused(&mut self) {
        self.known = Known::Nothing;
    }

    /// There was no answer, or none that says what is stored.
    pub fn failed(&mut self, now: Moment) {
        self.known = Known::Nothing;
        self.not_before = now.saturating_add(self.terms.retry);
        if let Some(held) = &mut self.held {
            held.renew_at = self.not_before;
        }
    }

    /// Gives up the lease; no write may start any more. Returns the version to hand over, if it is
    /// known and ours.
    pub fn release(&mut self) -> Option<String> {
        self.held.take()?;
        match &self.known {
            Known::Stored { record, since: _ } if record.holder.as_ref() == Some(&self.identity) => {
                Some(record.version.clone())
            }
            Known::Nothing | Known::Absent { free_at: _ } | Known::Stored { record: _, since: _ } => None,
        }
    }
}

#[cfg(test)]
mod tests;
