//! What is kept of a command's output: its head, and its end.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use model::attempt::left_out;
use model::limits;

use crate::progress::{PartialOutput, Unread};

/// What a command has written so far. Both outputs are one, in the order in which they were written.
pub(super) struct Output {
    most: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    all: Ends,
    /// What nobody has read yet.
    unread: Ends,
}

/// The head of something, and its end.
#[derive(Default)]
struct Ends {
    head: Vec<u8>,
    /// The last bytes behind the head.
    tail: VecDeque<u8>,
    /// All that came.
    bytes: u64,
}

impl Ends {
    fn put(&mut self, bytes: &[u8], head_max: usize, tail_max: usize) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        let room = head_max.saturating_sub(self.head.len());
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        let rest = rest.get(rest.len().saturating_sub(tail_max)..);
        let rest = rest.unwrap_or_default();
        let beyond = (self.tail.len() + rest.len()).saturating_sub(tail_max);
        self.tail.drain(..beyond);
        self.tail.extend(rest);
    }

    fn len(&self) -> u64 {
        (self.head.len() + self.tail.len()) as u64
    }
}

impl Output {
    /// Keeps at most so many bytes.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            kept: Mutex::default(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers how much there was by now.
    pub(super) fn put(&self, bytes: &[u8]) -> u64 {
        let mut kept = self.kept();
        kept.all
            .put(bytes, self.most / 2, self.most - self.most / 2);
        kept.unread
            .put(bytes, limits::LOG_HEAD_MAX, limits::LOG_TAIL_MAX);
        kept.all.bytes
    }
}

impl PartialOutput for Output {
    fn output(&self) -> (Bytes, bool) {
        let kept = &self.kept().all;
        let (first, second) = kept.tail.as_slices();
        let tail = [first, second].concat();
        if kept.bytes <= kept.len() {
            return (Bytes::from([&kept.head[..], &tail].concat()), false);
        }
        // The line that says so takes its room from the end.
        let line = left_out(kept.bytes - kept.len());
        let room = self.most.saturating_sub(kept.head.len() + line.len());
        let line = left_out(kept.bytes - (kept.head.len() + room.min(tail.len())) as u64);
        if kept.head.len() + line.len() >= self.most {
            return (Bytes::from([&kept.head[..], &tail].concat()), true);
        }
        let room = self.most - kept.head.len() - line.len();
        let end = tail.get(tail.len().saturating_sub(room)..);
        let parts = [&kept.head[..], line.as_bytes(), end.unwrap_or_default()];
        (Bytes::from(parts.concat()), true)
    }

    fn unread(&self) -> Unread {
        let unread = std::mem::take(&mut self.kept().unread);
        Unread {
            missed: unread.bytes - unread.len(),
            head: Bytes::from(unread.head),
            tail: Bytes::from(Vec::from(unread.tail)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(most: usize, parts: &[&str]) -> (String, bool) {
        let output = Output::new(most);
        for part in parts {
            output.put(part.as_bytes());
        }
        let (bytes, truncated) = output.output();
        (String::from_utf8(bytes.to_vec()).unwrap(), truncated)
    }

    #[test]
    fn what_fits_is_kept_as_it_is() {
        assert_eq!(of(8, &[]), (String::new(), false));
        assert_eq!(of(8, &["abc", "defgh"]), ("abcdefgh".to_owned(), false));
        assert_eq!(of(0, &["a"]), (String::new(), true));
        assert_eq!(of(4, &["abc", "def", "g"]), ("abfg".to_owned(), true));
    }

    #[test]
    fn what_nobody_has_read_is_kept_up_to_a_limit() {
        let output = Output::new(8);
        assert_eq!(output.unread(), Unread::default());
        output.put(b"0123456789");
        output.put(b"ab");
        assert_eq!(output.unread().head, Bytes::from_static(b"0123456789ab"));
        assert_eq!(output.unread(), Unread::default());
        let (head_max, tail_max) = (limits::LOG_HEAD_MAX, limits::LOG_TAIL_MAX);
        output.put(b"first");
        output.put(&vec![b'x'; head_max + tail_max]);
        output.put(b"last");
        let Unread { head, missed, tail } = output.unread();
        assert_eq!((head.len(), missed, tail.len()), (head_max, 9, tail_max));
        assert!(head.starts_with(b"firstxx") && tail.ends_with(b"xlast"));
    }

    #[test]
    fn of_more_the_head_and_the_end_are_kept_with_a_line_between_them() {
        let many: Vec<String> = (0..10_000).map(|no| format!("line {no}\n")).collect();
        let parts: Vec<&str> = many.iter().map(String::as_str).collect();
        let whole: usize = parts.iter().map(|part| part.len()).sum();
        let (text, truncated) = of(1_000, &parts);
        assert!(truncated && text.len() == 1_000, "{}", text.len());
        assert!(text.starts_with("line 0\n") && text.ends_with("line 9999\n"));
        let (_, rest) = text.split_once("\n[… ").unwrap();
        let left: usize = rest.split(' ').next().unwrap().parse().unwrap();
        let line = left_out(left as u64).len();
        assert_eq!(left + 1_000 - line, whole);
        assert_eq!(of(1_000, &[&many.concat()]).0, text, "however it comes");
    }
}
