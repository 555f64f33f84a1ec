//! Takes a message apart: the stage, the encoded log that provider-terraform appends, and the rest.
//!
//! The log is `echo "<base64(gzip(stderr))>" | base64 -d | gunzip`, up to 65 kB of text. It comes
//! with line breaks and backslashes where somebody copied it out of YAML or JSON, and cut off
//! where a tool shortened it. Both the input and the output are bounded: a message is a text that
//! somebody else wrote. Nothing here decides what a text means.

use alloc::{borrow::Cow, string::String, vec::Vec};

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use super::{
    gzip::{End, gunzip},
    position,
};

/// How much of a message is looked at, in bytes: a longer one loses its middle.
pub const MAX_INPUT: usize = 1 << 20;
/// How much text all encoded logs of one message may give, in bytes.
pub const MAX_DECODED: usize = 256 << 10;

/// How gzip's first three bytes look in base64.
const START: &str = "H4sI";
/// More logs than this are not decoded; a message has one.
const MAX_LOGS: usize = 8;
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What was inside the encoded logs of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Log {
    /// There is none.
    Absent,
    /// All of it, without a byte of text: the process was killed before it said anything.
    Empty,
    /// Text; not all of it if `complete` is false.
    Text {
        /// What it says.
        text: String,
        /// Whether that is everything.
        complete: bool,
    },
    /// There is one, and nothing of it can be read.
    Unreadable,
}

/// A message without its encoded logs, and what they say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unpacked<'a> {
    /// The text around the logs.
    pub(super) shell: Cow<'a, str>,
    /// The logs.
    pub(super) log: Log,
}

/// At most [`MAX_INPUT`] bytes of `message`: the beginning and the end, where causes stand.
pub(super) fn bounded(message: &str) -> Cow<'_, str> {
    if message.len() <= MAX_INPUT {
        return Cow::Borrowed(message);
    }
    let head = message.floor_char_boundary(MAX_INPUT / 2);
    let tail = message.ceil_char_boundary(message.len() - MAX_INPUT / 2 + 1);
    let (head, tail) = (message.get(..head).unwrap_or_default(), message.get(tail..).unwrap_or_default());
    Cow::Owned([head, "\n", tail].concat())
}

/// The full text of the encoded logs in `message`, where there are any, else `message` itself.
///
/// Colours and line breaks are kept. Input beyond [`MAX_INPUT`] and output beyond [`MAX_DECODED`]
/// is left out; a damaged log gives what can be read of it.
///
/// ```
/// use capt_status::failure::decode;
/// assert_eq!(decode::full_text("create failed: no luck"), "create failed: no luck");
/// ```
pub fn full_text(message: &str) -> String {
    let message = bounded(message);
    let Unpacked { shell, log } = unpack(&message);
    match log {
        Log::Absent | Log::Empty | Log::Unreadable => shell.into_owned(),
        Log::Text { text, complete: _ } => text,
    }
}

/// Separates the encoded logs from the text around them.
pub(super) fn unpack(message: &str) -> Unpacked<'_> {
    let mut shell = String::new();
    let mut output = Vec::new();
    let (mut rest, mut logs, mut complete) = (message, 0, true);
    while logs < MAX_LOGS {
        let Some((before, encoded, after)) = find(rest) else { break };
        let before = match before.rfind("To see the full error run") {
            Some(at) => before.get(..at).unwrap_or_default(),
            None => before.trim_end_matches(['"', '\\', '\'', ' ']).trim_end_matches("echo"),
        };
        shell.push_str(before.trim_end());
        complete &= gunzip(&decode(encoded), &mut output, MAX_DECODED) == End::Complete;
        rest = after.trim_start_matches(['"', '\\', '\'', ' ']);
        for command in ["| base64 -d", "| gunzip"] {
            rest = rest.strip_prefix(command).unwrap_or(rest).trim_start_matches(' ');
        }
        logs += 1;
    }
    if logs == 0 {
        return Unpacked { shell: Cow::Borrowed(message), log: Log::Absent };
    }
    if !rest.is_empty() {
        shell.push('\n');
        shell.push_str(rest);
    }
    let log = if output.iter().all(u8::is_ascii_whitespace) {
        if complete { Log::Empty } else { Log::Unreadable }
    } else {
        Log::Text { text: String::from_utf8_lossy(&output).into_owned(), complete }
    };
    Unpacked { shell: Cow::Owned(shell), log }
}

/// The first encoded log: what stands before it, the encoding, and what stands behind it.
fn find(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let start = from + position(text.get(from..)?, START)?;
        let before = text.get(..start)?;
        if !before.ends_with(|character: char| is_base64(character)) {
            let length = encoded_length(text.get(start..)?);
            let (encoded, after) = text.get(start..)?.split_at_checked(length)?;
            return Some((before, encoded, after));
        }
        from = start + START.len();
    }
}

fn is_base64(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '+' | '/')
}

/// How far the encoding reaches, with line breaks (real ones or `\n`) inside it, but no blank.
fn encoded_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            _ if is_base64(char::from(*byte)) => at += 1,
            b'=' | b'\n' | b'\r' => at += 1,
            b'\\' if matches!(bytes.get(at + 1), Some(b'n' | b'r')) => at += 2,
            // Indentation behind a line break belongs to the line break.
            b' ' | b'\t' if matches!(bytes.get(at.wrapping_sub(1)), Some(b'\n' | b' ' | b'\t')) => at += 1,
            _ => break,
        }
    }
    at
}

fn decode(encoded: &str) -> Vec<u8> {
    let mut plain: Vec<u8> = Vec::with_capacity(encoded.len());
    let mut bytes = encoded.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'\\' {
            bytes.next();
        } else if is_base64(char::from(byte)) {
            plain.push(byte);
        }
    }
    // One left-over character of four is less than a byte.
    if plain.len() % 4 == 1 {
        plain.pop();
    }
    BASE64.decode(&plain).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use alloc::{borrow::ToOwned, format, string::ToString};

    use proptest::prelude::*;

    use super::*;
    use crate::failure::testing::{encode, wrap};

    const TEXT: &str = "\nError: Could not load plugin\n\nÜber 9000\n";

    fn text(message: &str) -> (String, Log) {
        let Unpacked { shell, log } = unpack(message);
        (shell.into_owned(), log)
    }

    fn complete(text: &str) -> Log {
        Log::Text { text: text.to_owned(), complete: true }
    }

    #[test]
    fn the_log_is_taken_out_of_the_message() {
        let message = wrap("create failed: cannot apply Terraform configuration: ", TEXT);
        let shell = "create failed: cannot apply Terraform configuration: Terraform encountered an error. \
            Summary: Could not load plugin.";
        assert_eq!(text(&message), (shell.to_owned(), complete(TEXT)));
        assert_eq!(full_text(&message), TEXT);
        assert_eq!(text("no log"), ("no log".to_owned(), Log::Absent));
    }

    #[test]
    fn it_is_found_however_it_was_copied() {
        let encoded = encode(TEXT);
        let (first, second) = encoded.split_at(encoded.len() - 8);
        for message in [
            encoded.clone(),
            format!("x\necho '{encoded}' | base64 -d | gunzip"),
            format!("\\\"{encoded}\\\" | base64 -d"),
            format!("echo \"{first}\n      {second}\" | base64 -d | gunzip"),
            format!("echo \"{first}\\n{second}\" | base64 -d | gunzip"),
            encoded.trim_end_matches('=').to_string(),
        ] {
            assert_eq!(text(&message).1, complete(TEXT), "{message}");
        }
    }

    #[test]
    fn a_log_that_is_cut_off_gives_its_beginning() {
        let long: String = (0..500).map(|n| format!("line {n}\n")).collect();
        let encoded = encode(&long);
        // Four characters are three bytes; it may end behind any of them.
        for cut in 0..4 {
            let Log::Text { text, complete } = text(&encoded[..encoded.len() / 2 + cut]).1 else { panic!("no text") };
            assert!(!complete && text.len() > 100 && long.starts_with(&text), "{text}");
        }
    }

    #[test]
    fn no_text_and_no_log_are_different_things() {
        // As printed for a process that got SIGKILL.
        assert_eq!(
            text(
                "Summary: . To see the full error run: echo \"H4sIAAAAAAAA/wAAAP//AQAA//8AAAAAAAAAAA==\" | base64 -d | gunzip"
            ),
            ("Summary: .".to_owned(), Log::Empty)
        );
        assert_eq!(text("a H4sIAAAA b"), ("a\nb".to_owned(), Log::Unreadable));
    }

    #[test]
    fn many_logs_and_long_messages_are_bounded() {
        let part = encode(&"a".repeat(MAX_DECODED));
        let text = full_text(&[part.as_str(), part.as_str()].join(" "));
        assert_eq!(text.len(), MAX_DECODED);
        let long = "ü".repeat(MAX_INPUT);
        assert!(bounded(&long).len() <= MAX_INPUT);
        assert_eq!(bounded("short"), "short");
    }

    #[test]
    fn a_long_message_keeps_half_of_the_bound_at_each_end() {
        let half = MAX_INPUT / 2;
        let long = ["a".repeat(MAX_INPUT), "b".repeat(MAX_INPUT)].concat();
        assert_eq!(bounded(&long), ["a".repeat(half), "\n".to_owned(), "b".repeat(half - 1)].concat());
        let longest = "a".repeat(MAX_INPUT);
        assert_eq!(bounded(&longest), longest);
    }

    #[test]
    fn only_so_many_logs_are_decoded() {
        let part = encode("one ");
        let message = Vec::from([part.as_str(); MAX_LOGS + 1]).join(" ");
        assert_eq!(text(&message), (["\n", part.as_str()].concat(), complete(&"one ".repeat(MAX_LOGS))));
    }

    #[test]
    fn a_log_begins_where_no_other_base64_stands_before_it_and_ends_with_its_quote() {
        let encoded = encode(TEXT);
        let before = format!("{} xH4sI is none:", "a".repeat(60));
        assert_eq!(text(&format!("{before} {encoded}")), (before, complete(TEXT)));
        assert_eq!(text(&format!("\\\"{encoded}\\\"and more")), ("\nand more".to_owned(), complete(TEXT)));
    }

    proptest! {
        #[test]
        fn no_message_panics(message in ".{0,200}", cut in 0usize..400) {
            let _ = unpack(&message);
            let wrapped = wrap("observe failed: ", &message);
            let cut = wrapped.floor_char_boundary(cut);
            let _ = unpack(&wrapped[..cut]);
            prop_assert_eq!(full_text(&encode(&format!("x{message}"))), format!("x{message}"));
        }
    }
}
