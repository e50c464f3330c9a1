//! The body of an answer: how much of it is read, and what is kept.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};

/// Bytes read beyond those that are kept, so that a slightly longer answer does not cost its link.
const SPARE_MAX: usize = 16 * 1024;

/// The head of an answer's body, and whether more would have followed.
pub(super) struct Read {
    pub(super) bytes: Bytes,
    pub(super) end: End,
    /// Bytes came that are not kept.
    beyond: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It was read to its end.
    Whole,
    /// It was longer than we read.
    Left,
    /// It broke off.
    Cut,
}

impl Read {
    /// Whether the link has nothing of this answer left in it.
    pub(super) fn is_whole(&self) -> bool {
        self.end == End::Whole
    }

    /// Whether `bytes` is all of it.
    pub(super) fn is_all(&self) -> bool {
        self.is_whole() && !self.beyond
    }
}

/// Reads a body until its end, but no further than a little beyond `bytes_max`.
pub(super) async fn read(mut body: Incoming, bytes_max: usize) -> Read {
    let read_max = bytes_max.saturating_add(SPARE_MAX);
    // An announced length that goes too far is not worth reading beyond what is kept.
    let far = body.size_hint().lower() > read_max as u64;
    let stop_at = if far { bytes_max } else { read_max };
    let mut bytes = BytesMut::new();
    let mut read = 0_usize;
    let end = loop {
        if body.is_end_stream() {
            break End::Whole;
        }
        if read >= stop_at {
            break End::Left;
        }
        match body.frame().await {
            None => break End::Whole,
            Some(Err(_)) => break End::Cut,
            Some(Ok(frame)) => {
                // Trailers are not kept, and an answer has them once at most.
                let Ok(data) = frame.into_data() else {
                    continue;
                };
                let room = bytes_max.saturating_sub(bytes.len()).min(data.len());
                // Copied, because a piece of the link's own buffer would hold on to all of it.
                bytes.extend_from_slice(data.get(..room).unwrap_or_default());
                read = read.saturating_add(data.len());
            }
        }
    };
    Read {
        beyond: read > bytes.len(),
        bytes: bytes.freeze(),
        end,
    }
}
