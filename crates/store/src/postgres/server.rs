//! A real PostgreSQL server for tests and benches: private to them, on a free port of this machine.
//!
//! [`PgServer::shared`] is one for all tests of a machine, however many processes they run in: the first starts it,
//! and it stops by itself a while after the last has ended. [`PgServer::private`] belongs to its holder, who may stop
//! and kill it, give it a synchronous standby and promote that. When the programs are missing, the error names the
//! package that has them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::BoxError;

/// The user that the server runs as when tests run as root, which PostgreSQL refuses.
const USER: &str = "postgres";

/// The file of a server's folder that names whom its commits wait for.
const WAITS_FOR: &str = "waits-for.conf";

/// What a server is started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nothing is waited for: for tests about rows.
    Fast,
    /// Commits survive the loss of power: for benches and for tests that pull the plug.
    Durable,
}

/// A server that runs.
#[derive(Debug)]
pub struct PgServer {
    folder: PathBuf,
    port: u16,
    mode: Mode,
    /// Held by everyone who uses a shared one; a private one is removed at the end.
    shared: Option<File>,
}

/// How a server ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Whoever is connected is thrown out.
    Fast,
    /// As if the power had gone.
    Immediate,
}

impl PgServer {
    /// The server that all tests of this machine share.
    pub fn shared() -> Result<Self, BoxError> {
        let folder = base().join(format!("punctual-tests-{}", user_id()?));
        fs::create_dir_all(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
        let open = |name: &str| File::create(folder.join(name));
        let (starting, users) = (open("starting")?, open("users")?);
        starting.lock()?;
        users.lock_shared()?;
        let data = folder.join("data");
        let known = fs::read_to_string(folder.join("port")).ok();
        let port = known.and_then(|text| text.trim().parse::<u16>().ok());
        let answers = |port: &u16| std::net::TcpStream::connect(("127.0.0.1", *port)).is_ok();
        let server = |port| Self {
            folder: data.clone(),
            port,
            mode: Mode::Fast,
            shared: Some(users),
        };
        if let Some(port) = port.filter(answers) {
            return Ok(server(port));
        }
        if data.exists() {
            fs::remove_dir_all(&data)?;
        }
        let server = server(free_port()?);
        server.init()?;
        server.start()?;
        fs::write(folder.join("port"), server.port.to_string())?;
        reap(&folder)?;
        Ok(server)
    }

    /// A server of one's own.
    pub fn private(mode: Mode) -> Result<Self, BoxError> {
        let server = Self::planned(mode)?;
        server.init()?;
        server.start()?;
        Ok(server)
    }

    /// One that has a folder's name and a port, and nothing else yet.
    fn planned(mode: Mode) -> Result<Self, BoxError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // Durable means a disk.
        let base = match mode {
            Mode::Fast => base(),
            Mode::Durable => std::env::temp_dir(),
        };
        Ok(Self {
            folder: base.join(format!("punctual-server-{}-{number}", std::process::id())),
            port: free_port()?,
            mode,
            shared: None,
        })
    }

    /// Where it is, for [`super::PgConfig::parse`].
    pub fn address(&self) -> String {
        address_at(self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The same, with a schema that nobody else has.
    pub fn fresh_schema(&self) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("t{}_{number}", std::process::id());
        format!("{}&schema={name}", self.address())
    }

    fn make_folder(&self) -> Result<(), BoxError> {
        fs::create_dir_all(&self.folder)?;
        fs::set_permissions(&self.folder, fs::Permissions::from_mode(0o700))?;
        let owner = format!("{USER}:{USER}");
        if is_root()? {
            done(Command::new("chown").arg(owner).arg(&self.folder))
        } else {
            Ok(())
        }
    }

    fn init(&self) -> Result<(), BoxError> {
        self.make_folder()?;
        let folder = self.folder.to_string_lossy();
        let arguments = [
            "-A",
            "trust",
            "-U",
            USER,
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
            "-D",
        ];
        done(as_user("initdb")?.args(arguments).arg(&*folder))?;
        let mut settings = File::options()
            .append(true)
            .open(self.folder.join("postgresql.conf"))?;
        writeln!(settings, "unix_socket_directories = ''")?;
        writeln!(settings, "include_if_exists '{WAITS_FOR}'")?;
        Ok(())
    }

    /// A copy that follows this server. From now on this one's commits wait until the copy has them on its disk,
    /// so nothing that was acknowledged is lost when the copy takes over; without it they wait for ever.
    #[expect(clippy::disallowed_methods, reason = "real servers take real time")]
    pub fn standby(&self) -> Result<Self, BoxError> {
        let standby = Self::planned(self.mode)?;
        standby.make_folder()?;
        let mut copy = as_user("pg_basebackup")?;
        copy.args(["-h", "127.0.0.1", "-U", USER, "-p", &self.port.to_string()]);
        copy.args(["-R", "-X", "stream", "-c", "fast", "--no-sync", "-D"]);
        done(copy.arg(&standby.folder))?;
        // The copy itself waits for nobody.
        match fs::remove_file(standby.folder.join(WAITS_FOR)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
        standby.start()?;
        let everyone = "synchronous_standby_names = '*'\n";
        fs::write(self.folder.join(WAITS_FOR), everyone)?;
        done(as_user("pg_ctl")?.arg("-D").arg(&self.folder).arg("reload"))?;
        let following = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        for _ in 0..600 {
            if self.query(following)? == "1" {
                return Ok(standby);
            }
            thread::sleep(Duration::from_millis(50));
        }
        Err("the standby does not follow".into())
    }

    /// A standby becomes a server of its own. The one that it follows must have been stopped: two that both take
    /// writes are what nobody can mend.
    pub fn promote(&self) -> Result<(), BoxError> {
        let mut promote = as_user("pg_ctl")?;
        promote.arg("-D").arg(&self.folder);
        done(promote.args(["-w", "-t", "60", "promote"]))
    }

    /// What the server answers to a query: one line for a row.
    pub fn query(&self, query: &str) -> Result<String, BoxError> {
        let mut psql = as_user("psql")?;
        psql.args(["-X", "-A", "-t", "-q", "-c", query]);
        Ok(said(psql.arg(self.address()))?.trim().to_owned())
    }

    /// Starts it, after [`PgServer::stop`] again on the same port.
    pub fn start(&self) -> Result<(), BoxError> {
        let mut options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c max_connections=300 -c shared_buffers=512MB \
             -c log_min_messages=error -c log_min_error_statement=panic -c wal_retrieve_retry_interval=100ms",
            self.port
        );
        options.push_str(match self.mode {
            Mode::Fast => {
                " -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_wal_size=4GB"
            }
            Mode::Durable => {
                " -c wal_compression=lz4 -c max_wal_size=4GB -c checkpoint_timeout=15min -c jit=off"
            }
        });
        let log = self.folder.join("log");
        let mut start = as_user("pg_ctl")?;
        start.arg("-D").arg(&self.folder).arg("-l").arg(log);
        done(start.args(["-w", "-t", "60", "-o", &options, "start"]))
    }

    /// The server's own folder, for tests that set it up otherwise.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn stop(&self, how: Stop) -> Result<(), BoxError> {
        let mode = match how {
            Stop::Fast => "fast",
            Stop::Immediate => "immediate",
        };
        let mut stop = as_user("pg_ctl")?;
        stop.arg("-D").arg(&self.folder);
        done(stop.args(["-w", "-m", mode, "stop"]))
    }
}

impl Drop for PgServer {
    fn drop(&mut self) {
        if self.shared.is_none() {
            // It may be stopped already, and nobody is left to report to.
            let _stopped = self.stop(Stop::Immediate);
            let _gone = fs::remove_dir_all(&self.folder);
        }
    }
}

/// A server, or whoever stands before it, by its port.
pub fn address_at(port: u16) -> String {
    format!("postgres://{USER}@127.0.0.1:{port}/postgres?sslmode=disable")
}

/// In memory where there is such a folder.
fn base() -> PathBuf {
    let fast = Path::new("/dev/shm");
    if fast.is_dir() {
        fast.to_owned()
    } else {
        std::env::temp_dir()
    }
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

fn user_id() -> Result<String, BoxError> {
    let output = Command::new("id").arg("-u").output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

fn is_root() -> Result<bool, BoxError> {
    Ok(user_id()? == "0")
}

/// A program of the server's, as a user that may run it.
fn as_user(program: &str) -> Result<Command, BoxError> {
    let path = find(program).ok_or_else(|| {
        format!("{program} is not on this machine: it comes with the Debian package postgresql")
    })?;
    let mut command = if is_root()? {
        let mut command = Command::new("runuser");
        command.args(["-u", USER, "--"]).arg(path);
        command
    } else {
        Command::new(path)
    };
    command.current_dir("/");
    Ok(command)
}

/// Where Debian puts them is not on everyone's path.
fn find(program: &str) -> Option<PathBuf> {
    let mut folders: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    folders.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = folders
        .into_iter()
        .rev()
        .chain(std::env::split_paths(&path));
    all.map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Runs a program to its end.
fn done(command: &mut Command) -> Result<(), BoxError> {
    said(command).map(drop)
}

/// The same, and what it said. Files, not pipes: the server that it starts would hold a pipe open.
fn said(command: &mut Command) -> Result<String, BoxError> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let said = base().join(format!("punctual-said-{}-{number}", std::process::id()));
    let file = File::create(&said)?;
    let status = command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .status()
        .map_err(|error| format!("{command:?}: {error}"))?;
    let text = fs::read_to_string(&said)?;
    fs::remove_file(&said)?;
    if status.success() {
        Ok(text)
    } else {
        Err(format!("{command:?}: {text}").into())
    }
}

/// Starts whoever stops the shared server: a while after nobody uses it any more.
fn reap(folder: &Path) -> Result<(), BoxError> {
    const SCRIPT: &str = include_str!("reap.sh");
    let path = find("pg_ctl").ok_or("pg_ctl is gone")?;
    Command::new("setsid")
        .args(["sh", "-c", SCRIPT, "reap"])
        .arg(folder)
        .arg(path)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promoted_standby_has_all_that_was_acknowledged() {
        let primary = PgServer::private(Mode::Durable).unwrap();
        primary.query("CREATE TABLE kept (number int)").unwrap();
        let standby = primary.standby().unwrap();
        primary.query("INSERT INTO kept VALUES (42)").unwrap();
        assert!(standby.query("INSERT INTO kept VALUES (1)").is_err());

        primary.stop(Stop::Immediate).unwrap();
        standby.promote().unwrap();
        assert_eq!(standby.query("SELECT number FROM kept").unwrap(), "42");
        standby.query("INSERT INTO kept VALUES (1)").unwrap();

        let third = standby.standby().unwrap();
        standby.stop(Stop::Fast).unwrap();
        third.promote().unwrap();
        assert_eq!(third.query("SELECT count(*) FROM kept").unwrap(), "2");
    }
}
