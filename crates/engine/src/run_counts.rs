//! What this node knows of runs a day: how many it has inserted for each tenant, and what tenants may have that have such a
//! quota. Fire and requests count here before they write; a duty says it to the store once a second and brings what the
//! others have counted.
//!
//! What always holds: a run is counted before it is written and taken out again if it was not inserted, so that a batch
//! cannot go over what this node knows. Nothing here is lost when a duty panics.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use model::runs_day::{Day, RunCount, RunQuota};
use model::{QuotaExceeded, TenantId};

use crate::lock;

/// A tenant that has had all its runs of the day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Over {
    pub exceeded: QuotaExceeded,
    pub name: String,
    /// Whether it was not announced today.
    pub is_new: bool,
}

#[derive(Debug, Default)]
struct Count {
    runs: u64,
    /// What the store has of it.
    written: u64,
}

#[derive(Debug, Default)]
struct State {
    own: BTreeMap<(Day, TenantId), Count>,
    quotas: BTreeMap<TenantId, RunQuota>,
    /// Of which day the others' counts are.
    known: Option<Day>,
    said: BTreeSet<(Day, TenantId)>,
}

#[derive(Debug, Default)]
pub(crate) struct RunCounts {
    state: Mutex<State>,
}

impl RunCounts {
    /// Counts a run that is about to be inserted, if the tenant may have it.
    pub(crate) fn begin(&self, tenant: TenantId, day: Day) -> Result<(), Over> {
        let mut state = lock(&self.state);
        let State {
            own,
            quotas,
            known,
            said,
        } = &mut *state;
        let count = own.entry((day, tenant)).or_default();
        // Most installations have none.
        let quota = if quotas.is_empty() {
            None
        } else {
            quotas.get(&tenant)
        };
        let known = known.unwrap_or(day);
        match quota.map(|quota| (quota, quota.admit(known, day, count.runs))) {
            None | Some((_, Ok(()))) => {
                count.runs += 1;
                Ok(())
            }
            Some((quota, Err(exceeded))) => Err(Over {
                exceeded,
                name: quota.name.to_string(),
                is_new: !said.contains(&(day, tenant)),
            }),
        }
    }

    /// Whether a tenant has had all its runs of a day.
    pub(crate) fn over(&self, tenant: TenantId, day: Day) -> Option<QuotaExceeded> {
        let state = lock(&self.state);
        let quota = state.quotas.get(&tenant)?;
        let own = state.own.get(&(day, tenant)).map_or(0, |count| count.runs);
        let known = state.known.unwrap_or(day);
        quota.admit(known, day, own).err()
    }

    /// A run that was counted was not inserted.
    pub(crate) fn take_out(&self, tenant: TenantId, day: Day) {
        let mut state = lock(&self.state);
        if let Some(count) = state.own.get_mut(&(day, tenant)) {
            count.runs = count.runs.saturating_sub(1);
        }
    }

    /// That the tenant has had all its runs of the day was announced.
    pub(crate) fn was_said(&self, tenant: TenantId, day: Day) {
        lock(&self.state).said.insert((day, tenant));
    }

    /// Counts that the store does not have yet.
    pub(crate) fn unwritten(&self, limit: usize) -> Vec<RunCount> {
        let state = lock(&self.state);
        let changed = state.own.iter().filter(|(_, it)| it.runs != it.written);
        let counts = changed.map(|((day, tenant), count)| RunCount {
            tenant: *tenant,
            day: *day,
            runs: count.runs,
        });
        counts.take(limit).collect()
    }

    /// The store has these counts, and answered with these quotas. Days that are over are forgotten.
    pub(crate) fn written(&self, counts: &[RunCount], quotas: Vec<RunQuota>, today: Day) {
        let mut state = lock(&self.state);
        for count in counts {
            if let Some(own) = state.own.get_mut(&(count.day, count.tenant)) {
                own.written = count.runs;
            }
        }
        state
            .own
            .retain(|(day, _), count| *day >= today || count.runs != count.written);
        state.said.retain(|(day, _)| *day >= today);
        state.quotas = quotas
            .into_iter()
            .map(|quota| (quota.tenant, quota))
            .collect();
        state.known = Some(today);
    }
}

#[cfg(test)]
mod tests {
    use model::TenantName;

    use super::*;

    const TENANT: TenantId = TenantId::DEFAULT;
    const TODAY: Day = Day(7);

    fn quota(limit: u64, others: u64) -> Vec<RunQuota> {
        vec![RunQuota {
            tenant: TENANT,
            name: TenantName::new("default").unwrap(),
            limit,
            others,
        }]
    }

    #[test]
    fn a_run_is_counted_before_it_is_written_and_taken_out_if_it_is_not() {
        let counts = RunCounts::default();
        counts.written(&[], quota(3, 1), TODAY);
        assert_eq!(counts.begin(TENANT, TODAY), Ok(()));
        assert_eq!(counts.begin(TENANT, TODAY), Ok(()));
        let over = counts.begin(TENANT, TODAY).unwrap_err();
        assert_eq!((over.exceeded.limit, over.exceeded.used), (3, 3));
        counts.take_out(TENANT, TODAY);
        assert_eq!(counts.begin(TENANT, TODAY), Ok(()));
    }

    #[test]
    fn what_has_changed_is_written_until_the_store_answers() {
        let counts = RunCounts::default();
        counts.begin(TENANT, TODAY).unwrap();
        let changed = counts.unwritten(10);
        assert_eq!(changed.len(), 1);
        assert_eq!(counts.unwritten(10), changed, "no answer came");
        counts.begin(TENANT, TODAY).unwrap();
        counts.written(&changed, Vec::new(), TODAY);
        assert_eq!(counts.unwritten(10)[0].runs, 2, "one more since");
        counts.written(&counts.unwritten(10), Vec::new(), Day(8));
        assert_eq!(lock(&counts.state).own.len(), 0, "the day is over");
    }

    #[test]
    fn a_tenant_is_named_once_a_day() {
        let counts = RunCounts::default();
        counts.written(&[], quota(0, 0), TODAY);
        let is_new = |day| counts.begin(TENANT, day).unwrap_err().is_new;
        assert!(is_new(TODAY));
        counts.was_said(TENANT, TODAY);
        assert!(!is_new(TODAY) && is_new(Day(8)));
    }
}
