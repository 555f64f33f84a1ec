//! What tests of this module share: messages as provider-terraform makes them.

use alloc::{format, string::String, vec::Vec};

use base64::{Engine, engine::general_purpose::STANDARD};
use miniz_oxide::deflate::compress_to_vec;

/// A gzip member; its checksum is left zero, since nothing compares it.
pub(crate) fn gzip(text: &[u8]) -> Vec<u8> {
    let mut member = Vec::from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
    member.extend(compress_to_vec(text, 6));
    member.extend([0; 8]);
    member
}

/// The log as the provider encodes it.
pub(crate) fn encode(stderr: &str) -> String {
    STANDARD.encode(gzip(stderr.as_bytes()))
}

/// A message of the provider since v0.8 for a terraform that ended with `stderr`.
pub(crate) fn wrap(prefix: &str, stderr: &str) -> String {
    let summary = stderr.split_once("Error: ").and_then(|(_, rest)| rest.split_once('\n')).map_or("", |(line, _)| line);
    let encoded = encode(stderr);
    format!(
        "{prefix}Terraform encountered an error. Summary: {summary}. To see the full error run: \
         echo \"{encoded}\" | base64 -d | gunzip"
    )
}

/// A message of the provider before v0.8 for the same: the summary in lower case.
pub(crate) fn wrap_old(prefix: &str, stderr: &str) -> String {
    let first = stderr.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let summary =
        stderr.split_once("Error: ").and_then(|(_, rest)| rest.split_once('\n')).map_or(first, |(line, _)| line);
    format!("{prefix}{}", summary.to_lowercase())
}
