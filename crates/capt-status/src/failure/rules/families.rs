//! Families of API codes: what the beginning or the end of a code says where the code is not listed.

use super::{Strength, position};

/// Codes that begin with `prefix` and end in `suffix`.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) prefix: &'static str,
    pub(crate) suffix: &'static str,
    pub(crate) strength: Strength,
    /// Place of the rule.
    pub(crate) rule: u16,
}

/// The place of a letter in the alphabet; of other bytes, any below 26.
const fn letter(byte: u8) -> usize {
    ((byte | 0x20).wrapping_sub(b'a') % 26) as usize
}

/// A bit for each pair of letters in which a prefix begins or a suffix ends: most words of a text are of no family.
struct Pairs([u64; 11]);

impl Pairs {
    const fn bit(first: u8, second: u8) -> usize {
        letter(first) * 26 + letter(second)
    }

    const fn with(mut self, first: u8, second: u8) -> Self {
        let bit = Self::bit(first, second);
        self.0[bit / 64] |= 1 << (bit % 64);
        self
    }

    fn has(&self, first: u8, second: u8) -> bool {
        let bit = Self::bit(first, second);
        self.0.get(bit / 64).is_some_and(|bits| bits & (1 << (bit % 64)) != 0)
    }
}

static BEGINNINGS: Pairs = {
    let (mut pairs, mut at) = (Pairs([0; 11]), 0);
    while at < FAMILIES.len() {
        if let [first, second, ..] = FAMILIES[at].prefix.as_bytes() {
            pairs = pairs.with(*first, *second);
        }
        at += 1;
    }
    pairs
};

static ENDINGS: Pairs = {
    let (mut pairs, mut at) = (Pairs([0; 11]), 0);
    while at < FAMILIES.len() {
        if let [.., first, second] = FAMILIES[at].suffix.as_bytes() {
            pairs = pairs.with(*first, *second);
        }
        at += 1;
    }
    pairs
};

/// Whether a word can be of a family, by the letters in which it begins and ends.
pub(crate) fn may_be_of_family(word: &[u8]) -> bool {
    match word {
        [first, second, .., before, last] => BEGINNINGS.has(*first, *second) || ENDINGS.has(*before, *last),
        _ => false,
    }
}

const fn family(prefix: &'static str, suffix: &'static str, strength: Strength, reason: &str) -> Family {
    Family { prefix, suffix, strength, rule: position(reason) }
}

use Strength::{Code, Vague};

/// The first that fits counts. A code may end in `Exception`, `Error` or `Fault` in addition.
pub(crate) static FAMILIES: &[Family] = &[
    family("", "RequestLimitExceeded", Code, "Throttled"),
    family("", "RateExceeded", Code, "Throttled"),
    family("", "RateLimitExceeded", Code, "Throttled"),
    family("", "ThroughputExceeded", Code, "Throttled"),
    family("", "ConcurrentOperationsLimitExceeded", Code, "Throttled"),
    family("Throttling", "", Code, "Throttled"),
    family("Throttled", "", Code, "Throttled"),
    family("", "Throttled", Code, "Throttled"),
    family("", "Throttling", Code, "Throttled"),
    family("TooManyRequests", "", Code, "Throttled"),
    family("", "DeadlineExceeded", Code, "RequestTimedOut"),
    family("", "LimitExceeded", Code, "QuotaExceeded"),
    family("", "QuotaExceeded", Code, "QuotaExceeded"),
    family("", "CountExceeded", Code, "QuotaExceeded"),
    family("", "Exceeded", Vague, "QuotaExceeded"),
    family("", "LimitReached", Code, "QuotaExceeded"),
    family("TooMany", "", Code, "QuotaExceeded"),
    family("", "AccessDenied", Code, "AccessDenied"),
    family("AccessDenied", "", Code, "AccessDenied"),
    family("Unauthorized", "", Code, "AccessDenied"),
    family("", "Unauthorized", Code, "AccessDenied"),
    family("NotAuthorized", "", Code, "AccessDenied"),
    family("", "NotAuthorized", Code, "AccessDenied"),
    family("", "NotPermitted", Vague, "AccessDenied"),
    family("", "Forbidden", Code, "AccessDenied"),
    family("ExpiredToken", "", Code, "CredentialsExpired"),
    family("", "SubscriptionRequired", Code, "SubscriptionMissing"),
    family("Insufficient", "Capacity", Code, "CapacityUnavailable"),
    family("ConcurrentModification", "", Code, "OperationInProgress"),
    family("ConcurrentUpdate", "", Code, "OperationInProgress"),
    family("OptimisticLock", "", Code, "OperationInProgress"),
    family("Incorrect", "State", Vague, "OperationInProgress"),
    family("", "InProgress", Code, "OperationInProgress"),
    family("InternalService", "", Code, "ServiceUnavailable"),
    family("InternalServer", "", Code, "ServiceUnavailable"),
    family("Internal", "Failure", Code, "ServiceUnavailable"),
    family("", "Unavailable", Vague, "ServiceUnavailable"),
    family("", "Timeout", Vague, "RequestTimedOut"),
    family("", "TimedOut", Vague, "RequestTimedOut"),
    family("", "NotReady", Vague, "OperationInProgress"),
    family("", "DependencyViolation", Code, "InUse"),
    family("", "NotEmpty", Vague, "InUse"),
    family("", "DeleteConflict", Vague, "InUse"),
    family("", "AlreadyExists", Code, "AlreadyExists"),
    family("", "AlreadyOwned", Code, "AlreadyExists"),
    family("Duplicate", "", Code, "AlreadyExists"),
    family("", "Duplicate", Vague, "AlreadyExists"),
    family("", "NotFound", Vague, "ReferenceNotFound"),
    family("", "DoesNotExist", Vague, "ReferenceNotFound"),
    family("NoSuch", "", Vague, "ReferenceNotFound"),
    family("", "MalformedPolicyDocument", Code, "PolicyInvalid"),
    family("MalformedPolicy", "", Code, "PolicyInvalid"),
    family("InvalidParameter", "", Vague, "RequestInvalid"),
    family("InvalidState", "", Vague, "OperationInProgress"),
    family("Malformed", "", Vague, "RequestInvalid"),
    family("Validation", "", Vague, "RequestInvalid"),
    family("", "InUse", Vague, "InUse"),
    family("Invalid", "", Vague, "RequestInvalid"),
    family("Missing", "", Vague, "RequestInvalid"),
    family("Unsupported", "", Vague, "RequestInvalid"),
    family("", "NotSupported", Vague, "RequestInvalid"),
    family("", "Mismatch", Vague, "RequestInvalid"),
    family("", "BadRequest", Vague, "RequestInvalid"),
    family("BadRequest", "", Vague, "RequestInvalid"),
    family("", "Conflict", Vague, "OperationInProgress"),
];
