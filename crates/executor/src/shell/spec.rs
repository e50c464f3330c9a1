//! What a node says to a supervisor, and what it answers: JSON behind its length.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::sandbox::Sandbox;

/// More than any order of ours, and a report is far smaller.
const MESSAGE_MAX: u32 = 8 * 1024 * 1024;
/// What a node writes behind an order.
pub(super) const TERMINATE: u8 = b'T';
pub(super) const KILL: u8 = b'K';

/// Who commands run as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAs {
    pub user: u32,
    pub group: u32,
}

/// Bounds of what each command may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLimits {
    /// Bytes of address space that each process may have.
    pub memory_max: u64,
    /// Processes and threads that a command may have at once.
    pub processes_max: u64,
    /// Bytes that each file may have which a process writes.
    pub file_max: u64,
}

/// A command to start; its payload follows.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    /// What is executed, and the name that it is called by.
    pub file: PathBuf,
    pub command: Vec<String>,
    /// A folder of its own where there is none.
    pub dir: Option<String>,
    /// Without what the supervisor adds.
    pub env: Vec<(String, String)>,
    /// Where folders of their own are made.
    pub folder: PathBuf,
    pub has_payload: bool,
    pub run_as: Option<RunAs>,
    pub limits: ProcessLimits,
    pub user_processes_max: u64,
    /// Around it, if it is a script.
    pub sandbox: Option<Sandbox>,
}

/// How a command ended.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ended {
    pub exit: Option<i32>,
    pub signal: Option<i32>,
    /// It was not started, or not only let go to its end.
    pub why: Option<String>,
    /// Microseconds of processors.
    pub cpu: u64,
    /// Bytes.
    pub memory_max: u64,
    /// Bytes from and to storage, where the kernel counts them.
    pub io: Option<(u64, u64)>,
    /// What a script wrote to file descriptor 3.
    pub said: Vec<u8>,
}

pub(super) fn write(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    write_bytes(to, &bytes)
}

pub(super) fn write_bytes(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).ok();
    let length = length.filter(|length| *length <= MESSAGE_MAX);
    let length = length.ok_or(io::ErrorKind::FileTooLarge)?;
    to.write_all(&length.to_be_bytes())?;
    to.write_all(bytes)
}

pub(super) fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    Ok(serde_json::from_slice(&read_bytes(from)?)?)
}

pub(super) fn read_bytes(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > MESSAGE_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = vec![0; length as usize];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}
