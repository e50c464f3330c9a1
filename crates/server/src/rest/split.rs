//! Lines out of frames: a body arrives in pieces that know nothing of lines. What is kept between two
//! pieces is at most one line, and of a line that is too long nothing is kept at all.

use bytes::{Bytes, BytesMut};
use model::limits;

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(Bytes),
    TooLong,
}

#[derive(Debug, Default)]
pub(super) struct Splitter {
    /// What has come of the line that has not ended.
    part: BytesMut,
    /// The rest of the frame that is being split.
    rest: Bytes,
    /// The line that has not ended is too long: its bytes are dropped until it does.
    over: bool,
}

impl Splitter {
    /// Takes the next frame; the one before must have been split to its end.
    pub(super) fn feed(&mut self, frame: Bytes) {
        self.rest = frame;
    }

    /// The next line that has ended.
    pub(super) fn next(&mut self) -> Option<Line> {
        let end = self.rest.iter().position(|byte| *byte == b'\n');
        let Some(end) = end else {
            let rest = std::mem::take(&mut self.rest);
            self.keep(&rest);
            return None;
        };
        let head = self.rest.split_to(end);
        // The line's end itself.
        self.rest = self.rest.split_off(1);
        if self.part.is_empty() && !self.over && head.len() <= limits::LINE_MAX {
            return Some(Line::Whole(head));
        }
        self.keep(&head);
        Some(self.take())
    }

    /// What is left when the body has ended without a line's end.
    pub(super) fn last(&mut self) -> Option<Line> {
        (self.over || !self.part.is_empty()).then(|| self.take())
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.over || self.part.len() + bytes.len() > limits::LINE_MAX {
            self.over = true;
            self.part = BytesMut::new();
        } else {
            self.part.extend_from_slice(bytes);
        }
    }

    fn take(&mut self) -> Line {
        let part = std::mem::take(&mut self.part);
        if std::mem::take(&mut self.over) {
            Line::TooLong
        } else {
            Line::Whole(part.freeze())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(frames: &[&str]) -> Vec<String> {
        let mut splitter = Splitter::default();
        let mut lines = Vec::new();
        let mut put = |line| match line {
            Line::Whole(line) => lines.push(String::from_utf8(line.to_vec()).unwrap()),
            Line::TooLong => lines.push("too long".to_owned()),
        };
        for frame in frames {
            splitter.feed(Bytes::from((*frame).to_owned()));
            while let Some(line) = splitter.next() {
                put(line);
            }
        }
        splitter.last().into_iter().for_each(put);
        lines
    }

    #[test]
    fn lines_are_the_same_however_the_body_is_cut() {
        let expected = ["one", "two", "", "three"];
        assert_eq!(split(&["one\ntwo\n\nthree"]), expected);
        assert_eq!(split(&["on", "e\nt", "wo\n", "\nthree", ""]), expected);
        assert_eq!(split(&["one\ntwo\n\nthree\n"]), expected);
        assert!(split(&[""]).is_empty());
    }

    #[test]
    fn a_line_that_is_too_long_is_one_line_and_the_next_is_whole() {
        let long = "x".repeat(limits::LINE_MAX + 1);
        let whole = format!("a\n{long}\nb\n");
        assert_eq!(split(&[&whole]), ["a", "too long", "b"]);
        assert_eq!(split(&["a\n", &long, &long, "\nb"]), ["a", "too long", "b"]);
        assert_eq!(split(&[&long]), ["too long"]);
        assert_eq!(
            split(&[&"y".repeat(limits::LINE_MAX), "\n"])
                .first()
                .map(String::len),
            Some(limits::LINE_MAX)
        );
    }
}
