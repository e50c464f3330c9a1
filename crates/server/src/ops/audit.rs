//! What a client reads of the audit log.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use model::{KeyId, Role, Tenant, TenantId, TenantName, Timestamp, limits};
use store::{Action, AuditEntry, AuditRange, Page};

use super::error::OpError;
use super::keys;
use super::page::Listed;
use crate::access::Caller;
use crate::api::Api;

/// Entries read from the store at once.
const READ_MAX: usize = 200;
/// Entries that one page looks at: where few fit, it is short and has a cursor.
const SCANNED_MAX: usize = 10_000;
/// A page ends early when what it holds is this large.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// How far entries may be out of the order of their moments: clocks of nodes differ, and transactions take time.
const DISORDER_MAX: Duration = Duration::from_secs(3_600);

/// Which entries are wanted: those that fit all that is said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditFilter {
    pub since: Option<Timestamp>,
    /// Up to but not including.
    pub until: Option<Timestamp>,
    pub action: Option<Action>,
    pub actor: Option<String>,
    pub key: Option<KeyId>,
    pub subject: Option<String>,
}

impl AuditFilter {
    fn fits(&self, entry: &AuditEntry) -> bool {
        self.since.is_none_or(|since| entry.at >= since)
            && self.until.is_none_or(|until| entry.at < until)
            && self.action.is_none_or(|it| entry.action == it.as_str())
            && self.actor.as_ref().is_none_or(|it| entry.actor == *it)
            && self.key.is_none_or(|it| entry.key == Some(it))
            && self.subject.as_ref().is_none_or(|it| entry.subject == *it)
    }

    /// Whether no entry before this one can fit, as they go back in time.
    fn ends_before(&self, entry: &AuditEntry) -> bool {
        self.since
            .is_some_and(|since| entry.at < since.minus(DISORDER_MAX))
    }
}

/// Whose entries a caller reads: root all of them, unless it names a tenant; everyone else their own.
pub async fn whose(
    api: &Api,
    caller: Caller,
    name: Option<&TenantName>,
) -> Result<Option<TenantId>, OpError> {
    if name.is_none() && caller.role == Role::Root {
        return Ok(None);
    }
    let tenant = keys::tenant(api, caller, name).await?;
    Ok(Some(tenant.id))
}

/// Newest first. A page may be short, and have a cursor all the same: it looks at so many entries and no more.
pub async fn list(
    api: &Api,
    tenant: Option<TenantId>,
    filter: &AuditFilter,
    page: Page<u64>,
) -> Result<Listed<AuditEntry, u64>, OpError> {
    let limit = page.limit.min(limits::PAGE_MAX);
    let mut range = AuditRange {
        tenant,
        before: page.before.unwrap_or(AuditRange::ALL.before),
        newest_first: true,
        limit: READ_MAX,
        ..AuditRange::ALL
    };
    let (mut items, mut scanned, mut bytes) = (Vec::new(), 0, 0);
    loop {
        let read = api.store.access().list_audit(&range).await?;
        let ended = read.len() < READ_MAX;
        for entry in read {
            if filter.ends_before(&entry) {
                return Ok(Listed { items, next: None });
            }
            if items.len() == limit || scanned == SCANNED_MAX || bytes > BYTES_MAX {
                let next = Some(range.before);
                return Ok(Listed { items, next });
            }
            range.before = entry.seq;
            scanned += 1;
            if filter.fits(&entry) {
                bytes += size(&entry);
                items.push(entry);
            }
        }
        if ended {
            return Ok(Listed { items, next: None });
        }
    }
}

fn size(entry: &AuditEntry) -> usize {
    let size = |form: &Option<String>| form.as_ref().map_or(0, String::len);
    size(&entry.before) + size(&entry.after) + limits::NAME_MAX
}

/// Some of the entries after one, oldest first, and after which to go on; none at the end.
pub async fn read_on(
    api: &Api,
    tenant: Option<TenantId>,
    filter: &AuditFilter,
    after: u64,
) -> Result<Listed<AuditEntry, u64>, OpError> {
    let range = AuditRange {
        tenant,
        after,
        limit: READ_MAX,
        ..AuditRange::ALL
    };
    let read = api.store.access().list_audit(&range).await?;
    let next = read.last().map(|entry| entry.seq);
    let next = next.filter(|_| read.len() == READ_MAX);
    let items = read.into_iter().filter(|entry| filter.fits(entry));
    Ok(Listed {
        items: items.collect(),
        next,
    })
}

/// Names of the tenants that entries are about; one that is gone has its id.
#[derive(Default)]
pub struct Names(BTreeMap<TenantId, String>);

impl Names {
    pub async fn learn(&mut self, api: &Api, entries: &[AuditEntry]) -> Result<(), OpError> {
        for entry in entries {
            if let Entry::Vacant(unknown) = self.0.entry(entry.tenant) {
                let found = api.store.access().get_tenant(entry.tenant).await?;
                let name = |tenant: Tenant| tenant.name.to_string();
                unknown.insert(found.map_or_else(|| entry.tenant.to_string(), name));
            }
        }
        Ok(())
    }

    pub fn of(&self, tenant: TenantId) -> String {
        let known = self.0.get(&tenant).cloned();
        known.unwrap_or_else(|| tenant.to_string())
    }
}
