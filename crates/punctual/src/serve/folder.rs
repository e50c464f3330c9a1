//! The data folder, before a store opens it.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use nix::unistd::{AccessFlags, access};

use crate::failure::Failure;

/// Makes the folder if it is not there, for its owner alone. Answers whether it holds nothing yet.
pub fn prepare(folder: &Path) -> Result<bool, Failure> {
    let refused = |what: &str, why: &dyn std::fmt::Display| {
        Failure::usage(format!(
            "the data folder {} cannot be {what}: {why}",
            folder.display()
        ))
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| refused("made", &error))?;
    access(folder, AccessFlags::W_OK | AccessFlags::X_OK)
        .map_err(|error| refused("written", &error.desc()))?;
    let mut entries = std::fs::read_dir(folder).map_err(|error| refused("read", &error))?;
    Ok(entries.next().is_none())
}
