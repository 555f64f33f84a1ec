//! The tests of one binary share a stack.

#![allow(clippy::expect_used, reason = "helpers of tests")]

use std::path::PathBuf;
use std::sync::Mutex;

use capt_stack::{Tier, shared};

static SEEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

async fn use_it(namespace: &str) {
    let stack = shared(Tier::ApiServer).await.expect("a shared stack");
    let yaml = format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}");
    stack.apply(&yaml).await.expect("a working API server in this test's own runtime");
    let mut seen = SEEN.lock().expect("the list");
    seen.push(stack.directory().to_owned());
    assert!(seen.iter().all(|directory| *directory == seen[0]), "{seen:?}");
}

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn one_test_uses_the_shared_stack() {
    use_it("one").await;
}

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn another_test_uses_the_same_one() {
    use_it("another").await;
}
