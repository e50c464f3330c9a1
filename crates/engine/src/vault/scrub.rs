//! What an attempt stores and logs holds none of the secrets that it used: not as they are, not in base64, not
//! percent-encoded.

use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use model::mask::{self, MASK};
use model::target::HttpTarget;
use model::{Report, Target};

/// Pieces that are shorter say nothing, and are found where nobody meant them.
const PIECE_MIN: usize = 4;

/// What an attempt must not keep. It is known before anything is sent, and taken out of whatever is reported, however the
/// attempt ends.
#[derive(Default)]
pub struct Hidden(OnceLock<Scrub>);

impl Hidden {
    /// Secrets that were opened for the attempt, and what its target holds that is not shown.
    pub(super) fn set<'a>(&self, http: &HttpTarget, opened: impl Iterator<Item = &'a str>) {
        let own = mask::hidden(http);
        let mut values: Vec<&str> = opened.collect();
        values.extend(own.iter().map(String::as_str));
        if !values.is_empty() {
            self.0.get_or_init(|| Scrub::of(values));
        }
    }

    /// What a target holds that names no secrets. Most hold nothing.
    pub(crate) fn set_own(&self, target: &Target) {
        let Target::Http(http) = target;
        if !http.headers.is_empty() || http.url.query().is_some() {
            self.set(http, std::iter::empty());
        }
    }

    pub fn take_out(&self, report: Report) -> Report {
        match self.0.get() {
            Some(scrub) => scrub.report(report),
            None => report,
        }
    }
}

/// The forms in which secrets may come back.
pub(super) struct Scrub {
    /// The longest first, so that none is found as a part of another.
    forms: Vec<Vec<u8>>,
}

impl Scrub {
    pub(super) fn of<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut forms = Vec::new();
        for value in values {
            let bytes = value.as_bytes();
            forms.push(bytes.to_vec());
            for encode in [encode_standard, encode_url] {
                forms.extend(pieces_of_base64(bytes, encode));
            }
            forms.extend([percent(bytes, true), percent(bytes, false)]);
            forms.push(json(value));
        }
        forms.retain(|form| form.len() >= PIECE_MIN);
        forms.sort_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
        forms.dedup();
        Self { forms }
    }

    pub(super) fn report(&self, mut report: Report) -> Report {
        if let Some(error) = report.error.take() {
            let scrubbed = self.bytes(error.as_bytes());
            report.error =
                Some(scrubbed.map_or(error, |it| String::from_utf8_lossy(&it).into_owned()));
        }
        for text in report
            .exchange
            .iter_mut()
            .flat_map(|exchange| exchange.texts())
        {
            if let Some(scrubbed) = self.bytes(text.as_bytes()) {
                *text = String::from_utf8_lossy(&scrubbed).into_owned();
            }
        }
        if let Some(output) = self.bytes(&report.output) {
            report.output = Bytes::from(output);
        }
        report
    }

    /// None if there is nothing to take out.
    fn bytes(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut kept = Vec::with_capacity(text.len());
        let mut rest = text;
        let mut found = false;
        while !rest.is_empty() {
            if let Some(form) = self.forms.iter().find(|form| rest.starts_with(form)) {
                found = true;
                kept.extend_from_slice(MASK.as_bytes());
                rest = rest.get(form.len()..).unwrap_or_default();
            } else if self.forms.iter().any(|form| is_cut(form, rest)) {
                found = true;
                kept.extend_from_slice(MASK.as_bytes());
                rest = &[];
            } else if let Some((first, after)) = rest.split_first() {
                kept.push(*first);
                rest = after;
            }
        }
        found.then_some(kept)
    }
}

/// Whether a text ends within a form: only the head of an answer is kept, and it may end anywhere.
fn is_cut(form: &[u8], rest: &[u8]) -> bool {
    rest.len() >= PIECE_MIN && form.starts_with(rest)
}

fn encode_standard(bytes: &[u8]) -> String {
    STANDARD_NO_PAD.encode(bytes)
}

fn encode_url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A value within something longer begins at any of three places of base64. What of it does not depend on its neighbours
/// is the same every time.
fn pieces_of_base64(bytes: &[u8], encode: fn(&[u8]) -> String) -> Vec<Vec<u8>> {
    let pieces = (0..3_usize).map(|before| {
        let text = encode(&[&vec![0; before], bytes].concat());
        // Bits of those before fill so many signs, and the last may share its bits with what follows.
        let skip = (before * 8).div_ceil(6);
        let whole = (before + bytes.len()) * 8 / 6;
        text.as_bytes()
            .get(skip..whole)
            .unwrap_or_default()
            .to_vec()
    });
    // Short ones are found by chance.
    pieces
        .filter(|piece| piece.len() >= 2 * PIECE_MIN)
        .collect()
}

fn percent(bytes: &[u8], upper: bool) -> Vec<u8> {
    let encoded = bytes.iter().flat_map(|byte| {
        let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
        if plain {
            vec![*byte]
        } else if upper {
            format!("%{byte:02X}").into_bytes()
        } else {
            format!("%{byte:02x}").into_bytes()
        }
    });
    encoded.collect()
}

/// As a text in JSON has it.
fn json(value: &str) -> Vec<u8> {
    let mut text = String::new();
    for c in value.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            _ => text.push(c),
        }
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    const SECRET: &str = "pl/nt+d \"s3cret?";

    fn check(text: impl AsRef<[u8]>, expected: &str) {
        let scrub = Scrub::of([SECRET, "other-one"]);
        let report = Report::succeeded().with_output(Bytes::copy_from_slice(text.as_ref()));
        let output = scrub.report(report).output;
        assert_eq!(String::from_utf8_lossy(&output), expected);
    }

    #[test]
    fn a_secret_is_taken_out_in_every_form() {
        check("nothing here", "nothing here");
        check(format!("a {SECRET} b {SECRET}{SECRET}"), "a *** b ******");
        check("x=pl%2Fnt%2Bd%20%22s3cret%3F&y", "x=***&y");
        check("x=pl%2fnt%2bd%20%22s3cret%3f&y", "x=***&y");
        check("{\"a\": \"pl/nt+d \\\"s3cret?\"}", "{\"a\": \"***\"}");
        check("an other-one", "an ***");
        for before in ["", "u", "us", "user:"] {
            for after in ["", "!", "!!"] {
                let text = STANDARD.encode(format!("{before}{SECRET}{after}"));
                let scrub = Scrub::of([SECRET]);
                let report = Report::failed(format!("sent {text}"));
                let error = scrub.report(report).error.unwrap();
                assert!(
                    error.starts_with("sent ") && error.contains("***"),
                    "{error}"
                );
                assert!(error.len() < 5 + text.len() - 12, "{error}: {text}");
            }
        }
    }

    #[test]
    fn a_secret_that_is_cut_off_at_the_end_is_taken_out_too() {
        check("got other-o", "got ***");
        check("got oth", "got oth");
    }

    #[test]
    fn what_is_not_text_stays_as_it_is() {
        let bytes = b"\xff\x00other-one\xfe";
        let report = Report::succeeded().with_output(Bytes::from_static(bytes));
        let output = Scrub::of(["other-one"]).report(report).output;
        assert_eq!(&output[..], b"\xff\x00***\xfe");
    }
}
