//! How much of a Workspace's outputs the status holds: etcd and every watch carry it each time.
//!
//! It only leaves out. What is used goes last, and what is left out of `atProvider` is named.

use std::{borrow::Cow, cmp::Reverse, collections::BTreeMap, io};

use capt_status::text::truncate;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::outputs::{as_variable, as_variables};

/// Largest `workspaceStatus.atProvider`, in bytes of JSON.
const MAX_AT_PROVIDER: usize = 128 << 10;

/// Largest `workspaceTemplateStatus.outputs`, in bytes of JSON, and most of them.
const MAX_OUTPUTS: usize = 64 << 10;
const MAX_COUNT: usize = 1000;

/// Most names of what was left out, and the longest one in bytes.
const MAX_NAMES: usize = 100;
const MAX_NAME: usize = 200;

/// Outputs that we use; the others go first where there is too much.
const USED: [&str; 6] = [
    "cluster_endpoint",
    "cluster_certificate_authority_data",
    "cluster_name",
    "cluster_version",
    "oidc_provider_arn",
    "kubeconfig",
];

/// `at_provider` within its bound, and the names of the outputs that this leaves out.
pub(super) fn at_provider(at_provider: &Value) -> (Cow<'_, Value>, Vec<String>) {
    let excess = size(at_provider).saturating_sub(MAX_AT_PROVIDER);
    if excess == 0 {
        return (Cow::Borrowed(at_provider), Vec::new());
    }
    let mut kept = at_provider.clone();
    let Some(outputs) = kept["outputs"].as_object_mut() else { return (Cow::Borrowed(at_provider), Vec::new()) };
    let sizes = outputs.iter().map(|(name, value)| (name.clone(), entry(name, value)));
    let mut left_out = excessive(sizes.collect(), excess, 0);
    outputs.retain(|name, _| left_out.binary_search(name).is_err());
    if size(&kept) > MAX_AT_PROVIDER {
        // It is none of the outputs that is too large.
        kept = json!({"outputs": kept["outputs"]});
    }
    let more = left_out.len().saturating_sub(MAX_NAMES);
    left_out.truncate(MAX_NAMES);
    let mut names: Vec<String> = left_out.iter().map(|name| truncate(name, MAX_NAME)).collect();
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    (Cow::Owned(kept), names)
}

/// Whether `texts` are all of `outputs` as texts, and within their bounds; allocates nothing for strings.
pub(super) fn are_outputs(texts: &BTreeMap<String, String>, outputs: &Map<String, Value>) -> bool {
    texts.len() == outputs.len()
        && texts.len() <= MAX_COUNT
        && outputs.iter().all(|(name, value)| texts.get(name).is_some_and(|text| *text == as_variable(value)))
        && texts.iter().map(|(name, text)| entry(name, text)).sum::<usize>() <= MAX_OUTPUTS
}

/// `outputs` as texts, without what goes beyond their bounds.
pub(super) fn outputs(outputs: &Map<String, Value>) -> BTreeMap<String, String> {
    let mut texts = as_variables(outputs);
    bound(&mut texts);
    texts
}

fn bound(outputs: &mut BTreeMap<String, String>) {
    let sizes: Vec<(String, usize)> = outputs.iter().map(|(name, value)| (name.clone(), entry(name, value))).collect();
    let excess = sizes.iter().map(|(_, size)| size).sum::<usize>().saturating_sub(MAX_OUTPUTS);
    let too_many = sizes.len().saturating_sub(MAX_COUNT);
    if excess == 0 && too_many == 0 {
        return;
    }
    let left_out = excessive(sizes, excess, too_many);
    outputs.retain(|name, _| left_out.binary_search(name).is_err());
}

/// The names, in order, of what has to go to save `excess` bytes and `too_many` entries: the largest ones, and
/// those that are used last.
fn excessive(mut sizes: Vec<(String, usize)>, mut excess: usize, mut too_many: usize) -> Vec<String> {
    sizes.sort_by_key(|(name, size)| (USED.contains(&name.as_str()), Reverse(*size)));
    let mut names: Vec<String> = sizes
        .into_iter()
        .map_while(|(name, size)| {
            let goes = excess > 0 || too_many > 0;
            (excess, too_many) = (excess.saturating_sub(size), too_many.saturating_sub(1));
            goes.then_some(name)
        })
        .collect();
    names.sort();
    names
}

/// Size of a field with its name, quotes, colon and comma.
fn entry(name: &str, value: &impl Serialize) -> usize {
    size(name) + size(value) + 2
}

/// Size in bytes of JSON, without writing it anywhere.
fn size(value: &(impl Serialize + ?Sized)) -> usize {
    struct Counter(usize);

    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut counter = Counter(0);
    // What cannot be written as JSON (no value of ours) counts as too large.
    serde_json::to_writer(&mut counter, value).map_or(usize::MAX / 4, |()| counter.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_provider(value: &Value) -> (Value, Vec<String>) {
        let (kept, left_out) = super::at_provider(value);
        (kept.into_owned(), left_out)
    }

    #[test]
    fn what_is_too_large_is_left_out_and_named_and_what_we_use_stays() {
        let large = "x".repeat(100 << 10);
        let outputs = json!({"cluster_endpoint": large, "a": large, "b": "small", "c": "y".repeat(90 << 10)});
        let (kept, left_out) = at_provider(&json!({"checksum": "s", "outputs": outputs}));
        assert_eq!(left_out, ["a", "c"]);
        assert_eq!(kept, json!({"checksum": "s", "outputs": {"cluster_endpoint": large, "b": "small"}}));
    }

    #[test]
    fn what_fits_stays_as_it_is_to_the_byte() {
        let small = json!({"outputs": {"a": 1}});
        assert_eq!(at_provider(&small), (small.clone(), Vec::new()));
        let empty = size(&json!({"outputs": {"a": ""}}));
        let full = json!({"outputs": {"a": "x".repeat(MAX_AT_PROVIDER - empty)}});
        assert_eq!(at_provider(&full), (full.clone(), Vec::new()));
        let over = json!({"outputs": {"a": "x".repeat(MAX_AT_PROVIDER - empty + 1)}});
        assert_eq!(at_provider(&over), (json!({"outputs": {}}), vec!["a".to_owned()]));
    }

    #[test]
    fn what_we_use_goes_where_nothing_else_is_left() {
        let large = "x".repeat(MAX_AT_PROVIDER);
        let (kept, left_out) = at_provider(&json!({"outputs": {"cluster_endpoint": large, "b": "small"}}));
        assert_eq!(
            (kept, left_out.as_slice()),
            (json!({"outputs": {}}), &["b".to_owned(), "cluster_endpoint".to_owned()][..])
        );
        let (kept, left_out) = at_provider(&json!({"checksum": large, "outputs": {"b": "small"}}));
        assert_eq!((kept, left_out.as_slice()), (json!({"outputs": {}}), &["b".to_owned()][..]));
    }

    #[test]
    fn not_more_names_than_a_person_reads() {
        let outputs: Map<String, Value> =
            (0..150).map(|number| (format!("{number:03}{}", "n".repeat(300)), json!("x".repeat(2000)))).collect();
        let (kept, left_out) = at_provider(&json!({ "outputs": outputs }));
        assert!(size(&kept) <= MAX_AT_PROVIDER);
        let gone = 150 - kept["outputs"].as_object().map_or(0, Map::len);
        assert_eq!(left_out.len(), gone.min(MAX_NAMES), "{gone}");
        assert!(left_out.iter().all(|name| name.len() <= MAX_NAME), "{left_out:?}");
        let many: Map<String, Value> = (0..100_000).map(|number| (number.to_string(), json!(1))).collect();
        let (_, left_out) = at_provider(&json!({ "outputs": many }));
        assert_eq!(left_out.len(), MAX_NAMES + 1);
        let last = left_out.last().map(String::as_str).unwrap_or_default();
        assert!(last.starts_with("and ") && last.ends_with(" more"), "{last}");
    }

    #[test]
    fn outputs_have_a_size_and_a_number() {
        let mut many: BTreeMap<String, String> = (0..2000).map(|number| (number.to_string(), String::new())).collect();
        many.insert("cluster_name".to_owned(), "demo".to_owned());
        bound(&mut many);
        assert_eq!((many.len(), many.contains_key("cluster_name")), (MAX_COUNT, true));
        let before = many.clone();
        bound(&mut many);
        assert_eq!(many, before);
        let mut large = BTreeMap::from([
            ("a".to_owned(), "\"".repeat(MAX_OUTPUTS / 2)),
            ("b".to_owned(), "b".to_owned()),
            ("cluster_version".to_owned(), "1.31".to_owned()),
        ]);
        bound(&mut large);
        assert_eq!(large.keys().collect::<Vec<_>>(), ["b", "cluster_version"], "as JSON it is twice as long");
    }

    #[test]
    fn texts_are_the_outputs_exactly_if_taking_them_over_changes_nothing() {
        let lists = [
            json!({}),
            json!({"a": "x"}),
            json!({"b": "x"}),
            json!({"a": "x", "b": 1}),
            json!({"a": "x", "b": "1"}),
            json!({"a": "x", "b": [1, "y"]}),
            json!({"a": "x".repeat(MAX_OUTPUTS - 7)}),
            json!({"a": "x".repeat(MAX_OUTPUTS - 6)}),
            json!({"a": "x".repeat(MAX_OUTPUTS), "b": "1"}),
            (0..MAX_COUNT).map(|number| (number.to_string(), json!(1))).collect::<Map<_, _>>().into(),
            (0..=MAX_COUNT).map(|number| (number.to_string(), json!(1))).collect::<Map<_, _>>().into(),
        ];
        let lists = lists.map(|list| serde_json::from_value::<Map<String, Value>>(list).unwrap());
        let mut told = 0;
        for texts in lists.iter().flat_map(|list| [outputs(list), as_variables(list)]) {
            for list in &lists {
                let is_same = outputs(list) == texts;
                assert!(is_same || !are_outputs(&texts, list), "{:?}", texts.keys());
                // What does not fit is looked at anew each time.
                let fits = as_variables(list) == texts;
                assert_eq!(are_outputs(&texts, list), is_same && fits, "{:?}", texts.keys());
                told += usize::from(is_same && fits);
            }
        }
        assert!(told >= 16, "{told}");
    }
}
