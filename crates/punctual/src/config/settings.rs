//! Every setting, once: its name, its words, how it is read and how it is shown.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use engine::NodeConfig;
use engine::vault::MasterKeys;
use model::schedule::{format_span, parse_span};
use model::{Parts, limits};
use store::postgres::PgConfig;

use super::address::masked;
use super::{
    Config, EgressSettings, Front, LogFormat, PythonSettings, Secret, ShellSettings, egress, front,
    log, python, shell,
};

/// The port we listen on by default.
const PORT: u16 = 7710;
const RUNNING_MAX_MAX: usize = 100_000;
const GRACE_MAX: Duration = Duration::from_secs(3_600);

#[derive(Clone, Copy)]
pub(crate) struct Setting {
    /// As the file has it; `PUNCTUAL_…` in capitals is made from it.
    pub name: &'static str,
    /// The name with dashes.
    pub flag: &'static str,
    /// What its value is called in help texts; empty for a switch.
    pub value: &'static str,
    pub help: &'static str,
    /// Never shown.
    pub secret: bool,
    pub(super) set: fn(&mut Config, &str) -> Result<(), String>,
    pub(super) show: fn(&Config) -> String,
}

impl Setting {
    pub(crate) fn variable(&self) -> String {
        format!("PUNCTUAL_{}", self.name.to_uppercase())
    }

    /// Its value when nobody gives one.
    pub(crate) fn default_value(&self) -> String {
        (self.show)(&defaults())
    }
}

/// All of them.
pub(crate) const SETTINGS: &[Setting] = &{
    const OF_FRONT: usize = OF_NODE.len() + front::SETTINGS.len();
    const OF_EGRESS: usize = OF_FRONT + egress::SETTINGS.len();
    const OF_SHELL: usize = OF_EGRESS + shell::SETTINGS.len();
    let mut all = [OF_NODE[0]; OF_SHELL + python::SETTINGS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < OF_NODE.len() {
            OF_NODE[at]
        } else if at < OF_FRONT {
            front::SETTINGS[at - OF_NODE.len()]
        } else if at < OF_EGRESS {
            egress::SETTINGS[at - OF_FRONT]
        } else if at < OF_SHELL {
            shell::SETTINGS[at - OF_EGRESS]
        } else {
            python::SETTINGS[at - OF_SHELL]
        };
        at += 1;
    }
    all
};

const OF_NODE: &[Setting] = &[
    Setting {
        name: "data",
        flag: "data",
        value: "DIR",
        help: "The folder that holds the data",
        secret: false,
        set: |config, text| {
            if text.is_empty() {
                return Err("a folder is needed".to_owned());
            }
            config.data = PathBuf::from(text);
            Ok(())
        },
        show: |config| config.data.display().to_string(),
    },
    Setting {
        name: "store",
        flag: "store",
        value: "URL",
        help: "A PostgreSQL database that several nodes share, postgres://user@host/database; the data folder's own file unless given",
        secret: false,
        set: |config, text| read_into(&mut config.store, store(text)),
        show: |config| config.store.as_deref().map(masked).unwrap_or_default(),
    },
    Setting {
        name: "store_password",
        flag: "store-password",
        value: "PASSWORD",
        help: "The password of --store, if its address has none; a flag can be seen by everyone on this machine, the variable or the file cannot",
        secret: true,
        set: |config, text| {
            if text.contains(char::is_control) {
                return Err("a password is one line of text".to_owned());
            }
            config.store_password = (!text.is_empty()).then(|| Secret(text.to_owned()));
            Ok(())
        },
        show: |config| {
            config
                .store_password
                .as_ref()
                .map_or(String::new(), |_| "set".to_owned())
        },
    },
    Setting {
        name: "master_key_file",
        flag: "master-key-file",
        value: "FILE",
        help: "The file with the master key that secrets are sealed under, 32 bytes as hex or base64; with several lines the first is current and the others only open; master.key of the data folder unless given, which is made there, but none with --store",
        secret: false,
        set: |config, text| read_into(&mut config.master_key_file, file(text)),
        show: |config| shown_file(config.master_key_file.as_ref()),
    },
    Setting {
        name: "master_key",
        flag: "master-key",
        value: "KEY",
        help: "The master key itself, instead of a file; a flag can be seen by everyone on this machine, the variable cannot",
        secret: true,
        set: |config, text| {
            let keys = (!text.is_empty()).then(|| MasterKeys::parse(text));
            keys.transpose().map_err(|error| error.to_string())?;
            config.master_key = (!text.is_empty()).then(|| Secret(text.to_owned()));
            Ok(())
        },
        show: |config| {
            let key = config.master_key.as_ref();
            key.map_or(String::new(), |_| "set".to_owned())
        },
    },
    Setting {
        name: "master_key_command",
        flag: "master-key-command",
        value: "COMMAND",
        help: "A program that prints the master key, with its arguments, instead of a file; no shell reads it, and it has 10s",
        secret: false,
        set: |config, text| {
            if !text.is_empty() && text.trim().is_empty() {
                return Err("a program is needed".to_owned());
            }
            config.master_key_command = (!text.is_empty()).then(|| text.to_owned());
            Ok(())
        },
        show: |config| config.master_key_command.clone().unwrap_or_default(),
    },
    Setting {
        name: "master_key_old_file",
        flag: "master-key-old-file",
        value: "FILE",
        help: "A file with master keys from before, one per line: they open what they sealed and seal nothing",
        secret: false,
        set: |config, text| read_into(&mut config.master_key_old_file, file(text)),
        show: |config| shown_file(config.master_key_old_file.as_ref()),
    },
    Setting {
        name: "parts",
        flag: "parts",
        value: "PARTS",
        help: "What this node does: api (answers clients), schedule (fires what is due), execute (hands it to targets); fewer than all only with --store",
        secret: false,
        set: |config, text| {
            let parts = text.parse::<Parts>();
            read_into(&mut config.parts, parts.map_err(|error| error.to_string()))
        },
        show: |config| config.parts.to_string(),
    },
    Setting {
        name: "hold",
        flag: "hold",
        value: "",
        help: "Start everything but firing: nothing is handed to a target and nothing is forgotten, while the API answers; for a look at a restored copy",
        secret: false,
        set: |config, text| read_into(&mut config.hold, switch(text)),
        show: |config| config.hold.to_string(),
    },
    Setting {
        name: "clock_skew_max",
        flag: "clock-skew-max",
        value: "SPAN",
        help: "How far this machine's clock may be off the database's before the node stops firing",
        secret: false,
        set: |config, text| read_into(&mut config.clock_skew_max, keep(text)),
        show: |config| format_span(config.clock_skew_max),
    },
    Setting {
        name: "listen",
        flag: "listen",
        value: "ADDR",
        help: "The address to listen on; port 0 takes a free one",
        secret: false,
        set: |config, text| read_into(&mut config.listen, address(text)),
        show: |config| config.listen.to_string(),
    },
    Setting {
        name: "insecure_no_auth",
        flag: "insecure-no-auth",
        value: "",
        help: "Demand no key: whoever can connect may do everything; on a loopback address only",
        secret: false,
        set: |config, text| read_into(&mut config.insecure_no_auth, switch(text)),
        show: |config| config.insecure_no_auth.to_string(),
    },
    Setting {
        name: "metrics_open",
        flag: "metrics-open",
        value: "",
        help: "Show /metrics also to those who have no key",
        secret: false,
        set: |config, text| read_into(&mut config.metrics_open, switch(text)),
        show: |config| config.metrics_open.to_string(),
    },
    Setting {
        name: "hosts",
        flag: "hosts",
        value: "NAMES",
        help: "Names, with commas between them, that a node on a loopback address answers to besides localhost and loopback addresses; a request for any other is refused, because a web page may make its own name lead here",
        secret: false,
        set: |config, text| read_into(&mut config.hosts, hosts(text)),
        show: |config| config.hosts.join(","),
    },
    Setting {
        name: "node",
        flag: "node",
        value: "NAME",
        help: "What this node calls itself, to people and to targets; the machine's name unless given, with the port if --store is",
        secret: false,
        set: |config, text| read_into(&mut config.node, node_name(text)),
        show: |config| config.node_at(config.listen.port()),
    },
    Setting {
        name: "grace",
        flag: "grace",
        value: "SPAN",
        help: "How long work under way may take to finish when the node stops",
        secret: false,
        set: |config, text| read_into(&mut config.grace, span(text, Duration::ZERO, GRACE_MAX)),
        show: |config| format_span(config.grace),
    },
    Setting {
        name: "running_max",
        flag: "running-max",
        value: "COUNT",
        help: "How many attempts may be under way at once",
        secret: false,
        set: |config, text| read_into(&mut config.running_max, count(text, RUNNING_MAX_MAX)),
        show: |config| config.running_max.to_string(),
    },
    Setting {
        name: "origin_calls_max",
        flag: "origin-calls-max",
        value: "COUNT",
        help: "How many calls to one origin (scheme, host and port) may be under way at once, for each tenant",
        secret: false,
        set: |config, text| read_into(&mut config.origin_calls_max, count(text, RUNNING_MAX_MAX)),
        show: |config| config.origin_calls_max.to_string(),
    },
    Setting {
        name: "history_keep",
        flag: "history-keep",
        value: "SPAN",
        help: "How long ended runs are kept",
        secret: false,
        set: |config, text| read_into(&mut config.history_keep, keep(text)),
        show: |config| format_span(config.history_keep),
    },
    Setting {
        name: "finished_keep",
        flag: "finished-keep",
        value: "SPAN",
        help: "How long finished one-off jobs are kept",
        secret: false,
        set: |config, text| read_into(&mut config.finished_keep, keep(text)),
        show: |config| format_span(config.finished_keep),
    },
    Setting {
        name: "audit_keep",
        flag: "audit-keep",
        value: "SPAN",
        help: "How long the audit log is kept",
        secret: false,
        set: |config, text| read_into(&mut config.audit_keep, keep(text)),
        show: |config| format_span(config.audit_keep),
    },
    Setting {
        name: "health_bound",
        flag: "health-bound",
        value: "SPAN",
        help: "How long something may be due and untouched before /healthz fails",
        secret: false,
        set: |config, text| read_into(&mut config.health_bound, keep(text)),
        show: |config| format_span(config.health_bound),
    },
    Setting {
        name: "log",
        flag: "log",
        value: "FILTER",
        help: "What is logged: error, warn, info, debug, trace or off, or by module, such as info,engine=debug; read again on SIGHUP",
        secret: false,
        set: |config, text| {
            let checked = log::filter(text).map(|_| text.to_owned());
            read_into(&mut config.log, checked)
        },
        show: |config| config.log.clone(),
    },
    Setting {
        name: "log_format",
        flag: "log-format",
        value: "FORMAT",
        help: "How it is logged: text, or json with an object in each line",
        secret: false,
        set: |config, text| {
            config.log_format = match text {
                "text" => LogFormat::Text,
                "json" => LogFormat::Json,
                other => return Err(format!("{other:?} is not a format: write text or json")),
            };
            Ok(())
        },
        show: |config| match config.log_format {
            LogFormat::Text => "text".to_owned(),
            LogFormat::Json => "json".to_owned(),
        },
    },
];

pub(super) fn defaults() -> Config {
    let node = NodeConfig::default();
    Config {
        data: default_data(),
        store: None,
        store_password: None,
        master_key: None,
        master_key_file: None,
        master_key_command: None,
        master_key_old_file: None,
        parts: node.parts,
        hold: node.hold,
        clock_skew_max: node.clock_skew_max,
        listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT),
        insecure_no_auth: false,
        metrics_open: false,
        hosts: Vec::new(),
        front: Front::default(),
        egress: EgressSettings::default(),
        shell: ShellSettings::default(),
        python: PythonSettings::default(),
        node: host_name().unwrap_or(node.name),
        grace: Duration::from_secs(10),
        running_max: node.running_max,
        origin_calls_max: node.origin_calls_max,
        history_keep: node.history_keep,
        finished_keep: node.finished_keep,
        audit_keep: node.audit_keep,
        health_bound: node.health_bound,
        log: "info".to_owned(),
        log_format: LogFormat::Text,
        origins: BTreeMap::new(),
    }
}

/// Where such data belongs: the system's place for root, the user's own for everyone else.
fn default_data() -> PathBuf {
    let variable = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    if nix::unistd::Uid::effective().is_root() {
        return PathBuf::from("/var/lib/punctual");
    }
    variable("XDG_DATA_HOME")
        .filter(|folder| folder.is_absolute())
        .or_else(|| variable("HOME").map(|home| home.join(".local/share")))
        .map_or(PathBuf::from("punctual-data"), |folder| {
            folder.join("punctual")
        })
}

fn host_name() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    node_name(text.trim()).ok()
}

/// The address is read again when the store is opened; here it only has to be one. It may hold a
/// password, so no error repeats it.
fn store(text: &str) -> Result<Option<String>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    match PgConfig::parse(text) {
        Ok(_) => Ok(Some(text.to_owned())),
        Err(error) => Err(error.to_string()),
    }
}

fn file(text: &str) -> Result<Option<PathBuf>, String> {
    if text.contains(char::is_control) {
        return Err("a file's name is one line of text".to_owned());
    }
    Ok((!text.is_empty()).then(|| PathBuf::from(text)))
}

fn shown_file(path: Option<&PathBuf>) -> String {
    path.map(|path| path.display().to_string())
        .unwrap_or_default()
}

pub(super) fn read_into<T>(place: &mut T, value: Result<T, String>) -> Result<(), String> {
    value.map(|value| *place = value)
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let numeric = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    let refused = |_| format!("{text:?} is not an address: write 127.0.0.1:7710 or [::1]:7710");
    numeric.parse().map_err(refused)
}

/// Names as `Host` has them, without a port.
fn hosts(text: &str) -> Result<Vec<String>, String> {
    let fits = |name: &str| {
        let is_part = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
        !name.is_empty() && name.bytes().all(is_part)
    };
    let names = text.split(',').map(str::trim).filter(|it| !it.is_empty());
    names
        .map(|name| {
            let refused = || format!("{name:?} is not a host's name: leave out scheme and port");
            fits(name)
                .then(|| name.to_ascii_lowercase())
                .ok_or_else(refused)
        })
        .collect()
}

pub(super) fn switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => Err(format!("{text:?} is neither true nor false")),
    }
}

/// The name travels as a header's value.
fn node_name(text: &str) -> Result<String, String> {
    let fits =
        (1..=limits::NAME_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    fits.then(|| text.to_owned()).ok_or_else(|| {
        format!(
            "a name has 1 to {} visible ASCII characters",
            limits::NAME_MAX
        )
    })
}

pub(super) fn count(text: &str, max: usize) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|number| (1..=max).contains(number))
        .ok_or_else(|| format!("{text:?} is not a number from 1 to {max}"))
}

fn keep(text: &str) -> Result<Duration, String> {
    span(text, Duration::from_secs(1), Duration::MAX)
}

fn span(text: &str, min: Duration, max: Duration) -> Result<Duration, String> {
    let read = parse_span(text).map_err(|error| error.to_string())?;
    if read < min {
        return Err(format!("at least {} is needed", format_span(min)));
    }
    if read > max {
        return Err(format!("at most {} is allowed", format_span(max)));
    }
    Ok(read)
}
