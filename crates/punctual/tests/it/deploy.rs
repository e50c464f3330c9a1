//! What is in `deploy/`: whether the programs that it is for can read it, and whether it says what the binary does.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use nix::unistd::Uid;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{BINARY, Http, KEYS, Server, program, skip, wait_for};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[track_caller]
fn goes_well(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let said = String::from_utf8_lossy(&stdout).into_owned();
    let error = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{said}{error}");
    said
}

#[test]
fn prometheus_reads_the_rules_and_they_alert_when_they_should() {
    let Some(promtool) = program("promtool") else {
        return;
    };
    let folder = root().join("deploy/prometheus");
    let mut check = Command::new(&promtool);
    let said = goes_well(
        check
            .current_dir(&folder)
            .args(["check", "rules", "punctual.rules.yml"]),
    );
    assert!(said.contains("SUCCESS"), "{said}");
    let mut test = Command::new(&promtool);
    goes_well(
        test.current_dir(&folder)
            .args(["test", "rules", "punctual.rules.test.yml"]),
    );
}

fn dashboard() -> Value {
    let text = fs::read_to_string(root().join("deploy/grafana/punctual.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Every expression of the dashboard, with the variables of its page filled in.
fn expressions(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let panels = panels.filter(|panel| panel["type"] != "row");
    let mut found = Vec::new();
    for panel in panels {
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            assert!(expression.contains("{job=~\"$job\""), "{expression}");
            let filled = expression.replace("$__rate_interval", "5m");
            found.push(filled.replace("$job", ".*"));
        }
    }
    found
}

#[test]
fn prometheus_reads_every_expression_of_the_dashboard() {
    let dashboard = dashboard();
    let expressions = expressions(&dashboard);
    assert!(expressions.len() > 30, "{expressions:?}");
    let mut ids: Vec<i64> = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        ids.push(panel["id"].as_i64().unwrap());
    }
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "two panels have the same id");
    let Some(promtool) = program("promtool") else {
        return;
    };
    let rules: Vec<Value> = expressions
        .iter()
        .enumerate()
        .map(|(at, expression)| serde_json::json!({"record": format!("panel:{at}"), "expr": expression}))
        .collect();
    let groups = serde_json::json!({"groups": [{"name": "dashboard", "rules": rules}]});
    let own = TempDir::new().unwrap();
    // JSON is YAML.
    let path = own.path().join("dashboard.yml");
    fs::write(&path, groups.to_string()).unwrap();
    goes_well(Command::new(promtool).args(["check", "rules"]).arg(path));
}

/// A Prometheus that scrapes a server each second. Dropped, it is killed.
struct Prometheus {
    child: Child,
    http: Http,
    _own: TempDir,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _ended = self.child.wait();
    }
}

impl Prometheus {
    fn start(program: &Path, server: &Server) -> Self {
        let own = TempDir::new().unwrap();
        let rules = root().join("deploy/prometheus/punctual.rules.yml");
        let config = json!({
            "global": {"scrape_interval": "1s"},
            "rule_files": [fs::canonicalize(rules).unwrap()],
            "scrape_configs": [{
                "job_name": "punctual",
                "authorization": {"credentials_file": server.folder().join("root.key")},
                "static_configs": [{"targets": [server.address]}],
            }],
        });
        let path = own.path().join("prometheus.yml");
        fs::write(&path, config.to_string()).unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        let child = Command::new(program)
            .arg(format!("--config.file={}", path.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                own.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let prometheus = Self {
            child,
            http: Http::new(&address),
            _own: own,
        };
        wait_for("Prometheus", || TcpStream::connect(&address).ok());
        wait_for("its storage", || {
            (prometheus.http.get("/-/ready").status == 200).then_some(())
        });
        prometheus
    }

    /// What an expression comes to now.
    #[track_caller]
    fn query(&self, expression: &str) -> Vec<Value> {
        let body = format!("query={}", percent(expression));
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        let path = "/api/v1/query";
        let answer = self
            .http
            .send("POST", path, &headers, body.as_bytes())
            .json();
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        answer["data"]["result"].as_array().unwrap().clone()
    }
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn prometheus_scrapes_a_node_and_answers_what_the_dashboard_wants() {
    let Some(prometheus) = program("prometheus") else {
        return;
    };
    let own = TempDir::new().unwrap();
    let server = Server::start_in(own.path(), &[KEYS]);
    server.is_ready();
    let prometheus = Prometheus::start(&prometheus, &server);
    let nodes = wait_for("the first scrape", || {
        prometheus.query("punctual_nodes").pop()
    });
    assert_eq!(nodes["value"][1], "1", "{nodes}");
    assert_eq!(nodes["metric"]["job"], "punctual");
    let lanes = prometheus.query("punctual_lane_depth");
    assert_eq!(lanes.len(), 3, "{lanes:?}");
    assert_eq!(
        prometheus
            .query("process_resident_memory_bytes > 1e6")
            .len(),
        1
    );
    for expression in expressions(&dashboard()) {
        prometheus.query(&expression);
    }
    let rules = prometheus.http.get("/api/v1/rules").json();
    let groups = rules["data"]["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2, "{rules}");
}

#[test]
fn image_composition_and_chart_are_read_by_their_tools_and_agree_with_the_binary() {
    let python = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../tools/deploy/bin/python");
    if !python.is_file() {
        return skip("hadolint, podman-compose and kubernetes-validate are not installed");
    }
    let script = root().join("scripts/check-deploy");
    let said = goes_well(Command::new(python).arg(script).arg(BINARY));
    assert!(said.contains("are sound"), "{said}");
}

/// What an image would have, without anything to build one.
#[test]
fn a_node_lives_in_the_roots_of_the_image_which_it_cannot_write_to() {
    if !Uid::effective().is_root() {
        return skip("only root can change the root folder");
    }
    let own = TempDir::new().unwrap();
    let image = own.path().join("image");
    goes_well(
        Command::new(root().join("scripts/image-root"))
            .arg(BINARY)
            .arg(&image),
    );
    // Whoever runs tests keeps temporary folders to itself.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(own.path(), open).unwrap();
    assert!(!image.join("bin/sh").exists());
    let chroot = program("chroot").unwrap();
    let image = image.to_str().unwrap();
    let before = ["--userspec=65532:65532", image];
    let inside = Path::new("/usr/local/bin/punctual");
    let data = Path::new("/var/lib/punctual");
    let server = Server::start_inside(&chroot, &before, inside, data);
    server.is_ready();
    let key = Path::new(image).join("var/lib/punctual/root.key");
    assert!(key.is_file(), "the folder for data can be written to");
    let written = Command::new(&chroot)
        .args(before)
        .arg(inside)
        .args(["backup", "/usr/copy.db", "--data", "/var/lib/punctual"])
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&written.stderr);
    assert!(
        !written.status.success() && error.contains("ermission"),
        "{error}"
    );
    assert_eq!(server.stop().code(), Some(0));
}
