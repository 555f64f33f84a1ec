//! A plan in words, for people. The values of Secrets are taken out before anything is written.

use std::io::{self, Write};

use capt_reconcile::{
    plan::{Action, Counts, Event, EventType, Op, Plan, Precondition, Query},
    report,
};
use serde_json::Value;

/// Name of a write.
pub const fn verb(op: &Op) -> &'static str {
    match op {
        Op::Create { body: _ } => "create",
        Op::MergePatch { body: _ } | Op::JsonPatch { operations: _ } => "patch",
        Op::ApplyStatus { manager: _, status: _ } => "apply status of",
        Op::MergeStatus { manager: _, status: _ } => "patch status of",
        Op::Delete => "delete",
    }
}

/// Where the objects come from, which decides what their absence means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Documents.
    Files,
    /// An API server, by its address.
    Live(String),
}

/// Writes what each pass would do, then what it all amounts to.
pub fn write(plans: &[Plan], source: &Source, out: &mut dyn Write) -> io::Result<()> {
    for plan in plans {
        pass(plan, out)?;
        writeln!(out)?;
    }
    let writes: usize = plans.iter().map(|plan| plan.actions.len()).sum();
    match (plans.len(), writes) {
        (0, _) => match source {
            Source::Files => writeln!(out, "No object in the input has passes: nothing to write.")?,
            Source::Live(address) => writeln!(out, "No object at {address} has passes: nothing to write.")?,
        },
        (_, 0) => writeln!(out, "Nothing to write.")?,
        (_, 1) => writeln!(out, "1 write.")?,
        (_, _) => writeln!(out, "{writes} writes.")?,
    }
    match source {
        Source::Files => writeln!(
            out,
            "Objects that are not in the input count as not existing; say --unknown where that is not known."
        ),
        Source::Live(address) => writeln!(out, "This is of {address}. Nothing was written."),
    }
}

fn pass(plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    let Plan { object, state, actions, events, next, note } = plan;
    match state {
        Some(state) => writeln!(out, "{object}: {}", state.as_str())?,
        None => writeln!(out, "{object}")?,
    }
    if !note.is_empty() {
        writeln!(out, "  {note}")?;
    }
    for (index, action) in actions.iter().enumerate() {
        self::action(index + 1, action, out)?;
    }
    if actions.is_empty() {
        writeln!(out, "  nothing to write")?;
    }
    for Event { type_, reason, note } in events {
        let type_ = match type_ {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        };
        writeln!(out, "  event {type_} {reason}: {note}")?;
    }
    if let Some(next) = next {
        writeln!(out, "  looks again at {next}, or when something changes")?;
    }
    Ok(())
}

fn action(number: usize, action: &Action, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "  {number}. {} {}: {}", verb(&action.op), action.target, action.reason)?;
    writeln!(out, "     only {}", precondition(&action.precondition))?;
    for query in &action.unless {
        writeln!(out, "     only if the API server has no {}", searched(query))?;
    }
    let body = match report::redacted(action)["body"].take() {
        Value::Null => return Ok(()),
        body => serde_saphyr::to_string(&body).map_err(io::Error::other)?,
    };
    for line in body.lines() {
        if line.is_empty() { writeln!(out)? } else { writeln!(out, "       {line}")? }
    }
    Ok(())
}

fn precondition(precondition: &Precondition) -> String {
    match precondition {
        Precondition::MustNotExist => "if it does not exist".to_owned(),
        Precondition::Observed { uid: _, resource_version } => {
            format!("if it still has resourceVersion {resource_version}")
        }
        Precondition::AfterAction(index) => format!("if it is as write {} left it", index + 1),
        Precondition::Uid(uid) => format!("if it still has uid {uid}"),
    }
}

fn searched(query: &Query) -> String {
    match query {
        Query::Object { key, counts } => {
            let which = match counts {
                Counts::Any => String::new(),
                Counts::LabelAbsentOr { label, value } => format!(" without label {label} or with {label}={value}"),
                Counts::OwnedBy { kind, name, uid } => format!(" owned by {} {name} ({uid})", kind.name()),
                Counts::SecretKey { key } => format!(" with a value of {key}"),
            };
            format!("{key}{which}")
        }
        Query::Labelled { kind, label, value } => {
            format!("{} labelled {label}={value} ({})", kind.name(), kind.group())
        }
    }
}

#[cfg(test)]
mod tests {
    use capt_api::foreign::WorkspaceApi;
    use capt_reconcile::object::{Kind, ObjectKey};
    use capt_status::{State, Time};
    use serde_json::json;

    use super::*;

    fn text(plans: &[Plan]) -> String {
        let mut out = Vec::new();
        write(plans, &Source::Files, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_plan_reads_as_a_list_of_writes_with_reasons() {
        let object = ObjectKey::new(Kind::Apply, "ns", "a");
        let secret = ObjectKey::new(Kind::Secret, "ns", "s");
        let action = |op, target: &ObjectKey, precondition, unless, reason: &str| Action {
            op,
            target: target.clone(),
            precondition,
            unless,
            reason: reason.to_owned(),
        };
        let labelled =
            Query::Labelled { kind: Kind::Workspace(WorkspaceApi::Cluster), label: "owner", value: "u".to_owned() };
        let plan = Plan {
            object: object.clone(),
            state: Some(State::Deleting),
            actions: vec![
                action(
                    Op::Create { body: json!({"data": {"value": "Y2FuYXJ5"}}) },
                    &secret,
                    Precondition::MustNotExist,
                    vec![],
                    "it is missing",
                ),
                action(Op::Delete, &object, Precondition::Uid("u".to_owned()), vec![labelled], "it is over"),
            ],
            events: vec![Event { type_: EventType::Normal, reason: "Deleted", note: "gone".to_owned() }],
            next: Some(Time::from_unix(0)),
            note: "waits for the Workspace".to_owned(),
        };
        let expected = "\
WorkspaceTemplateApply/ns/a: Deleting
  waits for the Workspace
  1. create Secret/ns/s: it is missing
     only if it does not exist
       data:
         value: <redacted>
  2. delete WorkspaceTemplateApply/ns/a: it is over
     only if it still has uid u
     only if the API server has no Workspace labelled owner=u (tf.upbound.io)
  event Normal Deleted: gone
  looks again at 1970-01-01T00:00:00Z, or when something changes

2 writes.
Objects that are not in the input count as not existing; say --unknown where that is not known.
";
        assert_eq!(text(&[plan]), expected);
    }

    #[test]
    fn what_was_read_from_an_api_server_is_told_by_its_address() {
        let mut out = Vec::new();
        write(&[], &Source::Live("https://10.0.0.1:6443".to_owned()), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("No object at https://10.0.0.1:6443 has passes: nothing to write."), "{text}");
        assert!(text.ends_with("Nothing was written.\n") && !text.contains("input"), "{text}");
    }

    #[test]
    fn nothing_to_write_is_said() {
        let plan = Plan::nothing(ObjectKey::new(Kind::Apply, "ns", "a"), "paused");
        assert!(
            text(&[plan])
                .starts_with("WorkspaceTemplateApply/ns/a\n  paused\n  nothing to write\n\nNothing to write.\n")
        );
        assert!(text(&[]).starts_with("No object in the input has passes"));
    }
}
