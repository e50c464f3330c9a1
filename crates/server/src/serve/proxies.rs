//! Whose request a proxy passes on. What a header says about that is believed of proxies that the operator trusts, and
//! only as far back as they vouch for: the last address that is no trusted proxy's.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderName, header};
use model::Cidr;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Where proxies say whose request it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProxyHeader {
    /// That of RFC 7239.
    #[default]
    Forwarded,
    XForwardedFor,
}

#[derive(Debug, Clone, Default)]
pub struct Proxies {
    trusted: Vec<Cidr>,
    header: ProxyHeader,
}

impl Proxies {
    pub fn new(trusted: Vec<Cidr>, header: ProxyHeader) -> Self {
        Self { trusted, header }
    }

    pub(super) fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.trusted.iter().any(|range| range.contains(address))
    }

    /// Whose request it is that came over a connection from `peer`. What cannot be read is not guessed at: then it is
    /// the proxy's own.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let peer = peer.to_canonical();
        if !self.trusts(peer) {
            return peer;
        }
        let name = match self.header {
            ProxyHeader::Forwarded => header::FORWARDED,
            ProxyHeader::XForwardedFor => X_FORWARDED_FOR,
        };
        let mut found = peer;
        for line in headers.get_all(name).iter().rev() {
            let hops = line.to_str().ok().and_then(|line| match self.header {
                ProxyHeader::Forwarded => elements(line),
                ProxyHeader::XForwardedFor => Some(line.split(',').map(str::to_owned).collect()),
            });
            let Some(hops) = hops else { return peer };
            for hop in hops.iter().rev() {
                let Some(address) = self.address(hop) else {
                    return peer;
                };
                found = address;
                if !self.trusts(found) {
                    return found;
                }
            }
        }
        found
    }

    /// Whether the client spoke TLS to the first proxy, as those that are trusted say. Whoever makes it up says so of itself:
    /// a cookie that it gets is sent over TLS only.
    pub fn is_https(&self, peer: IpAddr, headers: &HeaderMap) -> bool {
        if !self.trusts(peer.to_canonical()) {
            return false;
        }
        let name = match self.header {
            ProxyHeader::Forwarded => header::FORWARDED,
            ProxyHeader::XForwardedFor => X_FORWARDED_PROTO,
        };
        let Some(line) = headers.get(name).and_then(|line| line.to_str().ok()) else {
            return false;
        };
        let first = match self.header {
            ProxyHeader::Forwarded => elements(line)
                .and_then(|elements| elements.into_iter().next())
                .and_then(|element| parameter(&element, "proto")),
            ProxyHeader::XForwardedFor => line.split(',').next().map(str::to_owned),
        };
        first.is_some_and(|proto| proto.trim().eq_ignore_ascii_case("https"))
    }

    /// The address that one hop names.
    fn address(&self, hop: &str) -> Option<IpAddr> {
        let text = match self.header {
            ProxyHeader::Forwarded => parameter(hop, "for")?,
            ProxyHeader::XForwardedFor => hop.trim().to_owned(),
        };
        let bare = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let address = bare.unwrap_or(&text).parse().ok();
        let with_port = || text.parse().ok().map(|address: SocketAddr| address.ip());
        address.or_else(with_port).map(|it| it.to_canonical())
    }
}

/// The elements of a `Forwarded`: commas part them, except within quotes. None if a quote stays open.
fn elements(line: &str) -> Option<Vec<String>> {
    split(line, ',')
}

/// What a parameter says in one element; none if it is not there, or is there twice.
fn parameter(element: &str, wanted: &str) -> Option<String> {
    let pairs = split(element, ';')?;
    let mut found = None;
    for pair in &pairs {
        let (name, value) = pair.split_once('=')?;
        if name.trim().eq_ignore_ascii_case(wanted)
            && found.replace(value.trim().to_owned()).is_some()
        {
            return None;
        }
    }
    let value = found?;
    match value.strip_prefix('"') {
        // Addresses need no escapes; who uses some means something else.
        Some(quoted) => quoted
            .strip_suffix('"')
            .filter(|it| !it.contains(['"', '\\']))
            .map(str::to_owned),
        None => Some(value),
    }
}

fn split(text: &str, at: char) -> Option<Vec<String>> {
    let mut parts = vec![String::new()];
    let (mut is_quoted, mut is_escaped) = (false, false);
    for char in text.chars() {
        if char == at && !is_quoted {
            parts.push(String::new());
            continue;
        }
        if char == '"' && !is_escaped {
            is_quoted = !is_quoted;
        }
        is_escaped = is_quoted && char == '\\' && !is_escaped;
        if let Some(part) = parts.last_mut() {
            part.push(char);
        }
    }
    (!is_quoted).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(header: ProxyHeader, peer: &str, lines: &[&str], expected: &str) {
        let trusted = ["10.0.0.0/8", "fd00::/8"].map(|range| range.parse().unwrap());
        let proxies = Proxies::new(trusted.to_vec(), header);
        let mut headers = HeaderMap::new();
        for line in lines {
            for name in [header::FORWARDED, X_FORWARDED_FOR] {
                headers.append(name, line.parse().unwrap());
            }
        }
        let found = proxies.client(peer.parse().unwrap(), &headers);
        assert_eq!(found.to_string(), expected, "{lines:?} from {peer}");
    }

    #[test]
    fn a_list_of_addresses_is_believed_as_far_as_trusted_proxies_vouch_for_it() {
        let check = |peer, lines: &[&str], expected| {
            check(ProxyHeader::XForwardedFor, peer, lines, expected);
        };
        check("192.0.2.1", &["198.51.100.7"], "192.0.2.1");
        check("10.0.0.1", &[], "10.0.0.1");
        check("10.0.0.1", &["198.51.100.7"], "198.51.100.7");
        check("::ffff:10.0.0.1", &["198.51.100.7"], "198.51.100.7");
        check(
            "10.0.0.1",
            &["203.0.113.9, 198.51.100.7, 10.0.0.2"],
            "198.51.100.7",
        );
        check("10.0.0.1", &["203.0.113.9", "198.51.100.7"], "198.51.100.7");
        check("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3");
        check("10.0.0.1", &["[2001:db8::1]:443"], "2001:db8::1");
        check("10.0.0.1", &["198.51.100.7:80"], "198.51.100.7");
        check("10.0.0.1", &["nonsense, 198.51.100.7"], "198.51.100.7");
        check("10.0.0.1", &["198.51.100.7, nonsense"], "10.0.0.1");
        check("10.0.0.1", &["198.51.100.7,"], "10.0.0.1");
    }

    #[test]
    fn tls_before_a_proxy_is_believed_of_trusted_ones() {
        let check = |header, name: &'static str, line: &str, peer: &str| {
            let proxies = Proxies::new(vec!["10.0.0.0/8".parse().unwrap()], header);
            let mut headers = HeaderMap::new();
            headers.append(name, line.parse().unwrap());
            proxies.is_https(peer.parse().unwrap(), &headers)
        };
        let x = |line, peer| check(ProxyHeader::XForwardedFor, "x-forwarded-proto", line, peer);
        let of = |line, peer| check(ProxyHeader::Forwarded, "forwarded", line, peer);
        assert!(x("https", "10.0.0.1") && x("HTTPS, http", "10.0.0.1"));
        assert!(!x("https", "192.0.2.1") && !x("http", "10.0.0.1") && !x("", "10.0.0.1"));
        assert!(of("for=198.51.100.7;proto=https", "10.0.0.1"));
        assert!(of("for=a;proto=\"https\", for=b;proto=http", "10.0.0.1"));
        assert!(!of("for=a;proto=https", "192.0.2.1"));
        assert!(!of("for=a;proto=http", "10.0.0.1") && !of("for=a", "10.0.0.1"));
    }

    #[test]
    fn forwarded_is_read_with_its_quotes_and_parameters() {
        let check = |lines: &[&str], expected| {
            check(ProxyHeader::Forwarded, "fd00::1", lines, expected);
        };
        check(&["for=198.51.100.7"], "198.51.100.7");
        check(
            &["by=fd00::1;For=\"[2001:db8::1]:4711\";proto=https"],
            "2001:db8::1",
        );
        check(
            &["for=203.0.113.9, for=198.51.100.7;host=a, for=10.0.0.2"],
            "198.51.100.7",
        );
        check(&["for=\"203.0.113.9, for=198.51.100.7"], "fd00::1");
        check(
            &["for=203.0.113.9;x=\"a, b\", for=\"198.51.100.7\""],
            "198.51.100.7",
        );
        check(&["for=203.0.113.9;x=\"a\\\", for=198.51.100.7"], "fd00::1");
        check(&["for=198.51.100.7;for=203.0.113.9"], "fd00::1");
        for unsaid in ["for=unknown", "for=_hidden", "proto=https", "", "for"] {
            check(&[unsaid], "fd00::1");
        }
    }
}
