//! The two groups in which an event is seen: one object in the store, two spellings.

use serde_json::{Value, json};

use super::{meta::clear, resources::EVENTS};

/// Fields that carry other names in `events.k8s.io`, as (core name, newer name).
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// As it is stored: as an event of the core group.
pub(super) fn stored(group: &str, mut event: Value) -> Value {
    if group == EVENTS {
        for (old, new) in NAMES {
            if let Some(value) = event.get_mut(new).map(Value::take) {
                event[old] = value;
                clear(&mut event, new);
            }
        }
        event["apiVersion"] = json!("v1");
    }
    event
}

/// As `group` shows it.
pub(super) fn shown(group: &str, mut event: Value) -> Value {
    if group == EVENTS {
        for (old, new) in NAMES {
            if let Some(value) = event.get_mut(old).map(Value::take) {
                event[new] = value;
                clear(&mut event, old);
            }
        }
        event["apiVersion"] = json!("events.k8s.io/v1");
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_groups_show_one_event() {
        let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "regarding": {"name": "a"}, "note": "n"});
        let stored = stored(EVENTS, event.clone());
        assert_eq!(
            stored,
            json!({"apiVersion": "v1", "kind": "Event", "involvedObject": {"name": "a"}, "message": "n"})
        );
        assert_eq!(shown(EVENTS, stored.clone()), event);
        assert_eq!(shown("", stored.clone()), stored);
    }
}
