//! Plan: what is due, in order and in pages, and nothing else.

use std::sync::Arc;
use std::time::Duration;

use model::limits::PLAN_STEP;
use model::schedule::{Kind, Schedule};
use model::shard::ShardSet;
use model::{
    Definition, Job, JobState, Lane, Overlap, RunId, RunState, Shard, Slot, Timestamp, Verdict,
};

use super::{Kept, Subject, at, every, job, job_with, once, settlement, slot, someone};
use crate::{BoxError, DueCursor, DueOf, DueRun, Fired, RunsOfChange, doc};

impl Subject {
    /// Everything planned up to a moment, read in pages of `limit`.
    pub(super) async fn due(
        &self,
        shards: &ShardSet,
        up_to: Timestamp,
        limit: usize,
    ) -> Result<Vec<Arc<Job>>, BoxError> {
        self.due_after(None, shards, up_to, limit).await
    }

    async fn due_after(
        &self,
        mut after: Option<DueCursor>,
        shards: &ShardSet,
        up_to: Timestamp,
        limit: usize,
    ) -> Result<Vec<Arc<Job>>, BoxError> {
        let mut jobs = Vec::new();
        loop {
            let page = self.store.due_jobs(shards, up_to, after, limit).await?;
            assert!(page.jobs.len() <= limit && page.unreadable.is_empty());
            let order = page.jobs.iter().map(|job| (job.next_due_at(), job.id));
            assert!(order.is_sorted(), "{page:?}");
            jobs.extend(page.jobs);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(jobs),
            }
        }
    }

    pub(super) async fn due_run_ids(&self, up_to: Timestamp) -> Result<Vec<RunId>, BoxError> {
        let due = self
            .store
            .due_runs(&ShardSet::ALL, up_to, None, 100)
            .await?;
        Ok(due.iter().map(|due| due.run).collect())
    }
}

pub async fn due_jobs_come_in_the_order_they_are_due(subject: Subject) -> Kept {
    for (number, secs) in [(1, 300), (2, 100), (3, 200), (4, 100), (5, 301)] {
        subject.put(once(number, secs)?).await?;
    }
    let due = subject.due(&ShardSet::ALL, at(300), 100).await?;
    let order: Vec<_> = due.iter().map(|job| (job.next_due_at(), job.id)).collect();
    assert_eq!(order.len(), 4, "what is due exactly then is among them");
    assert!(order.is_sorted(), "{order:?}");
    Ok(())
}

pub async fn due_pages_neither_repeat_nor_lose(subject: Subject) -> Kept {
    for number in 0..7 {
        subject
            .put(once(number, 100 + i64::from(number / 4))?)
            .await?;
    }
    let whole = subject.due(&ShardSet::ALL, at(200), 100).await?;
    assert_eq!(whole.len(), 7);
    for limit in 1..=8 {
        let mut paged = subject.due(&ShardSet::ALL, at(200), limit).await?;
        paged.sort_by_key(|job| (job.next_due_at(), job.id));
        assert_eq!(paged, whole, "{limit}");
    }
    Ok(())
}

pub async fn due_pages_of_some_shards_neither_repeat_nor_lose(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let mut all: Vec<Arc<Job>> = Vec::new();
    for number in 0..120_u8 {
        let wait = match i64::from(number) {
            // Some at one moment, some a few milliseconds apart, some in other steps, some far away.
            ..30 => 100_000,
            near @ 30..60 => 100_000 + near,
            near @ 60..90 => 100_000 + near * 40,
            far => 100_000 + far * 3_000,
        };
        let slot = Slot(Timestamp::from_millis(wait));
        let one = job_with(number, |def| def.schedule = Schedule::from(slot))?;
        all.push(subject.put(one).await?);
    }
    let order = |job: &Arc<Job>| (job.next_due_at(), job.id);
    all.sort_by_key(order);
    let steps = |job: &Arc<Job>| {
        let due_at = job.next_due_at().map_or(0, Timestamp::as_millis);
        due_at / PLAN_STEP.as_millis() as i64
    };
    let first = all.first().ok_or("a job")?.shard();
    let sets: [ShardSet; 5] = [
        ShardSet::ALL,
        [first].into_iter().collect(),
        Shard::all().skip(7).step_by(23).collect(),
        Shard::all().take(64).collect(),
        Shard::all().skip(100).collect(),
    ];
    let moments = [99_999, 100_000, 100_031, 102_500, 130_000, 460_000].map(Timestamp::from_millis);
    for shards in &sets {
        for (later_than, up_to, limit) in moments.iter().flat_map(|from| {
            let windows = moments.iter().map(|to| (*from, *to));
            windows.flat_map(|(from, to)| [1, 7, 100].map(|limit| (from, to, limit)))
        }) {
            let due_then = |job: &&Arc<Job>| {
                let due_at = job.next_due_at();
                shards.contains(job.shard()) && due_at > Some(later_than) && due_at <= Some(up_to)
            };
            let expected: Vec<_> = all.iter().filter(due_then).cloned().collect();
            let begin = Some(DueCursor::later_than(later_than));
            let mut found = subject.due_after(begin, shards, up_to, limit).await?;
            assert!(
                found.is_sorted_by_key(steps),
                "{later_than} {up_to} {limit}"
            );
            found.sort_by_key(order);
            assert_eq!(found, expected, "{later_than} {up_to} {limit}");
            let from = later_than.plus(Duration::from_millis(1));
            if subject.reopen.is_none() && from <= up_to {
                let oldest = store.oldest_due(shards, from, up_to).await?;
                assert_eq!(oldest, expected.first().and_then(|job| job.next_due_at()));
            }
        }
    }
    Ok(())
}

pub async fn only_active_jobs_are_planned(subject: Subject) -> Kept {
    let active = subject.put(job(1)?).await?;
    let paused = subject.put(job(2)?).await?;
    let gone = subject.put(job(3)?).await?;
    let finished = subject.put(once(4, 60)?).await?;
    subject
        .change(
            &paused,
            paused.paused(at(1), None, &someone()),
            RunsOfChange::Keep,
        )
        .await?;
    subject
        .change(&gone, gone.deleted(at(1), &someone()), RunsOfChange::Keep)
        .await?;
    subject.claimed(finished.id).await?;
    assert_eq!(subject.due(&ShardSet::ALL, at(9_999), 100).await?, [active]);
    Ok(())
}

pub async fn only_jobs_of_the_given_shards_are_planned(subject: Subject) -> Kept {
    let mut jobs = Vec::new();
    for number in 1..=8 {
        jobs.push(subject.put(job(number)?).await?);
    }
    let shard = jobs.first().ok_or("a job")?.shard();
    let one: ShardSet = [shard].into_iter().collect();
    let others: ShardSet = Shard::all().filter(|other| *other != shard).collect();
    let here = jobs.iter().filter(|job| job.shard() == shard).count();
    assert_eq!(subject.due(&one, at(60), 3).await?.len(), here);
    assert_eq!(
        subject.due(&others, at(60), 3).await?.len(),
        jobs.len() - here
    );
    assert_eq!(subject.due(&ShardSet::default(), at(60), 3).await?.len(), 0);
    Ok(())
}

pub async fn spread_is_part_of_when_a_job_is_due(subject: Subject) -> Kept {
    let spread = Duration::from_secs(59);
    let job = subject.put(job_with(1, |def| def.spread = spread)?).await?;
    let due_at = job.next_due_at().ok_or("a slot")?;
    assert!(due_at > at(60), "the hash of this job is not 0");
    let just_before = due_at.minus(Duration::from_millis(1));
    assert_eq!(subject.due(&ShardSet::ALL, just_before, 9).await?, []);
    assert_eq!(subject.due(&ShardSet::ALL, due_at, 9).await?, [job]);
    Ok(())
}

pub async fn due_runs_are_those_that_anyone_may_claim(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let queued = subject
        .put(job_with(2, |def| def.overlap = Overlap::QueueOne)?)
        .await?;
    let ready = subject.ready(job.id).await?;
    let held = subject.claimed(job.id).await?;
    let retried = subject.claimed(job.id).await?;
    subject
        .settle(settlement(&retried, Verdict::RetryAt(at(400))))
        .await?;
    subject.claimed(queued.id).await?;
    let waiting = subject.fire(queued.id, false).await?;
    assert!(matches!(waiting, Fired::Waiting(_)), "{waiting:?}");
    let due = subject
        .store
        .due_runs(&ShardSet::ALL, at(400), None, 9)
        .await?;
    let expected = [
        DueRun {
            run: ready.id,
            tenant: job.tenant,
            job: job.id,
            due_at: at(60),
            state: RunState::Ready,
        },
        DueRun {
            run: retried.id,
            tenant: job.tenant,
            job: job.id,
            due_at: at(400),
            state: RunState::Retrying,
        },
    ];
    assert_eq!(due, expected);
    assert_eq!(subject.due_run_ids(at(399)).await?, [ready.id]);
    subject.settle(settlement(&held, Verdict::Release)).await?;
    assert_eq!(subject.due_run_ids(at(399)).await?, [ready.id, held.id]);
    let elsewhere: ShardSet = Shard::all().filter(|shard| *shard != job.shard()).collect();
    assert_eq!(
        subject.store.due_runs(&elsewhere, at(400), None, 9).await?,
        []
    );
    Ok(())
}

pub async fn what_is_due_of_one_job_is_read_alone(subject: Subject) -> Kept {
    let store = &subject.store;
    let one = subject.put(job(1)?).await?;
    let later = subject.put(once(2, 90)?).await?;
    let paused = subject.put(job(3)?).await?;
    let pause = paused.paused(at(1), None, &someone());
    subject.change(&paused, pause, RunsOfChange::Keep).await?;
    let other = subject.put(job(4)?).await?;
    let others = subject.ready(other.id).await?;
    let ready = subject.ready(one.id).await?;
    subject.claimed(one.id).await?;
    let retried = subject.claimed(one.id).await?;
    let retry = settlement(&retried, Verdict::RetryAt(at(400)));
    subject.settle(retry).await?;
    let runs = |due: &DueOf| due.runs.iter().map(|run| run.run).collect::<Vec<_>>();

    let due = store.due_of(&[one.id], at(90)).await?;
    assert_eq!((due.jobs.len(), runs(&due)), (0, vec![ready.id]));
    let named = [later.id, one.id, paused.id, one.id];
    let due = store.due_of(&named, at(400)).await?;
    let mut jobs = [subject.job(one.id).await?, subject.job(later.id).await?];
    jobs.sort_by_key(|job| job.id);
    assert_eq!(due.jobs, jobs);
    assert_eq!(runs(&due), [ready.id, retried.id]);
    let all = store.due_runs(&ShardSet::ALL, at(400), None, 9).await?;
    let expected: Vec<_> = all.iter().filter(|run| run.run != others.id).collect();
    assert_eq!(due.runs.iter().collect::<Vec<_>>(), expected);
    assert_eq!(store.due_of(&[], at(400)).await?, DueOf::default());
    Ok(())
}

pub async fn due_runs_come_in_the_order_they_are_due(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    for number in 1..=5 {
        let job = subject.put(job(number)?).await?;
        subject.ready(job.id).await?;
        subject.ready(job.id).await?;
    }
    let whole = store.due_runs(&ShardSet::ALL, at(120), None, 100).await?;
    assert_eq!(whole.len(), 10);
    assert!(whole.is_sorted_by_key(|due| (due.due_at, due.run)));
    let mut paged = Vec::new();
    let mut after = None;
    loop {
        let page = store.due_runs(&ShardSet::ALL, at(120), after, 3).await?;
        let Some(last) = page.last() else { break };
        after = Some((last.due_at, last.run));
        paged.extend(page);
    }
    assert_eq!(paged, whole);
    Ok(())
}

pub async fn a_parked_job_leaves_the_plan_and_says_why(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let job = subject.put(job(1)?).await?;
    let untouched = subject.put(super::job(2)?).await?;
    store
        .park(&[(job.id, "zone Mars/Base is not known".to_owned())], at(5))
        .await?;
    assert_eq!(
        subject.due(&ShardSet::ALL, at(9_999), 9).await?,
        [untouched]
    );
    let parked = subject.job(job.id).await?;
    assert_eq!((parked.state, parked.state_at), (JobState::Invalid, at(5)));
    assert_eq!(parked.note.as_deref(), Some("zone Mars/Base is not known"));
    assert_eq!(parked.next_slot, None);
    Ok(())
}

/// A job whose schedule was accepted once and cannot be read any more: its zone is gone.
fn broken(number: u8) -> Result<Job, BoxError> {
    let stored = r#"{"schedule":{"cron" : ["0 9 * * *"],  "zone":"Mars/Olympus"},"target":{"http":{"url":"http://localhost/"}}}"#;
    let sound = job(number)?;
    let def = doc::decode_definition(sound.id, stored.as_bytes(), None, &|_| None)?;
    let def = Arc::new(def);
    Ok(Job { def, ..sound })
}

pub async fn a_schedule_that_cannot_be_read_is_named_and_not_planned(subject: Subject) -> Kept {
    let sound = subject.put(job(2)?).await?;
    let job = subject.put(broken(1)?).await?;
    let Kind::Broken(why) = &job.def.schedule.kind else {
        return Err(format!("{job:?}").into());
    };
    let due = subject
        .store
        .due_jobs(&ShardSet::ALL, at(60), None, 9)
        .await?;
    assert_eq!(due.jobs, [sound], "it stops no other");
    assert_eq!(due.unreadable, [(job.id, why.error.clone())]);
    assert!(why.error.contains("Mars/Olympus"), "{}", why.error);
    assert_eq!(subject.job(job.id).await?, job, "it can still be shown");
    subject.store.park(&due.unreadable, at(60)).await?;
    let parked = subject.job(job.id).await?;
    assert_eq!(
        (parked.state, parked.note.as_ref()),
        (JobState::Invalid, Some(&why.error))
    );
    assert_eq!(parked.def, job.def);
    Ok(())
}

pub async fn a_schedule_that_cannot_be_read_stays_as_it_was_stored(subject: Subject) -> Kept {
    let job = subject.put(broken(1)?).await?;
    let def = Definition {
        lane: Lane::Batch,
        ..Definition::clone(&job.def)
    };
    let edited = Job {
        def: Arc::new(def),
        version: job.version.next(),
        ..Job::clone(&job)
    };
    subject
        .change(&job, (edited.clone(), Vec::new()), RunsOfChange::Keep)
        .await?;
    let stands = subject.job(job.id).await?;
    assert_eq!(*stands, edited);
    assert_eq!(stands.def.schedule, job.def.schedule, "byte for byte");
    let def = Definition {
        schedule: every(60)?,
        ..Definition::clone(&stands.def)
    };
    let mended = stands.edited(None, def, at(61), &someone());
    subject.change(&stands, mended, RunsOfChange::Keep).await?;
    let due = subject.due(&ShardSet::ALL, at(120), 9).await?;
    assert_eq!(due, [subject.job(job.id).await?], "it can be mended");
    Ok(())
}

pub async fn the_oldest_due_is_the_one_that_nobody_holds(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let oldest_due = async || {
        store
            .oldest_due(&ShardSet::ALL, Timestamp::MIN, at(999))
            .await
    };
    assert_eq!((oldest_due().await?, store.count_live().await?), (None, 0));
    let job = subject.put(job(1)?).await?;
    assert_eq!(oldest_due().await?, Some(at(60)));
    subject.claimed(job.id).await?;
    assert_eq!(
        (oldest_due().await?, store.count_live().await?),
        (Some(at(120)), 1),
        "the claimed one is held"
    );
    subject.ready(job.id).await?;
    assert_eq!(
        (oldest_due().await?, store.count_live().await?),
        (Some(at(120)), 2)
    );
    let later = at(120).plus(Duration::from_millis(1));
    assert_eq!(
        store.oldest_due(&ShardSet::ALL, later, at(999)).await?,
        Some(at(180)),
        "from a moment on"
    );
    let before = at(180).minus(Duration::from_millis(1));
    let due = store.oldest_due(&ShardSet::ALL, later, before).await?;
    assert_eq!(due, None, "and up to another");
    if subject.reopen.is_none() {
        // Whoever opens a store alone has all shards.
        let others = Shard::all().filter(|it| *it != job.shard()).collect();
        assert_eq!(
            store.oldest_due(&others, Timestamp::MIN, at(999)).await?,
            None
        );
    }
    let stands = subject.job(job.id).await?;
    assert_eq!(stands.next_slot, Some(slot(180)));
    Ok(())
}

pub async fn jobs_are_counted_by_state_page_by_page(subject: Subject) -> Kept {
    for number in 1..=5 {
        subject.put(job(number)?).await?;
    }
    let all = subject.store.count_jobs(None, 10).await?;
    assert_eq!(
        (all.counts.get(&JobState::Active), all.next),
        (Some(&5), None)
    );
    let (mut after, mut sizes) = (None, Vec::new());
    loop {
        let page = subject.store.count_jobs(after, 2).await?;
        sizes.push(page.counts.values().sum::<u64>());
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(sizes, [2, 2, 1]);
    Ok(())
}
