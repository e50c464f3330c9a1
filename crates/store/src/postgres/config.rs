//! Where the database is, and how it is reached. Read from one address; the password may come from elsewhere,
//! and is never shown.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::config::{Host, SslMode};

use crate::StoreError;

/// Environment variables that may hold the password, the first that is set counts.
pub const PASSWORD_VARS: [&str; 2] = ["PUNCTUAL_STORE_PASSWORD", "PGPASSWORD"];

/// How much of TLS is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tls {
    Disable,
    /// If the server has it.
    Prefer,
    /// Encrypted; whoever answers is believed, unless certificates to trust are named.
    Require,
    /// Encrypted, and the server's certificate is one of those that we trust, whatever its name.
    VerifyCa,
    /// Encrypted, and the server's certificate is checked against its name.
    VerifyFull,
}

/// How the database is reached.
#[derive(Clone)]
pub struct PgConfig {
    pub(super) server: tokio_postgres::Config,
    pub(super) tls: Tls,
    /// Certificates to trust instead of the usual ones.
    pub(super) roots: Option<PathBuf>,
    /// Where our tables are.
    pub(super) schema: String,
    /// Connections of the engine, besides the ones for beats, for hints, for days of history and for clients.
    pub(super) connections: usize,
    /// What connecting to one host may take, if the address says.
    pub(super) patience: Option<Duration>,
}

const CONNECTIONS: usize = 8;
const CONNECTIONS_MAX: usize = 200;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

fn unusable(why: impl fmt::Display) -> StoreError {
    StoreError::Unusable(format!("the store's address cannot be used: {why}"))
}

impl PgConfig {
    /// Reads `postgres://user@host:port/database?sslmode=…`. Besides what PostgreSQL itself knows there are
    /// `schema`, `connections`, `sslrootcert` (a file of certificates to trust) and `passfile` (a file with
    /// the password in its first line).
    pub fn parse(address: &str) -> Result<Self, StoreError> {
        Self::parse_within(address, |name| std::env::var(name).ok())
    }

    /// The same with these variables instead of the environment's.
    fn parse_within(
        address: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, StoreError> {
        let (base, query) = address.split_once('?').unwrap_or((address, ""));
        if !base.starts_with("postgres://") && !base.starts_with("postgresql://") {
            return Err(unusable("it does not begin with postgres://"));
        }
        let mut config = Self {
            server: tokio_postgres::Config::new(),
            tls: Tls::Prefer,
            roots: None,
            schema: "punctual".to_owned(),
            connections: CONNECTIONS,
            patience: None,
        };
        let (mut passed_on, mut password) = (Vec::new(), None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "sslmode" => config.tls = tls(value)?,
                "sslrootcert" => config.roots = Some(PathBuf::from(value)),
                "schema" => config.schema = schema(value)?,
                "connections" => config.connections = connections(value)?,
                "passfile" => password = Some(first_line(Path::new(value))?),
                _ => passed_on.push(pair),
            }
        }
        let rest = format!("{base}?{}", passed_on.join("&"));
        // Its own error may repeat the address, and with it the password.
        config.server = tokio_postgres::Config::from_str(&rest)
            .map_err(|_| unusable("it is not postgres://user@host:port/database?name=value"))?;
        let given = config.server.get_password().is_some();
        let elsewhere = password.or_else(|| {
            let vars = PASSWORD_VARS.iter().filter(|_| !given);
            vars.filter_map(|name| variable(name)).next()
        });
        if let Some(password) = elsewhere {
            config.server.password(password);
        }
        config.check()?;
        config.finish();
        Ok(config)
    }

    /// What PostgreSQL's own reader lets pass, and nobody could connect with.
    fn check(&self) -> Result<(), StoreError> {
        let hosts = self.server.get_hosts().len();
        let (addresses, ports) = (self.server.get_hostaddrs().len(), self.server.get_ports());
        let count = hosts.max(addresses);
        if count == 0 {
            return Err(unusable(
                "it names no host; for a socket on this machine, add ?host=/its/folder",
            ));
        }
        if hosts > 0 && addresses > 0 && hosts != addresses {
            return Err(unusable("it has not as many hostaddr as hosts"));
        }
        if ports.len() > 1 && ports.len() != count {
            return Err(unusable("it has not as many ports as hosts"));
        }
        if self.tls == Tls::VerifyCa && self.roots.is_none() {
            return Err(unusable(
                "sslmode=verify-ca needs sslrootcert, the certificates to trust",
            ));
        }
        Ok(())
    }

    fn finish(&mut self) {
        self.patience = self.server.get_connect_timeout().copied();
        self.server.ssl_mode(match self.tls {
            Tls::Disable => SslMode::Disable,
            Tls::Prefer => SslMode::Prefer,
            Tls::Require | Tls::VerifyCa | Tls::VerifyFull => SslMode::Require,
        });
        if self.server.get_connect_timeout().is_none() {
            self.server.connect_timeout(CONNECT_TIMEOUT);
        }
        if self.server.get_application_name().is_none() {
            self.server.application_name("punctual");
        }
        self.server
            .keepalives(true)
            .keepalives_idle(Duration::from_secs(5))
            .keepalives_interval(Duration::from_secs(2))
            .keepalives_retries(3)
            .tcp_user_timeout(Duration::from_secs(10));
    }

    /// Our tables' schema.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// So many connections besides the one for beats.
    pub fn with_connections(mut self, connections: usize) -> Self {
        self.connections = connections.clamp(1, CONNECTIONS_MAX);
        self
    }
}

fn tls(text: &str) -> Result<Tls, StoreError> {
    match text {
        "disable" => Ok(Tls::Disable),
        "prefer" => Ok(Tls::Prefer),
        "require" => Ok(Tls::Require),
        "verify-ca" => Ok(Tls::VerifyCa),
        "verify-full" => Ok(Tls::VerifyFull),
        _ => Err(unusable(
            "sslmode is one of disable, prefer, require, verify-ca and verify-full",
        )),
    }
}

/// It stands in statements, so its alphabet is small.
fn schema(text: &str) -> Result<String, StoreError> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let first = text
        .bytes()
        .next()
        .is_some_and(|it| it.is_ascii_lowercase());
    if first && text.len() <= 63 && text.bytes().all(fits) && !text.starts_with("pg_") {
        Ok(text.to_owned())
    } else {
        Err(unusable("schema has letters a to z, digits and _ only"))
    }
}

fn connections(text: &str) -> Result<usize, StoreError> {
    let number = text.parse().ok();
    number
        .filter(|number| (1..=CONNECTIONS_MAX).contains(number))
        .ok_or_else(|| unusable(format!("connections is from 1 to {CONNECTIONS_MAX}")))
}

fn first_line(path: &Path) -> Result<String, StoreError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| unusable(format!("{}: {error}", path.display())))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// Where, but not with which password.
impl fmt::Display for PgConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = match self.server.get_hosts().first() {
            Some(Host::Tcp(name)) => name.clone(),
            Some(Host::Unix(path)) => path.display().to_string(),
            None => "localhost".to_owned(),
        };
        let port = self.server.get_ports().first().copied().unwrap_or(5432);
        let database = self.server.get_dbname().or(self.server.get_user());
        write!(
            f,
            "postgres://{host}:{port}/{}",
            database.unwrap_or_default()
        )
    }
}

impl fmt::Debug for PgConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PgConfig({self}, {:?}, {})", self.tls, self.schema)
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
