//! The binary: hands the process over to the library.

use std::{io, process::ExitCode};

use capt_operator::Io;

fn main() -> ExitCode {
    let mut io = Io { stdin: &mut io::stdin(), stdout: &mut io::stdout(), stderr: &mut io::stderr() };
    ExitCode::from(capt_operator::main(std::env::args_os(), &mut io))
}
