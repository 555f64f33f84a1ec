//! Bounded text: what may go into a message of status.
//!
//! Cluster API copies our messages into its own objects and refuses the whole patch when one is
//! too long or empty (contract v1beta1: 1 to 10240 bytes), so ours are cut long before that.

use alloc::{borrow::ToOwned, string::String};

/// Longest message in a status, in bytes.
pub const MAX_MESSAGE: usize = 1024;

/// What a cut text ends in.
const MARK: &str = "...";

/// `text` cut to at most `max` bytes on a character boundary; a cut text ends in `...`.
///
/// ```
/// assert_eq!(capt_status::text::truncate("disk is full", 9), "disk i...");
/// ```
pub fn truncate(text: &str, max: usize) -> String {
    if text.len() <= max { text.to_owned() } else { cut(text, max) }
}

/// `text` with at most [`MAX_MESSAGE`] bytes; nothing is copied where it fits.
pub fn bounded(text: String) -> String {
    if text.len() <= MAX_MESSAGE { text } else { cut(&text, MAX_MESSAGE) }
}

/// `text` as [`bounded`], or `otherwise` where it says nothing: for fields that must not be empty.
///
/// ```
/// use capt_status::text::filled;
///
/// assert_eq!(filled("disk is full", "DiskError"), "disk is full");
/// assert_eq!(filled(" ", "DiskError"), "DiskError");
/// ```
pub fn filled(text: &str, otherwise: &str) -> String {
    truncate(if text.trim().is_empty() { otherwise } else { text }, MAX_MESSAGE)
}

fn cut(text: &str, max: usize) -> String {
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
        assert_eq!(truncate("abc", 2), "");
    }

    #[test]
    fn a_message_that_must_not_be_empty_is_not() {
        for (text, filled_text) in [("", "Reason"), ("\n\t ", "Reason"), ("a", "a")] {
            assert_eq!(filled(text, "Reason"), filled_text);
        }
    }

    proptest! {
        #[test]
        fn never_longer_than_the_bound(text in ".{0,64}", max in 0usize..80) {
            let cut = truncate(&text, max);
            prop_assert!(cut.len() <= max);
            prop_assert!(cut == text || text.starts_with(cut.strip_suffix(MARK).unwrap_or(&cut)));
        }

        #[test]
        fn bounding_twice_is_bounding_once(text in ".{0,64}", times in 1usize..40) {
            let once = bounded(text.repeat(times));
            prop_assert!(once.len() <= MAX_MESSAGE);
            prop_assert_eq!(bounded(once.clone()), once);
        }
    }
}
