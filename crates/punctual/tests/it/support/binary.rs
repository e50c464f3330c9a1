//! The binary under test.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::scan::Kept;
use super::{Http, pause, wait_for};

pub const BINARY: &str = env!("CARGO_BIN_EXE_punctual");
/// The flag of a server that asks for keys.
pub const KEYS: &str = "--insecure-no-auth=false";
const READY: &str = "ready: listening on ";

/// The binary with these arguments and an environment that says nothing to it.
fn command(program: &Path, before: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(before).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PUNCTUAL_") {
            command.env_remove(name);
        }
    }
    command
}

/// The words of a line as a shell would have them: spaces part them, single quotes hold them together.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        if at % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// Runs a command to its end: `punctual("job list --server 'http://…'")`.
pub fn punctual(line: &str) -> Output {
    command(Path::new(BINARY), &[])
        .args(words(line))
        .output()
        .unwrap()
}

/// A running `punctual serve`. Dropped, it is killed, and what it has written is searched for what it had to keep to itself.
pub struct Server {
    child: Child,
    /// Host and port.
    pub address: String,
    /// Where it is.
    url: String,
    folder: PathBuf,
    log: Arc<Mutex<String>>,
    /// Reads what it writes, to the end.
    reader: JoinHandle<()>,
    kept: Kept,
    /// Removed with the server, if it is the server's own.
    _own: Option<TempDir>,
}

/// What a server has written and will write.
pub struct Log(Arc<Mutex<String>>);

impl Log {
    pub fn read(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

impl Server {
    /// With a new folder of its own.
    pub fn start() -> Self {
        let own = TempDir::new().unwrap();
        let mut server = Self::start_in(own.path(), &[]);
        server._own = Some(own);
        server
    }

    /// The same, and it asks for keys.
    pub fn start_with_keys() -> Self {
        let own = TempDir::new().unwrap();
        let mut server = Self::start_in(own.path(), &[KEYS]);
        server._own = Some(own);
        server
    }

    /// With a folder that may hold data, and more arguments.
    pub fn start_in(folder: &Path, arguments: &[&str]) -> Self {
        Self::start_with(Path::new(BINARY), &[], folder, arguments)
    }

    /// Of another build of the same binary.
    pub fn start_from(binary: &Path, folder: &Path, arguments: &[&str]) -> Self {
        Self::start_with(binary, &[], folder, arguments)
    }

    /// Started by a program that becomes the server, such as `env`: `program before… punctual serve …`. One that
    /// stays and waits for it would take our signals, and leave the server behind.
    pub fn start_under(program: &Path, before: &[&str], folder: &Path, arguments: &[&str]) -> Self {
        Self::start_with(program, &[before, &[BINARY]].concat(), folder, arguments)
    }

    /// The same, where the binary and its folder have names of their own, and it asks for keys.
    pub fn start_inside(program: &Path, before: &[&str], binary: &Path, folder: &Path) -> Self {
        let before = [before, &[binary.to_str().unwrap()]].concat();
        Self::start_with(program, &before, folder, &[KEYS])
    }

    fn start_with(program: &Path, before: &[&str], folder: &Path, arguments: &[&str]) -> Self {
        let listen: &[&str] = if arguments.contains(&"--listen") {
            &[]
        } else {
            &["--listen", "127.0.0.1:0"]
        };
        // Receivers are on this machine, which a server that asks for keys calls only if its configuration allows it.
        let egress: &[&str] = if arguments.contains(&KEYS) && !arguments.contains(&"--egress-allow")
        {
            &["--egress-allow", "public,loopback"]
        } else {
            &[]
        };
        let mut child = command(program, before)
            .args(["serve", "--data"])
            .arg(folder)
            .args(listen)
            .args(egress)
            .args(arguments)
            // Who may call is what some tests are about; for those a flag says otherwise, and wins.
            .env("PUNCTUAL_INSECURE_NO_AUTH", "true")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let log = Arc::new(Mutex::new(String::new()));
        let (ready, is_ready) = mpsc::sync_channel(1);
        let written = Arc::clone(&log);
        let reader = thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                written.lock().unwrap().push_str(&format!("{line}\n"));
                if let Some((_, url)) = line.split_once(READY) {
                    // In JSON more follows.
                    let url = url.split('"').next().unwrap_or_default();
                    let _nobody_waits = ready.try_send(url.trim().to_owned());
                }
            }
        });
        let Ok(url) = is_ready.recv_timeout(Duration::from_secs(60)) else {
            let _gone = child.kill();
            let ended = child.wait();
            panic!("not ready ({ended:?}):\n{}", log.lock().unwrap());
        };
        let (_, address) = url.split_once("://").unwrap();
        Self {
            child,
            address: address.to_owned(),
            url,
            folder: folder.to_owned(),
            log,
            reader,
            kept: Kept::of(folder, arguments),
            _own: None,
        }
    }

    /// Waits until it takes part: until then it answers some calls with 503.
    #[track_caller]
    pub fn is_ready(&self) {
        wait_for("readiness", || {
            (self.http().get("/readyz").status == 200).then_some(())
        });
    }

    pub fn url(&self) -> String {
        self.url.clone()
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What it has written to standard error so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// The same, for when the server itself is gone.
    pub fn log_handle(&self) -> Log {
        Log(Arc::clone(&self.log))
    }

    pub fn http(&self) -> Http {
        Http::new(&self.address)
    }

    /// The key that it has left for the command line.
    #[track_caller]
    pub fn root_key(&self) -> String {
        let text = std::fs::read_to_string(self.folder.join("root.key")).unwrap();
        text.trim().to_owned()
    }

    /// Runs the command line against this server.
    pub fn cli(&self, line: &str) -> Output {
        self.cli_with(&[], line)
    }

    /// The same with more in its environment.
    pub fn cli_with(&self, environment: &[(&str, &str)], line: &str) -> Output {
        command(Path::new(BINARY), &[])
            .args(words(line))
            .env("PUNCTUAL_SERVER", self.url())
            .env("PUNCTUAL_DATA", &self.folder)
            .envs(environment.iter().copied())
            .output()
            .unwrap()
    }

    /// Starts the command line against this server, and reads what it prints meanwhile.
    pub fn cli_started(&self, line: &str) -> Child {
        self.cli_started_with(&[], line)
    }

    /// The same with more in its environment.
    pub fn cli_started_with(&self, environment: &[(&str, &str)], line: &str) -> Child {
        command(Path::new(BINARY), &[])
            .args(words(line))
            .env("PUNCTUAL_SERVER", self.url())
            .env("PUNCTUAL_DATA", &self.folder)
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Runs a line of bash in which `punctual` is the command line against this server.
    pub fn bash(&self, script: &str) -> Output {
        let script = format!("set -o pipefail; punctual() {{ '{BINARY}' \"$@\"; }}; {script}");
        command(Path::new("bash"), &["-c", &script])
            .env("PUNCTUAL_SERVER", self.url())
            .env("PUNCTUAL_DATA", &self.folder)
            .output()
            .unwrap()
    }

    /// The same, when it is to go well: what it printed.
    #[track_caller]
    pub fn printed(&self, line: &str) -> String {
        let output = self.cli(line);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{:?}: {error}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap())
    }

    pub fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap();
    }

    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Waits for its end; half a minute at most.
    pub fn wait(&mut self) -> ExitStatus {
        wait_for("the server's end", || self.child.try_wait().unwrap())
    }

    /// Stops it in good order.
    pub fn stop(mut self) -> ExitStatus {
        self.signal(Signal::SIGTERM);
        self.wait()
    }

    /// Ends it as a power cut would.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _gone = self.child.kill();
            let _ended = self.child.wait();
        }
        if thread::panicking() {
            eprintln!("--- log of {}\n{}", self.address, self.log());
            return;
        }
        // What it wrote last may be on its way. A child that outlives it may keep the way open.
        for _ in 0..50 {
            if self.reader.is_finished() {
                break;
            }
            pause(Duration::from_millis(20));
        }
        let found = self.kept.found_in(&self.log());
        assert!(
            found.is_empty(),
            "these lines say what no log may say: {found:#?}"
        );
    }
}
