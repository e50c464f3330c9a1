//! The fleet's database: durable, private, with a synchronous standby until that takes over.

use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use store::postgres::server::{Mode, PgServer, Stop};

use crate::support::pause;

pub struct Database {
    primary: PgServer,
    standby: Option<PgServer>,
}

impl Database {
    /// The error says which programs are missing.
    pub fn start() -> Result<Self, String> {
        let primary = PgServer::private(Mode::Durable).map_err(|error| error.to_string())?;
        let mut database = Self {
            primary,
            standby: None,
        };
        database.follow();
        Ok(database)
    }

    pub fn port(&self) -> u16 {
        self.primary.port()
    }

    /// Has its commits wait for a standby, if there is none yet.
    pub fn follow(&mut self) {
        if self.standby.is_none() {
            self.standby = Some(self.primary.standby().unwrap());
        }
    }

    pub fn restart(&self, how: Stop) {
        self.primary.stop(how).unwrap();
        self.primary.start().unwrap();
    }

    /// It falls, and nobody answers at its port for so long.
    pub fn fall(&self, span: Duration) {
        self.primary.stop(Stop::Immediate).unwrap();
        pause(span);
        self.primary.start().unwrap();
    }

    /// None of its processes does anything for so long; connections stay, and say nothing.
    pub fn freeze(&self, span: Duration) {
        let stopped = self.signal(&[self.postmaster()], Signal::SIGSTOP);
        // Nobody is forked any more.
        let children = self.signal(&self.children(), Signal::SIGSTOP);
        pause(span);
        self.signal(&children, Signal::SIGCONT);
        self.signal(&stopped, Signal::SIGCONT);
    }

    fn postmaster(&self) -> Pid {
        let file = self.primary.folder().join("postmaster.pid");
        let text = fs::read_to_string(file).unwrap();
        Pid::from_raw(text.lines().next().unwrap().trim().parse().unwrap())
    }

    /// Each is a process group of its own.
    fn children(&self) -> Vec<Pid> {
        let pid = self.postmaster();
        let file = format!("/proc/{pid}/task/{pid}/children");
        let text = fs::read_to_string(file).unwrap();
        let numbers = text.split_whitespace().map(|number| number.parse());
        numbers
            .map(|number| Pid::from_raw(number.unwrap()))
            .collect()
    }

    /// Those that were there to hear it.
    fn signal(&self, pids: &[Pid], signal: Signal) -> Vec<Pid> {
        let heard = pids.iter().filter(|pid| kill(**pid, signal).is_ok());
        heard.copied().collect()
    }

    /// The old primary falls and is gone for good; the standby takes over, on another port.
    pub fn fail_over(&mut self) {
        let standby = self.standby.take().expect("a standby that follows");
        self.primary.stop(Stop::Immediate).unwrap();
        standby.promote().unwrap();
        self.primary = standby;
    }

    /// Somebody else keeps a table to himself for so many seconds.
    pub fn lock(&self, table: &str, seconds: u64) {
        let lock = format!(
            "BEGIN; LOCK TABLE punctual.{table} IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep({seconds}); COMMIT"
        );
        self.primary.query(&lock).unwrap();
    }

    /// What the database itself says; for the record of a run that went wrong.
    pub fn query(&self, query: &str) -> String {
        let answer = self.primary.query(query);
        answer.unwrap_or_else(|error| format!("no answer: {error}"))
    }
}
