//! Requests that mean nothing. Whatever arrives, no answer is the server's fault, nothing is written that was not
//! acknowledged, nothing grows, and others are served.

mod fields;
mod framing;
mod slow;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use super::process;
use super::world::list;
use crate::support::{Reply, Server};

/// Memory may grow by what caches take, and by nothing that nonsense leaves behind.
const GROWTH_MAX_KIB: u64 = 64 * 1024;
/// How long a whole request may go unanswered before we stop sending; then the server gives up on it.
const PATIENCE: Duration = Duration::from_millis(200);

/// A server under a rain of nonsense.
struct Target {
    server: Server,
    sent: usize,
    /// Jobs that were acknowledged: some nonsense makes sense.
    created: usize,
    /// Requests without an answer: they may have been carried out.
    unanswered: usize,
    memory_before: u64,
}

impl Target {
    fn start() -> Self {
        let server = Server::start();
        let memory_before = process::memory(&server);
        Self {
            server,
            sent: 0,
            created: 0,
            unanswered: 0,
            memory_before,
        }
    }

    /// A request that is well formed as HTTP.
    #[track_caller]
    fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let reply = self.server.http().send(method, path, headers, body);
        let text = String::from_utf8_lossy(&reply.body);
        let shown = String::from_utf8_lossy(&body[..body.len().min(300)]);
        assert!(
            reply.status < 500,
            "{method} {path} {headers:?} {shown}: {text}"
        );
        if reply.status >= 400 {
            let kind = reply.header("content-type");
            assert_eq!(
                kind,
                Some("application/problem+json"),
                "{method} {path}: {text}"
            );
            let detail = reply.json()["detail"].as_str().map(str::len);
            assert!(detail.is_some_and(|length| length > 5), "{text}");
        }
        self.sent += 1;
        self.created += usize::from(reply.status == 201);
        reply
    }

    /// Bytes as they are. What is known to be cut short is ended at once; anything else has time to be answered.
    #[track_caller]
    fn throw(&mut self, bytes: &[u8], is_cut: bool) -> String {
        let mut stream = TcpStream::connect(&self.server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let _refused_early = stream.write_all(bytes);
        let mut answer = Vec::new();
        if is_cut || is_waiting(stream.read_to_end(&mut answer)) {
            let _gone = stream.shutdown(Shutdown::Write);
            stream
                .set_read_timeout(Some(Duration::from_secs(20)))
                .unwrap();
            let ended = stream.read_to_end(&mut answer);
            let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(300)]);
            assert!(
                !is_waiting(ended),
                "the server still waits after the end of {shown:?}"
            );
        }
        let answer = String::from_utf8_lossy(&answer).into_owned();
        for line in answer.lines().filter(|line| line.starts_with("HTTP/1.")) {
            let status: u16 = line[9..12].parse().unwrap();
            let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(600)]);
            assert!(status < 500, "{answer}\nto {shown:?}");
            self.created += usize::from(status == 201);
        }
        self.sent += 1;
        self.unanswered += usize::from(!is_cut && answer.is_empty());
        answer
    }

    #[track_caller]
    fn end_unharmed(self) {
        let http = self.server.http();
        assert_eq!(http.get("/healthz").status, 200);
        let jobs = list(&http, "/v1/jobs?").len();
        let possible = self.created..=self.created + self.unanswered;
        assert!(possible.contains(&jobs), "{jobs} jobs, not {possible:?}");
        let (before, after) = (self.memory_before, process::memory(&self.server));
        eprintln!(
            "{} requests, {} without an answer, {jobs} jobs, memory {before} to {after} KiB",
            self.sent, self.unanswered
        );
        assert!(after < before + GROWTH_MAX_KIB, "{before} to {after} KiB");
        assert!(
            !self.server.log().contains("panic"),
            "{}",
            self.server.log()
        );
        assert_eq!(self.server.stop().code(), Some(0));
    }
}

fn is_waiting(read: std::io::Result<usize>) -> bool {
    read.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
}
