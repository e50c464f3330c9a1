//! Settings of the egress guard: whom this node may call.

use executor::egress::{Allow, Egress, Ports};

use super::Config;
use super::settings::{Setting, read_into};

/// Whom this node may call, as far as it was said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct EgressSettings {
    pub allow: Allow,
    pub ports: Ports,
}

impl Config {
    /// Whom this node may call. Without keys, which is on a loopback address only, it is somebody's own machine: they may
    /// call what they can reach anyway.
    pub(crate) fn egress(&self) -> Egress {
        let EgressSettings { allow, ports } = self.egress.clone();
        let allow = if self.calls_all() {
            Allow::all()
        } else {
            allow
        };
        Egress::new(allow, ports)
    }

    /// Whether everything may be called, and nobody said so.
    fn calls_all(&self) -> bool {
        self.insecure_no_auth && !self.origins.contains_key("egress_allow")
    }

    /// Said at the start.
    pub(crate) fn warning_of_egress(&self) -> Option<String> {
        self.calls_all().then(|| {
            "jobs may call every address, this machine's and its network's among them, because no key is required: \
             bound them with --egress-allow public"
                .to_owned()
        })
    }
}

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "egress_allow",
        flag: "egress-allow",
        value: "RANGES",
        help: "Addresses that may be called, with commas between them: public, loopback, private, link-local, all, or ranges such as 10.1.0.0/16; all with --insecure-no-auth, unless given",
        secret: false,
        set: |config, text| read_into(&mut config.egress.allow, text.parse()),
        show: |config| config.egress().allow().to_string(),
    },
    Setting {
        name: "egress_ports",
        flag: "egress-ports",
        value: "PORTS",
        help: "Ports that may be called, with commas between them: any, 443, or 8000-8999",
        secret: false,
        set: |config, text| read_into(&mut config.egress.ports, text.parse()),
        show: |config| config.egress.ports.to_string(),
    },
];
