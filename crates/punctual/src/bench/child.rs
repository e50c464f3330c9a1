//! A server as a user starts it, in a process of its own: what it takes can be measured apart from what the bench takes.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::database::processor_time;
use super::rig::{self, Place};
use crate::failure::Failure;

/// Ended when dropped.
pub(super) struct Server {
    child: Child,
    pub address: SocketAddr,
    /// Seconds until it said that it is ready.
    pub ready: f64,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::refused(format!("cannot start a server: {error}"))
}

impl Server {
    /// On the store of a place, with these arguments more.
    pub(super) fn start(place: &Place, arguments: &[&str]) -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(failed)?;
        let begun = rig::uptime();
        let mut child = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(place.arguments())
            .args(arguments)
            .env_remove("PUNCTUAL_LOG")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let pipe = child.stderr.take();
        let mut server = Self {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            ready: 0.0,
        };
        let mut lines = pipe
            .map(BufReader::new)
            .into_iter()
            .flat_map(BufRead::lines);
        let address = loop {
            let Some(line) = lines.next() else {
                return Err(failed("it ended before it was ready"));
            };
            let line = line.map_err(failed)?;
            if let Some((_, address)) = line.split_once("ready: listening on http://") {
                break address.trim().parse().map_err(failed)?;
            }
        };
        // What it says later is read, so that it never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        server.address = address;
        server.ready = rig::uptime().saturating_sub(begun).as_secs_f64();
        Ok(server)
    }

    /// Megabytes of memory that it has now.
    pub(super) fn resident(&self) -> Result<f64, Failure> {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).map_err(failed)?;
        let kilobytes = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<f64>().ok())
            .ok_or_else(|| Failure::refused("cannot read the server's memory"))?;
        Ok(kilobytes / 1_000.0)
    }

    /// Processor time that it has spent.
    pub(super) fn spent(&self) -> Result<Duration, Failure> {
        processor_time(self.child.id())
            .ok_or_else(|| Failure::refused("cannot read the server's processor time"))
    }
}
