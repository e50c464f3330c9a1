//! More doors for planted secrets: what a target says later, templates, signing, certificates, people and their pages.

use serde_json::{Value, json};

use crate::planted_more;
use crate::secrets::{root, text};
use crate::support::{Answer, Delivery, Http, Receiver, Reply, Server, wait_for};

/// In the query of a template: kept in clear in its definition.
pub(crate) const IN_PATH: &str = "planted-in-path-2b7e";
const TLS_KEY: &str = "planted-tls-key-31c9";
const PASSWORD: &str = "planted-password-8e1d";

const PAGES: [&str; 12] = [
    "/",
    "/jobs",
    "/runs",
    "/dead",
    "/calendars",
    "/jobs/new",
    "/users",
    "/keys",
    "/secrets",
    "/audit",
    "/nodes",
    "/tenants",
];

/// What these doors have said, and what must be found nowhere at all.
#[derive(Default)]
pub(crate) struct Doors {
    /// The value that all of them are given.
    pub secret: String,
    pub said: Vec<String>,
    pub nowhere: Vec<String>,
}

/// Says back where it was called and with what; takes over what it may.
fn parrot() -> Receiver {
    Receiver::answering(|delivery| {
        let body = String::from_utf8_lossy(&delivery.body);
        let status = if delivery.path.contains("/later") {
            202
        } else {
            400
        };
        Answer::status(status).saying(&format!("got {} and {body}", delivery.path))
    })
}

pub(crate) fn made(http: &Http, target: Value, more: Value) -> String {
    let mut job = json!({"schedule": "@yearly", "retry": {"attempts_max": 1}, "target": target});
    for (name, value) in more.as_object().unwrap() {
        job[name] = value.clone();
    }
    let reply = http.post("/v1/jobs", &job);
    let text = String::from_utf8_lossy(&reply.body).into_owned();
    assert_eq!(reply.status, 201, "{text}");
    reply.json()["id"].as_str().unwrap().to_owned()
}

pub(crate) fn run(http: &Http, job: &str) -> String {
    let run = http.post(&format!("/v1/jobs/{job}/run"), &json!({})).json();
    run["id"].as_str().unwrap().to_owned()
}

pub(crate) fn dead(http: &Http, run: &str) -> Value {
    wait_for("the run to end", || {
        let run = http.get(&format!("/v1/runs/{run}")).json();
        (run["state"] == "dead").then_some(run)
    })
}

impl Doors {
    pub(crate) fn open(server: &Server, secret: &str) -> Self {
        let (http, receiver) = (root(server), parrot());
        let mut doors = Self {
            secret: secret.to_owned(),
            ..Self::default()
        };
        let signing = server.printed("signing create").trim().to_owned();
        doors.nowhere.push(signing.replace("whsec_", ""));
        let reported = doors.report(&http, &receiver, secret);
        let rendered = doors.render(&http, &receiver, secret);
        let refused = doors.certificates(&http, &receiver);
        let session = doors.log_in(&http, server);
        for (job, run) in [reported, rendered, refused] {
            doors.read(&http, &job, &run);
            doors.pages(server, &session, &job, &run);
        }
        planted_more::open(&mut doors, &http, server, &receiver);
        doors
    }

    /// What a target says that has taken an attempt over, in every way there is.
    fn report(&mut self, http: &Http, receiver: &Receiver, secret: &str) -> (String, String) {
        let headers = json!({"Authorization": "Bearer {{ secret('api') }}"});
        let target = json!({"http": {"url": receiver.url("/later"), "headers": headers}});
        let job = made(http, target, json!({"completion": "callback"}));
        let run = run(http, &job);
        wait_for("the hand-over", || {
            let shown = http.get(&format!("/v1/runs/{run}")).json();
            shown["handed_over"].is_object().then_some(())
        });
        let of_run = |it: &Delivery| it.header("punctual-run") == run;
        let sent = receiver.deliveries().into_iter().find(of_run).unwrap();
        let token = sent.header("punctual-token");
        let say = |what: &str, kind: &str, body: &str| {
            let headers = [("punctual-token", token), ("content-type", kind)];
            let path = format!("/v1/runs/{run}/{what}");
            let reply = http.send("POST", &path, &headers, body.as_bytes());
            assert_eq!(
                reply.status,
                200,
                "{}",
                String::from_utf8_lossy(&reply.body)
            );
        };
        let beat = json!({"progress": format!("with {secret}"), "checkpoint": secret});
        say("heartbeat", "application/json", &beat.to_string());
        let (head, tail) = secret.split_at(secret.len() / 2);
        for part in [secret, head, tail] {
            say("log", "text/plain", part);
        }
        let shown = http.get(&format!("/v1/runs/{run}"));
        self.said.push(text(&shown));
        assert_eq!(shown.json()["handed_over"]["progress"], "with ***");
        let report = json!({"outcome": "failed", "retry": "never", "error": secret,
            "output": format!("o {secret}")});
        say("report", "application/json", &report.to_string());
        let ended = dead(http, &run);
        assert_eq!(ended["attempts"][0]["output"], "o ***", "{ended}");
        let log = http.get(&format!("/v1/runs/{run}/log"));
        assert_eq!(log.json()["text"], "*********");
        self.said.push(text(&log));
        self.nowhere.push(token.to_owned());
        (job, run)
    }

    /// A path and a body that are templates.
    fn render(&mut self, http: &Http, receiver: &Receiver, secret: &str) -> (String, String) {
        let url = receiver.url("/{{ job.id }}");
        let url = format!("{url}?token={IN_PATH}&key={{{{ secret('api') }}}}");
        let body = r#"{"a": {{ secret('api') }}}"#;
        let job = made(http, json!({"http": {"url": url, "body": body}}), json!({}));
        let run = run(http, &job);
        let ended = dead(http, &run);
        let output = ended["attempts"][0]["output"].as_str().unwrap().to_owned();
        assert!(output.contains("token=***&key=***"), "{output}");
        let last = receiver.deliveries().pop().unwrap();
        assert!(last.path.contains(IN_PATH));
        let body = String::from_utf8_lossy(&last.body).into_owned();
        assert!(body.contains(secret), "{body}");
        (job, run)
    }

    /// A private key that is none: the attempt fails, and says why.
    fn certificates(&mut self, http: &Http, receiver: &Receiver) -> (String, String) {
        let pem = |kind: &str, inner: &str| {
            format!("-----BEGIN {kind}-----\n{inner}\n-----END {kind}-----\n")
        };
        for (name, value) in [
            ("cert", pem("CERTIFICATE", "AAAA")),
            ("key", pem("PRIVATE KEY", TLS_KEY)),
        ] {
            let secret = json!({"name": name, "value": value, "hosts": ["127.0.0.1"]});
            assert_eq!(http.post("/v1/secrets", &secret).status, 201);
        }
        let url = receiver.url("/tls").replace("http:", "https:");
        let tls = json!({"cert": "cert", "key": "key"});
        let job = made(http, json!({"http": {"url": url, "tls": tls}}), json!({}));
        let run = run(http, &job);
        let ended = dead(http, &run);
        assert!(ended["attempts"][0]["error"].is_string(), "{ended}");
        self.nowhere.push(TLS_KEY.to_owned());
        (job, run)
    }

    /// A person, and the holder of a key by a link. Answers the cookie of the person.
    fn log_in(&mut self, http: &Http, server: &Server) -> String {
        let user = json!({"name": "ada", "password": PASSWORD, "role": "root"});
        let made = http.post("/v1/users", &user);
        assert_eq!(made.status, 201, "{}", String::from_utf8_lossy(&made.body));
        self.said
            .push(String::from_utf8_lossy(&made.body).into_owned());
        let form = |path: &str, body: String| {
            let kind = [("content-type", "application/x-www-form-urlencoded")];
            let reply = server.http().send("POST", path, &kind, body.as_bytes());
            assert_eq!(
                reply.status,
                303,
                "{}",
                String::from_utf8_lossy(&reply.body)
            );
            cookie_of(&reply)
        };
        let link = http.send("POST", "/v1/console/links", &[], b"").json();
        let path = link["path"].as_str().unwrap();
        let token = path.split_once("token=").unwrap().1.to_owned();
        assert_eq!(server.http().get(path).status, 200);
        let by_link = form("/login/link", format!("token={token}"));
        let wrong = "name=ada&password=planted-wrong-password";
        let kind = [("content-type", "application/x-www-form-urlencoded")];
        let refused = server
            .http()
            .send("POST", "/login", &kind, wrong.as_bytes());
        self.said
            .push(String::from_utf8_lossy(&refused.body).into_owned());
        let session = form("/login", format!("name=ada&password={PASSWORD}"));
        for cookie in [&by_link, &session] {
            let (_, token) = cookie.split_once('=').unwrap();
            self.nowhere.push(token.to_owned());
        }
        self.nowhere
            .extend([token, PASSWORD.to_owned(), "planted-wrong".to_owned()]);
        session
    }

    /// What REST says of all this.
    pub(crate) fn read(&mut self, http: &Http, job: &str, run: &str) {
        let kind = [("content-type", "application/json")];
        let path = format!("/v1/jobs/{job}");
        let patched = http.send("PATCH", &path, &kind, br#"{"labels": {"a": "b"}}"#);
        self.said.push(text(&patched));
        let replay = http.post(&format!("/v1/jobs/{job}/replay"), &json!({"force": true}));
        self.said
            .push(String::from_utf8_lossy(&replay.body).into_owned());
        for path in [
            &format!("/v1/jobs/{job}"),
            &format!("/v1/jobs/{job}/versions"),
            &format!("/v1/runs/{run}"),
            &format!("/v1/runs/{run}/log"),
            "/v1/overview",
            "/v1/targets",
            "/v1/replays",
            "/v1/runs/groups",
            "/v1/users",
            "/v1/users/ada",
            "/v1/signing-secrets",
            "/v1/secrets",
            "/v1/audit?limit=1000",
        ] {
            self.said.push(text(&http.get(path)));
        }
    }

    /// What pages show to somebody who may see everything.
    fn pages(&mut self, server: &Server, session: &str, job: &str, run: &str) {
        let mut paths: Vec<String> = PAGES.map(str::to_owned).to_vec();
        for rest in ["", "/edit", "/versions", "/audit", "/json", "/slots"] {
            paths.push(format!("/jobs/{job}{rest}"));
        }
        paths.push(format!("/runs/{run}"));
        for path in paths {
            let cookie = [("cookie", session)];
            let page = server.http().send("GET", &path, &cookie, b"");
            assert_eq!(page.status, 200, "{path}");
            self.said.push(text(&page));
        }
    }
}

fn cookie_of(reply: &Reply) -> String {
    let set = reply.header("set-cookie").unwrap();
    set.split(';').next().unwrap().to_owned()
}
