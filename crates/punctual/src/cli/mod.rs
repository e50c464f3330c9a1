//! The command line, one file per group of commands.

mod alert;
mod audit;
mod backup;
mod batch;
mod calendar;
mod completions;
mod config;
mod create;
mod edit;
mod events;
mod explain;
mod export;
mod fields;
mod file;
mod find;
mod forecast;
mod job;
mod key;
mod login;
mod next;
mod node;
mod openapi;
pub(crate) mod output;
mod outside;
mod overview;
mod remote;
mod replay;
mod run;
mod run_log;
mod secret;
mod shell;
mod signing;
mod slots;
mod target;
mod tenant;
mod user;
mod versions;
mod view;
mod when;
pub(crate) mod words;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::client::Client;
use crate::config::Flags;
use crate::failure::Failure;
use crate::serve;
use remote::Remote;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  the server refused, or there is no such job, run, calendar or alert
  2  the command line, the configuration, a file or the data folder is at fault
  3  no server answers

Examples:
  punctual serve
  punctual job create --key hello --every 5s --url http://127.0.0.1:8000/ --method GET
  punctual run list --job hello
  punctual next \"0 9 * * MON-FRI\" --timezone Europe/Berlin --count 3";

/// Makes jobs happen on time: at a moment, on a cron expression or at an interval.
#[derive(Debug, Parser)]
#[command(name = "punctual", version, after_help = EXIT_CODES, max_term_width = 100)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a server
    #[command(after_help = serve::HELP)]
    Serve(Flags),
    /// Create, show and change jobs
    #[command(subcommand)]
    Job(job::Command),
    /// Show runs, cancel and replay them
    #[command(subcommand)]
    Run(run::Command),
    /// Replay many runs at a pace, and see how far that is
    #[command(subcommand)]
    Replay(replay::Command),
    /// Write, show and delete calendars: days and hours that jobs leave out or keep to
    #[command(subcommand)]
    Calendar(calendar::Command),
    /// Say who is to hear of what, and see what was sent
    #[command(subcommand)]
    Alert(alert::Command),
    /// Show whom jobs call, and how they are
    #[command(subcommand)]
    Target(target::Command),
    /// Show the nodes that share the work
    #[command(subcommand)]
    Node(node::Command),
    /// Show how the jobs fare, and what somebody should look at
    #[command(after_help = overview::HELP)]
    Overview(overview::Overview),
    /// Show how many slots are due in the seconds ahead, and spread those that come at once
    #[command(after_help = forecast::HELP)]
    Forecast(forecast::Forecast),
    /// Print a line each time that something has changed
    #[command(after_help = events::HELP)]
    Events(events::Events),
    /// Make, list and delete tenants
    #[command(subcommand)]
    Tenant(tenant::Command),
    /// Make, list and revoke keys
    #[command(subcommand)]
    Key(key::Command),
    /// Make, change, list and delete users, who log in to the console
    #[command(subcommand)]
    User(user::Command),
    /// Print a link that opens the console and logs in once
    #[command(after_help = user::CONSOLE_HELP)]
    Console,
    /// Show, export and check who changed what
    #[command(subcommand)]
    Audit(audit::Command),
    /// Write history to a file or a pipe
    #[command(subcommand)]
    Export(export::Command),
    /// Make, list and delete secrets: values that jobs send and nobody gets back
    #[command(subcommand)]
    Secret(secret::Command),
    /// Make, list and delete what callbacks are signed with
    #[command(subcommand)]
    Signing(signing::Command),
    /// Keep a server and a key for the commands that follow
    #[command(after_help = login::HELP)]
    Login(login::Login),
    /// Show when a schedule is due; needs no server, unless calendars are named
    #[command(after_help = next::HELP)]
    Next(next::Next),
    /// Copy the data folder's database to a file, also while a server uses it
    #[command(after_help = backup::HELP)]
    Backup(backup::Backup),
    /// Measure what this machine can do
    #[command(after_help = crate::bench::HELP)]
    Bench(crate::bench::Bench),
    /// Show the configuration
    #[command(subcommand)]
    Config(config::Command),
    /// Print a script that completes commands in a shell
    #[command(after_help = completions::HELP)]
    Completions(completions::Completions),
    /// Print the contract of the API, OpenAPI 3.1
    Openapi,
}

impl Cli {
    /// Whether a program reads what is printed.
    pub(crate) fn json(&self) -> bool {
        self.remote.json
    }
}

/// Ends a command line that cannot be read; one that asks for help is answered in the same way.
pub(crate) fn unread(error: &clap::Error) -> ExitCode {
    let json = std::env::args_os().any(|word| word == "--json");
    if !json || error.exit_code() == 0 {
        error.exit();
    }
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    let failure = Failure::usage(first.trim_start_matches("error: "));
    output::failure(&failure, json);
    ExitCode::from(failure.code as u8)
}

/// Does what the command line says.
pub(crate) fn execute(cli: Cli) -> Result<(), Failure> {
    let Cli { remote, command } = cli;
    let json = remote.json;
    match command {
        Command::Serve(flags) => serve::serve(flags),
        Command::Job(command) => with_client(&remote, async |client| {
            job::execute(command, &client, json).await
        }),
        Command::Run(command) => with_client(&remote, async |client| {
            run::execute(command, &client, json).await
        }),
        Command::Replay(command) => with_client(&remote, async |client| {
            replay::execute(command, &client, json).await
        }),
        Command::Calendar(command) => with_client(&remote, async |client| {
            calendar::execute(command, &client, json).await
        }),
        Command::Alert(command) => with_client(&remote, async |client| {
            alert::execute(command, &client, json).await
        }),
        Command::Target(command) => with_client(&remote, async |client| {
            target::execute(command, &client, json).await
        }),
        Command::Node(command) => with_client(&remote, async |client| {
            node::execute(command, &client, json).await
        }),
        Command::Overview(it) => with_client(&remote, async |client| {
            overview::execute(&it, &client, json).await
        }),
        Command::Forecast(it) => with_client(&remote, async |client| {
            forecast::execute(&it, &client, json).await
        }),
        Command::Events(it) => with_client(&remote, async |client| {
            events::execute(&it, &client, json).await
        }),
        Command::Tenant(command) => with_client(&remote, async |client| {
            tenant::execute(command, &client, json).await
        }),
        Command::Key(it) => with_client(&remote, async |to| key::execute(it, &to, json).await),
        Command::User(command) => with_client(&remote, async |client| {
            user::execute(command, &client, json).await
        }),
        Command::Console => with_client(&remote, async |client| user::console(&client, json).await),
        Command::Audit(command) => with_client(&remote, async |client| {
            audit::execute(command, &client, json).await
        }),
        Command::Export(it) => with_client(&remote, async |client| it.execute(&client).await),
        Command::Secret(command) => with_client(&remote, async |client| {
            secret::execute(command, &client, json).await
        }),
        Command::Signing(command) => with_client(&remote, async |client| {
            signing::execute(command, &client, json).await
        }),
        Command::Login(login) => block_on(login.execute(&remote)),
        Command::Next(next) => next::execute(&next, &remote),
        Command::Backup(backup) => backup::execute(&backup, json),
        Command::Bench(bench) => crate::bench::execute(&bench, json),
        Command::Config(command) => config::execute(command, json),
        Command::Completions(completions) => completions::execute(&completions),
        Command::Openapi => openapi::execute(),
    }
}

/// Runs a command that talks to a server; one thread is enough for that.
fn with_client<F>(remote: &Remote, talk: F) -> Result<(), Failure>
where
    F: AsyncFnOnce(Client) -> Result<(), Failure>,
{
    block_on(talk(remote.client()?))
}

fn block_on(talk: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::usage(format!("cannot start: {error}")))?;
    runtime.block_on(talk)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
