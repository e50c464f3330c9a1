//! Callbacks through a tenant's proxy, from the command to what the proxy and the target get.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Http, KEYS, Receiver, Server, wait_for};

/// `ann:s3cret`.
const BASIC: &str = "Basic YW5uOnMzY3JldA==";

/// A proxy beside the receivers' address, which opens connections for whoever has the password.
struct Proxy {
    address: SocketAddr,
    called: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.2:0").unwrap();
        let address = listener.local_addr().unwrap();
        let called = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&called);
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let log = Arc::clone(&log);
                thread::spawn(move || serve(socket, &log));
            }
        });
        Self { address, called }
    }

    fn url(&self, password: &str) -> String {
        format!("http://ann:{password}@{}", self.address)
    }

    fn called(&self) -> Vec<String> {
        self.called.lock().unwrap().clone()
    }
}

fn serve(mut socket: TcpStream, log: &Mutex<Vec<String>>) -> Option<()> {
    let mut lines = BufReader::new(socket.try_clone().ok()?).lines();
    let first = lines.next()?.ok()?;
    let mut is_known = false;
    for line in lines
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
    {
        is_known |= line == format!("Proxy-Authorization: {BASIC}");
    }
    let to = first.split(' ').nth(1)?.to_owned();
    log.lock().unwrap().push(first);
    if !is_known {
        let refused = b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n";
        return socket.write_all(refused).ok();
    }
    let target = TcpStream::connect(to).ok()?;
    socket
        .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
        .ok()?;
    let (mut from, mut back) = (target.try_clone().ok()?, socket.try_clone().ok()?);
    thread::spawn(move || io::copy(&mut from, &mut back));
    let mut target = target;
    io::copy(&mut socket, &mut target).ok()?;
    None
}

/// A tenant with a key of its own.
fn team(server: &Server, proxy: &str) -> String {
    server.printed(&format!("tenant create team --proxy {proxy}"));
    let key = server.printed("key create --tenant team --role admin --json");
    let key: Value = serde_json::from_str(&key).unwrap();
    key["key"].as_str().unwrap().to_owned()
}

fn job(http: &Http, url: &str) -> String {
    let job = json!({"schedule": "@yearly", "target": url, "retry": {"attempts_max": 2, "delay_first": "1ms"}});
    let made = http.post("/v1/jobs", &job);
    assert_eq!(made.status, 201, "{}", made.json());
    made.json()["id"].as_str().unwrap().to_owned()
}

/// Runs a job by hand, to its end.
pub(crate) fn run(http: &Http, job: &str) -> Value {
    let run = http.post(&format!("/v1/jobs/{job}/run"), &json!({})).json();
    let path = format!("/v1/runs/{}", run["id"].as_str().unwrap());
    wait_for("the run to end", || {
        let run = http.get(&path).json();
        ["succeeded", "dead"]
            .contains(&run["state"].as_str().unwrap())
            .then_some(run)
    })
}

fn error(run: &Value) -> &str {
    run["attempts"][0]["error"].as_str().unwrap()
}

/// A server with keys that may call these, and a client that is root.
fn start(folder: &TempDir, allow: &str) -> (Server, Http) {
    let allow = format!("public,{allow}");
    let server = Server::start_in(folder.path(), &[KEYS, "--egress-allow", &allow]);
    let root = server.http().with_key(&server.root_key());
    (server, root)
}

fn check_hidden(said: &[String]) {
    let said = said.concat();
    for secret in ["s3cret", "wr0ng", BASIC] {
        assert!(!said.contains(secret), "{said}");
    }
}

/// A target that is named, and its port.
fn named(receiver: &Receiver) -> (String, String) {
    let port = receiver.url("").rsplit(':').next().unwrap().to_owned();
    (format!("http://localhost:{port}/hook"), port)
}

#[test]
fn a_tenants_callbacks_go_through_its_proxy_and_nobody_sees_its_password() {
    let folder = TempDir::new().unwrap();
    let (receiver, proxy) = (Receiver::start(), Proxy::start());
    let (server, root) = start(&folder, "127.0.0.0/8");
    let team = server.http().with_key(&team(&server, &proxy.url("s3cret")));
    let (url, port) = named(&receiver);
    let (theirs, ours) = (job(&team, &url), job(&root, &url));

    let through = run(&team, &theirs);
    assert_eq!(through["state"], "succeeded", "{through}");
    // The proxy is given an address, and the target its name.
    let connect = format!("CONNECT 127.0.0.1:{port} HTTP/1.1");
    assert_eq!(proxy.called().last(), Some(&connect));
    let host = format!("localhost:{port}");
    assert_eq!(receiver.deliveries()[0].header("host"), host);
    let peer = &through["attempts"][0]["exchange"]["peer"];
    assert_eq!(*peer, format!("127.0.0.1:{port}"), "{through}");
    let called = proxy.called().len();
    // Nobody else's do.
    assert_eq!(run(&root, &ours)["state"], "succeeded");
    assert_eq!((receiver.count(), proxy.called().len()), (2, called));

    // Another password takes effect at once here, and the proxy refuses it.
    server.printed(&format!("tenant edit team --proxy {}", proxy.url("wr0ng")));
    let refused = run(&team, &theirs);
    let ended = (&refused["state"], &refused["attempt"]);
    assert_eq!(ended, (&json!("dead"), &json!(2)));
    let wants = "wants another user or password: it answered 407";
    assert_eq!(
        error(&refused),
        format!("the proxy {} {wants}", proxy.address)
    );
    assert_eq!(receiver.count(), 2);

    // Without it they leave as all others do.
    server.printed("tenant edit team --proxy ''");
    assert_eq!(run(&team, &theirs)["state"], "succeeded");
    assert_eq!(receiver.count(), 3);
    let url = proxy.url("s3cret");
    let typed = server.bash(&format!(
        "echo '{url}' | punctual tenant edit team --proxy -"
    ));
    assert!(typed.status.success(), "{typed:?}");
    let shown = server.printed("tenant show team");
    let audit = server.printed("audit list --tenant team --json");
    for said in [&shown, &audit] {
        assert!(said.contains(&proxy.url("***")), "{said}");
    }
    let runs = [through.to_string(), refused.to_string()].concat();
    check_hidden(&[shown, audit, runs, server.log()]);
}

#[test]
fn a_proxy_leads_nowhere_that_the_guard_refuses_and_is_never_called_past() {
    let folder = TempDir::new().unwrap();
    let (receiver, proxy) = (Receiver::start(), Proxy::start());
    let (server, _) = start(&folder, "127.0.0.0/8");
    let key = team(&server, &proxy.url("s3cret"));
    let job = job(&server.http().with_key(&key), &named(&receiver).0);
    assert!(server.stop().success());
    let mut logs = Vec::new();
    for (allow, why) in [
        (
            "127.0.0.2",
            "localhost leads to a loopback address".to_owned(),
        ),
        (
            "127.0.0.1",
            format!("the proxy {} cannot be used", proxy.address),
        ),
    ] {
        let (server, _) = start(&folder, allow);
        let kept = run(&server.http().with_key(&key), &job);
        assert!(error(&kept).starts_with(&why), "{kept}");
        logs.extend([kept.to_string(), server.log()]);
        assert!(server.stop().success());
    }
    assert_eq!((receiver.count(), proxy.called().len()), (0, 0));
    // A node that cannot open the proxy sends nothing.
    let other = folder.path().join("other.key");
    std::fs::write(&other, "07".repeat(32)).unwrap();
    let flags = [KEYS, "--master-key-file", other.to_str().unwrap()];
    let server = Server::start_in(folder.path(), &flags);
    let closed = run(&server.http().with_key(&key), &job);
    let why = "not sent, because of its way out: the tenant has a proxy, and";
    assert!(error(&closed).starts_with(why), "{closed}");
    assert_eq!((receiver.count(), proxy.called().len()), (0, 0));
    logs.push(server.log());
    check_hidden(&logs);
}

#[test]
fn an_attempt_that_waits_for_a_silent_proxy_says_so() {
    let folder = TempDir::new().unwrap();
    let receiver = Receiver::start();
    // It takes connections, and says nothing.
    let silent = TcpListener::bind("127.0.0.2:0").unwrap();
    let address = silent.local_addr().unwrap();
    let (server, root) = start(&folder, "127.0.0.0/8");
    server.printed(&format!(
        "tenant edit default --proxy http://ann:s3cret@{address}"
    ));
    let job = json!({"schedule": "@yearly", "target": receiver.url("/"), "timeout": "1s", "retry": {"attempts_max": 1}});
    let job = root.post("/v1/jobs", &job).json();
    let ended = run(&root, job["id"].as_str().unwrap());
    assert_eq!(ended["attempts"][0]["outcome"], "timed_out", "{ended}");
    let why = format!("no answer within 1s: the proxy {address} did not open the way");
    assert_eq!(error(&ended), why);
    assert_eq!(receiver.count(), 0);
    check_hidden(&[ended.to_string(), server.log()]);
}
