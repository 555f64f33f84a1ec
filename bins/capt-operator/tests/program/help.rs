//! What `--help` says is what people read first: each change of it is seen.

use std::{ffi::OsString, io};

use capt_operator::Io;

fn help(arguments: &[&str]) -> String {
    let mut stdout = Vec::new();
    let mut io = Io { stdin: &mut io::empty(), stdout: &mut stdout, stderr: &mut io::sink() };
    let arguments = std::iter::once("capt-operator").chain(arguments.iter().copied()).map(OsString::from);
    assert_eq!(capt_operator::main(arguments, &mut io), capt_operator::OK);
    String::from_utf8(stdout).unwrap()
}

#[test]
fn the_help_is_as_it_was() {
    insta::assert_snapshot!("help", help(&["--help"]));
    insta::assert_snapshot!("help-run", help(&["run", "--help"]));
}
