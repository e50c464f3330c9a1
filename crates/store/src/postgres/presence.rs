//! Presences and leases: who may write as an engine.

use std::collections::BTreeMap;
use std::time::Duration;

use model::limits::{BEAT_EVERY, LEAD_MAX, PRESENCE_TTL};
use model::presence::LastBeat;
use model::shard::ShardSet;
use model::time::millis;
use model::{AttemptNo, BeatMark, Level, Parts, PresenceId, RunId, Shard, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use super::fault::Done;
use super::pool::Conn;
use super::rows::{maybe_word, moment, read_text, text, word};
use super::store::{PgStore, limit};
use crate::audit::Change;
use crate::{
    Beat, Epoch, HeldClaim, Leases, LowWater, NodeInfo, NodeStatus, Offset, Peer, Raised,
    StoreError,
};

pub(super) type Param<'a> = &'a (dyn tokio_postgres::types::ToSql + Sync);

/// Shards as a parameter.
pub(super) fn shards(set: &ShardSet) -> Vec<i16> {
    set.iter().map(|shard| i16::from(shard.0)).collect()
}

/// The same, nothing when all are meant.
pub(super) fn some_shards(set: &ShardSet) -> Option<Vec<i16>> {
    (!set.is_all()).then(|| shards(set))
}

pub(super) fn shard_of(code: i16) -> Shard {
    Shard(u8::try_from(code).unwrap_or(u8::MAX))
}

/// A connection that is forgotten unless it is taken out first.
struct GivenUp(Option<Conn>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        if let Some(conn) = self.0.take() {
            conn.forget();
        }
    }
}

impl PgStore {
    pub(super) async fn try_join(&self, node: &NodeInfo) -> Done<PresenceId> {
        let conn = self.pool.begin().await?;
        conn.row(include_str!("sql/level_lock.sql"), &[]).await?;
        let id = PresenceId(Uuid::now_v7());
        let NodeInfo {
            name,
            version,
            tables,
            parts,
            level,
            kinds: _,
        } = node;
        let (parts, level) = (i16::from(parts.code()), level_code(*level));
        let (now, uptime, ttl) = (self.now(), self.uptime(), millis(PRESENCE_TTL));
        let sql = include_str!("sql/join.sql");
        let said = [text(name), text(version), text(tables)];
        let kinds = node.kinds_text();
        let [name, version, tables] = &said;
        let low_water = LowWater::HIGHEST.at.as_millis();
        let joined: [Param<'_>; 11] = [
            &id.0, name, version, tables, &parts, &now, &uptime, &ttl, &level, &kinds, &low_water,
        ];
        // Only now: who joined before the lock is seen, and who joins after it sees this one.
        if conn.row(sql, &joined).await?.is_some() {
            conn.execute(include_str!("sql/join_zones.sql"), &[tables])
                .await?;
            conn.commit().await?;
            return Ok(id);
        }
        let level = conn.row(include_str!("sql/level.sql"), &[]).await?;
        let level = level.map_or(Ok(0), |row| row.try_get(0))?;
        Err(StoreError::too_old(read_level(level), node).into())
    }

    pub(super) async fn try_raise_level(&self, to: Level) -> Done<Raised> {
        let conn = self.clients.begin().await?;
        let stands = conn.row(include_str!("sql/level_lock.sql"), &[]).await?;
        let stands = stands.map_or(Ok(0), |row| row.try_get(0))?;
        if read_level(stands) >= to {
            return Ok(Raised::Done);
        }
        let change = Change::level_raised(to);
        let to = level_code(to);
        // Only now: who joined before the lock is seen, and who joins after it sees what is written here.
        let below = conn
            .row(include_str!("sql/level_below.sql"), &[&to])
            .await?;
        if let Some(row) = below {
            let node = node_info(&row, [0, 1, 2, 3, 4, 5])?;
            return Ok(Raised::Below(Box::new(node)));
        }
        conn.execute(include_str!("sql/raise_level.sql"), &[&to])
            .await?;
        self.audit(&conn, &[change]).await?;
        conn.commit().await?;
        Ok(Raised::Done)
    }

    /// A beat that nobody waits for any more, or that takes longer than it is good for, is given up together with its
    /// connection: whoever drives that may be gone, and the next beat is not to wait behind this one.
    pub(super) async fn beat_in_time(
        &self,
        presence: PresenceId,
        node_status: &NodeStatus,
    ) -> Done<Beat> {
        let mut given_up = GivenUp(Some(self.beats.get().await?));
        let Some(conn) = &given_up.0 else {
            return Err(StoreError::unavailable("no connection").into());
        };
        let beat =
            tokio::time::timeout(BEAT_EVERY, self.try_beat(conn, presence, node_status)).await;
        if beat.is_ok() {
            drop(given_up.0.take());
        }
        beat.map_err(StoreError::unavailable)?
    }

    /// Three statements under way at once; the time is read before the first has written anything, and when that is
    /// written: how long that takes, be it seconds, is known and casts no doubt on the clock.
    async fn try_beat(
        &self,
        conn: &Conn,
        presence: PresenceId,
        node_status: &NodeStatus,
    ) -> Done<Beat> {
        let beat = conn.prepare(include_str!("sql/beat.sql")).await?;
        let marks = conn.prepare(include_str!("sql/beat_marks.sql")).await?;
        let living = conn.prepare(include_str!("sql/beat_living.sql")).await?;
        let (now, uptime, ttl) = (self.now_micros(), self.uptime(), millis(PRESENCE_TTL));
        let (room, lateness) = (i64::from(node_status.room), i64::from(node_status.lateness));
        let ahead = node_status.offset.map(|offset| offset.ahead);
        let uncertainty = node_status.offset.map(|offset| offset.uncertainty);
        let low_water = node_status.low_water.map(|mark| mark.at.as_millis());
        let taken = node_status.low_water.map(|mark| i64::from(mark.taken));
        let heard: [Param<'_>; 12] = [
            &presence.0,
            &now,
            &uptime,
            &ttl,
            &node_status.schedules,
            &node_status.executes,
            &room,
            &lateness,
            &ahead,
            &uncertainty,
            &low_water,
            &taken,
        ];
        let (up, me): ([Param<'_>; 3], [Param<'_>; 1]) = ([&uptime, &now, &ttl], [&presence.0]);
        let (beat, marked, living) = tokio::try_join!(
            biased;
            conn.query_prepared(&beat, &heard),
            conn.query_prepared(&marks, &me),
            conn.query_prepared(&living, &up),
        )?;
        let before: i64 = beat.first().ok_or(StoreError::Fenced)?.try_get(0)?;
        let after = living.last().map_or(Ok(before), |row| row.try_get(15))?;
        // A clock that was stepped back meanwhile is believed as it is now.
        let before = before.min(after);
        let now_micros = before.midpoint(after);
        self.see(Timestamp::from_millis(now_micros / 1_000));
        let mut marks = Vec::with_capacity(marked.len());
        for row in &marked {
            marks.push((RunId(row.try_get(0)?), word(row, 1)?));
        }
        Ok(Beat {
            now_micros,
            took: Duration::from_micros(before.abs_diff(after)),
            marks,
            living: living.iter().map(peer).collect::<Done<_>>()?,
        })
    }

    pub(super) async fn try_lease(&self, id: PresenceId, wanted: &ShardSet) -> Done<Leases> {
        let conn = self.pool.begin().await?;
        let me = conn.row(include_str!("sql/lease_me.sql"), &[&id.0]).await?;
        let no: i32 = me.ok_or(StoreError::Fenced)?.try_get(0)?;
        let wanted = shards(wanted);
        conn.execute(include_str!("sql/lease_give_up.sql"), &[&no, &wanted])
            .await?;
        take(&conn, no, &wanted).await?;
        conn.execute(include_str!("sql/lease_count.sql"), &[&no])
            .await?;
        let mut epochs = BTreeMap::new();
        for row in conn.rows(include_str!("sql/leases.sql"), &[&no]).await? {
            let epoch: i64 = row.try_get(1)?;
            epochs.insert(shard_of(row.try_get(0)?), Epoch(epoch.unsigned_abs()));
        }
        let sql = include_str!("sql/lease_low_water.sql");
        let mark = conn.row(sql, &[&no]).await?.ok_or(StoreError::Fenced)?;
        let low_water = LowWater {
            at: moment(&mark, 0)?,
            taken: mark.try_get::<_, i32>(1)?.cast_unsigned(),
        };
        conn.commit().await?;
        Ok(Leases {
            presence: id,
            epochs,
            low_water,
        })
    }

    pub(super) async fn try_leave(&self, presence: PresenceId) -> Done<()> {
        let conn = self.pool.get().await?;
        let (now, seen) = (self.now(), self.seen());
        let lead = millis(LEAD_MAX + BEAT_EVERY);
        conn.execute(
            include_str!("sql/leave.sql"),
            &[&presence.0, &now, &seen, &lead],
        )
        .await?;
        Ok(())
    }

    pub(super) async fn try_fence(
        &self,
        by: PresenceId,
        lapsed: &[LastBeat],
    ) -> Done<Vec<PresenceId>> {
        let conn = self.pool.begin().await?;
        // By the word of one that lives until this is written. Of two that fence each other, one is chosen by the database to
        // begin again, and finds that it has ended.
        if self.hold(&conn, by).await?.is_none() {
            return Ok(Vec::new());
        }
        let (now, seen) = (self.now(), self.seen());
        let (ttl, lead) = (millis(PRESENCE_TTL), millis(LEAD_MAX + BEAT_EVERY));
        let ids: Vec<Uuid> = lapsed.iter().map(|(id, _)| id.0).collect();
        let marks: Vec<i64> = lapsed.iter().map(|(_, mark)| mark.0).collect();
        let rows = conn
            .rows(
                include_str!("sql/fence.sql"),
                &[&ids, &marks, &now, &seen, &ttl, &lead],
            )
            .await?;
        conn.commit().await?;
        let fenced = rows.iter().map(|row| row.try_get(0).map(PresenceId));
        Ok(fenced.collect::<Result<_, _>>()?)
    }

    pub(super) async fn try_claims(
        &self,
        presence: PresenceId,
        after: Option<RunId>,
        count: usize,
    ) -> Done<Vec<HeldClaim>> {
        let conn = self.pool.get().await?;
        let (after, count) = (after.map(|after| after.0), limit(count));
        let rows = conn
            .rows(
                include_str!("sql/claims.sql"),
                &[&presence.0, &after, &count],
            )
            .await?;
        let mut held = Vec::with_capacity(rows.len());
        for row in &rows {
            held.push(HeldClaim {
                run: RunId(row.try_get(0)?),
                attempt: AttemptNo(row.try_get::<_, i32>(1)?.cast_unsigned()),
                due_at: Timestamp::from_millis(row.try_get(2)?),
                mark: maybe_word(row, 3)?,
            });
        }
        Ok(held)
    }
}

fn level_code(Level(level): Level) -> i16 {
    i16::try_from(level).unwrap_or(i16::MAX)
}

fn read_level(level: i16) -> Level {
    Level(u16::try_from(level).unwrap_or_default())
}

/// What a node says of itself, from columns in the order of its fields.
fn node_info(
    row: &Row,
    [name, version, tables, parts, level, kinds]: [usize; 6],
) -> Done<NodeInfo> {
    let parts: i16 = row.try_get(parts)?;
    Ok(NodeInfo {
        name: read_text(row.try_get(name)?),
        version: read_text(row.try_get(version)?),
        tables: read_text(row.try_get(tables)?),
        parts: Parts::from_code(u8::try_from(parts).unwrap_or_default()),
        level: read_level(row.try_get(level)?),
        kinds: NodeInfo::read_kinds(row.try_get(kinds)?),
    })
}

/// One who lives, as `beat_living.sql` has it.
fn peer(row: &Row) -> Done<Peer> {
    let number = |index| row.try_get::<_, i64>(index);
    let offset = |ahead, uncertainty| Offset { ahead, uncertainty };
    let (ahead, uncertainty): (Option<i64>, Option<i64>) = (row.try_get(9)?, row.try_get(10)?);
    Ok(Peer {
        presence: PresenceId(row.try_get(0)?),
        node: node_info(row, [1, 2, 3, 4, 16, 17])?,
        node_status: NodeStatus {
            schedules: row.try_get(5)?,
            executes: row.try_get(6)?,
            room: u32::try_from(number(7)?).unwrap_or(u32::MAX),
            lateness: u32::try_from(number(8)?).unwrap_or(u32::MAX),
            offset: ahead.zip(uncertainty).map(|(by, about)| offset(by, about)),
            low_water: None,
        },
        joined_at: moment(row, 11)?,
        mark: BeatMark(number(12)?),
        beaten: Duration::from_millis(number(13)?.unsigned_abs()),
        shards: u16::try_from(number(14)?).unwrap_or(u16::MAX),
    })
}

/// Takes shards that nobody living has. Nearly always there are none: then nothing is locked.
async fn take(conn: &Conn, no: i32, wanted: &[i16]) -> Done<()> {
    let free = conn
        .rows(include_str!("sql/lease_free.sql"), &[&wanted])
        .await?;
    let free = free.iter().map(|row| row.try_get(0));
    let free: Vec<i16> = free.collect::<Result<_, _>>()?;
    if free.is_empty() {
        return Ok(());
    }
    // Whoever holds one by the time it is locked is seen by the statement that follows.
    conn.rows(include_str!("sql/lease_lock.sql"), &[&free])
        .await?;
    conn.execute(include_str!("sql/lease_take.sql"), &[&free, &no])
        .await?;
    Ok(())
}
