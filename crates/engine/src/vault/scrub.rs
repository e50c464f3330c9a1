//! What an attempt stores and logs holds none of the secrets that it used: not as they are, not in base64, not
//! percent-encoded.

use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use model::attempt::LEFT_OUT;
use model::mask::{self, MASK};
use model::{Report, Target, mask_env};

/// Pieces that are shorter say nothing, and are found where nobody meant them.
const PIECE_MIN: usize = 4;

/// What an attempt must not keep. It is known before anything is sent, and taken out of whatever is reported, however the
/// attempt ends.
#[derive(Default)]
pub struct Hidden(OnceLock<Scrub>);

impl Hidden {
    /// Secrets that were opened for the attempt, and what its target holds that is not shown.
    pub(super) fn set<'a>(&self, target: &Target, opened: impl Iterator<Item = &'a str>) {
        let own = match target {
            Target::Http(http) => mask::hidden(http),
            Target::Shell(shell) => mask_env::hidden_env(shell),
            Target::Python(python) => mask_env::hidden_env(&python.program),
        };
        let mut values: Vec<&str> = opened.collect();
        values.extend(own.iter().map(String::as_str));
        if !values.is_empty() {
            self.0.get_or_init(|| Scrub::of(values));
        }
    }

    /// What a target holds that names no secrets. Most hold nothing.
    pub(crate) fn set_own(&self, target: &Target) {
        let may_hold = match target {
            Target::Http(http) => !http.headers.is_empty() || http.url.query().is_some(),
            Target::Shell(shell) => !shell.env.is_empty(),
            Target::Python(python) => !python.program.env.is_empty(),
        };
        if may_hold {
            self.set(target, std::iter::empty());
        }
    }

    pub fn take_out(&self, report: Report) -> Report {
        match self.0.get() {
            Some(scrub) => scrub.report(report),
            None => report,
        }
    }

    /// What is looked for, if there is anything.
    pub(super) fn scrub(&self) -> Option<&Scrub> {
        self.0.get()
    }

    /// Of something whole.
    pub(super) fn take_out_of(&self, text: Bytes) -> Bytes {
        let found = self
            .0
            .get()
            .and_then(|scrub| scrub.bytes(&text, Ends::Whole));
        found.map_or(text, Bytes::from)
    }

    /// Of something that was cut at its end.
    pub(super) fn take_out_of_cut(&self, text: Bytes) -> Bytes {
        let found = self.0.get().and_then(|scrub| scrub.bytes(&text, Ends::Cut));
        found.map_or(text, Bytes::from)
    }

    /// Of a part of something that comes in parts.
    pub(super) fn take_out_of_part(&self, text: Bytes) -> Bytes {
        let found = self.0.get().and_then(|scrub| scrub.part(&text));
        found.map_or(text, Bytes::from)
    }
}

/// Where a text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// With all that was said.
    Whole,
    /// Anywhere: only the head of an answer is kept, or more will come.
    Cut,
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
            forms.extend(forms_of(value));
            for meant in meant_by(value) {
                forms.extend(forms_of(&meant));
            }
        }
        forms.retain(|form| form.len() >= PIECE_MIN);
        forms.sort_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
        forms.dedup();
        Self { forms }
    }

    pub(super) fn report(&self, mut report: Report) -> Report {
        if let Some(error) = report.error.take() {
            let scrubbed = self.bytes(error.as_bytes(), Ends::Cut);
            report.error =
                Some(scrubbed.map_or(error, |it| String::from_utf8_lossy(&it).into_owned()));
        }
        for text in report
            .exchange
            .iter_mut()
            .flat_map(|exchange| exchange.texts())
        {
            if let Some(scrubbed) = self.bytes(text.as_bytes(), Ends::Cut) {
                *text = String::from_utf8_lossy(&scrubbed).into_owned();
            }
        }
        if let Some(output) = self.output(&report.output, report.truncated) {
            report.output = Bytes::from(output);
        }
        report
    }

    /// Of an output whose middle was left out: its head may end anywhere, and its end may begin anywhere.
    fn output(&self, output: &[u8], truncated: bool) -> Option<Vec<u8>> {
        let line = LEFT_OUT.as_bytes();
        let mut places = output.windows(line.len());
        match places.position(|at| at == line).filter(|_| truncated) {
            None => self.bytes(output, Ends::Cut),
            Some(at) => {
                let (head, rest) = output.split_at(at);
                let end = rest.iter().skip(1).position(|byte| *byte == b'\n');
                let (line, tail) = rest.split_at(end.map_or(rest.len(), |end| end + 2));
                let head_kept = self.bytes(head, Ends::Cut);
                let tail_kept = self.part(tail);
                if head_kept.is_none() && tail_kept.is_none() {
                    return None;
                }
                let head = head_kept.as_deref().unwrap_or(head);
                Some([head, line, tail_kept.as_deref().unwrap_or(tail)].concat())
            }
        }
    }

    /// None if there is nothing to take out.
    fn bytes(&self, text: &[u8], ends: Ends) -> Option<Vec<u8>> {
        let mut kept = Vec::with_capacity(text.len());
        let mut rest = text;
        let mut found = false;
        while !rest.is_empty() {
            if let Some(form) = self.forms.iter().find(|form| rest.starts_with(form)) {
                found = true;
                kept.extend_from_slice(MASK.as_bytes());
                rest = rest.get(form.len()..).unwrap_or_default();
            } else if ends == Ends::Cut && self.forms.iter().any(|form| is_cut(form, rest)) {
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

impl Scrub {
    /// Of a text that goes on: what is known to be no part of a form, or a whole one, and how many bytes at the end may be
    /// the beginning of one.
    pub(super) fn so_far(&self, text: &[u8]) -> (Vec<u8>, usize) {
        let mut kept = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some((first, after)) = rest.split_first() {
            let goes_on = |form: &&Vec<u8>| form.len() > rest.len() && form.starts_with(rest);
            if self.forms.iter().any(|form| goes_on(&form)) {
                return (kept, rest.len());
            }
            if let Some(form) = self.forms.iter().find(|form| rest.starts_with(form)) {
                kept.extend_from_slice(MASK.as_bytes());
                rest = rest.get(form.len()..).unwrap_or_default();
            } else {
                kept.push(*first);
                rest = after;
            }
        }
        (kept, 0)
    }

    /// How many bytes at the beginning of a text may be the end of a form whose beginning is not there.
    pub(super) fn begun_before(&self, text: &[u8]) -> usize {
        let begun = self.forms.iter().filter_map(|form| end_at(form, text));
        begun.max().unwrap_or(0)
    }

    /// The same for a text that may also begin within a form, or be all within one. Of a form that comes in three parts or
    /// more, parts that are shorter than `PIECE_MIN` stay.
    fn part(&self, text: &[u8]) -> Option<Vec<u8>> {
        let is_within = |form: &Vec<u8>| form.windows(text.len()).any(|at| at == text);
        if text.len() >= PIECE_MIN && self.forms.iter().any(is_within) {
            return Some(MASK.as_bytes().to_vec());
        }
        let begun = self.begun_before(text);
        let whole = self.forms.iter().find(|form| text.starts_with(form));
        if begun <= whole.map_or(0, Vec::len) {
            return self.bytes(text, Ends::Cut);
        }
        let rest = text.get(begun..).unwrap_or_default();
        let rest = self.bytes(rest, Ends::Cut).unwrap_or_else(|| rest.to_vec());
        Some([MASK.as_bytes(), &rest].concat())
    }
}

/// How much of a text is the end of a form, if that says anything.
fn end_at(form: &[u8], text: &[u8]) -> Option<usize> {
    let most = text.len().min(form.len().saturating_sub(1));
    let mut lengths = (PIECE_MIN..=most).rev();
    lengths.find(|length| text.get(..*length) == form.get(form.len() - length..))
}

/// Whether a text ends within a form: only the head of an answer is kept, and it may end anywhere.
fn is_cut(form: &[u8], rest: &[u8]) -> bool {
    rest.len() >= PIECE_MIN && form.starts_with(rest)
}

/// How a value may be written.
fn forms_of(value: &str) -> Vec<Vec<u8>> {
    let bytes = value.as_bytes();
    let mut forms = vec![bytes.to_vec(), json(value)];
    for encode in [encode_standard, encode_url] {
        forms.extend(pieces_of_base64(bytes, encode));
    }
    forms.extend([percent(bytes, true), percent(bytes, false)]);
    forms
}

/// What a receiver reads in a value that is written in another form itself: a percent-encoded parameter, or the name and the
/// password of `Basic`.
fn meant_by(value: &str) -> Vec<String> {
    let mut meant = Vec::new();
    if value.contains(['%', '+']) {
        meant.extend(unpercent(value));
        meant.extend(unpercent(&value.replace('+', " ")));
    }
    let text = value.trim_end_matches('=');
    let decoded = STANDARD_NO_PAD
        .decode(text)
        .or_else(|_| URL_SAFE_NO_PAD.decode(text));
    let decoded = decoded.ok().and_then(|it| String::from_utf8(it).ok());
    if let Some((name, password)) = decoded.as_deref().and_then(|it| it.split_once(':')) {
        meant.push(password.to_owned());
        meant.push(format!("{name}:{password}"));
    }
    meant
}

/// None if it is not text.
fn unpercent(value: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(value.len()), value.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let digits = digits.and_then(|it| std::str::from_utf8(it).ok());
        let byte = digits.and_then(|it| u8::from_str_radix(it, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = byte.and(after.get(2..)).unwrap_or(after);
    }
    String::from_utf8(bytes).ok()
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
    fn what_is_meant_by_a_value_is_taken_out_too() {
        let basic = STANDARD.encode("ann:pl@nted-1");
        let scrub = Scrub::of(["pl%61nted%2F2+x", &basic]);
        let check = |text: &str, expected: &str| {
            let report = scrub.report(Report::failed(text));
            assert_eq!(report.error.unwrap(), expected);
        };
        check("a pl%61nted%2F2+x b", "a *** b");
        check("a planted/2 x b planted/2+x", "a *** b ***");
        check(&format!("Basic {basic}"), "Basic ***");
        check("ann:pl@nted-1 and pl@nted-1", "*** and ***");
        check("{\"user\": \"ann\"}", "{\"user\": \"ann\"}");
    }

    #[test]
    fn a_secret_that_is_cut_off_at_the_end_is_taken_out_too() {
        check("got other-o", "got ***");
        check("got oth", "got oth");
    }

    #[test]
    fn a_secret_that_comes_in_parts_is_taken_out_of_each() {
        let scrub = Scrub::of(["other-one", "planted secret"]);
        let check = |text: &str, expected: &str| {
            let part = scrub.part(text.as_bytes());
            let part = part.unwrap_or_else(|| text.as_bytes().to_vec());
            assert_eq!(String::from_utf8(part).unwrap(), expected);
        };
        check("a planted", "a ***");
        check(" secret b", "*** b");
        check("ted sec", "***");
        check("secret other-one planted", "*** *** ***");
        check("other-one secret", "*** secret");
        check("nothing", "nothing");
        check("", "");
        check("et", "et");
    }

    #[test]
    fn a_secret_that_is_cut_where_the_middle_was_left_out_is_taken_out_of_both_ends() {
        let line = model::attempt::left_out(12);
        let output = format!("a other-one b planted se{line}cret c other-one");
        let mut report = Report::succeeded().with_output(Bytes::from(output));
        report.truncated = true;
        let scrub = Scrub::of(["other-one", "planted secret"]);
        let output = scrub.report(report).output;
        let expected = format!("a *** b ***{line}*** c ***");
        assert_eq!(String::from_utf8_lossy(&output), expected);
    }

    #[test]
    fn what_is_not_text_stays_as_it_is() {
        let bytes = b"\xff\x00other-one\xfe";
        let report = Report::succeeded().with_output(Bytes::from_static(bytes));
        let output = Scrub::of(["other-one"]).report(report).output;
        assert_eq!(&output[..], b"\xff\x00***\xfe");
    }
}
