//! The binary: a server, and the command line that talks to one.

mod bench;
mod cli;
mod client;
mod config;
mod failure;
mod serve;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // Before anything can ask for TLS. It fails only when a provider is there already.
    let _already = rustls::crypto::ring::default_provider().install_default();
    let cli = cli::Cli::parse();
    match cli::execute(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.text.is_empty() {
                cli::output::error(&failure.text);
            }
            ExitCode::from(failure.code as u8)
        }
    }
}
