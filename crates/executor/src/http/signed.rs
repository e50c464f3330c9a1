//! The headers of Standard Webhooks, for orders that are signed.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use crate::WorkOrder;
use crate::sign;

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Headers that it adds.
pub(super) const HEADERS: usize = 3;

/// Signs what is sent. The id is that of the run: the same for all its attempts, as that of a message is to be.
pub(super) fn add(headers: &mut HeaderMap, order: &WorkOrder, body: &[u8]) {
    let Some(signer) = &order.signer else {
        return;
    };
    let id = order.run.to_string();
    let signature = signer.sign(&id, order.sent_at, body);
    headers.insert(TIMESTAMP, HeaderValue::from(sign::seconds(order.sent_at)));
    // Both are letters, digits and signs of base64: no header refuses them.
    for (name, text) in [(ID, id), (SIGNATURE, signature)] {
        if let Ok(value) = HeaderValue::try_from(text) {
            headers.insert(name, value);
        }
    }
}
