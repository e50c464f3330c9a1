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

/// Entries of which only some are wanted, and no index says which.
const SCANNED_MAX: usize = 2_000;
/// The same, in bytes.
const SCANNED_BYTES_MAX: usize = 4 * BYTES_MAX;

/// Reads a page of entries that are wanted. So many are looked at and no more: a page may be short, and the next begins after
/// the last that was looked at.
pub(super) async fn pick<'a, T, Id: Copy>(
    page: Page<Id>,
    read: impl Fn(Page<Id>) -> BoxFuture<'a, Result<Vec<T>, StoreError>> + Send,
    weigh: impl Fn(&T) -> (Id, usize) + Send,
    is_wanted: impl Fn(&T) -> bool + Send,
) -> Result<Listed<T, Id>, StoreError> {
    let limit = page.limit.min(limits::PAGE_MAX);
    let (mut last, mut items) = (page.before, Vec::new());
    let (mut bytes, mut scanned, mut scanned_bytes) = (0, 0, 0);
    loop {
        let part = Page {
            before: last,
            limit: READ_MAX,
        };
        let read = read(part).await?;
        let ended = read.len() < READ_MAX;
        scanned += read.len();
        for item in read {
            let (id, weight) = weigh(&item);
            let wanted = is_wanted(&item);
            if wanted && (items.len() == limit || bytes > BYTES_MAX) {
                return Ok(Listed { items, next: last });
            }
            (last, scanned_bytes) = (Some(id), scanned_bytes + weight);
            if wanted {
                bytes += weight;
                items.push(item);
            }
        }
        if ended {
            return Ok(Listed { items, next: None });
        }
        if scanned >= SCANNED_MAX || scanned_bytes >= SCANNED_BYTES_MAX {
            return Ok(Listed { items, next: last });
        }
    }
}

/// Reads a page of `limit` entries or fewer. `weigh` says what identifies an entry, and how large it is.
pub(super) async fn fill<'a, T, Id: Copy>(
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
