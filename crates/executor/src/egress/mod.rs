//! The egress guard: whom this process may call. Everything that leaves it is dialled here, and what is checked is the
//! address that is dialled, so no name, redirect or spelling leads around it.
//!
//! In reading order: `class` (what an address is), `rules` (what the operator allows), this file (the policy), `names` (from
//! a host to its addresses), `dial` (the one place that connects).

mod class;
mod dial;
mod names;
mod rules;

use std::fmt;
use std::net::IpAddr;

pub use class::Class;
pub use dial::{DialError, Dialer};
pub use names::{Resolve, System};
pub use rules::{Allow, Ports};

/// Which addresses and ports may be called. By default public addresses, and any port.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Egress {
    allow: Allow,
    ports: Ports,
}

/// What may not be called, and what would allow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    Address {
        /// As it is dialled.
        address: IpAddr,
        class: Class,
        /// The value of `egress_allow` that allows it.
        allow: String,
    },
    Port {
        port: u16,
        /// The value of `egress_ports` that allows it.
        ports: String,
    },
}

impl Egress {
    pub fn new(allow: Allow, ports: Ports) -> Self {
        Self { allow, ports }
    }

    /// Everything may be called.
    pub fn unbounded() -> Self {
        Self::new(Allow::all(), Ports::default())
    }

    /// Whether it lets everything pass.
    pub fn is_unbounded(&self) -> bool {
        *self == Self::unbounded()
    }

    pub fn allow(&self) -> &Allow {
        &self.allow
    }

    /// Whether an address may be dialled on a port. One that holds another address must be allowed to call that, too.
    pub fn check(&self, address: IpAddr, port: u16) -> Result<(), Refused> {
        self.check_port(port)?;
        self.check_address(address)
    }

    pub fn check_port(&self, port: u16) -> Result<(), Refused> {
        if self.ports.allows(port) {
            return Ok(());
        }
        let ports = self.ports.with(port).to_string();
        Err(Refused::Port { port, ports })
    }

    fn check_address(&self, address: IpAddr) -> Result<(), Refused> {
        let plain = class::plain(address);
        let embedded = class::embedded(plain).into_iter().map(IpAddr::V4);
        for part in std::iter::once(plain).chain(embedded) {
            let class = Class::of(part);
            if !self.allow.allows(part, class) {
                let allow = self.allow.with(part, class).to_string();
                return Err(Refused::Address {
                    address,
                    class,
                    allow,
                });
            }
        }
        Ok(())
    }

    /// Whether a host may be called, as far as can be said before it is resolved: a name may lead anywhere.
    pub fn check_host(&self, host: &str, port: u16) -> Result<(), Refused> {
        self.check_port(port)?;
        model::host::address(host).map_or(Ok(()), |address| self.check_address(address))
    }
}

impl Refused {
    /// What is said of a host that was called. Of a name only the class is said: what a name leads to inside a network is
    /// nothing to report to whoever may write a job.
    pub fn of_host(&self, host: &str) -> String {
        match self {
            Self::Address { class, .. } if model::host::address(host).is_none() => {
                let fix = if rules::word(*class).is_some() {
                    self.fix()
                } else {
                    "its operator can allow a range with --egress-allow".to_owned()
                };
                format!("{host} leads to {class}, which this node may not call: {fix}")
            }
            Self::Address { .. } | Self::Port { .. } => self.to_string(),
        }
    }

    fn fix(&self) -> String {
        let (flag, value) = match self {
            Self::Address { allow, .. } => ("--egress-allow", allow),
            Self::Port { ports, .. } => ("--egress-ports", ports),
        };
        format!("its operator can allow it with {flag} {value}")
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fix = self.fix();
        match self {
            Self::Address { address, class, .. } => {
                write!(
                    f,
                    "{address} is {class}, which this node may not call: {fix}"
                )
            }
            Self::Port { port, .. } => {
                write!(f, "port {port} may not be called by this node: {fix}")
            }
        }
    }
}

#[cfg(test)]
#[path = "egress_tests.rs"]
mod tests;
