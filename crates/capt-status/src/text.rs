//! Bounded text: what may go into a message of status.
//!
//! Cluster API copies our messages into its own objects and refuses the whole patch when one is
//! too long or empty (contract v1beta1: 1 to 10240 bytes), so ours are cut long before that.

use alloc::{borrow::ToOwned, string::String};

/// Longest message in a status, in bytes.
pub const MAX_MESSAGE: usize = 1024;

/// `text` cut to at most `max` bytes on a character boundary; a cut text ends in `...`.
pub fn truncate(text: &str, max: usize) -> String {
    const MARK: &str = "...";
    if text.len() <= max {
        return text.to_owned();
    }
    let mut end = max.saturating_sub(MARK.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut cut = text[..end].to_owned();
    if max >= MARK.len() {
        cut.push_str(MARK);
    }
    cut
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_short_text_stays_and_a_long_one_ends_in_dots() {
        assert_eq!(truncate("abc", 3), "abc");
        assert_eq!(truncate("abcdef", 5), "ab...");
        assert_eq!(truncate("ééé", 5), "é...");
    }

    proptest! {
        #[test]
        fn never_longer_than_the_bound(text in ".{0,64}", max in 0usize..80) {
            let cut = truncate(&text, max);
            prop_assert!(cut.len() <= max);
            prop_assert!(cut == text || text.starts_with(cut.trim_end_matches('.')));
        }
    }
}
