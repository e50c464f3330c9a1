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

fn main() -> ExitCode {
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
