//! Hosts of URLs: a name, or an address in the one way of writing it that everybody reads alike.
//!
//! Resolvers read far more than that as an IPv4 address: `127.1`, `0x7f.1`, `017700000001` and `2130706433` are all
//! 127.0.0.1 to some of them. Such a host is refused, so that whoever reads a job sees where it goes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Characters of a host that an error repeats.
const SHOWN_MAX: usize = 64;

/// The address that a host is, if it is one and no name. IPv6 may stand in brackets.
pub fn address(host: &str) -> Option<IpAddr> {
    let inner = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    inner.unwrap_or(host).parse().ok()
}

/// Refuses what some programs read as an address and others as another, or as a name.
pub fn check(host: &str) -> Result<(), String> {
    let shown: String = host.chars().take(SHOWN_MAX).collect();
    if let Some(inner) = host.strip_prefix('[') {
        let inner = inner.strip_suffix(']').unwrap_or_default();
        if inner.parse::<Ipv6Addr>().is_ok() {
            return Ok(());
        }
        return Err(format!(
            "{shown} is no IPv6 address: write it as [2001:db8::1], without a zone"
        ));
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if !host.bytes().all(is_plain) {
        return Err(format!(
            "the host {shown} holds a character that no host name has: write letters, digits, - and . (a name with \
             others as xn--…)"
        ));
    }
    let labels = host.strip_suffix('.').unwrap_or(host);
    if labels.is_empty() || labels.split('.').any(str::is_empty) {
        return Err(format!(
            "the host {shown} has a dot too many: write example.com"
        ));
    }
    let last = labels.rsplit('.').next().unwrap_or(labels);
    if is_number(last) && host.parse::<Ipv4Addr>().is_err() {
        return Err(format!(
            "some programs read the host {shown} as an address, and not all as the same: write four decimal numbers, \
             such as 192.0.2.7"
        ));
    }
    Ok(())
}

/// Whether a host that ends in this is an IPv4 address to some programs. No name ends so.
fn is_number(label: &str) -> bool {
    let hex = label.strip_prefix("0x").or(label.strip_prefix("0X"));
    match hex {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_plain_addresses_are_hosts() {
        for host in [
            "example.com",
            "example.com.",
            "a",
            "a_b.c-d",
            "1password.com",
            "3.example",
            "0x7f.example",
            "127.0.0.1.nip.io",
            "127.0.0.1",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "xn--bcher-kva.example",
        ] {
            assert_eq!(check(host), Ok(()), "{host}");
        }
    }

    #[test]
    fn odd_spellings_of_addresses_are_no_hosts() {
        for host in [
            "127.1",
            "127.0.1",
            "0x7f000001",
            "0X7F.0.0.1",
            "0x7f.1",
            "0x",
            "2130706433",
            "017700000001",
            "0177.0.0.1",
            "127.0.0.01",
            "127.0.0.1.",
            "127.0.0.0x1",
            "1.2.3.4.5",
            "256.1.1.1",
            "example.1",
            "99999999999",
            "127.0.0.1..",
            ".",
            "..",
            "a..b",
            ".example.com",
            "127%2e0%2e0%2e1",
            "%31%32%37.0.0.1",
            "１２７.0.0.1",
            "127。0。0。1",
            "①②⑦.0.0.1",
            "a b",
            "a/b",
            "a:b",
            "[::1%25lo]",
            "[fe80::1%eth0]",
            "[v1.a]",
            "[::1",
            "[127.0.0.1]",
            "[]",
        ] {
            assert!(check(host).is_err(), "{host}");
        }
        assert!(check(&"é".repeat(5_000)).unwrap_err().len() < 400);
    }

    #[test]
    fn an_address_is_found_with_brackets_and_without() {
        let one = Some(IpAddr::V6(Ipv6Addr::LOCALHOST));
        assert_eq!((address("::1"), address("[::1]")), (one, one));
        assert_eq!(address("127.0.0.1"), Some(Ipv4Addr::LOCALHOST.into()));
        for name in ["example.com", "127.1", "0x7f000001", "127.0.0.1."] {
            assert_eq!(address(name), None, "{name}");
        }
    }
}
