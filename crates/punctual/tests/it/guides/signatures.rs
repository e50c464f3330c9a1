//! The functions of the guide that check signatures: against the published vector, and against what a server sends.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::block;
use crate::support::{Receiver, Server, program, wait_for};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
const PUBLISHED_AT: i64 = 1_614_265_330;

fn published() -> Value {
    json!({
        "secret": SECRET,
        "headers": {
            "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "webhook-timestamp": PUBLISHED_AT.to_string(),
            "webhook-signature": SIGNATURE,
        },
        "body": "{\"test\": 2432232314}",
        "now": PUBLISHED_AT,
    })
}

/// What a server with this signing secret sends.
fn sent() -> Value {
    let (server, receiver) = (Server::start(), Receiver::start());
    let script = format!("echo {SECRET} | punctual signing create --stdin");
    assert!(server.bash(&script).status.success());
    let url = receiver.url("/");
    server.printed(&format!(
        "job create --in 0s --url {url} --payload '{{\"n\": 1}}'"
    ));
    wait_for("the callback", || (receiver.count() == 1).then_some(()));
    let delivery = receiver.deliveries().remove(0);
    let body = String::from_utf8(delivery.body).unwrap();
    json!({"secret": SECRET, "headers": delivery.headers, "body": body, "now": null})
}

/// A case with something changed in it.
fn with(case: &Value, change: impl Fn(&mut Value)) -> Value {
    let mut case = case.clone();
    change(&mut case);
    case
}

/// Cases, and whether each is signed.
fn cases() -> Vec<(&'static str, Value, bool)> {
    let (published, sent) = (published(), sent());
    let at = |now: i64| with(&published, |it| it["now"] = json!(now));
    let signed = |text: String| {
        with(&published, |it| {
            it["headers"]["webhook-signature"] = json!(text);
        })
    };
    let body = with(&published, |it| it["body"] = json!("{}"));
    let other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let secret = with(&sent, |it| it["secret"] = json!(other));
    vec![
        ("late", at(PUBLISHED_AT + 301), false),
        ("early", at(PUBLISHED_AT - 301), false),
        ("another body", body, false),
        ("another secret", secret, false),
        (
            "two signatures",
            signed(format!("v1,AAAA {SIGNATURE}")),
            true,
        ),
        (
            "another version",
            signed(SIGNATURE.replace("v1", "v2")),
            false,
        ),
        ("published", published.clone(), true),
        ("sent", sent, true),
    ]
}

/// Feeds a program the cases, each of which it is to answer with true or false.
fn checks(program: &Path, arguments: &[&str]) {
    for (name, case, expected) in cases() {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(case.to_string().as_bytes()).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap().to_lowercase();
        assert_eq!(said.trim(), expected.to_string(), "{name}: {case}");
    }
}

fn written(folder: &TempDir, heading: &str, language: &str, file: &str, rest: &str) -> PathBuf {
    let path = folder.path().join(file);
    let text = block("docs/guides/receivers.md", heading, language);
    fs::write(&path, format!("{text}\n\n{rest}\n")).unwrap();
    path
}

#[test]
fn the_check_of_signatures_in_python_knows_ours_and_refuses_others() {
    if let Some(python) = program("python3") {
        let folder = TempDir::new().unwrap();
        let rest = "import json, sys\ncase = json.load(sys.stdin)\n\
            print(is_signed(case['secret'], case['headers'], case['body'].encode(), case['now']))";
        let path = written(
            &folder,
            "### Signatures in Python",
            "python",
            "check.py",
            rest,
        );
        checks(&python, &[path.to_str().unwrap()]);
    }
}

#[test]
fn the_check_of_signatures_in_javascript_knows_ours_and_refuses_others() {
    if let Some(node) = program("node") {
        let folder = TempDir::new().unwrap();
        let rest = "const it = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));\n\
            console.log(isSigned(it.secret, it.headers, Buffer.from(it.body), it.now ?? undefined));";
        let heading = "### Signatures in JavaScript";
        let path = written(&folder, heading, "javascript", "check.js", rest);
        checks(&node, &[path.to_str().unwrap()]);
    }
}

/// Only where there is a compiler: it is too large to be installed for this.
#[test]
fn the_check_of_signatures_in_go_knows_ours_and_refuses_others_where_there_is_go() {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut paths = std::env::split_paths(&paths).map(|folder| folder.join("go"));
    let Some(go) = paths.find(|path| path.is_file()) else {
        eprintln!("skipped: go is not installed");
        return;
    };
    let folder = TempDir::new().unwrap();
    let check = written(&folder, "### Signatures in Go", "go", "check.go", "");
    let main = folder.path().join("main.go");
    fs::write(&main, GO_MAIN).unwrap();
    let built = folder.path().join("check");
    let mut build = Command::new(go);
    build
        .arg("build")
        .arg("-o")
        .arg(&built)
        .arg(&check)
        .arg(&main);
    assert!(build.status().unwrap().success());
    checks(&built, &[]);
}

const GO_MAIN: &str = r#"package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"
)

func main() {
	var it struct {
		Secret, Body string
		Headers      map[string]string
		Now          *int64
	}
	if err := json.NewDecoder(os.Stdin).Decode(&it); err != nil {
		panic(err)
	}
	headers := http.Header{}
	for name, value := range it.Headers {
		headers.Set(name, value)
	}
	now := time.Now()
	if it.Now != nil {
		now = time.Unix(*it.Now, 0)
	}
	fmt.Println(isSigned(it.Secret, headers, []byte(it.Body), now))
}
"#;
