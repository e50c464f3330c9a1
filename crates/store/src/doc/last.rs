//! What a run's row holds of its attempts: those before the last as JSON, and of the last, which has columns of its own,
//! what those do not hold.
//!
//! A first attempt that succeeded is the usual row, so what is kept of its exchange is packed: a mark that no JSON begins
//! with, a byte that says what follows, numbers in groups of seven bits, low ones first. About 14 bytes for a plain success
//! over IPv4.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use model::{Attempt, Cost, Exchange, Io, Times};

use super::DocError;
use super::attempts::{decode_attempts, encode_attempts};

/// What a packed form begins with.
const MARK: u8 = 1;
/// The same of what a command took: two numbers, and then the rest as without it.
const COST: u8 = 3;
/// The same with two more numbers: what it read and wrote.
const COST_IO: u8 = 4;

const TRUNCATED: u8 = 1;
const PEER_V4: u8 = 1 << 1;
const PEER_V6: u8 = 1 << 2;
const CONNECT: u8 = 1 << 3;
const TLS: u8 = 1 << 4;
const FIRST_BYTE: u8 = 1 << 5;
const TOTAL: u8 = 1 << 6;
/// Headers and a note follow.
const TEXTS: u8 = 1 << 7;

/// Attempts before the last, and what the columns of the last do not hold; nothing when there is nothing of either.
pub fn encode_with_last(
    earlier: &[Attempt],
    last: Option<&Attempt>,
) -> Result<Option<Vec<u8>>, DocError> {
    let earlier = encode_attempts(earlier)?;
    let is_odd = |last: &&Attempt| last.truncated || last.exchange.is_some() || last.cost.is_some();
    let Some(last) = last.filter(is_odd) else {
        return Ok(earlier);
    };
    let mut bytes = Vec::with_capacity(24 + earlier.as_ref().map_or(0, Vec::len));
    if let Some(cost) = last.cost.as_deref().copied() {
        pack_cost(&mut bytes, cost);
    }
    if last.truncated || last.exchange.is_some() {
        pack(&mut bytes, last);
    }
    bytes.extend(earlier.unwrap_or_default());
    Ok(Some(bytes))
}

/// The attempts before the last; what is known of the last is laid into it.
pub fn decode_with_last(
    bytes: Option<&[u8]>,
    mut last: Option<&mut Attempt>,
) -> Result<Vec<Attempt>, DocError> {
    let (bytes, cost) = decode_cost(bytes)?;
    if let Some(last) = last.as_deref_mut() {
        last.cost = cost.map(Box::new);
    }
    let Some(packed) = bytes.filter(|bytes| bytes.first() == Some(&MARK)) else {
        return decode_attempts(bytes);
    };
    let mut reader = Reader(packed.get(1..).unwrap_or_default());
    let (truncated, exchange) = reader
        .unpack()
        .ok_or_else(|| DocError("what is kept of an exchange cannot be read".to_owned()))?;
    if let Some(last) = last {
        last.truncated = truncated;
        last.exchange = Some(Box::new(exchange)).filter(|exchange| !exchange.is_empty());
    }
    decode_attempts(Some(reader.0).filter(|rest| !rest.is_empty()))
}

fn pack_cost(bytes: &mut Vec<u8>, cost: Cost) {
    bytes.push(if cost.io.is_some() { COST_IO } else { COST });
    number(bytes, Times::micros(cost.cpu));
    number(bytes, cost.memory_max);
    if let Some(Io { read, written }) = cost.io {
        number(bytes, read);
        number(bytes, written);
    }
}

/// What a command took, and what follows it.
fn decode_cost(bytes: Option<&[u8]>) -> Result<(Option<&[u8]>, Option<Cost>), DocError> {
    let (packed, has_io) = match bytes.and_then(<[u8]>::split_first) {
        Some((&COST, packed)) => (packed, false),
        Some((&COST_IO, packed)) => (packed, true),
        Some(_) | None => return Ok((bytes, None)),
    };
    let mut reader = Reader(packed);
    let cost = reader
        .unpack_cost(has_io)
        .ok_or_else(|| DocError("what a command took cannot be read".to_owned()))?;
    Ok((Some(reader.0).filter(|rest| !rest.is_empty()), Some(cost)))
}

fn pack(bytes: &mut Vec<u8>, last: &Attempt) {
    let usual = Exchange::default();
    let exchange = last.exchange.as_deref().unwrap_or(&usual);
    let Times {
        connect,
        tls,
        first_byte,
        total,
    } = exchange.times;
    let has_texts = !exchange.headers.is_empty() || exchange.note.is_some();
    let flags = [
        (last.truncated, TRUNCATED),
        (exchange.peer.is_some_and(|peer| peer.is_ipv4()), PEER_V4),
        (exchange.peer.is_some_and(|peer| peer.is_ipv6()), PEER_V6),
        (connect.is_some(), CONNECT),
        (tls.is_some(), TLS),
        (first_byte.is_some(), FIRST_BYTE),
        (total.is_some(), TOTAL),
        (has_texts, TEXTS),
    ];
    let flags = flags.into_iter().filter(|(is_set, _)| *is_set);
    bytes.extend([MARK, flags.fold(0, |all, (_, flag)| all | flag)]);
    if let Some(peer) = exchange.peer {
        match peer.ip() {
            IpAddr::V4(ip) => bytes.extend(ip.octets()),
            IpAddr::V6(ip) => bytes.extend(ip.octets()),
        }
        bytes.extend(peer.port().to_be_bytes());
    }
    for span in [connect, tls, first_byte, total].into_iter().flatten() {
        number(bytes, Times::micros(span));
    }
    if has_texts {
        number(bytes, exchange.headers.len() as u64);
        for (name, value) in &exchange.headers {
            text(bytes, name);
            text(bytes, value);
        }
        text(bytes, exchange.note.as_deref().unwrap_or_default());
    }
}

fn number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    number(bytes, text.len() as u64);
    bytes.extend(text.as_bytes());
}

/// What is still to be read.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn unpack_cost(&mut self, has_io: bool) -> Option<Cost> {
        let (cpu, memory_max) = (self.number()?, self.number()?);
        let io = if has_io {
            let (read, written) = (self.number()?, self.number()?);
            Some(Io { read, written })
        } else {
            None
        };
        Some(Cost {
            cpu: Duration::from_micros(cpu),
            memory_max,
            io,
        })
    }

    fn unpack(&mut self) -> Option<(bool, Exchange)> {
        let [flags] = self.some()?;
        let mut exchange = Exchange::default();
        if flags & PEER_V4 != 0 {
            let ip = Ipv4Addr::from(self.some::<4>()?);
            exchange.peer = Some(SocketAddr::new(ip.into(), self.port()?));
        } else if flags & PEER_V6 != 0 {
            let ip = Ipv6Addr::from(self.some::<16>()?);
            exchange.peer = Some(SocketAddr::new(ip.into(), self.port()?));
        }
        let times = &mut exchange.times;
        for (flag, span) in [
            (CONNECT, &mut times.connect),
            (TLS, &mut times.tls),
            (FIRST_BYTE, &mut times.first_byte),
            (TOTAL, &mut times.total),
        ] {
            if flags & flag != 0 {
                *span = Some(Duration::from_micros(self.number()?));
            }
        }
        if flags & TEXTS != 0 {
            for _ in 0..self.number()? {
                exchange.headers.push((self.text()?, self.text()?));
            }
            exchange.note = Some(self.text()?).filter(|note| !note.is_empty());
        }
        Some((flags & TRUNCATED != 0, exchange))
    }

    fn some<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn port(&mut self) -> Option<u16> {
        self.some().map(u16::from_be_bytes)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let [byte] = self.some()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}

#[cfg(test)]
#[path = "last_tests.rs"]
mod tests;
