//! Runs by what they are like, and errors in groups: what no index says is looked at, run by run, up to a bound.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::FutureExt;
use model::{JobId, Reason, Run, RunId, TenantId, Timestamp, error_group, limits};
use store::{Finder, Page, RunFind, StoreError};

use super::error::OpError;
use super::page::{self, Listed};
use super::{runs, tenants};
use crate::api::Api;

/// Runs read from the store at once.
const READ_MAX: usize = 100;

/// Newest first. Where runs have to be looked at, a page may be short and have another after it.
pub async fn list(
    api: &Api,
    tenant: TenantId,
    find: &RunFind,
    page: Page<RunId>,
) -> Result<Listed<Run, RunId>, OpError> {
    if find.matches.is_empty() {
        return runs::list(api, tenant, &find.filter, page).await;
    }
    let from = tenants::history_from(api, tenant).await?;
    let scan = Scan::new(api, tenant, find, from);
    let read = |page| scan.read(page).boxed();
    let weigh = |(run, _): &(Run, bool)| runs::weigh(run);
    let picked = page::pick(page, read, weigh, |(_, wanted)| *wanted).await?;
    Ok(Listed {
        items: picked.items.into_iter().map(|(run, _)| run).collect(),
        next: picked.next,
    })
}

/// Reads what a tenant may see, and says which of it is wanted.
struct Scan<'a> {
    api: &'a Api,
    tenant: TenantId,
    find: &'a RunFind,
    from: Option<Timestamp>,
    finder: Finder<'a>,
}

impl<'a> Scan<'a> {
    fn new(api: &'a Api, tenant: TenantId, find: &'a RunFind, from: Option<Timestamp>) -> Self {
        Self {
            api,
            tenant,
            find,
            from,
            finder: Finder::new(&*api.store, tenant, find),
        }
    }

    async fn read(&self, page: Page<RunId>) -> Result<Vec<(Run, bool)>, StoreError> {
        let filter = &self.find.filter;
        let runs = runs::read(self.api, self.tenant, filter, self.from, page).await?;
        self.finder.examine(runs).await
    }
}

/// Runs whose errors are alike.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub kind: GroupKind,
    pub count: u64,
    pub first_at: Timestamp,
    pub last_at: Timestamp,
    pub jobs: BTreeSet<JobId>,
    /// The newest of them.
    pub example: RunId,
}

/// What runs of a group have in common. One without an error has its reason instead.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupKind {
    pub error: Option<String>,
    pub status: Option<i32>,
    pub reason: Option<&'static str>,
}

impl GroupKind {
    fn of(run: &Run) -> Self {
        let error = run.error().map(error_group);
        Self {
            status: run.attempts.last().and_then(|attempt| attempt.status),
            reason: run.reason.filter(|_| error.is_none()).map(Reason::as_str),
            error,
        }
    }
}

/// What was found, and how much of it was looked at.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Groups {
    /// The largest first.
    pub items: Vec<Group>,
    pub scanned: u64,
    /// Whether nothing older is left to look at.
    pub complete: bool,
    /// The moment in the id of the last that was looked at.
    pub scanned_to: Option<Timestamp>,
}

/// Groups runs by their errors, the newest first, up to a bound of runs, bytes and groups.
pub async fn groups(api: &Api, tenant: TenantId, find: &RunFind) -> Result<Groups, OpError> {
    let from = tenants::history_from(api, tenant).await?;
    let scan = Scan::new(api, tenant, find, from);
    let mut found = BTreeMap::<GroupKind, Group>::new();
    let (mut groups, mut before, mut bytes) = (Groups::default(), None, 0);
    loop {
        let page = Page {
            before,
            limit: READ_MAX,
        };
        let read = scan.read(page).await?;
        groups.complete = read.len() < READ_MAX;
        groups.scanned += read.len() as u64;
        for (run, wanted) in read {
            bytes += runs::weigh(&run).1;
            before = Some(run.id);
            if wanted {
                add(&mut found, &run);
            }
        }
        let is_full = groups.scanned >= limits::GROUPS_SCAN_MAX as u64
            || bytes >= limits::GROUPS_BYTES_MAX
            || found.len() >= limits::GROUPS_MAX;
        if groups.complete || is_full {
            break;
        }
    }
    groups.scanned_to = before.map(RunId::at);
    groups.items = found.into_values().collect();
    groups
        .items
        .sort_by_key(|group| std::cmp::Reverse((group.count, group.last_at)));
    Ok(groups)
}

fn add(found: &mut BTreeMap<GroupKind, Group>, run: &Run) {
    let kind = GroupKind::of(run);
    let at = run.settled_at.unwrap_or(run.due_at);
    let group = found.entry(kind.clone()).or_insert_with(|| Group {
        kind,
        count: 0,
        first_at: at,
        last_at: at,
        jobs: BTreeSet::new(),
        example: run.id,
    });
    group.count += 1;
    group.first_at = group.first_at.min(at);
    group.last_at = group.last_at.max(at);
    group.jobs.insert(run.job);
}
