//! Stable names of failures, for conditions, events, metrics and scripts.

use core::{fmt, hash};

use super::{
    class::Class,
    rules::{self, RULES, Rule},
};

/// A stable CamelCase name for one kind of failure, with its class and what to do about it.
///
/// ```
/// use capt_status::failure::{Class, Reason};
/// let reason = Reason::find("VpcQuotaExceeded").ok_or("no such reason")?;
/// assert_eq!((reason.as_str(), reason.class()), ("VpcQuotaExceeded", Class::Quota));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy)]
pub struct Reason(&'static Rule);

impl Reason {
    /// Every reason, in decision order.
    pub const ALL: [Self; rules::COUNT] = {
        let mut all = [Self(RULES[0]); rules::COUNT];
        let mut at = 0;
        while at < all.len() {
            all[at] = Self(RULES[at]);
            at += 1;
        }
        all
    };

    /// The reason of that name.
    pub fn find(name: &str) -> Option<Self> {
        RULES.iter().find(|rule| rule.reason == name).map(|rule| Self(rule))
    }

    /// The reason of a rule.
    pub(super) const fn of(rule: &'static Rule) -> Self {
        Self(rule)
    }

    /// The name: CamelCase ASCII letters, at most 32.
    pub const fn as_str(self) -> &'static str {
        self.0.reason
    }

    /// What kind of failure it is.
    pub const fn class(self) -> Class {
        self.0.class
    }

    /// What to do about it, in one or two sentences.
    pub const fn hint(self) -> &'static str {
        self.0.hint
    }

    /// The reason that it is instead while infrastructure is being changed.
    pub(super) fn while_changing(self) -> Self {
        self.0.while_changing.and_then(Self::find).unwrap_or(self)
    }
}

impl PartialEq for Reason {
    fn eq(&self, other: &Self) -> bool {
        self.0.reason == other.0.reason
    }
}

impl Eq for Reason {}

impl hash::Hash for Reason {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.0.reason.hash(state);
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reason").field(&self.0.reason).finish()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.reason)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use alloc::{collections::BTreeSet, string::ToString};
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

    use super::*;

    #[test]
    fn names_are_short_camel_case_and_unique() {
        let names: BTreeSet<&str> = Reason::ALL.into_iter().map(Reason::as_str).collect();
        assert_eq!(names.len(), Reason::ALL.len());
        for name in names {
            assert!(name.len() <= 32 && name.bytes().all(|byte| byte.is_ascii_alphabetic()), "{name}");
            assert!(name.starts_with(|first: char| first.is_ascii_uppercase()), "{name}");
        }
    }

    #[test]
    fn hints_are_sentences_that_fit_beside_a_message() {
        for reason in Reason::ALL {
            let hint = reason.hint();
            assert!(hint.len() <= 200 && hint.len() > 20 && hint.ends_with('.'), "{reason}: {hint}");
        }
    }

    #[test]
    fn a_reason_is_its_name() {
        let hashes: BTreeSet<u64> =
            Reason::ALL.into_iter().map(|reason| BuildHasherDefault::<DefaultHasher>::new().hash_one(reason)).collect();
        assert_eq!(hashes.len(), Reason::ALL.len());
        for (at, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason.to_string(), reason.as_str());
            assert_eq!(Reason::ALL.iter().position(|other| *other == reason), Some(at));
        }
    }

    #[test]
    fn a_reason_is_found_by_its_name() {
        for reason in Reason::ALL {
            assert_eq!(Reason::find(reason.as_str()), Some(reason));
            if let Some(name) = reason.0.while_changing {
                assert!(Reason::find(name).is_some(), "{name}");
            }
        }
        assert_eq!(Reason::find("None"), None);
    }
}
