//! Finds which rule an error fits best. One walk over the words, so the time is linear in the text.

use super::{
    blocks::rows,
    index::{CODE, PHRASE, Pattern, candidates, first_bytes, hash_longer, hash_word, is_word, kinds},
    rules::{FAMILIES, RULES, Strength, may_be_of_family},
};

/// How many bytes a gap in a phrase may span.
pub(super) const GAP: usize = 100;

/// The best match in an error: how strong it is and the place of its rule. Lower is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Match {
    pub(super) strength: Strength,
    pub(super) rule: u16,
}

impl Match {
    /// The rule that matched.
    pub(super) fn rule(self) -> &'static super::rules::Rule {
        RULES.get(usize::from(self.rule)).copied().unwrap_or(RULES[0])
    }
}

/// The best match in `text`, one line.
pub(super) fn scan(text: &str) -> Option<Match> {
    let mut scan = Scan { text: text.as_bytes(), best: None };
    rows(text.as_bytes(), is_word, |start, end| scan.word(start, end));
    scan.best
}

/// In lower case only words of this length that end as no English word does can be codes.
const LONG: usize = 14;

/// Whether there is a capital (or `_`) in eight bytes of a word: those have bit 6 and not bit 5.
const fn has_capital(bytes: u64) -> bool {
    bytes & !(bytes << 1) & 0x4040_4040_4040_4040 != 0
}

struct Scan<'a> {
    text: &'a [u8],
    best: Option<Match>,
}

impl Scan<'_> {
    /// Looks at the patterns that may begin with the word from `start` to `end`.
    fn word(&mut self, start: usize, end: usize) {
        let (length, first) = (end - start, first_bytes(self.text, start, end - start));
        let hash = hash_word(first, length);
        let kinds = kinds(hash);
        // A code is found by itself, a phrase by its first word and the two bytes behind it.
        let is_known_code = kinds & CODE != 0 && self.patterns(start, end, hash);
        if kinds & PHRASE != 0 {
            if let Some([one, two]) = self.text.get(end..end + 2) {
                self.patterns(start, end, hash_longer(hash, [*one, *two]));
            }
        }
        if is_known_code || length < 8 {
            return;
        }
        let behind_dot = self.text.get(start.wrapping_sub(1)) == Some(&b'.');
        // Most words are short and small letters, which is seen here without a look at each byte.
        if length < LONG && !behind_dot && !has_capital(first >> 8) {
            let last = first_bytes(self.text, end - 8, 8);
            if length == 8 || !has_capital(last) {
                return;
            }
        }
        let word = self.text.get(start..end).unwrap_or_default();
        if let Some(found) = family(word, behind_dot) {
            self.found(found);
        }
    }

    /// Compares the patterns with this hash; whether one of them is the word itself.
    fn patterns(&mut self, start: usize, end: usize, hash: u64) -> bool {
        candidates(hash, self.text.get(start..).unwrap_or_default())
            .fold(false, |is_known_code, pattern| is_known_code | self.compare(pattern, start, end))
    }

    /// Compares `pattern` with the text at `start`; whether it is the word up to `end`.
    #[inline(never)] // Few words come here; the others are quicker without it.
    fn compare(&mut self, pattern: &Pattern, start: usize, end: usize) -> bool {
        let strength = if start == 0 { pattern.strength_at_start } else { pattern.strength };
        let found = Match { strength, rule: pattern.rule };
        // What cannot improve the result need not be compared.
        let is_single = pattern.head.len() == end - start && pattern.tail.is_empty();
        if (is_single || self.best.is_none_or(|best| found < best)) && fits(pattern, self.text, start) {
            self.found(found);
            return is_single;
        }
        false
    }

    fn found(&mut self, found: Match) {
        self.best = Some(self.best.map_or(found, |best| best.min(found)));
    }
}

/// Whether `pattern` stands at `start`, up to the end of a word.
fn fits(pattern: &Pattern, text: &[u8], start: usize) -> bool {
    let Some(end) = end_of(pattern.head, text, start) else { return false };
    let Some(first) = pattern.tail.bytes().next() else { return true };
    // The tail may follow at once, behind one blank.
    let window = text.get(end..text.len().min(end + GAP)).unwrap_or_default();
    window
        .iter()
        .enumerate()
        .filter(|(_, byte)| byte.eq_ignore_ascii_case(&first))
        .any(|(at, _)| starts_word(text, end + at) && end_of(pattern.tail, text, end + at).is_some())
}

/// The end of `part` if it stands at `start`, without regard to case, and no word goes on behind it.
fn end_of(part: &str, text: &[u8], start: usize) -> Option<usize> {
    let (part, end) = (part.as_bytes(), start + part.len());
    if !text.get(start..end)?.eq_ignore_ascii_case(part) {
        return None;
    }
    let ends_in_word = part.last().is_some_and(|byte| is_word(*byte));
    let goes_on = ends_in_word && text.get(end).is_some_and(|byte| is_word(*byte));
    (!goes_on).then_some(end)
}

fn starts_word(text: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| text.get(before));
    before.is_none_or(|byte| !is_word(*byte))
}

/// The family of a code that is not listed. `behind_dot`: it is the second part of `InvalidVpcID.NotFound`.
#[inline(never)] // As above.
fn family(word: &[u8], behind_dot: bool) -> Option<Match> {
    let is_camel = word.iter().skip(1).any(u8::is_ascii_uppercase) && word.iter().any(u8::is_ascii_lowercase);
    if !is_camel && word.len() < LONG && !behind_dot {
        return None;
    }
    let bare = ["Exception", "Error", "Fault"].iter().find_map(|end| strip_end(word, end)).unwrap_or(word);
    if bare.len() < word.len() {
        let hash = hash_word(first_bytes(bare, 0, bare.len()), bare.len());
        let is_listed =
            |pattern: &&Pattern| pattern.tail.is_empty() && pattern.head.as_bytes().eq_ignore_ascii_case(bare);
        if let Some(listed) = candidates(hash, bare).find(is_listed) {
            return Some(Match { strength: listed.strength, rule: listed.rule });
        }
    }
    if !may_be_of_family(bare) {
        return None;
    }
    let found = FAMILIES.iter().find(|family| {
        let begins =
            bare.get(..family.prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(family.prefix.as_bytes()));
        let is_longer = word.len() > family.prefix.len() || !family.suffix.is_empty();
        // `Invalid` begins a code only if a capital follows; in lower case a prefix proves nothing.
        let is_prefix = family.prefix.is_empty()
            || (is_camel && bare.get(family.prefix.len()).is_none_or(u8::is_ascii_uppercase))
            || (!is_camel && word.len() > bare.len());
        begins && is_longer && is_prefix && strip_end(bare, family.suffix).is_some()
    })?;
    Some(Match { strength: found.strength, rule: found.rule })
}

fn strip_end<'a>(word: &'a [u8], end: &str) -> Option<&'a [u8]> {
    let (start, last) = word.split_at_checked(word.len().checked_sub(end.len())?)?;
    last.eq_ignore_ascii_case(end.as_bytes()).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(text: &str) -> &'static str {
        scan(text).map_or("", |found| found.rule().reason)
    }

    #[test]
    fn codes_match_whole_words_in_any_case() {
        assert_eq!(reason("api error VpcLimitExceeded: x"), "VpcQuotaExceeded");
        assert_eq!(reason("vpclimitexceeded"), "VpcQuotaExceeded");
        assert_eq!(reason("MyVpcLimitExceeded"), "QuotaExceeded");
        assert_eq!(reason("MyVpcLimitExceededX"), "");
        assert_eq!(reason("InvalidSubnet.Conflict: x"), "AddressRangeConflict");
        assert_eq!(reason(""), "");
    }

    #[test]
    fn phrases_may_have_gaps_of_bounded_length() {
        let far = alloc::format!("secret {} not found", "a".repeat(GAP));
        assert_eq!(reason("Secret \"a\" not found"), "ReferenceNotFound");
        assert_eq!(reason(&far), "NotFound");
        assert_eq!(reason("the secret of this"), "");
        assert_eq!(reason("the secret xnot found"), "", "a word that only ends as the phrase goes on");
    }

    #[test]
    fn families_know_codes_that_are_not_listed() {
        for (text, expected) in [
            ("FooBarLimitExceeded", "QuotaExceeded"),
            ("foobarlimitexceededexception", "QuotaExceeded"),
            ("FooQuotaExceededFault", "QuotaExceeded"),
            ("ThrottlingFooException", "Throttled"),
            ("FooAccessDeniedException", "AccessDenied"),
            ("InvalidFooID.NotFound", "ReferenceNotFound"),
            ("invalidfooid.notfound", "ReferenceNotFound"),
            ("FooAlreadyExistsException", "AlreadyExists"),
            ("InvalidFooBar", "RequestInvalid"),
            ("MalformedFooException", "RequestInvalid"),
            ("invalidation", ""),
            ("Invalidation", ""),
            ("TooManyLoadBalancersException", "LoadBalancerQuotaExceeded"),
            ("ConcurrentModificationFooException", "OperationInProgress"),
            // Its only capital but the first is the tenth letter.
            ("DuplicateFoo", "AlreadyExists"),
            // In small letters from 14 on, and behind a dot.
            ("xlimitexceeded", "QuotaExceeded"),
            ("foonotready", ""),
            ("foo.barnotready", "OperationInProgress"),
            ("FOONOTREADY", ""),
            // As VpcLimitExceeded begins and ends, and as long.
            ("VpcLimitAbcdefgdException", ""),
        ] {
            assert_eq!(reason(text), expected, "{text}");
        }
        for family in FAMILIES {
            assert!(usize::from(family.rule) < RULES.len(), "{}{}", family.prefix, family.suffix);
        }
    }

    #[test]
    fn the_stronger_match_wins_and_among_equals_the_earlier_rule() {
        assert_eq!(reason("InvalidParameterValueException: EC2 Error Code: RequestLimitExceeded"), "Throttled");
        assert_eq!(reason("access denied after connection refused"), "AccessDenied");
        assert_eq!(reason("Unsupported block type: \"throttling\""), "ModuleInvalid");
        assert_eq!(reason("throttling: unsupported block type"), "Throttled");
        assert_eq!(reason("execution halted VpcLimitExceeded"), "OperationInterrupted");
    }
}
