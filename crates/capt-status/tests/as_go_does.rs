//! What the Go libraries that everybody runs say of made-up conditions and objects, and what ours says.
//!
//! `as_go_does.jsonl` is the output of the program in `go/`, which runs Cluster API's conditions,
//! kstatus, kubectl wait and the Lua interpreter of Argo CD; `just go-cases` writes it anew.

// Helpers of a test are tests too; clippy sees only functions marked as such.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use capt_status::{
    Condition, Time,
    condition::{self, Aggregate, CombineError, ConditionType, Reason, Source, Summary, Verdict, types},
    kstatus::{LooseCondition, Manifest, Wait, argo, compute},
};
use serde::Deserialize;
use serde_json::Value;

/// One line of the file.
#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum Case {
    Script {
        text: String,
    },
    Summary {
        conditions: Option<Vec<Condition>>,
        types: Option<Vec<String>>,
        negative: Option<Vec<String>>,
        ignored: Option<Vec<String>>,
        target: String,
        want: Option<Wanted>,
    },
    Aggregate {
        sources: Option<Vec<Object>>,
        negative: bool,
        want: Option<Wanted>,
    },
    Mirror {
        conditions: Option<Vec<LooseCondition>>,
        want: Wanted,
    },
    Sort {
        types: Option<Vec<String>>,
        want: Option<Vec<String>>,
    },
    Set {
        steps: Vec<Step>,
        want: Vec<Condition>,
    },
    Names {
        text: String,
        #[serde(rename = "type")]
        is_type: bool,
        reason: bool,
    },
    Plural {
        kind: String,
        want: String,
    },
    Tools {
        object: Value,
        kstatus: String,
        message: String,
        waits: BTreeMap<String, bool>,
        argo: Option<String>,
        #[serde(rename = "argoMessage")]
        argo_message: Option<String>,
    },
}

/// A condition that Go made, without generation.
#[derive(Debug, PartialEq, Deserialize)]
struct Wanted {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    reason: String,
    message: String,
    since: Option<Time>,
}

#[derive(Deserialize)]
struct Object {
    kind: String,
    name: String,
    first: bool,
    conditions: Option<Vec<Condition>>,
}

#[derive(Deserialize)]
struct Step {
    verdict: Wanted,
    generation: i64,
    now: Time,
}

impl From<Verdict> for Wanted {
    fn from(verdict: Verdict) -> Self {
        Self {
            type_: verdict.type_.into(),
            status: verdict.status.as_str().to_owned(),
            reason: verdict.reason.into(),
            message: verdict.message,
            since: verdict.since,
        }
    }
}

impl Wanted {
    fn verdict(self) -> Verdict {
        let status = condition::ConditionStatus::parse(&self.status).unwrap();
        Verdict::new(ConditionType::new(self.type_).unwrap(), status, self.reason, self.message)
    }
}

/// The cases that `of` takes, at least `least` of them.
fn cases<T>(least: usize, of: impl Fn(Case) -> Option<T>) -> Vec<T> {
    let cases: Vec<T> =
        include_str!("as_go_does.jsonl").lines().filter_map(|line| of(serde_json::from_str(line).unwrap())).collect();
    assert!(cases.len() >= least, "only {} cases", cases.len());
    cases
}

fn names(list: Option<&Vec<String>>) -> Vec<&str> {
    list.into_iter().flatten().map(String::as_str).collect()
}

#[test]
fn the_file_was_made_with_the_script_that_is_shipped() {
    let scripts = cases(1, |case| if let Case::Script { text } = case { Some(text) } else { None });
    assert_eq!(scripts, [argo::LUA], "run `just go-cases`");
}

#[test]
fn summaries_are_those_of_cluster_api() {
    let mut refused = 0;
    for case in cases(150, |case| matches!(case, Case::Summary { .. }).then_some(case)) {
        let Case::Summary { conditions, types, negative, ignored, target, want } = case else { unreachable!() };
        let (types, negative, ignored) = (names(types.as_ref()), names(negative.as_ref()), names(ignored.as_ref()));
        let target = ConditionType::new(target).unwrap();
        let summary = Summary::new(&types).negative(&negative).ignore_if_missing(&ignored);
        let conditions = conditions.unwrap_or_default();
        let got = summary.of(&conditions, target).ok().map(Wanted::from);
        assert_eq!(got, want, "{types:?} of {conditions:?}");
        refused += usize::from(got.is_none());
    }
    assert!(refused > 0);
}

#[test]
fn aggregates_are_those_of_cluster_api() {
    for case in cases(150, |case| matches!(case, Case::Aggregate { .. }).then_some(case)) {
        let Case::Aggregate { sources, negative, want } = case else { unreachable!() };
        let objects = sources.unwrap_or_default();
        let none = Vec::new();
        let sources: Vec<Source<'_>> = objects
            .iter()
            .map(|Object { kind, name, first, conditions }| Source {
                kind,
                name,
                conditions: conditions.as_ref().unwrap_or(&none),
                first: *first,
            })
            .collect();
        let aggregate = Aggregate::new(types::READY).as_type(ConditionType::literal("AllReady"));
        let aggregate = if negative { aggregate.negative() } else { aggregate };
        match aggregate.of(&sources) {
            Ok(verdict) => assert_eq!(Some(Wanted::from(verdict)), want, "{sources:?}"),
            Err(error) => assert_eq!((error, want), (CombineError::NoSources, None)),
        }
    }
}

#[test]
fn mirrors_are_those_of_cluster_api() {
    let target = || ConditionType::literal("DiskReady");
    for case in cases(60, |case| matches!(case, Case::Mirror { .. }).then_some(case)) {
        let Case::Mirror { conditions, want } = case else { unreachable!() };
        let conditions = conditions.unwrap_or_default();
        let got = condition::mirror(&conditions, "Ready", target())
            .unwrap_or_else(|| condition::not_yet_reported("Ready", target()));
        assert_eq!(Wanted::from(got), want, "{conditions:?}");
    }
}

#[test]
fn the_order_is_that_of_cluster_api() {
    for case in cases(20, |case| matches!(case, Case::Sort { .. }).then_some(case)) {
        let Case::Sort { types, want } = case else { unreachable!() };
        let mut types = types.unwrap_or_default();
        types.sort_by(|left, right| condition::canonical(left, right));
        assert_eq!(types, want.unwrap_or_default());
    }
}

#[test]
fn setting_does_what_cluster_api_does() {
    for case in cases(60, |case| matches!(case, Case::Set { .. }).then_some(case)) {
        let Case::Set { steps, want } = case else { unreachable!() };
        let mut conditions = Vec::new();
        for Step { verdict, generation, now } in steps {
            condition::set(&mut conditions, verdict.verdict(), generation, now);
        }
        // Go leaves a generation of 0 out.
        for condition in &mut conditions {
            condition.observed_generation = condition.observed_generation.filter(|generation| *generation != 0);
        }
        assert_eq!(conditions, want);
    }
}

#[test]
fn names_are_valid_where_the_patterns_of_metav1_say_so() {
    let (mut types, mut reasons) = (0, 0);
    for case in cases(250, |case| matches!(case, Case::Names { .. }).then_some(case)) {
        let Case::Names { text, is_type, reason } = case else { unreachable!() };
        assert_eq!(ConditionType::is_valid(&text), is_type, "{text:?} as a type");
        assert_eq!(Reason::is_valid(&text), reason, "{text:?} as a reason");
        types += usize::from(is_type);
        reasons += usize::from(reason);
    }
    assert!(types > 10 && reasons > 10, "{types} types, {reasons} reasons");
}

#[test]
fn plurals_are_those_of_cluster_api() {
    let down = Verdict::new(types::READY, false, "Down", "down");
    let down = condition::merge(&[], vec![down], 1, Time::from_unix(0));
    for case in cases(100, |case| matches!(case, Case::Plural { .. }).then_some(case)) {
        let Case::Plural { kind, want } = case else { unreachable!() };
        let sources = ["a", "b"].map(|name| Source { kind: &kind, name, conditions: &down, first: false });
        let verdict = Aggregate::new(types::READY).of(&sources).unwrap();
        assert_eq!(verdict.message, format!("* {want} a, b: down"));
    }
}

#[test]
fn tools_say_what_we_say_they_do() {
    let mut seen = BTreeMap::new();
    for case in cases(250, |case| matches!(case, Case::Tools { .. }).then_some(case)) {
        let Case::Tools { object, kstatus, message, waits, argo: health, argo_message } = case else { unreachable!() };
        let manifest: Manifest = serde_json::from_value(object.clone()).unwrap();
        let report = compute(&manifest.object());
        assert_eq!((report.status.as_str(), &*report.message), (kstatus.as_str(), message.as_str()), "{object}");
        for (text, met) in waits {
            assert_eq!(Wait::parse(&text).unwrap().is_met(&manifest.object()), met, "{text} of {object}");
            *seen.entry(format!("{text} {met}")).or_insert(0) += 1;
        }
        *seen.entry(kstatus).or_insert(0) += 1;
        if let (Some(health), Some(message)) = (health, argo_message) {
            let (ours, said) = argo::health(&manifest.object());
            assert_eq!((ours.as_str(), &*said), (health.as_str(), message.as_str()), "{object}");
            *seen.entry(health).or_insert(0) += 1;
        }
    }
    // Four answers of kstatus, four of Argo CD, and four conditions that are met and not met.
    assert_eq!(seen.len(), 16, "{seen:?}");
}
