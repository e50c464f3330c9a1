//! `punctual login`: keeps a server and a key for the commands that follow.

use std::io::{self, BufRead, IsTerminal};

use clap::Args;
use nix::sys::termios::{LocalFlags, SetArg, tcgetattr, tcsetattr};

use super::output;
use super::remote::Remote;
use crate::client::Call;
use crate::failure::Failure;
use crate::profile::Profile;

pub(super) const HELP: &str = "\
The key is read from the terminal, without being shown, or from standard input. It is tried, and kept
in a file that only you can read: ~/.config/punctual/profiles/NAME.toml. With --profile NAME the login
has a name, and commands use it with --profile NAME or PUNCTUAL_PROFILE; without, it is the one they use.

Examples:
  punctual login https://punctual.internal
  punctual login https://punctual.internal --server-ca ca.pem
  punctual login https://punctual.staging --profile staging < key.txt
  punctual job list --profile staging
  PUNCTUAL_KEY=$(cat key.txt) punctual job list --server https://punctual.internal";

#[derive(Debug, Args)]
pub(super) struct Login {
    /// The server
    url: String,
}

impl Login {
    pub(super) async fn execute(&self, remote: &Remote) -> Result<(), Failure> {
        let key = read_key()?;
        let client = remote.client_of(&self.url, &key)?;
        let answer = client.send(Call::get("/version")).await?;
        let name = remote.profile_name();
        let server = self.url.clone();
        let tls = remote.trust()?;
        let path = Profile { server, key, tls }.save(name)?;
        if remote.json {
            return output::json(&answer);
        }
        let (url, path) = (output::clean(&self.url), path.display());
        output::line(&format!("logged in to {url}: profile {name}, in {path}"))
    }
}

fn read_key() -> Result<String, Failure> {
    let refused = |error: io::Error| Failure::usage(format!("the key cannot be read: {error}"));
    let stdin = io::stdin();
    let mut line = String::new();
    if stdin.is_terminal() {
        output::prompt("Key: ");
        let read = without_echo(|| stdin.lock().read_line(&mut line));
        output::note("");
        read.map_err(refused)?;
    } else {
        stdin.lock().read_line(&mut line).map_err(refused)?;
    }
    let key = line.trim().to_owned();
    if key.is_empty() {
        return Err(Failure::usage(
            "no key was given: write it at the prompt, or to standard input",
        ));
    }
    Ok(key)
}

/// What is typed meanwhile is not shown.
pub(super) fn without_echo(read: impl FnOnce() -> io::Result<usize>) -> io::Result<usize> {
    let stdin = io::stdin();
    let before = tcgetattr(&stdin)?;
    let mut quiet = before.clone();
    quiet.local_flags.remove(LocalFlags::ECHO);
    tcsetattr(&stdin, SetArg::TCSANOW, &quiet)?;
    let read = read();
    tcsetattr(&stdin, SetArg::TCSANOW, &before)?;
    read
}
