//! Filling a page: entries may be large, so they are read a few at a time, and a page ends early
//! rather than grow without bound.

use futures_util::future::BoxFuture;
use model::limits;
use store::{Page, StoreError};

/// Entries read from the store at once.
const READ_MAX: usize = 100;
/// A page ends early when what it holds is this large.
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// One page, and where the next begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed<T, Id> {
    pub items: Vec<T>,
    pub next: Option<Id>,
}

/// Reads a page of `limit` entries or fewer. `weigh` says what identifies an entry, and how large it is.
pub async fn fill<'a, T, Id: Copy>(
    page: Page<Id>,
    read: impl Fn(Page<Id>) -> BoxFuture<'a, Result<Vec<T>, StoreError>> + Send,
    weigh: impl Fn(&T) -> (Id, usize) + Send,
) -> Result<Listed<T, Id>, StoreError> {
    let limit = page.limit.min(limits::PAGE_MAX);
    let mut last = page.before;
    let mut items = Vec::new();
    let mut bytes = 0;
    loop {
        // One more than wanted shows whether there is a next page.
        let wanted = (limit + 1 - items.len()).min(READ_MAX);
        let read = read(Page {
            before: last,
            limit: wanted,
        })
        .await?;
        let ended = read.len() < wanted;
        for item in read {
            if items.len() == limit || bytes > BYTES_MAX {
                return Ok(Listed { items, next: last });
            }
            let (id, weight) = weigh(&item);
            bytes += weight;
            last = Some(id);
            items.push(item);
        }
        if ended {
            return Ok(Listed { items, next: None });
        }
    }
}
