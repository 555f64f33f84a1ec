//! An error with all its causes in one line: "client error (Connect)" alone helps nobody.

use std::error::Error;

/// The message of `error`, then those of its causes that it does not repeat anyway.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Link {
        text: &'static str,
        source: Option<Box<Link>>,
    }

    #[test]
    fn every_cause_is_told_once() {
        let link = |text, source: Option<Link>| Link { text, source: source.map(Box::new) };
        let error = link("request failed: connect", Some(link("connect", Some(link("refused", None)))));
        assert_eq!(chain(&error), "request failed: connect: refused");
    }
}
