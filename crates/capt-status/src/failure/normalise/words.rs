//! The words of a line, and which of them need a closer look. Nothing here decides what a word means.

use crate::failure::blocks::{BLOCK, mask};

/// From this length on a word may be a key or an id also without a digit.
const LONG: usize = 20;

/// What stands between two blanks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word<'a> {
    /// The word.
    pub(super) text: &'a str,
    /// Where it begins in the line.
    pub(super) start: usize,
    /// Whether it has a sign of names and options: `:`, `=` or `-`.
    pub(super) has_sign: bool,
    has_digit: bool,
}

impl Word<'_> {
    /// Whether something in it may change from one attempt to the next: it has a digit, an address of a user
    /// or is long.
    pub(super) fn has_value(self) -> bool {
        self.has_digit || self.text.len() >= LONG
    }
}

/// Goes along the words of a line.
pub(super) struct Words<'a> {
    text: &'a str,
    /// The end of the last word.
    at: usize,
    /// The block that is looked at.
    block: Block,
}

/// What kinds of bytes a block has, a bit for each byte.
struct Block {
    /// Which block of the line.
    number: usize,
    blanks: u64,
    digits: u64,
    signs: u64,
}

impl Block {
    fn read(text: &str, number: usize) -> Self {
        let bytes = text.as_bytes().get(number * BLOCK..).unwrap_or_default();
        Self {
            number,
            blanks: mask(bytes, |byte| byte == b' ') | u64::MAX.checked_shl(bytes.len() as u32).unwrap_or_default(),
            digits: mask(bytes, |byte| (byte.wrapping_sub(b'0') < 10) | (byte == b'@')),
            signs: mask(bytes, |byte| (byte == b':') | (byte == b'=') | (byte == b'-')),
        }
    }
}

impl<'a> Words<'a> {
    /// The words of `text`, one line.
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, block: Block::read(text, 0) }
    }

    /// What stands behind the last word.
    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Goes `length` bytes on.
    pub(super) fn skip(&mut self, length: usize) {
        self.at += length;
    }

    /// The next word; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Word<'a>> {
        while self.text.as_bytes().get(self.at) == Some(&b' ') {
            self.at += 1;
        }
        let (start, mut has_digit, mut has_sign) = (self.at, false, false);
        loop {
            if self.block.number != self.at / BLOCK {
                self.block = Block::read(self.text, self.at / BLOCK);
            }
            let shift = self.at % BLOCK;
            // Behind the end there is a blank too.
            let behind = self.block.blanks >> shift;
            let inside = behind.wrapping_sub(1) & !behind;
            has_digit |= self.block.digits >> shift & inside != 0;
            has_sign |= self.block.signs >> shift & inside != 0;
            if behind != 0 {
                self.at += behind.trailing_zeros() as usize;
                break;
            }
            // The word goes on in the next block.
            self.at += BLOCK - shift;
        }
        let text = self.text.get(start..self.at)?;
        (!text.is_empty()).then_some(Word { text, start, has_sign, has_digit })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn words_are_what_splitting_gives(text in "(a|é| |1|:|@|=|-|[a-z]{60,66}){0,40}") {
            let mut words = Words::new(&text);
            let found: Vec<Word<'_>> = core::iter::from_fn(|| words.next()).collect();
            prop_assert!(words.rest().is_empty());
            for word in &found {
                prop_assert_eq!(&text[word.start..word.start + word.text.len()], word.text);
                prop_assert_eq!(word.has_digit, word.text.contains(['1', '@']), "{:?}", word);
                prop_assert_eq!(word.has_sign, word.text.contains([':', '=', '-']), "{:?}", word);
            }
            let found: Vec<&str> = found.iter().map(|word| word.text).collect();
            let expected: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn what_is_skipped_is_not_seen(text in "[a-z ]{100,200}", length in 0usize..100) {
            let mut words = Words::new(&text);
            words.skip(length);
            let expected = text[length..].split(' ').find(|word| !word.is_empty());
            prop_assert_eq!(words.next().map(|word| word.text), expected);
        }
    }
}
