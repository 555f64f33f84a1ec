//! A wall clock that is wrong, for one process: a small library that is loaded before the C library.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The library, and the file that says how wrong the clock is.
pub(super) struct WrongClock {
    library: PathBuf,
    offset: PathBuf,
}

impl WrongClock {
    /// Builds the library in `directory`, for a process called `name`; it needs a C compiler, as the crates do.
    pub(super) fn new(directory: &Path, name: &str) -> Self {
        let library = directory.join("clock.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/operator/disasters/clock.c");
        let built =
            Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).status().unwrap();
        assert!(built.success(), "no C compiler?");
        let clock = Self { library, offset: directory.join(format!("clock-{name}")) };
        clock.set(0);
        clock
    }

    /// How wrong it is from now on, in seconds.
    pub(super) fn set(&self, seconds: i64) {
        // Whole or not at all: it is read all the time.
        let new = self.offset.with_extension("new");
        fs::write(&new, seconds.to_string()).unwrap();
        fs::rename(new, &self.offset).unwrap();
    }

    /// What the process needs in its environment.
    pub(super) fn environment(&self) -> [(&'static str, &Path); 2] {
        [("LD_PRELOAD", &self.library), ("CLOCK_OFFSET", &self.offset)]
    }
}

#[test]
fn the_clock_of_a_process_goes_as_it_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let clock = WrongClock::new(directory.path(), "date");
    let told = |seconds: i64| {
        clock.set(seconds);
        let output = Command::new("date").arg("+%s").envs(clock.environment()).output().unwrap();
        let told: i64 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
        told - jiff::Timestamp::now().as_second()
    };
    for seconds in [0, -600, 60] {
        let is = told(seconds);
        assert!((seconds - 5..=seconds).contains(&is), "{is} where {seconds} was told");
    }
}
