//! History: live and ended runs as one list, newest first, each tenant its own.

use model::{Reason, Run, RunId, RunState, TenantId, Verdict};

use super::{Kept, Subject, at, job, settlement};
use crate::{BoxError, Page, RunFilter};

const STRANGER: TenantId = TenantId(uuid::Uuid::from_u128(7));

impl Subject {
    /// A run in every state, of two jobs.
    async fn some_of_each(&self) -> Kept {
        let (first, second) = (self.put(job(1)?).await?, self.put(job(2)?).await?);
        for verdict in [
            Verdict::Succeed,
            Verdict::Bury(Reason::Refused),
            Verdict::RetryAt(at(999)),
        ] {
            for id in [first.id, second.id] {
                let run = self.claimed(id).await?;
                self.settle(settlement(&run, verdict)).await?;
            }
        }
        let run = self.ready(first.id).await?;
        self.store
            .cancel_run(TenantId::DEFAULT, run.id, at(1))
            .await?;
        self.claimed(first.id).await?;
        self.ready(second.id).await?;
        Ok(())
    }

    async fn list(&self, filter: &RunFilter, page: Page<RunId>) -> Result<Vec<Run>, BoxError> {
        Ok(self
            .store
            .list_runs(TenantId::DEFAULT, filter, page)
            .await?)
    }
}

const EVERYTHING: Page<RunId> = Page {
    before: None,
    limit: 100,
};

pub async fn runs_read_together_come_as_they_were_named(subject: Subject) -> Kept {
    subject.some_of_each().await?;
    let runs = subject.list(&RunFilter::default(), EVERYTHING).await?;
    let mut named: Vec<_> = runs.iter().map(|run| (TenantId::DEFAULT, run.id)).collect();
    let mut expected: Vec<_> = runs.iter().cloned().map(|run| Ok(Some(run))).collect();
    // Strangers find nothing, and a run may be named twice.
    for run in &runs {
        named.extend([(STRANGER, run.id), (TenantId::DEFAULT, run.id)]);
        expected.extend([Ok(None), Ok(Some(run.clone()))]);
    }
    named.push((TenantId::DEFAULT, RunId(uuid::Uuid::max())));
    expected.push(Ok(None));
    assert_eq!(subject.store.get_runs(&named).await?, expected);
    assert_eq!(subject.store.get_runs(&[]).await?, []);
    Ok(())
}

pub async fn live_and_ended_runs_are_one_list(subject: Subject) -> Kept {
    subject.some_of_each().await?;
    let runs = subject.list(&RunFilter::default(), EVERYTHING).await?;
    assert_eq!(runs.len(), 9);
    assert!(
        runs.iter().rev().is_sorted_by_key(|run| run.id),
        "newest first"
    );
    for run in runs {
        assert_eq!(subject.run(run.id).await?, run);
    }
    Ok(())
}

pub async fn run_pages_neither_repeat_nor_lose(subject: Subject) -> Kept {
    subject.some_of_each().await?;
    let live = RunFilter {
        states: vec![RunState::Ready, RunState::Dead],
        ..RunFilter::default()
    };
    for filter in [RunFilter::default(), live] {
        let whole = subject.list(&filter, EVERYTHING).await?;
        for limit in 1..=4 {
            let mut paged = Vec::new();
            let mut before = None;
            loop {
                let page = subject.list(&filter, Page { before, limit }).await?;
                assert!(page.len() <= limit);
                let Some(last) = page.last() else { break };
                before = Some(last.id);
                paged.extend(page);
            }
            assert_eq!(paged, whole, "{limit}");
        }
    }
    Ok(())
}

pub async fn runs_are_listed_by_job_and_by_state(subject: Subject) -> Kept {
    subject.some_of_each().await?;
    let all = subject.list(&RunFilter::default(), EVERYTHING).await?;
    let jobs = [None, Some(job(1)?.id), Some(job(2)?.id), Some(job(3)?.id)];
    let mut states: Vec<Vec<RunState>> = RunState::ALL.iter().map(|state| vec![*state]).collect();
    states.extend([
        vec![],
        vec![RunState::Succeeded, RunState::Retrying],
        RunState::ALL.to_vec(),
    ]);
    for job in jobs {
        for states in &states {
            let filter = RunFilter {
                job,
                states: states.clone(),
                ..RunFilter::default()
            };
            let fits = |run: &&Run| {
                job.is_none_or(|job| run.job == job)
                    && (states.is_empty() || states.contains(&run.state))
            };
            let expected: Vec<Run> = all.iter().filter(fits).cloned().collect();
            assert_eq!(
                subject.list(&filter, EVERYTHING).await?,
                expected,
                "{filter:?}"
            );
        }
    }
    Ok(())
}

pub async fn runs_are_listed_by_when_they_were_due(subject: Subject) -> Kept {
    subject.some_of_each().await?;
    let all = subject.list(&RunFilter::default(), EVERYTHING).await?;
    let mut moments: Vec<_> = all.iter().map(|run| Some(run.id.at())).collect();
    moments.extend([None, Some(at(0)), Some(at(1_000_000))]);
    let states = [
        vec![],
        vec![RunState::Dead],
        vec![RunState::Ready, RunState::Cancelled],
    ];
    for (from, to) in moments
        .iter()
        .flat_map(|a| moments.iter().map(move |b| (*a, *b)))
    {
        for (states, job) in states.iter().zip([None, None, Some(job(1)?.id)]) {
            let filter = RunFilter {
                job,
                states: states.clone(),
                from,
                to,
                ..RunFilter::default()
            };
            let fits = |run: &&Run| {
                job.is_none_or(|job| run.job == job)
                    && (states.is_empty() || states.contains(&run.state))
                    && from.is_none_or(|from| run.id.at() >= from)
                    && to.is_none_or(|to| run.id.at() < to)
            };
            let expected: Vec<Run> = all.iter().filter(fits).cloned().collect();
            let listed = subject.list(&filter, EVERYTHING).await?;
            assert_eq!(listed, expected, "{filter:?}");
            let rest = Page {
                before: all.get(2).map(|run| run.id),
                limit: 3,
            };
            let later = expected
                .into_iter()
                .filter(|run| Some(run.id) < rest.before);
            let expected: Vec<Run> = later.take(3).collect();
            assert_eq!(subject.list(&filter, rest).await?, expected, "{filter:?}");
        }
    }
    Ok(())
}

pub async fn a_tenant_reads_only_its_own_runs(subject: Subject) -> Kept {
    subject.some_of_each().await?;
    let Subject { store, .. } = &subject;
    assert_eq!(
        store
            .list_runs(STRANGER, &RunFilter::default(), EVERYTHING)
            .await?,
        []
    );
    for run in subject.list(&RunFilter::default(), EVERYTHING).await? {
        assert_eq!(store.get_run(STRANGER, run.id).await?, None);
        let filter = RunFilter {
            job: Some(run.job),
            states: vec![],
            ..RunFilter::default()
        };
        assert_eq!(store.list_runs(STRANGER, &filter, EVERYTHING).await?, []);
    }
    Ok(())
}
