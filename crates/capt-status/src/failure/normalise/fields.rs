//! Values that are known by the name before them: request ids go, secrets are hidden.

use alloc::string::String;

use super::{output::Output, words::Words};

const HIDDEN: &str = "<redacted>";

/// What to do with a word because of its name or of what stands before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// `password=x`: what begins in this word at `value` is hidden.
    SecretInside {
        /// Where the value begins.
        value: usize,
    },
    /// `password: x`, `--token x`: the next word is hidden.
    SecretNext,
    /// Something long without a meaning for people, such as an encoded authorization message.
    Opaque,
    /// A PEM block with a private key.
    Pem,
}

/// Ends of names whose values are secrets; `_` and `-` do not count. The second group also stands
/// before a colon in sentences (`connection secret: cannot create ...`).
const ALWAYS_SECRET: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "secretkey",
    "accesskey",
    "apikey",
    "privatekey",
    "authorization",
    "clientkeydata",
];
const MAYBE_SECRET: [&str; 7] =
    ["secret", "token", "credential", "credentials", "signature", "auth", "connectionstring"];

impl Field {
    /// What `word` is, if it is a name or follows one.
    pub(super) fn find(previous: &str, word: &str, before: &mut Output<'_>) -> Option<Self> {
        if previous == "message:" && before.text().ends_with("uthorization failure message:") {
            return Some(Self::Opaque);
        }
        if previous.eq_ignore_ascii_case("bearer") && word.len() > 5 {
            return Some(Self::Opaque);
        }
        if word == "=" && (is_name(previous, &ALWAYS_SECRET) || is_name(previous, &MAYBE_SECRET)) {
            return Some(Self::SecretNext);
        }
        if word.starts_with("--") {
            if word.starts_with("-----BEGIN") {
                return Some(Self::Pem);
            }
            if !word.contains('=') {
                return (is_name(word, &ALWAYS_SECRET) || is_name(word, &MAYBE_SECRET)).then_some(Self::SecretNext);
            }
        }
        let (name, value) = word.split_at_checked(word.bytes().position(|byte| matches!(byte, b'=' | b':'))?)?;
        let (is_last, is_colon) = (value.len() == 1, value.starts_with(':'));
        let in_sentence = is_colon && is_last && !name.ends_with(['"', '\'']);
        if !is_name(name, &ALWAYS_SECRET) && (in_sentence || !is_name(name, &MAYBE_SECRET)) {
            return None;
        }
        Some(if is_last { Self::SecretNext } else { Self::SecretInside { value: name.len() + 1 } })
    }

    /// Writes `word` and takes from `words` what belongs to it.
    pub(super) fn write(self, word: &str, words: &mut Words<'_>, output: &mut String) {
        match self {
            Self::SecretInside { value } => {
                let (name, value) = word.split_at_checked(value).unwrap_or((word, ""));
                output.push_str(name);
                hide(value, words, output);
            }
            Self::SecretNext => {
                output.push_str(word);
                output.push(' ');
                let value = words.next().map_or("", |word| word.text);
                hide(value, words, output);
            }
            Self::Opaque => output.push_str("<data>"),
            Self::Pem => {
                let rest = words.rest();
                let end = rest.find("-----END").map_or(rest.len(), |at| {
                    let tail = rest.get(at + 8..).unwrap_or_default();
                    at + 8 + tail.find("-----").map_or(tail.len(), |end| end + 5)
                });
                words.skip(end);
                output.push_str(HIDDEN);
            }
        }
    }
}

/// Hides a value that begins with the word `value`: to its closing quote, and the scheme of an
/// `Authorization` with what follows it.
fn hide(value: &str, words: &mut Words<'_>, output: &mut String) {
    const SCHEMES: [&str; 4] = ["bearer", "basic", "token", "aws4-hmac-sha256"];
    output.push_str(HIDDEN);
    let bare = value.trim_start_matches('\\');
    let quote = bare.chars().next().filter(|first| matches!(first, '"' | '\'' | '`'));
    if let Some(quote) = quote {
        let inside = bare.get(1..).unwrap_or_default();
        if !inside.contains(quote) {
            let end = words.rest().find(quote).map_or(0, |end| end + 1);
            words.skip(end);
        }
    } else if SCHEMES.iter().any(|scheme| bare.eq_ignore_ascii_case(scheme)) {
        words.next();
    }
}

/// What may stand before a name.
pub(super) const OPENING: [char; 4] = ['(', '[', '{', '"'];

/// Whether `word` begins a request id; how many words after it belong to it.
pub(super) fn request_id(word: &str, rest: &str) -> Option<usize> {
    const NAMES: [&str; 9] = [
        "requestid:",
        "request-id:",
        "hostid:",
        "host-id:",
        "x-amzn-requestid:",
        "x-amz-request-id:",
        "x-amz-id-2:",
        "x-request-id:",
        "traceid:",
    ];
    let word = word.trim_start_matches(OPENING);
    if !matches!(word.bytes().next()? | 0x20, b'r' | b'h' | b'x' | b't' | b'e') {
        return None;
    }
    let begins = |text: &str, name: &str| text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    // Names end in `id:` or `id-2:`.
    let sign = word.bytes().position(|byte| byte == b':');
    if let Some(before) = sign.and_then(|sign| word.as_bytes().get(sign.checked_sub(1)?)) {
        if !matches!(before, b'd' | b'D' | b'2') {
            return None;
        }
    }
    if sign.is_none() && !rest.trim_start().starts_with(['i', 'I']) {
        return None;
    }
    if let Some(name) = NAMES.iter().find(|name| begins(word, name)) {
        return Some(usize::from(word.len() == name.len()));
    }
    // `request id: x`, `Extended Request ID: x`
    let is_two = ["request", "host", "trace"].iter().any(|name| word.eq_ignore_ascii_case(name));
    if is_two && begins(rest.trim_start(), "id: ") {
        return Some(2);
    }
    None
}

/// Whether `name` ends in one of `known`, without regard to case and to `_` and `-`.
fn is_name(name: &str, known: &[&str]) -> bool {
    let mut letters = name.bytes().rev().skip_while(|byte| !byte.is_ascii_alphanumeric());
    let Some(last) = letters.next() else { return false };
    let letters = letters.filter(|byte| !matches!(byte, b'_' | b'-'));
    known.iter().any(|known| {
        let mut expected = known.bytes().rev();
        let mut letters = letters.clone();
        expected.next() == Some(last.to_ascii_lowercase())
            && expected.all(|expected| letters.next().is_some_and(|byte| byte.eq_ignore_ascii_case(&expected)))
    })
}
