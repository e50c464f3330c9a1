//! Which server to call, and with which key.

use std::net::IpAddr;

use clap::Args;
use hyper::Uri;

use crate::client::Client;
use crate::config::{Config, Flags, Sources};
use crate::failure::Failure;
use crate::profile::{self, Profile};
use crate::serve;
use crate::tls::Trust;

const SERVER: &str = "http://127.0.0.1:7710";
/// Never a flag: everyone on a machine can see those.
const KEY_VARIABLE: &str = "PUNCTUAL_KEY";

/// Which server to call, and how to print the answer.
#[derive(Debug, Args)]
pub(super) struct Remote {
    /// The server that commands talk to [default: that of the profile, else http://127.0.0.1:7710]
    #[arg(long, global = true, value_name = "URL", env = "PUNCTUAL_SERVER")]
    #[arg(hide_env_values = true, display_order = 900)]
    server: Option<String>,
    #[command(flatten)]
    trust: Trust,
    /// A server and its key, as `punctual login` keeps them [default: default, if there is such]
    #[arg(long, global = true, value_name = "NAME", env = "PUNCTUAL_PROFILE")]
    #[arg(hide_env_values = true, display_order = 900)]
    profile: Option<String>,
    /// Print JSON: exactly what the server answered; errors as problem documents on standard error
    #[arg(long, global = true, display_order = 901)]
    pub json: bool,
}

impl Remote {
    /// A client with the first key that is found: `PUNCTUAL_KEY`, the profile's, that of this machine's own server.
    pub(super) fn client(&self) -> Result<Client, Failure> {
        let profile = match &self.profile {
            Some(name) => Some(Profile::load(name)?),
            None => Profile::find(profile::DEFAULT).ok().flatten(),
        };
        let server = self.server_with(profile.as_ref())?;
        // A key is for one server, and no other gets to see it.
        let profile = profile.filter(|profile| is_same(&profile.server, &server));
        let key = std::env::var(KEY_VARIABLE).ok();
        let key = key.map(|key| key.trim().to_owned());
        let kept = profile.as_ref().map(|profile| profile.key.clone());
        let key = key
            .filter(|key| !key.is_empty())
            .or(kept)
            .or_else(|| own_key(&server));
        let trust = profile.map_or_else(Trust::default, |profile| profile.tls);
        Client::new(&server, &self.trust.or(&trust))?.with_key(key)
    }

    /// One for a server that is logged in to.
    pub(super) fn client_of(&self, server: &str, key: &str) -> Result<Client, Failure> {
        Client::new(server, &self.trust)?.with_key(Some(key.to_owned()))
    }

    /// What a profile keeps of it.
    pub(super) fn trust(&self) -> Result<Trust, Failure> {
        self.trust.absolute()
    }

    pub(super) fn profile_name(&self) -> &str {
        self.profile.as_deref().unwrap_or(profile::DEFAULT)
    }

    fn server_with(&self, profile: Option<&Profile>) -> Result<String, Failure> {
        match (&self.server, profile) {
            (Some(server), Some(profile))
                if self.profile.is_some() && !is_same(server, &profile.server) =>
            {
                let (name, of) = (self.profile_name(), &profile.server);
                Err(Failure::usage(format!(
                    "the profile {name} is for {of}, not for {server}: leave one of them out"
                )))
            }
            (Some(server), _) => Ok(server.clone()),
            (None, Some(profile)) => Ok(profile.server.clone()),
            (None, None) => Ok(SERVER.to_owned()),
        }
    }
}

fn is_same(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

/// The key that a server of this machine has left in its data folder.
fn own_key(server: &str) -> Option<String> {
    let uri: Uri = server.parse().ok()?;
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
    let address = host.parse::<IpAddr>().ok();
    let is_here = address.is_some_and(|address| address.is_loopback()) || host == "localhost";
    let config = Config::load(&Sources::of_process(Flags::default())).ok()?;
    is_here
        .then(|| serve::root_key::read(&config.data))
        .flatten()
}
