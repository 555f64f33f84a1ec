//! Lays a text out as the errors it reports, each on one line.
//!
//! Terraform frames its errors, wraps them at 78 columns, colours them and quotes the source code
//! that they stand in. The frames, the quoted code and warnings go: names in code match words of
//! rules by accident. What is left of each error is a [`Segment`]; each item of a list
//! (`2 errors occurred:`) is one of its own. Nothing here decides what an error means.

use alloc::{string::String, vec::Vec};
use core::ops::Range;

use super::position;

/// One error: where it stands in the text of [`Segments`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    /// What introduces the list that this error is an item of; empty if it is none.
    pub(super) lead: Range<usize>,
    /// The error.
    pub(super) body: Range<usize>,
}

/// The errors of a text.
#[derive(Debug, Default)]
pub(super) struct Segments {
    text: String,
    /// Errors, lists as their items.
    segments: Vec<Segment>,
    /// Introductions of lists, for lists whose items say nothing.
    leads: Vec<Segment>,
}

impl Segments {
    /// Reads `text`; what terraform does not mark as an error is one only if nothing is marked.
    pub(super) fn read(text: &str) -> Self {
        let mut reader = Reader::new(text.len());
        // Somebody copied it out of JSON.
        let escaped = !text.contains('\n') && position(text, "\\n").is_some();
        if escaped {
            for line in text.split("\\n") {
                reader.line(line);
            }
        } else {
            for line in text.lines() {
                reader.line(line);
            }
        }
        reader.finish()
    }

    /// The errors, in the order of the text.
    pub(super) fn errors(&self) -> &[Segment] {
        &self.segments
    }

    /// Introductions of lists.
    pub(super) fn leads(&self) -> &[Segment] {
        &self.leads
    }

    /// The text of `range`.
    pub(super) fn text(&self, range: &Range<usize>) -> &str {
        self.text.get(range.clone()).unwrap_or_default()
    }
}

/// Where the reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Before the first error; it counts if there is none.
    Preamble,
    /// In an error.
    Error,
    /// In quoted source code, up to the next empty line.
    Code,
    /// In the particulars of a lock, up to the next empty line.
    Lock,
    /// In the response that an old SDK prints, up to its closing brace.
    Response,
    /// In a warning, up to the next error or the end of its frame.
    Warning,
}

struct Reader {
    result: Segments,
    part: Part,
    marked: bool,
    /// Start of the current error, or of the current item of its list.
    start: usize,
    /// The introduction, once the current error is a list.
    lead: Range<usize>,
    /// Whether an empty line stands before the next word.
    gap: bool,
}

impl Reader {
    fn new(capacity: usize) -> Self {
        let result = Segments { text: String::with_capacity(capacity), ..Segments::default() };
        Self { result, part: Part::Preamble, marked: false, start: 0, lead: 0..0, gap: false }
    }

    fn line(&mut self, line: &str) {
        let (line, nested) = strip_frame(line);
        if nested {
            return;
        }
        if let Some(summary) = line.strip_prefix("Error: ").filter(|_| !self.goes_on()) {
            if !self.marked {
                // What stood before was a preamble.
                self.result.text.clear();
                self.result.segments.clear();
                self.result.leads.clear();
                (self.start, self.lead) = (0, 0..0);
            }
            self.marked = true;
            self.close();
            self.part = Part::Error;
            return self.words(summary);
        }
        if line.starts_with("Warning: ") {
            if !self.marked && self.result.segments.is_empty() {
                // What introduces a warning is no error either.
                self.result.text.clear();
            }
            self.part = Part::Warning;
            return;
        }
        match self.part {
            Part::Warning => {
                if line.starts_with('╵') {
                    self.part = if self.marked { Part::Error } else { Part::Preamble };
                }
            }
            Part::Response => {
                if line == "}" {
                    self.part = Part::Error;
                }
            }
            Part::Code | Part::Lock if !line.is_empty() => {}
            Part::Code | Part::Lock => self.part = Part::Error,
            Part::Preamble | Part::Error => self.content(line),
        }
    }

    /// Whether the error so far ends in words behind which the AWS provider prints the cause, as an
    /// `Error:` of its own.
    fn goes_on(&self) -> bool {
        const INTRODUCTIONS: [&str; 2] =
            ["for more information about providing credentials.", "The role ARN is not valid"];
        let text = self.result.text.get(self.start..).unwrap_or_default();
        self.marked && INTRODUCTIONS.iter().any(|introduction| text.ends_with(introduction))
    }

    fn content(&mut self, line: &str) {
        if line.is_empty() {
            self.gap = true;
        } else if is_code_header(line) {
            self.part = Part::Code;
        } else if line == "{" {
            self.part = Part::Response;
        } else if line == "Lock Info:" {
            self.part = Part::Lock;
        } else if is_address(line) || line.starts_with("... omitting ") || line.starts_with('╵') {
        } else if let Some(item) = line.strip_prefix("* ").filter(|_| self.is_list()) {
            if self.lead.is_empty() {
                self.lead = self.start..self.result.text.len();
                self.result.leads.push(Segment { lead: 0..0, body: self.lead.clone() });
            } else {
                self.push(self.start);
            }
            self.start = self.result.text.len();
            self.gap = false;
            self.words(item);
        } else {
            self.words(line);
        }
    }

    /// Whether the text so far introduces a list of errors.
    fn is_list(&self) -> bool {
        let text = self.result.text.get(self.start..).unwrap_or_default();
        !self.lead.is_empty() || text.trim_end_matches(':').ends_with("occurred") || text.ends_with("errors:")
    }

    fn words(&mut self, line: &str) {
        let text = &mut self.result.text;
        if self.gap && text.len() > self.start {
            // A summary reads on into its detail; paragraphs of a detail are sentences.
            if text
                .ends_with(|character: char| character.is_alphanumeric() || matches!(character, '"' | '\'' | ')' | ']'))
            {
                text.push(':');
            }
        }
        self.gap = false;
        // Nearly every line can be taken as it is. 0xc2 begins the control characters above ASCII, and others.
        if is_plain(line.as_bytes()) {
            if text.len() > self.start && !line.is_empty() {
                text.push(' ');
            }
            return text.push_str(line);
        }
        for word in line.split_ascii_whitespace() {
            if text.len() > self.start {
                text.push(' ');
            }
            // 0xc2 begins the control characters above ASCII, and others.
            if word.bytes().any(|byte| byte.is_ascii_control() || byte == 0xc2) {
                push_plain(text, word);
            } else {
                text.push_str(word);
            }
        }
    }

    fn push(&mut self, start: usize) {
        let body = start..self.result.text.len();
        if !body.is_empty() {
            self.result.segments.push(Segment { lead: self.lead.clone(), body });
        }
    }

    fn close(&mut self) {
        self.push(self.start);
        self.start = self.result.text.len();
        self.lead = 0..0;
        self.gap = false;
    }

    fn finish(mut self) -> Segments {
        self.close();
        self.result
    }
}

/// Whether `line` has no control characters and no two blanks in a row. Without early exits, since
/// processors do many bytes at once then.
fn is_plain(line: &[u8]) -> bool {
    let is_odd = |byte: u8| (byte < b' ') | (byte == 0x7f) | (byte == 0xc2);
    let odd = line.iter().fold(false, |odd, byte| odd | is_odd(*byte));
    let pairs = line.iter().zip(line.iter().skip(1));
    let double = pairs.fold(false, |double, (left, right)| double | ((*left == b' ') & (*right == b' ')));
    !odd && !double
}

/// `word` without colours and other control characters.
fn push_plain(text: &mut String, word: &str) {
    let mut characters = word.chars();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            skip_escape(&mut characters);
        } else if !character.is_control() {
            text.push(character);
        }
    }
}

/// Skips what follows ESC: a control sequence (ECMA-48, 5.4) or one character.
fn skip_escape(characters: &mut core::str::Chars<'_>) {
    if characters.next() == Some('[') {
        for character in characters.by_ref() {
            if matches!(character, '\u{40}'..='\u{7e}') {
                break;
            }
        }
    }
}

/// The line without blanks, colour and frame at its edges, and whether it is framed twice: that is where
/// terraform shows values of expressions.
fn strip_frame(line: &str) -> (&str, bool) {
    let mut line = line.trim();
    while let Some(rest) = line.strip_prefix('\u{1b}') {
        let mut characters = rest.chars();
        skip_escape(&mut characters);
        line = characters.as_str().trim_start();
    }
    let framed = line.strip_prefix(['│', '╷']).map(str::trim_start);
    let inner = framed.unwrap_or(line);
    if inner.starts_with(['│', '├']) {
        return (inner, true);
    }
    // Behind a frame there may be a colour of its own.
    if inner.starts_with('\u{1b}') {
        return strip_frame(inner);
    }
    (inner, line.starts_with('├'))
}

/// `on main.tf line 29, in resource "a" "b":`
fn is_code_header(line: &str) -> bool {
    line.strip_prefix("on ")
        .and_then(|rest| rest.split_once(" line "))
        .is_some_and(|(_, rest)| rest.ends_with(':') && rest.starts_with(|character: char| character.is_ascii_digit()))
}

/// `with module.vpc.aws_vpc.this[0],`
fn is_address(line: &str) -> bool {
    line.strip_prefix("with ")
        .and_then(|rest| rest.strip_suffix(','))
        .is_some_and(|address| address.contains('.') && (!address.contains(' ') || address.contains('"')))
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    fn errors(text: &str) -> Vec<(String, String)> {
        let segments = Segments::read(text);
        let own = |range| String::from(segments.text(range));
        segments.errors().iter().map(|segment| (own(&segment.lead), own(&segment.body))).collect()
    }

    fn bodies(text: &str) -> Vec<String> {
        errors(text).into_iter().map(|(_, body)| body).collect()
    }

    #[test]
    fn wrapped_lines_join_and_source_code_goes() {
        let text = "\nError: Failed to download\n\n  on main.tf line 1, in module \"throttling\":\n   1: module \"throttling\" {\n\n\
            Could\nnot resolve\thost\n\n  with module.throttling.x[\"a b\"],\n";
        assert_eq!(bodies(text), ["Failed to download: Could not resolve host"]);
    }

    #[test]
    fn frames_colours_and_values_go() {
        let text = "\u{1b}[31m╷\u{1b}[0m\u{1b}[0m\n\u{1b}[31m│\u{1b}[0m \u{1b}[0m\u{1b}[1m\u{1b}[31mError: \u{1b}[0m\u{1b}[0m\u{1b}[1mNo\u{1b}[0m\n\
            │ \n│   on main.tf line 11, in resource \"a\" \"b\":\n│   11:     condition = var.size < 10\n\
            │     ├────────────────\n│     │ var.size is 30\n│ \n│ size must be less\n╵\n";
        assert_eq!(bodies(text), ["No: size must be less"]);
    }

    #[test]
    fn only_what_terraform_prints_of_the_code_goes() {
        for text in ["on page line 3 of it", "on a line x:", "with a. and b,", "with care,"] {
            assert_eq!(bodies(&alloc::format!("Error: a\n{text}\n")), [["a ", text].concat()]);
        }
        assert_eq!(bodies("Error: a  b\n"), ["a b"]);
        assert_eq!(bodies("Error: a\n\nError: \u{1b}[0m\n\nb\n"), ["a", "b"]);
    }

    #[test]
    fn warnings_and_preambles_are_no_errors() {
        let text = "There are some problems with the CLI configuration:\n╷\n│ Warning: Unable to open\n│\n│ The file does not exist.\n╵\n\n\
            Error: First\n\nWarning: throttled\n\nnot me\n\nError: Second\n";
        assert_eq!(bodies(text), ["First", "Second"]);
        assert_eq!(
            bodies("Workspace \"a\" doesn't exist.\n\nYou can create it.\n"),
            ["Workspace \"a\" doesn't exist. You can create it."]
        );
        assert_eq!(bodies("Some problems:\n╷\n│ Warning: a\n╵\nNo state file\n"), ["No state file"]);
        assert_eq!(bodies("Warning: a\n\nb\n"), Vec::<&str>::new());
    }

    #[test]
    fn items_of_a_list_are_errors_of_their_own() {
        let text = "Error: waiting: 2 errors occurred:\n\t* a: first\n\t* b:\n  second\n\n\n  with a.b,\n";
        let expected = [("waiting: 2 errors occurred:", "a: first"), ("waiting: 2 errors occurred:", "b: second")];
        assert_eq!(errors(text), expected.map(|(lead, body)| (lead.into(), body.into())));
        assert_eq!(Segments::read(text).leads().len(), 1);
        assert_eq!(bodies("Error: must be one of\n* a\n* b\n"), ["must be one of * a * b"]);
    }

    #[test]
    fn particulars_that_change_go() {
        let text = "Error: Error acquiring the state lock\n\nError message: taken\nLock Info:\n  ID: 1\n  Created: now\n\n\nTry again\n";
        assert_eq!(bodies(text), ["Error acquiring the state lock: Error message: taken: Try again"]);
        let text = "Error: InUse: exists\n{\n  RespMetadata: {\n    RequestID: \"1\"\n  },\n  Message_: \"exists\"\n}\n\nmore\n";
        assert_eq!(bodies(text), ["InUse: exists: more"]);
        assert_eq!(bodies("Error: a\n... omitting 12345 bytes ...\nb\n"), ["a b"]);
    }

    #[test]
    fn a_cause_that_the_provider_prints_as_an_error_belongs_to_its_error() {
        let text = "Error: No valid credential sources found\n\nPlease see x\nfor more information about providing credentials.\n\n\
            Error: failed to refresh\n\n\nError: other\n";
        let first = "No valid credential sources found: Please see x for more information about providing credentials. Error: failed to refresh";
        assert_eq!(bodies(text), [first, "other"]);
    }

    #[test]
    fn escaped_line_breaks_are_line_breaks() {
        assert_eq!(bodies("\\nError: a\\n\\nb\\n"), ["a: b"]);
        // Only where there are no real ones.
        assert_eq!(bodies("Error: a\\nb\n\nError: c\n"), ["a\\nb", "c"]);
        assert_eq!(bodies(""), Vec::<&str>::new());
    }

    proptest! {
        #[test]
        fn every_segment_is_one_line_inside_the_text(text in "(Error: |\\* |errors occurred:|\n|│ |\u{1b}\\[1m|[a-zé ]|\t|\\{|\\}|Lock Info:){0,60}") {
            let segments = Segments::read(&text);
            for segment in segments.errors().iter().chain(segments.leads()) {
                let body = segments.text(&segment.body);
                prop_assert!(!body.is_empty() && !body.contains(['\n', '\t', '\u{1b}']), "{body:?}");
            }
            prop_assert_eq!(vec![0; segments.errors().len()].len(), segments.errors().len());
        }
    }
}
