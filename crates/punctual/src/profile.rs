//! Profiles: servers that somebody has logged in to, with the key for each. One file each, readable by its owner alone.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::tls::Trust;

/// The one that is used when none is named.
pub(crate) const DEFAULT: &str = "default";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profile {
    pub server: String,
    pub key: String,
    /// The files of TLS that belong to the server.
    #[serde(default, skip_serializing_if = "Trust::is_empty")]
    pub tls: Trust,
}

impl Profile {
    /// One that must be there.
    pub(crate) fn load(name: &str) -> Result<Self, Failure> {
        let missing = || {
            Failure::usage(format!(
                "there is no profile {name:?}: make it with punctual login URL --profile {name}"
            ))
        };
        Self::find(name)?.ok_or_else(missing)
    }

    pub(crate) fn find(name: &str) -> Result<Option<Self>, Failure> {
        let path = path(name)?;
        let refused = |why: String| {
            let path = path.display();
            Failure::usage(format!("the profile {path} cannot be read: {why}"))
        };
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refused(error.to_string())),
        };
        // What the parser says may hold a line of the file, and so the key.
        let read = toml::from_str(&text).map_err(|_| refused("it has a server and a key".into()));
        read.map(Some)
    }

    pub(crate) fn save(&self, name: &str) -> Result<PathBuf, Failure> {
        let path = path(name)?;
        let saved = toml::to_string(self)
            .map_err(io::Error::other)
            .and_then(|text| write(&path, &text));
        saved.map_err(|error| {
            let path = path.display();
            Failure::usage(format!("the profile {path} cannot be written: {error}"))
        })?;
        Ok(path)
    }
}

fn write(path: &std::path::Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    let _left_behind = fs::remove_file(&beside);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)?;
    file.write_all(text.as_bytes())?;
    fs::rename(&beside, path)
}

fn path(name: &str) -> Result<PathBuf, Failure> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if !(1..=64).contains(&name.len()) || !name.bytes().all(is_part) {
        let why = "a profile's name has 1 to 64 letters, digits, - and _";
        return Err(Failure::usage(format!("{name:?}: {why}")));
    }
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let base = folder("XDG_CONFIG_HOME").map(PathBuf::from);
    let home = || folder("HOME").map(|home| PathBuf::from(home).join(".config"));
    let base = base.filter(|base| base.is_absolute()).or_else(home);
    let base = base.ok_or_else(|| Failure::usage("no profiles without a home: set HOME"))?;
    Ok(base.join("punctual/profiles").join(format!("{name}.toml")))
}
