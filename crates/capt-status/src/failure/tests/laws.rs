//! Laws that hold for every message.

use alloc::{format, string::String, vec::Vec};

use proptest::prelude::*;

use crate::failure::{
    MAX_MESSAGE, Reason, Stage, classify,
    decode::{MAX_INPUT, full_text},
    testing::wrap,
};

/// Errors with what changes at each attempt: `{u}` a UUID, `{h}` hex, `{k}` a key of capitals, `{t}` a time,
/// `{p}` a port, `{n}` a number, `{d}` a duration, `{s}` one of whole seconds, `{c}` a count.
const CHANGING: [&str; 15] = [
    "Error: creating EC2 VPC: operation error EC2: CreateVpc, https response error StatusCode: 400, RequestID: {u}, api error VpcLimitExceeded: no",
    "Error: error creating EC2 VPC: VpcLimitExceeded: no\n\tstatus code: 400, request id: {u}",
    "Error: reading S3: AccessDenied: Access Denied\n\tstatus code: 403, request id: {k}, host id: {h}+/{k}=",
    "Error: Error acquiring the state lock\n\nError message: ConditionalCheckFailedException: no\nLock Info:\n  ID:        {u}\n  Who:       1000@pod-{h}\n  Created:   {t}\n\n\nTerraform acquires a lock\n",
    "Error: Get \"https://a.example.com\": read tcp 10.0.0.1:{p}->192.0.2.1:443: read: connection reset by peer",
    "Error: dial tcp [fd00::1]:{p}: i/o timeout at {t}",
    "Error: User: arn:aws:sts::111122223333:assumed-role/capt/{n} is not authorized to perform: eks:CreateCluster",
    "Error: operation error EKS: DescribeCluster, exceeded maximum number of attempts, {n}, AccessDenied after {d}",
    "Error: open /tmp/terraform-provider{n}/x: no space left on device",
    "Error: waiting for EKS Node Group (demo:default-{n}) create: last error: i-{h}: NodeCreationFailure: Instances failed to join the kubernetes cluster",
    "Error: Error acquiring the state lock\n\nError message: the state is already locked\nLock Info:\n  Who: a\n  Version: {n}\n",
    "Error: waiting for EKS Cluster (demo): timeout while waiting for state to become 'ACTIVE' (after {s}, {c} attempts)",
    "Error: Get \"https://a.example.com\": dial tcp: i/o timeout after {s} elapsed, retrying in {s}",
    "Error: 503 Service Unavailable, waited {c} seconds (took {s}), attempt {c}",
    "Error: trace {u}: gave up after {d}: 500 Internal Server Error (Request ID: {u})",
];

#[derive(Debug, Clone)]
struct Values([(&'static str, String); 9]);

fn values() -> impl Strategy<Value = Values> {
    let uuid = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";
    let time = (2000u32..2100, 1u32..13, 1u32..29, 0u32..24, 0u32..60, 0u32..1_000_000_000).prop_map(
        |(year, month, day, hour, minute, nanos)| {
            format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:07.{nanos} +0000 UTC")
        },
    );
    let number = 1_000_000_000_000_000_000u64..2_000_000_000_000_000_000;
    let duration = (1u32..60, 0u32..1000).prop_map(|(seconds, millis)| format!("{seconds}.{millis:03}s"));
    let whole = (0u32..5, 0u32..60).prop_map(|(minutes, seconds)| match minutes {
        0 => format!("{seconds}s"),
        minutes => format!("{minutes}m{seconds}s"),
    });
    let (hex, key) = ("[0-9][0-9a-f]{15}[a-f]", "[0-9][0-9A-Z]{14}[A-Z]");
    (uuid, hex, key, time, 1024u16.., number, duration, whole, 1u32..500).prop_map(|(u, h, k, t, p, n, d, s, c)| {
        Values([
            ("{u}", u),
            ("{h}", h),
            ("{k}", k),
            ("{t}", t),
            ("{p}", format!("{p}")),
            ("{n}", format!("{n}")),
            ("{d}", d),
            ("{s}", s),
            ("{c}", format!("{c}")),
        ])
    })
}

fn filled(template: &str, Values(values): &Values) -> String {
    values.iter().fold(String::from(template), |text, (mark, value)| text.replace(mark, value))
}

proptest! {
    #[test]
    fn what_changes_at_each_attempt_changes_nothing(a in values(), b in values()) {
        for template in CHANGING {
            let failures: Vec<_> = [&a, &b]
                .into_iter()
                .flat_map(|values| {
                    let stderr = filled(template, values);
                    [classify(&format!("update failed: {stderr}")), classify(&wrap("update failed: ", &stderr))]
                })
                .collect();
            for failure in &failures {
                prop_assert_eq!(failure, &failures[0], "{}", template);
                prop_assert_ne!(failure.reason.as_str(), "Unrecognised", "{}", template);
            }
        }
    }

    #[test]
    fn any_text_gives_a_bounded_answer(text in "(\\PC|\n|Error: |\\* |errors occurred:|│ |H4sI|echo \"|RequestID: |AccessDenied|password=|[0-9a-f.:-]{1,40}){0,60}", stage in 0usize..6) {
        let prefix = Stage::ALL.get(stage).map_or(String::new(), |stage| format!("{stage} failed: "));
        let message = format!("{prefix}{text}");
        let failure = classify(&message);
        prop_assert!((1..=MAX_MESSAGE).contains(&failure.message.len()));
        prop_assert!(!failure.message.chars().any(char::is_control), "{:?}", failure.message);
        prop_assert_eq!((failure.class, failure.hint), (failure.reason.class(), failure.reason.hint()));
        prop_assert_eq!(failure.stage, Stage::ALL.get(stage).copied());
        prop_assert_eq!(classify(&message), failure);
    }

    #[test]
    fn any_bytes_in_a_log_give_a_bounded_answer(log in "\\PC{0,300}", cut in 0usize..600) {
        let message = wrap("create failed: ", &log);
        let cut = message.floor_char_boundary(cut);
        let failure = classify(&message[..cut]);
        prop_assert!((1..=MAX_MESSAGE).contains(&failure.message.len()));
        prop_assert!(full_text(&message[..cut]).len() <= message.len() * 1100);
    }
}

#[test]
fn secrets_do_not_reach_the_message() {
    let secrets = [
        "AKIAIOSFODNN7EXAMPLE",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "hunter2",
        "ghp_0123456789abcdefghijABCDEFGHIJ456789",
    ];
    let [key, secret, password, token] = secrets;
    let text = format!(
        "Error: bad credentials {key}:{secret}, password={password} \"token\": \"{token}\"\n\n\
         https://user:{password}@example.com/?X-Amz-Signature={token} Authorization: Bearer {token}"
    );
    for message in [format!("connect failed: {text}"), wrap("connect failed: ", &text)] {
        let short = classify(&message).message;
        for secret in secrets {
            assert!(!short.contains(secret), "{secret}: {short}");
        }
        assert!(short.contains("<redacted>"), "{short}");
    }
}

#[test]
fn messages_without_text_have_a_reason_of_their_own() {
    let cases = [
        ("", "NoMessage", "there is no message"),
        (" \n", "NoMessage", "there is no message"),
        ("create failed: ", "NoMessage", "there is no message"),
        (
            "create failed: x: Terraform encountered an error. Summary: . To see the full error run: echo \"H4sIAAAAAAAA/wAAAP//AQAA//8AAAAAAAAAAA==\" | base64 -d | gunzip",
            "ProcessKilled",
            "the process ended without a message",
        ),
        (
            "create failed: x: Terraform encountered an error. Summary: . To see the full error run: echo \"H4sIAAAA\" | base64 -d | gunzip",
            "MessageUnreadable",
            "the message cannot be read",
        ),
    ];
    for (message, reason, short) in cases {
        let failure = classify(message);
        assert_eq!((failure.reason.as_str(), failure.message.as_str()), (reason, short), "{message}");
    }
    // Of an unreadable log the summary is left.
    let message = "create failed: x: Terraform encountered an error. Summary: Unsupported argument. To see the full error run: echo \"H4sIAAAA\" | base64 -d | gunzip";
    assert_eq!(classify(message).reason.as_str(), "ModuleInvalid");
}

#[test]
fn an_error_that_only_announces_others_counts_for_nothing() {
    for tool in ["Terraform", "OpenTofu"] {
        let text = format!(
            "Error: {tool} encountered problems during initialisation, including problems\nwith the configuration\n\n\
             Error: Throttling: Rate exceeded\n"
        );
        let failure = classify(&text);
        assert_eq!((failure.reason.as_str(), failure.message.as_str()), ("Throttled", "Throttling: Rate exceeded"));
    }
}

#[test]
fn what_introduces_a_list_counts_where_its_items_say_nothing() {
    let list = |lead: &str, items: &str| {
        let failure = classify(&format!("Error: {lead}: 2 errors occurred:\n{items}"));
        (failure.reason.as_str(), failure.message)
    };
    let lead = "creating EC2 VPC: VpcLimitExceeded";
    let expected = ("VpcQuotaExceeded", format!("{lead}: 2 errors occurred:"));
    assert_eq!(list(lead, "\t* first\n\t* second\n"), expected);
    let expected = ("AccessDenied", format!("{lead}: 2 errors occurred: AccessDenied: no"));
    assert_eq!(list(lead, "\t* first\n\t* AccessDenied: no\n"), expected);
}

#[test]
fn a_cut_log_does_not_hide_what_the_summary_says() {
    let stderr = format!("Error: creating VPC: VpcLimitExceeded: no\n\n{}", "filler of many words ".repeat(200));
    let message = wrap("create failed: ", &stderr);
    for cut in (100..message.len()).step_by(50) {
        assert_eq!(classify(&message[..cut]).reason.as_str(), "VpcQuotaExceeded", "{cut}");
    }
}

#[test]
fn a_megabyte_is_looked_at_and_more_loses_its_middle() {
    let filler = "word ".repeat(MAX_INPUT / 5 - 20);
    assert_eq!(classify(&format!("{filler} VpcLimitExceeded")).reason.as_str(), "VpcQuotaExceeded");
    let end = format!("{}VpcLimitExceeded", "word ".repeat(MAX_INPUT));
    assert_eq!(classify(&end).reason.as_str(), "VpcQuotaExceeded");
    let middle = format!("{filler} VpcLimitExceeded {filler}");
    assert_eq!(classify(&middle).reason.as_str(), "Unrecognised");
}

#[test]
fn an_expired_session_depends_on_the_stage() {
    let reason = |stage: &str| {
        classify(&format!("{stage} failed: ExpiredToken: The security token included in the request is expired")).reason
    };
    assert_eq!(["connect", "observe"].map(reason), [Reason::find("CredentialsExpired").unwrap(); 2]);
    assert_eq!(["create", "update", "delete"].map(reason), [Reason::find("SessionExpired").unwrap(); 3]);
}
