//! A target whose port dies and comes back: its runs wait where everybody can see it, and nobody else's are late.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

use super::world::{list, now, pause, slot_of};
use crate::support::{Delivery, Http, Receiver, Server, wait_for, wait_within};

/// Jobs that call each of the two targets, every second.
const JOBS: i64 = 4;

/// A server on a port of its own, one request for each connection. When it ends, the port refuses.
struct Mortal {
    port: u16,
    answered: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Mortal {
    /// On this port, or any.
    fn start(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (answered, over) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (count, end) = (Arc::clone(&answered), Arc::clone(&over));
        let accepting = thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if end.load(Ordering::SeqCst) {
                    return;
                }
                let count = Arc::clone(&count);
                thread::spawn(move || {
                    answer(stream).map(|()| count.fetch_add(1, Ordering::SeqCst))
                });
            }
        });
        Self {
            port,
            answered,
            over,
            accepting: Some(accepting),
        }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Its port is closed when this returns.
    fn die(mut self) -> u16 {
        self.over.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        self.accepting.take().unwrap().join().unwrap();
        assert!(TcpStream::connect(("127.0.0.1", self.port)).is_err());
        self.port
    }
}

fn answer(mut stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(bytes) = line.strip_prefix("content-length:") {
            length = bytes.trim().parse().ok()?;
        }
    }
    reader.read_exact(&mut vec![0; length]).ok()?;
    let said = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    stream.write_all(said).ok()
}

/// Of the jobs whose target dies.
fn runs(http: &Http, query: &str) -> Vec<Value> {
    list(http, &format!("/v1/runs?label=target%3Dshaky&{query}"))
}

/// How the node sees the origin.
fn breaker(http: &Http, url: &str) -> String {
    let seen = http.get("/v1/targets").json();
    let origins = seen["items"].as_array().unwrap().clone();
    let found = origins.iter().find(|it| {
        let origin = it["origin"].as_str().unwrap();
        url.starts_with(origin)
    });
    let state = found.map(|it| it["state"].as_str().unwrap().to_owned());
    state.unwrap_or_default()
}

fn failed_attempts(runs: &[Value]) -> usize {
    let attempts = runs
        .iter()
        .flat_map(|run| run["attempts"].as_array().unwrap());
    attempts.filter(|it| it["outcome"] == "failed").count()
}

fn create(http: &Http, steady: &str, shaky: &str) {
    for n in 0..JOBS {
        for (of, url) in [("steady", steady), ("shaky", shaky)] {
            let body = json!({
                "key": format!("{of}-{n}"), "schedule": {"every": "1s"}, "target": url, "overlap": "allow",
                "retry": {"attempts_max": 12, "backoff": "fixed", "delay_first": "100ms", "jitter": 0},
                "labels": {"target": of},
            });
            let reply = http.post("/v1/jobs", &body);
            assert_eq!(reply.status, 201, "{}", reply.json());
        }
    }
}

#[track_caller]
fn others_were_on_time(steady: &Receiver, died_at: i64, back_at: i64) {
    let seen = steady.deliveries();
    let late = seen
        .iter()
        .map(|it| it.at_micros / 1_000 - slot_of(it))
        .max();
    assert!(late.is_some_and(|late| late < 2_000), "{late:?} ms");
    let due = JOBS * (back_at - died_at) / 1_000;
    let meanwhile = |it: &&Delivery| (died_at..back_at).contains(&slot_of(it));
    let came = seen.iter().filter(meanwhile).count();
    assert!(
        i64::try_from(came).unwrap() >= due - JOBS,
        "{came} of {due}"
    );
}

/// A run that waits says what for, wherever it is shown.
#[track_caller]
fn says_why(http: &Http, run: &Value) {
    assert_eq!(run["wait_reason"], "breaker", "{run}");
    assert!(run["wait_until"].is_string(), "{run}");
    let path = format!("/v1/runs/{}", run["id"].as_str().unwrap());
    let shown = http.get(&path).json();
    assert_eq!(shown["wait_reason"], "breaker", "{shown}");
}

/// Runs that wait do not make their node unwell, and are counted by what they wait for.
#[track_caller]
fn others_do_not_notice(server: &Server, http: &Http) {
    let health = http.get("/healthz");
    assert_eq!(health.status, 200, "{}", health.json());
    wait_within(60, "the count of runs that wait", || {
        let metrics = String::from_utf8(http.get("/metrics").body).unwrap();
        let counted = metrics.lines().find_map(|line| {
            line.strip_prefix(r#"punctual_waiting_runs{reason="breaker"} "#)?
                .parse::<u64>()
                .ok()
        });
        counted.filter(|count| *count > 0)
    });
    let listed = server.printed("target list");
    assert!(listed.contains("open"), "{listed}");
}

/// By hand, over the command line and the API.
#[track_caller]
fn may_be_woken(server: &Server, run: &Value) {
    let id = run["id"].as_str().unwrap();
    let said = server.printed(&format!("run wake {id}"));
    assert!(said.contains("waits no more"), "{said}");
    let path = format!("/v1/runs/{id}/wake");
    // It goes back to waiting while its target is dead.
    wait_for("that run to wait again", || {
        let answer = server.http().post(&path, &json!({}));
        assert!([200, 409].contains(&answer.status), "{}", answer.json());
        (answer.status == 200).then(|| {
            let woken = answer.json();
            assert_eq!(woken["id"], id);
            assert!(woken["wait_reason"].is_null(), "{woken}");
        })
    });
}

#[test]
fn runs_of_a_port_that_dies_wait_and_all_succeed_when_it_is_back() {
    let (steady, mortal) = (Receiver::start(), Mortal::start(0));
    let url = mortal.url();
    let server = Server::start();
    let http = server.http();
    create(&http, &steady.url("/"), &url);
    wait_for("calls", || {
        (mortal.answered.load(Ordering::SeqCst) >= 4).then_some(())
    });
    assert_eq!(breaker(&http, &url), "closed");

    let port = mortal.die();
    let died_at = now();
    let waiting = wait_for("runs that wait", || {
        let found = runs(&http, "waiting=breaker&");
        (found.len() >= 4).then_some(found)
    });
    says_why(&http, &waiting[0]);
    let seen = breaker(&http, &url);
    assert!(["open", "half_open"].contains(&seen.as_str()), "{seen}");
    assert_eq!(breaker(&http, &steady.url("/")), "closed");
    others_do_not_notice(&server, &http);
    may_be_woken(&server, &waiting[1]);
    pause(Duration::from_secs(4));
    let back_at = now();
    let mortal = Mortal::start(port);

    wait_within(60, "a closed breaker", || {
        (breaker(&http, &url) == "closed").then_some(())
    });
    for n in 0..JOBS {
        let paused = http.post(&format!("/v1/jobs/key:shaky-{n}/pause"), &json!({}));
        assert_eq!(paused.status, 200, "{}", paused.json());
    }
    wait_within(60, "the last end", || {
        let alive = runs(&http, "state=ready,running,retrying&");
        alive.is_empty().then_some(())
    });
    let all = runs(&http, "");
    let odd: Vec<&Value> = all
        .iter()
        .filter(|run| run["state"] != "succeeded")
        .collect();
    assert!(odd.is_empty(), "{odd:?}");
    assert!(mortal.answered.load(Ordering::SeqCst) >= waiting.len());
    // Five calls open the breaker, and those beside them that were under way then; after that there is a probe now and then. Without
    // a breaker every run of these seconds would have tried ten times a second.
    let down = JOBS * (back_at - died_at) / 1_000;
    let failed = failed_attempts(&all);
    assert!(
        (5..=20).contains(&failed),
        "{failed} failed, {down} were due"
    );
    others_were_on_time(&steady, died_at, back_at);
}
