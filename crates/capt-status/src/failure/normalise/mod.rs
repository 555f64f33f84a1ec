//! Makes a text fit for a status: short, without secrets, and equal for two texts that differ only in
//! what changes at each attempt (ids, times, ports, counters).
//!
//! A text is one line here. What was replaced stays visible: `<id>`, `<time>`, `<address>`, `<n>`,
//! `<duration>`, `<data>`, `<redacted>`. The work ends when the text is full, so that a long text costs no more
//! than a short one. Resource ids of AWS that name what a person must look at (`vpc-...`, `sg-...`)
//! and account numbers stay.

mod fields;
mod output;
mod values;
mod words;

use alloc::string::String;

use crate::text::truncate;
use fields::Field;
use output::Output;
use words::{Word, Words};

/// `text` normalised and cut to at most `max` bytes, on a character boundary.
pub(super) fn normalise(text: &str, max: usize) -> String {
    let mut output = Output::new(text, text.len().min(max) + 32);
    let mut words = Words::new(text);
    let mut previous = "";
    while let Some(word) = words.next() {
        if output.len() > max {
            break;
        }
        let Word { text: own, start, .. } = word;
        let may_be_field = word.has_sign || is_introduction(previous);
        // Nearly every word goes this way.
        if !may_be_field && !word.has_value() && !may_name_id(own) {
            output.keep(start, own);
        } else if let Some(skipped) = fields::request_id(own, words.rest()) {
            for _ in 0..skipped {
                words.next();
            }
            if words.rest().trim_start().is_empty() {
                output.trim_end([',', ' ', '(']);
            }
            continue;
        } else if may_be_field && let Some(field) = Field::find(previous, own, &mut output) {
            field.write(own, &mut words, output.begin());
        } else if word.has_value() {
            write_value(previous, word, &mut words, &mut output);
        } else {
            output.keep(start, own);
        }
        previous = own;
    }
    let output = output.into_text();
    if output.len() > max { truncate(&output, max) } else { output }
}

/// Writes a word that may be or hold a value by its form.
fn write_value(previous: &str, word: Word<'_>, words: &mut Words<'_>, output: &mut Output<'_>) {
    let output = output.begin();
    if let Some(length) = values::spaced_time(word.text, words.rest()) {
        output.push_str("<time>");
        words.skip(length);
    } else if is_counter(previous, word.text, words.rest()) {
        values::write_counter(word.text, output);
    } else {
        values::write(word.text, output);
    }
}

/// Whether what follows `word` may be a value because of it.
fn is_introduction(word: &str) -> bool {
    word == "message:" || word.eq_ignore_ascii_case("bearer")
}

/// Whether `word` may be the first of `request id:`, in brackets or not.
fn may_name_id(word: &str) -> bool {
    let name = word.trim_start_matches(fields::OPENING);
    let first = name.as_bytes().first().map_or(0, |first| first | 0x20);
    matches!(name.len(), 4 | 5 | 7) && matches!(first, b'h' | b't' | b'r')
}

/// Whether `word` counts attempts or measures how long they took.
fn is_counter(previous: &str, word: &str, rest: &str) -> bool {
    const BEFORE: [&str; 13] = [
        "attempt",
        "attempts",
        "attempts,",
        "attempt:",
        "attempts:",
        "retry",
        "retries",
        "retries:",
        "try",
        "pid",
        "pid:",
        "goroutine",
        "elapsed:",
    ];
    const BEHIND: [&str; 8] = ["attempts", "attempt", "retries", "retry", "tries", "elapsed", "more", "times"];
    // Before a time that passed; a limit (`timeout: 20m0s`, `within 5m`) is always the same.
    const PASSED: [&str; 6] = ["after", "for", "in", "took", "waited", "took:"];
    const UNITS: [&str; 9] =
        ["seconds", "second", "secs", "minutes", "minute", "mins", "hours", "hour", "milliseconds"];
    if !word.trim_start_matches(['(', '[', '#']).starts_with(|first: char| first.is_ascii_digit()) {
        return false;
    }
    let next = rest.split_whitespace().next().unwrap_or_default().trim_end_matches([',', '.', ':', ';', ')', ']']);
    let previous = previous.trim_start_matches(['(', '[']);
    let is = |known: &[&str], word: &str| known.iter().any(|known| known.eq_ignore_ascii_case(word));
    is(&BEFORE, previous)
        || is(&BEHIND, next)
        || (is(&PASSED, previous) && (is(&UNITS, next) || values::is_duration(word)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn short(text: &str) -> String {
        normalise(text, 1024)
    }

    #[test]
    fn ids_times_ports_and_counters_become_marks() {
        for (text, expected) in [
            ("RequestID: 8d2f6bd8-3c4e-4a6b-9d3e-2f6bd83c4e4a, api error X", "api error X"),
            ("status code: 400, request id: 4442587FB7D0A2F9", "status code: 400"),
            ("StatusCode: 0, RequestID: , request send failed", "StatusCode: 0, request send failed"),
            ("lock 0f001320-aaaa-bbbb-cccc-0123456789ab held", "lock <id> held"),
            ("at 2024-02-18T01:53:51.747Z now", "at <time> now"),
            ("Created: 2024-02-18 01:53:51.747726783 +0000 UTC end", "Created: <time> end"),
            ("2024/02/18 01:53:51 [ERROR] x", "<time> [ERROR] x"),
            ("on 10.96.0.10:53: no such host", "on <address>: no such host"),
            ("read tcp 10.0.0.1:34550->192.0.2.1:443: read: reset", "read tcp <address>-><address>: read: reset"),
            ("dial tcp [::1]:80: connect", "dial tcp <address>: connect"),
            ("CIDR '10.0.1.0/24' of 123456789012", "CIDR '10.0.1.0/24' of 123456789012"),
            ("assumed-role/capt-provider/1700000000000000000 is", "assumed-role/capt-provider/<n> is"),
            ("pod provider-terraform-7d9f8c6b5d-x7k2p gone", "pod provider-terraform-<id> gone"),
            ("pod provider-terraform-7d9f8c6b5d-xbkpq gone", "pod provider-terraform-<id> gone"),
            ("pod a-6b7fk8c9d5-x7k2p gone", "pod a-<id> gone"),
            ("key 1A2B3C4D5E6G7H8J end", "key <id> end"),
            ("subnet-0123456789abcdef0 in vpc-0a1b2c3d4e5f60718", "subnet-0123456789abcdef0 in vpc-0a1b2c3d4e5f60718"),
            ("i-0123456789abcdef0: failed", "i-<id>: failed"),
            ("exceeded maximum number of attempts, 25, https", "exceeded maximum number of attempts, <n>, https"),
            ("gave up after 3 attempts", "gave up after <n> attempts"),
            ("after 1m2.345s: timeout: 20m0s", "after <duration>: timeout: 20m0s"),
            ("still creating... [10m20s elapsed]", "still creating... [<duration> elapsed]"),
            ("no answer (after 62s), gave up", "no answer (after <duration>), gave up"),
            ("failed after 1m2s, retrying in 30s.", "failed after <duration>, retrying in <duration>."),
            ("waited 62 seconds; it took 3 minutes", "waited <n> seconds; it took <n> minutes"),
            ("not ready within 5m0s, for 3 nodes in 2 zones", "not ready within 5m0s, for 3 nodes in 2 zones"),
            ("at 01:53:51.123 now", "at <time> now"),
            ("at 01:53:51. Next", "at <time>. Next"),
            ("at 01:53:51-x now", "at <time>-x now"),
            ("at 01:53:51+02:00 now", "at <time> now"),
            ("at 2024-02-18T01:53:51+0200 now", "at <time> now"),
            ("at 2024-02-18T01:53:51.5-07:00, now", "at <time>, now"),
            ("on 20240218T015351Z now", "on <time> now"),
            ("on 20240218T015351 now", "on <time> now"),
            ("open /tmp/terraform123456789/x", "open /tmp/terraform<n>/x"),
            ("open /tmp/terraform12345678/x", "open /tmp/terraform12345678/x"),
            ("hash abcdefabcdefabcdefabcdefabcdefab", "hash <id>"),
            ("aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV", "<data>"),
            ("aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0u", "<id>"),
            ("ABCdefghij0123456789KLMnopqrstuvwxyz", "<id>"),
            ("denied (request id: 4442587FB7D0A2F9)", "denied"),
            ("Kubernetes version 1.31 of v20240117", "Kubernetes version 1.31 of v20240117"),
            ("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "sha256:<id>"),
        ] {
            assert_eq!(short(text), expected, "{text}");
        }
    }

    #[test]
    fn secrets_do_not_survive() {
        for (text, expected) in [
            ("key AKIAIOSFODNN7EXAMPLE is bad", "key <redacted> is bad"),
            ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "<data>"),
            ("password=hunter2 next", "password=<redacted> next"),
            ("\"password\": \"hunter2\", \"a\": 1", "\"password\": <redacted> \"a\": 1"),
            ("password = hunter2 next", "password = <redacted> next"),
            ("--token hunter2 next", "--token <redacted> next"),
            ("password: \"two words\" next", "password: <redacted> next"),
            ("token=hunter2 next", "token=<redacted> next"),
            ("token= hunter2 next", "token= <redacted> next"),
            ("token:hunter2 next", "token:<redacted> next"),
            ("sent Bearer abcdef next", "sent Bearer <data> next"),
            ("a bearer token is no token", "a bearer token is no token"),
            ("error message: something else", "error message: something else"),
            ("aws_secret_access_key: abc", "aws_secret_access_key: <redacted>"),
            ("Authorization: Bearer abc.def next", "Authorization: <redacted> next"),
            ("https://user:pass@git.example.com/a.git", "https://<redacted>@git.example.com/a.git"),
            ("ssh://git@github.com/a.git?ref=v1.2.3", "ssh://git@github.com/a.git?ref=v1.2.3"),
            (
                "https://b.s3.amazonaws.com/k?X-Amz-Algorithm=A&X-Amz-Signature=abc: 403",
                "https://b.s3.amazonaws.com/k?<redacted> 403",
            ),
            ("AKIAIOSFODNNABCDEFGH", "<redacted>"),
            ("eyJabcdefghijklmnopqrs", "<redacted>"),
            ("hvs.CAESIJabcdefghijklmnop", "<redacted>"),
            ("ghp_abcdefghijklmnopqrstuvwxyzABCDEFGHIJ", "<redacted>"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "<redacted>"),
            (
                "Encoded authorization failure message: EXAMPLEabc_000000 next",
                "Encoded authorization failure message: <data> next",
            ),
            ("-----BEGIN RSA PRIVATE KEY----- MIIEow abc -----END RSA PRIVATE KEY----- next", "<redacted> next"),
            ("connection secret: cannot create object", "connection secret: cannot create object"),
            ("invalid expression token.", "invalid expression token."),
        ] {
            assert_eq!(short(text), expected, "{text}");
        }
    }

    #[test]
    fn a_text_that_is_cut_says_so_and_blanks_become_one() {
        assert_eq!(normalise("four more", 4), "f...");
        assert_eq!(normalise("four", 4), "four");
        assert_eq!(short("two  blanks"), "two blanks");
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in [
            "creating EC2 VPC: VpcLimitExceeded: The maximum number of VPCs has been reached.",
            "Could not download module \"m\" (main.tf:1) source code from \"git::https://git.example.com/acme/terraform-eks.git?ref=v1.2.3\"",
            "on .terraform/modules/eks/modules/eks-managed-node-group/main.tf line 272",
            "User: arn:aws:iam::111122223333:user/capt is not authorized to perform: iam:PassRole",
            "Instance type t4g.medium is not supported in eu-west-1e",
            "Größe überschritten",
            "the request is bad now",
            "eks-managed-node-group-default",
            "20240218T0153 20240218x015351 1:2:3 123:45:67 1:23",
            "a-deadbeef-1 a-faced-1 X-ERROR1-Y AWS-REGION-X1 a-internationalization-1",
            "abcdefghijklmnopqrs1 1a2b3c4d5e6g7h8j a-INTERNATIONALIZATION-b a-abcdefghijklmnopqrstuvwxyz-b a-bcdfg-1",
            "a-6b7fk8c9d5-abc 6b7fk8c9d5-x7k2p a-bcdfghjkl-x7k2p a-6b7fka8c9-x7k2p a-6b7fk8c-x7k2p",
            "modules/EKS/VpcPrivate/network1/main",
            "modules/EKS/VpcPrivate/networks/mainfile",
        ] {
            assert_eq!(short(text), text);
        }
    }

    proptest! {
        #[test]
        fn the_bound_is_hard_and_nothing_panics(text in "(\\PC|[a-f0-9-]{8,40}|[0-9.:]{1,12}|password[=: ]|://|@|\\?){0,80}", max in 16usize..300) {
            let text = text.replace(char::is_control, " ");
            let output = normalise(&text, max);
            prop_assert!(output.len() <= max, "{output}");
            prop_assert!(output.is_empty() == text.trim().is_empty() || text.to_lowercase().contains("request"));
        }

        #[test]
        fn texts_that_differ_in_ids_are_equal(a in "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", b in "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            m in 10u32..60, n in 10u32..60, p in 1u16..65535, q in 1u16..65535) {
            let text = |id: &str, time: u32, port: u16| alloc::format!("lock {id} at 2024-02-18T01:{time}:51Z by 10.0.0.1:{port} end");
            prop_assert_eq!(short(&text(&a, m, p)), short(&text(&b, n, q)));
        }
    }
}
