//! `punctual serve`: how a node is put together, and how it comes to an end.

mod log;
mod master_key;
mod patience;
pub(crate) mod root_key;
mod signals;
mod tls;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use engine::vault::MasterKeys;
use engine::{Clock, ClockOf, Handle, Node, NodeConfig, SystemClock};
use executor::Registry;
use executor::egress::{Dialer, Egress};
use executor::http::HttpExecutor;
use executor::shell::{PythonConfig, PythonExecutor, Scripts, ShellConfig, ShellExecutor};
use model::schedule::format_span;
use server::{Access, Api, Bounds, Door, Proxies, Tls};
use store::postgres::{PgConfig, PgStore};
use store::sqlite::SqliteStore;
use store::{Store, StoreError};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::cli::output;
use crate::config::{Config, Flags, LogFormat, Sources};
use crate::failure::{Failure, chain};
use log::Levels;
use patience::Patience;
use signals::Signals;
use tls::Secure;

pub(crate) const HELP: &str = "\
SIGTERM or SIGINT ends it in good order: no new work, work under way gets --grace to finish, exit code 0.
A second signal ends it at once, exit code 130; nothing accepted is lost by that.
SIGHUP reads the master keys, the certificate and the log levels again; from a terminal that is gone, it ends as SIGTERM does.

Examples:
  punctual serve
  punctual serve --data ./data --listen 127.0.0.1:8080
  punctual serve --listen 0.0.0.0:7710 --tls-cert cert.pem --tls-key key.pem
  PUNCTUAL_STORE_PASSWORD=… punctual serve --store postgres://punctual@127.0.0.1/punctual
  punctual serve --store postgres://… --listen 127.0.0.1:7711 --parts schedule,execute
  PUNCTUAL_LOG=debug punctual serve --config punctual.toml";

/// What the end may take beyond the grace period: handing back what is left, and closing the store.
const END_MARGIN: Duration = Duration::from_secs(5);
/// What requests get beyond the end of the last attempt.
const CONNECTIONS_MARGIN: Duration = Duration::from_millis(500);
/// How long a node that is not ready any more goes on answering, where others could: whoever shares out requests
/// needs a moment to notice.
const DRAIN: Duration = Duration::from_secs(2);
/// Files a node has open besides its attempts' connections.
const FILES_OWN: u64 = 256;

pub(crate) fn serve(flags: Flags) -> Result<(), Failure> {
    let sources = Sources::of_process(flags);
    let config = Config::load(&sources)?;
    config.check_listen()?;
    config.check_parts()?;
    config.check_master_key()?;
    let levels = log::start(&config)?;
    for warning in sources
        .unknown_variables()
        .into_iter()
        .chain(config.contradictions())
        .chain(config.warning_of_egress())
        .chain(config.warning_of_commands())
    {
        warn!("{warning}");
    }
    raise_file_limit(config.running_max);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::usage(format!("cannot start: {error}")))?;
    let ended = runtime.block_on(live(&config, sources, levels));
    // A thread that still waits for a disk or a name server must not hold up the end.
    runtime.shutdown_timeout(Duration::from_secs(1));
    ended
}

async fn live(config: &Config, sources: Sources, levels: Levels) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    levels.follow(sources)?;
    let mut running = tokio::select! {
        biased;
        // A data folder opens at once, and is opened to its end.
        signal = signals.next(), if config.store.is_some() => {
            info!("{signal}: stopped before it had begun");
            return Ok(());
        }
        started = Running::start(config) => started?,
    };
    tokio::select! {
        biased;
        signal = signals.next() => {
            info!("{signal}: stopping, work under way has {} to finish", format_span(config.grace));
        }
        why = running.broken() => return Err(Failure::usage(format!("the server cannot go on: {why}"))),
    }
    tokio::select! {
        biased;
        signal = signals.next() => signals::exit_at_once(signal),
        ended = tokio::time::timeout(config.grace + END_MARGIN, running.end(config.grace)) => {
            if ended.is_err() {
                warn!("not everything came to its end in time; it will at the next start");
            }
        }
    }
    info!("stopped");
    Ok(())
}

/// A node with its server.
struct Running {
    node: Node,
    serving: JoinHandle<()>,
    access: Arc<Access>,
    /// Reads keys that others change.
    keeping: JoinHandle<()>,
    _secure: Option<Secure>,
    _following: master_key::Following,
    /// From now on the node says that it is not ready.
    stopping: CancellationToken,
    /// From now on it takes no more connections.
    closing: CancellationToken,
    drain: Duration,
}

impl Running {
    /// Takes the port first: it is the quickest to fail, and nothing has been touched by then.
    async fn start(config: &Config) -> Result<Self, Failure> {
        let (listener, address) = listen(config.listen).await?;
        let is_new = config.store.is_none()
            && std::fs::read_dir(&config.data).map_or(true, |mut entries| entries.next().is_none());
        let secure = tls::open(config).await?;
        let (shell, python) = (config.shell()?, config.python()?);
        let store = open_store(config).await?;
        let egress = Arc::new(config.egress());
        let (registry, scripts) = with_scripts(config, registry(&egress, shell)?, python).await;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let name = config.node_at(address.port());
        if config.store.is_some() {
            info!("this is node {name}, with the parts {}", config.parts);
        }
        let has_new_key = master_key::is_to_be_made(config);
        let mut node = node_config(config, name, open_master_keys(config).await?);
        node.public_url = public_url(config, address);
        let join = || {
            let (store, clock) = (Arc::clone(&store), Arc::clone(&clock));
            Node::start(store, clock, registry.clone(), node.clone())
        };
        let joined = if config.store.is_some() {
            Patience::default().wait_for(join).await
        } else {
            join().await
        };
        let node = joined.map_err(|error| unusable(config, &error))?;
        let (stopping, closing) = (CancellationToken::new(), CancellationToken::new());
        let handle = node.handle();
        let following = master_key::follow(config, has_new_key, &handle).await?;
        let access = open_access(config, &handle).await?;
        let keeping = tokio::spawn({
            let (access, handle) = (Arc::clone(&access), handle.clone());
            async move { access.keep(handle).await }
        });
        let api = api(config, handle, Arc::clone(&access), stopping.clone());
        let api = api.with_scripts(Arc::new(scripts));
        let router = server::router(api.with_egress(egress));
        let door = door(config, secure.as_ref().map(Secure::tls));
        let serving = tokio::spawn(server::serve(listener, router, door, closing.clone()));
        // Not for programs, and all that those read is the log.
        if is_new && config.log_format == LogFormat::Text {
            welcome(config, address);
        }
        if config.hold {
            warn!("held: nothing fires here until this node is started without --hold");
        }
        info!("ready: listening on {}://{address}", config.scheme());
        let has_others = config.store.is_some() && config.parts.api;
        Ok(Self {
            node,
            serving,
            access,
            keeping,
            _secure: secure,
            _following: following,
            stopping,
            closing,
            drain: if has_others { DRAIN } else { Duration::ZERO },
        })
    }

    /// Waits for what should never happen, and says what it was.
    async fn broken(&mut self) -> String {
        match (&mut self.serving).await {
            Ok(()) => "it ended by itself".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    /// Not ready any more, then no new connections; no new work, and what is under way finishes or is handed back.
    async fn end(self, grace: Duration) {
        self.stopping.cancel();
        let drained = async {
            Clock::sleep(&SystemClock, self.drain).await;
            self.closing.cancel();
        };
        // It is worth no wait for a store that is away.
        let uses = tokio::time::timeout(CONNECTIONS_MARGIN, self.access.write_uses());
        let _ = tokio::join!(self.node.stop(grace), drained, uses);
        self.keeping.abort();
        // Requests had the same time; those that are still open get no more of it.
        if tokio::time::timeout(CONNECTIONS_MARGIN, self.serving)
            .await
            .is_err()
        {
            warn!("some connections were still open");
        }
    }
}

/// What this node can execute.
fn registry(egress: &Arc<Egress>, shell: Option<ShellConfig>) -> Result<Registry, Failure> {
    let dialer = Arc::new(Dialer::new(Arc::clone(egress)));
    let http = HttpExecutor::new(dialer).map_err(|error| Failure::usage(chain(&error)))?;
    let registry = Registry::default().with("http", Arc::new(http));
    let Some(shell) = shell else {
        return Ok(registry);
    };
    info!("jobs may start commands here: {}", shell.commands);
    let shell = ShellExecutor::new(shell).map_err(Failure::usage)?;
    Ok(registry.with("shell", Arc::new(shell)))
}

/// The same with what runs scripts. A node without a sandbox serves all the same, and refuses them.
async fn with_scripts(
    config: &Config,
    registry: Registry,
    python: Option<PythonConfig>,
) -> (Registry, Scripts) {
    let mut scripts = Scripts {
        interpreters: config.python.allow.clone(),
        broken: None,
    };
    let Some(python) = python else {
        return (registry, scripts);
    };
    // It builds a sandbox, and waits for it.
    let built = tokio::task::spawn_blocking(|| PythonExecutor::new(python)).await;
    match built.map_err(|error| error.to_string()).and_then(|it| it) {
        Ok(python) => {
            info!(
                "jobs may run scripts here, in sandboxes, with: {}",
                scripts.interpreters
            );
            (registry.with("python", Arc::new(python)), scripts)
        }
        Err(why) => {
            error!("no script runs here, because this node has no sandbox for them: {why}");
            scripts.broken = Some(why);
            (registry, scripts)
        }
    }
}

/// What clients are answered from.
fn api(config: &Config, handle: Handle, access: Arc<Access>, stopping: CancellationToken) -> Api {
    Api::new(handle.store(), handle, access)
        .with_metrics_open(config.metrics_open)
        .with_rates(config.front.rates_max)
        .with_history_keep(config.history_keep)
        .with_features(["sqlite", "postgres", "http", "shell", "python"])
        .with_commands(Arc::new(config.shell.allow.clone()))
        .with_stopping(stopping)
}

/// How clients reach the node.
fn door(config: &Config, tls: Option<Arc<Tls>>) -> Door {
    let front = &config.front;
    let bounds = Bounds {
        connections_max: front.connections_max,
        connections_share: front.connections_share,
        ..Bounds::default()
    };
    Door::default()
        .with_names(config.hosts.clone())
        .with_tls(tls)
        .with_proxies(Proxies::new(
            front.trusted_proxies.clone(),
            front.proxy_header,
        ))
        .with_origins(front.cors_origins.clone())
        .with_bounds(bounds)
}

/// The database that was named, or the data folder's own.
async fn open_store(config: &Config) -> Result<Arc<dyn Store>, Failure> {
    if let Some(address) = config.store_address() {
        let refused = |error: StoreError| Failure::usage(chain(&error));
        let address = PgConfig::parse(&address).map_err(refused)?;
        let connect = || PgStore::connect(address.clone());
        let store = Patience::default().wait_for(connect).await;
        return Ok(Arc::new(store.map_err(refused)?));
    }
    let folder = config.data.clone();
    let opening = spawn_blocking(move || SqliteStore::open(&folder, Arc::new(SystemClock)));
    let opened = opening
        .await
        .map_err(|error| Failure::usage(error.to_string()))?;
    Ok(Arc::new(opened.map_err(|error| unusable(config, &error))?))
}

/// What secrets are sealed under.
async fn open_master_keys(config: &Config) -> Result<Option<Arc<MasterKeys>>, Failure> {
    let config = config.clone();
    let opening = spawn_blocking(move || master_key::open(&config)).await;
    opening.map_err(|error| Failure::usage(error.to_string()))?
}

/// Who may call. A store that nobody could open gets its first key.
async fn open_access(config: &Config, handle: &Handle) -> Result<Arc<Access>, Failure> {
    if config.insecure_no_auth {
        warn!(
            "no key is required: whoever can connect to this machine's {} may do everything",
            config.listen
        );
        return Ok(Arc::new(Access::for_anyone()));
    }
    let store = handle.store();
    let open = async || -> Result<Arc<Access>, StoreError> {
        let access = Access::by_keys(Arc::clone(&store)).await?;
        let said = config.log_format;
        root_key::ensure(&config.data, said, &*store, &access, handle.now()).await?;
        Ok(Arc::new(access))
    };
    let opened = if config.store.is_some() {
        Patience::default().wait_for(open).await
    } else {
        open().await
    };
    opened.map_err(|error| unusable(config, &error))
}

/// Why the data cannot be used, in one line; it names the folder if the data is there.
fn unusable(config: &Config, error: &StoreError) -> Failure {
    let text = chain(error);
    if config.store.is_some() {
        return Failure::usage(text);
    }
    let folder = config.data.display().to_string();
    Failure::usage(if text.contains(&folder) {
        text
    } else {
        format!("{folder} cannot be used: {text}")
    })
}

fn node_config(config: &Config, name: String, master_keys: Option<Arc<MasterKeys>>) -> NodeConfig {
    NodeConfig {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        name,
        parts: config.parts,
        hold: config.hold,
        clock: match config.store {
            None => ClockOf::Machine,
            Some(_) => ClockOf::Store,
        },
        clock_skew_max: config.clock_skew_max,
        beats_apart: config.store.is_some(),
        running_max: config.running_max,
        origin_calls_max: config.origin_calls_max,
        history_keep: config.history_keep,
        finished_keep: config.finished_keep,
        audit_keep: config.audit_keep,
        health_bound: config.health_bound,
        public_url: String::new(),
        master_keys,
        seed: rand::random(),
        flaw: engine::Flaw::None,
    }
}

/// Where targets report: where it is said to be, or where it listens.
fn public_url(config: &Config, address: SocketAddr) -> String {
    let scheme = if config.front.tls_cert.is_some() {
        "https"
    } else {
        "http"
    };
    let given = config.front.public_url.clone();
    given.unwrap_or_else(|| format!("{scheme}://{address}"))
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let refused = |error: io::Error| {
        if error.kind() == io::ErrorKind::AddrInUse {
            let text =
                format!("{address} is in use by another program: choose another with --listen");
            return Failure::usage(text);
        }
        Failure::usage(format!("cannot listen on {address}: {error}"))
    };
    let listener = TcpListener::bind(address).await.map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    Ok((listener, address))
}

/// Said once, when the data folder is new.
fn welcome(config: &Config, address: SocketAddr) {
    output::note(&format!("A new data folder: {}", config.data.display()));
    if let Err(refused) = config.egress().check(address.ip(), address.port()) {
        output::note(&format!("For the first job below: {refused}"));
    }
    output::note("Try it, in another terminal:");
    // Where commands look for the key by themselves, nothing has to be said.
    let data = if config.origins.contains_key("data") && !config.insecure_no_auth {
        format!("PUNCTUAL_DATA={} ", config.data.display())
    } else {
        String::new()
    };
    let scheme = config.scheme();
    output::note(&format!(
        "  {data}punctual job create --server {scheme}://{address} --key hello --every 5s --url {scheme}://{address}/healthz --method GET"
    ));
}

/// Every attempt under way needs a connection, and the usual limit of 1024 files is low.
fn raise_file_limit(running_max: usize) {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return;
    };
    let needed = running_max as u64 + FILES_OWN;
    let raised = soft.max(needed.saturating_mul(2).min(hard));
    if raised > soft && setrlimit(Resource::RLIMIT_NOFILE, raised, hard).is_err() {
        warn!("the limit of {soft} open files cannot be raised");
    }
    if raised < needed {
        warn!(
            "running_max is {running_max} but only {raised} files may be open: raise the limit (ulimit -n)"
        );
    }
}
