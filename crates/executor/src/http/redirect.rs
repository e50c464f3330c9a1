//! From an answer that names another place to the request that is sent there. Which are followed is decided by the model.

use hyper::header::{
    CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_LOCATION, CONTENT_TYPE, LOCATION,
};
use hyper::http::response::Parts;
use hyper::{Request, Uri};
use model::redirect::{NotFollowed, method_after, resolve};
use model::target::HttpTarget;
use model::{Exchange, limits};

use super::link::Body;
use super::{answer, signed};
use crate::WorkOrder;

/// Says in the exchange how many redirects led to the answer.
pub(super) fn note(exchange: &mut Exchange, followed: usize) {
    if followed == 0 {
        return;
    }
    let s = if followed == 1 { "" } else { "s" };
    let came = format!("the answer came after {followed} redirect{s}");
    exchange.note = Some(match exchange.note.take() {
        Some(note) => format!("{came}; {note}"),
        None => came,
    });
}

/// What becomes of an answer.
pub(super) enum Next {
    /// It is the last one.
    Done,
    Follow(Box<Request<Body>>),
    Not(NotFollowed),
}

/// `sent` is a copy of what was answered, and `followed` how many redirects led to it.
pub(super) fn next(
    head: &Parts,
    mut sent: Request<Body>,
    (order, target): (&WorkOrder, &HttpTarget),
    followed: usize,
) -> Next {
    let Some(method) = method_after(head.status.as_u16(), sent.method()) else {
        return Next::Done;
    };
    if answer::is_success(head.status, target) {
        return Next::Done;
    }
    let location = head.headers.get(LOCATION);
    let location = location.map(|location| location.to_str());
    let Ok(location) = location.transpose() else {
        return Next::Not(NotFollowed::Unreadable);
    };
    let path = match resolve(&target.url, sent.uri().path(), location) {
        Ok(_) if followed >= limits::REDIRECTS_MAX => return Next::Not(NotFollowed::TooMany),
        Ok(path) => path,
        Err(why) => return Next::Not(why),
    };
    *sent.uri_mut() = Uri::from(path);
    if method != *sent.method() {
        *sent.method_mut() = method;
        *sent.body_mut() = Body::default();
        let headers = sent.headers_mut();
        for name in [
            CONTENT_ENCODING,
            CONTENT_LANGUAGE,
            CONTENT_LENGTH,
            CONTENT_LOCATION,
            CONTENT_TYPE,
        ] {
            headers.remove(name);
        }
        // What was signed is not what is sent now.
        signed::add(headers, order, &[]);
    }
    Next::Follow(Box::new(sent))
}
