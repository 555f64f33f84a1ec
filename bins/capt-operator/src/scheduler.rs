//! Runs passes as the [`Queue`] says, in tokio's time.
//!
//! Wakes come from anywhere through a [`Waker`]; they coalesce in the queue, so their number is
//! bounded by the number of objects. It must not know what a pass does.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use capt_reconcile::object::ObjectKey;
use tokio::{
    sync::Notify,
    task::{Id, JoinError, JoinSet},
    time::{Instant, sleep_until, timeout},
};

use crate::queue::{Concurrency, Queue, Start, Trigger, Verdict};

/// Starts passes; cheap to clone.
#[derive(Debug, Clone)]
pub struct Waker(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    woken: Notify,
}

impl Waker {
    /// A waker of a queue that runs no more passes at once than `concurrency` says.
    pub fn new(concurrency: impl Into<Concurrency>) -> Self {
        Self(Arc::new(Shared { queue: Mutex::new(Queue::new(concurrency)), woken: Notify::new() }))
    }

    /// `trigger` happened and concerns the passes of `objects`.
    pub fn wake(&self, objects: impl IntoIterator<Item = ObjectKey>, trigger: Trigger) {
        let now = Instant::now();
        let mut queue = self.queue();
        let mut any = false;
        for object in objects {
            queue.wake(object, trigger, now);
            any = true;
        }
        drop(queue);
        if any {
            self.0.woken.notify_one();
        }
    }

    /// Whether passes are kept from starting; those under way end as planned.
    pub fn hold(&self, held: bool) {
        self.queue().hold(held);
        self.0.woken.notify_one();
    }

    /// How many passes wait, and how many are under way.
    pub fn load(&self) -> (usize, usize) {
        let queue = self.queue();
        (queue.waiting(), queue.running())
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Every method of the queue leaves it consistent at any point where it could panic.
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `pass` for every object that is due until `shutdown` is ready; then waits for the passes
/// under way, no longer than `grace`. Returns how many of them did not end in time.
///
/// `pass` gets what is started and for how long it has been due.
pub async fn run<P, F>(waker: &Waker, pass: P, shutdown: impl Future<Output = ()>, grace: Duration) -> usize
where
    P: Fn(Start, Duration) -> F,
    F: Future<Output = Verdict> + Send + 'static,
{
    let mut passes: JoinSet<Verdict> = JoinSet::new();
    let mut objects: HashMap<Id, ObjectKey> = HashMap::new();
    tokio::pin!(shutdown);
    loop {
        let next_due = {
            let mut queue = waker.queue();
            let now = Instant::now();
            while let Some(start) = queue.start(now) {
                let (object, waited) = (start.object.clone(), now.duration_since(start.due));
                let handle = passes.spawn(pass(start, waited));
                objects.insert(handle.id(), object);
            }
            queue.next_due()
        };
        let due = async {
            match next_due {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = &mut shutdown => break,
            () = waker.0.woken.notified() => {}
            () = due => {}
            Some(ended) = passes.join_next_with_id() => finish(waker, &mut objects, ended),
        }
    }
    let drained = async { while passes.join_next().await.is_some() {} };
    // A failure here only says that time is up, and what is left over is counted.
    let _ = timeout(grace, drained).await;
    let left = passes.len();
    passes.abort_all();
    left
}

/// Takes over how a pass ended. One that panicked is a bug; it is retried like a failure, so that
/// its object is not lost and the others go on.
fn finish(waker: &Waker, objects: &mut HashMap<Id, ObjectKey>, ended: Result<(Id, Verdict), JoinError>) {
    let (id, verdict) = match ended {
        Ok((id, verdict)) => (id, verdict),
        Err(error) => {
            tracing::error!(%error, "a pass ended abnormally");
            (error.id(), Verdict::Failed)
        }
    };
    let Some(object) = objects.remove(&id) else { return };
    let wait = waker.queue().finish(object.clone(), verdict, Instant::now());
    if let (Some(wait), Verdict::Failed | Verdict::Stale) = (wait, verdict) {
        tracing::debug!(%object, ?wait, "waits for the next try");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use capt_reconcile::object::Kind;
    use tokio::{sync::mpsc, time::sleep};

    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new(Kind::Apply, "ns", name)
    }

    const EVENT: Trigger = Trigger::Event(Kind::Apply);
    const SETTLED: Verdict = Verdict::Settled { next: None };

    /// Runs `pass` for `time`; returns when each pass started, in seconds since the begin.
    async fn started<F>(waker: &Waker, time: u64, pass: impl Fn(usize) -> F) -> Vec<(String, f32)>
    where
        F: Future<Output = Verdict> + Send + 'static,
    {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let (begin, count) = (Instant::now(), AtomicUsize::new(0));
        let recorded = |start: Start, _| {
            sender.send((start.object.name.clone(), begin.elapsed().as_secs_f32())).unwrap();
            pass(count.fetch_add(1, Ordering::Relaxed))
        };
        run(waker, recorded, sleep(Duration::from_secs(time)), Duration::from_secs(1)).await;
        drop(sender);
        let mut all = Vec::new();
        while let Some(one) = receiver.recv().await {
            all.push(one);
        }
        all
    }

    #[tokio::test(start_paused = true)]
    async fn passes_run_when_woken_and_when_they_said() {
        let waker = Waker::new(8);
        waker.wake([key("a")], EVENT);
        let other = waker.clone();
        tokio::spawn(async move {
            sleep(Duration::from_secs(5)).await;
            other.wake([key("b"), key("b")], EVENT);
        });
        let verdicts = [Verdict::Settled { next: Some(Duration::from_mins(1)) }, SETTLED, SETTLED];
        let all = started(&waker, 3600, |n| async move { verdicts[n] }).await;
        assert_eq!(all, [("a".to_owned(), 0.0), ("b".to_owned(), 5.0), ("a".to_owned(), 60.0)]);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_retried_later_and_later() {
        let waker = Waker::new(8);
        waker.wake([key("a")], EVENT);
        let all = started(&waker, 20, |_| async { Verdict::Failed }).await;
        let times: Vec<f32> = all.into_iter().map(|(_, at)| at).collect();
        assert_eq!(times, [0.0, 1.0, 3.0, 7.0, 15.0]);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_passes_run_at_once_than_allowed() {
        let waker = Waker::new(2);
        waker.wake([key("a"), key("b"), key("c")], EVENT);
        let all = started(&waker, 100, |_| async {
            sleep(Duration::from_secs(10)).await;
            SETTLED
        })
        .await;
        assert_eq!(all.iter().map(|(_, at)| *at).collect::<Vec<_>>(), [0.0, 0.0, 10.0]);
    }

    #[tokio::test(start_paused = true)]
    async fn shutdown_lets_passes_finish_but_not_for_ever() {
        for (length, left) in [(3, 0), (30, 1)] {
            let waker = Waker::new(8);
            waker.wake([key("a")], EVENT);
            let pass = |_, _| async move {
                sleep(Duration::from_secs(length)).await;
                SETTLED
            };
            let shutdown = sleep(Duration::from_secs(1));
            assert_eq!(run(&waker, pass, shutdown, Duration::from_secs(10)).await, left, "a pass of {length} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pass_that_panics_is_retried_and_stops_nobody_else() {
        let waker = Waker::new(1);
        waker.wake([key("a")], EVENT);
        let all = started(&waker, 4, |n| async move {
            assert!(n > 0, "the first pass panics");
            SETTLED
        })
        .await;
        assert_eq!(all.len(), 2);
    }
}
