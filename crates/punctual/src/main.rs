//! The binary: a server, and the command line that talks to one.

#![deny(unreachable_pub)]

mod bench;
mod cli;
mod client;
mod config;
mod failure;
mod private_file;
mod profile;
mod serve;
mod tls;

use std::process::ExitCode;

use clap::Parser;
use executor::shell;

fn main() -> ExitCode {
    // The same binary is what commands run under. That is nothing for people, and is to begin at once.
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next().as_deref().and_then(|it| it.to_str()) {
        Some(shell::SUPERVISE) => return shell::supervise(),
        Some(shell::START) => return shell::start(arguments),
        Some(_) | None => {}
    }
    // Before anything can ask for TLS. It fails only when a provider is there already.
    let _already = rustls::crypto::ring::default_provider().install_default();
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return cli::unread(&error),
    };
    let json = cli.json();
    match cli::execute(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            cli::output::failure(&failure, json);
            ExitCode::from(failure.code as u8)
        }
    }
}
