//! Seal: each second, what was entered in the audit log since the last seal becomes a segment of the chain. One node does
//! it, the one that holds the first shard; where two think that they do, the store takes one seal of each number.
//!
//! Writers wait for nobody: a number that is taken and not committed yet is a gap of its segment, and its entry is taken up
//! by the segment of the moment in which it appears.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use model::hex::to_hex;
use model::{Shard, Timestamp, limits};
use store::{AuditEntry, AuditRange, ClientStore, DROP_SEALS_MAX, Gap, Seal, Store, StoreError};
use tracing::{error, info, warn};

use crate::chain::{self, Check, LATE_MAX, LATE_WITHIN, SEGMENT_MAX};
use crate::clock::Clock;
use crate::drops;
use crate::duty::{Duty, Wake};
use crate::node::NodeConfig;
use crate::nudge::Nudge;
use crate::presence::Presence;
use crate::shards::Shards;
use crate::vault::{KeyRing, MasterKeys};

const EVERY: Duration = Duration::from_secs(1);
/// How often it is looked for segments that were kept long enough.
const DROP_EVERY: Duration = Duration::from_secs(6 * 3_600);
/// Seals whose gaps may still be filled, read at the start.
const SEALS_READ: usize = 1_000;
/// Gaps that are read at once.
const GAPS_MAX: usize = 1_000;

pub(crate) struct Ports {
    pub store: Arc<dyn ClientStore>,
    pub clock: Arc<dyn Clock>,
    pub presence: Arc<Presence>,
    pub shards: Arc<Shards>,
    /// Without one nothing is sealed.
    pub keys: Arc<KeyRing>,
    pub keep: Duration,
    /// A held node shows what it was given, and forgets none of it.
    pub hold: bool,
    pub nudge: Nudge,
}

impl Ports {
    pub(crate) fn new(
        (store, clock): (Arc<dyn Store>, Arc<dyn Clock>),
        (presence, shards): (Arc<Presence>, Arc<Shards>),
        (config, keys): (&NodeConfig, &Arc<KeyRing>),
        nudge: &Nudge,
    ) -> Self {
        Self {
            store,
            clock,
            presence,
            shards,
            keys: Arc::clone(keys),
            keep: config.audit_keep,
            hold: config.hold,
            nudge: nudge.clone(),
        }
    }
}

pub(crate) struct Sealing {
    ports: Ports,
    /// None: it is still to be read.
    chain: Option<Chain>,
    warned: bool,
    /// By uptime.
    drop_next: Duration,
}

/// The end of the chain.
#[derive(Default)]
struct Chain {
    last: Option<Seal>,
    /// Gaps that may still be filled, with when their segments were sealed.
    gaps: BTreeMap<Gap, Timestamp>,
    /// The last of those that were read, if there are more.
    gap_last: Option<Gap>,
}

impl Chain {
    fn take(&mut self, seal: Seal) {
        self.gaps
            .extend(seal.gaps.iter().map(|gap| (*gap, seal.sealed_at)));
        for seq in &seal.late {
            self.fill(*seq);
        }
        self.last = Some(seal);
    }

    /// What is left of a gap on both sides of a number that has come.
    fn fill(&mut self, seq: u64) {
        let found = self.gaps.iter().find(|(gap, _)| gap.contains(seq));
        let Some((gap, at)) = found.map(|(gap, at)| (*gap, *at)) else {
            return;
        };
        self.gaps.remove(&gap);
        if gap.first < seq {
            let first = gap.first;
            self.gaps.insert(
                Gap {
                    first,
                    last: seq - 1,
                },
                at,
            );
        }
        if seq < gap.last {
            let last = gap.last;
            self.gaps.insert(
                Gap {
                    first: seq + 1,
                    last,
                },
                at,
            );
        }
    }

    /// Some of the gaps, in turn: none waits until others are forgotten.
    fn next_gaps(&mut self) -> Vec<Gap> {
        let after = self
            .gap_last
            .take()
            .map_or(Bound::Unbounded, Bound::Excluded);
        let rest = self.gaps.range((after, Bound::Unbounded));
        let next: Vec<Gap> = rest.map(|(gap, _)| *gap).take(GAPS_MAX).collect();
        let is_full = next.len() == GAPS_MAX && self.gaps.len() > GAPS_MAX;
        self.gap_last = next.last().copied().filter(|_| is_full);
        next
    }

    fn forget(&mut self, now: Timestamp) {
        let old = now.minus(LATE_WITHIN);
        self.gaps.retain(|_, sealed_at| *sealed_at > old);
    }

    /// The numbers between those that were seen.
    fn gaps_between(from: u64, entries: &[AuditEntry]) -> Vec<Gap> {
        let mut gaps = Vec::new();
        let mut first = from;
        for entry in entries {
            if first < entry.seq {
                let last = entry.seq - 1;
                gaps.push(Gap { first, last });
            }
            first = entry.seq + 1;
        }
        gaps
    }
}

impl Sealing {
    pub(crate) fn new(ports: Ports) -> Self {
        Self {
            ports,
            chain: None,
            warned: false,
            drop_next: Duration::ZERO,
        }
    }

    fn is_ours(&self) -> bool {
        let first = Shard::all().next();
        let leases = self.ports.shards.leases();
        first.is_some_and(|first| leases.epoch(first).is_some()) && self.ports.presence.is_sure()
    }

    async fn read(&self, now: Timestamp) -> Result<Chain, StoreError> {
        let audit = self.ports.store.access();
        let mut chain = Chain::default();
        let Some(last) = audit.last_seal().await? else {
            return Ok(chain);
        };
        let after = last.number.saturating_sub(SEALS_READ as u64);
        for seal in audit.list_seals(after, SEALS_READ).await? {
            chain.take(seal);
        }
        chain.forget(now);
        Ok(chain)
    }

    /// One segment, if there is anything to seal. Answers whether there may be more.
    async fn seal(&mut self, keys: &MasterKeys, now: Timestamp) -> Result<bool, StoreError> {
        let mut chain = match self.chain.take() {
            Some(chain) => chain,
            None => self.read(now).await?,
        };
        chain.forget(now);
        let audit = self.ports.store.access();
        let to = chain.last.as_ref().map_or(0, |last| last.to);
        let range = AuditRange {
            after: to,
            limit: SEGMENT_MAX,
            ..AuditRange::ALL
        };
        let new = audit.list_audit(&range).await?;
        let gaps = chain.next_gaps();
        let late = if gaps.is_empty() {
            Vec::new()
        } else {
            audit.find_audit(&gaps, LATE_MAX).await?
        };
        if new.is_empty() && late.is_empty() {
            self.chain = Some(chain);
            return Ok(false);
        }
        let more = new.len() == SEGMENT_MAX || late.len() == LATE_MAX;
        let seal = build(&chain, keys, new, late, now);
        if !audit.put_seal(&seal).await? {
            // Another node was faster: what it made is read with the next step.
            return Ok(true);
        }
        info!(
            head = %format!("{}:{}", seal.number, to_hex(&seal.mac)),
            entries = seal.count,
            "the audit log was sealed"
        );
        chain.take(seal);
        self.chain = Some(chain);
        Ok(more)
    }

    /// Drops what was kept long enough. Answers whether there may be more.
    async fn drop_old(&mut self, now: Timestamp) -> Result<bool, StoreError> {
        let uptime = self.ports.clock.uptime();
        if uptime < self.drop_next || self.ports.hold {
            return Ok(false);
        }
        let until = now.minus(self.ports.keep);
        let dropped = match self.ports.keys.get() {
            Some(keys) => self.drop_sealed(&keys, until, now).await?,
            // Segments wait for a key: nobody could say that they were dropped, and not deleted.
            None => self.ports.store.access().drop_unsealed(until).await? > 0,
        };
        if !dropped {
            self.drop_next = uptime + DROP_EVERY;
        }
        Ok(dropped)
    }

    /// Drops some of the oldest segments, if they are as they were sealed: afterwards nobody could see that they were not.
    async fn drop_sealed(
        &self,
        keys: &MasterKeys,
        until: Timestamp,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let audit = self.ports.store.access();
        let oldest = audit.list_seals(0, DROP_SEALS_MAX + 1).await?;
        let seals = Seal::to_drop(oldest, until);
        let Some(said) = drops::sign(keys.current(), &seals) else {
            return Ok(false);
        };
        match Check::new(audit, keys, None, now).oldest(&seals).await? {
            Err(wrong) => {
                error!(
                    segment = wrong.segment,
                    entry = wrong.entry,
                    why = wrong.why,
                    "the audit log is not as it was sealed, and none of it is dropped: see audit verify"
                );
                return Ok(false);
            }
            Ok(Some(missing)) => warn!(
                segment = missing.segment,
                key = missing.key,
                "a part of the audit log goes unchecked: it is sealed under a key that is not given"
            ),
            Ok(None) => {}
        }
        let last = said.segments.last;
        let dropped = audit.drop_sealed(&seals, &said).await?;
        if dropped {
            info!(
                segment = last,
                "the audit log up to here was kept long enough"
            );
        }
        Ok(dropped)
    }
}

/// The segment after the last.
fn build(
    chain: &Chain,
    keys: &MasterKeys,
    new: Vec<AuditEntry>,
    late: Vec<AuditEntry>,
    now: Timestamp,
) -> Seal {
    let (last, key) = (chain.last.as_ref(), keys.current());
    let from = last.map_or(1, |last| last.to + 1);
    let to = new.last().map_or(from - 1, |entry| entry.seq);
    let mut seal = Seal {
        number: last.map_or(1, |last| last.number + 1),
        from,
        to,
        sealed_at: now,
        gaps: Chain::gaps_between(from, &new),
        late: late.iter().map(|entry| entry.seq).collect(),
        count: (new.len() + late.len()) as u64,
        key: key.id().to_owned(),
        previous: last.map_or([0; 32], |last| last.mac),
        mac: [0; 32],
    };
    // Late ones have lower numbers than any of the others.
    let entries: Vec<AuditEntry> = late.into_iter().chain(new).collect();
    seal.mac = chain::code(key, &seal, &entries);
    seal
}

#[async_trait]
impl Duty for Sealing {
    fn name(&self) -> &'static str {
        "seal"
    }

    fn nudge(&self) -> &Nudge {
        &self.ports.nudge
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        if !self.is_ours() {
            // Whoever has the first shard seals; what it makes is read when this node is back.
            self.chain = None;
            return Ok(Wake::At(now.plus(limits::SLEEP_MAX)));
        }
        let Some(keys) = self.ports.keys.get() else {
            if !self.warned {
                warn!("the audit log is not sealed: there is no master key");
            }
            self.warned = true;
            if self.drop_old(now).await? {
                return Ok(Wake::Now);
            }
            return Ok(Wake::At(now.plus(limits::SLEEP_MAX)));
        };
        if self.seal(&keys, now).await? || self.drop_old(now).await? {
            return Ok(Wake::Now);
        }
        Ok(Wake::At(now.plus(EVERY)))
    }
}
