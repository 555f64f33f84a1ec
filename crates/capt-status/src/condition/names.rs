//! Names that the API server would refuse are refused here first: types and reasons of conditions.
//!
//! Place in the flow: wherever a verdict is made. A value of these types is valid whatever way it
//! was made, so nothing downstream checks again. Literals are checked by the compiler with
//! [`condition_type!`](crate::condition_type) and [`reason!`](crate::reason).

use alloc::{
    borrow::{Cow, ToOwned},
    string::String,
};
use core::fmt;

/// Longest condition type, in bytes (`metav1.Condition`).
pub const MAX_TYPE: usize = 316;

/// Longest reason, in bytes (`metav1.Condition`).
pub const MAX_REASON: usize = 1024;

/// Why a text is not a condition type or not a reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Not a condition type.
    #[error(
        "`{0}` is not a condition type: write it in CamelCase or as example.com/CamelCase, in at most {MAX_TYPE} bytes"
    )]
    Type(String),
    /// Not a reason.
    #[error("`{0}` is not a reason: write it in CamelCase, in 1 to {MAX_REASON} bytes")]
    Reason(String),
}

/// Type of a condition: `Ready`, or `example.com/Ready` to keep clear of the types of others.
///
/// ```
/// use capt_status::{condition::ConditionType, condition_type};
///
/// const BACKUP_DONE: ConditionType = condition_type!("BackupDone");
/// assert_eq!(BACKUP_DONE, "BackupDone");
/// assert!(ConditionType::new("example.com/BackupDone").is_ok());
/// assert!(ConditionType::new("backup done").is_err());
/// ```
///
/// A bad literal does not compile:
///
/// ```compile_fail
/// let type_ = capt_status::condition_type!("backup done");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConditionType(Cow<'static, str>);

impl ConditionType {
    /// A type from a text that is only known at run time.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Result<Self, NameError> {
        let text = text.into();
        if Self::is_valid(&text) { Ok(Self(text)) } else { Err(NameError::Type(text.into_owned())) }
    }

    /// A type from a literal; one that is not valid becomes `InvalidConditionType`.
    ///
    /// [`condition_type!`](crate::condition_type) does not let such a literal compile.
    pub const fn literal(text: &'static str) -> Self {
        Self(Cow::Borrowed(if Self::is_valid(text) { text } else { "InvalidConditionType" }))
    }

    /// Whether the API server takes `text` for a type: an optional DNS subdomain and a slash, then
    /// letters and digits with `-`, `_` and `.` between them.
    pub const fn is_valid(text: &str) -> bool {
        let bytes = text.as_bytes();
        if bytes.len() > MAX_TYPE {
            return false;
        }
        let mut slash = 0;
        while slash < bytes.len() && bytes[slash] != b'/' {
            slash += 1;
        }
        if slash == bytes.len() {
            return is_name(bytes, 0);
        }
        is_subdomain(bytes, slash) && is_name(bytes, slash + 1)
    }

    /// As on the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether `bytes[..end]` is labels of lower-case letters, digits and inner dashes, joined by dots.
const fn is_subdomain(bytes: &[u8], end: usize) -> bool {
    let mut at = 0;
    let mut before = b'.';
    while at < end {
        let byte = bytes[at];
        let edge = before == b'.' || at + 1 == end || bytes[at + 1] == b'.';
        match byte {
            b'a'..=b'z' | b'0'..=b'9' => {}
            b'-' if !edge => {}
            b'.' if before != b'.' && at + 1 < end => {}
            _ => return false,
        }
        before = byte;
        at += 1;
    }
    end > 0
}

/// Whether `bytes[start..]` is letters and digits, with `-`, `_` and `.` between them.
const fn is_name(bytes: &[u8], start: usize) -> bool {
    let mut at = start;
    while at < bytes.len() {
        let edge = at == start || at + 1 == bytes.len();
        match bytes[at] {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => {}
            b'-' | b'_' | b'.' if !edge => {}
            _ => return false,
        }
        at += 1;
    }
    start < bytes.len()
}

/// Reason of a condition: one CamelCase word for programs.
///
/// ```
/// use capt_status::{condition::Reason, reason};
///
/// assert_eq!(reason!("WaitingForDisk"), "WaitingForDisk");
/// assert!(Reason::new("waiting for disk").is_err());
/// // What another controller calls its reason need not be one.
/// assert_eq!(Reason::coerce("waiting for disk"), "waiting_for_disk");
/// assert_eq!(Reason::coerce(""), "NoReasonReported");
/// ```
///
/// A bad literal does not compile:
///
/// ```compile_fail
/// let reason = capt_status::reason!("waiting for disk");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason(Cow<'static, str>);

/// Reason of a condition whose owner gave none; the word that Cluster API uses.
const NO_REASON: &str = "NoReasonReported";

impl Reason {
    /// A reason from a text that is only known at run time.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Result<Self, NameError> {
        let text = text.into();
        if Self::is_valid(&text) { Ok(Self(text)) } else { Err(NameError::Reason(text.into_owned())) }
    }

    /// A reason from a literal; one that is not valid becomes `NoReasonReported`.
    ///
    /// [`reason!`](crate::reason) does not let such a literal compile.
    pub const fn literal(text: &'static str) -> Self {
        Self(Cow::Borrowed(if Self::is_valid(text) { text } else { NO_REASON }))
    }

    /// The valid reason nearest to `text`, for words that others chose: what is not allowed becomes
    /// `_`, what is too long is cut, and nothing becomes `NoReasonReported`.
    pub fn coerce(text: impl Into<Cow<'static, str>>) -> Self {
        let text = text.into();
        if Self::is_valid(&text) {
            return Self(text);
        }
        let mut word = String::with_capacity(text.len().min(MAX_REASON));
        for letter in text.trim().chars() {
            if word.len() == MAX_REASON {
                break;
            }
            match letter {
                'A'..='Z' | 'a'..='z' => word.push(letter),
                '0'..='9' | '_' | ',' | ':' if !word.is_empty() => word.push(letter),
                _ if !word.is_empty() => word.push('_'),
                _ => {}
            }
        }
        word.truncate(word.trim_end_matches([',', ':']).len());
        Self(if word.is_empty() { Cow::Borrowed(NO_REASON) } else { Cow::Owned(word) })
    }

    /// Whether the API server takes `text` for a reason: a letter first, then letters, digits, `_`,
    /// `,` and `:`, the last two not at the end.
    pub const fn is_valid(text: &str) -> bool {
        let bytes = text.as_bytes();
        if bytes.is_empty() || bytes.len() > MAX_REASON || !bytes[0].is_ascii_alphabetic() {
            return false;
        }
        let mut at = 1;
        while at < bytes.len() {
            match bytes[at] {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' => {}
                b',' | b':' if at + 1 < bytes.len() => {}
                _ => return false,
            }
            at += 1;
        }
        true
    }

    /// As on the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

macro_rules! text_like {
    ($type:ty) => {
        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl PartialEq<str> for $type {
            fn eq(&self, other: &str) -> bool {
                self.0 == other
            }
        }

        impl PartialEq<&str> for $type {
            fn eq(&self, other: &&str) -> bool {
                self.0 == *other
            }
        }

        impl PartialEq<String> for $type {
            fn eq(&self, other: &String) -> bool {
                self.0 == *other
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> Self {
                name.0.into_owned()
            }
        }

        impl From<&$type> for String {
            fn from(name: &$type) -> Self {
                name.0.as_ref().to_owned()
            }
        }
    };
}

text_like!(ConditionType);
text_like!(Reason);

impl From<&'static str> for ConditionType {
    /// [`ConditionType::literal`].
    fn from(text: &'static str) -> Self {
        Self::literal(text)
    }
}

impl From<&'static str> for Reason {
    /// [`Reason::coerce`].
    fn from(text: &'static str) -> Self {
        Self::coerce(text)
    }
}

impl From<String> for Reason {
    /// [`Reason::coerce`].
    fn from(text: String) -> Self {
        Self::coerce(text)
    }
}

impl From<Cow<'static, str>> for Reason {
    /// [`Reason::coerce`].
    fn from(text: Cow<'static, str>) -> Self {
        Self::coerce(text)
    }
}

/// A [`ConditionType`](crate::condition::ConditionType) from a literal, checked by the compiler.
#[macro_export]
macro_rules! condition_type {
    ($text:expr) => {
        const {
            ::core::assert!(
                $crate::condition::ConditionType::is_valid($text),
                "not a condition type: write it in CamelCase or as example.com/CamelCase"
            );
            $crate::condition::ConditionType::literal($text)
        }
    };
}

/// A [`Reason`](crate::condition::Reason) from a literal, checked by the compiler.
#[macro_export]
macro_rules! reason {
    ($text:expr) => {
        const {
            ::core::assert!($crate::condition::Reason::is_valid($text), "not a reason: write it in CamelCase");
            $crate::condition::Reason::literal($text)
        }
    };
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn types_that_the_api_server_refuses() {
        for text in [
            "", "/", "a/", "/A", "A/B", "a/b/C", ".a/B", "a./B", "a..b/C", "a-/B", "-a/B", "a.-b/C", "a-.b/C", "-A",
            "A-",
        ] {
            assert!(!ConditionType::is_valid(text), "{text}");
            assert_eq!(ConditionType::new(text), Err(NameError::Type(text.to_string())));
            assert_eq!(ConditionType::literal(text), "InvalidConditionType");
        }
        for text in ["A b", "Ä", "A\n", "_A", "A."] {
            assert!(!ConditionType::is_valid(text), "{text}");
        }
        assert!(ConditionType::is_valid(&"A".repeat(MAX_TYPE)));
        assert!(!ConditionType::is_valid(&"A".repeat(MAX_TYPE + 1)));
    }

    #[test]
    fn reasons_that_the_api_server_refuses() {
        for text in ["", "1A", "_A", "A,", "A:", "A b", "A-b", "Ä", "A\n"] {
            assert!(!Reason::is_valid(text), "{text}");
            assert_eq!(Reason::new(text), Err(NameError::Reason(text.to_string())));
        }
        for text in ["A", "a", "A1", "A_", "A:b", "A,b_"] {
            assert!(Reason::is_valid(text), "{text}");
        }
        assert!(Reason::is_valid(&"A".repeat(MAX_REASON)));
        assert!(!Reason::is_valid(&"A".repeat(MAX_REASON + 1)));
    }

    #[test]
    fn a_foreign_word_becomes_the_nearest_reason() {
        for (text, reason) in [
            ("OK", "OK"),
            ("  in use: ", "in_use"),
            ("404 Not Found", "Not_Found"),
            ("::", "NoReasonReported"),
            ("größe", "gr__e"),
        ] {
            assert_eq!(Reason::coerce(text), reason, "{text}");
        }
    }

    proptest! {
        // The patterns of metav1.Condition.
        #[test]
        fn every_type_of_the_pattern_is_taken(
            text in r"([a-z0-9]([-a-z0-9]{0,4}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,4}[a-z0-9])?){0,3}/)?(([A-Za-z0-9][-A-Za-z0-9_.]{0,6})?[A-Za-z0-9])",
        ) {
            prop_assert!(ConditionType::is_valid(&text), "{}", text);
        }

        #[test]
        fn every_reason_of_the_pattern_is_taken(text in r"[A-Za-z]([A-Za-z0-9_,:]{0,9}[A-Za-z0-9_])?") {
            prop_assert!(Reason::is_valid(&text), "{}", text);
            prop_assert_eq!(Reason::coerce(text.clone()), text);
        }

        #[test]
        fn whatever_is_coerced_is_valid(text in ".{0,40}", times in 1usize..80) {
            prop_assert!(Reason::is_valid(Reason::coerce(text.repeat(times)).as_str()));
        }
    }
}
