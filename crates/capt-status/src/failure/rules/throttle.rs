//! Rules for requests that came too fast.

use super::Rule;
use crate::failure::class::Class::Transient;

pub(super) const RULES: &[Rule] = &[Rule::new(
    Transient,
    "Throttled",
    "Wait: too many requests at once. If it stays, let fewer Workspaces run at a time, or ask for a higher request rate.",
)
// The client's own budget for retries, which is spent by throttling; no quota of the account.
.causes(&["failed to get rate limit token", "retry quota exceeded"])
.codes(&[
    "RequestLimitExceeded",
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "RequestThrottled",
    "RequestThrottledException",
    "EC2ThrottledException",
    "TooManyRequests",
    "TooManyRequestsException",
    "TooManyRequestsFault",
    "BandwidthLimitExceeded",
    "ProvisionedThroughputExceededException",
    "ProvisionedThroughputExceeded",
    "SlowDown",
    "LimitExceededException: Rate exceeded",
    "ClientRateLimiter",
    "QueryRateLimitExceeded",
    "RequestRateLimitExceeded",
])
.texts(&[
    "rate exceeded",
    "rate limit",
    "rate limited",
    "rate limiting",
    "rate limiter",
    "rate-limit",
    "rate-limited",
    "request limit exceeded",
    "throttled",
    "too many requests",
    "slow down",
    "reduce your request rate",
    "request rate is too",
    "too many concurrent requests",
    "client-side throttling",
    "statuscode: 429",
    "status code: 429",
    "status: 429",
    "response code: 429",
    "returned error: 429",
    "http 429",
    "429 too many",
    "http2: server sent goaway and closed the connection .. enhance_your_calm",
])];
