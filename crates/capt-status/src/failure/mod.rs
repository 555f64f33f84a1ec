//! Classes of failures.

/// What kind of failure it is, and so what may be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// It may pass by itself.
    Transient,
    /// A limit of the account; it passes when somebody raises it or frees something.
    Quota,
    /// Somebody must grant something, or a grant has not arrived everywhere yet.
    Permission,
    /// The configuration must change.
    Config,
    /// Not known.
    Unknown,
}
