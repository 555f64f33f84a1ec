//! What a tree is drawn on: how wide it is, and whether it shows colours.

use std::{
    env,
    io::{self, IsTerminal},
};

use crate::{cli::Colour, facts::Mood};

/// Goes to the top of the screen and clears it.
pub(super) const NEXT: &str = "\u{1b}[H\u{1b}[2J";

/// What is drawn on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paper {
    pub(super) painted: bool,
    pub(super) width: usize,
}

impl Paper {
    /// As flags and environment say.
    pub(super) fn of(colour: Colour, width: Option<usize>) -> Self {
        let is_terminal = io::stdout().is_terminal();
        // https://no-color.org: present and not empty.
        let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let painted = match colour {
            Colour::Auto => is_terminal && !refused,
            Colour::Always => true,
            Colour::Never => false,
        };
        let of_terminal = || if is_terminal { columns().or_else(terminal_width) } else { None };
        Self { painted, width: width.or_else(of_terminal).unwrap_or(usize::MAX).max(20) }
    }

    /// `text` in the colour of `mood`.
    pub(super) fn paint(self, text: &str, mood: Mood) -> String {
        let colour = match mood {
            Mood::Good => "32",
            Mood::Busy => "33",
            Mood::Bad => "31",
        };
        if self.painted { format!("\u{1b}[{colour}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

fn columns() -> Option<usize> {
    env::var("COLUMNS").ok()?.parse().ok().filter(|width| *width > 0)
}

fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}
