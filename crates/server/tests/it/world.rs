//! A server in a test: its router, its store, its node, and a target that does as its address says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use bytes::Bytes;
use engine::vault::{MasterKey, MasterKeys};
use engine::{Node, NodeConfig, SystemClock};
use executor::{Executor, Registry, WorkOrder};
use http_body_util::BodyExt;
use model::{Report, RetryHint, Target};
use serde_json::{Value, json};
use server::{Access, Api, RatesMax};
use store::Store;
use store::mem::MemStore;
use store::postgres::server::PgServer;
use store::postgres::{PgConfig, PgStore};
use store::sqlite::SqliteStore;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::promised::is_promised;

/// The address of a target; its path says what it does.
pub const OK: &str = "http://target.example/ok";
pub const FAIL: &str = "http://target.example/fail";
pub const HANG: &str = "http://target.example/hang";
pub const BINARY: &str = "http://target.example/binary";

/// Takes an attempt over.
pub const LATER: &str = "http://target.example/later";

/// Tokens of attempts that were taken over, with their runs.
static TOKENS: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// The last token of a run.
pub fn token_of(run: &str) -> String {
    let tokens = TOKENS.lock().unwrap();
    let mut of_run = tokens.iter().rev().filter(|(of, _)| of == run);
    of_run.next().unwrap().1.clone()
}

struct Obedient;

#[async_trait]
impl Executor for Obedient {
    async fn execute(&self, order: WorkOrder) -> Report {
        let Target::Http(http) = &order.job.def.target else {
            return Report::failed("not this one");
        };
        match http.url.path() {
            "/fail" => Report::failed("no")
                .with_status(400)
                .with_retry(RetryHint::Never),
            "/later" => {
                let token = order.callback.unwrap().token;
                TOKENS.lock().unwrap().push((order.run.to_string(), token));
                Report::succeeded().with_status(202)
            }
            "/hang" => std::future::pending().await,
            "/echo" => {
                let headers = order.headers.as_ref().unwrap_or(&http.headers);
                let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
                let sent: Vec<_> = headers.iter().map(|(_, it)| text(it.as_bytes())).collect();
                Report::failed(sent.join(";")).with_output(Bytes::from(sent.join(";")))
            }
            "/binary" => Report::succeeded().with_output(Bytes::from_static(b"\xff\x00\xfe")),
            _ => {
                let path = order.path.as_ref();
                let path = path.map(|path| Bytes::from(path.to_string()));
                let payload = order.payload().cloned().or(path).unwrap_or_default();
                Report::succeeded().with_status(200).with_output(payload)
            }
        }
    }
}

fn master_keys() -> Arc<MasterKeys> {
    Arc::new(MasterKeys::new(MasterKey::new([1; 32])))
}

pub struct World {
    pub router: Router,
    /// The reference store, which is what the node works on unless it was given another.
    pub store: MemStore,
    /// What the node works on.
    pub kept: Arc<dyn Store>,
    pub access: Arc<Access>,
    /// Says that the node is about to stop.
    pub stopping: CancellationToken,
    node: Node,
    _folder: Option<TempDir>,
}

/// What came back.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// A member of the answer, as text.
    pub fn get(&self, name: &str) -> String {
        let value = &self.json()[name];
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The problem's name, and the field it names.
    pub fn problem(&self) -> (String, Option<String>) {
        let json = self.json();
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json"),
            "{}",
            self.text
        );
        assert_eq!(json["status"], self.status.as_u16(), "{}", self.text);
        assert!(!json["title"].as_str().unwrap().is_empty());
        assert!(!json["detail"].as_str().unwrap().is_empty());
        let name = json["type"]
            .as_str()
            .unwrap()
            .strip_prefix("/problems/")
            .unwrap();
        (name.to_owned(), json["field"].as_str().map(str::to_owned))
    }

    #[track_caller]
    pub fn refused(&self, status: u16, problem: &str) {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        assert_eq!(self.problem().0, problem, "{}", self.text);
    }

    #[track_caller]
    pub fn is(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        self
    }
}

impl World {
    pub async fn new() -> Self {
        Self::with_store(|store| Arc::new(store)).await
    }

    /// A world whose node has nothing to seal with.
    pub async fn without_master_key() -> Self {
        let store = MemStore::new(Arc::new(SystemClock));
        Self::with_node(store, |store| Arc::new(store), NodeConfig::default()).await
    }

    /// A world whose store is seen through something else.
    pub async fn with_store(wrap: impl FnOnce(MemStore) -> Arc<dyn Store>) -> Self {
        let store = MemStore::new(Arc::new(SystemClock));
        let config = NodeConfig {
            master_keys: Some(master_keys()),
            ..NodeConfig::default()
        };
        Self::with_node(store, wrap, config).await
    }

    /// Another node of the same store.
    pub async fn beside(&self, name: &str) -> Self {
        let config = NodeConfig {
            name: name.to_owned(),
            master_keys: Some(master_keys()),
            ..NodeConfig::default()
        };
        let world = Self::with_node(self.store.clone(), |store| Arc::new(store), config).await;
        for _ in 0..1_000 {
            if world.handle().health().is_ready() {
                return world;
            }
            let moment = std::time::Duration::from_millis(5);
            engine::Clock::sleep(&SystemClock, moment).await;
        }
        panic!("{name} is not ready");
    }

    pub async fn with_node(
        store: MemStore,
        wrap: impl FnOnce(MemStore) -> Arc<dyn Store>,
        config: NodeConfig,
    ) -> Self {
        Self::with_access(store, wrap, config, Access::for_anyone()).await
    }

    /// A world in which requests need keys; they are in its store.
    pub async fn with_keys() -> Self {
        let store = MemStore::new(Arc::new(SystemClock));
        let access = Access::by_keys(Arc::new(store.clone())).await.unwrap();
        let config = NodeConfig {
            master_keys: Some(master_keys()),
            ..NodeConfig::default()
        };
        Self::with_access(store, |store| Arc::new(store), config, access).await
    }

    /// The same, where the store is seen through something else, also by what looks for keys.
    pub async fn with_keys_through(wrap: impl FnOnce(MemStore) -> Arc<dyn Store>) -> Self {
        let store = MemStore::new(Arc::new(SystemClock));
        let seen = wrap(store.clone());
        let access = Access::by_keys(Arc::clone(&seen)).await.unwrap();
        Self::with_access(store, |_| seen, NodeConfig::default(), access).await
    }

    /// The same over a file.
    pub async fn with_keys_in_a_file() -> Self {
        let folder = TempDir::new().unwrap();
        let (path, clock) = (folder.path().to_owned(), Arc::new(SystemClock));
        let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&path, clock));
        Self::with_keys_over(Arc::new(opened.await.unwrap().unwrap()), Some(folder)).await
    }

    /// The same over a schema of its own.
    pub async fn with_keys_in_a_database(database: &PgServer) -> Self {
        let address = PgConfig::parse(&database.fresh_schema()).unwrap();
        let address = address.with_connections(2);
        let kept = PgStore::connect(address).await.unwrap();
        Self::with_keys_over(Arc::new(kept), None).await
    }

    async fn with_keys_over(kept: Arc<dyn Store>, folder: Option<TempDir>) -> Self {
        let access = Access::by_keys(Arc::clone(&kept)).await.unwrap();
        let config = NodeConfig {
            master_keys: Some(master_keys()),
            ..NodeConfig::default()
        };
        let store = MemStore::new(Arc::new(SystemClock));
        let seen = Arc::clone(&kept);
        let max = RatesMax::default();
        let mut world = Self::start(store, (seen, kept), config, access, max).await;
        world._folder = folder;
        world
    }

    /// The same, in which clients may call so fast.
    pub async fn with_rates(max: RatesMax) -> Self {
        let store = MemStore::new(Arc::new(SystemClock));
        let access = Access::by_keys(Arc::new(store.clone())).await.unwrap();
        let config = NodeConfig::default();
        Self::build(store, |store| Arc::new(store), config, access, max).await
    }

    async fn with_access(
        store: MemStore,
        wrap: impl FnOnce(MemStore) -> Arc<dyn Store>,
        config: NodeConfig,
        access: Access,
    ) -> Self {
        Self::build(store, wrap, config, access, RatesMax::default()).await
    }

    async fn build(
        store: MemStore,
        wrap: impl FnOnce(MemStore) -> Arc<dyn Store>,
        config: NodeConfig,
        access: Access,
        rates_max: RatesMax,
    ) -> Self {
        let (seen, kept) = (wrap(store.clone()), Arc::new(store.clone()));
        Self::start(store, (seen, kept), config, access, rates_max).await
    }

    async fn start(
        store: MemStore,
        (seen, kept): (Arc<dyn Store>, Arc<dyn Store>),
        config: NodeConfig,
        access: Access,
        rates_max: RatesMax,
    ) -> Self {
        let registry = Registry::default().with("http", Arc::new(Obedient));
        let clock = Arc::new(SystemClock);
        let inner = Arc::clone(&kept);
        let node = Node::start(inner, clock, registry, config).await.unwrap();
        let stopping = CancellationToken::new();
        let access = Arc::new(access);
        let api = Api::new(seen, node.handle(), Arc::clone(&access))
            .with_features(["mem"])
            .with_rates(rates_max)
            .with_stopping(stopping.clone());
        Self {
            router: server::router(api),
            store,
            kept,
            access,
            stopping,
            node,
            _folder: None,
        }
    }

    pub fn handle(&self) -> engine::Handle {
        self.node.handle()
    }

    /// Its node is gone; what is left is what it knew.
    pub fn crash(self) -> Router {
        self.node.crash();
        self.router
    }

    pub async fn send(&self, request: Request<Body>) -> Reply {
        send(&self.router, request).await
    }

    pub async fn call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Reply {
        let mut request = Request::builder().method(Method::from_bytes(method.as_bytes()).unwrap());
        let typed = headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        if !typed {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.uri(path).body(body.into()).unwrap())
            .await
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.call("GET", path, &[], "").await
    }

    pub async fn post(&self, path: &str, body: Value) -> Reply {
        self.call("POST", path, &[], body.to_string()).await
    }

    pub async fn post_empty(&self, path: &str) -> Reply {
        self.call("POST", path, &[], "").await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Reply {
        self.call("PATCH", path, &[], body.to_string()).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Reply {
        self.call("PUT", path, &[], body.to_string()).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.call("DELETE", path, &[], "").await
    }

    /// A job far from due, by its id.
    pub async fn job(&self, target: &str) -> String {
        let body = json!({"schedule": "@yearly", "target": target});
        self.post("/v1/jobs", body).await.is(201).get("id")
    }

    /// Runs a job by hand; the run's id.
    pub async fn run(&self, job: &str) -> String {
        self.post_empty(&format!("/v1/jobs/{job}/run"))
            .await
            .is(201)
            .get("id")
    }

    /// Waits until a run is in one of some states.
    pub async fn wait(&self, run: &str, states: &[&str]) -> Value {
        for _ in 0..500 {
            let reply = self.get(&format!("/v1/runs/{run}")).await;
            if reply.status == StatusCode::OK && states.contains(&reply.get("state").as_str()) {
                return reply.json();
            }
            pause(10).await;
        }
        panic!(
            "{run} did not become {states:?}: {}",
            self.get(&format!("/v1/runs/{run}")).await.text
        );
    }

    /// Everything the store holds, as something that can be compared.
    pub fn snapshot(&self) -> String {
        format!("{:?} {:?}", self.store.all_jobs(), self.store.all_runs())
    }
}

pub async fn send(router: &Router, request: Request<Body>) -> Reply {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = router.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    is_promised(method.as_str(), &path, parts.status.as_u16(), &text);
    Reply {
        status: parts.status,
        headers: parts.headers,
        text,
    }
}

pub async fn pause(millis: u64) {
    engine::Clock::sleep(&SystemClock, Duration::from_millis(millis)).await;
}
