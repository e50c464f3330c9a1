//! A stream that comes bit by bit is kept without the secrets that its attempt used, wherever it is cut: what may be the
//! beginning of one is held back until more is there.

use std::sync::Arc;

use model::attempt::left_out;
use model::mask::MASK;

use super::Hidden;

#[derive(Default)]
pub(crate) struct Stream {
    hidden: Arc<Hidden>,
    held: Vec<u8>,
}

impl Stream {
    pub(crate) fn new(hidden: Arc<Hidden>) -> Self {
        Self {
            hidden,
            held: Vec::new(),
        }
    }

    /// What of it may be kept by now, with these bytes, before which so many were left out.
    pub(crate) fn put(&mut self, missed: u64, bytes: &[u8]) -> Vec<u8> {
        let mut shown = Vec::new();
        let mut bytes = bytes;
        if missed > 0 {
            shown = self.end();
            shown.extend_from_slice(left_out(missed).as_bytes());
            let scrub = self.hidden.scrub();
            let begun = scrub.map_or(0, |scrub| scrub.begun_before(bytes));
            if begun > 0 {
                shown.extend_from_slice(MASK.as_bytes());
                bytes = bytes.get(begun..).unwrap_or_default();
            }
        }
        self.held.extend_from_slice(bytes);
        let Some(scrub) = self.hidden.scrub() else {
            shown.append(&mut self.held);
            return shown;
        };
        let (kept, held) = scrub.so_far(&self.held);
        self.held.drain(..self.held.len() - held);
        shown.extend(kept);
        shown
    }

    /// Nothing more comes of what was begun.
    pub(crate) fn end(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        self.hidden.take_out_of_cut(held.into()).into()
    }
}

#[cfg(test)]
mod tests {
    use model::Target;

    use super::*;

    const SECRETS: [&str; 3] = ["other-one", "planted\nsecret", "planted"];

    fn stream() -> Stream {
        let hidden = Hidden::default();
        let target = Target::http("http://localhost/").unwrap();
        hidden.set(&target, SECRETS.into_iter());
        Stream::new(Arc::new(hidden))
    }

    fn shown(parts: &[&str]) -> String {
        let mut stream = stream();
        let mut shown = Vec::new();
        for part in parts {
            shown.extend(stream.put(0, part.as_bytes()));
        }
        shown.extend(stream.end());
        String::from_utf8(shown).unwrap()
    }

    #[test]
    fn a_secret_is_taken_out_wherever_the_text_is_cut() {
        let text = "a other-one b planted\nsecret c planted d\n";
        for at in 0..text.len() {
            let (head, tail) = text.split_at(at);
            assert_eq!(shown(&[head, tail]), "a *** b *** c *** d\n", "{at}");
        }
        let each: Vec<&str> = text.split("").collect();
        assert_eq!(shown(&each), "a *** b *** c *** d\n");
    }

    #[test]
    fn only_what_may_begin_a_secret_is_held_back() {
        let mut stream = stream();
        assert_eq!(stream.put(0, b"done: 50 %"), b"done: 50 %");
        assert_eq!(stream.put(0, b", oth"), b", ");
        assert_eq!(stream.put(0, b"ers"), b"others");
        assert_eq!(stream.put(0, b" pl"), b" ");
        assert_eq!(stream.end(), b"pl", "too short to say anything");
    }

    #[test]
    fn a_secret_is_taken_out_on_both_sides_of_what_is_left_out() {
        let mut stream = stream();
        let mut shown = stream.put(0, b"a other-o");
        shown.extend(stream.put(7, b"ecret b"));
        shown.extend(stream.end());
        let expected = format!("a ***{}*** b", left_out(7));
        assert_eq!(String::from_utf8(shown).unwrap(), expected);
    }

    #[test]
    fn what_holds_no_secret_stays_as_it_is() {
        let mut stream = Stream::default();
        assert_eq!(stream.put(0, b"\xff\x00"), b"\xff\x00");
        assert_eq!(stream.end(), b"");
    }
}
