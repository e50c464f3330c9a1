//! Scripts as jobs of a server.

use nix::unistd::Uid;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::shell::{ended, started};
use crate::support::{Http, KEYS, Server, program, skip, wait_for};

/// What a server is started with that may run scripts, if there can be sandboxes.
fn allowing(allow: &str) -> Option<Vec<String>> {
    if program("bwrap").is_none() {
        skip("there is no bubblewrap");
        return None;
    }
    let mut arguments = vec!["--python-allow".to_owned(), allow.to_owned()];
    if Uid::effective().is_root() {
        arguments.extend(["--python-user".to_owned(), "nobody".to_owned()]);
    }
    Some(arguments)
}

fn start(folder: &TempDir, arguments: &[String]) -> (Server, Http) {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let server = Server::start_in(folder.path(), &arguments);
    let http = server.http();
    (server, http)
}

fn job(source: &str) -> Value {
    json!({"schedule": "@yearly", "target": {"python": {"source": source}},
        "retry": {"attempts_max": 2, "delay_first": "1ms", "jitter": 0}})
}

#[test]
fn scripts_are_refused_unless_their_interpreter_is_allowed() {
    let folder = TempDir::new().unwrap();
    let server = Server::start_in(folder.path(), &[]);
    let refused = server.http().post("/v1/jobs", &job("print(1)"));
    assert_eq!(refused.status, 422);
    let refused = refused.json();
    assert_eq!(refused["type"], "/problems/command-refused");
    assert_eq!(refused["field"], "target.python");
    assert!(
        refused["detail"].to_string().contains("--python-allow"),
        "{refused}"
    );
    server.stop();
    let Some(arguments) = allowing("/usr/bin/python3") else {
        return;
    };
    let (_server, http) = start(&folder, &arguments);
    let mut body = job("print(1)");
    assert_eq!(http.post("/v1/jobs", &body).status, 201);
    body["target"]["python"]["interpreter"] = json!("/usr/bin/perl");
    let refused = http.post("/v1/jobs", &body).json();
    assert_eq!(refused["field"], "target.python.interpreter");
    // A command is no script.
    let shell =
        json!({"schedule": "@yearly", "target": {"shell": {"command": ["/usr/bin/python3"]}}});
    assert_eq!(
        http.post("/v1/jobs", &shell).json()["field"],
        "target.shell"
    );
    for field in ["script_url", "script", "network"] {
        let mut body = job("print(1)");
        body["target"]["python"][field] = json!("x");
        assert_eq!(http.post("/v1/jobs", &body).status, 422, "{field}");
    }
}

#[test]
fn a_node_without_a_sandbox_says_so_and_refuses_scripts() {
    let Some(mut arguments) = allowing("/usr/bin/python3") else {
        return;
    };
    arguments.extend([
        "--python-bwrap".to_owned(),
        "/usr/bin/no-such-bwrap".to_owned(),
    ]);
    let folder = TempDir::new().unwrap();
    let (server, http) = start(&folder, &arguments);
    let why = "there is no /usr/bin/no-such-bwrap: install the package bubblewrap";
    assert!(server.log().contains(why), "{}", server.log());
    let refused = http.post("/v1/jobs", &job("print(1)"));
    assert_eq!(refused.status, 422);
    let refused = refused.json();
    assert_eq!(refused["field"], "target.python");
    assert!(refused["detail"].to_string().contains(why), "{refused}");
}

#[test]
fn what_one_tenant_may_run_no_other_may() {
    let folder = TempDir::new().unwrap();
    let start = |allow: &str| {
        let arguments = allowing(allow)?.into_iter().chain([KEYS.to_owned()]);
        let arguments: Vec<String> = arguments.collect();
        Some(start(&folder, &arguments))
    };
    let Some((server, http)) = start("/usr/bin/") else {
        return;
    };
    let keys = ["ann", "bob"].map(|name| {
        server.printed(&format!("tenant create {name}"));
        let made = server.printed(&format!("key create --tenant {name} --role admin"));
        made.trim().to_owned()
    });
    let ann = http.with_key(&keys[0]);
    let says = job("import os\nprint(os.environ['PUNCTUAL_TENANT'])");
    let run = ended(&ann, &started(&ann, &ann.post("/v1/jobs", &says).json()));
    let id = run["attempts"][0]["output"].as_str().unwrap().trim();
    server.stop();
    let Some((server, _)) = start(&format!("{id}=/usr/bin/python3")) else {
        return;
    };
    let [ann, bob] = keys.map(|key| server.http().with_key(&key));
    assert_eq!(bob.post("/v1/jobs", &job("print(1)")).status, 422);
    let made = ann.post("/v1/jobs", &job("print(1)")).json();
    assert_eq!(ended(&ann, &started(&ann, &made))["state"], "succeeded");
}

#[test]
fn a_script_is_shown_changed_run_and_followed() {
    let Some(arguments) = allowing("/usr/bin/") else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let (server, http) = start(&folder, &arguments);
    let secret = json!({"value": "planted secret", "hosts": ["python"]}).to_string();
    let headers = [("content-type", "application/json")];
    let made = http.send("PUT", "/v1/secrets/api", &headers, secret.as_bytes());
    assert!(made.status < 300, "{}", made.json());
    let source = "import os, sys, time\n\
        print('begun', os.environ['A'], os.environ['TOKEN'], flush=True)\n\
        time.sleep(3)\n\
        os.write(3, b'{\"result\": 42}')\n\
        sys.exit(int(sys.argv[1]))\n";
    let mut body = job(source);
    let python = &mut body["target"]["python"];
    python["args"] = json!(["7"]);
    python["env"] = json!({"A": "x {{ secret('api') }}", "TOKEN": "planted-token"});
    python["success"] = json!([7]);
    let made = http.post("/v1/jobs", &body).json();
    let shown = &made["target"]["python"];
    assert_eq!(shown["env"]["TOKEN"], "***", "{made}");
    assert_eq!(
        (&shown["source"], &shown["interpreter"]),
        (&json!(source), &json!("/usr/bin/python3"))
    );
    let run = started(&http, &made);
    wait_for("its log", || {
        let log = http.get(&format!("/v1/runs/{run}/log")).json().to_string();
        log.contains("begun x *** ***").then_some(())
    });
    assert_eq!(
        http.get(&format!("/v1/runs/{run}")).json()["state"],
        "running"
    );
    let run = ended(&http, &run);
    let attempt = &run["attempts"][0];
    assert_eq!(
        (&run["state"], &attempt["status"], &attempt["output"]),
        (&json!("succeeded"), &json!(7), &json!("42"))
    );
    assert!(attempt["cost"]["cpu_ms"].as_f64() > Some(0.0), "{run}");
    // Another script does not get what is not shown.
    let path = format!("/v1/jobs/{}", made["id"].as_str().unwrap());
    let patch = |python: Value| {
        let body = json!({"target": {"python": python}}).to_string();
        http.send("PATCH", &path, &headers, body.as_bytes())
    };
    let moved = patch(json!({"source": "print(open('/proc/self/environ').read())"}));
    assert_eq!(moved.status, 422);
    assert_eq!(moved.json()["field"], "target.python.env.TOKEN");
    let kept = patch(json!({"args": ["0"], "success": null, "env": {"TOKEN": "***"}}));
    assert_eq!(kept.status, 200, "{}", kept.json());
    assert!(
        server
            .printed("job list")
            .contains("/usr/bin/python3 import os")
    );
}

#[test]
fn a_cancel_and_a_timeout_end_a_script() {
    let Some(arguments) = allowing("/usr/bin/") else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let (_server, http) = start(&folder, &arguments);
    let mut body = job("import time\nprint('begun', flush=True)\ntime.sleep(1000)");
    body["timeout"] = json!("3s");
    body["retry"]["attempts_max"] = json!(1);
    let made = http.post("/v1/jobs", &body).json();
    let run = ended(&http, &started(&http, &made));
    let attempt = &run["attempts"][0];
    assert_eq!(
        (&attempt["outcome"], &attempt["output"]),
        (&json!("timed_out"), &json!("begun\n"))
    );
    let run = started(&http, &made);
    http.post(&format!("/v1/runs/{run}/cancel"), &json!({}));
    assert_eq!(ended(&http, &run)["state"], "cancelled");
}
