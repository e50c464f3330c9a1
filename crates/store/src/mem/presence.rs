//! Presences and leases: who may write as an engine, and what is left when it may no more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use model::presence::LastBeat;
use model::shard::ShardSet;
use model::{BeatMark, Level, PresenceId, RunId, Timestamp};

use super::state::{Lease, Presence, State};
use crate::audit::Change;
use crate::types::doubted;
use crate::{
    Beat, Epoch, HeldClaim, Hint, Leases, LowWater, NodeInfo, NodeStatus, Orphan, Peer, Raised,
    StoreError, presence_end, silent_presence_end,
};

/// Hints that wait for one presence; more are dropped.
const HINTS_MAX: usize = 10_000;

impl State {
    /// Presences are numbered rather than random, so that a seed gives the same story twice.
    pub(super) fn join(
        &mut self,
        node: &NodeInfo,
        now: Timestamp,
        uptime: Duration,
    ) -> Result<PresenceId, StoreError> {
        if node.level < self.level {
            return Err(StoreError::too_old(self.level, node));
        }
        let mut number = [0; 10];
        for (to, from) in number[2..]
            .iter_mut()
            .zip((self.presences.len() as u64).to_be_bytes())
        {
            *to = from;
        }
        let id = PresenceId::new(now, number);
        if self.has_other_tables(&node.tables) {
            for digest in self.zones.values_mut() {
                *digest = doubted(*digest);
            }
        }
        let presence = Presence {
            node: node.clone(),
            node_status: NodeStatus::default(),
            low_water: LowWater::HIGHEST,
            joined_at: now,
            hints: Vec::new(),
            beaten: uptime,
            mark: BeatMark::at(uptime),
            clock_read: now,
            ended_at: None,
        };
        self.presences.insert(id, presence);
        Ok(id)
    }

    /// Whether somebody lives whose tables of time zones are not these.
    pub(super) fn has_other_tables(&self, tables: &str) -> bool {
        let mut living = self.presences.values().filter(|it| it.ended_at.is_none());
        living.any(|it| it.node.tables != tables)
    }

    pub(super) fn raise_level(&mut self, to: Level) -> Raised {
        let mut living = self.presences.values().filter(|it| it.ended_at.is_none());
        let below = living.find(|it| it.node.level < to && self.level < to);
        match below {
            Some(presence) => Raised::Below(Box::new(presence.node.clone())),
            None => {
                if self.level < to {
                    self.level = to;
                    self.audit(Change::level_raised(to));
                }
                Raised::Done
            }
        }
    }

    pub(super) fn beat(
        &mut self,
        id: PresenceId,
        node_status: &NodeStatus,
        now_micros: i64,
        uptime: Duration,
    ) -> Result<Beat, StoreError> {
        let presence = self
            .presences
            .get_mut(&id)
            .filter(|presence| presence.ended_at.is_none());
        let presence = presence.ok_or(StoreError::Fenced)?;
        presence.node_status = NodeStatus {
            low_water: None,
            ..*node_status
        };
        presence.low_water = presence.low_water.moved(node_status.low_water);
        presence.beaten = uptime;
        presence.mark = presence.mark.next(uptime);
        let now = Timestamp::from_millis(now_micros.div_euclid(1_000));
        presence.clock_read = presence.clock_read.max(now);
        let held = self.live.runs.values().filter(|run| run.claim == Some(id));
        let marks = held.filter_map(|run| Some((run.id, run.mark?))).collect();
        let living = self
            .presences
            .iter()
            .filter(|(_, presence)| presence.ended_at.is_none());
        let peer = |(id, presence): (&PresenceId, &Presence)| Peer {
            presence: *id,
            node: presence.node.clone(),
            node_status: presence.node_status,
            joined_at: presence.joined_at,
            mark: presence.mark,
            beaten: uptime.saturating_sub(presence.beaten),
            shards: self.shards_of(*id),
        };
        Ok(Beat {
            now_micros,
            took: Duration::ZERO,
            marks,
            living: living.map(peer).collect(),
        })
    }

    fn shards_of(&self, id: PresenceId) -> u16 {
        let held = self
            .leases
            .values()
            .filter(|lease| lease.holder == Some(id));
        held.count() as u16
    }

    /// Everyone hears it; whoever said it knows it already, and looking twice harms nobody.
    pub(super) fn hint(&mut self, hints: &[Hint]) {
        for presence in self.presences.values_mut() {
            if presence.ended_at.is_none() && presence.hints.len() < HINTS_MAX {
                presence.hints.extend_from_slice(hints);
            }
        }
    }

    pub(super) fn hints(&mut self, id: PresenceId) -> Result<Vec<Hint>, StoreError> {
        let presence = self.presences.get_mut(&id);
        let presence = presence.filter(|presence| presence.ended_at.is_none());
        Ok(std::mem::take(
            &mut presence.ok_or(StoreError::Fenced)?.hints,
        ))
    }

    pub(super) fn lease(
        &mut self,
        id: PresenceId,
        wanted: &ShardSet,
    ) -> Result<Leases, StoreError> {
        let before = self.living(id)?.low_water;
        for (shard, lease) in &mut self.leases {
            if lease.holder == Some(id) && !wanted.contains(*shard) {
                (lease.holder, lease.low_water) = (None, before.at);
            }
        }
        let mut lowest = None;
        for shard in wanted.iter() {
            let lease = self.leases.entry(shard).or_insert(Lease {
                holder: None,
                epoch: Epoch(0),
                low_water: Timestamp::MIN,
            });
            let holder = lease.holder.and_then(|holder| self.presences.get(&holder));
            if holder.is_none_or(|holder| holder.ended_at.is_some()) {
                let mark = holder.map_or(lease.low_water, |holder| holder.low_water.at);
                lowest = Some(lowest.unwrap_or(mark).min(mark));
                *lease = Lease {
                    holder: Some(id),
                    epoch: Epoch(lease.epoch.0 + 1),
                    low_water: Timestamp::MIN,
                };
            }
        }
        let low_water = lowest.map_or(before, |lowest| before.lowered(lowest));
        if let Some(presence) = self.presences.get_mut(&id) {
            presence.low_water = low_water;
        }
        let held = self
            .leases
            .iter()
            .filter(|(_, lease)| lease.holder == Some(id));
        let epochs: BTreeMap<_, _> = held.map(|(shard, lease)| (*shard, lease.epoch)).collect();
        Ok(Leases {
            presence: id,
            epochs,
            low_water,
        })
    }

    /// Ends a presence. Its leases need no write: a holder that has ended holds nothing.
    pub(super) fn end(&mut self, id: PresenceId, now: Timestamp) {
        let ended_at = presence_end(now, self.seen);
        if let Some(presence) = self.presences.get_mut(&id) {
            presence.ended_at.get_or_insert(ended_at);
        }
    }

    pub(super) fn end_all_presences(&mut self, now: Timestamp) {
        let ended_at = presence_end(now, self.seen);
        for presence in self.presences.values_mut() {
            presence.ended_at.get_or_insert(ended_at);
        }
    }

    pub(super) fn fence(
        &mut self,
        by: PresenceId,
        lapsed: &[LastBeat],
        now: Timestamp,
    ) -> Vec<PresenceId> {
        let mut fenced = Vec::new();
        if self.living(by).is_err() {
            return fenced;
        }
        for (id, mark) in lapsed {
            let presence = self.presences.get_mut(id);
            let silent = presence.filter(|it| it.ended_at.is_none() && it.mark == *mark);
            if let Some(presence) = silent {
                presence.ended_at = Some(silent_presence_end(now, self.seen, presence.clock_read));
                fenced.push(*id);
            }
        }
        fenced
    }

    pub(super) fn orphans(&self, shards: &ShardSet, limit: usize) -> Vec<Orphan> {
        let ours = self
            .live
            .runs
            .values()
            .filter(|run| shards.contains(run.shard()));
        let orphans = ours.filter_map(|run| {
            let holder = self.presences.get(&run.claim?)?;
            let ended_at = holder.ended_at?;
            let job = self.jobs.get(&run.job)?.without_large_payload();
            Some(Orphan {
                run: run.clone().without_large_payload(),
                job,
                ended_at,
                node: Arc::from(holder.node.name.as_str()),
            })
        });
        orphans.take(limit).collect()
    }

    pub(super) fn claims(
        &self,
        presence: PresenceId,
        after: Option<RunId>,
        limit: usize,
    ) -> Vec<HeldClaim> {
        let runs = self.live.runs.values();
        let held = runs.filter(|run| run.claim == Some(presence) && Some(run.id) > after);
        let claims = held.map(|run| HeldClaim {
            run: run.id,
            attempt: run.attempt,
            due_at: run.due_at,
            mark: run.mark,
        });
        claims.take(limit).collect()
    }
}
