//! The log: how its lines are written, and which. Levels are read again on SIGHUP, from where they came; a filter that cannot be
//! read then changes nothing.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::spawn_blocking;
use tracing::{info, warn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, registry, reload};

use crate::config::{Config, LogFormat, Sources, log};
use crate::failure::Failure;

/// Which lines are written from now on.
pub(super) struct Levels {
    handle: reload::Handle<EnvFilter, Registry>,
    current: String,
}

pub(super) fn start(config: &Config) -> Result<Levels, Failure> {
    let refused = |error: String| Failure::usage(format!("the log cannot be started: {error}"));
    let filter = log::filter(&config.log).map_err(refused)?;
    let (levels, handle) = reload::Layer::new(filter);
    // With the log's reader gone nobody reads it.
    let lines = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::IsTerminal::is_terminal(&io::stderr()))
        .log_internal_errors(false);
    let lines = match config.log_format {
        LogFormat::Text => lines.with_target(false).boxed(),
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .boxed(),
    };
    let log = registry().with(levels).with(lines);
    log.try_init().map_err(|error| refused(error.to_string()))?;
    Ok(Levels {
        handle,
        current: config.log.clone(),
    })
}

impl Levels {
    /// Follows the configuration from now on.
    pub(super) fn follow(mut self, sources: Sources) -> Result<(), Failure> {
        let mut hangup = signal(SignalKind::hangup())
            .map_err(|error| Failure::usage(format!("cannot listen for signals: {error}")))?;
        tokio::spawn(async move {
            while hangup.recv().await.is_some() {
                let sources = sources.clone();
                let reading = spawn_blocking(move || Config::load(&sources)).await;
                let read = reading.unwrap_or_else(|error| Err(Failure::usage(error.to_string())));
                let replaced = read
                    .map_err(|failure| failure.text)
                    .and_then(|config| self.replace(&config));
                if let Err(why) = replaced {
                    warn!("SIGHUP: {why}: the log levels stay {}", self.current);
                }
            }
        });
        Ok(())
    }

    fn replace(&mut self, config: &Config) -> Result<(), String> {
        let origin = config.origin_of("log");
        if config.log == self.current {
            info!(
                "SIGHUP: the log levels are the same: {} ({origin})",
                self.current
            );
            return Ok(());
        }
        let filter = log::filter(&config.log)?;
        let replaced = self.handle.reload(filter);
        replaced.map_err(|error| error.to_string())?;
        info!(
            "SIGHUP: the log levels are {} now ({origin}), and were {}",
            config.log, self.current
        );
        self.current.clone_from(&config.log);
        Ok(())
    }
}
