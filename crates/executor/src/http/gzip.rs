//! Answers that come as gzip. They are decoded up to a bound, so that a small answer that stands for a huge one costs no more
//! than any other: no byte beyond the bound is made, and no more is read for it than for a plain answer.

use std::io::Read;

use bytes::Bytes;
use flate2::bufread::GzDecoder;
use hyper::header::{CONTENT_ENCODING, HeaderMap};

/// Bytes that a packed answer may be longer than what it stands for.
pub(super) const OVERHEAD_MAX: usize = 1024;
/// What a member of gzip begins with.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Whether an answer says that it is gzip, and nothing else besides.
pub(super) fn is_in(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(CONTENT_ENCODING).iter();
    let is_gzip =
        |value: &[u8]| value.eq_ignore_ascii_case(b"gzip") || value.eq_ignore_ascii_case(b"x-gzip");
    let first = codings.next();
    first.is_some_and(|it| is_gzip(it.as_bytes().trim_ascii())) && codings.next().is_none()
}

/// What a packed answer stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Decoded {
    pub(super) bytes: Bytes,
    /// It stands for no more than that.
    pub(super) is_all: bool,
    pub(super) note: Option<&'static str>,
}

/// Decodes up to `bytes_max` bytes of what was read. None if it is not gzip, or damaged.
pub(super) fn decode(packed: &[u8], packed_is_all: bool, bytes_max: usize) -> Option<Decoded> {
    // One byte more says whether there is more.
    let most = bytes_max.saturating_add(1);
    let (mut bytes, mut rest) = (Vec::new(), packed);
    loop {
        let mut decoder = GzDecoder::new(rest);
        let room = most.saturating_sub(bytes.len()) as u64;
        let read = decoder.by_ref().take(room).read_to_end(&mut bytes);
        let is_cut = read.is_err();
        if bytes.len() > bytes_max {
            bytes.truncate(bytes_max);
            return Some(decoded(bytes, false, None));
        }
        if is_cut {
            // Its end was not read: what came before it is good. A damaged one says so before that.
            let ended_early = !packed_is_all && decoder.get_ref().is_empty();
            return ended_early.then(|| decoded(bytes, false, None));
        }
        rest = decoder.into_inner();
        if rest.is_empty() {
            return Some(decoded(bytes, packed_is_all, None));
        }
        if !rest.starts_with(&MAGIC) {
            let note = "bytes after the end of the gzip answer are left out";
            return Some(decoded(bytes, packed_is_all, Some(note)));
        }
    }
}

fn decoded(bytes: Vec<u8>, is_all: bool, note: Option<&'static str>) -> Decoded {
    let bytes = Bytes::from(bytes);
    Decoded {
        bytes,
        is_all,
        note,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn check(packed: &[u8], bytes_max: usize, expected: Option<(&[u8], bool)>) {
        let decoded = decode(packed, true, bytes_max);
        let decoded = decoded.as_ref().map(|it| (&it.bytes[..], it.is_all));
        assert_eq!(decoded, expected);
    }

    #[test]
    fn what_is_packed_is_unpacked_up_to_the_bound() {
        let hello = packed(b"hello");
        check(&hello, 5, Some((b"hello", true)));
        check(&hello, 4, Some((b"hell", false)));
        check(&hello, 0, Some((b"", false)));
        check(&packed(b""), 0, Some((b"", true)));
        check(
            &[hello.clone(), packed(b", you")].concat(),
            99,
            Some((b"hello, you", true)),
        );
    }

    #[test]
    fn a_bomb_makes_no_more_than_the_bound() {
        let bomb = packed(&vec![0; 50_000_000]);
        assert!(bomb.len() < 65_536, "{}", bomb.len());
        let decoded = decode(&bomb, true, 4096).unwrap();
        assert_eq!((decoded.bytes.len(), decoded.is_all), (4096, false));
        assert!(decoded.bytes.is_empty() || decoded.bytes.len() <= 4096);
    }

    #[test]
    fn the_head_of_a_packed_answer_is_the_head_of_the_answer() {
        let text: Vec<u8> = (0..20_000_u32).flat_map(u32::to_le_bytes).collect();
        let whole = packed(&text);
        let head = &whole[..whole.len() / 2];
        let decoded = decode(head, false, 1_000_000).unwrap();
        assert!(!decoded.is_all && text.starts_with(&decoded.bytes) && !decoded.bytes.is_empty());
        assert_eq!(decode(head, true, 1_000_000), None, "it ended too early");
    }

    #[test]
    fn what_is_damaged_or_no_gzip_is_not_unpacked() {
        let mut damaged = packed(b"hello");
        damaged[14] ^= 0xff;
        check(&damaged, 99, None);
        check(b"hello", 99, None);
        check(b"", 99, None);
        let mut followed = packed(b"hello");
        followed.extend(b"garbage");
        check(&followed, 99, Some((b"hello", true)));
        assert!(decode(&followed, true, 99).unwrap().note.is_some());
    }

    #[test]
    fn only_what_says_gzip_and_nothing_else_is() {
        let says = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(CONTENT_ENCODING, value.parse().unwrap());
            }
            is_in(&headers)
        };
        assert!(says(&["gzip"]) && says(&["GZIP"]) && says(&["x-gzip"]));
        assert!(!says(&[]) && !says(&["br"]) && !says(&["gzip, br"]) && !says(&["gzip", "gzip"]));
    }
}
