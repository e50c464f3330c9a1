//! Presences and leases: who may write as an engine.
//!
//! A beat writes nothing: only one process has the file, so when each presence was last heard is kept
//! in memory, by the clock that only grows. Joins and ends are rows, and so are leases; all of them are
//! also known by heart, and read again after a rollback.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::presence::LastBeat;
use model::shard::ShardSet;
use model::{BeatMark, Level, Parts, PresenceId, Shard, Timestamp};
use rusqlite::{Connection, params};

use super::db::Db;
use super::fault::Done;
use super::store::SqliteStore;
use super::writer::By;
use crate::audit::Change;
use crate::{
    Beat, Epoch, Leases, LowWater, NodeInfo, NodeStatus, Peer, Raised, StoreError,
    silent_presence_end,
};

/// Every presence that lives, or has ended and may still have claims.
#[derive(Default)]
pub(super) struct Presences {
    known: BTreeMap<PresenceId, Known>,
    /// Numbers of ended presences that hold nothing any more, and never will again.
    clear: BTreeSet<i64>,
    /// How many shards each number holds.
    shards: BTreeMap<i64, u16>,
}

struct Known {
    no: i64,
    node: NodeInfo,
    joined_at: Timestamp,
    /// As of its last beat.
    node_status: NodeStatus,
    low_water: LowWater,
    ended_at: Option<Timestamp>,
    /// When its last beat was, by uptime, and its mark.
    beaten: Duration,
    mark: BeatMark,
    /// The latest moment that its beats were answered with.
    clock_read: Timestamp,
}

impl super::SqliteStore {
    pub(super) fn new_presence(&self) -> PresenceId {
        let millis = self.shared.clock.now().as_u64();
        let nanos = u32::try_from(millis % 1_000 * 1_000_000).unwrap_or(0);
        PresenceId(uuid::Uuid::new_v7(uuid::Timestamp::from_unix(
            uuid::NoContext,
            millis / 1_000,
            nanos,
        )))
    }
}

impl Presences {
    /// Joins and ends go back to what the rows say; when each was last heard stays.
    pub(super) fn learn(&mut self, conn: &Connection) -> Done<()> {
        let mut select = conn.prepare_cached(include_str!("sql/presences.sql"))?;
        let mut rows = select.query([])?;
        // Whole or not at all: a read that fails must not make anyone a stranger.
        let mut known = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let (no, id) = (row.get(0)?, PresenceId::from_bytes(row.get(1)?));
            let ended_at = row.get::<_, Option<i64>>(2)?.map(Timestamp::from_millis);
            let joined_at = Timestamp::from_millis(row.get(7)?);
            let heard = self.known.get(&id);
            let (node_status, beaten, mark) = heard.map_or_else(Default::default, |known| {
                (known.node_status, known.beaten, known.mark)
            });
            let clock_read = heard.map_or(joined_at, |known| known.clock_read);
            let kept = Timestamp::from_millis(row.get::<_, Option<i64>>(10)?.unwrap_or_default());
            let low_water = heard.map(|known| known.low_water);
            let low_water = low_water.unwrap_or(LowWater { at: kept, taken: 0 });
            let node = NodeInfo {
                name: row.get(3)?,
                version: row.get(4)?,
                tables: row.get(5)?,
                parts: Parts::from_code(row.get(6)?),
                level: Level(row.get(8)?),
                kinds: NodeInfo::read_kinds(&row.get::<_, String>(9)?),
            };
            known.insert(
                id,
                Known {
                    no,
                    node,
                    joined_at,
                    node_status,
                    low_water,
                    ended_at,
                    beaten,
                    mark,
                    clock_read,
                },
            );
        }
        self.known = known;
        Ok(())
    }

    pub(super) fn number(&self, id: PresenceId) -> Option<i64> {
        self.known.get(&id).map(|known| known.no)
    }

    /// The number of a presence that has not ended.
    pub(super) fn living(&self, id: PresenceId) -> Result<i64, StoreError> {
        let known = self.known.get(&id).filter(|known| known.ended_at.is_none());
        known.map(|known| known.no).ok_or(StoreError::Fenced)
    }

    /// The number behind a claim that `by` may settle: its own, or that of a presence that has ended.
    pub(super) fn settles(&self, by: PresenceId, claim: Option<PresenceId>) -> Option<i64> {
        let holder = self.known.get(&claim?)?;
        (claim == Some(by) || holder.ended_at.is_some()).then_some(holder.no)
    }

    /// One that lives and does not know a level.
    fn below(&self, level: Level) -> Option<NodeInfo> {
        let mut living = self.known.values().filter(|it| it.ended_at.is_none());
        let below = living.find(|it| it.node.level < level);
        below.map(|known| known.node.clone())
    }

    fn lives(&self, no: i64) -> bool {
        self.known
            .values()
            .any(|known| known.no == no && known.ended_at.is_none())
    }

    /// Hears a presence, and answers its number and everyone who lives.
    pub(super) fn beat(
        &mut self,
        id: PresenceId,
        node_status: &NodeStatus,
        (now, uptime): (Timestamp, Duration),
    ) -> Result<(i64, Vec<Peer>), StoreError> {
        let known = self
            .known
            .get_mut(&id)
            .filter(|known| known.ended_at.is_none());
        let known = known.ok_or(StoreError::Fenced)?;
        known.node_status = NodeStatus {
            low_water: None,
            ..*node_status
        };
        known.low_water = known.low_water.moved(node_status.low_water);
        known.beaten = uptime;
        known.mark = known.mark.next(uptime);
        known.clock_read = known.clock_read.max(now);
        let no = known.no;
        let known = self.known.iter();
        let living = known.filter(|(_, known)| known.ended_at.is_none());
        let peer = |(id, known): (&PresenceId, &Known)| Peer {
            presence: *id,
            node: known.node.clone(),
            node_status: known.node_status,
            joined_at: known.joined_at,
            mark: known.mark,
            beaten: uptime.saturating_sub(known.beaten),
            shards: self.shards.get(&known.no).copied().unwrap_or(0),
        };
        Ok((no, living.map(peer).collect()))
    }

    /// The low-water mark of a lease that its holder does not live to keep: the earliest moment if it is not known.
    fn mark_of(&self, lease: Lease) -> Timestamp {
        match lease.holder {
            Some(no) => self.last_low_water(no),
            None => lease.low_water,
        }
    }

    /// Where the mark of a presence is.
    fn last_low_water(&self, no: i64) -> Timestamp {
        let holder = self.known.values().find(|known| known.no == no);
        holder.map_or(Timestamp::MIN, |known| known.low_water.at)
    }

    fn low_water_mut(&mut self, id: PresenceId) -> Result<&mut LowWater, StoreError> {
        let known = self.known.get_mut(&id);
        known.map(|it| &mut it.low_water).ok_or(StoreError::Fenced)
    }

    /// Whether somebody lives whose tables of time zones are not these.
    pub(super) fn has_other_tables(&self, tables: &str) -> bool {
        let mut living = self.known.values().filter(|it| it.ended_at.is_none());
        living.any(|it| it.node.tables != tables)
    }

    /// Ends those whose last beat is still the one that is named. Compared and ended under one lock: no beat can come
    /// between.
    fn end_lapsed(
        &mut self,
        by: PresenceId,
        lapsed: &[LastBeat],
        ended_at: impl Fn(Timestamp) -> Timestamp,
    ) -> Vec<(PresenceId, i64, Timestamp)> {
        let mut ended = Vec::new();
        if self.living(by).is_err() {
            return ended;
        }
        for (id, mark) in lapsed {
            let known = self.known.get_mut(id);
            let silent = known.filter(|known| known.ended_at.is_none() && known.mark == *mark);
            if let Some(known) = silent {
                let at = ended_at(known.clock_read);
                known.ended_at = Some(at);
                ended.push((*id, known.no, at));
            }
        }
        ended
    }

    fn joined(
        &mut self,
        id: PresenceId,
        no: i64,
        node: &NodeInfo,
        (joined_at, uptime): (Timestamp, Duration),
    ) {
        let known = Known {
            no,
            node: node.clone(),
            joined_at,
            node_status: NodeStatus::default(),
            low_water: LowWater::HIGHEST,
            ended_at: None,
            beaten: uptime,
            mark: BeatMark::at(uptime),
            clock_read: joined_at,
        };
        self.known.insert(id, known);
    }

    /// Who holds how many shards.
    pub(super) fn count(&mut self, leases: &LeaseTable) {
        self.shards.clear();
        for holder in leases.0.values().filter_map(|lease| lease.holder) {
            *self.shards.entry(holder).or_default() += 1;
        }
    }

    fn end(&mut self, id: PresenceId, at: Timestamp) -> Option<i64> {
        let known = self.known.get_mut(&id)?;
        known.ended_at.get_or_insert(at);
        Some(known.no)
    }

    pub(super) fn is_clear(&self, no: i64) -> bool {
        self.clear.contains(&no)
    }

    /// Ended presences that were seen to hold nothing.
    pub(super) fn set_clear(&mut self, numbers: impl IntoIterator<Item = i64>) {
        self.clear.extend(numbers);
    }

    /// Presences that can be forgotten.
    pub(super) fn forgettable(&self) -> Vec<(PresenceId, i64)> {
        let over = |known: &Known| known.ended_at.is_some() && self.clear.contains(&known.no);
        self.known
            .iter()
            .filter(|(_, known)| over(known))
            .map(|(id, known)| (*id, known.no))
            .collect()
    }

    pub(super) fn forget(&mut self, id: PresenceId) {
        if let Some(known) = self.known.remove(&id) {
            self.clear.remove(&known.no);
        }
    }
}

/// Every shard's lease.
#[derive(Default)]
pub(super) struct LeaseTable(BTreeMap<Shard, Lease>);

#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Lease {
    holder: Option<i64>,
    epoch: u64,
    /// The low-water mark of one that was given up; of another it is its holder's.
    low_water: Timestamp,
}

impl LeaseTable {
    pub(super) fn read(conn: &Connection) -> Done<Self> {
        let mut select = conn.prepare_cached(include_str!("sql/leases.sql"))?;
        let leases = select.query_map([], |row| {
            let epoch = row.get::<_, i64>(2)?.unsigned_abs();
            let lease = Lease {
                holder: row.get(1)?,
                epoch,
                low_water: Timestamp::from_millis(row.get(3)?),
            };
            Ok((Shard(row.get(0)?), lease))
        })?;
        Ok(Self(leases.collect::<rusqlite::Result<_>>()?))
    }

    /// Whether a presence still has the shard under the epoch it was given.
    pub(super) fn holds(&self, no: i64, leases: &Leases, shard: Shard) -> bool {
        self.0.get(&shard).is_some_and(|lease| {
            lease.holder == Some(no) && leases.epoch(shard) == Some(Epoch(lease.epoch))
        })
    }
}

impl Db {
    pub(super) fn join(&mut self, id: PresenceId, node: &NodeInfo) -> Done<PresenceId> {
        let now = self.shared.clock.now();
        let level = self.level()?;
        if node.level < level {
            return Err(StoreError::too_old(level, node).into());
        }
        self.conn
            .prepare_cached(include_str!("sql/join.sql"))?
            .execute(params![
                id.as_bytes(),
                node.name,
                node.version,
                node.tables,
                node.parts.code(),
                node.level.0,
                node.kinds_text(),
                now.as_millis()
            ])?;
        let no = self.conn.last_insert_rowid();
        if self.shared.presences().has_other_tables(&node.tables) {
            self.conn
                .prepare_cached(include_str!("sql/join_zones.sql"))?
                .execute([])?;
        }
        self.shared
            .presences()
            .joined(id, no, node, (now, self.shared.clock.uptime()));
        Ok(id)
    }

    fn level(&self) -> Done<Level> {
        let mut select = self.conn.prepare_cached(include_str!("sql/level.sql"))?;
        Ok(Level(select.query_row([], |row| row.get(0))?))
    }

    pub(super) fn raise_level(&mut self, to: Level) -> Done<Raised> {
        let below = if self.level()? < to {
            self.shared.presences().below(to)
        } else {
            None
        };
        if let Some(node) = below {
            return Ok(Raised::Below(Box::new(node)));
        }
        if self.level()? < to {
            let sql = include_str!("sql/raise_level.sql");
            self.conn.prepare_cached(sql)?.execute([to.0])?;
            self.audit(&Change::level_raised(to))?;
        }
        Ok(Raised::Done)
    }

    pub(super) fn lease(&mut self, id: PresenceId, wanted: &ShardSet) -> Done<Leases> {
        let mut presences = self.shared.presences();
        let no = presences.living(id)?;
        let kept = presences.low_water_mut(id)?.at;
        let mut save = self.conn.prepare_cached(include_str!("sql/lease.sql"))?;
        let (mut epochs, mut lowest) = (BTreeMap::new(), None);
        for shard in Shard::all() {
            let before = self.leases.0.get(&shard).copied().unwrap_or_default();
            let ours = before.holder == Some(no);
            let free = before.holder.is_none_or(|holder| !presences.lives(holder));
            let after = match (wanted.contains(shard), ours) {
                (true, false) if free => {
                    let mark = presences.mark_of(before);
                    lowest = Some(lowest.unwrap_or(mark).min(mark));
                    Lease {
                        holder: Some(no),
                        epoch: before.epoch + 1,
                        low_water: Timestamp::MIN,
                    }
                }
                (false, true) => Lease {
                    holder: None,
                    low_water: kept,
                    ..before
                },
                (true | false, _) => before,
            };
            if after != before {
                let epoch = i64::try_from(after.epoch).unwrap_or(i64::MAX);
                let mark = after.low_water.as_millis();
                save.execute(params![shard.0, after.holder, epoch, mark])?;
                self.leases.0.insert(shard, after);
            }
            if after.holder == Some(no) {
                epochs.insert(shard, Epoch(after.epoch));
            }
        }
        let low_water = presences.low_water_mut(id)?;
        if let Some(lowest) = lowest {
            *low_water = low_water.lowered(lowest);
        }
        let low_water = *low_water;
        presences.count(&self.leases);
        Ok(Leases {
            presence: id,
            epochs,
            low_water,
        })
    }

    /// Hears a presence once ends that were on their way are written, or taken back.
    pub(super) fn beat(
        &mut self,
        id: PresenceId,
        node_status: &NodeStatus,
        now: Timestamp,
    ) -> Done<(i64, Vec<Peer>)> {
        let moment = (now, self.shared.clock.uptime());
        Ok(self.shared.presences().beat(id, node_status, moment)?)
    }

    /// Ends a presence. Its leases need no write: a holder that has ended holds nothing.
    pub(super) fn leave(&mut self, id: PresenceId) -> Done<()> {
        let ended_at = self.shared.presence_end();
        let ended = self.shared.presences().end(id, ended_at);
        self.write_ends(ended.map(|no| (no, ended_at)).into_iter())
    }

    pub(super) fn fence(&mut self, by: PresenceId, lapsed: &[LastBeat]) -> Done<Vec<PresenceId>> {
        let now = self.shared.see();
        let ended_at = |clock_read| silent_presence_end(now, self.shared.seen(), clock_read);
        let lapsed = self.shared.presences().end_lapsed(by, lapsed, ended_at);
        self.write_ends(lapsed.iter().map(|(_, no, at)| (*no, *at)))?;
        Ok(lapsed.into_iter().map(|(id, _, _)| id).collect())
    }

    /// They have ended in memory already, so that no beat of theirs can succeed from then on; if this
    /// write fails, the rollback brings them back.
    fn write_ends(&mut self, ends: impl Iterator<Item = (i64, Timestamp)>) -> Done<()> {
        let mut end = self
            .conn
            .prepare_cached(include_str!("sql/end_presence.sql"))?;
        let presences = self.shared.presences();
        for (no, at) in ends {
            let low_water = presences.last_low_water(no).as_millis();
            end.execute(params![no, at.as_millis(), low_water])?;
        }
        Ok(())
    }
}

impl SqliteStore {
    /// Shows that a presence lives, and brings what its holder should know.
    pub(super) async fn beat_now(
        &self,
        presence: PresenceId,
        node_status: &NodeStatus,
    ) -> Result<Beat, StoreError> {
        let shared = self.shared.clone();
        let now = shared.see();
        let heard = {
            let mut presences = shared.presences();
            let moment = (now, shared.clock.uptime());
            presences.beat(presence, node_status, moment)
        };
        let (no, living) = match heard {
            Ok(heard) => heard,
            // An end is known before it is written. It is answered by the commit, or not at all.
            Err(_) => {
                let status = *node_status;
                self.write(By::Engine, 1, move |db| db.beat(presence, &status, now))
                    .await?
            }
        };
        let marks = move |conn: &_| super::plan::beat_marks(conn, no);
        let marks = self.beats.call(marks).await?;
        Ok(Beat {
            now_micros: shared.clock.now_micros(),
            took: Duration::ZERO,
            marks,
            living,
        })
    }
}
