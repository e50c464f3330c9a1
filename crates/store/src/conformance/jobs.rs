//! Jobs: created once, read back whole, found by their tenant only.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::policy::{CatchUp, CatchUpPolicy, Delivery};
use model::schedule::{Bounds, Cron, CronOptions};
use model::target::HttpTarget;
use model::{
    Backoff, Job, JobId, JobKey, JobState, Lane, Outcome, Overlap, RetryPolicy, Schedule, Slot,
    Target, TenantId, Timestamp, Verdict, limits,
};

use super::subject::new;
use super::{DONE, Kept, Subject, at, attempt, job, job_with, once, settlement, someone};
use crate::{BoxError, Created, Idempotency, JobFilter, NewJob, Page, RunsOfChange};

const STRANGER: TenantId = TenantId(uuid::Uuid::from_u128(7));

fn keyed(number: u8, key: &str) -> Result<Arc<Job>, BoxError> {
    Ok(Arc::new(Job {
        key: Some(JobKey::new(key)?),
        ..job(number)?
    }))
}

fn posted(job: &Arc<Job>, key: &str, digest: u8) -> NewJob {
    let idempotency = Some(Idempotency {
        key: key.to_owned(),
        digest: [digest; 32],
    });
    NewJob {
        job: job.clone(),
        idempotency,
    }
}

const EVERYTHING: Page<JobId> = Page {
    before: None,
    limit: 100,
};

/// A job with nothing left at its default.
fn elaborate(number: u8) -> Result<Job, BoxError> {
    let target = HttpTarget::new("https://example.com/hook?a=b", Some("PUT"))?
        .header("x-one", "two three")?
        .output_max(9)?;
    let cron = Cron::parse(&["0 9 * * MON-FRI".to_owned()], CronOptions::default())?;
    let day = Duration::from_secs(86_400);
    let mut job = job_with(number, |def| {
        def.schedule = Schedule {
            bounds: Bounds {
                starts_at: Some(at(7)),
                ends_at: Some(at(999_999_999)),
                runs_max: Some(77),
            },
            ..Schedule::from(cron)
        };
        def.target = Target::Http(target);
        def.payload = Some(Bytes::from_static(br#"{"report":  "daily"}"#));
        def.retry = RetryPolicy {
            attempts_max: 7,
            backoff: Backoff::Linear,
            delay_first: Duration::from_millis(1_500),
            delay_max: Duration::from_secs(77),
            jitter: 123,
        };
        def.timeout = Duration::from_millis(2_500);
        def.lane = Lane::Critical;
        def.overlap = Overlap::QueueAll { max: 3 };
        def.catch_up = CatchUp {
            policy: CatchUpPolicy::All,
            window: day * 3,
            max: 17,
        };
        def.spread = Duration::from_secs(30);
        def.delivery = Delivery::AtMostOnce;
        def.start_within = Some(Duration::from_secs(10));
        def.finish_within = Some(Duration::from_secs(600));
        def.labels = BTreeMap::from([("team".to_owned(), "öps \"1\"".to_owned())]);
    })?;
    job.key = Some(JobKey::new("Nightly/report:1")?);
    job.note = Some("it's \"new\"".to_owned());
    job.paused_by = Some(Arc::from("Ana Ö."));
    job.owner = Some(Arc::from("Ben Ü."));
    job.runs_made = 76;
    job.slot_last = Some(at(3));
    Ok(job)
}

pub async fn a_job_reads_back_whole(subject: Subject) -> Kept {
    let whole = subject.put(elaborate(1)?).await?;
    let Subject { store, .. } = &subject;
    assert_eq!(subject.job(whole.id).await?, whole);
    let key = JobKey::new("Nightly/report:1")?;
    assert_eq!(
        store.find_job(TenantId::DEFAULT, &key).await?.as_ref(),
        Some(&*whole)
    );
    let listed = store
        .list_jobs(TenantId::DEFAULT, &JobFilter::default(), EVERYTHING)
        .await?;
    assert_eq!(listed, [Job::clone(&whole)]);
    let due_at = whole.next_due_at().ok_or("no next slot")?;
    let due = store.due_jobs(&whole_set(), due_at, None, 9).await?;
    assert_eq!(due.jobs, [whole]);
    let fetched = store
        .get_job(TenantId::DEFAULT, JobId::new(at(1), [9; 10]))
        .await?;
    assert_eq!(fetched, None);
    Ok(())
}

fn whole_set() -> model::shard::ShardSet {
    model::shard::ShardSet::ALL
}

pub async fn nul_bytes_survive(subject: Subject) -> Kept {
    let bytes = Bytes::from_static(b"\0a\0\xff\xfe\0");
    let job = subject
        .put(job_with(1, |def| def.payload = Some(bytes.clone()))?)
        .await?;
    assert_eq!(subject.job(job.id).await?.def.payload, Some(bytes.clone()));
    let run = subject.claimed(job.id).await?;
    let mut ended = attempt(&run, Outcome::Succeeded);
    ended.output = bytes.clone();
    ended.error = Some("no \\0 here".to_owned());
    let mut settlement = settlement(&run, Verdict::Succeed);
    settlement.attempt = Some(ended.clone());
    assert_eq!(subject.settle(settlement).await?, DONE);
    assert_eq!(subject.run(run.id).await?.attempts, [ended]);
    Ok(())
}

/// As large as a client may make it, and of what packs badly.
fn widest(number: u8) -> Result<Job, BoxError> {
    let mut seed = u64::from(number);
    let mut noise = |length: usize| -> String {
        let letter = |_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'a' + (seed >> 33) as u8 % 26)
        };
        (0..length).map(letter).collect()
    };
    let start = "https://example.com/";
    let url = format!("{start}{}", noise(limits::URL_MAX - start.len()));
    let mut target = HttpTarget::new(&url, None)?;
    for _ in 0..limits::HEADERS_MAX {
        target = target.header(&noise(100), &noise(limits::URL_MAX))?;
    }
    let deep = limits::PAYLOAD_MAX / 2;
    let payload = format!("{}{}", "[".repeat(deep), "]".repeat(deep));
    let mut job = job_with(number, |def| {
        def.schedule = Schedule::from(Slot(Timestamp::MAX));
        def.target = Target::Http(target);
        def.payload = Some(Bytes::from(payload));
        let labels =
            (0..limits::LABELS_MAX).map(|_| (noise(limits::NAME_MAX), noise(limits::NAME_MAX)));
        def.labels = labels.collect();
    })?;
    job.key = Some(JobKey::new(&noise(limits::NAME_MAX))?);
    Ok(job)
}

pub async fn a_job_as_large_as_may_be_is_kept(subject: Subject) -> Kept {
    let jobs = [widest(1)?, widest(2)?].map(Arc::new);
    let requests = jobs.each_ref().map(|job| {
        let key = format!("{}#{}", "k".repeat(limits::NAME_MAX), u64::MAX);
        posted(job, &format!("{key}{}", job.id), 1)
    });
    let created = subject.store.create_jobs(&requests).await?;
    assert_eq!(created, [Created::Done, Created::Done]);
    for job in jobs {
        assert_eq!(subject.job(job.id).await?, job);
    }
    Ok(())
}

pub async fn text_of_any_characters_is_kept(subject: Subject) -> Kept {
    let odd = "\0\u{1}\u{1}0\u{7f}\u{85}\u{d7ff}\u{e000}\u{ffff}\u{10ffff} ü 日本 🕰 '\"\\%_";
    let mut job = job_with(1, |def| {
        def.labels = BTreeMap::from([(odd.to_owned(), odd.to_owned())]);
    })?;
    job.note = Some(odd.to_owned());
    job.paused_by = Some(Arc::from(odd));
    job.owner = Some(Arc::from(odd));
    let job = Arc::new(job);
    let request = [posted(&job, odd, 1)];
    let Subject { store, .. } = &subject;
    assert_eq!(store.create_jobs(&request).await?, [Created::Done]);
    let again = store.create_jobs(&request).await?;
    assert_eq!(again, [Created::Repeated(job.id)]);
    assert_eq!(subject.job(job.id).await?, job);
    let filter = JobFilter {
        labels: vec![(odd.to_owned(), odd.to_owned())],
        ..JobFilter::default()
    };
    let listed = store.list_jobs(TenantId::DEFAULT, &filter, EVERYTHING);
    assert_eq!(listed.await?, [Job::clone(&job)]);
    Ok(())
}

pub async fn a_job_that_cannot_be_kept_stops_no_other(subject: Subject) -> Kept {
    let mut target = HttpTarget::new("https://example.com/hook", None)?;
    target.headers.push(("x-odd".parse()?, "ö".parse()?));
    let odd = job_with(2, |def| def.target = Target::Http(target))?;
    let jobs = [Arc::new(job(1)?), Arc::new(odd), keyed(3, "a")?];
    let batch = [
        new(&jobs[0]),
        posted(&jobs[1], "request", 1),
        posted(&jobs[2], "request", 1),
    ];
    let Subject { store, .. } = &subject;
    let created = store.create_jobs(&batch).await?;
    let [Created::Done, Created::Refused(why), Created::Done] = &created[..] else {
        return Err(format!("{created:?}").into());
    };
    assert!(why.contains("x-odd"), "{why}");
    for job in [&jobs[0], &jobs[2]] {
        assert_eq!(subject.job(job.id).await?, *job);
    }
    assert_eq!(store.get_job(TenantId::DEFAULT, jobs[1].id).await?, None);
    Ok(())
}

pub async fn a_key_belongs_to_one_job_of_a_tenant(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let (first, second) = (keyed(1, "a")?, keyed(2, "a")?);
    assert_eq!(store.create_jobs(&[new(&first)]).await?, [Created::Done]);
    assert_eq!(
        store.create_jobs(&[new(&second)]).await?,
        [Created::KeyTaken(first.id)]
    );
    assert_eq!(store.get_job(TenantId::DEFAULT, second.id).await?, None);
    let strangers = Arc::new(Job {
        tenant: STRANGER,
        ..Job::clone(&second)
    });
    assert_eq!(
        store.create_jobs(&[new(&strangers)]).await?,
        [Created::Done]
    );
    let key = JobKey::new("a")?;
    assert_eq!(
        store.find_job(STRANGER, &key).await?.map(|job| job.id),
        Some(second.id)
    );
    let upper = JobKey::new("A")?;
    assert_eq!(
        store.find_job(STRANGER, &upper).await?,
        None,
        "keys are exact"
    );
    Ok(())
}

pub async fn a_key_is_taken_by_an_earlier_job_of_the_same_batch(subject: Subject) -> Kept {
    let jobs = [keyed(1, "a")?, keyed(2, "a")?, keyed(3, "b")?];
    let created = subject.store.create_jobs(&jobs.each_ref().map(new)).await?;
    assert_eq!(
        created,
        [Created::Done, Created::KeyTaken(jobs[0].id), Created::Done]
    );
    assert_eq!(
        subject.job(jobs[2].id).await?,
        jobs[2],
        "one refused job stops no other"
    );
    Ok(())
}

pub async fn a_repeated_request_answers_the_same_job(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let (first, second) = (keyed(1, "a")?, keyed(2, "a")?);
    let batch = [posted(&first, "request", 1), posted(&second, "request", 1)];
    let created = store.create_jobs(&batch).await?;
    assert_eq!(created, [Created::Done, Created::Repeated(first.id)]);
    let again = store.create_jobs(&batch).await?;
    assert_eq!(
        again,
        [Created::Repeated(first.id), Created::Repeated(first.id)]
    );
    assert_eq!(store.get_job(TenantId::DEFAULT, second.id).await?, None);
    Ok(())
}

pub async fn an_idempotency_key_with_another_body_is_a_mismatch(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let (first, second) = (Arc::new(job(1)?), Arc::new(job(2)?));
    assert_eq!(
        store.create_jobs(&[posted(&first, "request", 1)]).await?,
        [Created::Done]
    );
    let created = store.create_jobs(&[posted(&second, "request", 2)]).await?;
    assert_eq!(created, [Created::Mismatch]);
    assert_eq!(store.get_job(TenantId::DEFAULT, second.id).await?, None);
    Ok(())
}

pub async fn an_idempotency_key_belongs_to_its_tenant(subject: Subject) -> Kept {
    let first = Arc::new(job(1)?);
    let second = Arc::new(Job {
        tenant: STRANGER,
        ..job(2)?
    });
    let batch = [posted(&first, "request", 1), posted(&second, "request", 2)];
    let created = subject.store.create_jobs(&batch).await?;
    assert_eq!(created, [Created::Done, Created::Done]);
    Ok(())
}

/// The id is chosen before the first try, so that a create whose answer was lost can be sent again.
pub async fn a_repeated_create_makes_no_second_job(subject: Subject) -> Kept {
    let jobs = [keyed(1, "a")?, Arc::new(job(2)?)];
    let batch = jobs.each_ref().map(new);
    assert_eq!(
        subject.store.create_jobs(&batch).await?,
        [Created::Done, Created::Done]
    );
    subject.claimed(jobs[0].id).await?;
    let stands = subject.job(jobs[0].id).await?;
    let again = subject.store.create_jobs(&batch).await?;
    assert_eq!(
        again,
        [Created::Repeated(jobs[0].id), Created::Repeated(jobs[1].id)]
    );
    assert_eq!(
        subject.job(jobs[0].id).await?,
        stands,
        "it is not written again"
    );
    Ok(())
}

pub async fn a_refused_create_leaves_its_idempotency_key_free(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let (first, second, third) = (keyed(1, "a")?, keyed(2, "a")?, keyed(3, "b")?);
    let batch = [
        new(&first),
        posted(&second, "request", 1),
        posted(&third, "request", 2),
    ];
    let created = store.create_jobs(&batch).await?;
    assert_eq!(
        created,
        [Created::Done, Created::KeyTaken(first.id), Created::Done]
    );
    Ok(())
}

pub async fn a_tenant_sees_only_its_own_jobs(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let job = keyed(1, "a")?;
    store.create_jobs(&[new(&job)]).await?;
    assert_eq!(store.get_job(STRANGER, job.id).await?, None);
    assert_eq!(store.find_job(STRANGER, &JobKey::new("a")?).await?, None);
    assert_eq!(
        store
            .list_jobs(STRANGER, &JobFilter::default(), EVERYTHING)
            .await?,
        []
    );
    Ok(())
}

pub async fn jobs_read_together_come_as_they_were_named(subject: Subject) -> Kept {
    let (one, two) = (subject.put(job(1)?).await?, subject.put(job(2)?).await?);
    let nobody = JobId::new(at(1), [9; 10]);
    let ours = TenantId::DEFAULT;
    let named = [
        (ours, two.id),
        (STRANGER, one.id),
        (ours, nobody),
        (ours, one.id),
        (ours, two.id),
    ];
    let found = subject.store.get_jobs(&named).await?;
    let (one, two) = (Ok(Some(Job::clone(&one))), Ok(Some(Job::clone(&two))));
    assert_eq!(found, [two.clone(), Ok(None), Ok(None), one, two]);
    assert_eq!(subject.store.get_jobs(&[]).await?, []);
    Ok(())
}

pub async fn jobs_are_listed_newest_first(subject: Subject) -> Kept {
    for number in [2, 5, 1, 4, 3] {
        subject.put(job(number)?).await?;
    }
    let listed = subject
        .store
        .list_jobs(TenantId::DEFAULT, &JobFilter::default(), EVERYTHING)
        .await?;
    let mut ids: Vec<_> = listed.iter().map(|job| job.id).collect();
    assert_eq!(ids.len(), 5);
    ids.reverse();
    assert!(ids.is_sorted(), "{ids:?}");
    Ok(())
}

pub async fn listing_pages_neither_repeat_nor_lose(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    for number in 0..7 {
        subject
            .put(job_with(number, |def| label(&mut def.labels, number % 2))?)
            .await?;
    }
    let labels = vec![("parity".to_owned(), "0".to_owned())];
    for filter in [
        JobFilter::default(),
        JobFilter {
            labels,
            ..JobFilter::default()
        },
    ] {
        let whole = store
            .list_jobs(TenantId::DEFAULT, &filter, EVERYTHING)
            .await?;
        let mut paged = Vec::new();
        let mut before = None;
        loop {
            let page = Page { before, limit: 2 };
            let jobs = store.list_jobs(TenantId::DEFAULT, &filter, page).await?;
            assert!(jobs.len() <= 2);
            let Some(last) = jobs.last() else { break };
            before = Some(last.id);
            paged.extend(jobs);
        }
        assert_eq!(paged, whole);
        assert!(paged.len() >= 4);
    }
    Ok(())
}

fn label(labels: &mut BTreeMap<String, String>, parity: u8) {
    labels.insert("parity".to_owned(), parity.to_string());
    labels.insert("all".to_owned(), "yes".to_owned());
}

pub async fn jobs_are_listed_by_state_label_and_part_of_the_key(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let plain = subject.put(once(1, 60)?).await?;
    let named = keyed(2, "Nightly_Report")?;
    store.create_jobs(&[new(&named)]).await?;
    let labelled = subject
        .put(job_with(3, |def| label(&mut def.labels, 1))?)
        .await?;
    let (paused, gone) = (subject.put(job(4)?).await?, subject.put(job(5)?).await?);
    let pausing = paused.paused(at(1), None, &someone());
    subject.change(&paused, pausing, RunsOfChange::Keep).await?;
    let deleting = gone.deleted(at(1), &someone());
    subject.change(&gone, deleting, RunsOfChange::Keep).await?;
    subject.claimed(plain.id).await?;

    let check = async |filter: JobFilter, expected: &[JobId]| -> Kept {
        let jobs = store
            .list_jobs(TenantId::DEFAULT, &filter, EVERYTHING)
            .await?;
        let ids: Vec<_> = jobs.iter().map(|job| job.id).collect();
        assert_eq!(ids, expected, "{filter:?}");
        Ok(())
    };
    let states = |states: &[JobState]| JobFilter {
        states: states.to_vec(),
        ..JobFilter::default()
    };
    let part = |part: &str| JobFilter {
        q: Some(part.to_owned()),
        ..JobFilter::default()
    };
    let labels = |pairs: &[(&str, &str)]| JobFilter {
        labels: pairs
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect(),
        ..JobFilter::default()
    };
    check(
        JobFilter::default(),
        &[paused.id, labelled.id, named.id, plain.id],
    )
    .await?;
    check(
        states(&[JobState::Paused, JobState::Finished]),
        &[paused.id, plain.id],
    )
    .await?;
    check(states(&[JobState::Deleted]), &[gone.id]).await?;
    check(part("nightly"), &[named.id]).await?;
    check(part("Y_REP"), &[named.id]).await?;
    for nowhere in ["n_ght", "%", "n%t", "nightly report"] {
        check(part(nowhere), &[]).await?;
    }
    check(labels(&[("parity", "1"), ("all", "yes")]), &[labelled.id]).await?;
    check(labels(&[("parity", "1"), ("all", "no")]), &[]).await?;
    Ok(())
}
