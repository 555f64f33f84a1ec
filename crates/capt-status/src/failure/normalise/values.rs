//! Values that are known by their form: ids, times, addresses, durations, keys, encoded data.

use alloc::string::String;

/// Prefixes of AWS resource ids that a person needs to find the resource.
const KEPT_IDS: [&str; 18] = [
    "vpc", "subnet", "sg", "sgr", "igw", "nat", "rtb", "acl", "eipalloc", "vpce", "tgw", "pcx", "ami", "lt", "fs",
    "pl", "dopt", "eigw",
];
/// Beginnings of tokens that say themselves that they are secret.
const TOKENS: [&str; 14] = [
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "hvs.",
    "npm_",
    "dop_v1_",
    "eyJ",
];

/// Writes `word` with what changes or is secret replaced.
pub(super) fn write(word: &str, output: &mut String) {
    let mut signs = word.bytes().enumerate().filter(|(_, byte)| *byte == b':');
    let url = signs.find_map(|(at, _)| word.get(at..)?.strip_prefix("://").zip(word.get(..at)));
    match url {
        Some((rest, scheme)) => {
            write_plain(scheme, output);
            output.push_str("://");
            write_url(rest, output);
        }
        None => write_plain(word, output),
    }
}

/// Writes what follows `://`: without a user's password, and without a query that signs.
fn write_url(text: &str, output: &mut String) {
    const SIGNED: [&str; 8] = ["amz-", "signature", "sig=", "token", "secret", "password", "key=", "credential"];
    let authority = text.find(['/', '?', '#', '"', '\'']).unwrap_or(text.len());
    let (authority, rest) = text.split_at(authority);
    let host = match authority.rsplit_once('@') {
        Some((user, host)) if user.contains(':') || user.len() >= 20 => {
            output.push_str("<redacted>@");
            host
        }
        Some(_) | None => authority,
    };
    write_plain(host, output);
    let (path, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
    write_plain(path, output);
    let lower = query.to_ascii_lowercase();
    if SIGNED.iter().any(|part| lower.contains(part)) {
        output.push_str("?<redacted>");
    } else {
        write_plain(query, output);
    }
}

const DIGIT: u8 = 1;
const LETTER: u8 = 2;
/// Bytes other than these two of which encoded data is made.
const JOINER: u8 = 4;

/// What each byte is, 0 if none of those. A table, since it is asked for every byte.
static KINDS: [u8; 256] = {
    let (mut table, mut byte) = ([0; 256], 0);
    while byte < 128u8 {
        table[byte as usize] = match byte {
            b'0'..=b'9' => DIGIT,
            b'A'..=b'Z' | b'a'..=b'z' => LETTER,
            b'+' | b'/' | b'=' | b'_' | b'-' => JOINER,
            _ => 0,
        };
        byte += 1;
    }
    table
};

fn kind(byte: u8) -> u8 {
    KINDS.get(usize::from(byte)).copied().unwrap_or_default()
}

fn write_plain(text: &str, output: &mut String) {
    let bytes = text.as_bytes();
    // What is read and not written yet begins at `kept`.
    let (mut at, mut kept) = (0, 0);
    // The run before, and what it became: `vpc` before an id.
    let (mut last_run, mut last_mark) = ("", "");
    while let Some(byte) = bytes.get(at) {
        if kind(*byte) & (LETTER | DIGIT) == 0 {
            if *byte == b'['
                && let Some(length) = ipv6_with_port(bytes.get(at..).unwrap_or_default())
            {
                output.push_str(text.get(kept..at).unwrap_or_default());
                output.push_str("<address>");
                at += length;
                kept = at;
            } else {
                at += 1;
            }
            continue;
        }
        let rest = text.get(at..).unwrap_or_default();
        let (mut length, mut kinds) = (0, 0);
        for kind in rest.bytes().map(kind).take_while(|kind| kind & (LETTER | DIGIT) != 0) {
            length += 1;
            kinds |= kind;
        }
        let (run, next) = rest.split_at(length);
        let joins = next.bytes().next().is_some_and(|next| kind(next) == JOINER || next == b'.');
        // Behind an id five letters may be the other one of a pod's name.
        if !joins && kinds & DIGIT == 0 && last_mark.is_empty() && is_plain(run) {
            (last_run, last_mark) = (run, "");
            at += length;
            continue;
        }
        let separator = at.checked_sub(1).and_then(|before| bytes.get(before)).copied();
        let (start, mark, end) = match whole(rest, separator) {
            Some((mark, length)) => (at, mark, at + length),
            None => {
                let mark = run_mark(run, next, separator, last_mark);
                let is_kept = separator == Some(b'-') && KEPT_IDS.contains(&last_run);
                last_run = run;
                if !mark.is_empty() && !is_kept {
                    (at, mark, at + length)
                } else {
                    last_mark = "";
                    at += length;
                    // `/tmp/terraform123456789`
                    let number = run.bytes().rev().take_while(u8::is_ascii_digit).count();
                    if number < 9 || number == length {
                        continue;
                    }
                    (at - number, "<n>", at)
                }
            }
        };
        output.push_str(text.get(kept..start).unwrap_or_default());
        (at, kept) = (end, end);
        // A pod's name ends in two ids; one mark is enough.
        if mark == "<id>" && output.ends_with("<id>-") {
            output.pop();
        } else {
            output.push_str(mark);
        }
        last_mark = mark;
    }
    output.push_str(text.get(kept..).unwrap_or_default());
}

/// Whether a run of letters that nothing joins to more is a word, and no key or token.
fn is_plain(run: &str) -> bool {
    run.len() < 20 || (run.len() < 32 && !["eyJ", "AKIA", "ASIA"].iter().any(|start| run.starts_with(start)))
}

/// The mark for something that is more than a run of letters and digits, and its length.
fn whole(text: &str, separator: Option<u8>) -> Option<(&'static str, usize)> {
    let bytes = text.as_bytes();
    let joins = |separator: Option<u8>| separator.is_some_and(|byte| kind(byte) == JOINER);
    let digits = digits(text);
    if digits > 0 {
        let time = |length| ("<time>", length);
        let next = bytes.get(digits).copied().unwrap_or_default();
        let found = match next {
            b'-' | b'/' | b'T' => timestamp(text).map(time),
            b':' => time_of_day(text).map(time),
            b'.' => ipv4_with_port(text).map(|length| ("<address>", length)),
            _ => None,
        };
        if found.is_some() {
            return found;
        }
        if let Some((length, is_measured)) = duration(text) {
            return is_measured.then_some(("<duration>", length));
        }
    }
    if is_uuid(bytes) {
        return Some(("<id>", 36));
    }
    // Tokens and keys are not shorter.
    if bytes.len() >= 20 && !joins(separator) {
        let may_be_token = bytes.first().is_some_and(|first| matches!(first, b'd' | b'e' | b'g' | b'h' | b'n' | b'x'));
        if may_be_token && TOKENS.iter().any(|token| text.starts_with(token)) {
            let length = text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(byte)).count();
            return (length >= 20).then_some(("<redacted>", length));
        }
        let length = text.bytes().position(|byte| kind(byte) == 0).unwrap_or(text.len());
        let span = text.get(..length).unwrap_or_default();
        if is_data(span) {
            return Some(("<data>", length));
        }
    }
    None
}

/// Whether `span` looks like base64 or like an AWS secret key, and not like a path or a name.
fn is_data(span: &str) -> bool {
    if span.len() < 32 {
        return false;
    }
    let count = |is: fn(&u8) -> bool| span.bytes().filter(is).count();
    let (upper, lower) = (count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase));
    let digits =
        span.as_bytes().windows(2).filter(|pair| pair.iter().filter(|byte| byte.is_ascii_digit()).count() == 1).count();
    let is_mixed = upper >= 3 && lower >= 3 && digits > 0;
    let is_key = span.len() == 40 && span.contains(['/', '+']) && !span.contains(['_', '-', '=']);
    is_mixed && (is_key || digits >= 6.max(span.len() / 8))
}

/// The mark for a run of letters and digits; empty if it stays.
fn run_mark(run: &str, next: &str, separator: Option<u8>, last_mark: &str) -> &'static str {
    let length = run.len();
    if length < 5 {
        return "";
    }
    let digits = run.bytes().filter(u8::is_ascii_digit).count();
    let is_upper = !run.bytes().any(|byte| byte.is_ascii_lowercase());
    let is_hex = run.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_hash = |text: &str| text.bytes().all(|byte| b"bcdfghjklmnpqrstvwxz2456789".contains(&byte));
    if length == 20 && (run.starts_with("AKIA") || run.starts_with("ASIA")) {
        "<redacted>"
    } else if digits == length {
        // Twelve digits are an account.
        if length >= 10 && length != 12 { "<n>" } else { "" }
    } else if (is_hex && length >= 8 && digits > 0) || (is_hex && length >= 32) {
        "<id>"
    } else if length >= 16 && digits > 0 && is_upper {
        "<id>"
    } else if length >= 24 && digits >= 4 {
        "<id>"
    } else if length == 5 && separator == Some(b'-') && last_mark == "<id>" && is_hash(run) {
        "<id>"
    } else if (8..=10).contains(&length) && separator == Some(b'-') && digits > 0 && is_hash(run) && is_pod_suffix(next)
    {
        "<id>"
    } else {
        ""
    }
}

/// `-x7k2p`, the random end of a pod's name.
fn is_pod_suffix(text: &str) -> bool {
    let suffix = text.strip_prefix('-').unwrap_or_default();
    suffix.bytes().take_while(u8::is_ascii_alphanumeric).count() == 5
}

/// Writes a number that counts attempts, or a time that passed.
pub(super) fn write_counter(word: &str, output: &mut String) {
    let number = bare(word);
    let start = word.find(number).unwrap_or_default();
    output.push_str(word.get(..start).unwrap_or_default());
    output.push_str(if is_duration(word) { "<duration>" } else { "<n>" });
    output.push_str(word.get(start + number.len()..).unwrap_or_default());
}

/// Whether `word` is a duration and no more, brackets and commas aside.
pub(super) fn is_duration(word: &str) -> bool {
    let word = bare(word);
    duration(word).is_some_and(|(length, _)| length == word.len())
}

/// `word` without what stands around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|character: char| !character.is_ascii_alphanumeric())
}

fn is_uuid(bytes: &[u8]) -> bool {
    let is_form = bytes.get(8) == Some(&b'-')
        && bytes.get(..36).is_some_and(|uuid| {
            uuid.iter().enumerate().all(|(at, byte)| match at {
                8 | 13 | 18 | 23 => *byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            })
        });
    is_form && bytes.get(36).is_none_or(|byte| !byte.is_ascii_alphanumeric())
}

/// How many digits `text` begins with.
fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// The length of `2024-02-18` or `2024/02/18`.
fn date(text: &str) -> Option<usize> {
    let bytes = text.as_bytes().get(..10)?;
    let is_date = bytes.iter().enumerate().all(|(at, byte)| match at {
        4 | 7 => matches!(byte, b'-' | b'/'),
        _ => byte.is_ascii_digit(),
    });
    is_date.then_some(10)
}

/// The length of `01:53:51.747`, with its zone.
fn time_of_day(text: &str) -> Option<usize> {
    let hours = digits(text);
    let rest = text.get(hours..)?;
    let parts = rest.strip_prefix(':').zip(rest.get(3..)).is_some_and(|(minutes, seconds)| {
        digits(minutes) == 2 && seconds.starts_with(':') && digits(seconds.get(1..).unwrap_or_default()) == 2
    });
    if !(1..=2).contains(&hours) || !parts {
        return None;
    }
    let mut length = hours + 6;
    if let Some(fraction) = text.get(length..)?.strip_prefix(['.', ',']).map(digits).filter(|digits| *digits > 0) {
        length += 1 + fraction;
    }
    let zone = text.get(length..).unwrap_or_default();
    if zone.starts_with('Z') {
        length += 1;
    } else if zone.starts_with(['+', '-']) && digits(zone.get(1..).unwrap_or_default()) >= 2 {
        length += 1 + zone
            .get(1..)
            .unwrap_or_default()
            .bytes()
            .take_while(|byte| byte.is_ascii_digit() || *byte == b':')
            .count();
    }
    Some(length)
}

/// The length of `2024-02-18T01:53:51Z` or `20240218T015351Z`.
fn timestamp(text: &str) -> Option<usize> {
    if digits(text) == 8 && text.get(8..9) == Some("T") && digits(text.get(9..)?) == 6 {
        return Some(15 + usize::from(text.get(15..16) == Some("Z")));
    }
    let date = date(text)?;
    let time = text.get(date..)?.strip_prefix(['T', '_', 't'])?;
    Some(date + 1 + time_of_day(time)?)
}

/// Whether `word` is a date that a time follows in `rest`; how much of `rest` belongs to it.
pub(super) fn spaced_time(word: &str, rest: &str) -> Option<usize> {
    let bare = word.trim_start_matches(['(', '[', '"', '\'']);
    if date(bare)? != bare.len() {
        return None;
    }
    let blank = rest.len() - rest.trim_start().len();
    let mut length = blank + time_of_day(rest.get(blank..)?)?;
    for _ in 0..3 {
        let more = rest.get(length..).unwrap_or_default();
        let zone = more.split_whitespace().next().unwrap_or_default();
        let is_offset = zone.starts_with(['+', '-']) && digits(zone.get(1..).unwrap_or_default()) == 4;
        if !more.starts_with(' ') || !(is_offset || zone.starts_with("m=+") || matches!(zone, "UTC" | "GMT")) {
            break;
        }
        length += more.find(zone)? + zone.len();
    }
    Some(length)
}

/// The length of `10.0.0.1:53`.
fn ipv4_with_port(text: &str) -> Option<usize> {
    let mut length = 0;
    for part in 0..4 {
        let octet = digits(text.get(length..)?);
        if !(1..=3).contains(&octet) {
            return None;
        }
        length += octet;
        let mark = if part < 3 { '.' } else { ':' };
        length += text.get(length..)?.starts_with(mark).then_some(1)?;
    }
    let port = digits(text.get(length..)?);
    (1..=5).contains(&port).then_some(length + port)
}

/// The length of `[::1]:80`.
fn ipv6_with_port(bytes: &[u8]) -> Option<usize> {
    let inside = bytes
        .get(1..)?
        .iter()
        .take_while(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.' | b'%'))
        .count();
    if !bytes.get(1..=inside)?.contains(&b':') || bytes.get(1 + inside..3 + inside)? != b"]:" {
        return None;
    }
    let port = bytes.get(3 + inside..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (1..=5).contains(&port).then_some(3 + inside + port)
}

/// The length of a duration in Go's form and whether it was measured (it has a fraction or is below a second).
fn duration(text: &str) -> Option<(usize, bool)> {
    let (mut length, mut is_measured) = (0, false);
    loop {
        let rest = text.get(length..)?;
        let mut number = digits(rest);
        if number == 0 {
            break;
        }
        if let Some(fraction) = rest.get(number..)?.strip_prefix('.').map(digits).filter(|digits| *digits > 0) {
            number += 1 + fraction;
            is_measured = true;
        }
        let unit = rest.get(number..)?;
        let (unit, is_small) =
            if let Some(unit) = ["ns", "us", "µs", "ms"].iter().find(|known| unit.starts_with(**known)) {
                (unit.len(), true)
            } else if unit.starts_with(['h', 'm', 's']) {
                (1, false)
            } else {
                return None;
            };
        is_measured |= is_small;
        length += number + unit;
    }
    let ends = text.get(length..)?.bytes().next().is_none_or(|byte| !byte.is_ascii_alphanumeric());
    (length > 0 && ends).then_some((length, is_measured))
}
