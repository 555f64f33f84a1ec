//! Rules for locks that somebody else holds.

use super::Rule;
use crate::failure::class::Class::Transient;

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        Transient,
        "StateLocked",
        "Wait for the other run. If Created in the lock is older than the provider's --timeout, nobody holds it: terraform force-unlock.",
    )
    .causes(&["acquiring the state lock .. resource temporarily unavailable"])
    .codes(&["ConditionalCheckFailedException", "ConditionalCheckFailed"])
    .texts(&[
        "state is already locked",
        "state blob is already locked",
        "already locked by",
        "already locked",
        "workspace is already locked",
        "workspace already locked",
        "currently locked",
        "is locked",
        "state locked",
    ])
    .vague(&[
        "acquiring the state lock",
        "locking state",
        "lock state",
        "PreconditionFailed",
        "releasing the state lock",
        "statuscode: 412",
    ]),
    Rule::new(
        Transient,
        "ReleaseLocked",
        "Wait for the other Helm operation. If none runs, one was killed: helm rollback, or delete the pending release Secret.",
    )
    .causes(&[
        "another operation (install/upgrade/rollback) is in progress",
        "another operation .. is in progress",
    ]),
];
