//! The supervisor of one command: starts it, ends everything that came of it, and says how it ended.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, setsid};

use super::folder::Own;
use super::said::{self, Listener};
use super::spec::{Ended, KILL, Order, TERMINATE, read, read_bytes, write};
use super::start::Start;
use super::{START, THIS_PROGRAM, family, sandbox};

/// How often a supervisor looks at what it supervises.
const TICK: Duration = Duration::from_millis(200);
/// How long processes may take to end by themselves.
const GRACE: Duration = Duration::from_secs(5);

/// What ended a command that did not end by itself.
type Why = Arc<Mutex<Option<String>>>;

/// Supervises the command that its standard input names, and says there how it ended.
pub fn supervise() -> ExitCode {
    let Ok(mut node) = confine() else {
        return ExitCode::FAILURE;
    };
    let ended = match run(&mut node) {
        Ok(ended) => ended,
        Err(error) => Ended {
            why: Some(format!("it could not be started: {error}")),
            ..Ended::default()
        },
    };
    // A node that is gone reads nothing.
    match write(&mut node, &ended) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn confine() -> io::Result<UnixStream> {
    // Signals of the node's terminal are for the node.
    setsid()?;
    prctl::set_child_subreaper(true)?;
    Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}

fn run(node: &mut UnixStream) -> io::Result<Ended> {
    let order: Order = read(node)?;
    let payload = read_bytes(node)?;
    let own = Own::make(&order.folder, order.run_as)?;
    let why = Why::default();
    let (started, start) = channel();
    // Before the command is there: its limits are its own, and a thread more or less is none of its concern.
    let control = {
        let control = Control {
            node: node.try_clone()?,
            why: why.clone(),
            most: order.limits.processes_max,
            is_sandboxed: order.sandbox.is_some(),
        };
        std::thread::Builder::new().spawn(move || control.keep(&start))?
    };
    let (listener, speaker) = match &order.sandbox {
        Some(_) => {
            let (reader, writer, number) = said::pipe()?;
            (Some(Listener::hear(reader)?), Some((writer, number)))
        }
        None => (None, None),
    };
    let number = speaker.as_ref().map(|(_, number)| *number);
    let mut command = command(&order, &own, &payload, number)?;
    let moved_before = family::moved();
    let command = command.spawn();
    drop((order.env, payload, speaker));
    let command = command?;
    let ended = wait(&started, Pid::from_raw(command.id().cast_signed()));
    // It waits for the node, and ends with this process.
    drop(control);
    let mut ended = ended?;
    ended.why = why.lock().unwrap_or_else(PoisonError::into_inner).take();
    ended.said = listener.map(Listener::heard).unwrap_or_default();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let cpu = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    ended.cpu = u64::try_from(cpu).unwrap_or(0);
    ended.memory_max = u64::try_from(usage.max_rss())
        .unwrap_or(0)
        .saturating_mul(1_024);
    let moved = family::moved().zip(moved_before);
    ended.io = moved.map(|(now, before)| {
        let since = |now: u64, before: u64| now.saturating_sub(before);
        (since(now.0, before.0), since(now.1, before.1))
    });
    Ok(ended)
}

fn command(order: &Order, own: &Own, payload: &[u8], said: Option<i32>) -> io::Result<Command> {
    let start = serde_json::to_string(&Start {
        limits: order.limits,
        user_processes_max: order.user_processes_max,
        run_as: order.run_as,
        said,
    })?;
    let mut command = Command::new(THIS_PROGRAM);
    command.arg(START).arg(start).env_clear();
    let payload = if order.has_payload {
        let (path, file) = own.write("payload", payload, order.run_as)?;
        command.stdin(file);
        Some(path)
    } else {
        command.stdin(Stdio::null());
        None
    };
    let (home, temporary, seen) = match &order.sandbox {
        Some(sandbox) => {
            let (source, _) = own.write("script", sandbox.source.as_bytes(), order.run_as)?;
            let args = order.command.get(1..).unwrap_or_default();
            let files = (source.as_path(), payload.as_deref());
            let inside = sandbox::arguments(sandbox, files, (&order.file, args));
            command.arg(&sandbox.bwrap).arg("bwrap").args(inside);
            let seen = payload.map(|_| sandbox::PAYLOAD.into());
            (sandbox::HOME.into(), sandbox::TEMPORARY.into(), seen)
        }
        None => {
            command.arg(&order.file).args(&order.command);
            (own.path.clone(), own.path.clone(), payload)
        }
    };
    command.env("HOME", home).env("TMPDIR", temporary);
    command.envs(order.env.iter().map(|(name, value)| (name, value)));
    if let Some(seen) = seen {
        command.env("PUNCTUAL_PAYLOAD", seen);
    }
    match &order.dir {
        Some(dir) => command.current_dir(dir),
        None => command.current_dir(&own.path),
    };
    Ok(command)
}

/// Waits for the command, then ends what it left and waits for that.
fn wait(started: &Sender<Pid>, command: Pid) -> io::Result<Ended> {
    let _kept = started.send(command);
    let mut ended = Ended::default();
    let (mut is_over, mut how) = (false, None);
    loop {
        // All that can be reaped is, before it is looked again for others: there may be thousands.
        match waitpid(None::<Pid>, how) {
            Ok(WaitStatus::StillAlive) => {
                family::end_all();
                how = None;
                continue;
            }
            Ok(WaitStatus::Exited(process, code)) if process == command => {
                (ended.exit, is_over) = (Some(code), true);
            }
            Ok(WaitStatus::Signaled(process, signal, _)) if process == command => {
                (ended.signal, is_over) = (Some(signal as i32), true);
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(Errno::ECHILD) => return Ok(ended),
            Err(error) => return Err(error.into()),
        }
        how = is_over.then_some(WaitPidFlag::WNOHANG);
    }
}

/// What ends a command early: the node, its end, or too many processes.
struct Control {
    node: UnixStream,
    why: Why,
    most: u64,
    is_sandboxed: bool,
}

impl Control {
    /// Until the process ends.
    fn keep(mut self, start: &Receiver<Pid>) {
        let Ok(command) = start.recv() else {
            return;
        };
        if self.node.set_read_timeout(Some(TICK)).is_err() {
            return;
        }
        // The end of what holds a sandbox is the end of all in it.
        let holder = self.is_sandboxed.then(|| command.as_raw());
        // Ticks until what got SIGTERM gets SIGKILL.
        let mut left: Option<u128> = None;
        loop {
            let mut said = [0];
            match self.node.read(&mut said) {
                Ok(1) if said == [TERMINATE] => {
                    family::terminate(holder);
                    left = Some(GRACE.as_millis() / TICK.as_millis());
                }
                Ok(1) if said == [KILL] => left = Some(0),
                // The node is gone, or the only one who may write here writes nonsense.
                Ok(_) => return end_for_ever(),
                Err(error) if is_tick(&error) => {
                    left = left.map(|left| left.saturating_sub(1));
                    self.count();
                }
                Err(_) => return end_for_ever(),
            }
            if left == Some(0) {
                family::end_all();
            }
        }
    }

    /// A limit of the kernel counts all processes of a user, and none of root.
    fn count(&self) {
        if family::descendants().len() as u64 <= self.most {
            return;
        }
        // First the reason: when all have ended, it is read at once.
        self.why
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert_with(|| {
                format!("it had more than {} processes, and was ended", self.most)
            });
        family::end_all();
    }
}

fn is_tick(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// Nobody wants any of it any more. The process ends when there is nothing left.
fn end_for_ever() {
    loop {
        family::end_all();
        #[expect(
            clippy::disallowed_methods,
            reason = "the supervisor is a process of its own, without the engine's clock"
        )]
        std::thread::sleep(TICK);
    }
}
