//! Clients that never finish.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::super::world::{now, pause};
use crate::support::Server;

const STALLED: usize = 100;
/// By then a stalled connection must be gone, in milliseconds.
const PATIENCE: i64 = 60_000;
/// How long anybody else may have to wait, on a busy machine, in milliseconds.
const AT_ONCE: i64 = 3_000;

enum Stall {
    /// Says nothing more.
    Silent,
    /// A little at a time.
    Dripping,
}

/// A connection that begins a request, each in its own way.
fn stalled(server: &Server, number: usize) -> (TcpStream, Stall) {
    let head = "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\n";
    let body = format!("{head}content-type: application/json\r\ncontent-length: 1000\r\n\r\n{{");
    let (text, stall) = match number % 5 {
        0 => ("", Stall::Silent),
        1 => (head, Stall::Silent),
        2 => (head, Stall::Dripping),
        3 => (body.as_str(), Stall::Silent),
        _ => (body.as_str(), Stall::Dripping),
    };
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    stream.set_nonblocking(true).unwrap();
    (stream, stall)
}

/// Whether the server still waits for it.
fn is_open((stream, stall): &mut (TcpStream, Stall)) -> bool {
    if matches!(stall, Stall::Dripping) && stream.write_all(b" ").is_err() {
        return false;
    }
    let mut rest = [0; 1_024];
    for _ in 0..8 {
        match stream.read(&mut rest) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
    true
}

#[test]
fn clients_that_stall_are_let_go_and_hold_up_nobody() {
    let server = Server::start();
    let begun = now();
    let mut clients: Vec<_> = (0..STALLED)
        .map(|number| stalled(&server, number))
        .collect();
    let mut slowest = 0;
    while !clients.is_empty() {
        let left = clients.len();
        assert!(now() - begun < PATIENCE, "{left} are still held on to");
        let sent_at = now();
        assert_eq!(server.http().get("/healthz").status, 200);
        assert_eq!(server.http().get("/v1/jobs").status, 200);
        slowest = slowest.max(now() - sent_at);
        pause(Duration::from_secs(1));
        clients.retain_mut(is_open);
    }
    eprintln!(
        "let go after {} ms; others waited for {slowest} ms at most",
        now() - begun
    );
    assert!(slowest < AT_ONCE, "{slowest} ms");
}
