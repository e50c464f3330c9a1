//! What kind of address an address is, by the registries of special-purpose addresses (RFC 6890 and what came after it).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Who can be reached at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Anybody on the Internet.
    Public,
    /// This machine.
    Loopback,
    /// Those on the same network: RFC 1918, unique local, shared (carrier-grade NAT) and site-local addresses.
    Private,
    LinkLocal,
    /// What serves a cloud's machine its credentials.
    Metadata,
    Multicast,
    /// It stands for no address; systems dial this machine instead.
    Unspecified,
    Broadcast,
    Documentation,
    Benchmarking,
    /// IPv6 that holds an IPv4 address, for a tunnel or a translator to find.
    Transition,
    Reserved,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "a public address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "a cloud's metadata address",
            Self::Multicast => "a multicast address",
            Self::Unspecified => "an unspecified address",
            Self::Broadcast => "the broadcast address",
            Self::Documentation => "an address for documentation",
            Self::Benchmarking => "an address for benchmarks",
            Self::Transition => "an address of a tunnel to IPv4",
            Self::Reserved => "a reserved address",
        })
    }
}

type V4 = (Ipv4Addr, u32, Class);
type V6 = (Ipv6Addr, u32, Class);

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u32, class: Class) -> V4 {
    (Ipv4Addr::new(a, b, c, d), bits, class)
}

/// Addresses whose first 16-bit groups are these.
const fn v6(a: u16, b: u16, c: u16, d: u16, bits: u32, class: Class) -> V6 {
    (Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0), bits, class)
}

/// The first that holds an address says what it is; what none holds is public.
const IPV4: &[V4] = &[
    // Where clouds serve machines their metadata: most of them, ECS and EKS, Alibaba, Oracle, Azure.
    v4(169, 254, 169, 254, 32, Class::Metadata),
    v4(169, 254, 170, 2, 32, Class::Metadata),
    v4(169, 254, 170, 23, 32, Class::Metadata),
    v4(100, 100, 100, 200, 32, Class::Metadata),
    v4(192, 0, 0, 192, 32, Class::Metadata),
    v4(168, 63, 129, 16, 32, Class::Metadata),
    v4(0, 0, 0, 0, 8, Class::Unspecified),
    v4(10, 0, 0, 0, 8, Class::Private),
    v4(100, 64, 0, 0, 10, Class::Private),
    v4(127, 0, 0, 0, 8, Class::Loopback),
    v4(169, 254, 0, 0, 16, Class::LinkLocal),
    v4(172, 16, 0, 0, 12, Class::Private),
    v4(192, 0, 0, 0, 24, Class::Reserved),
    v4(192, 0, 2, 0, 24, Class::Documentation),
    // The way to any 6to4 relay, given up.
    v4(192, 88, 99, 0, 24, Class::Reserved),
    v4(192, 168, 0, 0, 16, Class::Private),
    v4(198, 18, 0, 0, 15, Class::Benchmarking),
    v4(198, 51, 100, 0, 24, Class::Documentation),
    v4(203, 0, 113, 0, 24, Class::Documentation),
    v4(224, 0, 0, 0, 4, Class::Multicast),
    v4(255, 255, 255, 255, 32, Class::Broadcast),
    v4(240, 0, 0, 0, 4, Class::Reserved),
];

/// The same; what none holds is reserved: only 2000::/3 was given to anybody.
const IPV6: &[V6] = &[
    (METADATA_AWS, 128, Class::Metadata),
    (METADATA_EKS, 128, Class::Metadata),
    (METADATA_GCP, 128, Class::Metadata),
    (Ipv6Addr::UNSPECIFIED, 128, Class::Unspecified),
    (Ipv6Addr::LOCALHOST, 128, Class::Loopback),
    // IPv4-compatible and IPv4-translated.
    v6(0, 0, 0, 0, 96, Class::Transition),
    (TRANSLATED, 96, Class::Transition),
    v6(0x64, 0xff9b, 1, 0, 48, Class::Transition),
    v6(0xfc00, 0, 0, 0, 7, Class::Private),
    v6(0xfe80, 0, 0, 0, 10, Class::LinkLocal),
    v6(0xfec0, 0, 0, 0, 10, Class::Private),
    v6(0xff00, 0, 0, 0, 8, Class::Multicast),
    // Teredo, benchmarks, and what else is for protocols.
    v6(0x2001, 0, 0, 0, 32, Class::Transition),
    v6(0x2001, 2, 0, 0, 48, Class::Benchmarking),
    v6(0x2001, 0, 0, 0, 23, Class::Reserved),
    v6(0x2001, 0xdb8, 0, 0, 32, Class::Documentation),
    v6(0x2002, 0, 0, 0, 16, Class::Transition),
    v6(0x3fff, 0, 0, 0, 20, Class::Documentation),
    v6(0x2000, 0, 0, 0, 3, Class::Public),
];

const METADATA_AWS: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
const METADATA_EKS: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23);
const METADATA_GCP: Ipv6Addr = Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254);
const TRANSLATED: Ipv6Addr = Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0);
const NAT64: Ipv6Addr = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0);
const MAPPED: Ipv6Addr = Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0);

fn holds(first: Ipv6Addr, bits: u32, address: Ipv6Addr) -> bool {
    let differs = u128::from(first) ^ u128::from(address);
    differs.checked_shr(128 - bits).unwrap_or(0) == 0
}

impl Class {
    /// The class of an address that [`plain`] has been applied to.
    pub(super) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => {
                let holds = |(first, bits, _): &&V4| {
                    let differs = u32::from(*first) ^ u32::from(address);
                    differs.checked_shr(32 - bits).unwrap_or(0) == 0
                };
                let found = IPV4.iter().find(holds);
                found.map_or(Self::Public, |(_, _, class)| *class)
            }
            IpAddr::V6(address) => {
                let found = IPV6
                    .iter()
                    .find(|(first, bits, _)| holds(*first, *bits, address));
                found.map_or(Self::Reserved, |(_, _, class)| *class)
            }
        }
    }
}

/// The IPv4 address that an IPv6 one is another spelling of: mapped (the system dials IPv4 for it), or behind the NAT64
/// prefix that every network may use. Others are what they are.
pub(super) fn plain(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if holds(NAT64, 96, address) => IpAddr::V4(low(address)),
        other @ (IpAddr::V4(_) | IpAddr::V6(_)) => other,
    }
}

/// Whether addresses of an IPv6 range are spellings of IPv4 ones.
pub(super) fn is_spelling(first: IpAddr) -> bool {
    match first {
        IpAddr::V4(_) => false,
        IpAddr::V6(first) => holds(MAPPED, 96, first) || holds(NAT64, 96, first),
    }
}

/// The last 32 bits.
fn low(address: Ipv6Addr) -> Ipv4Addr {
    let [.., a, b, c, d] = address.octets();
    Ipv4Addr::new(a, b, c, d)
}

/// IPv4 addresses that a plain address holds: where a tunnel or a translator on the way would send what is sent to it.
pub(super) fn embedded(address: IpAddr) -> Vec<Ipv4Addr> {
    let IpAddr::V6(address) = address else {
        return Vec::new();
    };
    let [a, b, c, d, e, f, ..] = address.segments();
    let octets = address.octets();
    let of_bits = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    let is_own = address.is_unspecified() || address.is_loopback();
    if (holds(Ipv6Addr::UNSPECIFIED, 96, address) && !is_own) || holds(TRANSLATED, 96, address) {
        return vec![low(address)];
    }
    // 6to4.
    if a == 0x2002 {
        return vec![of_bits(b, c)];
    }
    // Teredo: the server, and the client with its bits turned over.
    if (a, b) == (0x2001, 0) {
        let client = Ipv4Addr::from(!u32::from(low(address)));
        return vec![of_bits(c, d), client];
    }
    if (a, b, c) == (0x64, 0xff9b, 1) {
        return of_local_nat64(octets);
    }
    // ISATAP, below any prefix.
    if (e == 0 || e == 0x200) && f == 0x5efe {
        return vec![low(address)];
    }
    Vec::new()
}

/// Below 64:ff9b:1::/48 the operator of the translator chooses how long its prefix is; RFC 6052 says where the IPv4 address
/// is then. What follows it is zero, so an address that ends otherwise has it at the end.
fn of_local_nat64(octets: [u8; 16]) -> Vec<Ipv4Addr> {
    let [.., o6, o7, _, o9, o10, o11, o12, o13, o14, o15] = octets;
    if (o13, o14, o15) != (0, 0, 0) {
        return vec![Ipv4Addr::new(o12, o13, o14, o15)];
    }
    let of_48 = Ipv4Addr::new(o6, o7, o9, o10);
    let of_56 = Ipv4Addr::new(o7, o9, o10, o11);
    let of_64 = Ipv4Addr::new(o9, o10, o11, o12);
    let mut found = vec![of_48, of_56, of_64];
    found.retain(|address| address.octets().first() != Some(&0));
    found
}
