//! Timeouts as people write them into specs and flags: whole minutes, at least one.

use core::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::time::Span;

/// Why a number is not a timeout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} minutes is not a timeout: write 1 to {max}, a year", max = Minutes::MAX.get())]
pub struct NotMinutes(i64);

/// A timeout in whole minutes, from one minute to a year.
///
/// ```
/// use capt_status::{Span, deadline::Minutes};
///
/// const DISK: Minutes = Minutes::clamped(15);
/// let (spec, old_spec, flag) = (None, Some(0), Some(20));
/// let timeout = Minutes::first_of([spec, old_spec, flag], DISK);
/// assert_eq!(timeout.span(), Span::from_minutes(20));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "u32")]
pub struct Minutes(NonZeroU32);

impl Minutes {
    /// A minute.
    pub const MIN: Self = Self(NonZeroU32::MIN);

    /// A year.
    pub const MAX: Self = match NonZeroU32::new(525_600) {
        Some(minutes) => Self(minutes),
        None => Self::MIN,
    };

    /// The timeout nearest to `minutes`.
    pub const fn clamped(minutes: u32) -> Self {
        match NonZeroU32::new(minutes) {
            None => Self::MIN,
            Some(minutes) if minutes.get() > Self::MAX.get() => Self::MAX,
            Some(minutes) => Self(minutes),
        }
    }

    /// The first of `sources` that says something, in order of precedence, for example spec, older
    /// spec, flag; `default` if none does.
    ///
    /// A number below 1 says nothing: Go writes 0 for what is not set.
    pub fn first_of(sources: impl IntoIterator<Item = Option<i32>>, default: Self) -> Self {
        let said = |minutes: i32| u32::try_from(minutes).ok().filter(|minutes| *minutes > 0);
        sources.into_iter().flatten().find_map(said).map_or(default, Self::clamped)
    }

    /// How many.
    pub const fn get(self) -> u32 {
        self.0.get()
    }

    /// As a span.
    pub const fn span(self) -> Span {
        // Lossless: `From` is not const.
        Span::from_minutes(self.get() as i64)
    }
}

impl TryFrom<i64> for Minutes {
    type Error = NotMinutes;

    fn try_from(minutes: i64) -> Result<Self, Self::Error> {
        let within = u32::try_from(minutes).ok().and_then(NonZeroU32::new).map(Self);
        within.filter(|within| *within <= Self::MAX).ok_or(NotMinutes(minutes))
    }
}

impl From<Minutes> for u32 {
    fn from(minutes: Minutes) -> Self {
        minutes.get()
    }
}

#[cfg(feature = "schemars")]
mod schema {
    use alloc::borrow::Cow;

    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

    use super::Minutes;

    impl JsonSchema for Minutes {
        fn schema_name() -> Cow<'static, str> {
            "Minutes".into()
        }

        fn inline_schema() -> bool {
            true
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({"type": "integer", "format": "int32", "minimum": 1, "maximum": Minutes::MAX.get()})
        }
    }
}
