//! The normalised text while it is made. What stays as it is, is copied in long pieces.

use alloc::string::String;
use core::ops::Range;

/// Words written so far, one blank between two.
pub(super) struct Output<'a> {
    source: &'a str,
    text: String,
    /// What follows `text`, not copied yet.
    kept: Range<usize>,
}

impl<'a> Output<'a> {
    /// Nothing; words come from `source`.
    pub(super) fn new(source: &'a str, capacity: usize) -> Self {
        Self { source, text: String::with_capacity(capacity), kept: 0..0 }
    }

    /// The length so far, in bytes.
    pub(super) fn len(&self) -> usize {
        self.text.len() + self.kept.len()
    }

    /// Adds `word` as it stands in the source, from `start`.
    pub(super) fn keep(&mut self, start: usize, word: &str) {
        let end = start + word.len();
        // Words beside each other, one blank between, are one piece.
        if self.kept.is_empty() || self.kept.end + 1 != start {
            self.begin();
            self.kept = start..end;
        } else {
            self.kept.end = end;
        }
    }

    /// The text to add a word to, behind a blank.
    pub(super) fn begin(&mut self) -> &mut String {
        self.copy();
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        &mut self.text
    }

    /// The text so far.
    pub(super) fn text(&mut self) -> &str {
        self.copy();
        &self.text
    }

    /// Takes `characters` away at the end.
    pub(super) fn trim_end<const N: usize>(&mut self, characters: [char; N]) {
        let end = self.text().trim_end_matches(characters).len();
        self.text.truncate(end);
    }

    /// The finished text.
    pub(super) fn into_text(mut self) -> String {
        self.copy();
        self.text
    }

    fn copy(&mut self) {
        self.text.push_str(self.source.get(self.kept.clone()).unwrap_or_default());
        self.kept = 0..0;
    }
}
