//! The rules' patterns as one table, found by their first word. Built by the compiler, so that there is
//! nothing to initialise: `no_std` has no lazy statics.

use super::rules::{RULES, Strength};

/// One code or phrase of a rule.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pattern {
    /// The code or phrase, or the part of it before its gap.
    pub(super) head: &'static str,
    /// What follows the gap; empty if there is none.
    pub(super) tail: &'static str,
    pub(super) strength: Strength,
    /// How strong it is where the error begins with it.
    pub(super) strength_at_start: Strength,
    /// Place of its rule.
    pub(super) rule: u16,
    /// Hash of the first word and, where there is more, of the next two bytes: many phrases begin
    /// with the same word.
    hash: u32,
    /// The next pattern with the same bucket, from 1; 0 ends.
    next: u16,
}

const BUCKETS: usize = 4096;
const GAP_MARK: &[u8] = b" .. ";

/// How many patterns there are.
pub(super) const COUNT: usize = {
    let (mut count, mut rule) = (0, 0);
    while rule < RULES.len() {
        let patterns = RULES[rule].patterns();
        let mut strength = 0;
        while strength < patterns.len() {
            count += patterns[strength].2.len();
            strength += 1;
        }
        rule += 1;
    }
    count
};

struct Index {
    patterns: [Pattern; COUNT],
    /// First pattern of each bucket, from 1; 0 is empty.
    heads: [u16; BUCKETS],
}

static INDEX: Index = build();

/// One step of the hash of a word, without regard to case (`|` maps letters and leaves digits).
pub(super) const fn hash_step(hash: u32, byte: u8) -> u32 {
    (hash ^ (byte | 0x20) as u32).wrapping_mul(0x0100_0193)
}

/// Where the hash of a word begins.
pub(super) const HASH_START: u32 = 0x811c_9dc5;

/// Whether `byte` belongs to a word.
pub(super) const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

const fn bucket(hash: u32) -> usize {
    ((hash >> 15) ^ hash) as usize % BUCKETS
}

#[allow(clippy::cast_possible_truncation)] // A test compares both counts with u16::MAX.
const fn build() -> Index {
    let empty = Pattern {
        head: "",
        tail: "",
        strength: Strength::Vague,
        strength_at_start: Strength::Vague,
        rule: 0,
        hash: 0,
        next: 0,
    };
    let mut index = Index { patterns: [empty; COUNT], heads: [0; BUCKETS] };
    let (mut count, mut rule) = (0, 0);
    while rule < RULES.len() {
        let patterns = RULES[rule].patterns();
        let mut strength = 0;
        while strength < patterns.len() {
            let mut at = 0;
            while at < patterns[strength].2.len() {
                let text = patterns[strength].2[at];
                let (head, tail) = split(text);
                let hash = key(head.as_bytes());
                let first = &mut index.heads[bucket(hash)];
                index.patterns[count] = Pattern {
                    head,
                    tail,
                    strength: patterns[strength].0,
                    strength_at_start: patterns[strength].1,
                    rule: rule as u16,
                    hash,
                    next: *first,
                };
                count += 1;
                *first = count as u16;
                at += 1;
            }
            strength += 1;
        }
        rule += 1;
    }
    index
}

/// A phrase as the part before its gap and the part behind it.
const fn split(text: &'static str) -> (&'static str, &'static str) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at + GAP_MARK.len() <= bytes.len() {
        if bytes[at] == GAP_MARK[0]
            && bytes[at + 1] == GAP_MARK[1]
            && bytes[at + 2] == GAP_MARK[2]
            && bytes[at + 3] == GAP_MARK[3]
        {
            let (head, rest) = text.split_at(at);
            return (head, rest.split_at(GAP_MARK.len()).1);
        }
        at += 1;
    }
    (text, "")
}

const fn key(head: &[u8]) -> u32 {
    let (mut hash, mut at) = (HASH_START, 0);
    while at < head.len() && is_word(head[at]) {
        hash = hash_step(hash, head[at]);
        at += 1;
    }
    if at + 1 < head.len() {
        hash = hash_step(hash_step(hash, head[at]), head[at + 1]);
    }
    hash
}

/// The patterns with this hash, of a word or of a word and the two bytes behind it; the words may differ.
pub(super) fn candidates(hash: u32) -> impl Iterator<Item = &'static Pattern> {
    let mut next = INDEX.heads.get(bucket(hash)).copied().unwrap_or_default();
    core::iter::from_fn(move || {
        let pattern = INDEX.patterns.get(usize::from(next).checked_sub(1)?)?;
        next = pattern.next;
        Some(pattern)
    })
    .filter(move |pattern| pattern.hash == hash)
}

#[cfg(test)]
mod tests {
    use alloc::{collections::BTreeMap, string::String};

    use super::*;

    #[test]
    fn every_pattern_begins_with_a_word_and_stands_once() {
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        for pattern in &INDEX.patterns {
            let reason = RULES[usize::from(pattern.rule)].reason;
            let text = [pattern.head, pattern.tail].join("|");
            assert!(pattern.head.bytes().next().is_some_and(is_word), "{reason}: {text}");
            assert!(!text.contains("  ") && !text.contains('\n') && !pattern.tail.contains(" .. "), "{text}");
            if let Some(other) = seen.insert(text.to_ascii_lowercase(), reason) {
                panic!("{text} stands in {other} and in {reason}");
            }
        }
        assert!(COUNT < usize::from(u16::MAX) && RULES.len() < usize::from(u16::MAX));
    }

    #[test]
    fn no_code_is_a_word_of_every_day() {
        for pattern in INDEX.patterns.iter().filter(|pattern| pattern.strength == Strength::Code) {
            let has_inner_capital = pattern.head.bytes().skip(1).any(|byte| byte.is_ascii_uppercase());
            assert!(has_inner_capital || pattern.head == "Throttling", "{:?} is a phrase", pattern.head);
        }
    }

    #[test]
    fn every_pattern_is_found_by_its_first_word() {
        for pattern in &INDEX.patterns {
            let head = pattern.head.to_ascii_uppercase();
            assert!(candidates(key(head.as_bytes())).any(|found| core::ptr::eq(found, pattern)), "{head}");
        }
        assert_eq!(candidates(HASH_START).count(), 0);
    }

    #[test]
    fn buckets_are_short() {
        let longest = (0..BUCKETS).map(|bucket| {
            let mut length = 0;
            let mut next = INDEX.heads[bucket];
            while next != 0 {
                length += 1;
                next = INDEX.patterns[usize::from(next) - 1].next;
            }
            length
        });
        assert!(longest.max().unwrap() < 40);
    }
}
