//! Which addresses are public, and what an operator may allow.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;

fn egress(allow: &str, ports: &str) -> Egress {
    Egress::new(allow.parse().unwrap(), ports.parse().unwrap())
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn class_of(text: &str) -> Class {
    Class::of(class::plain(ip(text)))
}

/// The first and the last address of each range, and what they are.
const RANGES: &[(&str, &str, Class)] = &[
    ("0.0.0.0", "0.255.255.255", Class::Unspecified),
    ("1.0.0.0", "9.255.255.255", Class::Public),
    ("10.0.0.0", "10.255.255.255", Class::Private),
    ("11.0.0.0", "100.63.255.255", Class::Public),
    ("100.64.0.0", "100.127.255.255", Class::Private),
    ("100.128.0.0", "126.255.255.255", Class::Public),
    ("127.0.0.0", "127.255.255.255", Class::Loopback),
    ("128.0.0.0", "169.253.255.255", Class::Public),
    ("169.254.0.0", "169.254.255.255", Class::LinkLocal),
    ("169.255.0.0", "172.15.255.255", Class::Public),
    ("172.16.0.0", "172.31.255.255", Class::Private),
    ("172.32.0.0", "191.255.255.255", Class::Public),
    ("192.0.0.0", "192.0.0.255", Class::Reserved),
    ("192.0.1.0", "192.0.1.255", Class::Public),
    ("192.0.2.0", "192.0.2.255", Class::Documentation),
    ("192.0.3.0", "192.88.98.255", Class::Public),
    ("192.88.99.0", "192.88.99.255", Class::Reserved),
    ("192.88.100.0", "192.167.255.255", Class::Public),
    ("192.168.0.0", "192.168.255.255", Class::Private),
    ("192.169.0.0", "198.17.255.255", Class::Public),
    ("198.18.0.0", "198.19.255.255", Class::Benchmarking),
    ("198.20.0.0", "198.51.99.255", Class::Public),
    ("198.51.100.0", "198.51.100.255", Class::Documentation),
    ("198.51.101.0", "203.0.112.255", Class::Public),
    ("203.0.113.0", "203.0.113.255", Class::Documentation),
    ("203.0.114.0", "223.255.255.255", Class::Public),
    ("224.0.0.0", "239.255.255.255", Class::Multicast),
    ("240.0.0.0", "255.255.255.254", Class::Reserved),
    ("255.255.255.255", "255.255.255.255", Class::Broadcast),
    ("::", "::", Class::Unspecified),
    ("::1", "::1", Class::Loopback),
    ("::2", "::ffff:ffff", Class::Transition),
    ("::1:0:0", "::fffe:ffff:ffff", Class::Reserved),
    ("::ffff:0:0:0", "::ffff:0:ffff:ffff", Class::Transition),
    (
        "64:ff9b:1::",
        "64:ff9b:1:ffff:ffff:ffff:ffff:ffff",
        Class::Transition,
    ),
    ("64:ff9b:2::", "1fff:ffff::", Class::Reserved),
    (
        "2001::",
        "2001:0:ffff:ffff:ffff:ffff:ffff:ffff",
        Class::Transition,
    ),
    ("2001:1::", "2001:1:ffff::", Class::Reserved),
    ("2001:2::", "2001:2:0:ffff::", Class::Benchmarking),
    ("2001:2:1::", "2001:1ff:ffff::", Class::Reserved),
    ("2001:200::", "2001:db7:ffff::", Class::Public),
    ("2001:db8::", "2001:db8:ffff::", Class::Documentation),
    ("2001:db9::", "2001:ffff::", Class::Public),
    ("2002::", "2002:ffff::", Class::Transition),
    ("2003::", "3ffe:ffff::", Class::Public),
    ("3fff::", "3fff:fff:ffff::", Class::Documentation),
    ("3fff:1000::", "3fff:ffff::", Class::Public),
    ("4000::", "fbff:ffff::", Class::Reserved),
    ("fc00::", "fdff:ffff::", Class::Private),
    ("fe00::", "fe7f:ffff::", Class::Reserved),
    ("fe80::", "febf:ffff::", Class::LinkLocal),
    ("fec0::", "feff:ffff::", Class::Private),
    (
        "ff00::",
        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        Class::Multicast,
    ),
];

#[test]
fn every_special_range_begins_and_ends_where_its_registry_says() {
    for &(first, last, expected) in RANGES {
        assert_eq!(class_of(first), expected, "{first}");
        assert_eq!(class_of(last), expected, "{last}");
    }
}

#[test]
fn by_default_public_addresses_are_called_and_nothing_else() {
    let egress = Egress::default();
    for public in [
        "1.1.1.1",
        "93.184.216.34",
        "2606:4700::1111",
        "::ffff:1.1.1.1",
        "64:ff9b::1.1.1.1",
    ] {
        assert_eq!(egress.check(ip(public), 443), Ok(()), "{public}");
    }
    for refused in [
        "127.0.0.1",
        "0.0.0.0",
        "10.1.2.3",
        "172.31.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.1.1",
        "169.254.169.254",
        "168.63.129.16",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fd12::1",
        "fd00:ec2::254",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "::1.1.1.1",
        "::ffff:0:127.0.0.1",
        "64:ff9b::127.0.0.1",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::1.1.1.1",
        "2002:7f00:1::",
        "2002:101:101::1",
        "2001:0:101:101::1",
        "2606:4700::5efe:10.0.0.1",
        "2606:4700::200:5efe:127.0.0.1",
    ] {
        assert!(egress.check(ip(refused), 80).is_err(), "{refused}");
    }
}

#[test]
fn a_word_allows_its_class_and_no_metadata() {
    let check = |allow: &str, allowed: &[&str], refused: &[&str]| {
        let egress = egress(allow, "any");
        for address in allowed {
            assert_eq!(egress.check(ip(address), 80), Ok(()), "{allow}: {address}");
        }
        for address in refused {
            assert!(egress.check(ip(address), 80).is_err(), "{allow}: {address}");
        }
    };
    check(
        "loopback",
        &["127.0.0.1", "::1", "::ffff:127.0.0.1"],
        &["1.1.1.1", "0.0.0.0"],
    );
    check(
        "public, private",
        &["1.1.1.1", "10.0.0.1", "fd12::1"],
        &["127.0.0.1", "fd00:ec2::254", "100.100.100.200"],
    );
    check(
        "link-local",
        &["169.254.1.1", "fe80::1"],
        &["169.254.169.254", "169.254.170.2"],
    );
    check(
        "all",
        &["169.254.169.254", "::", "2002:7f00:1::", "255.255.255.255"],
        &[],
    );
    check(
        "10.1.0.0/16,fd00::/8",
        &[
            "10.1.2.3",
            "::ffff:10.1.2.3",
            "64:ff9b::10.1.2.3",
            "fd01::1",
        ],
        &["10.2.0.1", "1.1.1.1"],
    );
    // A range is meant as it is written.
    check("169.254.0.0/16", &["169.254.169.254"], &["127.0.0.1"]);
}

#[test]
fn an_address_that_holds_another_must_be_allowed_both() {
    let nat64 = |v4: [u8; 4], at: [usize; 4]| {
        let mut octets = [0; 16];
        octets[..6].copy_from_slice(&[0, 0x64, 0xff, 0x9b, 0, 1]);
        for (byte, at) in v4.into_iter().zip(at) {
            octets[at] = byte;
        }
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    let ends = [
        [6, 7, 9, 10],
        [7, 9, 10, 11],
        [9, 10, 11, 12],
        [12, 13, 14, 15],
    ];
    let local = egress("public,64:ff9b:1::/48", "any");
    for at in ends {
        assert_eq!(local.check(nat64([8, 8, 4, 4], at), 80), Ok(()), "{at:?}");
        for inner in [[127, 0, 0, 1], [10, 0, 0, 7], [169, 254, 169, 254]] {
            assert!(
                local.check(nat64(inner, at), 80).is_err(),
                "{inner:?} {at:?}"
            );
        }
    }
    let tunnels = egress("public,2002::/16,2001::/32,::/96", "any");
    assert_eq!(tunnels.check(ip("2002:101:101::1"), 80), Ok(()));
    assert_eq!(tunnels.check(ip("::1.1.1.1"), 80), Ok(()));
    for inner in ["2002:7f00:1::", "2002:a00:1::", "::10.0.0.1"] {
        assert!(tunnels.check(ip(inner), 80).is_err(), "{inner}");
    }
    // Teredo holds two: the server, and the client with its bits turned over.
    let teredo = |server: Ipv4Addr, client: Ipv4Addr| {
        let bits = 0x2001_0000_u128 << 96
            | u128::from(u32::from(server)) << 64
            | u128::from(!u32::from(client));
        IpAddr::V6(Ipv6Addr::from(bits))
    };
    let (public, inside) = (Ipv4Addr::new(1, 1, 1, 1), Ipv4Addr::new(10, 0, 0, 1));
    assert_eq!(tunnels.check(teredo(public, public), 80), Ok(()));
    assert!(tunnels.check(teredo(inside, public), 80).is_err());
    assert!(tunnels.check(teredo(public, inside), 80).is_err());
}

#[test]
fn ports_can_be_limited() {
    let some = egress("all", "443, 8000-8999");
    for (port, allowed) in [
        (443, true),
        (8000, true),
        (8999, true),
        (80, false),
        (9000, false),
        (22, false),
    ] {
        assert_eq!(some.check(ip("1.1.1.1"), port).is_ok(), allowed, "{port}");
        assert_eq!(some.check_host("example.com", port).is_ok(), allowed);
    }
    assert_eq!(egress("all", "any").check_port(1), Ok(()));
}

#[test]
fn a_refusal_says_which_flag_allows_it() {
    let public = Egress::default();
    let text = |host: &str| public.check_host(host, 80).unwrap_err().of_host(host);
    assert_eq!(
        text("127.0.0.1"),
        "127.0.0.1 is a loopback address, which this node may not call: its operator can allow it with --egress-allow \
         public,loopback"
    );
    assert!(text("[::ffff:10.0.0.1]").ends_with("--egress-allow public,private"));
    assert!(text("169.254.169.254").ends_with("--egress-allow public,169.254.169.254/32"));
    assert_eq!(public.check_host("localhost", 80), Ok(()), "names wait");
    let port = egress("public", "443").check_host("example.com", 22);
    assert_eq!(
        port.unwrap_err().to_string(),
        "port 22 may not be called by this node: its operator can allow it with --egress-ports 443,22"
    );
    // What a refusal says is right: with the flag that it names the address is allowed.
    for address in [
        "127.0.0.1",
        "10.0.0.1",
        "fe80::1",
        "224.0.0.1",
        "2001:db8::1",
    ] {
        let Err(Refused::Address { allow, .. }) = public.check(ip(address), 80) else {
            panic!("{address} is allowed");
        };
        assert_eq!(egress(&allow, "any").check(ip(address), 80), Ok(()));
    }
}

#[test]
fn an_error_does_not_say_where_a_name_leads_inside() {
    let public = Egress::default();
    let inside = public.check(ip("10.11.12.13"), 80).unwrap_err();
    assert_eq!(
        inside.of_host("db.internal"),
        "db.internal leads to a private address, which this node may not call: its operator can allow it with \
         --egress-allow public,private"
    );
    let reserved = public.check(ip("240.11.12.13"), 80).unwrap_err();
    assert!(!reserved.of_host("db.internal").contains("240."));
}

#[test]
fn settings_are_read_as_they_are_shown_and_nonsense_is_refused() {
    for text in [
        "public",
        "all",
        "public,loopback,private,link-local,10.0.0.0/8,fd00::/8",
    ] {
        assert_eq!(text.parse::<Allow>().unwrap().to_string(), text);
    }
    for text in ["any", "443", "80,443,8000-8999"] {
        assert_eq!(text.parse::<Ports>().unwrap().to_string(), text);
    }
    assert_eq!(Allow::default().to_string(), "public");
    for text in [
        "",
        ",",
        "everything",
        "Public",
        "10.0.0.1/8",
        "localhost",
        "example.com",
    ] {
        assert!(text.parse::<Allow>().is_err(), "{text}");
    }
    for spelling in ["::ffff:10.0.0.0/104", "64:ff9b::/96", "::ffff:0:0/96"] {
        let error = spelling.parse::<Allow>().unwrap_err();
        assert!(error.contains("IPv4"), "{error}");
    }
    for text in ["", "0", "65536", "90-80", "http", "-1", "1-", "any,80"] {
        assert!(text.parse::<Ports>().is_err(), "{text}");
    }
}
