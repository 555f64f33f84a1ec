//! Values of flags: from their texts, with errors that say how to write them.

use std::{
    net::{IpAddr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use capt_reconcile::{
    object::{Kind, ObjectKey},
    pass::Features,
};
use capt_status::Span;
use tracing_subscriber::EnvFilter;

/// Where to listen; absent for nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address(pub Option<SocketAddr>);

/// An object as a person names it: the kind as kubectl takes it, perhaps a namespace, a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Both kinds of Workspace have one name.
    kinds: Vec<Kind>,
    namespace: Option<String>,
    name: String,
}

/// Short names, as in the CRDs.
const SHORT: [(&str, Kind); 5] = [
    ("cl", Kind::Cluster),
    ("captcl", Kind::CaptCluster),
    ("captcp", Kind::CaptControlPlane),
    ("wt", Kind::Template),
    ("wtapply", Kind::Apply),
];

impl Named {
    /// From `KIND/NAME` or `KIND/NAMESPACE/NAME`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (kind, namespace, name) = parts(text)?;
        let kind = kind.to_ascii_lowercase();
        let short = SHORT.into_iter().find(|(short, _)| *short == kind).map(|(_, kind)| kind);
        let is_it =
            |known: &Kind| short == Some(*known) || known.name().eq_ignore_ascii_case(&kind) || known.plural() == kind;
        let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(is_it).collect();
        if kinds.is_empty() {
            return Err(no_kind(&kind));
        }
        Ok(Self { kinds, namespace: namespace.map(str::to_owned), name: name.to_owned() })
    }

    /// The only one of `keys` that it can mean; where it names no namespace, one in `preferred` goes before others.
    /// The error is a sentence.
    pub fn find<'a>(
        &self,
        keys: impl Iterator<Item = &'a ObjectKey>,
        preferred: Option<&str>,
    ) -> Result<ObjectKey, String> {
        let mut found: Vec<&ObjectKey> = keys
            .filter(|key| self.kinds.contains(&key.kind) && key.name == self.name)
            .filter(|key| self.namespace.is_none() || key.namespace == self.namespace)
            .collect();
        found.sort();
        found.dedup();
        if found.len() > 1 && preferred.is_some() {
            let near: Vec<&ObjectKey> =
                found.iter().copied().filter(|key| key.namespace.as_deref() == preferred).collect();
            if near.len() == 1 {
                found = near;
            }
        }
        match found[..] {
            [key] => Ok(key.clone()),
            [] => Err(format!("there is no {self}")),
            [..] => {
                let all: Vec<String> = found.iter().map(ToString::to_string).collect();
                Err(format!("{self} is one of {}: name its namespace", all.join(", ")))
            }
        }
    }
}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = self.kinds.first().map_or("", |kind| kind.name());
        match &self.namespace {
            Some(namespace) => write!(f, "{kind}/{namespace}/{}", self.name),
            None => write!(f, "{kind}/{}", self.name),
        }
    }
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let span: Span = text.parse().map_err(|error: capt_status::time::ParseTimeError| error.to_string())?;
    match u64::try_from(span.as_seconds()) {
        Ok(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds)),
        Ok(_) | Err(_) => Err("it must be at least 1s".to_owned()),
    }
}

/// A length of at least a minute, in whole minutes, as `spec.timeouts` has them.
pub(super) fn minutes(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error: capt_status::time::ParseTimeError| error.to_string())?;
    if span.as_seconds() >= 60 && span.as_seconds() % 60 == 0 {
        Ok(span)
    } else {
        Err("it must be whole minutes, at least 1m".to_owned())
    }
}

/// `progress,recovery`, or `none`.
pub(super) fn features(text: &str) -> Result<Features, String> {
    let mut features = Features { progress: false, dependencies: false, recovery: false };
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty() && text != "none") {
        match name {
            "progress" => features.progress = true,
            "dependencies" => features.dependencies = true,
            "recovery" => features.recovery = true,
            _ => {
                return Err(format!(
                    "there is no feature `{name}`: name some of progress, dependencies, recovery, or none"
                ));
            }
        }
    }
    Ok(features)
}

/// `[host]:port`; without a host every address of this machine.
pub(super) fn address(text: &str) -> Result<Address, String> {
    if text == "off" || text == "0" {
        return Ok(Address(None));
    }
    let parsed = match text.strip_prefix(':') {
        Some(port) => port.parse().ok().map(|port| SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port)),
        None => text.parse().ok(),
    };
    parsed.map(|address| Address(Some(address))).ok_or_else(|| "write it as IP:PORT, :PORT or off".to_owned())
}

pub(super) fn log_level(text: &str) -> Result<String, String> {
    EnvFilter::try_new(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Kind, namespace if there is one, and name of `KIND/NAME` or `KIND/NAMESPACE/NAME`.
fn parts(text: &str) -> Result<(&str, Option<&str>, &str), String> {
    let parts: Vec<&str> = text.split('/').collect();
    let (kind, namespace, name) = match parts[..] {
        [kind, name] => (kind, None, name),
        [kind, namespace, name] => (kind, Some(namespace), name),
        _ => return Err("write it as KIND/NAMESPACE/NAME or KIND/NAME".to_owned()),
    };
    if name.is_empty() || namespace == Some("") {
        return Err("namespace and name must not be empty".to_owned());
    }
    Ok((kind, namespace, name))
}

fn no_kind(kind: &str) -> String {
    let mut kinds: Vec<&str> = Kind::ALL.into_iter().map(Kind::name).collect();
    kinds.dedup();
    format!("a pass reads no `{kind}`; it reads {}", kinds.join(", "))
}

pub(super) fn object(text: &str) -> Result<ObjectKey, String> {
    let (kind, namespace, name) = parts(text)?;
    // Both Workspaces have one name; whether a namespace is given tells them apart.
    let found = Kind::ALL.into_iter().find(|known| {
        known.name().eq_ignore_ascii_case(kind)
            && match known {
                Kind::Workspace(api) => api.is_namespaced() == namespace.is_some(),
                Kind::Cluster
                | Kind::CaptCluster
                | Kind::CaptControlPlane
                | Kind::Template
                | Kind::Apply
                | Kind::Secret => true,
            }
    });
    let kind = found.ok_or_else(|| no_kind(kind))?;
    Ok(ObjectKey::new(kind, namespace.unwrap_or("default"), name))
}

#[cfg(test)]
mod tests {
    use capt_api::foreign::WorkspaceApi;
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command, LogFormat, WorkspaceApiChoice};

    #[test]
    fn objects_are_named_by_kind_namespace_and_name() {
        let key = |kind, namespace, name| Ok(ObjectKey::new(kind, namespace, name));
        assert_eq!(object("secret/ns/s"), key(Kind::Secret, "ns", "s"));
        assert_eq!(object("CAPTCluster/c"), key(Kind::CaptCluster, "default", "c"));
        assert_eq!(object("Workspace/w"), key(Kind::Workspace(WorkspaceApi::Cluster), "", "w"));
        assert_eq!(object("Workspace/ns/w"), key(Kind::Workspace(WorkspaceApi::Namespaced), "ns", "w"));
        assert!(object("Pod/ns/p").unwrap_err().contains("WorkspaceTemplateApply"));
        assert!(object("p").is_err() && object("Secret//s").is_err());
    }

    #[test]
    fn features_are_a_list() {
        let all = Features::default();
        assert_eq!(features("recovery, dependencies,progress"), Ok(all));
        assert_eq!(features("dependencies"), Ok(Features { progress: false, recovery: false, ..all }));
        let none = Features { progress: false, dependencies: false, recovery: false };
        assert_eq!((features("none"), features("")), (Ok(none), Ok(none)));
        assert!(features("progress,telepathy").unwrap_err().contains("telepathy"));
    }

    #[test]
    fn a_timeout_is_at_least_a_second() {
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert!(duration("0s").is_err() && duration("-5s").is_err() && duration("soon").is_err());
    }

    #[test]
    fn an_address_is_a_port_or_an_ip_with_a_port_or_off() {
        let text = |text| address(text).map(|Address(address)| address.map(|address| address.to_string()));
        assert_eq!(text(":9440"), Ok(Some("[::]:9440".to_owned())));
        assert_eq!(text("127.0.0.1:0"), Ok(Some("127.0.0.1:0".to_owned())));
        assert_eq!((text("off"), text("0")), (Ok(None), Ok(None)));
        assert!(text("9440").is_err() && text("localhost:1").is_err() && text(":x").is_err());
    }

    #[test]
    fn run_has_defaults() {
        let Command::Run(args) = Cli::try_parse_from(["capt-operator", "run"]).unwrap().command else {
            panic!("not run")
        };
        assert_eq!((args.concurrency.get(), args.write_timeout), (8, Duration::from_secs(10)));
        assert_eq!((args.workspace_api, args.log_format), (WorkspaceApiChoice::Auto, LogFormat::Text));
    }

    #[test]
    fn an_object_is_found_by_what_a_person_types() {
        let keys = [
            ObjectKey::new(Kind::Apply, "a", "x"),
            ObjectKey::new(Kind::Apply, "b", "x"),
            ObjectKey::new(Kind::Workspace(WorkspaceApi::Cluster), "", "x"),
            ObjectKey::new(Kind::CaptControlPlane, "a", "x"),
        ];
        let find =
            |text: &str, preferred| Named::parse(text).unwrap().find(keys.iter(), preferred).map(|key| key.to_string());
        assert_eq!(find("workspaces/x", None).as_deref(), Ok("Workspace/x"));
        assert_eq!(find("captcp/x", None).as_deref(), Ok("CAPTControlPlane/a/x"));
        assert_eq!(find("wtapply/b/x", None).as_deref(), Ok("WorkspaceTemplateApply/b/x"));
        assert_eq!(find("wtapply/x", Some("a")).as_deref(), Ok("WorkspaceTemplateApply/a/x"));
        let both = find("wtapply/x", None).unwrap_err();
        assert!(both.contains("WorkspaceTemplateApply/a/x, WorkspaceTemplateApply/b/x: name its namespace"), "{both}");
        assert_eq!(find("secret/x", None).unwrap_err(), "there is no Secret/x");
        assert!(Named::parse("pod/x").unwrap_err().contains("CAPTControlPlane") && Named::parse("x").is_err());
    }
}
