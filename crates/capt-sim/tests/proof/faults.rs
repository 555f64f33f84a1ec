//! Single faults, and the hooks that make one happen at its point of a run.
//!
//! Up to its fault a run is the faultless one, so a point is a number: of a pass, a request, a write or a
//! delivered change. An id such as `create/refused-409/17` says scenario, fault and point.

use std::{cell::RefCell, fmt, rc::Rc, str::FromStr};

use capt_reconcile::{
    executor::{Refusal, Request, Response},
    object::{Kind, Object, ObjectKey},
    plan::Plan,
    world::World,
};
use capt_sim::{
    Api,
    api::Change,
    simulation::hooks::{Delivery, Fate, Hooks},
};
use capt_status::{Span, Time};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The process dies before a write.
    CrashBefore,
    /// The process dies after a write.
    CrashAfter,
    /// An old leader's write arrives so many seconds later, when another one has taken over.
    Held(i64),
    /// A request is refused with this code; the second number tells AlreadyExists (1) from Conflict.
    Refused(u16, u8),
    /// A request never arrives.
    Lost,
    /// The answer to a request is lost.
    Unanswered,
    /// From this request on the API server is away for a minute; then every watch begins anew.
    Outage,
    /// A change is delivered so many seconds late, or with the next one of its object.
    Late(i64),
    /// From this change on the watch of its kind says nothing for so many seconds.
    Deaf(i64),
    /// A change is delivered twice.
    Twice,
    /// A pass is run twice.
    Again,
    /// The clock of a pass is wrong by so many seconds.
    Clock(i64),
    /// A pass sees the object of this number that it reads as it was so many versions before.
    Stale(usize, usize),
}

impl Fault {
    /// By how much it puts later what begins under it: by as much as its clock is ahead.
    pub fn ahead(self) -> Option<Span> {
        match self {
            Self::Clock(seconds) if seconds > 0 => Some(Span::from_seconds(seconds)),
            Self::Clock(_)
            | Self::CrashBefore
            | Self::CrashAfter
            | Self::Held(_)
            | Self::Refused(_, _)
            | Self::Lost
            | Self::Unanswered
            | Self::Outage
            | Self::Late(_)
            | Self::Deaf(_)
            | Self::Twice
            | Self::Again
            | Self::Stale(_, _) => None,
        }
    }
}

/// A fault at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    pub fault: Fault,
    /// Number of the write, request, change or pass.
    pub point: usize,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let point = self.point;
        match self.fault {
            Fault::CrashBefore => write!(f, "crash-before/{point}"),
            Fault::CrashAfter => write!(f, "crash-after/{point}"),
            Fault::Held(seconds) => write!(f, "held-{seconds}/{point}"),
            Fault::Refused(code, 1) => write!(f, "refused-{code}-exists/{point}"),
            Fault::Refused(code, _) => write!(f, "refused-{code}/{point}"),
            Fault::Lost => write!(f, "lost/{point}"),
            Fault::Unanswered => write!(f, "unanswered/{point}"),
            Fault::Outage => write!(f, "outage/{point}"),
            Fault::Late(seconds) => write!(f, "late-{seconds}/{point}"),
            Fault::Deaf(seconds) => write!(f, "deaf-{seconds}/{point}"),
            Fault::Twice => write!(f, "twice/{point}"),
            Fault::Again => write!(f, "again/{point}"),
            Fault::Clock(seconds) => write!(f, "clock{seconds:+}/{point}"),
            Fault::Stale(read, lag) => write!(f, "stale-{read}-{lag}/{point}"),
        }
    }
}

impl FromStr for At {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error = || format!("`{text}` is no fault at a point");
        let (name, point) = text.split_once('/').ok_or_else(error)?;
        let point = point.parse().map_err(|_| error())?;
        let number = |text: &str| text.parse::<i64>().map_err(|_| error());
        let count = |text: &str| text.parse::<usize>().map_err(|_| error());
        let fault = match name {
            "crash-before" => Fault::CrashBefore,
            "crash-after" => Fault::CrashAfter,
            "lost" => Fault::Lost,
            "unanswered" => Fault::Unanswered,
            "outage" => Fault::Outage,
            "twice" => Fault::Twice,
            "again" => Fault::Again,
            _ => {
                if let Some(seconds) = name.strip_prefix("clock") {
                    Fault::Clock(number(seconds)?)
                } else {
                    match name.split('-').collect::<Vec<_>>()[..] {
                        ["held", seconds] => Fault::Held(number(seconds)?),
                        ["late", seconds] => Fault::Late(number(seconds)?),
                        ["deaf", seconds] => Fault::Deaf(number(seconds)?),
                        ["refused", code] => Fault::Refused(code.parse().map_err(|_| error())?, 0),
                        ["refused", code, "exists"] => Fault::Refused(code.parse().map_err(|_| error())?, 1),
                        ["stale", read, lag] => Fault::Stale(count(read)?, count(lag)?),
                        _ => return Err(error()),
                    }
                }
            }
        };
        Ok(Self { fault, point })
    }
}

/// Reason of a refusal with `code`.
pub fn reason(code: u16, exists: u8) -> &'static str {
    match (code, exists) {
        (409, 1) => "AlreadyExists",
        (409, _) => "Conflict",
        (404, _) => "NotFound",
        (403, _) => "Forbidden",
        (413, _) => "RequestEntityTooLarge",
        (422, _) => "Invalid",
        (429, _) => "TooManyRequests",
        (503, _) => "ServiceUnavailable",
        _ => "InternalError",
    }
}

/// How long the API server is away in an outage.
const OUTAGE: Span = Span::from_minutes(1);

/// What somebody wants to see of a run while it goes on.
pub trait Look {
    /// A pass has planned; its number, what it saw.
    fn planned(&mut self, pass: usize, world: &World, plan: &mut Plan, now: Time);
    /// A request is about to be sent; its number, and that of the write if it is one.
    fn request(&mut self, number: usize, write: Option<usize>, request: &mut Request);
    /// A change is delivered; its number.
    fn change(&mut self, number: usize, change: &Change);
}

/// Makes faults happen, each once.
#[derive(Default)]
pub struct Injector {
    faults: Vec<At>,
    look: Option<Rc<RefCell<dyn Look>>>,
    passes: usize,
    requests: usize,
    writes: usize,
    changes: usize,
    away_until: Option<Time>,
    deaf: Option<(Kind, Time)>,
    /// Up to which version the process that runs has listed everything.
    listed: u64,
}

impl Injector {
    pub fn new(faults: &[At]) -> Self {
        Self { faults: faults.to_vec(), ..Self::default() }
    }

    pub fn looking(self, look: Rc<RefCell<dyn Look>>) -> Self {
        Self { look: Some(look), ..self }
    }

    fn here(&self, point: usize) -> impl Iterator<Item = Fault> {
        self.faults.iter().filter(move |at| at.point == point).map(|at| at.fault)
    }
}

/// The objects that a pass over `key` reads in `world`, in order.
pub fn read_objects(world: &World, key: &ObjectKey, settings: capt_reconcile::pass::Settings) -> Vec<ObjectKey> {
    use capt_reconcile::world::{Read, View};
    let view = View::new(world);
    capt_reconcile::pass::observe(&view, key, settings);
    let mut keys: Vec<ObjectKey> = Vec::new();
    for read in view.into_reads() {
        match read {
            Read::Object(key) => keys.push(key),
            Read::List(kind, namespace) => {
                let of = |key: &&ObjectKey| namespace.is_none() || key.namespace == namespace;
                keys.extend(world.keys(kind).filter(of).cloned());
            }
            Read::Related(relation) => keys.extend(world.related(&relation).cloned()),
        }
    }
    keys.sort();
    keys.dedup();
    keys
}

/// `world` in which `key` is as it was `lag` versions before, of those that `history` knows by version;
/// `None` if there is no such version or it is not there now.
pub fn stale(world: &World, history: &[Change], pass: &ObjectKey, key: &ObjectKey, lag: usize) -> Option<World> {
    world.peek(key)?;
    let mut versions: Vec<&Change> = history.iter().filter(|change| change.key == *key).collect();
    versions.dedup_by_key(|change| change.resource_version);
    let before = match versions.len().checked_sub(lag + 1) {
        Some(index) => Some(versions[index]),
        // One before the first: it is not seen yet.
        // An object that is not seen has no pass.
        None if versions.len() == lag && key != pass => None,
        None => return None,
    };
    let mut world = world.clone();
    world.deleted(key, 0);
    if let Some(Change { resource_version, object: Some(object), .. }) = before {
        world.watched(key.clone(), *resource_version, Object::parse(key.kind, object));
    }
    Some(world)
}

/// The settings of the worlds, by where Workspaces are made.
pub fn settings(scenario: &capt_sim::scenario::Scenario) -> capt_reconcile::pass::Settings {
    capt_reconcile::pass::Settings { workspace_api: scenario.workspace_api, ..Default::default() }
}

/// [`Injector`], and where stale passes take old versions from.
pub struct Injecting {
    pub injector: Injector,
    pub settings: capt_reconcile::pass::Settings,
}

impl Hooks for Injecting {
    fn clock(&mut self, _pass: &ObjectKey, now: Time) -> Time {
        let injector = &mut self.injector;
        injector.passes += 1;
        let shift = injector.here(injector.passes - 1).find_map(|fault| match fault {
            Fault::Clock(seconds) => Some(seconds),
            _ => None,
        });
        shift.map_or(now, |seconds| Time::from_unix(now.as_unix() + seconds))
    }

    fn sees(&mut self, pass: &ObjectKey, world: &World, api: &Api, _now: Time) -> Option<World> {
        let injector = &self.injector;
        let (read, lag) = injector.here(injector.passes - 1).find_map(|fault| match fault {
            Fault::Stale(read, lag) => Some((read, lag)),
            _ => None,
        })?;
        let key = read_objects(world, pass, self.settings).into_iter().nth(read)?;
        stale(world, api.changes(0), pass, &key, lag)
    }

    fn planned(&mut self, world: &World, plan: &mut Plan, now: Time) -> bool {
        let injector = &mut self.injector;
        let pass = injector.passes - 1;
        if let Some(look) = &injector.look {
            look.borrow_mut().planned(pass, world, plan, now);
        }
        // What was stale is corrected by an event that starts the pass again.
        injector.here(pass).any(|fault| matches!(fault, Fault::Again | Fault::Stale(..)))
    }

    fn fate(&mut self, request: &mut Request, now: Time) -> Fate {
        let injector = &mut self.injector;
        let (number, is_write) = (injector.requests, request.is_write());
        let write = is_write.then_some(injector.writes);
        injector.requests += 1;
        injector.writes += usize::from(is_write);
        if let Some(look) = &injector.look {
            look.borrow_mut().request(number, write, request);
        }
        if injector.away_until.is_some_and(|until| now < until) {
            return Fate::Lost;
        }
        for At { fault, point } in injector.faults.clone() {
            let refusal =
                |code, exists| Refusal { code, reason: reason(code, exists).to_owned(), message: "a fault".to_owned() };
            match fault {
                Fault::CrashBefore if write == Some(point) => return Fate::CrashBefore,
                Fault::CrashAfter if write == Some(point) => return Fate::CrashAfter,
                Fault::Held(seconds) if write == Some(point) => return Fate::Held(Span::from_seconds(seconds)),
                Fault::Refused(code, exists) if number == point => return Fate::Refused(refusal(code, exists)),
                Fault::Lost if number == point => return Fate::Lost,
                Fault::Unanswered if number == point => return Fate::Unanswered,
                Fault::Outage if number == point => {
                    injector.away_until = Some(now.plus(OUTAGE));
                    return Fate::Lost;
                }
                _ => {}
            }
        }
        Fate::Answered
    }

    fn answered(&mut self, _: &Request, _: Option<&serde_json::Value>, _: &Response, _: Time) {}

    /// No watch of before is left.
    fn restarts(&mut self, listed: u64) {
        self.injector.listed = listed;
        self.injector.deaf = None;
    }

    fn delivers(&mut self, change: &Change, now: Time) -> Delivery {
        let injector = &mut self.injector;
        injector.changes += 1;
        let number = injector.changes - 1;
        if let Some(look) = &injector.look {
            look.borrow_mut().change(number, change);
        }
        if let Some(until) = injector.away_until.filter(|until| now < *until) {
            return Delivery::Late(until.since(now));
        }
        let begins = injector.here(number).find_map(|fault| match fault {
            Fault::Deaf(seconds) => Some((change.key.kind, now.plus(Span::from_seconds(seconds)))),
            _ => None,
        });
        injector.deaf = begins.or(injector.deaf).filter(|_| change.resource_version > injector.listed);
        if let Some((_, until)) = injector.deaf.filter(|(kind, until)| *kind == change.key.kind && now < *until) {
            return Delivery::Late(until.since(now));
        }
        let delivery = injector.here(number).find_map(|fault| match fault {
            Fault::Late(seconds) => Some(Delivery::Late(Span::from_seconds(seconds))),
            Fault::Twice => Some(Delivery::Twice),
            _ => None,
        });
        delivery.unwrap_or(Delivery::Now)
    }
}
