//! What is kept of a command's output: its head, and its end.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use model::attempt::left_out;

use crate::progress::PartialOutput;

/// What a command has written so far. Both outputs are one, in the order in which they were written.
pub(super) struct Output {
    most: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    head: Vec<u8>,
    /// The last bytes behind the head.
    tail: VecDeque<u8>,
    /// All that came.
    bytes: u64,
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
        kept.bytes = kept.bytes.saturating_add(bytes.len() as u64);
        let room = (self.most / 2).saturating_sub(kept.head.len());
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        kept.head.extend_from_slice(head);
        let most = self.most - self.most / 2;
        let rest = rest.get(rest.len().saturating_sub(most)..).unwrap_or(rest);
        let beyond = (kept.tail.len() + rest.len()).saturating_sub(most);
        kept.tail.drain(..beyond);
        kept.tail.extend(rest);
        kept.bytes
    }
}

impl PartialOutput for Output {
    fn output(&self) -> (Bytes, bool) {
        let kept = self.kept();
        let (first, second) = kept.tail.as_slices();
        let tail = [first, second].concat();
        let whole = (kept.head.len() + tail.len()) as u64;
        if kept.bytes <= whole {
            return (Bytes::from([&kept.head[..], &tail].concat()), false);
        }
        // The line that says so takes its room from the end.
        let line = left_out(kept.bytes - whole);
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
