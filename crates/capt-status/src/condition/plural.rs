//! The plural of a kind, for "And 3 Machines with other issues".
//!
//! The regular English forms and the few irregular words that kinds end in, with the results of
//! the library that Cluster API uses (flect); a rare word may differ from it by its ending.

use alloc::{borrow::ToOwned, string::String};

/// Ending and its plural; the first that fits counts.
const ENDINGS: [(&str, &str); 52] = [
    // Words that are their own plural.
    ("eries", "eries"),
    ("pecies", "pecies"),
    ("hassis", "hassis"),
    ("edia", "edia"),
    ("nformation", "nformation"),
    ("quipment", "quipment"),
    // Irregular words; without the first letter where it may be upper-case.
    ("hild", "hildren"),
    ("erson", "eople"),
    ("riterion", "riteria"),
    ("ndex", "ndices"),
    ("ertex", "ertices"),
    ("trix", "trices"),
    ("lias", "liases"),
    ("axis", "axes"),
    ("Axis", "Axes"),
    ("asis", "ases"),
    ("risis", "rises"),
    ("hesis", "heses"),
    ("ysis", "yses"),
    ("gnosis", "gnoses"),
    ("edium", "edia"),
    ("atum", "ata"),
    ("tadium", "tadiums"),
    // Endings, in the order of flect.
    ("tive", "tives"),
    ("eaf", "eaves"),
    ("oaf", "oaves"),
    ("afe", "aves"),
    ("rf", "rves"),
    ("lf", "lves"),
    ("fe", "ves"),
    ("ay", "ays"),
    ("ey", "eys"),
    ("oy", "oys"),
    ("quy", "quies"),
    ("uy", "uys"),
    ("y", "ies"),
    ("ium", "ia"),
    ("us", "uses"),
    ("ch", "ches"),
    ("io", "ios"),
    ("sh", "shes"),
    ("ss", "sses"),
    ("ez", "ezzes"),
    ("iz", "izzes"),
    ("tz", "tzes"),
    ("zz", "zzes"),
    ("lo", "los"),
    ("to", "tos"),
    ("oo", "oos"),
    ("o", "oes"),
    ("x", "xes"),
    ("S", "Ses"),
];

/// `kind` in the plural, as in `Policies`.
pub(super) fn plural(kind: &str) -> String {
    for (ending, replacement) in ENDINGS {
        if let Some(stem) = kind.strip_suffix(ending) {
            return [stem, replacement].concat();
        }
    }
    if kind.is_empty() || kind.ends_with('s') { kind.to_owned() } else { [kind, "s"].concat() }
}
