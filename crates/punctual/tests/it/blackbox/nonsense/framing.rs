//! Bytes that are hardly HTTP.

use std::fmt::Write as _;

use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use serde_json::json;

use super::Target;
use crate::support::seed;

const JSON: (&str, &str) = ("content-type", "application/json");
const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");

/// A whole request that makes a job.
fn whole() -> String {
    let job =
        json!({ "schedule": { "at": "2099-01-01T00:00:00Z" }, "target": "http://127.0.0.1:9/",
        "payload": { "text": "hello", "number": [1, 2.5, -3e10] } })
        .to_string();
    format!(
        "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{job}",
        job.len()
    )
}

/// A request with these headers and this body, framed as they say.
fn framed(headers: &str, body: &str) -> Vec<u8> {
    format!("POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}\r\n\r\n{body}").into_bytes()
}

/// What each says about its length, or about anything else, is wrong.
fn broken_frames() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for headers in [
        "content-length: 2\r\ntransfer-encoding: chunked",
        "content-length: 2\r\ncontent-length: 3",
        "content-length: -1",
        "content-length: abc",
        "content-length: +2",
        "content-length: 99999999999999999999",
        "transfer-encoding: chunked, identity",
        "transfer-encoding: gzip",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        "no colon here",
        ": no name",
        "x : space before the colon",
        "x: a\r\n folded: b\r\ncontent-length: 2",
        "x: \0\r\ncontent-length: 2",
        "expect: a miracle\r\ncontent-length: 2",
        "upgrade: websocket\r\ncontent-length: 2",
    ] {
        frames.push(framed(headers, "{}"));
    }
    for chunks in [
        "zz\r\n{}\r\n0\r\n\r\n",
        "FFFFFFFFFFFFFFFFF\r\n{}",
        "-1\r\n{}\r\n",
        "2\r\n{}x\r\n0\r\n\r\n",
        "2;a=b;c\r\n{}\r\n0\r\nx: y\r\n\r\n",
        "0\r\n\r\n",
        "2\r\n{",
    ] {
        frames.push(framed("transfer-encoding: chunked", chunks));
    }
    for start in [
        "GET",
        "GET /",
        "GET / HTTP/9.9",
        "GET / HTTP/2.0",
        "get / http/1.1",
        "G\0T / HTTP/1.1",
        "GET  /  HTTP/1.1",
        "GET /\u{7f} HTTP/1.1",
        "FOO /v1/jobs HTTP/1.1",
        "CONNECT a:1 HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "GET http://other/healthz HTTP/1.1",
        "",
        "\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\u{1}\u{2}\u{3}garbage instead of frames",
        "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3}",
    ] {
        frames
            .push(format!("{start}\r\nhost: localhost\r\nconnection: close\r\n\r\n").into_bytes());
    }
    frames
}

/// Heads that are too large in one way or another.
fn large_heads() -> Vec<Vec<u8>> {
    let mut many = String::new();
    for n in 0..2_000 {
        write!(many, "x-{n}: y\r\n").unwrap();
    }
    vec![
        framed(&format!("{many}content-length: 2"), "{}"),
        framed(
            &format!("x: {}\r\ncontent-length: 2", "y".repeat(100_000)),
            "{}",
        ),
        framed(
            &format!("{}: y\r\ncontent-length: 2", "x".repeat(100_000)),
            "{}",
        ),
        format!(
            "GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n",
            "a".repeat(1_000_000)
        )
        .into_bytes(),
        format!(
            "{} / HTTP/1.1\r\nhost: localhost\r\n\r\n",
            "A".repeat(100_000)
        )
        .into_bytes(),
    ]
}

#[test]
fn bytes_that_are_hardly_http_do_no_harm() {
    let seed = seed();
    let mut random = StdRng::seed_from_u64(seed);
    let mut target = Target::start();
    for frame in broken_frames().iter().chain(&large_heads()) {
        let answer = target.throw(frame, false);
        assert!(!answer.contains(" 201 "), "{answer}");
    }
    let whole = whole().into_bytes();
    for _ in 0..300 {
        let mut noise = vec![0; random.random_range(1..400)];
        random.fill_bytes(&mut noise);
        target.throw(&noise, true);
        let cut = random.random_range(0..whole.len());
        let answer = target.throw(&whole[..cut], true);
        assert!(!answer.contains(" 201 "), "cut at {cut}: {answer}");
    }
    for _ in 0..300 {
        let mut bytes = whole.clone();
        for _ in 0..random.random_range(1..4) {
            let at = random.random_range(0..bytes.len());
            match random.random_range(0..3) {
                0 => bytes[at] = random.random(),
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, random.random()),
            }
        }
        target.throw(&bytes, false);
    }
    target.end_unharmed();
}

#[test]
fn bodies_that_are_hardly_json_do_no_harm() {
    let seed = seed();
    let mut random = StdRng::seed_from_u64(seed);
    let mut target = Target::start();
    let deep = |open: &str, count: usize| open.repeat(count).into_bytes();
    let mut bodies = vec![
        deep("[", 100_000),
        deep("{\"a\":", 100_000),
        deep("{\"payload\":[", 300),
        deep("9", 900_000),
        deep(" ", 1_000_000),
        deep("x", 2_000_000),
        b"\xef\xbb\xbf{}".to_vec(),
        b"{\"key\":\"\xff\xfe\"}".to_vec(),
        b"\xff\xfe{\0}\0".to_vec(),
        Vec::new(),
    ];
    let whole = whole();
    let (_, job) = whole.split_once("\r\n\r\n").unwrap();
    for _ in 0..500 {
        let mut bytes = job.as_bytes().to_vec();
        bytes.truncate(random.random_range(1..=bytes.len()));
        let at = random.random_range(0..bytes.len());
        bytes[at] = random.random();
        bodies.push(bytes);
    }
    for body in &bodies {
        target.send("POST", "/v1/jobs", &[JSON], body);
        let lines = target
            .server
            .http()
            .send("POST", "/v1/jobs/batch", &[NDJSON], body);
        let lines = String::from_utf8(lines.body).unwrap();
        assert!(!lines.contains("\"status\":5"), "{lines}");
        target.created += lines.matches("\"status\":201").count();
        target.sent += 1;
    }
    target.end_unharmed();
}

/// Where an id, a number or a word belongs.
const JUNK: [&str; 22] = [
    "",
    "%00",
    "%ff",
    "%",
    "%zz",
    "..",
    "../..",
    "job_",
    "run_0",
    "job_zz92f0c1a2b37def8123456789abcdef",
    "-1",
    "0",
    "1e9",
    "99999999999999999999",
    "a%20b",
    "%F0%9F%98%80",
    "null",
    "a,b,,c",
    "a:b",
    ":",
    "&",
    "=",
];

#[test]
fn paths_parameters_and_headers_of_nonsense_are_refused() {
    let mut target = Target::start();
    let long = "x".repeat(5_000);
    for junk in JUNK.iter().copied().chain([long.as_str()]) {
        for path in [
            format!("/v1/jobs/{junk}"),
            format!("/v1/jobs/by-key/{junk}"),
            format!("/v1/runs/{junk}"),
            format!("/v1/jobs/{junk}/runs"),
            format!("/problems/{junk}"),
            format!("/{junk}"),
        ] {
            for method in ["GET", "DELETE", "PATCH", "POST", "PUT", "HEAD"] {
                target.throw_request(method, &path);
            }
        }
        for name in [
            "limit",
            "cursor",
            "state",
            "label",
            "q",
            "job",
            "nobody-knows",
        ] {
            for list in ["/v1/jobs", "/v1/runs"] {
                target.send("GET", &format!("{list}?{name}={junk}"), &[], b"");
                target.send(
                    "GET",
                    &format!("{list}?{name}={junk}&{name}={junk}"),
                    &[],
                    b"",
                );
            }
        }
        for name in [
            "if-match",
            "if-none-match",
            "idempotency-key",
            "content-type",
            "accept",
        ] {
            let headers = [(name, junk)];
            target.send("POST", "/v1/jobs", &headers, b"{}");
            target.send("GET", "/v1/jobs", &headers, b"");
        }
    }
    target.end_unharmed();
}

impl Target {
    /// An answer to HEAD has no body, so less of it is checked.
    #[track_caller]
    fn throw_request(&mut self, method: &str, path: &str) {
        if method == "HEAD" {
            let head =
                format!("HEAD {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
            self.throw(head.as_bytes(), false);
        } else {
            self.send(method, path, &[], b"");
        }
    }
}
