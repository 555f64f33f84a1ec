//! Tests of the machine: its steps, and that no run of several candidates ever has two writers.

use proptest::prelude::*;

use super::*;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn terms() -> Terms {
    Terms::new(seconds(15), seconds(10), seconds(2)).unwrap()
}

fn record(holder: Option<&str>, version: u64) -> Record {
    Record { holder: holder.map(str::to_owned), duration: seconds(15), transitions: 3, version: version.to_string() }
}

fn machine() -> Machine {
    Machine::new("me".to_owned(), terms())
}

#[test]
fn terms_leave_room_between_holder_and_successor() {
    let terms = |duration, deadline, retry| Terms::new(seconds(duration), seconds(deadline), seconds(retry));
    assert!(terms(15, 10, 2).is_ok());
    assert!(matches!(terms(10, 10, 2), Err(TermsError::Overlap { .. })));
    assert!(matches!(terms(15, 2, 2), Err(TermsError::Hasty { .. })));
    assert_eq!(Terms::new(Duration::from_millis(1500), seconds(1), Duration::ZERO), Err(TermsError::Fraction));
}

#[test]
fn a_lease_that_is_not_there_is_made_and_renewed_in_time() {
    let mut machine = machine();
    assert_eq!(machine.next(seconds(100)), Step::Look);
    machine.seen(seconds(100), None);
    assert_eq!(machine.next(seconds(100)), Step::Create);
    assert!(!machine.may_write(seconds(100)));
    machine.written(seconds(100), record(Some("me"), 1));
    assert!(machine.may_write(seconds(109)) && !machine.may_write(seconds(110)), "counted from before it was sent");
    assert_eq!(machine.next(seconds(101)), Step::Wait(seconds(102)));
    assert_eq!(machine.next(seconds(102)), Step::Replace { version: "1".into(), takeover: None });
    machine.written(seconds(102), record(Some("me"), 2));
    assert_eq!(machine.held_until(), Some(seconds(112)));
    assert_eq!(machine.next(seconds(112)), Step::Lost(Loss::Expired));
}

#[test]
fn somebody_elses_lease_is_free_when_it_did_not_change_for_its_duration_as_seen_from_here() {
    let mut machine = machine();
    machine.seen(seconds(100), Some(record(Some("other"), 1)));
    assert_eq!(machine.next(seconds(100)), Step::Wait(seconds(115)));
    machine.seen(seconds(110), Some(record(Some("other"), 1)));
    assert_eq!(machine.next(seconds(110)), Step::Wait(seconds(115)), "the same state again is no renewal");
    machine.seen(seconds(114), Some(record(Some("other"), 2)));
    assert_eq!(machine.next(seconds(128)), Step::Wait(seconds(129)));
    assert_eq!(machine.next(seconds(129)), Step::Replace { version: "2".into(), takeover: Some(4) });
}

#[test]
fn a_lease_that_was_handed_over_is_free_at_once() {
    let mut machine = machine();
    machine.seen(seconds(100), Some(record(Some("other"), 1)));
    machine.seen(seconds(101), Some(record(None, 2)));
    assert_eq!(machine.next(seconds(101)), Step::Replace { version: "2".into(), takeover: Some(4) });
}

#[test]
fn a_lease_that_somebody_deletes_is_not_free_before_its_holder_gave_up() {
    let mut machine = machine();
    machine.seen(seconds(100), Some(record(Some("other"), 1)));
    machine.seen(seconds(105), None);
    machine.seen(seconds(106), None);
    assert_eq!(machine.next(seconds(106)), Step::Wait(seconds(115)));
    assert_eq!(machine.next(seconds(115)), Step::Create);
}

#[test]
fn a_refusal_makes_it_look_again_and_who_took_it_is_told() {
    let mut machine = machine();
    machine.seen(seconds(100), None);
    machine.written(seconds(100), record(Some("me"), 1));
    machine.refused();
    assert_eq!(machine.next(seconds(102)), Step::Look);
    machine.seen(seconds(102), Some(record(Some("thief"), 7)));
    assert_eq!(machine.next(seconds(102)), Step::Lost(Loss::Taken("thief".into())));
}

#[test]
fn a_renewal_whose_answer_was_lost_is_made_again_from_what_is_stored() {
    let mut machine = machine();
    machine.seen(seconds(100), None);
    machine.written(seconds(100), record(Some("me"), 1));
    machine.failed(seconds(103));
    assert_eq!(machine.held_until(), Some(seconds(110)), "no answer is no renewal");
    assert_eq!(machine.next(seconds(104)), Step::Wait(seconds(105)));
    assert_eq!(machine.next(seconds(105)), Step::Look);
    machine.seen(seconds(105), Some(record(Some("me"), 2)));
    assert_eq!(machine.next(seconds(105)), Step::Replace { version: "2".into(), takeover: None });
}

#[test]
fn after_a_release_no_write_may_start() {
    let mut machine = machine();
    assert_eq!(machine.release(), None, "nothing to hand over");
    machine.written(seconds(100), record(Some("me"), 1));
    assert_eq!(machine.release(), Some("1".into()));
    assert!(!machine.may_write(seconds(100)));
}

/// What one candidate asked for, on its way to the store and back.
#[derive(Debug, Clone)]
enum Call {
    Sent { step: Step, at: Moment },
    Answered { at: Moment, answer: Answer },
}

#[derive(Debug, Clone)]
enum Answer {
    Read(Option<Record>),
    Wrote(Record),
    Refused,
}

/// A process: a machine with a clock of its own.
#[derive(Debug)]
struct Candidate {
    machine: Machine,
    /// Its clock: this many thousandths of the true pace, from an origin of its own.
    pace: u32,
    origin: Moment,
    call: Option<Call>,
}

impl Candidate {
    fn new(name: String, pace: u32, origin: u64) -> Self {
        Self { machine: Machine::new(name, terms()), pace, origin: seconds(origin), call: None }
    }

    fn clock(&self, truth: Moment) -> Moment {
        self.origin + truth * self.pace / 1000
    }
}

/// The API server's one object, with compare-and-swap.
#[derive(Debug, Default)]
struct Store {
    record: Option<Record>,
    version: u64,
}

impl Store {
    fn answer(&mut self, step: &Step, identity: &str) -> Answer {
        let free = match (step, &self.record) {
            (Step::Create, None) => true,
            (Step::Replace { version, takeover: _ }, Some(record)) => record.version == *version,
            (Step::Look, record) => return Answer::Read(record.clone()),
            (Step::Create | Step::Replace { .. } | Step::Wait(_) | Step::Lost(_), _) => false,
        };
        if !free {
            return Answer::Refused;
        }
        self.version += 1;
        self.record = Some(record(Some(identity), self.version));
        Answer::Wrote(record(Some(identity), self.version))
    }
}

/// What happens next in a run.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// Time passes, for everybody.
    Pass(Duration),
    /// A candidate goes on, if it is not waiting for an answer.
    Act(usize),
    /// What a candidate asked for reaches the store.
    Arrive(usize),
    /// The answer reaches the candidate.
    Return(usize),
    /// It never does.
    Vanish(usize),
    /// A watch shows a candidate what is stored.
    Watch(usize),
    /// A candidate hands over and starts anew under another name.
    Restart(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let who = 0..3usize;
    prop_oneof![
        4 => (1..400u64).prop_map(|millis| Event::Pass(Duration::from_millis(millis * 10))),
        1 => (4..40u64).prop_map(|secs| Event::Pass(seconds(secs))),
        8 => who.clone().prop_map(Event::Act),
        8 => who.clone().prop_map(Event::Arrive),
        8 => who.clone().prop_map(Event::Return),
        1 => who.clone().prop_map(Event::Vanish),
        2 => who.clone().prop_map(Event::Watch),
        1 => who.prop_map(Event::Restart),
    ]
}

struct Run {
    candidates: Vec<Candidate>,
    store: Store,
    truth: Moment,
    names: usize,
    /// How often somebody gained the lease.
    gained: usize,
}

impl Run {
    fn new(paces: [u32; 3]) -> Self {
        let candidates = paces
            .iter()
            .enumerate()
            .map(|(index, pace)| Candidate::new(format!("c{index}"), *pace, 1_000 * index as u64));
        Self { candidates: candidates.collect(), store: Store::default(), truth: Moment::ZERO, names: 3, gained: 0 }
    }

    fn apply(&mut self, event: Event) {
        let truth = self.truth;
        match event {
            Event::Pass(time) => self.truth += time,
            Event::Act(who) => {
                let candidate = &mut self.candidates[who];
                let at = candidate.clock(truth);
                if candidate.call.is_none() {
                    match candidate.machine.next(at) {
                        step @ (Step::Look | Step::Create | Step::Replace { .. }) => {
                            candidate.call = Some(Call::Sent { step, at });
                        }
                        Step::Wait(until) => assert!(until > at, "a wait for the past spins"),
                        Step::Lost(_) => self.restart(who),
                    }
                }
            }
            Event::Arrive(who) => {
                let candidate = &mut self.candidates[who];
                if let Some(Call::Sent { step, at }) = candidate.call.take() {
                    let answer = self.store.answer(&step, candidate.machine.identity());
                    candidate.call = Some(Call::Answered { at, answer });
                }
            }
            Event::Return(who) => {
                let candidate = &mut self.candidates[who];
                let now = candidate.clock(truth);
                if let Some(Call::Answered { at, answer }) = candidate.call.take() {
                    let before = candidate.machine.held_until().is_some();
                    match answer {
                        Answer::Read(record) => candidate.machine.seen(now, record),
                        Answer::Wrote(record) => candidate.machine.written(at, record),
                        Answer::Refused => candidate.machine.refused(),
                    }
                    self.gained += usize::from(!before && candidate.machine.held_until().is_some());
                }
            }
            Event::Vanish(who) => {
                let candidate = &mut self.candidates[who];
                if candidate.call.take().is_some() {
                    candidate.machine.failed(candidate.clock(truth));
                }
            }
            Event::Watch(who) => {
                let candidate = &mut self.candidates[who];
                if candidate.machine.held_until().is_none() {
                    let now = candidate.clock(truth);
                    candidate.machine.seen(now, self.store.record.clone());
                }
            }
            Event::Restart(who) => {
                // A process that is told to stop answers its last request first.
                if self.candidates[who].call.is_none() {
                    if let Some(version) = self.candidates[who].machine.release()
                        && self.store.record.as_ref().is_some_and(|record| record.version == version)
                    {
                        self.store.version += 1;
                        self.store.record = Some(record(None, self.store.version));
                    }
                    self.restart(who);
                }
            }
        }
    }

    fn restart(&mut self, who: usize) {
        let Candidate { machine: _, pace, origin, call: _ } = &self.candidates[who];
        let (pace, origin) = (*pace, origin.as_secs());
        self.candidates[who] = Candidate::new(format!("c{}", self.names), pace, origin);
        self.names += 1;
    }

    fn writers(&self) -> Vec<&str> {
        let may = |candidate: &&Candidate| candidate.machine.may_write(candidate.clock(self.truth));
        self.candidates.iter().filter(may).map(|candidate| candidate.machine.identity()).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// Clocks of any origin that run up to a fifth too fast or too slow; requests and answers that
    /// take any time or get lost; processes that stand still for any time.
    #[test]
    fn there_is_never_more_than_one_writer(
        paces in [840..1200u32, 840..1200u32, 840..1200u32],
        events in prop::collection::vec(event(), 1..300),
    ) {
        let mut run = Run::new(paces);
        for event in events {
            run.apply(event);
            prop_assert!(run.writers().len() <= 1, "{:?} at {:?}", run.writers(), run.truth);
        }
    }

    /// Whatever happened before: when requests are answered again, somebody gets the lease.
    #[test]
    fn somebody_gets_the_lease_once_requests_are_answered(events in prop::collection::vec(event(), 0..100)) {
        let mut run = Run::new([1000, 900, 1100]);
        for event in events {
            run.apply(event);
        }
        for who in 0..3 {
            run.apply(Event::Vanish(who));
        }
        let before = run.gained;
        let mut led = false;
        for _ in 0..60 {
            run.apply(Event::Pass(seconds(1)));
            for who in 0..3 {
                for event in [Event::Act(who), Event::Arrive(who), Event::Return(who)] {
                    run.apply(event);
                }
            }
            led |= !run.writers().is_empty();
        }
        prop_assert!(led && run.writers().len() == 1, "nobody leads");
        prop_assert!(run.gained <= before + 2, "the lease wanders although everybody is well");
    }
}
