//! What it costs to classify a message: short, of one KiB, with an encoded log, and up to one MiB.

// The functions of a benchmark are its documentation.
#![allow(missing_docs)]

use capt_status::failure::{classify, decode};
use divan::{Bencher, black_box, counter::BytesCount};

/// An error that the rules know, in a frame of terraform.
const KNOWN: &str = "update failed: cannot apply Terraform configuration: \nError: creating EKS Cluster (demo): operation error EKS: \
    CreateCluster, https response error StatusCode: 403, RequestID: 0b1a2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d, api error \
    AccessDeniedException: User: arn:aws:sts::111122223333:assumed-role/capt-provider/1700000000000000000 is not authorized to \
    perform: eks:CreateCluster on resource: arn:aws:eks:us-west-2:111122223333:cluster/demo\n\n  with \
    module.eks.aws_eks_cluster.this[0],\n  on .terraform/modules/eks/main.tf line 17, in resource \"aws_eks_cluster\" \"this\":\n  \
    17: resource \"aws_eks_cluster\" \"this\" {\n\n";

/// Words as messages have them.
const WORDS: &str = "error waiting for the resource (demo) to become available in eu-west-1: the operation did not end, see vpc-0a1b2c3d4e5f60718 ";

/// A log of about 700 bytes as the provider encodes it.
const ENCODED: &str = include_str!("failure_log.txt");

/// `KNOWN` with words behind it, `length` bytes long.
fn message(length: usize) -> String {
    let mut text = String::from(KNOWN);
    while text.len() < length {
        text.push_str(WORDS);
    }
    text.truncate(length);
    text
}

fn main() {
    divan::main();
}

#[divan::bench(args = [1 << 10, 1 << 14, 1 << 17, 1 << 20])]
fn of_length(bencher: Bencher<'_, '_>, length: usize) {
    let message = message(length);
    bencher.counter(BytesCount::new(length)).bench(|| classify(black_box(&message)));
}

#[divan::bench(args = [1 << 10, 1 << 20])]
fn unknown_of_length(bencher: Bencher<'_, '_>, length: usize) {
    let message = WORDS.repeat(length / WORDS.len() + 1);
    let message = message.get(..length).unwrap_or_default();
    bencher.counter(BytesCount::new(length)).bench(|| classify(black_box(message)));
}

/// The words that cost most: each begins phrases with gaps.
#[divan::bench(args = [1 << 10, 1 << 20])]
fn worst_of_length(bencher: Bencher<'_, '_>, length: usize) {
    let message = "secret provider instance could not ".repeat(length / 35);
    bencher.counter(BytesCount::new(message.len())).bench(|| classify(black_box(&message)));
}

#[divan::bench]
fn old_form(bencher: Bencher<'_, '_>) {
    bencher.bench(|| {
        classify(black_box("observe failed: cannot diff (i.e. plan) Terraform configuration: unsupported argument"))
    });
}

#[divan::bench]
fn with_log(bencher: Bencher<'_, '_>) {
    bencher.bench(|| classify(black_box(ENCODED)));
}

#[divan::bench]
fn only_the_text_of_a_log(bencher: Bencher<'_, '_>) {
    bencher.bench(|| decode::full_text(black_box(ENCODED)));
}
