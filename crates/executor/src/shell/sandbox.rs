//! The sandbox of a script: bubblewrap with namespaces of their own for everything, and what is in them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What a script is called inside, and its payload.
const SCRIPT: &str = "/job/script";
pub(super) const PAYLOAD: &str = "/job/payload";
pub(super) const HOME: &str = "/home";
pub(super) const TEMPORARY: &str = "/tmp";
/// Nobody, in any system.
const USER: &str = "65534";
/// Sets limits and becomes another program.
const PRLIMIT: &str = "/usr/bin/prlimit";
/// Folders of programs beside `/usr`, or links into it.
const SYSTEM: [&str; 5] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64"];
/// What programs of the system look for elsewhere, and holds nothing of anybody.
const OF_SYSTEM: [&str; 4] = [
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/python3",
];

/// Around a command, where it is a script.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Sandbox {
    pub bwrap: PathBuf,
    pub source: String,
    /// Bytes that each of its folders may hold.
    pub disk_max: u64,
    /// Processes and threads that may be in it at once.
    pub processes_max: u64,
}

/// What bubblewrap is called with: a sandbox, and in it a program with its arguments. `file` holds the source.
pub(super) fn arguments(
    sandbox: &Sandbox,
    (file, payload): (&Path, Option<&Path>),
    (program, args): (&Path, &[String]),
) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut add = |parts: &[&str]| all.extend(parts.iter().map(|part| (*part).to_owned()));
    // By itself `--unshare-all` goes on without a user namespace where there can be none.
    add(&["--unshare-user", "--unshare-all", "--disable-userns"]);
    add(&["--die-with-parent", "--new-session", "--cap-drop", "ALL"]);
    add(&["--uid", USER, "--gid", USER, "--hostname", "sandbox"]);
    add(&["--ro-bind", "/usr", "/usr"]);
    for path in SYSTEM {
        match std::fs::read_link(path) {
            Ok(to) => add(&["--symlink", &to.display().to_string(), path]),
            Err(_) => add(&["--ro-bind-try", path, path]),
        }
    }
    for path in OF_SYSTEM {
        add(&["--ro-bind-try", path, path]);
    }
    add(&["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]);
    let size = sandbox.disk_max.to_string();
    for (path, mode) in [(TEMPORARY, "1777"), ("/dev/shm", "1777"), (HOME, "0700")] {
        add(&["--perms", mode, "--size", &size, "--tmpfs", path]);
    }
    add(&["--ro-bind", &file.display().to_string(), SCRIPT]);
    if let Some(payload) = payload {
        add(&["--ro-bind", &payload.display().to_string(), PAYLOAD]);
    }
    // What stands around all of that is a file system as well, and has no bound.
    add(&["--remount-ro", "/", "--chdir", HOME, "--"]);
    // The kernel counts processes by user and user namespace: inside, these are all of the sandbox and no others, and one of
    // them holds it.
    add(&[
        PRLIMIT,
        &format!("--nproc={}", sandbox.processes_max + 1),
        "--",
    ]);
    add(&[&program.display().to_string(), SCRIPT]);
    all.extend(args.iter().cloned());
    all
}
