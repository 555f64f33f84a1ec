//! Where the programs and manifests of the stack are: the first thing a start needs to know.
//!
//! `build.sh` alone knows the cache directory and the environment variables that override it; this
//! module asks it and must not repeat its rules. It never builds and never skips: what is missing is
//! an error that names the recipe.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Tier;

/// Why the parts of the stack could not be located.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `build.sh` could not be started.
    #[error("cannot run {script}: {source}; it needs bash and this crate's source directory")]
    Script {
        /// The script that was to be run.
        script: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// `build.sh` refused, for instance since a variable names a missing file.
    #[error("the parts of the real stack cannot be located: {0}")]
    Refused(String),
    /// A part that this tier needs was not built yet.
    #[error("the real stack lacks {parts}: run `just {recipe}` once (it looked in {cache})")]
    Missing {
        /// The missing parts, by name.
        parts: String,
        /// The recipe that builds them.
        recipe: &'static str,
        /// The cache directory.
        cache: String,
    },
}

/// One part of the stack that is located before the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Etcd,
    ApiServer,
    ControllerManager,
    CapiCore,
    ProviderTerraform,
    Terraform,
    Manifests,
    /// For people; no tier needs it.
    Kubectl,
}

impl Part {
    /// The name that `build.sh --paths` prints.
    const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::CapiCore => "capi-core",
            Self::ProviderTerraform => "provider-terraform",
            Self::Terraform => "terraform",
            Self::Manifests => "manifests",
            Self::Kubectl => "kubectl",
        }
    }

    /// What a tier starts; each tier adds to the one before.
    const fn of(tier: Tier) -> &'static [Self] {
        match tier {
            Tier::ApiServer => &[Self::Etcd, Self::ApiServer],
            Tier::Core => &[Self::Etcd, Self::ApiServer, Self::ControllerManager, Self::CapiCore, Self::Manifests],
            Tier::Provider => &[
                Self::Etcd,
                Self::ApiServer,
                Self::ControllerManager,
                Self::CapiCore,
                Self::Manifests,
                Self::ProviderTerraform,
                Self::Terraform,
            ],
        }
    }
}

/// A program that no tier starts but tests of the install files run: `helm` or `clusterctl`.
pub(crate) fn tool(name: &str) -> Result<PathBuf, Error> {
    let paths = paths()?;
    let listed: BTreeMap<&str, &str> = paths.lines().filter_map(|line| line.split_once('\t')).collect();
    match listed.get(name) {
        Some(path) if !path.is_empty() => Ok(PathBuf::from(path)),
        Some(_) | None => Err(Error::Missing {
            parts: name.to_owned(),
            recipe: "install-tools",
            cache: listed.get("cache").map_or_else(String::new, ToString::to_string),
        }),
    }
}

/// `name<TAB>path` of each part, as `build.sh` knows them.
fn paths() -> Result<String, Error> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("build.sh");
    let output = Command::new("bash")
        .arg(&script)
        .arg("--paths")
        .output()
        .map_err(|source| Error::Script { script: script.display().to_string(), source })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Error::Refused(said.trim().to_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The located parts of one tier, all of them present.
#[derive(Debug)]
pub(crate) struct Assets(BTreeMap<Part, PathBuf>);

impl Assets {
    /// Asks `build.sh` for the parts that `tier` needs.
    pub(crate) fn find(tier: Tier) -> Result<Self, Error> {
        Self::parse(tier, &paths()?)
    }

    /// Reads `name<TAB>path` lines; an empty path means that the part is missing.
    fn parse(tier: Tier, lines: &str) -> Result<Self, Error> {
        let listed: BTreeMap<&str, &str> =
            lines.lines().filter_map(|line| line.split_once('\t')).filter(|(_, path)| !path.is_empty()).collect();
        let mut found = BTreeMap::new();
        let mut missing = Vec::new();
        for part in Part::of(tier) {
            match listed.get(part.name()) {
                Some(path) => {
                    found.insert(*part, PathBuf::from(path));
                }
                None => missing.push(*part),
            }
        }
        if let Some(path) = listed.get(Part::Kubectl.name()) {
            found.insert(Part::Kubectl, PathBuf::from(path));
        }
        if missing.is_empty() {
            return Ok(Self(found));
        }
        // OpenTofu has a recipe of its own, which helps only when nothing else is missing.
        let recipe = if missing == [Part::Terraform] { "stack-tofu" } else { "stack" };
        Err(Error::Missing {
            parts: missing.iter().map(|part| part.name()).collect::<Vec<_>>().join(", "),
            recipe,
            cache: listed.get("cache").map_or_else(String::new, ToString::to_string),
        })
    }

    /// Where `part` is.
    pub(crate) fn path(&self, part: Part) -> Result<&Path, Error> {
        self.0.get(&part).map(PathBuf::as_path).ok_or_else(|| Error::Missing {
            parts: part.name().to_owned(),
            recipe: "stack",
            cache: "no other place".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = "etcd\t/b/etcd\nkube-apiserver\t/b/kas\nkube-controller-manager\t/b/kcm\n\
        kubectl\t\ncapi-core\t/b/capi\nprovider-terraform\t/b/ptf\nterraform\t\nmanifests\t/m\ncache\t/c\n";

    #[test]
    fn a_tier_needs_only_its_own_parts() {
        let assets = Assets::parse(Tier::Core, ALL).unwrap();
        assert_eq!(assets.path(Part::CapiCore).unwrap(), Path::new("/b/capi"));
    }

    #[test]
    fn a_missing_terraform_names_its_own_recipe() {
        let error = Assets::parse(Tier::Provider, ALL).unwrap_err().to_string();
        assert_eq!(error, "the real stack lacks terraform: run `just stack-tofu` once (it looked in /c)");
    }

    #[test]
    fn missing_programs_name_the_recipe_and_each_part() {
        let error = Assets::parse(Tier::ApiServer, "etcd\t\nkube-apiserver\t\ncache\t/c\n").unwrap_err().to_string();
        assert_eq!(error, "the real stack lacks etcd, kube-apiserver: run `just stack` once (it looked in /c)");
    }
}
