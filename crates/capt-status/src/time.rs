//! Moments and spans in whole seconds, as `metav1.Time` and `metav1.Duration` write them.
//!
//! Every time in this workspace goes through these types, so that a value read back from the API
//! server equals the value that was written. Nothing here reads a clock.

use alloc::string::{String, ToString};
use core::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// Why a text is not a [`Time`] or a [`Span`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseTimeError {
    /// Not an RFC 3339 timestamp.
    #[error("`{0}` is not a time: write it as 2026-01-31T12:00:00Z")]
    Time(String),
    /// Not a Go duration.
    #[error("`{0}` is not a duration: write it as 90s, 10m or 1h30m")]
    Span(String),
}

/// A moment in whole seconds since the Unix epoch, `2026-01-31T12:00:00Z` on the wire.
///
/// What is read with a fraction of a second or in another time zone is printed without them.
///
/// ```
/// use capt_status::{Span, Time};
///
/// let start: Time = "2026-01-31T12:00:00Z".parse()?;
/// assert_eq!(start.plus(Span::from_minutes(90)).to_string(), "2026-01-31T13:30:00Z");
/// assert_eq!(start.since(start.plus(Span::from_minutes(1))), Span::ZERO);
/// # Ok::<(), capt_status::time::ParseTimeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(i64);

impl Time {
    /// The moment `seconds` after the Unix epoch.
    pub const fn from_unix(seconds: i64) -> Self {
        Self(seconds)
    }

    /// Seconds since the Unix epoch.
    pub const fn as_unix(self) -> i64 {
        self.0
    }

    /// The moment `span` later; saturates.
    #[must_use]
    pub const fn plus(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// How long it is since `earlier`; zero if the clock went back.
    pub const fn since(self, earlier: Self) -> Span {
        let seconds = self.0.saturating_sub(earlier.0);
        Span(if seconds < 0 { 0 } else { seconds })
    }
}

impl From<jiff::Timestamp> for Time {
    fn from(timestamp: jiff::Timestamp) -> Self {
        Self(timestamp.as_second())
    }
}

impl From<Time> for jiff::Timestamp {
    /// The same moment; outside jiff's range (years -9999 to 9999) its nearest end.
    fn from(time: Time) -> Self {
        Self::from_second(time.0).unwrap_or(if time.0 < 0 { Self::MIN } else { Self::MAX })
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0}", jiff::Timestamp::from(*self))
    }
}

impl FromStr for Time {
    type Err = ParseTimeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<jiff::Timestamp>().map(Self::from).map_err(|_| ParseTimeError::Time(text.to_string()))
    }
}

/// A non-negative span in whole seconds, `1h30m0s` on the wire (Go's `metav1.Duration`).
///
/// ```
/// use capt_status::Span;
///
/// let span: Span = "90m".parse()?;
/// assert_eq!((span.as_seconds(), span.to_string().as_str()), (5400, "1h30m0s"));
/// # Ok::<(), capt_status::time::ParseTimeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(i64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// `seconds` seconds; a negative number counts as zero.
    pub const fn from_seconds(seconds: i64) -> Self {
        Self(if seconds < 0 { 0 } else { seconds })
    }

    /// `minutes` minutes; a negative number counts as zero.
    pub const fn from_minutes(minutes: i64) -> Self {
        Self::from_seconds(minutes.saturating_mul(60))
    }

    /// Both one after the other; saturates.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// `factor` times as long; saturates.
    #[must_use]
    pub const fn times(self, factor: u32) -> Self {
        // Lossless: `From` is not const.
        Self(self.0.saturating_mul(factor as i64))
    }

    /// Whole seconds, never negative.
    pub const fn as_seconds(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Span {
    /// As Go prints a duration: `0s`, `45s`, `4m0s`, `1h0m0s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hours, minutes, seconds) = (self.0 / 3600, self.0 / 60 % 60, self.0 % 60);
        match (hours, minutes) {
            (0, 0) => write!(f, "{seconds}s"),
            (0, _) => write!(f, "{minutes}m{seconds}s"),
            (_, _) => write!(f, "{hours}h{minutes}m{seconds}s"),
        }
    }
}

impl FromStr for Span {
    type Err = ParseTimeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseTimeError::Span(text.to_string());
        if text == "0" {
            return Ok(Self::ZERO);
        }
        let duration: jiff::SignedDuration = text.parse().map_err(|_| error())?;
        if duration.is_negative() {
            return Err(error());
        }
        Ok(Self(duration.as_secs()))
    }
}

macro_rules! serde_as_text {
    ($type:ty) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(D::Error::custom)
            }
        }
    };
}

serde_as_text!(Time);
serde_as_text!(Span);

#[cfg(feature = "schemars")]
mod schema {
    use alloc::borrow::Cow;

    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

    use super::{Span, Time};

    impl JsonSchema for Time {
        fn schema_name() -> Cow<'static, str> {
            "Time".into()
        }

        fn inline_schema() -> bool {
            true
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({"type": "string", "format": "date-time"})
        }
    }

    impl JsonSchema for Span {
        fn schema_name() -> Cow<'static, str> {
            "Span".into()
        }

        fn inline_schema() -> bool {
            true
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            // Whole hours, minutes and seconds in this order: what `FromStr` reads without a loss.
            json_schema!({
                "type": "string",
                "minLength": 1,
                "maxLength": 64,
                "pattern": "^(0|([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?)$",
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spans_read_and_print_as_go_does() {
        for (text, seconds, printed) in [
            ("0s", 0, "0s"),
            ("0", 0, "0s"),
            ("45s", 45, "45s"),
            ("90s", 90, "1m30s"),
            ("10m", 600, "10m0s"),
            ("1h30m", 5400, "1h30m0s"),
            ("1h0m1s", 3601, "1h0m1s"),
        ] {
            let span: Span = text.parse().unwrap();
            assert_eq!((span.as_seconds(), span.to_string().as_str()), (seconds, printed), "{text}");
        }
        for text in ["", "ten minutes", "-1s", "5"] {
            assert_eq!(text.parse::<Span>(), Err(ParseTimeError::Span(text.to_string())));
        }
    }

    #[test]
    fn a_clock_that_went_back_gives_no_negative_span() {
        assert_eq!(Time::from_unix(5).since(Time::from_unix(9)), Span::ZERO);
    }

    #[test]
    fn fractions_of_a_second_are_dropped() {
        let time: Time = "2026-01-01T00:00:00.999Z".parse().unwrap();
        assert_eq!(time.to_string(), "2026-01-01T00:00:00Z");
    }

    #[test]
    fn what_jiff_cannot_hold_is_its_nearest_end() {
        let ends = [i64::MIN, i64::MAX].map(|seconds| jiff::Timestamp::from(Time::from_unix(seconds)));
        assert_eq!(ends, [jiff::Timestamp::MIN, jiff::Timestamp::MAX]);
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_to_the_same(seconds in -60_000_000_000i64..250_000_000_000) {
            let time = Time::from_unix(seconds);
            prop_assert_eq!(time.to_string().parse::<Time>().unwrap(), time);
            let json = serde_json::to_string(&time).unwrap();
            prop_assert_eq!(serde_json::from_str::<Time>(&json).unwrap(), time);
            let span = Span::from_seconds(seconds);
            prop_assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
        }

        #[test]
        fn no_time_is_too_large_and_no_text_too_odd(left: i64, right: i64, factor: u32, text in ".{0,24}") {
            let (time, span) = (Time::from_unix(left), Span::from_seconds(right));
            prop_assert!(time.plus(span) >= time);
            prop_assert!(span.plus(span) >= span && (factor == 0 || span.times(factor) >= span));
            prop_assert!(time.since(time.plus(span)) == Span::ZERO);
            // A moment that RFC 3339 cannot write is printed as the nearest one that it can.
            prop_assert!(time.to_string().parse::<Time>().is_ok());
            let _ = (text.parse::<Time>(), text.parse::<Span>());
        }
    }
}
