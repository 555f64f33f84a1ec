//! The rules: which words of a message mean which reason. Data only, one place per reason.
//!
//! Each file is one step of the decision order; within a strength the earlier rule wins. To add
//! knowledge, add an API code or a phrase to the rule it belongs to, or a rule; nothing else
//! changes. Codes and phrases match whole words, without regard to case (old releases of the
//! provider print everything in lower case) and to line breaks. A phrase may have a gap, ` .. `,
//! for up to [`GAP`](super::scan::GAP) bytes of anything.
//!
//! Sources of the codes: the error references of EC2, EKS, IAM, STS, Elastic Load Balancing, Auto
//! Scaling, KMS, S3, DynamoDB, CloudFormation, Organizations and Service Quotas; Kubernetes'
//! `metav1.StatusReason`. Sources of the phrases: the messages of those APIs, of terraform and
//! OpenTofu, of their AWS, Kubernetes and Helm providers, of crossplane-runtime and
//! provider-terraform, of git, and of Go's net, net/http and crypto packages.

mod families;
mod kubernetes;
mod lock;
mod module;
mod network;
mod outcome;
mod permission;
mod quota;
mod request;
mod source;
mod throttle;
mod unknown;

use super::class::Class;

pub(super) use families::{FAMILIES, may_be_of_family};
pub(super) use unknown::{KILLED, NO_MESSAGE, UNREADABLE, UNRECOGNISED};

/// How much a match is worth; the strongest match of an error decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    /// Decides for the whole message, whatever else is in it.
    Decisive,
    /// A cause in so many words, which a code only hides: an IAM problem in an "invalid parameter".
    Cause,
    /// An API code that means one thing.
    Code,
    /// A phrase that means one thing.
    Text,
    /// A code or a phrase that says little; counts where nothing better is found.
    Vague,
}

/// A reason and everything that points to it.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) reason: &'static str,
    pub(super) class: Class,
    pub(super) hint: &'static str,
    /// The reason that it is instead while infrastructure is being changed.
    pub(super) while_changing: Option<&'static str>,
    decisive: &'static [&'static str],
    causes: &'static [&'static str],
    codes: &'static [&'static str],
    summaries: &'static [&'static str],
    texts: &'static [&'static str],
    vague: &'static [&'static str],
}

impl Rule {
    const fn new(class: Class, reason: &'static str, hint: &'static str) -> Self {
        Self {
            reason,
            class,
            hint,
            while_changing: None,
            decisive: &[],
            causes: &[],
            codes: &[],
            summaries: &[],
            texts: &[],
            vague: &[],
        }
    }

    const fn while_changing(mut self, reason: &'static str) -> Self {
        self.while_changing = Some(reason);
        self
    }

    const fn decisive(mut self, phrases: &'static [&'static str]) -> Self {
        self.decisive = phrases;
        self
    }

    const fn causes(mut self, phrases: &'static [&'static str]) -> Self {
        self.causes = phrases;
        self
    }

    const fn codes(mut self, codes: &'static [&'static str]) -> Self {
        self.codes = codes;
        self
    }

    /// Summaries of terraform: a cause where an error begins with them, else a text.
    const fn summaries(mut self, phrases: &'static [&'static str]) -> Self {
        self.summaries = phrases;
        self
    }

    const fn texts(mut self, phrases: &'static [&'static str]) -> Self {
        self.texts = phrases;
        self
    }

    const fn vague(mut self, phrases: &'static [&'static str]) -> Self {
        self.vague = phrases;
        self
    }

    /// What points to this rule: how strong it is, and how strong where the error begins with it.
    pub(super) const fn patterns(&self) -> [(Strength, Strength, &'static [&'static str]); 6] {
        [
            (Strength::Decisive, Strength::Decisive, self.decisive),
            (Strength::Cause, Strength::Cause, self.causes),
            (Strength::Code, Strength::Code, self.codes),
            (Strength::Text, Strength::Cause, self.summaries),
            (Strength::Text, Strength::Text, self.texts),
            (Strength::Vague, Strength::Vague, self.vague),
        ]
    }
}

/// The decision order: first what is no error of an API at all, then the classes, the specific before
/// the general.
const GROUPS: [&[Rule]; 11] = [
    outcome::RULES,
    quota::RULES,
    throttle::RULES,
    permission::RULES,
    network::RULES,
    lock::RULES,
    source::RULES,
    kubernetes::RULES,
    request::RULES,
    module::RULES,
    unknown::RULES,
];

/// How many rules there are.
pub(super) const COUNT: usize = {
    let (mut count, mut group) = (0, 0);
    while group < GROUPS.len() {
        count += GROUPS[group].len();
        group += 1;
    }
    count
};

/// All rules in decision order.
pub(super) static RULES: [&Rule; COUNT] = {
    let mut rules = [&GROUPS[0][0]; COUNT];
    let (mut count, mut group) = (0, 0);
    while group < GROUPS.len() {
        let mut rule = 0;
        while rule < GROUPS[group].len() {
            rules[count] = &GROUPS[group][rule];
            count += 1;
            rule += 1;
        }
        group += 1;
    }
    rules
};

/// The place of the rule for `reason`; a compile error if there is none.
pub(super) const fn position(reason: &str) -> u16 {
    let mut count = 0;
    let mut group = 0;
    while group < GROUPS.len() {
        let mut rule = 0;
        while rule < GROUPS[group].len() {
            if equal(GROUPS[group][rule].reason, reason) {
                return count;
            }
            count += 1;
            rule += 1;
        }
        group += 1;
    }
    // Only reached while compiling: every caller is a constant.
    u16::MAX
}

const fn equal(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    if left.len() != right.len() {
        return false;
    }
    let mut at = 0;
    while at < left.len() {
        if left[at] != right[at] {
            return false;
        }
        at += 1;
    }
    true
}
