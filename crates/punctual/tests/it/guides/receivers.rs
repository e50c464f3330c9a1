use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::block;
use crate::support::{Http, Server, list, program, wait_for};

/// A receiver of the guide under way. Dropped, it is killed.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _ended = self.0.wait();
    }
}

/// The program of the guide below a heading, as a file.
fn program_of(heading: &str, language: &str, file: &Path) {
    fs::write(file, block("docs/guides/receivers.md", heading, language)).unwrap();
}

/// It answers a job's run, does its work once although the run comes again, and then the work of another.
fn works_once(program: &Path, arguments: &[&str]) {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let mut child = Command::new(program)
        .args(arguments)
        .arg(port.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let _running = Running(child);
    let address = format!("127.0.0.1:{port}");
    wait_for("the receiver", || TcpStream::connect(&address).ok());

    let server = Server::start();
    let create = format!("job create --in 0s --url http://{address}/ --payload '{{\"n\": 1}}'");
    server.printed(&create);
    let run = wait_for("its run", || {
        let runs = list(&server.http(), "/v1/runs?");
        runs.into_iter().find(|run| run["state"] == "succeeded")
    });
    let run = run["id"].as_str().unwrap();
    let again =
        |run: &str| Http::new(&address).send("POST", "/", &[("idempotency-key", run)], b"{}");
    assert_eq!(again(run).status, 200);
    assert_eq!(again("another").status, 200);
    let mut said = || lines.next().unwrap().unwrap();
    assert_eq!(said(), format!("working on {run} {{\"n\": 1}}"));
    assert_eq!(said(), "working on another {}");
}

#[test]
fn the_receiver_in_python_works_once() {
    if let Some(python) = program("python3") {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("receiver.py");
        program_of("### Python", "python", &path);
        works_once(&python, &[path.to_str().unwrap()]);
    }
}

#[test]
fn the_receiver_in_javascript_works_once() {
    if let Some(node) = program("node") {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("receiver.js");
        program_of("### JavaScript", "javascript", &path);
        works_once(&node, &[path.to_str().unwrap()]);
    }
}

/// Only where there is a compiler: it is too large to be installed for this.
#[test]
fn the_receiver_in_go_works_once_where_there_is_go() {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut paths = std::env::split_paths(&paths).map(|folder| folder.join("go"));
    let Some(go) = paths.find(|path| path.is_file()) else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let (path, built) = (
        folder.path().join("receiver.go"),
        folder.path().join("receiver"),
    );
    program_of("### Go", "go", &path);
    let mut build = Command::new(go);
    build.arg("build").arg("-o").arg(&built).arg(&path);
    assert!(build.status().unwrap().success());
    works_once(&built, &[]);
}
