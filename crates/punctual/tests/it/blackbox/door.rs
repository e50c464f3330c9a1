//! The front door: who a request is for, and how large its head may be. Byte for byte over TCP.

use crate::support::{Reply, Server};

fn send(server: &Server, headers: &str) -> Reply {
    let head = format!("GET /healthz HTTP/1.1\r\nconnection: close\r\n{headers}\r\n");
    server.http().raw(head.as_bytes())
}

#[track_caller]
fn is_problem(reply: &Reply, status: u16, name: &str) {
    let text = String::from_utf8_lossy(&reply.body);
    assert_eq!(reply.status, status, "{text}");
    let kind = reply.header("content-type");
    assert_eq!(kind, Some("application/problem+json"), "{text}");
    let length = reply.body.len().to_string();
    assert_eq!(reply.header("content-length"), Some(length.as_str()));
    assert_eq!(reply.json()["type"], format!("/problems/{name}"), "{text}");
    assert_eq!(reply.json()["status"], status, "{text}");
}

#[test]
fn a_request_names_one_host() {
    let server = Server::start();
    is_problem(&send(&server, ""), 400, "header-invalid");
    let two = "host: localhost\r\nhost: localhost\r\n";
    is_problem(&send(&server, two), 400, "header-invalid");
    let reply = send(&server, "host: \r\n");
    is_problem(&reply, 400, "header-invalid");
    assert_eq!(reply.json()["field"], "Host");
    let old = server.http().raw(b"GET /healthz HTTP/1.0\r\n\r\n");
    assert_eq!(old.status, 200, "HTTP/1.0 has no Host");
}

#[test]
fn a_name_that_leads_to_the_loopback_address_is_not_answered() {
    let server = Server::start();
    let (_, port) = server.address.split_once(':').unwrap();
    for host in [
        "evil.example",
        "localhost.evil.example:80",
        "169.254.169.254",
    ] {
        let reply = send(&server, &format!("host: {host}\r\n"));
        is_problem(&reply, 421, "host-unknown");
    }
    let whole = "GET http://evil.example/healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let reply = server.http().raw(whole.as_bytes());
    is_problem(&reply, 421, "host-unknown");
    for host in ["localhost", "LOCALHOST.", "127.0.0.1", "127.1.2.3", "[::1]"] {
        for host in [host.to_owned(), format!("{host}:{port}")] {
            let reply = send(&server, &format!("host: {host}\r\n"));
            assert_eq!(reply.status, 200, "{host}");
        }
    }
}

#[test]
fn a_name_that_the_operator_gave_is_answered() {
    let folder = tempfile::TempDir::new().unwrap();
    let named = ["--hosts", "punctual.example, Jobs.example"];
    let server = Server::start_in(folder.path(), &named);
    for host in ["punctual.example", "JOBS.example:7710", "localhost"] {
        let reply = send(&server, &format!("host: {host}\r\n"));
        assert_eq!(reply.status, 200, "{host}");
    }
    is_problem(
        &send(&server, "host: evil.example\r\n"),
        421,
        "host-unknown",
    );
}

#[test]
fn a_head_that_is_too_large_is_answered_with_a_problem() {
    let server = Server::start();
    let long = format!("host: localhost\r\nx: {}\r\n", "y".repeat(40_000));
    is_problem(&send(&server, &long), 431, "head-too-large");
    let many = format!("host: localhost\r\n{}", "x: y\r\n".repeat(100));
    is_problem(&send(&server, &many), 431, "head-too-large");
    let page = server.http().get("/problems/head-too-large");
    assert_eq!(page.status, 200);
}
