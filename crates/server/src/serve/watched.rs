//! A connection that counts whether anything moves on it, and gives the one answer that is not ours a body.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::large;
use super::link::Link;

/// Grows with every read and write that moved something.
#[derive(Debug, Clone, Default)]
pub(super) struct Activity(Arc<AtomicU64>);

impl Activity {
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn moved<T>(&self, polled: Poll<T>) -> Poll<T> {
        if polled.is_ready() {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        polled
    }
}

pub(super) struct Watched {
    stream: Link,
    activity: Activity,
    /// What is being written instead of what was given, and how much of it has been.
    instead: Option<(Vec<u8>, usize)>,
}

impl Watched {
    pub(super) fn new(stream: Link, activity: Activity) -> Self {
        Self {
            stream,
            activity,
            instead: None,
        }
    }

    /// Writes what stands in for `buf`, to its end; none when nothing does.
    fn poll_instead(
        &mut self,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Option<Poll<io::Result<usize>>> {
        if self.instead.is_none() {
            self.instead = Some((large::with_body(buf)?, 0));
        }
        while let Some((bytes, written)) = &mut self.instead {
            let left = bytes.get(*written..).unwrap_or_default();
            if left.is_empty() {
                self.instead = None;
                break;
            }
            match Pin::new(&mut self.stream).poll_write(cx, left) {
                Poll::Ready(Ok(0)) => return Some(Poll::Ready(Ok(0))),
                Poll::Ready(Ok(count)) => *written += count,
                other @ (Poll::Ready(Err(_)) | Poll::Pending) => return Some(other),
            }
        }
        Some(Poll::Ready(Ok(buf.len())))
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.activity.moved(polled)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = match self.poll_instead(cx, buf) {
            Some(polled) => polled,
            None => Pin::new(&mut self.stream).poll_write(cx, buf),
        };
        self.activity.moved(polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let one = bufs.first().filter(|_| bufs.len() == 1);
        let polled = match one.and_then(|buf| self.poll_instead(cx, buf)) {
            Some(polled) => polled,
            None => Pin::new(&mut self.stream).poll_write_vectored(cx, bufs),
        };
        self.activity.moved(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
