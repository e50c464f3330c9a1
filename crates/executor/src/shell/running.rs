//! A command under way, as its node sees it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::OwnedSemaphorePermit;

use super::SUPERVISE;
use super::output::Output;
use super::spec::{self, Ended, KILL, Order, TERMINATE};

/// A report is some hundred bytes, and what a script said: up to four for each byte of it.
const REPORT_MAX: u64 = 512 * 1024;

/// A supervisor that has its order. Whoever drops it ends the command.
pub(super) struct Running(Option<Held>);

struct Held {
    supervisor: Child,
    control: UnixStream,
    output: pipe::Receiver,
    /// What is sent to it when it is dropped.
    last_word: u8,
    /// Room among the commands of the node, until the last process is gone.
    _room: OwnedSemaphorePermit,
}

/// What is done when there was too much output.
pub(super) enum Over {
    Ended(Ended),
    TooMuch,
}

/// A supervisor that nobody watches yet. One that nobody wants is waited for: it ends when its socket closes.
pub(super) struct Spawned(Option<(Child, StdStream, OwnedFd)>);

impl Drop for Spawned {
    fn drop(&mut self) {
        if let Some((mut supervisor, control, _)) = self.0.take() {
            drop(control);
            let _ended = supervisor.wait();
        }
    }
}

impl Spawned {
    /// Its two ends, for who may wait. It ends by itself.
    pub(super) fn into_blocking(mut self) -> io::Result<(StdStream, File)> {
        let (supervisor, control, output) = self.0.take().ok_or(io::ErrorKind::BrokenPipe)?;
        control.set_nonblocking(false)?;
        let mut supervisor = supervisor;
        std::thread::Builder::new().spawn(move || supervisor.wait())?;
        Ok((control, File::from(output)))
    }
}

/// Starts a supervisor. It waits for a process to start, so it is called where that holds up nobody.
pub(super) fn spawn(program: &Path, order: &Order, payload: &Bytes) -> io::Result<Spawned> {
    let (ours, theirs) = StdStream::pair()?;
    let (reader, writer) = io::pipe()?;
    let mut command = Command::new(program);
    command.arg(SUPERVISE).env_clear().current_dir("/");
    command.stdin(Stdio::from(OwnedFd::from(theirs)));
    command.stdout(writer.try_clone()?).stderr(writer);
    let supervisor = command.spawn()?;
    // Ends of it that only the supervisor is to have.
    drop(command);
    let spawned = Spawned(Some((supervisor, ours, OwnedFd::from(reader))));
    if let Some((_, control, _)) = &spawned.0 {
        let mut to = control;
        spec::write(&mut to, order)?;
        spec::write_bytes(&mut to, payload)?;
        control.set_nonblocking(true)?;
    }
    Ok(spawned)
}

impl Running {
    pub(super) fn new(mut spawned: Spawned, room: OwnedSemaphorePermit) -> io::Result<Self> {
        let (supervisor, control, output) = spawned.0.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self(Some(Held {
            supervisor,
            control: UnixStream::from_std(control)?,
            output: pipe::Receiver::from_owned_fd(output)?,
            last_word: TERMINATE,
            _room: room,
        })))
    }

    /// Keeps what it writes until it has ended. Of what was in the pipe by then nothing is lost, and nothing later is waited
    /// for: somebody else may still hold the other end.
    pub(super) async fn finish(mut self, output: &Output, most: u64) -> io::Result<Over> {
        let Some(held) = &mut self.0 else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let mut report = Vec::new();
        let mut control = (&mut held.control).take(REPORT_MAX);
        let mut buffer = vec![0; 64 * 1024];
        let mut is_open = true;
        loop {
            tokio::select! {
                biased;
                read = control.read_buf(&mut report) => {
                    if read? == 0 {
                        break;
                    }
                }
                read = held.output.read(&mut buffer), if is_open => {
                    let read = read?;
                    is_open = read > 0;
                    let bytes = output.put(buffer.get(..read).unwrap_or_default());
                    if bytes > most {
                        held.last_word = KILL;
                        return Ok(Over::TooMuch);
                    }
                }
            }
        }
        while let Ok(read @ 1..) = held.output.try_read(&mut buffer) {
            if output.put(buffer.get(..read).unwrap_or_default()) > most {
                return Ok(Over::TooMuch);
            }
        }
        let ended = spec::read(&mut report.as_slice());
        if let Some(held) = self.0.take() {
            held.reap();
        }
        ended.map(Over::Ended)
    }
}

impl Held {
    /// Its socket is closed, so it has ended or is about to.
    fn reap(mut self) {
        if let Ok(Some(_)) = self.supervisor.try_wait() {
            return;
        }
        // Where there is no runtime any more, the node is about to end.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn_blocking(move || self.supervisor.wait());
        }
    }

    /// Reads what is still written, so that nobody is held up by it, until the supervisor has ended.
    async fn drain(mut self) {
        let (mut report, mut buffer) = (vec![0; 1024], vec![0; 16 * 1024]);
        let mut is_open = self.control.write_all(&[self.last_word]).await.is_ok();
        loop {
            tokio::select! {
                biased;
                said = self.control.read(&mut report) => {
                    if !matches!(said, Ok(1..)) {
                        break;
                    }
                }
                read = self.output.read(&mut buffer), if is_open => is_open = matches!(read, Ok(1..)),
            }
        }
        self.reap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(held) = self.0.take() else {
            return;
        };
        // Without a runtime the socket closes now, and the supervisor ends everything at once.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(held.drain());
        }
    }
}
