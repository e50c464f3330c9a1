//! Who wants to know when something has changed: a stream of nudges about a tenant's jobs or about one run. A nudge says "look
//! now" and carries nothing: what it is about is read as ever, by whoever may.
//!
//! ```text
//!   streams of one subject ──▶ one task that looks at it each second ──▶ its number grows ──▶ each stream says so
//! ```
//!
//! What always holds: however many watch a subject, it is looked at once a second; a stream ends when whoever has it may not see it
//! any more, or when the node stops.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{KeyId, Role, RunId, TenantId, limits};
use tokio::sync::watch::{self, Receiver, Sender};

use super::error::OpError;
use super::overview::{self, Span};
use super::sessions::{self, Token};
use super::{outside, runs};
use crate::access::Caller;
use crate::api::Api;

/// Streams of a node, and of one session or key.
pub const STREAMS_MAX: usize = 512;
pub const STREAMS_OF_ONE_MAX: usize = 16;
/// How often a subject is looked at.
const READ_EVERY: Duration = Duration::from_secs(1);
/// How often a stream sees whether it may go on. Without hints a node learns of a key that was revoked elsewhere by its next poll:
/// both together are shorter than the second that is promised.
const CHECK_EVERY: Duration = Duration::from_millis(400);
const _: () = assert!(limits::KEYS_POLL.as_millis() + CHECK_EVERY.as_millis() < 1_000);
/// How long a stream waits for the first look.
const OPEN_MAX: Duration = Duration::from_secs(10);
/// Something is sent at least so often, so that both ends know that the other is there.
const BEAT_EVERY: Duration = Duration::from_secs(10);

/// What is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// What the overview says.
    Tenant(TenantId),
    Run(TenantId, RunId),
}

/// By what a stream is had: its right ends with that.
#[derive(Clone)]
pub enum Ticket {
    Key(KeyId),
    Session(Token),
    /// Where no key is needed.
    Anyone,
}

/// What a stream is counted under.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    Key(KeyId),
    Session(String),
    Anyone,
}

impl Ticket {
    fn holder(&self) -> Holder {
        match self {
            Self::Key(id) => Holder::Key(*id),
            Self::Session(token) => Holder::Session(token.digest_text()),
            Self::Anyone => Holder::Anyone,
        }
    }

    async fn is_good(&self, api: &Api, caller: Caller) -> bool {
        match self {
            Self::Key(_) | Self::Anyone => api.access.is_still_valid(caller, api.engine.now()),
            // While nobody can say, nothing is sent.
            Self::Session(token) => sessions::stands(api, token, caller).await.unwrap_or(false),
        }
    }
}

/// Streams that are open.
#[derive(Debug, Default)]
pub(crate) struct Watched(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    subjects: BTreeMap<Subject, Receiver<u64>>,
    holders: BTreeMap<Holder, usize>,
    streams: usize,
}

impl Watched {
    /// Grows with every change of a subject that its streams have said; none while nobody has one open.
    pub(crate) fn number(&self, subject: Subject) -> Option<u64> {
        let open = self.open();
        let changes = open.subjects.get(&subject)?;
        changes.has_changed().is_ok().then(|| *changes.borrow())
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place among the streams.
struct Place {
    api: Arc<Api>,
    holder: Holder,
}

impl Place {
    fn take(api: &Arc<Api>, holder: Holder) -> Option<Self> {
        let mut open = api.watched.open();
        let of_one = open.holders.get(&holder).copied().unwrap_or(0);
        if open.streams >= STREAMS_MAX || of_one >= STREAMS_OF_ONE_MAX {
            return None;
        }
        open.streams += 1;
        api.metrics.streams.inc();
        open.holders.insert(holder.clone(), of_one + 1);
        Some(Self {
            api: Arc::clone(api),
            holder,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.api.watched.open();
        open.streams = open.streams.saturating_sub(1);
        self.api.metrics.streams.dec();
        let left = open.holders.get(&self.holder).map_or(0, |count| count - 1);
        if left == 0 {
            open.holders.remove(&self.holder);
        } else {
            open.holders.insert(self.holder.clone(), left);
        }
    }
}

/// What a stream says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nudge {
    /// It is open: what was read before this may be old.
    Open,
    /// Look now.
    Changed,
    /// Nothing, so that both ends know that the other is there.
    Beat,
}

/// One open stream.
pub struct Watch {
    place: Place,
    caller: Caller,
    ticket: Ticket,
    changes: Receiver<u64>,
    is_open: bool,
    silent: Duration,
}

impl Watch {
    /// Begins to watch. What is not there, or is another tenant's, is not found; where too many watch already, nobody waits.
    pub async fn begin(
        api: &Arc<Api>,
        caller: Caller,
        ticket: Ticket,
        subject: Subject,
    ) -> Result<Self, OpError> {
        let place = Place::take(api, ticket.holder()).ok_or(OpError::Overloaded)?;
        if let Subject::Run(tenant, run) = subject {
            runs::get(api, tenant, run).await?;
        }
        Ok(Self {
            place,
            caller,
            ticket,
            changes: changes(api, subject),
            is_open: false,
            silent: Duration::ZERO,
        })
    }

    /// Waits for the next nudge; none when the stream has ended.
    pub async fn next(&mut self) -> Option<Nudge> {
        let api = Arc::clone(&self.place.api);
        if !std::mem::replace(&mut self.is_open, true) {
            // Only once it was looked at is every change after it seen.
            let changes = &mut self.changes;
            let has_begun = async move { changes.wait_for(|number| *number > 0).await.is_ok() };
            return tokio::select! {
                biased;
                () = api.stopping.cancelled() => None,
                has_begun = has_begun => has_begun.then_some(Nudge::Open),
                () = api.engine.clock().sleep(OPEN_MAX) => None,
            };
        }
        loop {
            tokio::select! {
                biased;
                () = api.stopping.cancelled() => return None,
                changed = self.changes.changed() => {
                    // The task that looks has ended with an error: the next stream starts another.
                    changed.ok()?;
                    if !self.ticket.is_good(&api, self.caller).await {
                        return None;
                    }
                    self.silent = Duration::ZERO;
                    return Some(Nudge::Changed);
                }
                () = api.engine.clock().sleep(CHECK_EVERY) => {
                    if !self.ticket.is_good(&api, self.caller).await {
                        return None;
                    }
                    self.silent += CHECK_EVERY;
                    if self.silent >= BEAT_EVERY {
                        self.silent = Duration::ZERO;
                        return Some(Nudge::Beat);
                    }
                }
            }
        }
    }
}

/// The changes of a subject. Whoever comes first starts the task that looks; it ends when nobody listens.
fn changes(api: &Arc<Api>, subject: Subject) -> Receiver<u64> {
    let mut open = api.watched.open();
    if let Some(changes) = open.subjects.get(&subject) {
        // One that was closed has no task any more.
        if changes.has_changed().is_ok() {
            let mut mine = changes.clone();
            mine.mark_unchanged();
            return mine;
        }
    }
    let (sender, receiver) = watch::channel(0);
    open.subjects.insert(subject, receiver.clone());
    tokio::spawn(read(Arc::clone(api), subject, sender));
    receiver
}

async fn read(api: Arc<Api>, subject: Subject, sender: Sender<u64>) {
    let mut last = None;
    // Above every number that the task before it came to: there is at most one a second.
    let first = api.engine.clock().uptime().as_millis();
    let first = u64::try_from(first).unwrap_or(u64::MAX).max(1);
    loop {
        {
            let mut open = api.watched.open();
            // The one that is kept listens too.
            if sender.receiver_count() <= 1 {
                open.subjects.remove(&subject);
                return;
            }
        }
        // A look that fails says nothing: the next one will.
        if let Ok(seen) = print_of(&api, subject).await
            && last.replace(seen) != Some(seen)
        {
            sender.send_modify(|number| *number = (*number + 1).max(first));
        }
        tokio::select! {
            biased;
            () = api.stopping.cancelled() => return,
            () = api.engine.clock().sleep(READ_EVERY) => {}
        }
    }
}

/// A number that is another one when there is something new to see.
async fn print_of(api: &Api, subject: Subject) -> Result<u64, OpError> {
    let mut print = DefaultHasher::new();
    match subject {
        Subject::Tenant(tenant) => {
            let caller = Caller {
                tenant,
                role: Role::Root,
                key: None,
            };
            let found = overview::overview(api, caller, Span::Hour).await?;
            let nodes = found.nodes.map(|heard| heard.nodes.peers.len());
            let all = (&found.total, &found.live, &found.jobs, &found.attention);
            format!("{all:?}").hash(&mut print);
            nodes.hash(&mut print);
        }
        Subject::Run(tenant, run) => {
            let run = runs::get(api, tenant, run).await?;
            let handed = outside::handed(api, &run).await?;
            let (log, _) = outside::log(api, tenant, run.id, u64::MAX).await?;
            format!("{run:?}{handed:?}{log:?}").hash(&mut print);
        }
    }
    Ok(print.finish())
}
