//! Three nodes, each behind a link of its own.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use nix::sys::signal::Signal;
use tempfile::TempDir;

use super::database::Database;
use super::proxy::Proxy;
use crate::support::{Http, Server};

pub const NODES: usize = 3;

/// What the nodes are called.
pub const NAMES: [&str; NODES] = ["n1", "n2", "n3"];

const ALL: &str = "api,schedule,execute";

pub struct Node {
    pub link: Proxy,
    server: Option<Server>,
    folder: TempDir,
}

pub struct Fleet {
    binary: PathBuf,
    /// What each node is there for.
    parts: [String; NODES],
    nodes: Vec<Node>,
    addresses: Addresses,
    /// What each process said that is gone, in the order of their ends.
    logs: Vec<(String, String)>,
}

/// Where the nodes that run can be called.
#[derive(Clone, Default)]
pub struct Addresses(Arc<Mutex<[Option<String>; NODES]>>);

impl Addresses {
    pub fn of(&self, node: usize) -> Option<String> {
        self.0.lock().unwrap()[node].clone()
    }

    fn set(&self, node: usize, address: Option<String>) {
        self.0.lock().unwrap()[node] = address;
    }
}

impl Fleet {
    /// Each with all parts, unless said otherwise: `api,schedule/execute/api,execute`.
    pub fn start(binary: &Path, database: &Database, parts: Option<String>) -> Self {
        let all = || [ALL; NODES].join("/");
        let parts = parts.unwrap_or_else(all);
        let parts: Vec<String> = parts.split('/').map(str::to_owned).collect();
        let node = |_| Node {
            link: Proxy::to(database.port()),
            server: None,
            folder: TempDir::new().unwrap(),
        };
        let mut fleet = Self {
            binary: binary.to_owned(),
            parts: parts.try_into().expect("parts for every node"),
            nodes: (0..NODES).map(node).collect(),
            addresses: Addresses::default(),
            logs: Vec::new(),
        };
        for node in 0..NODES {
            fleet.launch(node);
        }
        fleet
    }

    pub fn addresses(&self) -> Addresses {
        self.addresses.clone()
    }

    pub fn link(&self, node: usize) -> &Proxy {
        &self.nodes[node].link
    }

    /// All links lead to where the database is now.
    pub fn lead_to(&self, database: &Database) {
        for node in &self.nodes {
            node.link.lead_to(database.port());
        }
    }

    /// A node that can be called.
    pub fn http(&self) -> Http {
        let address = (0..NODES).find_map(|node| self.addresses.of(node));
        Http::new(&address.expect("a node that runs"))
    }

    pub fn launch(&mut self, node: usize) {
        let Node {
            link,
            server,
            folder,
        } = &mut self.nodes[node];
        let store = store::postgres::server::address_at(link.port());
        let parts = &self.parts[node];
        let who = ["--node", NAMES[node], "--parts", parts, "--grace", "10s"];
        let arguments = [&["--store", &store][..], &who].concat();
        let started = Server::start_from(&self.binary, folder.path(), &arguments);
        let serves = parts.contains("api").then(|| started.address.clone());
        self.addresses.set(node, serves);
        *server = Some(started);
    }

    /// The process of a node that will be gone; nobody is led there any more.
    fn take(&mut self, node: usize) -> Server {
        self.addresses.set(node, None);
        self.nodes[node].server.take().expect("a node that runs")
    }

    fn keep_log(&mut self, node: usize, log: String) {
        self.logs.push((NAMES[node].to_owned(), log));
    }

    pub fn kill(&mut self, node: usize) {
        let server = self.take(node);
        let log = server.log_handle();
        server.kill();
        self.keep_log(node, log.read());
    }

    /// Stops a node in good order, and waits for its end.
    pub fn stop(&mut self, node: usize) {
        let server = self.take(node);
        let log = server.log_handle();
        let status = server.stop();
        let log = log.read();
        assert_eq!(status.code(), Some(0), "{}: {log}", NAMES[node]);
        self.keep_log(node, log);
    }

    pub fn signal(&self, node: usize, signal: Signal) {
        let server = self.nodes[node].server.as_ref();
        server.expect("a node that runs").signal(signal);
    }

    /// Those that have ended without having been stopped.
    pub fn fallen(&mut self) -> Vec<&'static str> {
        let nodes = self.nodes.iter_mut().zip(NAMES);
        let fallen = nodes.filter_map(|(node, name)| {
            let server = node.server.as_mut()?;
            server.has_ended().then_some(name)
        });
        fallen.collect()
    }

    /// What every process has said, past and present.
    pub fn logs(&self) -> Vec<(String, String)> {
        let running = self.nodes.iter().zip(NAMES).filter_map(|(node, name)| {
            let log = node.server.as_ref()?.log();
            Some((name.to_owned(), log))
        });
        self.logs.iter().cloned().chain(running).collect()
    }
}
