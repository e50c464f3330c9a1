//! The answer to a head that is too large. hyper gives it before anything of ours sees the request, and without a body.

use crate::problem::{Kind, Problem};

const STATUS: &[u8] = b"HTTP/1.1 431 ";
const END: &[u8] = b"\r\n\r\n";
const LENGTH: &str = "content-length: 0\r\n";

/// The same answer with a problem as its body; none for anything else. It cannot be part of a body of ours: those are
/// JSON, Markdown and metrics, in which there is no line that ends with a carriage return.
pub(super) fn with_body(answer: &[u8]) -> Option<Vec<u8>> {
    if !answer.starts_with(STATUS) || !answer.ends_with(END) {
        return None;
    }
    let head = std::str::from_utf8(answer).ok()?;
    let (before, after) = head.split_once(LENGTH)?;
    let detail = format!(
        "a request's line and headers may have {} KiB, in at most {} headers",
        super::HEAD_BYTES_MAX / 1024,
        super::HEADERS_MAX
    );
    let problem = Problem::new(Kind::HeadTooLarge, detail);
    let body = serde_json::to_string(&problem).ok()?;
    let length = body.len();
    let own = format!(
        "content-type: application/problem+json\r\ncontent-length: {length}\r\ncache-control: no-store\r\n\
         x-content-type-options: nosniff\r\n"
    );
    Some(format!("{before}{own}{after}{body}").into_bytes())
}
