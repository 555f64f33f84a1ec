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
}

/// What a walk along a bucket reads of each pattern; small, so that the whole index stays in the cache.
#[derive(Debug, Clone, Copy)]
struct Link {
    /// Hash of the first word and, where there is more, of the next two bytes: many phrases begin
    /// with the same word.
    hash: u32,
    /// The next pattern with the same bucket, from 1; 0 ends.
    next: u16,
    /// Length of the head, and its last byte with bit 5 set: what fits neither is not compared.
    length: u8,
    last: u8,
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
    /// One for each pattern.
    links: [Link; COUNT],
    /// First pattern of each bucket, from 1; 0 is empty.
    heads: [u16; BUCKETS],
    /// What may begin with a word of each bucket, [`CODE`] and [`PHRASE`]: with most words nothing.
    kinds: [u8; BUCKETS],
}

/// A pattern that is one word, or one word before a gap.
pub(super) const CODE: u8 = 1;
/// A pattern that goes on behind its first word.
pub(super) const PHRASE: u8 = 2;

static INDEX: Index = build();

/// The hash of a word, without regard to case: of its first eight bytes and its length, which is quicker
/// than all of them and tells words of messages apart well enough.
pub(super) const fn hash_word(first: u64, length: usize) -> u64 {
    // `|` maps capitals to small letters and leaves digits; what it does to the rest does no harm.
    (first | 0x2020_2020_2020_2020).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(length as u64)
}

/// The hash of a word together with the two bytes behind it.
pub(super) const fn hash_longer(word: u64, behind: [u8; 2]) -> u64 {
    let behind = ((behind[0] | 0x20) as u64) << 8 | (behind[1] | 0x20) as u64;
    (word ^ behind).wrapping_mul(0xff51_afd7_ed55_8ccd)
}

/// The first eight bytes of the word of `length` bytes at `start`; blanks where it is shorter.
pub(super) fn first_bytes(text: &[u8], start: usize, length: usize) -> u64 {
    if let Some(Ok(bytes)) = text.get(start..start + 8).map(<[u8; 8]>::try_from) {
        let shift = 8 * (8 - length.min(8) as u32);
        return u64::from_le_bytes(bytes) << shift >> shift;
    }
    let word = text.get(start..start + length).unwrap_or_default();
    word.iter().take(8).rev().fold(0, |first, byte| first << 8 | u64::from(*byte))
}

/// Whether `byte` belongs to a word. Without a branch, so that many bytes can be looked at together.
pub(super) const fn is_word(byte: u8) -> bool {
    ((byte | 0x20).wrapping_sub(b'a') < 26) | (byte.wrapping_sub(b'0') < 10) | (byte == b'_')
}

const fn bucket(hash: u64) -> usize {
    (hash ^ hash >> 32 ^ hash >> 51) as usize % BUCKETS
}

#[allow(clippy::cast_possible_truncation)] // A test holds the counts and lengths to their types.
const fn build() -> Index {
    let empty = Pattern { head: "", tail: "", strength: Strength::Vague, strength_at_start: Strength::Vague, rule: 0 };
    let mut index = Index {
        patterns: [empty; COUNT],
        links: [Link { hash: 0, next: 0, length: 0, last: 0 }; COUNT],
        heads: [0; BUCKETS],
        kinds: [0; BUCKETS],
    };
    let (mut count, mut rule) = (0, 0);
    while rule < RULES.len() {
        let patterns = RULES[rule].patterns();
        let mut strength = 0;
        while strength < patterns.len() {
            let mut at = 0;
            while at < patterns[strength].2.len() {
                let text = patterns[strength].2[at];
                let (head, tail) = split(text);
                let (word, hash) = keys(head.as_bytes());
                index.kinds[bucket(word)] |= if word == hash { CODE } else { PHRASE };
                let first = &mut index.heads[bucket(hash)];
                index.patterns[count] = Pattern {
                    head,
                    tail,
                    strength: patterns[strength].0,
                    strength_at_start: patterns[strength].1,
                    rule: rule as u16,
                };
                let (length, last) = (head.len(), head.as_bytes()[head.len() - 1] | 0x20);
                index.links[count] = Link { hash: hash as u32, next: *first, length: length as u8, last };
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

/// The hash of the first word, and that of all that a pattern is found by.
const fn keys(head: &[u8]) -> (u64, u64) {
    let (mut first, mut length) = (0, 0);
    while length < head.len() && is_word(head[length]) {
        if length < 8 {
            first |= (head[length] as u64) << (8 * length);
        }
        length += 1;
    }
    let word = hash_word(first, length);
    let all = if length + 1 < head.len() { hash_longer(word, [head[length], head[length + 1]]) } else { word };
    (word, all)
}

/// What may begin with a word of this hash: [`CODE`], [`PHRASE`], both or nothing.
pub(super) fn kinds(word: u64) -> u8 {
    INDEX.kinds.get(bucket(word)).copied().unwrap_or_default()
}

/// The patterns with this hash, of a word or of a word and the two bytes behind it, that may stand at the
/// beginning of `text`: as far as hash, length and last byte tell.
#[allow(clippy::cast_possible_truncation)] // The low half is what the links keep.
pub(super) fn candidates(hash: u64, text: &[u8]) -> impl Iterator<Item = &'static Pattern> {
    let mut next = INDEX.heads.get(bucket(hash)).copied().unwrap_or_default();
    core::iter::from_fn(move || {
        while let Some(at) = usize::from(next).checked_sub(1) {
            let link = INDEX.links.get(at)?;
            next = link.next;
            let last = text.get(usize::from(link.length).wrapping_sub(1));
            if link.hash == hash as u32 && last.is_some_and(|last| last | 0x20 == link.last) {
                return INDEX.patterns.get(at);
            }
        }
        None
    })
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
        assert!(INDEX.patterns.iter().all(|pattern| u8::try_from(pattern.head.len()).is_ok()));
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
            let (word, all) = keys(head.as_bytes());
            assert!(candidates(all, head.as_bytes()).any(|found| core::ptr::eq(found, pattern)), "{head}");
            assert_ne!(kinds(word) & if word == all { CODE } else { PHRASE }, 0, "{head}");
        }
        assert_eq!(candidates(hash_word(0, 0), b"").count(), 0);
    }

    #[test]
    fn buckets_are_short() {
        let longest = (0..BUCKETS).map(|bucket| {
            let mut length = 0;
            let mut next = INDEX.heads[bucket];
            while next != 0 {
                length += 1;
                next = INDEX.links[usize::from(next) - 1].next;
            }
            length
        });
        assert!(longest.max().unwrap() < 40);
    }
}
