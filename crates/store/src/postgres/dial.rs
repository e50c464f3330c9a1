//! Connecting: which host of the address is tried when. A host that does not answer holds up nobody: the next one is
//! tried a moment later, while the first goes on, and whichever takes us first counts. The host that took us last is
//! tried first the next time, by everyone who shares the dialer.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::{Client, Config, Connection, Error, Socket};

use super::config::PgConfig;
use super::fault::{cannot_connect, detail};
use super::tls::{Connector, Stream};
use crate::StoreError;

/// How long a host is waited for before the next one is tried as well.
const NEXT_AFTER: Duration = Duration::from_millis(300);
/// How long all of them are waited for before each is tried once more: what was on its way to a host when that fell
/// silent never arrives.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
const ROUNDS_MAX: usize = 6;
/// What one try may take from its first packet to its last, unless the address says.
const ONE_OF_MANY_MAX: Duration = Duration::from_secs(3);
const ONLY_ONE_MAX: Duration = Duration::from_secs(6);

/// Connects to whichever host is to be had.
pub(super) struct Dialer {
    config: PgConfig,
    connector: Connector,
    hosts: Vec<Place>,
    /// What one try may take.
    patience: Duration,
    /// The host that took us last.
    last: watch::Sender<usize>,
}

/// One host of the address.
struct Place {
    host: Option<Host>,
    address: Option<IpAddr>,
    port: u16,
    /// Everything else, without a host.
    config: Config,
}

type Session = (Client, Connection<Socket, Stream<Socket>>);

/// A connection that somebody has yet to drive.
pub(super) struct Connected {
    pub client: Client,
    pub connection: Connection<Socket, Stream<Socket>>,
    /// The number of its host.
    pub host: usize,
}

impl Dialer {
    pub(super) fn new(config: PgConfig) -> Result<Self, StoreError> {
        let hosts = places(&config.server);
        let usual = match hosts.len() {
            0 => return Err(StoreError::Unusable("no host was named".to_owned())),
            1 => ONLY_ONE_MAX,
            _ => ONE_OF_MANY_MAX,
        };
        Ok(Self {
            connector: Connector::new(&config)?,
            patience: config.patience.unwrap_or(usual),
            config,
            hosts,
            last: watch::Sender::new(0),
        })
    }

    pub(super) fn schema(&self) -> &str {
        self.config.schema()
    }

    pub(super) fn connector(&self) -> Connector {
        self.connector.clone()
    }

    /// The number of the host that took us last.
    pub(super) fn last(&self) -> usize {
        *self.last.borrow()
    }

    /// Waits until another host has taken us that is the only one to take writes: whoever still waits for an answer of
    /// this one may wait for ever.
    pub(super) fn left(&self, host: usize) -> impl Future<Output = ()> + Send + 'static {
        let mut last = self.last.subscribe();
        let only = self.config.server.get_target_session_attrs() == TargetSessionAttrs::ReadWrite;
        async move {
            if !only || last.wait_for(|last| *last != host).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    pub(super) async fn connect(&self) -> Result<Connected, StoreError> {
        let (count, first) = (self.hosts.len(), self.last());
        let turn = |number| self.hosts.iter().cycle().nth(first + number);
        let tried = race(count, ROUNDS_MAX, |number| self.try_place(turn(number)));
        match tried.await {
            Ok((number, (client, connection))) => {
                let host = (first + number) % count;
                self.last
                    .send_if_modified(|last| std::mem::replace(last, host) != host);
                Ok(Connected {
                    client,
                    connection,
                    host,
                })
            }
            Err(failures) => Err(gathered(failures, turn)),
        }
    }

    async fn try_place(&self, place: Option<&Place>) -> Result<Session, StoreError> {
        let Some(place) = place else {
            return Err(StoreError::unavailable("no such host"));
        };
        let tried = timeout(self.patience, self.enter(place)).await;
        tried.unwrap_or_else(|_| {
            let why = format!("no answer within {:?}", self.patience);
            Err(StoreError::unavailable(why))
        })
    }

    /// A name may stand for several addresses, each of which may be dead.
    async fn enter(&self, place: &Place) -> Result<Session, StoreError> {
        let (None, Some(Host::Tcp(name))) = (place.address, &place.host) else {
            return self.converse(place.at(place.address)).await;
        };
        let found = tokio::net::lookup_host((name.as_str(), place.port)).await;
        let found = found.map_err(|error| StoreError::unavailable(format!("{name}: {error}")))?;
        let found: Vec<IpAddr> = found.map(|address| address.ip()).collect();
        let tried = race(found.len(), 1, |number| {
            self.converse(place.at(found.get(number).copied()))
        });
        match tried.await {
            Ok((_, session)) => Ok(session),
            Err(failures) => Err(gathered(failures, |number| found.get(number))),
        }
    }

    async fn converse(&self, config: Config) -> Result<Session, StoreError> {
        let connected = config.connect(self.connector.clone()).await;
        connected.map_err(refusal)
    }
}

impl Place {
    /// How to connect to it, by this address if there is one.
    fn at(&self, address: Option<IpAddr>) -> Config {
        let mut config = self.config.clone();
        match (&self.host, address) {
            (Some(Host::Tcp(name)), _) => config.host(name),
            (Some(Host::Unix(path)), _) => config.host_path(path),
            // Its name, for TLS, is the address itself.
            (None, Some(address)) => config.host(address.to_string()),
            (None, None) => &mut config,
        };
        if let Some(address) = address {
            config.hostaddr(address);
        }
        config.port(self.port);
        config
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.host, self.address) {
            (Some(Host::Tcp(name)), _) => write!(f, "{name}:{}", self.port),
            (Some(Host::Unix(path)), _) => write!(f, "{}:{}", path.display(), self.port),
            (None, Some(address)) => write!(f, "{address}:{}", self.port),
            (None, None) => write!(f, "port {}", self.port),
        }
    }
}

/// The hosts of an address, each by itself.
fn places(server: &Config) -> Vec<Place> {
    let (hosts, addresses) = (server.get_hosts(), server.get_hostaddrs());
    let ports = server.get_ports();
    let place = |number: usize| {
        let host = hosts.get(number).cloned();
        let mut config = without_hosts(server);
        if matches!(host, Some(Host::Unix(_))) {
            // PostgreSQL has no TLS there, and nobody else is on that wire.
            config.ssl_mode(SslMode::Disable);
        }
        let port = ports.get(number).or_else(|| ports.first());
        Place {
            host,
            address: addresses.get(number).copied(),
            port: port.copied().unwrap_or(5432),
            config,
        }
    };
    (0..hosts.len().max(addresses.len())).map(place).collect()
}

/// Hosts can be added to a configuration, but not taken away.
fn without_hosts(server: &Config) -> Config {
    let mut config = Config::new();
    config
        .ssl_mode(server.get_ssl_mode())
        .ssl_negotiation(server.get_ssl_negotiation())
        .keepalives(server.get_keepalives())
        .keepalives_idle(server.get_keepalives_idle())
        .target_session_attrs(server.get_target_session_attrs())
        .channel_binding(server.get_channel_binding());
    if let Some(user) = server.get_user() {
        config.user(user);
    }
    if let Some(password) = server.get_password() {
        config.password(password);
    }
    if let Some(name) = server.get_dbname() {
        config.dbname(name);
    }
    if let Some(options) = server.get_options() {
        config.options(options);
    }
    if let Some(name) = server.get_application_name() {
        config.application_name(name);
    }
    if let Some(span) = server.get_connect_timeout() {
        config.connect_timeout(*span);
    }
    if let Some(span) = server.get_tcp_user_timeout() {
        config.tcp_user_timeout(*span);
    }
    if let Some(span) = server.get_keepalives_interval() {
        config.keepalives_interval(span);
    }
    if let Some(count) = server.get_keepalives_retries() {
        config.keepalives_retries(count);
    }
    config
}

type Failures = BTreeMap<usize, StoreError>;

/// Tries so many, in their order, so many times: each begins a moment after the one before, or when that has failed,
/// and none is given up for it. The first that succeeds counts.
async fn race<T, F>(
    count: usize,
    rounds: usize,
    begin: impl Fn(usize) -> F,
) -> Result<(usize, T), Failures>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut tries = FuturesUnordered::new();
    let mut failures = Failures::new();
    for turn in 1..=count * rounds {
        let number = (turn - 1) % count;
        let begun = begin(number);
        tries.push(async move { (number, begun.await) });
        let pause = match turn % count {
            _ if turn == count * rounds => Duration::MAX,
            0 => AGAIN_AFTER,
            _ => NEXT_AFTER,
        };
        loop {
            match timeout(pause, tries.next()).await {
                Ok(Some((number, Ok(found)))) => return Ok((number, found)),
                Ok(Some((number, Err(failure)))) => {
                    failures.insert(number, failure);
                    if turn % count != 0 {
                        break;
                    }
                }
                // All of them have failed.
                Ok(None) => return Err(failures),
                Err(_) => break,
            }
        }
    }
    Err(failures)
}

/// Why none of them took us, in one line; one for people only if all of them are.
fn gathered<P: fmt::Display>(failures: Failures, place: impl Fn(usize) -> Option<P>) -> StoreError {
    if failures.len() == 1 {
        let only = failures.into_values().next();
        return only.unwrap_or_else(|| StoreError::unavailable("no host"));
    }
    let line = |(number, error): (&usize, &StoreError)| match place(*number) {
        Some(place) => format!("{place}: {}", why(error)),
        None => why(error),
    };
    let lines: Vec<String> = failures.iter().map(line).collect();
    let text = if lines.is_empty() {
        "the host has no address".to_owned()
    } else {
        lines.join("; ")
    };
    if failures.is_empty() || failures.values().any(StoreError::is_transient) {
        StoreError::unavailable(text)
    } else {
        StoreError::Unusable(text)
    }
}

/// Why there is no connection, in one line.
pub(super) fn why(error: &StoreError) -> String {
    let mut source = error.source();
    let Some(first) = source else {
        return error.to_string();
    };
    let mut text = String::new();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            let colon = if text.is_empty() { "" } else { ": " };
            text.push_str(colon);
            text.push_str(&more);
        }
        source = cause.source();
    }
    if text.is_empty() {
        first.to_string()
    } else {
        text
    }
}

/// What will not pass by itself is for people: wrong names and passwords, and TLS that does not come about.
fn refusal(error: Error) -> StoreError {
    let kind = error.to_string();
    let cut_off = error
        .source()
        .and_then(|source| source.downcast_ref::<io::Error>())
        .is_some_and(|error| error.kind() != io::ErrorKind::InvalidData);
    let lasts = match kind.as_str() {
        "error performing TLS handshake" => !cut_off,
        "invalid configuration" | "authentication error" => true,
        _ => false,
    };
    if lasts {
        StoreError::Unusable(format!("the database cannot be used: {}", detail(&error)))
    } else {
        cannot_connect(error)
    }
}
