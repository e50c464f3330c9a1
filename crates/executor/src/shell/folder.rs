//! Where commands have folders of their own: one folder of the node's user, which nobody else can write to.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use nix::unistd::Uid;

use super::spec::RunAs;

/// A folder for the folders of commands.
#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

impl Folder {
    /// Makes it where temporary files belong, and removes what supervisors left that were ended by force.
    pub fn open() -> io::Result<Self> {
        let user = Uid::effective();
        let path = std::env::temp_dir().join(format!("punctual-commands-{user}"));
        // Commands may run as others: they pass through it and see nothing of it.
        match DirBuilder::new().mode(0o711).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let found = fs::symlink_metadata(&path)?;
        if !found.is_dir() || found.uid() != user.as_raw() || found.mode() & 0o022 != 0 {
            let why = format!("{} belongs to somebody else: remove it", path.display());
            return Err(io::Error::other(why));
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o711))?;
        let folder = Self(path);
        folder.clean();
        Ok(folder)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Removes the folders of supervisors that are no more.
    fn clean(&self) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let supervisor = name.to_str().and_then(|name| name.parse::<u32>().ok());
            let is_left = supervisor.is_some_and(|it| !Path::new(&format!("/proc/{it}")).exists());
            if is_left && let Err(error) = fs::remove_dir_all(entry.path()) {
                let path = entry.path();
                tracing::warn!(path = %path.display(), %error, "the folder of a command stays");
            }
        }
    }
}

/// The folder of one command.
pub(super) struct Own {
    pub(super) path: PathBuf,
}

impl Own {
    /// Empty, and for whom the command runs as.
    pub(super) fn make(within: &Path, run_as: Option<RunAs>) -> io::Result<Self> {
        let path = within.join(std::process::id().to_string());
        // One that a process of the same number left.
        let _none = fs::remove_dir_all(&path);
        DirBuilder::new().mode(0o700).create(&path)?;
        give(&path, run_as)?;
        Ok(Self { path })
    }

    /// A file that the command may read: its payload, or its script.
    pub(super) fn write(
        &self,
        name: &str,
        bytes: &[u8],
        run_as: Option<RunAs>,
    ) -> io::Result<(PathBuf, File)> {
        let path = self.path.join(name);
        let mut options = File::options();
        options.write(true).create_new(true).mode(0o600);
        options.open(&path)?.write_all(bytes)?;
        give(&path, run_as)?;
        let file = File::open(&path)?;
        Ok((path, file))
    }
}

fn give(path: &Path, run_as: Option<RunAs>) -> io::Result<()> {
    match run_as {
        Some(RunAs { user, group }) => chown(path, Some(user), Some(group)),
        None => Ok(()),
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // What cannot be removed now is when a node starts.
        let _left = fs::remove_dir_all(&self.path);
    }
}
