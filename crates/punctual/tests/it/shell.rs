//! Commands as jobs of a server.

use std::fs;

use nix::unistd::Uid;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Http, KEYS, Server, wait_for, wait_within};

/// The processes that have this text in their environment. A zombie has none.
fn processes_with(text: &str) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let found = fs::read(entry.path().join("environ")).unwrap_or_default();
        let holds = found.windows(text.len()).any(|at| at == text.as_bytes());
        holds.then_some(pid)
    });
    pids.collect()
}

fn all_gone(text: &str) {
    let gone = || processes_with(text).is_empty().then_some(());
    wait_within(10, "its processes to end", gone);
}

/// Whoever runs these tests may be root.
pub(crate) fn allowing(allow: &str) -> Vec<String> {
    let mut arguments = vec!["--shell-allow".to_owned(), allow.to_owned()];
    if Uid::effective().is_root() {
        arguments.extend(["--shell-user".to_owned(), "root".to_owned()]);
    }
    arguments
}

pub(crate) fn start(folder: &TempDir, allow: &str) -> (Server, Http) {
    let arguments = allowing(allow);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let server = Server::start_in(folder.path(), &arguments);
    let http = server.http();
    (server, http)
}

pub(crate) fn job(command: &[&str]) -> Value {
    json!({"schedule": "@yearly", "target": {"shell": {"command": command}},
        "retry": {"attempts_max": 2, "delay_first": "1ms", "jitter": 0}})
}

pub(crate) fn started(http: &Http, job: &Value) -> String {
    let id = job["id"].as_str().unwrap_or_else(|| panic!("{job}"));
    let run = http.post(&format!("/v1/jobs/{id}/run"), &json!({})).json();
    run["id"].as_str().unwrap().to_owned()
}

pub(crate) fn ended(http: &Http, run: &str) -> Value {
    wait_for("the run to end", || {
        let run = http.get(&format!("/v1/runs/{run}")).json();
        ["succeeded", "dead", "cancelled"]
            .contains(&run["state"].as_str().unwrap())
            .then_some(run)
    })
}

#[test]
fn commands_are_refused_unless_they_are_allowed() {
    let folder = TempDir::new().unwrap();
    let server = Server::start_in(folder.path(), &[]);
    let refused = server.http().post("/v1/jobs", &job(&["/bin/true"]));
    assert_eq!(refused.status, 422);
    let refused = refused.json();
    assert_eq!(refused["type"], "/problems/command-refused");
    assert_eq!(refused["field"], "target.shell");
    assert_eq!(
        refused["detail"],
        "this node starts no commands: its operator can allow programs and folders with --shell-allow, such as --shell-allow \
         /bin/true"
    );
    server.stop();
    let (_server, http) = start(&folder, "/bin/true,/opt/jobs/");
    let refused = http.post("/v1/jobs", &job(&["/bin/false"])).json();
    assert_eq!(refused["field"], "target.shell.command");
    assert_eq!(http.post("/v1/jobs", &job(&["/bin/true"])).status, 201);
}

#[test]
fn what_one_tenant_may_start_no_other_may() {
    let folder = TempDir::new().unwrap();
    let start = |allow: &str| {
        let arguments = [allowing(allow), vec![KEYS.to_owned()]].concat();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Server::start_in(folder.path(), &arguments)
    };
    let server = start("/bin/");
    let keys = ["ann", "bob"].map(|name| {
        server.printed(&format!("tenant create {name}"));
        let made = server.printed(&format!("key create --tenant {name} --role admin"));
        made.trim().to_owned()
    });
    let ann = server.http().with_key(&keys[0]);
    let says = job(&["/bin/sh", "-c", "echo $PUNCTUAL_TENANT"]);
    let run = ended(&ann, &started(&ann, &ann.post("/v1/jobs", &says).json()));
    let id = run["attempts"][0]["output"].as_str().unwrap().trim();
    server.stop();
    let server = start(&format!("{id}=/bin/sh,/bin/true"));
    let [ann, bob] = [0, 1].map(|at| server.http().with_key(&keys[at]));
    let refused = bob.post("/v1/jobs", &job(&["/bin/sh", "-c", "id"]));
    assert_eq!(refused.status, 422);
    assert_eq!(refused.json()["type"], "/problems/command-refused");
    for (who, command) in [
        (&ann, &["/bin/sh", "-c", "exit 0"][..]),
        (&ann, &["/bin/true"]),
        (&bob, &["/bin/true"]),
    ] {
        let run = started(who, &who.post("/v1/jobs", &job(command)).json());
        assert_eq!(ended(who, &run)["state"], "succeeded");
    }
    // What was written while it was allowed is refused by whoever starts it.
    let kept = bob.post("/v1/jobs", &job(&["/bin/true"])).json();
    server.stop();
    let server = start(&format!("{id}=/bin/sh"));
    let bob = server.http().with_key(&keys[1]);
    let run = ended(&bob, &started(&bob, &kept));
    assert_eq!(
        (&run["state"], &run["attempt"]),
        (&json!("dead"), &json!(1))
    );
    let error = run["attempts"][0]["error"].as_str().unwrap();
    assert!(error.contains("may not start /bin/true"), "{error}");
}

#[test]
fn an_exit_code_says_what_becomes_of_its_run() {
    let folder = TempDir::new().unwrap();
    let (server, http) = start(&folder, "/bin/sh");
    let script = "case $PUNCTUAL_ATTEMPT in 1|2|3) exit 75;; *) exit 9;; esac";
    let mut body = job(&["/bin/sh", "-c", script]);
    let shell = &mut body["target"]["shell"];
    shell["retry"] = json!([75]);
    shell["fail"] = json!([9]);
    // Three ask for another beyond the two that the job has; the one that fails is the last.
    let made = http.post("/v1/jobs", &body).json();
    assert_eq!(made["target"]["shell"]["retry"], json!([75]), "{made}");
    let run = ended(&http, &started(&http, &made));
    assert_eq!(
        (&run["state"], &run["attempt"]),
        (&json!("dead"), &json!(4)),
        "{run}"
    );
    assert_eq!(run["reason"], "attempts_spent");
    body["target"]["shell"]["dead"] = json!([75]);
    let refused = http.post("/v1/jobs", &body);
    assert_eq!(refused.status, 422);
    assert_eq!(refused.json()["field"], "target.shell.dead");
    let edit = format!(
        "job edit {} --retry-exit 75 --fail-exit 9 --dead-exit 9",
        made["id"].as_str().unwrap()
    );
    let refused = server.cli(&edit);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        said.contains("9 is fail already") && said.contains("--dead-exit"),
        "{said}"
    );
}

#[test]
fn a_run_keeps_what_its_command_wrote_and_took() {
    let folder = TempDir::new().unwrap();
    let (server, http) = start(&folder, "/bin/sh");
    let script = "echo \"$GREETING\"; cat; echo oops >&2; exit 3";
    let made = "job create --key dump --cron @yearly --command /bin/sh --arg=-c --arg";
    let made = server.bash(&format!(
        "punctual {made} '{script}' --env GREETING=hello --success-exit 0,3 --payload '{{\"a\": 1}}' --server {}",
        server.url()
    ));
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let job = http.get("/v1/jobs/by-key/dump").json();
    assert_eq!(job["target"]["shell"]["success"], json!([0, 3]));
    let run = ended(&http, &started(&http, &job));
    assert_eq!(run["state"], "succeeded", "{run}");
    let attempt = &run["attempts"][0];
    assert_eq!(attempt["status"], 3);
    assert_eq!(attempt["output"], "hello\n{\"a\": 1}oops\n");
    assert!(
        attempt["cost"]["memory_max"].as_u64().unwrap() > 100_000,
        "{run}"
    );
    assert!(attempt["cost"]["written_bytes"].is_u64(), "{run}");
    let shown = server.printed(&format!("run show {}", run["id"].as_str().unwrap()));
    assert!(
        shown.contains("cost processor ")
            && shown.contains(" written of storage")
            && shown.contains("output ("),
        "{shown}"
    );
    assert!(
        server.printed("job list").contains("/bin/sh -c"),
        "the list says what it starts"
    );
}

#[test]
fn variables_that_say_secret_are_masked_and_stay_with_their_program() {
    let folder = TempDir::new().unwrap();
    let (_server, http) = start(&folder, "/bin/");
    let mut body = job(&["/bin/sh", "-c", "echo $PGPASSWORD; exit 1"]);
    body["target"]["shell"]["env"] = json!({"PGPASSWORD": "planted-1", "PGHOST": "db"});
    let job = http.post("/v1/jobs", &body).json();
    let shown = &job["target"]["shell"]["env"];
    assert_eq!(shown, &json!({"PGPASSWORD": "***", "PGHOST": "db"}));
    let path = format!("/v1/jobs/{}", job["id"].as_str().unwrap());
    let patch = |env: Value, program: &str| {
        let shell = json!({"command": [program, "-c", "echo $PGPASSWORD"], "env": env});
        let body = json!({"target": {"shell": shell}}).to_string();
        let headers = [("content-type", "application/json")];
        http.send("PATCH", &path, &headers, body.as_bytes())
    };
    let moved = patch(json!({}), "/bin/cat");
    assert_eq!(moved.status, 422);
    assert_eq!(moved.json()["field"], "target.shell.env.PGPASSWORD");
    let kept = patch(json!({"PGPASSWORD": "***", "PGHOST": null}), "/bin/sh");
    assert_eq!(kept.status, 200, "{}", kept.json());
    let run = ended(&http, &started(&http, &job));
    assert_eq!(
        run["attempts"][0]["output"], "***\n",
        "and taken out of the output"
    );
}

#[test]
fn a_cancel_and_a_timeout_end_every_process_and_keep_the_output() {
    let folder = TempDir::new().unwrap();
    let (_server, http) = start(&folder, "/bin/sh");
    let mut body = job(&[
        "/bin/sh",
        "-c",
        "echo begun; setsid sleep 1000 & sleep 1000",
    ]);
    body["timeout"] = json!("2s");
    body["retry"]["attempts_max"] = json!(1);
    let job = http.post("/v1/jobs", &body).json();
    let run = started(&http, &job);
    let timed_out = ended(&http, &run);
    let attempt = &timed_out["attempts"][0];
    assert_eq!(
        (&attempt["outcome"], &attempt["output"]),
        (&json!("timed_out"), &json!("begun\n"))
    );
    all_gone(&run);
    let run = started(&http, &job);
    wait_for("its processes", || {
        (processes_with(&run).len() >= 3).then_some(())
    });
    http.post(&format!("/v1/runs/{run}/cancel"), &json!({}));
    assert_eq!(ended(&http, &run)["state"], "cancelled");
    all_gone(&run);
}

#[test]
fn the_processes_of_a_node_that_is_killed_end_and_their_runs_are_lost_and_tried_again() {
    let folder = TempDir::new().unwrap();
    let (server, http) = start(&folder, "/bin/sh");
    let endless = [
        "/bin/sh",
        "-c",
        "[ $PUNCTUAL_ATTEMPT = 1 ] || exit 0; setsid sleep 1000 & sleep 1000",
    ];
    let again = http.post("/v1/jobs", &job(&endless)).json();
    let mut body = job(&endless);
    body["delivery"] = json!("at_most_once");
    let once = http.post("/v1/jobs", &body).json();
    let runs = [&again, &once].map(|job| started(&http, job));
    for run in &runs {
        wait_for("its processes", || {
            (processes_with(run).len() >= 3).then_some(())
        });
        // A run that lasts is marked; then it is known to have begun.
        wait_for("the mark", || {
            let run = http.get(&format!("/v1/runs/{run}")).json();
            (run["state"] == "running" && run["dispatched_at"].is_string()).then_some(())
        });
    }
    server.kill();
    for run in &runs {
        wait_within(5, "its processes to end", || {
            processes_with(run).is_empty().then_some(())
        });
    }
    let (_server, http) = start(&folder, "/bin/sh");
    let [again, once] = runs.map(|run| ended(&http, &run));
    assert_eq!(again["state"], "succeeded", "{again}");
    assert_eq!(again["attempts"][0]["outcome"], "lost");
    assert_eq!(again["attempt"], 2);
    assert_eq!(
        (&once["state"], &once["attempt"]),
        (&json!("dead"), &json!(1)),
        "{once}"
    );
}

#[test]
fn a_node_that_stops_leaves_no_process() {
    let folder = TempDir::new().unwrap();
    let arguments = [
        allowing("/bin/sh"),
        vec!["--grace".to_owned(), "100ms".to_owned()],
    ]
    .concat();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let server = Server::start_in(folder.path(), &arguments);
    let http = server.http();
    let job = http.post(
        "/v1/jobs",
        &job(&[
            "/bin/sh",
            "-c",
            "trap '' TERM; setsid sleep 1000 & sleep 1000",
        ]),
    );
    let run = started(&http, &job.json());
    wait_for("its processes", || {
        (processes_with(&run).len() >= 3).then_some(())
    });
    server.stop();
    all_gone(&run);
}

#[test]
fn a_secret_reaches_a_command_only_if_it_names_commands() {
    let folder = TempDir::new().unwrap();
    let (_server, http) = start(&folder, "/bin/sh");
    for (name, host) in [("dump", "shell"), ("other", "example.com")] {
        let secret = json!({"value": "planted secret", "hosts": [host]});
        let headers = [("content-type", "application/json")];
        let made = http.send(
            "PUT",
            &format!("/v1/secrets/{name}"),
            &headers,
            secret.to_string().as_bytes(),
        );
        assert!(made.status < 300, "{}", made.json());
    }
    let with = |name: &str| {
        let mut body = job(&[
            "/bin/sh",
            "-c",
            "[ \"$A\" = 'x planted secret' ] && echo \"got $A\"",
        ]);
        body["target"]["shell"]["env"] = json!({"A": format!("x {{{{ secret('{name}') }}}}")});
        http.post("/v1/jobs", &body)
    };
    let refused = with("other");
    assert_eq!(refused.status, 422);
    assert_eq!(refused.json()["field"], "target.shell.env.A");
    let run = ended(&http, &started(&http, &with("dump").json()));
    assert_eq!(run["state"], "succeeded", "{run}");
    assert_eq!(run["attempts"][0]["output"], "got x ***\n");
}
