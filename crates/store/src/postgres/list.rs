//! Listing jobs, by keyset on the id: a page costs the same at the end of a million as at the start.

use model::{Job, JobId, JobState, TenantId};
use uuid::Uuid;

use super::calendars::read_jobs;
use super::fault::Done;
use super::rows::text;
use super::store::{PgStore, limit};
use crate::code::Code;
use crate::{JobFilter, Page};

/// States that have an index of their own.
const RARE: [JobState; 3] = [JobState::Paused, JobState::Invalid, JobState::Deleted];

impl PgStore {
    pub(super) async fn try_list_jobs(
        &self,
        tenant: TenantId,
        filter: &JobFilter,
        page: Page<JobId>,
    ) -> Done<Vec<Job>> {
        let wanted = |state: &JobState| {
            if filter.states.is_empty() {
                *state != JobState::Deleted
            } else {
                filter.states.contains(state)
            }
        };
        let states: Vec<JobState> = JobState::ALL.into_iter().filter(wanted).collect();
        let codes: Vec<i16> = states.iter().map(|state| state.code()).collect();
        let before = page.before.map_or(Uuid::max(), |before| before.0);
        let part = filter.q.as_ref().map(|part| part.to_ascii_lowercase());
        let part = part.as_deref().map(text);
        let (names, values): (Vec<_>, Vec<_>) = filter
            .labels
            .iter()
            .map(|(name, value)| (text(name), text(value)))
            .unzip();
        let sql = if !names.is_empty() {
            include_str!("sql/list_jobs_label.sql")
        } else if states.iter().all(|state| RARE.contains(state)) {
            include_str!("sql/list_jobs_rare.sql")
        } else {
            include_str!("sql/list_jobs.sql")
        };
        let conn = self.readers.get().await?;
        let count = limit(page.limit);
        let rows = conn
            .rows(
                sql,
                &[&tenant.0, &before, &codes, &part, &count, &names, &values],
            )
            .await?;
        let mut jobs = Vec::with_capacity(rows.len());
        for (_, job) in read_jobs(&conn, &rows).await? {
            match job {
                Ok(job) => jobs.push(job),
                // One row that cannot be read must not hide all others.
                Err(bad) => tracing::warn!(job = %bad.job, error = bad.detail, "unreadable job"),
            }
        }
        Ok(jobs)
    }
}
