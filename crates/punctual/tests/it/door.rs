//! The front door of the real binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::cli::fails;
use crate::support::{BINARY, KEYS, Server, punctual, skip, wait_for};

#[test]
fn lines_of_the_log_name_the_request_they_are_about() {
    let own = TempDir::new().unwrap();
    let server = Server::start_in(own.path(), &["--log", "debug"]);
    let headers = [("x-request-id", "order-7")];
    let reply = server.http().send("GET", "/v1/jobs", &headers, b"");
    assert_eq!(reply.header("x-request-id"), Some("order-7"));
    let is_it = |line: &&str| line.contains("answered") && line.contains("order-7");
    wait_for("the line", || server.log().lines().find(is_it).map(|_| ()));
}

/// A folder with an authority and two pairs that it signed; none without openssl.
pub(crate) fn certificates() -> Option<TempDir> {
    let folder = TempDir::new().unwrap();
    let new = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30";
    let mut calls = vec![format!("{new} -subj /CN=ca -keyout ca.key -out ca.pem")];
    calls.extend(["one", "two"].map(|name| {
        format!(
            "{new} -subj /CN={name} -CA ca.pem -CAkey ca.key -addext subjectAltName=IP:127.0.0.1 \
             -addext basicConstraints=critical,CA:FALSE -keyout {name}.key -out {name}.pem"
        )
    }));
    for call in calls {
        let mut openssl = Command::new("openssl");
        let made = openssl.args(call.split_whitespace());
        match made.current_dir(folder.path()).output() {
            Ok(made) => assert!(made.status.success(), "{made:?}"),
            Err(error) => {
                skip(&format!("openssl: {error}"));
                return None;
            }
        }
    }
    Some(folder)
}

pub(crate) fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

fn at_home(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(arguments).env_clear().env("HOME", home);
    command
}

#[test]
fn commands_speak_tls_with_a_server_whose_authority_they_trust() {
    let Some(files) = certificates() else { return };
    let own = TempDir::new().unwrap();
    let (cert, key, ca) = (
        path(&files, "one.pem"),
        path(&files, "one.key"),
        path(&files, "ca.pem"),
    );
    let flags = [
        "--tls-cert",
        &cert,
        "--tls-key",
        &key,
        "--tls-client-ca",
        &ca,
    ];
    let server = Server::start_in(own.path(), &[&[KEYS], &flags[..]].concat());
    assert!(server.url().starts_with("https://"));
    fails(&server.cli("job list"), 3, &["--server-ca"]);
    let as_one = format!("--server-ca {ca} --client-cert {cert} --client-key {key}");
    server.printed(&format!("job list {as_one}"));
    let anonymous = server.cli(&format!("job list --server-ca {ca}"));
    assert_eq!(anonymous.status.code(), Some(3), "{anonymous:?}");
    let half = server.cli(&format!("job list --server-ca {ca} --client-cert {cert}"));
    fails(&half, 2, &["--client-key"]);

    // A login keeps the files as well.
    let home = TempDir::new().unwrap();
    let url = server.url();
    let words = as_one.split(' ');
    let login: Vec<&str> = ["login", &url].into_iter().chain(words).collect();
    fs::write(home.path().join("key"), server.root_key()).unwrap();
    let stdin = fs::File::open(home.path().join("key")).unwrap();
    let output = at_home(home.path(), &login).stdin(stdin).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let output = at_home(home.path(), &["job", "list"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_certificate_is_replaced_while_the_server_runs() {
    let Some(files) = certificates() else { return };
    let own = TempDir::new().unwrap();
    let (cert, key) = (path(&files, "now.pem"), path(&files, "now.key"));
    let use_pair = |name: &str| {
        for end in ["pem", "key"] {
            let beside = files.path().join("beside");
            fs::copy(files.path().join(format!("{name}.{end}")), &beside).unwrap();
            fs::rename(beside, files.path().join(format!("now.{end}"))).unwrap();
        }
    };
    use_pair("one");
    let server = Server::start_in(own.path(), &["--tls-cert", &cert, "--tls-key", &key]);
    let subject = || {
        let line = format!(
            "openssl s_client -connect {} </dev/null 2>/dev/null | openssl x509 -noout -subject",
            server.address
        );
        let output = Command::new("bash").args(["-c", &line]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(subject().contains("one"), "{}", subject());
    fs::write(files.path().join("now.pem"), "nothing").unwrap();
    let said = "stays in use";
    wait_for("the warning", || server.log().contains(said).then_some(()));
    assert!(subject().contains("one"), "the old one is kept");
    use_pair("two");
    server.signal(Signal::SIGHUP);
    wait_for("the new one", || subject().contains("two").then_some(()));
    assert_eq!(server.log().matches(said).count(), 1, "said once");
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn what_cannot_listen_safely_does_not_start() {
    let folder = TempDir::new().unwrap();
    let data: PathBuf = folder.path().join("data");
    let serve = |more: &str| punctual(&format!("serve --data {} {more}", data.display()));
    let everywhere = serve("--listen 0.0.0.0:0");
    fails(&everywhere, 2, &["0.0.0.0:0", "--tls-cert", "--plain-http"]);
    let open = serve("--listen 0.0.0.0:0 --plain-http --insecure-no-auth");
    fails(&open, 2, &["--insecure-no-auth"]);
    fails(&serve("--tls-cert a.pem"), 2, &["--tls-key"]);
    let absent = serve("--listen 127.0.0.1:0 --tls-cert a.pem --tls-key a.key");
    fails(&absent, 2, &["a.pem"]);
    assert!(!data.exists(), "nothing was touched");
    let server = Server::start_in(&data, &[KEYS, "--listen", "0.0.0.0:0", "--plain-http"]);
    assert!(server.log().contains("without TLS"), "{}", server.log());
}
