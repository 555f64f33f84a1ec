//! `metadata.managedFields`: who manages what, after an update and after an apply.

use capt_status::Time;
use serde_json::{Value, json};

use super::{FieldSet, Step, typed};
use crate::apiserver::schema::Schema;

/// Who writes, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// Field manager.
    pub manager: String,
    /// Whether by server-side apply.
    pub applies: bool,
    /// apiVersion of what was written.
    pub api_version: String,
    /// `status` or empty.
    pub subresource: String,
}

impl Writer {
    /// Whether `other` writes into the same entry.
    fn is_same(&self, other: &Self) -> bool {
        self.manager == other.manager
            && self.applies == other.applies
            && self.subresource == other.subresource
            && (self.applies || self.api_version == other.api_version)
    }

    /// As a conflict names it.
    fn name(&self) -> String {
        let Self { manager, applies, api_version, subresource } = self;
        let subresource =
            if subresource.is_empty() { String::new() } else { format!(" with subresource {subresource:?}") };
        if *applies {
            format!("conflict with {manager:?}{subresource}")
        } else {
            format!("conflict with {manager:?}{subresource} using {api_version}")
        }
    }
}

/// The terms of a write: what is written, what of it counts, and when.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// Schema of the object.
    pub schema: &'a Schema,
    /// Top-level fields that the endpoint does not write.
    pub reset: &'a [&'a str],
    /// The time of the API server.
    pub now: Time,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    writer: Writer,
    time: Value,
    fields: FieldSet,
}

/// The entries of an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Managers(Vec<Entry>);

/// Fields that nobody manages: they are the API server's.
const UNMANAGED: [&str; 9] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];

impl Managers {
    /// Reads the entries of `metadata.managedFields`.
    pub fn read(managed_fields: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let entries = managed_fields.as_array().into_iter().flatten().map(|entry| Entry {
            writer: Writer {
                manager: text(&entry["manager"]),
                applies: entry["operation"] == "Apply",
                api_version: text(&entry["apiVersion"]),
                subresource: text(&entry["subresource"]),
            },
            time: entry["time"].clone(),
            fields: FieldSet::from_value(&entry["fieldsV1"]),
        });
        Self(entries.collect())
    }

    /// As `metadata.managedFields`; null if there are none.
    pub fn to_value(&self) -> Value {
        if self.0.is_empty() {
            return Value::Null;
        }
        let mut entries: Vec<&Entry> = self.0.iter().collect();
        entries.sort_by_key(|Entry { writer, time, fields: _ }| {
            let Writer { manager, applies, api_version, subresource } = writer;
            (!applies, time.as_str().unwrap_or_default(), manager, api_version, subresource)
        });
        let entries = entries.into_iter().map(|Entry { writer, time, fields }| {
            let Writer { manager, applies, api_version, subresource } = writer;
            let mut entry = json!({
                "operation": if *applies { "Apply" } else { "Update" }, "apiVersion": api_version,
                "time": time, "fieldsType": "FieldsV1", "fieldsV1": fields.to_value(),
            });
            if !manager.is_empty() {
                entry["manager"] = json!(manager);
            }
            if !subresource.is_empty() {
                entry["subresource"] = json!(subresource);
            }
            entry
        });
        Value::Array(entries.collect())
    }

    /// After an update of `old` to `new` by `writer`, which changes what it changes and owns it then.
    pub fn update(&mut self, terms: Terms<'_>, old: &Value, new: &Value, writer: &Writer) {
        let Terms { schema, reset, now } = terms;
        let changes = typed::compare(schema, old, new);
        let touched = changes.modified.union(&changes.added).without(reset);
        let mine = managed(touched.clone(), reset);
        self.take(&touched, &changes.removed.without(reset), |_| true);
        if !mine.is_empty() {
            let before = self.0.iter().position(|entry| entry.writer.is_same(writer)).map(|index| self.0.remove(index));
            let fields = before.map_or(mine.clone(), |before| before.fields.union(&mine));
            self.0.push(Entry { writer: writer.clone(), time: json!(now), fields });
        }
    }

    /// `live` after `writer` applied `config`, or the conflicts with others: the words and the field of each.
    pub fn apply(
        &mut self,
        terms: Terms<'_>,
        live: &Value,
        config: &Value,
        writer: &Writer,
        force: bool,
    ) -> Result<Value, Vec<(String, String)>> {
        let Terms { schema, reset, now } = terms;
        let before = self.clone();
        let merged = typed::merge(schema, Some(live), config);
        let index = self.0.iter().position(|entry| entry.writer.is_same(writer));
        let last = index.map(|index| self.0.remove(index));
        let fields = managed(typed::paths(schema, config), reset);
        if !fields.is_empty() {
            let time = last.as_ref().map_or_else(|| json!(now), |last| last.time.clone());
            self.0.push(Entry { writer: writer.clone(), time, fields });
        }
        let new = match &last {
            Some(last) => self.pruned(schema, &merged, &last.fields),
            None => merged,
        };
        let changes = typed::compare(schema, live, &new);
        let touched = changes.modified.union(&changes.added).without(reset);
        let conflicts: Vec<(String, String)> = self
            .0
            .iter()
            .filter(|entry| !entry.writer.is_same(writer))
            .flat_map(|entry| {
                let paths = entry.fields.intersection(&touched).paths();
                paths.into_iter().map(|path| (entry.writer.name(), path))
            })
            .collect();
        if !force && !conflicts.is_empty() {
            *self = before;
            return Err(conflicts);
        }
        self.take(&touched, &changes.removed.without(reset), |other| !other.is_same(writer));
        let is_news = new != *live || *self != before;
        if let Some(entry) = self.0.iter_mut().find(|entry| is_news && entry.writer.is_same(writer)) {
            entry.time = json!(now);
        }
        Ok(new)
    }

    /// Takes changed fields from `others` and removed ones from everybody.
    fn take(&mut self, changed: &FieldSet, removed: &FieldSet, others: impl Fn(&Writer) -> bool) {
        for entry in &mut self.0 {
            if others(&entry.writer) {
                entry.fields = entry.fields.difference(changed);
            }
            entry.fields = entry.fields.difference(removed);
        }
        self.0.retain(|entry| !entry.fields.is_empty());
    }

    /// `merged` without what only `last`, the previous apply of the same writer, had.
    fn pruned(&self, schema: &Schema, merged: &Value, last: &FieldSet) -> Value {
        let named = |set: &FieldSet| typed::with_named_fields(schema, set);
        let paths = |value: &Value| named(&typed::paths(schema, value));
        let without = |set: &FieldSet| typed::remove(schema, merged, set).unwrap_or_else(|| json!({}));
        let all = paths(merged);
        let owned = self.0.iter().fold(FieldSet::default(), |owned, entry| owned.union(&entry.fields));
        let kept = without(&all.difference(&paths(&without(last))).difference(&named(&owned)));
        without(&all.difference(&paths(&kept)).intersection(&named(last)))
    }

    /// Whether it says the same as `other` but for times.
    pub fn says_the_same(&self, other: &Self) -> bool {
        let plain = |managers: &Self| -> Value {
            let mut entries = managers.clone();
            entries.0.iter_mut().for_each(|entry| entry.time = Value::Null);
            entries.to_value()
        };
        plain(self) == plain(other)
    }
}

/// Without what is the API server's, and without the top-level fields in `reset`, which the endpoint
/// does not write.
fn managed(set: FieldSet, reset: &[&str]) -> FieldSet {
    let mut unmanaged = FieldSet::default();
    for field in ["apiVersion", "kind", "metadata"] {
        unmanaged.insert(&[Step::Field(field.to_owned())]);
    }
    for field in UNMANAGED {
        unmanaged.insert(&[Step::Field("metadata".to_owned()), Step::Field(field.to_owned())]);
    }
    let set = if reset.is_empty() { set } else { set.without(reset) };
    set.difference(&unmanaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        Schema::of_kind(&json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"},
                "o": {"type": "object", "properties": {"x": {"type": "string"}}}}},
        }}))
    }

    fn terms(schema: &Schema) -> Terms<'_> {
        Terms { schema, reset: &[], now: Time::from_unix(0) }
    }

    fn writer(manager: &str, applies: bool) -> Writer {
        Writer { manager: manager.to_owned(), applies, api_version: "g/v1".to_owned(), subresource: String::new() }
    }

    fn apply(
        managers: &mut Managers,
        live: &Value,
        config: &Value,
        who: &str,
        force: bool,
    ) -> Result<Value, Vec<(String, String)>> {
        managers.apply(terms(&schema()), live, config, &writer(who, true), force)
    }

    #[test]
    fn what_an_applier_no_longer_says_goes_unless_somebody_else_says_it() {
        let mut managers = Managers::default();
        let one = apply(&mut managers, &json!({}), &json!({"spec": {"a": "1", "b": "1", "o": {"x": "1"}}}), "m", false)
            .unwrap();
        let two = apply(&mut managers, &one, &json!({"spec": {"b": "1"}}), "n", false).unwrap();
        assert_eq!(one, two);
        let three = apply(&mut managers, &two, &json!({"spec": {"a": "1"}}), "m", false).unwrap();
        // Nulls of fields that cannot be null go before it is stored.
        assert_eq!(three, json!({"spec": {"a": "1", "b": "1", "o": null}}));
    }

    #[test]
    fn a_field_of_another_manager_is_a_conflict_or_taken_by_force() {
        let mut managers = Managers::default();
        managers.update(terms(&schema()), &json!({}), &json!({"spec": {"a": "1"}}), &writer("u", false));
        let live = json!({"spec": {"a": "1"}});
        let conflicts = apply(&mut managers, &live, &json!({"spec": {"a": "2"}}), "m", false).unwrap_err();
        assert_eq!(conflicts, [("conflict with \"u\" using g/v1".to_owned(), ".spec.a".to_owned())]);
        assert!(
            apply(&mut managers, &live, &json!({"spec": {"a": "1"}}), "m", false).is_ok(),
            "the same value is shared"
        );
        assert!(apply(&mut managers, &live, &json!({"spec": {"a": "2"}}), "m", true).is_ok());
        let value = managers.to_value();
        assert_eq!(value[0]["fieldsV1"], json!({"f:spec": {"f:a": {}}}));
        assert_eq!(value[1]["fieldsV1"], json!({"f:spec": {}}), "the other keeps what was not taken");
    }
}
