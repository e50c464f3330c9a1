//! Errors alike: the same error of many runs differs in numbers, ids and addresses. What is left without them names the group.
//!
//! | what | becomes |
//! | --- | --- |
//! | an address, with or without its port | `<address>` |
//! | a UUID, or 8 and more hexadecimal digits with a decimal one among them | `<id>` |
//! | any other digits | `<n>` |
//! | white space | one space |

use std::net::{IpAddr, SocketAddr};

use uuid::Uuid;

/// Hexadecimal digits that are an id and not a word: `deadbeef1`, not `facade`.
const ID_MIN: usize = 8;

/// The name of the group that an error belongs to.
pub fn error_group(error: &str) -> String {
    let mut group = String::with_capacity(error.len());
    let mut rest = error.trim();
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || "_-.:[]%".contains(c);
        if is_word(first) {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            put_word(&mut group, word);
            rest = after;
        } else if first.is_whitespace() {
            group.push(' ');
            rest = rest.trim_start();
        } else {
            group.push(first);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
        }
    }
    group
}

/// A word as a whole if it is an address or a UUID, else piece by piece. What ends a sentence is none of it.
fn put_word(group: &mut String, word: &str) {
    let inner = word.trim_end_matches(['.', ':']);
    let end = word.get(inner.len()..).unwrap_or_default();
    let plain = inner.trim_start_matches('[').trim_end_matches(']');
    let is_address = inner.parse::<SocketAddr>().is_ok() || plain.parse::<IpAddr>().is_ok();
    if is_address {
        group.push_str("<address>");
    } else if plain.len() == 36 && Uuid::try_parse(plain).is_ok() {
        group.push_str("<id>");
    } else {
        for piece in inner.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
            put_piece(group, piece);
        }
    }
    group.push_str(end);
}

/// Letters and digits, and the character after them.
fn put_piece(group: &mut String, piece: &str) {
    let text = piece.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let has_digit = text.bytes().any(|byte| byte.is_ascii_digit());
    let all_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if text.len() >= ID_MIN && is_hex && has_digit && !all_digits {
        group.push_str("<id>");
    } else {
        let mut in_number = false;
        for c in text.chars() {
            match (c.is_ascii_digit(), in_number) {
                (true, true) => {}
                (true, false) => group.push_str("<n>"),
                (false, _) => group.push(c),
            }
            in_number = c.is_ascii_digit();
        }
    }
    group.push_str(piece.get(text.len()..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: &str, group: &str) {
        assert_eq!(error_group(error), group);
        assert_eq!(error_group(group), group, "a group is its own group");
    }

    #[test]
    fn numbers_ids_and_addresses_do_not_part_errors_that_are_alike() {
        check("no", "no");
        check("", "");
        check(
            "api.example.com:8443 cannot be reached",
            "api.example.com:<n> cannot be reached",
        );
        check(
            "10.1.2.3:80 cannot be reached.",
            "<address> cannot be reached.",
        );
        check("dial [2001:db8::1]:443: refused", "dial <address>: refused");
        check("dial fe80::1%eth0 failed", "dial fe<n>::<n>%eth<n> failed");
        check("host 192.168.0.7", "host <address>");
        check("order 4711 took 12.5ms", "order <n> took <n>.<n>ms");
        check(
            "order 0192f0c1-a2b3-7def-8123-456789abcdef is gone",
            "order <id> is gone",
        );
        check("run_0192f0c1a2b37def8123456789abcdef", "run_<id>");
        check("the facade is deadbeef", "the facade is deadbeef");
        check("commit deadbeef1", "commit <id>");
        check("  two\t lines\nhere ", "two lines here");
        check("größe 3 («x»)", "größe <n> («x»)");
        check("2026-11-16T06:10:18.783Z", "<n>-<n>-<n>T<n>:<n>:<n>.<n>Z");
    }
}
