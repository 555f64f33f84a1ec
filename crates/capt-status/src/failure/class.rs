//! Classes of failures, and the stages in which they happen.

use core::fmt;

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

impl Class {
    /// Every class.
    pub const ALL: [Self; 5] = [Self::Transient, Self::Quota, Self::Permission, Self::Config, Self::Unknown];

    /// The class as text, for example `Transient`; stable.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "Transient",
            Self::Quota => "Quota",
            Self::Permission => "Permission",
            Self::Config => "Config",
            Self::Unknown => "Unknown",
        }
    }

    /// Which of several errors in one message a person should look at first; lower is sooner.
    ///
    /// What passes by itself comes last: it is often a consequence of the others.
    pub(super) const fn precedence(self) -> u8 {
        match self {
            Self::Quota => 0,
            Self::Permission => 1,
            Self::Config => 2,
            Self::Unknown => 3,
            Self::Transient => 4,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The step of a Crossplane managed resource that failed: the word before ` failed: `.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Credentials, module download and `terraform init`.
    Connect,
    /// `terraform plan` and reading of outputs.
    Observe,
    /// The first `terraform apply`.
    Create,
    /// A later `terraform apply`.
    Update,
    /// `terraform destroy`.
    Delete,
}

impl Stage {
    /// Every stage, in the order in which they happen.
    pub const ALL: [Self; 5] = [Self::Connect, Self::Observe, Self::Create, Self::Update, Self::Delete];

    /// The stage as it stands in messages, for example `connect`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Observe => "observe",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }

    /// Whether infrastructure is being changed, so that an expired session was valid when it began.
    pub(super) const fn is_changing(self) -> bool {
        match self {
            Self::Create | Self::Update | Self::Delete => true,
            Self::Connect | Self::Observe => false,
        }
    }

    /// The stage that `message` begins with, and the rest of it.
    pub(super) fn split(message: &str) -> (Option<Self>, &str) {
        let message = message.trim_start();
        for stage in Self::ALL {
            let rest = message.strip_prefix(stage.as_str()).and_then(|rest| rest.strip_prefix(" failed:"));
            if let Some(rest) = rest {
                return (Some(stage), rest);
            }
        }
        (None, message)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn classes_and_stages_print_as_their_text() {
        for class in Class::ALL {
            assert_eq!(class.to_string(), class.as_str());
        }
        for stage in Stage::ALL {
            assert_eq!(stage.to_string(), stage.as_str());
        }
    }
}
