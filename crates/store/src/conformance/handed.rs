//! Handed over: attempts whose work is with the outside. No node holds them, one report ends them, silence loses them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::shard::ShardSet;
use model::{
    AttemptNo, Completion, Handed, Job, Mark, Outcome, PresenceId, Progress, Reason, Report, Run,
    RunId, RunState, Shard, TenantId, Timestamp, Verdict,
};

use super::{Kept, NODE, Subject, at, job_with, settlement, slot, someone};
use crate::{
    Beaten, BoxError, Cancelled, Claimed, HandOver, HandedEnd, HandedOver, Heartbeat, Lapse,
    Lapsing, Reported, RunsOfChange, Settled,
};

const WITHIN: Duration = Duration::from_secs(60);

fn callback(number: u8) -> Result<Job, BoxError> {
    job_with(number, |def| {
        def.completion = Completion::Callback {
            heartbeat_within: WITHIN,
        };
    })
}

fn hand_over(run: &Run) -> HandOver {
    HandOver {
        run: run.id,
        job: run.job,
        attempt: run.attempt,
        node: Arc::from(NODE),
        dispatched_at: at(60),
        within: WITHIN,
        timeout: Duration::from_secs(600),
    }
}

pub(super) fn heartbeat(run: &Run) -> Heartbeat {
    Heartbeat {
        run: run.id,
        attempt: run.attempt,
        dispatched_at: at(60),
        progress: None,
        checkpoint: None,
    }
}

pub(super) fn reported(run: &Run, report: Report) -> Reported {
    Reported {
        run: run.id,
        attempt: run.attempt,
        dispatched_at: at(60),
        report,
        chance: 0.0,
    }
}

pub(super) fn lapse(handed: &Handed) -> Lapse {
    Lapse {
        run: handed.run,
        job: handed.job,
        attempt: handed.attempt,
        until: handed.until.unwrap_or(Timestamp::MIN),
        chance: 0.0,
    }
}

pub(super) fn done(until: i64) -> Beaten {
    let until = at(until);
    Beaten::Done {
        cancel: false,
        until,
    }
}

fn outcome(end: &HandedEnd) -> Option<(Outcome, Verdict)> {
    match end {
        HandedEnd::Done(ended) => {
            let attempt = ended.settlement.attempt.as_ref()?;
            Some((attempt.outcome, ended.settlement.verdict))
        }
        HandedEnd::Ended(_) | HandedEnd::Stale | HandedEnd::Missing => None,
    }
}

impl Subject {
    pub(super) async fn handed_claim(&self, number: u8) -> Result<Run, BoxError> {
        let job = self.put(callback(number)?).await?;
        self.claimed(job.id).await
    }

    pub(super) async fn hand(&self, run: &Run) -> Result<HandedOver, BoxError> {
        let (by, handed) = (self.presence(), self.store.handed());
        let mut answers = handed.hand_over(by, &[hand_over(run)], at(61)).await?;
        answers.pop().ok_or_else(|| "no answer".into())
    }

    /// A run that is with the outside since 61, trusted up to 121.
    pub(super) async fn handed(&self, number: u8) -> Result<Run, BoxError> {
        let run = self.handed_claim(number).await?;
        assert_eq!(self.hand(&run).await?, HandedOver::Done);
        Ok(run)
    }

    pub(super) async fn beat_at(&self, run: &Run, now: i64) -> Result<Beaten, BoxError> {
        let mut answers = self
            .store
            .handed()
            .heartbeat(&[heartbeat(run)], at(now))
            .await?;
        answers.pop().ok_or_else(|| "no answer".into())
    }

    pub(super) async fn report(&self, it: Reported, now: i64) -> Result<HandedEnd, BoxError> {
        let mut answers = self.store.handed().report(&[it], at(now)).await?;
        answers.pop().ok_or_else(|| "no answer".into())
    }

    pub(super) async fn lapsing(&self, now: i64) -> Result<Vec<Handed>, BoxError> {
        let handed = self.store.handed();
        let all = Lapsing::all(at(now), 100);
        Ok(handed.lapsing(&ShardSet::ALL, all).await?)
    }

    pub(super) async fn lapse_at(&self, it: Lapse, now: i64) -> Result<HandedEnd, BoxError> {
        let handed = self.store.handed();
        let mut answers = handed.lapse(&self.leases, &[it], at(now)).await?;
        answers.pop().ok_or_else(|| "no answer".into())
    }

    pub(super) async fn kept_of(&self, run: RunId) -> Result<Option<Handed>, BoxError> {
        let mut kept = self.store.handed().get_handed(&[run]).await?;
        Ok(kept.pop().flatten())
    }
}

pub async fn a_handed_over_run_has_nobody_who_ends(subject: Subject) -> Kept {
    let run = subject.handed(1).await?;
    let stands = subject.run(run.id).await?;
    let expected = Run {
        state: RunState::Running,
        claim: Some(PresenceId::OUTSIDE),
        dispatched_at: Some(at(60)),
        ..run.clone()
    };
    assert_eq!(stands, expected);
    let kept = subject.kept_of(run.id).await?.ok_or("nothing is kept")?;
    let expected = Handed {
        run: run.id,
        job: run.job,
        attempt: AttemptNo::FIRST,
        node: Some(Arc::from(NODE)),
        dispatched_at: at(60),
        within: WITHIN,
        timeout_at: at(660),
        until: Some(at(121)),
        cancelled: false,
        beaten_at: None,
        progress: None,
    };
    assert_eq!(kept, expected);
    assert_eq!(subject.store.claims(subject.presence(), None, 9).await?, []);
    subject.store.leave(subject.presence()).await?;
    assert_eq!(subject.store.orphans(&ShardSet::ALL, 9).await?, []);
    let due = subject
        .store
        .due_runs(&ShardSet::ALL, at(9_999), None, 9)
        .await?;
    assert_eq!(due, []);
    let settled = subject
        .store
        .settle(
            subject.other.presence,
            &[settlement(&stands, Verdict::Succeed)],
        )
        .await?;
    assert_eq!(settled, [Settled::Stale]);
    assert_eq!(subject.run(run.id).await?, stands);
    Ok(())
}

pub async fn a_hand_over_is_written_once_and_by_its_holder(subject: Subject) -> Kept {
    let run = subject.handed_claim(1).await?;
    let other = subject.other.presence;
    let handed = subject.store.handed();
    let items = [hand_over(&run)];
    let answers = handed.hand_over(other, &items, at(61)).await?;
    assert_eq!(answers, [HandedOver::Stale]);
    assert_eq!(subject.hand(&run).await?, HandedOver::Done);
    assert_eq!(subject.hand(&run).await?, HandedOver::Stale);
    assert_eq!(
        subject.settle(settlement(&run, Verdict::Succeed)).await?,
        Settled::Stale
    );
    Ok(())
}

pub async fn a_heartbeat_moves_the_moment(subject: Subject) -> Kept {
    let run = subject.handed(1).await?;
    let progress = Some(Progress::Share(0.5));
    let said = Heartbeat {
        progress: progress.clone(),
        ..heartbeat(&run)
    };
    let handed = subject.store.handed();
    assert_eq!(handed.heartbeat(&[said], at(100)).await?, [done(160)]);
    let behind = handed.heartbeat(&[heartbeat(&run)], at(90)).await?;
    assert_eq!(
        behind,
        [done(160)],
        "a clock that is behind takes no trust away"
    );
    assert_eq!(subject.beat_at(&run, 650).await?, done(660), "no more");
    let kept = subject.kept_of(run.id).await?.ok_or("nothing is kept")?;
    assert_eq!(kept.until, Some(at(660)));
    assert_eq!((kept.beaten_at, kept.progress), (Some(at(650)), progress));
    Ok(())
}

pub async fn a_heartbeat_before_the_hand_over_is_the_hand_over(subject: Subject) -> Kept {
    let run = subject.handed_claim(1).await?;
    assert_eq!(subject.beat_at(&run, 62).await?, done(122));
    assert_eq!(subject.hand(&run).await?, HandedOver::Stale);
    let stands = subject.run(run.id).await?;
    assert_eq!(stands.claim, Some(PresenceId::OUTSIDE));
    assert_eq!(stands.dispatched_at, Some(at(60)));
    Ok(())
}

pub async fn a_report_ends_the_attempt_and_is_answered_again(subject: Subject) -> Kept {
    let run = subject.handed(1).await?;
    let report = Report::succeeded().with_output(Bytes::from_static(b"made"));
    let end = subject.report(reported(&run, report.clone()), 90).await?;
    assert_eq!(outcome(&end), Some((Outcome::Succeeded, Verdict::Succeed)));
    let ended = subject.run(run.id).await?;
    assert_eq!(ended.state, RunState::Succeeded);
    assert_eq!(
        (ended.dispatched_at, ended.settled_at),
        (Some(at(60)), Some(at(90)))
    );
    let [attempt] = &ended.attempts[..] else {
        return Err(format!("{ended:?}").into());
    };
    assert_eq!(attempt.output, Bytes::from_static(b"made"));
    assert_eq!(attempt.node.as_deref(), Some(NODE));
    let again = subject.report(reported(&run, report), 95).await?;
    assert_eq!(again, HandedEnd::Ended(Some(Box::new(attempt.clone()))));
    let late = subject.beat_at(&run, 95).await?;
    assert_eq!(late, Beaten::Ended(Some(Box::new(attempt.clone()))));
    assert_eq!(subject.run(run.id).await?, ended);
    assert_eq!(subject.kept_of(run.id).await?, None);
    let stranger = Run {
        id: RunId::for_slot(run.job, slot(7)),
        ..run
    };
    let end = subject
        .report(reported(&stranger, Report::succeeded()), 95)
        .await?;
    assert_eq!(end, HandedEnd::Missing);
    Ok(())
}

pub async fn a_report_before_the_hand_over_is_the_hand_over(subject: Subject) -> Kept {
    let run = subject.handed_claim(1).await?;
    let end = subject
        .report(reported(&run, Report::succeeded()), 61)
        .await?;
    assert_eq!(outcome(&end), Some((Outcome::Succeeded, Verdict::Succeed)));
    assert_eq!(subject.hand(&run).await?, HandedOver::Stale);
    let ended = subject.run(run.id).await?;
    assert_eq!(
        (ended.state, ended.dispatched_at),
        (RunState::Succeeded, Some(at(60)))
    );
    assert_eq!(
        subject
            .settle(settlement(&run, Verdict::RetryAt(at(70))))
            .await?,
        Settled::Stale
    );
    Ok(())
}

pub async fn a_token_is_good_for_the_current_attempt_only(subject: Subject) -> Kept {
    let run = subject.handed(1).await?;
    let end = subject
        .report(reported(&run, Report::failed("no")), 90)
        .await?;
    assert_eq!(outcome(&end).map(|it| it.0), Some(Outcome::Failed));
    let stands = subject.run(run.id).await?;
    assert_eq!(
        (stands.state, stands.attempt),
        (RunState::Retrying, AttemptNo(2))
    );
    let Beaten::Ended(Some(record)) = subject.beat_at(&run, 91).await? else {
        return Err("the first attempt has ended".into());
    };
    assert_eq!(record.error.as_deref(), Some("no"));
    assert_eq!(subject.beat_at(&stands, 91).await?, Beaten::Ended(None));
    let claimed = subject.claim(&subject.leases, run.id).await?;
    let Claimed::Ours(second, _) = claimed else {
        return Err(format!("{claimed:?}").into());
    };
    assert_eq!(subject.hand(&second).await?, HandedOver::Done);
    let end = subject
        .report(reported(&run, Report::succeeded()), 95)
        .await?;
    assert!(matches!(end, HandedEnd::Ended(Some(_))), "{end:?}");
    let end = subject
        .report(reported(&second, Report::succeeded()), 96)
        .await?;
    assert_eq!(outcome(&end), Some((Outcome::Succeeded, Verdict::Succeed)));
    Ok(())
}

pub async fn silence_ends_an_attempt_unless_it_was_heard_of(subject: Subject) -> Kept {
    let run = subject.handed(1).await?;
    assert_eq!(subject.lapsing(120).await?, []);
    let silent = subject.lapsing(121).await?;
    let [handed] = &silent[..] else {
        return Err(format!("{silent:?}").into());
    };
    subject.beat_at(&run, 122).await?;
    assert_eq!(
        subject.lapse_at(lapse(handed), 123).await?,
        HandedEnd::Stale
    );
    let silent = subject.lapsing(200).await?;
    let [handed] = &silent[..] else {
        return Err(format!("{silent:?}").into());
    };
    let end = subject.lapse_at(lapse(handed), 200).await?;
    let expected = (Outcome::Lost, Verdict::RetryAt(at(200)));
    assert_eq!(outcome(&end), Some(expected));
    let stands = subject.run(run.id).await?;
    assert_eq!((stands.state, stands.lost), (RunState::Retrying, 1));
    assert_eq!((stands.claim, stands.due_at), (None, at(200)));
    assert_eq!(subject.lapsing(9_999).await?, []);
    assert_eq!(
        subject.lapse_at(lapse(handed), 201).await?,
        HandedEnd::Stale
    );
    Ok(())
}

pub async fn what_lapses_is_found_by_shard_the_earliest_first(subject: Subject) -> Kept {
    let first = subject.handed(1).await?;
    let second = subject.handed(2).await?;
    subject.beat_at(&first, 70).await?;
    let found = subject.lapsing(500).await?;
    let found: Vec<RunId> = found.iter().map(|it| it.run).collect();
    assert_eq!(found, [second.id, first.id]);
    let only: ShardSet = [Shard::of(first.job)].into_iter().collect();
    let handed = subject.store.handed();
    let found = handed.lapsing(&only, Lapsing::all(at(500), 100)).await?;
    assert!(found.iter().any(|it| it.run == first.id));
    let first = handed.lapsing(&ShardSet::ALL, Lapsing::all(at(500), 1));
    assert_eq!(first.await?.len(), 1);
    Ok(())
}

pub async fn what_may_not_end_yet_hides_nothing_that_lapses(subject: Subject) -> Kept {
    for number in 1..=5 {
        subject.handed(number).await?;
    }
    let handed = subject.store.handed();
    let all = subject.lapsing(500).await?;
    let place = |it: &Handed| it.until.map(|until| (until, it.run));
    let mut page = Lapsing::all(at(500), 2);
    let mut found = Vec::new();
    loop {
        let some = handed.lapsing(&ShardSet::ALL, page).await?;
        page.after = some.last().and_then(place);
        let is_last = some.len() < page.limit;
        found.extend(some);
        if is_last {
            break;
        }
    }
    assert_eq!(found, all, "each once, in their order");
    let [first, ..] = &all[..] else {
        return Err("nothing lapses".into());
    };
    let mut watched = Lapsing::all(at(500), 9);
    watched.watched = first.within - Duration::from_millis(1);
    assert_eq!(handed.lapsing(&ShardSet::ALL, watched).await?, []);
    watched.watched = first.within;
    assert_eq!(handed.lapsing(&ShardSet::ALL, watched).await?, all);
    watched.watched = Duration::ZERO;
    watched.now = first.timeout_at;
    let late = handed.lapsing(&ShardSet::ALL, watched).await?;
    assert_eq!(late, all, "their time is up");
    Ok(())
}

pub async fn only_who_holds_the_shard_ends_what_is_silent(subject: Subject) -> Kept {
    let run = subject.handed(1).await?;
    let silent = subject.lapsing(200).await?;
    let lapses: Vec<Lapse> = silent.iter().map(lapse).collect();
    let handed = subject.store.handed();
    let ends = handed.lapse(&subject.other, &lapses, at(200)).await?;
    assert_eq!(ends, [HandedEnd::Stale]);
    assert_eq!(subject.run(run.id).await?.state, RunState::Running);
    Ok(())
}

pub async fn a_cancel_is_announced_with_the_next_heartbeat(subject: Subject) -> Kept {
    let run = subject.handed(1).await?;
    let tenant = TenantId::DEFAULT;
    for now in [70, 75] {
        let cancelled = subject.store.cancel_run(tenant, run.id, at(now)).await?;
        assert_eq!(cancelled, Cancelled::Marked);
    }
    let until = at(130);
    for now in [80, 129] {
        let beaten = Beaten::Done {
            cancel: true,
            until,
        };
        assert_eq!(subject.beat_at(&run, now).await?, beaten);
    }
    let silent = subject.lapsing(130).await?;
    let [handed] = &silent[..] else {
        return Err(format!("{silent:?}").into());
    };
    let end = subject.lapse_at(lapse(handed), 131).await?;
    let expected = (Outcome::Cancelled, Verdict::Cancel(Reason::Requested));
    assert_eq!(outcome(&end), Some(expected));
    assert_eq!(subject.run(run.id).await?.state, RunState::Cancelled);
    Ok(())
}

pub async fn a_deleted_job_cancels_what_is_handed_over(subject: Subject) -> Kept {
    let run = subject.handed(1).await?;
    let before = subject.job(run.job).await?;
    let deleted = before.deleted(at(70), &someone());
    subject
        .change(&before, deleted, RunsOfChange::Cancel)
        .await?;
    let stands = subject.run(run.id).await?;
    assert_eq!(stands.mark, Some(Mark::Cancel(Reason::JobDeleted)));
    let beaten = subject.beat_at(&run, 75).await?;
    assert!(
        matches!(beaten, Beaten::Done { cancel: true, .. }),
        "{beaten:?}"
    );
    subject
        .report(reported(&run, Report::failed("stopped")), 80)
        .await?;
    let ended = subject.run(run.id).await?;
    assert_eq!(ended.state, RunState::Cancelled);
    assert_eq!(ended.reason, Some(Reason::JobDeleted));
    Ok(())
}

pub async fn a_pause_and_an_edit_leave_alone_what_is_handed_over(subject: Subject) -> Kept {
    let run = subject.handed(1).await?;
    let before = (subject.run(run.id).await?, subject.kept_of(run.id).await?);
    let job = subject.job(run.job).await?;
    let edited = Job {
        version: job.version.next(),
        updated_at: at(70),
        ..Job::clone(&job)
    };
    let changed = (edited, Vec::new());
    subject
        .change(&job, changed, RunsOfChange::TakeBack)
        .await?;
    let after = (subject.run(run.id).await?, subject.kept_of(run.id).await?);
    assert_eq!(after, before);
    assert_eq!(subject.beat_at(&run, 75).await?, done(135));
    Ok(())
}
