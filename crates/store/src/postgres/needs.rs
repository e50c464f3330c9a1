//! What decisions need of history, read for all jobs of a call at once. It is read after what lives is known: a run that
//! ends meanwhile is found in one place or the other.

use std::collections::BTreeMap;

use model::view::{Needs, PAST_BACK, PAST_MAX, Past, Span};
use model::{JobId, Reason, RunId, RunState, Slot, TenantId, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use super::fault::Done;
use super::pool::Conn;
use super::rows::{maybe_word, moment, word};
use super::store::limit;
use super::views::Views;
use crate::code::read_stretch;

const DAY: i64 = 24 * 3_600 * 1_000;

fn start_of_day(at: Timestamp) -> Timestamp {
    let millis = at.as_millis();
    Timestamp::from_millis(millis - millis.rem_euclid(DAY))
}

fn least_at(at: Timestamp) -> Uuid {
    RunId::least_at(at).0
}

/// What ended under some names: whose it was, and how.
pub(super) async fn ended_named(
    conn: &Conn,
    names: &[Uuid],
) -> Done<BTreeMap<RunId, (TenantId, (RunState, Option<Reason>))>> {
    let mut ended = BTreeMap::new();
    if names.is_empty() {
        return Ok(ended);
    }
    let sql = include_str!("sql/named_ended.sql");
    for row in &conn.rows(sql, &[&names]).await? {
        let tenant = TenantId(row.try_get(3)?);
        let how = (word(row, 1)?, maybe_word(row, 2)?);
        ended.insert(RunId(row.try_get(0)?), (tenant, how));
    }
    Ok(ended)
}

impl Views {
    /// Reads what decisions need; a job may be named several times, with one name and one moment at most.
    pub async fn read_history(&mut self, conn: &Conn, needs: &[(JobId, Needs)]) -> Done<()> {
        let spans = needs.iter().filter_map(|(job, it)| Some((*job, it.ran?)));
        self.read_ran(conn, &spans.collect::<Vec<_>>()).await?;
        let skips = needs.iter().filter(|(_, it)| it.skips);
        let skips = skips.filter_map(|(job, it)| Some((*job, it.ran?.0)));
        self.read_skips(conn, &skips.collect::<Vec<_>>()).await?;
        let names = needs.iter().filter_map(|(_, it)| Some(it.named?.0));
        let ended = ended_named(conn, &names.collect::<Vec<_>>()).await?;
        for (job, needs) in needs {
            if let Some((_, how)) = needs.named.and_then(|id| ended.get(&id)) {
                self.view(*job).history.named = Some(*how);
            }
        }
        let past = needs.iter().filter_map(|(job, it)| Some((*job, it.past?)));
        self.read_past(conn, &past.collect::<Vec<_>>()).await
    }

    async fn read_ran(&mut self, conn: &Conn, spans: &[(JobId, Span)]) -> Done<()> {
        if spans.is_empty() {
            return Ok(());
        }
        let jobs: Vec<Uuid> = spans.iter().map(|(job, _)| job.0).collect();
        let bounds = spans.iter().map(|(_, (a, b))| (least_at(*a), least_at(*b)));
        let (first, end): (Vec<Uuid>, Vec<Uuid>) = bounds.unzip();
        let sql = include_str!("sql/ran.sql");
        for row in &conn.rows(sql, &[&jobs, &first, &end]).await? {
            let (job, run) = (JobId(row.try_get(0)?), RunId(row.try_get(1)?));
            self.view(job).history.ran.insert(Slot(run.at()));
        }
        Ok(())
    }

    /// Of records that begin before the moment, only the last can reach beyond it, and none beyond its day.
    async fn read_skips(&mut self, conn: &Conn, from: &[(JobId, Timestamp)]) -> Done<()> {
        if from.is_empty() {
            return Ok(());
        }
        let jobs: Vec<Uuid> = from.iter().map(|(job, _)| job.0).collect();
        let bounds = from.iter().map(|(_, at)| (*at, start_of_day(*at)));
        let bounds = bounds.map(|(first, day)| (least_at(first), least_at(day)));
        let (first, day): (Vec<Uuid>, Vec<Uuid>) = bounds.unzip();
        let sql = include_str!("sql/skip_records.sql");
        for row in &conn.rows(sql, &[&jobs, &first, &day]).await? {
            let (job, run) = (JobId(row.try_get(0)?), RunId(row.try_get(1)?));
            let slots = read_stretch(run, row.try_get(2)?, row.try_get(3)?);
            self.view(job).history.skips.insert(run, slots);
        }
        Ok(())
    }

    /// Runs that were under way at a moment and have ended since.
    pub(super) async fn read_past(
        &mut self,
        conn: &Conn,
        moments: &[(JobId, Timestamp)],
    ) -> Done<()> {
        for row in &past(conn, moments).await? {
            let past = Past {
                id: RunId(row.try_get(1)?),
                kind: word(row, 2)?,
                dispatched_at: moment(row, 3)?,
                settled_at: moment(row, 4)?,
            };
            let job = JobId(row.try_get(0)?);
            self.view(job).history.past.push(past);
        }
        Ok(())
    }
}

async fn past(conn: &Conn, moments: &[(JobId, Timestamp)]) -> Done<Vec<Row>> {
    let ids = |at: Timestamp| (least_at(at.minus(PAST_BACK)), least_at(at));
    let jobs: Vec<Uuid> = moments.iter().map(|(job, _)| job.0).collect();
    let bounds = moments.iter().map(|(_, at)| ids(*at));
    let (first, end): (Vec<Uuid>, Vec<Uuid>) = bounds.unzip();
    let at: Vec<i64> = moments.iter().map(|(_, at)| at.as_millis()).collect();
    // Bounds of the whole batch, so that days are left out that no job asks about.
    let (Some(least), Some(most)) = (first.iter().min(), end.iter().max()) else {
        return Ok(Vec::new());
    };
    let params: [super::put::Param<'_>; 7] =
        [&jobs, &first, &end, &at, least, most, &limit(PAST_MAX)];
    conn.rows(include_str!("sql/past.sql"), &params).await
}
