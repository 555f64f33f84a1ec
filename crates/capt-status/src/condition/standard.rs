//! Types and reasons that tools and other controllers know by name.
//!
//! Checked at compile time and free at run time; names of your own are made the same way, with
//! [`condition_type!`](crate::condition_type) and [`reason!`](crate::reason).

/// Condition types.
pub mod types {
    use crate::condition::ConditionType;

    macro_rules! types {
        ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
            $($(#[$doc])* pub const $name: ConditionType = crate::condition_type!($text);)*
        };
    }

    types! {
        /// The object serves now.
        AVAILABLE = "Available";
        /// The object is what its spec asks for.
        READY = "Ready";
        /// Serving without a known fault.
        HEALTHY = "Healthy";
        /// Work is in flight (kstatus: InProgress).
        RECONCILING = "Reconciling";
        /// No progress without help from outside (kstatus: Failed).
        STALLED = "Stalled";
        /// The controller leaves the object alone.
        PAUSED = "Paused";
        /// The object is being deleted.
        DELETING = "Deleting";
        /// An update is on its way to what serves.
        ROLLING_OUT = "RollingOut";
    }
}

/// Reasons.
pub mod reasons {
    use crate::condition::Reason;

    macro_rules! reasons {
        ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
            $($(#[$doc])* pub const $name: Reason = crate::reason!($text);)*
        };
    }

    reasons! {
        /// `Available` is True.
        AVAILABLE = "Available";
        /// `Available` is False.
        NOT_AVAILABLE = "NotAvailable";
        /// `Available` is Unknown.
        AVAILABLE_UNKNOWN = "AvailableUnknown";
        /// `Ready` is True.
        READY = "Ready";
        /// `Ready` is False.
        NOT_READY = "NotReady";
        /// `Ready` is Unknown.
        READY_UNKNOWN = "ReadyUnknown";
        /// `Healthy` is True.
        HEALTHY = "Healthy";
        /// `Reconciling` is False.
        NOT_RECONCILING = "NotReconciling";
        /// `Stalled` is False.
        NOT_STALLED = "NotStalled";
        /// `Paused` is True.
        PAUSED = "Paused";
        /// `Paused` is False.
        NOT_PAUSED = "NotPaused";
        /// `Deleting` is True.
        DELETING = "Deleting";
        /// `Deleting` is False.
        NOT_DELETING = "NotDeleting";
        /// `RollingOut` is True.
        ROLLING_OUT = "RollingOut";
        /// `RollingOut` is False.
        NOT_ROLLING_OUT = "NotRollingOut";
        /// The controller itself failed.
        INTERNAL_ERROR = "InternalError";
        /// A condition that should be there is not.
        NOT_YET_REPORTED = "NotYetReported";
        /// A condition has a status that is not one of the three.
        INVALID_CONDITION_REPORTED = "InvalidConditionReported";
        /// A condition has no reason.
        NO_REASON_REPORTED = "NoReasonReported";
    }
}
