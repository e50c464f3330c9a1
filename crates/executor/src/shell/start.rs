//! The starter: sets what only a process can set of itself, and becomes the command.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use nix::unistd::setsid;
use serde::{Deserialize, Serialize};

use super::said;
use super::spec::{ProcessLimits, RunAs};

/// What a shell answers for a program that cannot be executed.
const NOT_EXECUTED: u8 = 126;
/// Files that a process may have open: what programs expect of a system.
const FILES_MAX: u64 = 1_024;

/// What a starter is to do before it becomes the command that follows.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Start {
    pub limits: ProcessLimits,
    /// Processes that the user may have with all of his commands: the kernel counts no others.
    pub user_processes_max: u64,
    pub run_as: Option<RunAs>,
    /// The open file that is to be its number 3.
    pub said: Option<i32>,
}

/// Becomes a command: `start-command {…} FILE NAME ARGUMENT…`. Returns only if that fails.
pub fn start(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let failed = |why: String| {
        // Its output is the command's.
        eprint_line(&format!("punctual: the command cannot be started: {why}"));
        ExitCode::from(NOT_EXECUTED)
    };
    let start = arguments.next().and_then(|it| it.into_string().ok());
    let start = start.and_then(|text| serde_json::from_str::<Start>(&text).ok());
    let (Some(start), Some(file), Some(name)) = (start, arguments.next(), arguments.next()) else {
        return failed("this is for supervisors of commands only".to_owned());
    };
    if let Err(error) = confine(&start) {
        return failed(error.to_string());
    }
    if let Err(error) = said::keep_only(start.said) {
        return failed(error.to_string());
    }
    let mut command = Command::new(file);
    command.arg0(name).args(arguments);
    if let Some(RunAs { user, group }) = start.run_as {
        command.gid(group).uid(user);
    }
    failed(command.exec().to_string())
}

fn eprint_line(text: &str) {
    use std::io::Write;
    // Whoever could read it may be gone.
    let _unread = writeln!(io::stderr(), "{text}");
}

fn confine(start: &Start) -> nix::Result<()> {
    let limits = start.limits;
    // A session of its own has no terminal, and its leader leads a process group.
    setsid()?;
    // Also if the supervisor is ended by force.
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    // No program that it executes gives it more rights than it has.
    prctl::set_no_new_privs()?;
    for (resource, max) in [
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_AS, limits.memory_max),
        (Resource::RLIMIT_NPROC, start.user_processes_max),
        (Resource::RLIMIT_FSIZE, limits.file_max),
        (Resource::RLIMIT_NOFILE, FILES_MAX),
    ] {
        setrlimit(resource, max, max)?;
    }
    Ok(())
}
