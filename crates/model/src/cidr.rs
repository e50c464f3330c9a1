//! Ranges of addresses, as operators write them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A range of addresses: `10.0.0.0/8`, or one address. An IPv4 address written in IPv6 is the IPv4 one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    first: IpAddr,
    bits: u8,
}

impl Cidr {
    /// One address alone.
    pub fn of(address: IpAddr) -> Self {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        Self {
            first: address,
            bits,
        }
    }

    /// Its first address.
    pub fn first(&self) -> IpAddr {
        self.first
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let shift = 32 - u32::from(self.bits);
                (u32::from(first) ^ u32::from(address))
                    .checked_shr(shift)
                    .unwrap_or(0)
                    == 0
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let shift = 128 - u32::from(self.bits);
                (u128::from(first) ^ u128::from(address))
                    .checked_shr(shift)
                    .unwrap_or(0)
                    == 0
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl FromStr for Cidr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused =
            || format!("{text:?} is not a range of addresses: write 10.0.0.0/8 or 192.0.2.7");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let first: IpAddr = address.parse().map_err(|_| refused())?;
        let most = if first.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= most),
            None => Some(most),
        };
        let range = Self {
            first,
            bits: bits.ok_or_else(refused)?,
        };
        if range.masked() != first {
            return Err(format!(
                "{text:?} has more than its range: write {}",
                Self {
                    first: range.masked(),
                    ..range
                }
            ));
        }
        Ok(range)
    }
}

impl Cidr {
    /// Its first address.
    fn masked(&self) -> IpAddr {
        match self.first {
            IpAddr::V4(first) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V4((u32::from(first) & mask).into())
            }
            IpAddr::V6(first) => {
                let mask = u128::MAX
                    .checked_shl(128 - u32::from(self.bits))
                    .unwrap_or(0);
                IpAddr::V6((u128::from(first) & mask).into())
            }
        }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_written_with_their_first_address() {
        for text in [
            "10.0.0.0/8",
            "0.0.0.0/0",
            "192.0.2.7/32",
            "fd00::/8",
            "::/0",
        ] {
            assert_eq!(text.parse::<Cidr>().unwrap().to_string(), text);
        }
        for bad in [
            "",
            "10.0.0.1/8",
            "10.0.0.0/33",
            "10.0.0.0/",
            "::/129",
            "proxy.example",
        ] {
            assert!(bad.parse::<Cidr>().is_err(), "{bad}");
        }
        let holds = |range: &str, address: &str| {
            range
                .parse::<Cidr>()
                .unwrap()
                .contains(address.parse().unwrap())
        };
        assert!(holds("0.0.0.0/0", "255.1.2.3") && !holds("0.0.0.0/0", "2001::1"));
        assert!(holds("10.0.0.0/8", "10.255.0.1") && !holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("fd00::/8", "fd12::1") && !holds("fd00::/8", "fe00::1"));
    }
}
