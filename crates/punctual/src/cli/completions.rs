//! `punctual completions SHELL`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, output};
use crate::failure::Failure;

pub(super) const HELP: &str = "\
Examples:
  punctual completions bash > /etc/bash_completion.d/punctual
  punctual completions zsh > \"${fpath[1]}/_punctual\"
  punctual completions fish > ~/.config/fish/completions/punctual.fish";

#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell
    shell: Shell,
}

pub(super) fn execute(completions: &Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        completions.shell,
        &mut Cli::command(),
        "punctual",
        &mut script,
    );
    output::json(&script)
}
