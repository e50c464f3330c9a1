//! Settle: an attempt ends once, by its holder, or by anyone once its holder is gone.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::limits::OUTPUT_EARLIER_MAX;
use model::shard::ShardSet;
use model::{AttemptNo, Mark, Marks, Outcome, Reason, Run, RunState, TenantId, Verdict};

use super::subject::SECOND;
use super::{DONE, Kept, NODE, Subject, at, attempt, job, settlement, slot, someone};
use crate::{BoxError, Claimed, JobChange, Settled, Settlement, StoreError};

impl Subject {
    /// A run of a new job, tried once, failed, and claimed again by the first presence.
    async fn second_try(&self) -> Result<(Run, Run), BoxError> {
        let job = self.put(job(1)?).await?;
        let first = self.claimed(job.id).await?;
        assert_eq!(
            self.settle(settlement(&first, Verdict::RetryAt(at(70))))
                .await?,
            DONE
        );
        let claimed = self.claim(&self.leases, first.id).await?;
        let Claimed::Ours(second, _) = claimed else {
            return Err(format!("{claimed:?}").into());
        };
        Ok((first, *second))
    }
}

fn lost(run: &Run, verdict: Verdict) -> Settlement {
    let attempt = Some(attempt(run, Outcome::Lost));
    Settlement {
        attempt,
        ..settlement(run, verdict)
    }
}

pub async fn a_settled_run_is_history(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let run = subject.claimed(job.id).await?;
    assert_eq!(
        subject.settle(settlement(&run, Verdict::Succeed)).await?,
        DONE
    );
    let attempt = attempt(&run, Outcome::Succeeded);
    let ended = Run {
        state: RunState::Succeeded,
        claim: None,
        dispatched_at: attempt.dispatched_at,
        settled_at: Some(attempt.settled_at),
        attempts: vec![attempt],
        ..run
    };
    assert_eq!(subject.run(ended.id).await?, ended);
    assert_eq!(subject.runs().await?, [ended]);
    assert_eq!(subject.store.count_live().await?, 0);
    assert_eq!(subject.store.claims(subject.presence(), None, 9).await?, []);
    Ok(())
}

pub async fn a_repeated_settle_is_stale(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    for verdict in [
        Verdict::Succeed,
        Verdict::RetryAt(at(300)),
        Verdict::Release,
    ] {
        let run = subject.claimed(job.id).await?;
        assert_eq!(subject.settle(settlement(&run, verdict)).await?, DONE);
        let before = subject.run(run.id).await?;
        assert_eq!(
            subject.settle(settlement(&run, verdict)).await?,
            Settled::Stale
        );
        assert_eq!(subject.run(run.id).await?, before);
    }
    Ok(())
}

pub async fn every_verdict_is_kept_with_its_reason(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let check = async |verdict, state, reason| -> Kept {
        let run = subject.claimed(job.id).await?;
        assert_eq!(subject.settle(settlement(&run, verdict)).await?, DONE);
        let ended = subject.run(run.id).await?;
        assert_eq!((ended.state, ended.reason), (state, reason));
        assert_eq!(ended.attempts.len(), 1);
        Ok(())
    };
    check(Verdict::Succeed, RunState::Succeeded, None).await?;
    for reason in Reason::ALL {
        check(Verdict::Bury(reason), RunState::Dead, Some(reason)).await?;
        check(Verdict::Cancel(reason), RunState::Cancelled, Some(reason)).await?;
    }
    Ok(())
}

pub async fn a_claim_token_of_an_earlier_attempt_settles_nothing(subject: Subject) -> Kept {
    let (first, second) = subject.second_try().await?;
    assert_eq!(
        first.claim, second.claim,
        "the holder alone does not identify them"
    );
    assert_eq!(
        subject.settle(settlement(&first, Verdict::Succeed)).await?,
        Settled::Stale
    );
    assert_eq!(subject.run(second.id).await?, second);
    assert_eq!(
        subject
            .settle(settlement(&second, Verdict::Succeed))
            .await?,
        DONE
    );
    Ok(())
}

pub async fn a_run_that_nobody_holds_cannot_be_settled(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let ready = subject.ready(job.id).await?;
    assert_eq!(
        subject.settle(settlement(&ready, Verdict::Succeed)).await?,
        Settled::Stale
    );
    let pretended = Run {
        claim: Some(subject.presence()),
        ..ready.clone()
    };
    assert_eq!(
        subject
            .settle(settlement(&pretended, Verdict::Succeed))
            .await?,
        Settled::Stale
    );
    assert_eq!(subject.run(ready.id).await?, ready);
    Ok(())
}

pub async fn a_fenced_presence_settles_nothing(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let run = subject.claimed(job.id).await?;
    subject.fence_first().await?;
    let batch = [settlement(&run, Verdict::Succeed)];
    let settled = subject.store.settle(subject.presence(), &batch).await;
    assert!(matches!(settled, Err(StoreError::Fenced)), "{settled:?}");
    assert_eq!(subject.run(run.id).await?, run);
    Ok(())
}

pub async fn a_claim_of_the_living_is_settled_by_its_holder_only(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let run = subject.claimed(job.id).await?;
    let theirs = subject.other.presence;
    let batch = [settlement(&run, Verdict::Succeed)];
    assert_eq!(
        subject.store.settle(theirs, &batch).await?,
        [Settled::Stale]
    );
    let pretended = [settlement(
        &Run {
            claim: Some(theirs),
            ..run.clone()
        },
        Verdict::Succeed,
    )];
    assert_eq!(
        subject.store.settle(theirs, &pretended).await?,
        [Settled::Stale]
    );
    assert_eq!(subject.run(run.id).await?, run);
    Ok(())
}

pub async fn a_lost_claim_is_settled_by_another(subject: Subject) -> Kept {
    let Subject { store, other, .. } = &subject;
    let job = subject.put(job(1)?).await?;
    let (tried, buried) = (
        subject.claimed(job.id).await?,
        subject.claimed(job.id).await?,
    );
    subject.fence_first().await?;
    let orphans = store.orphans(&ShardSet::ALL, 9).await?;
    let runs: Vec<_> = orphans.into_iter().map(|orphan| orphan.run).collect();
    assert_eq!(runs, [tried.clone(), buried.clone()]);
    let batch = [
        lost(&tried, Verdict::RetryAt(at(70))),
        lost(&buried, Verdict::Bury(Reason::Poison)),
    ];
    assert_eq!(store.settle(other.presence, &batch).await?, [DONE, DONE]);
    let retried = subject.run(tried.id).await?;
    assert_eq!(
        (retried.state, retried.attempt, retried.lost),
        (RunState::Retrying, SECOND, 1)
    );
    let dead = subject.run(buried.id).await?;
    assert_eq!(
        (dead.state, dead.attempt, dead.lost),
        (RunState::Dead, AttemptNo(1), 1)
    );
    assert_eq!(store.orphans(&ShardSet::ALL, 9).await?, []);
    assert_eq!(
        store.settle(other.presence, &batch).await?,
        [Settled::Stale, Settled::Stale]
    );
    Ok(())
}

pub async fn a_retry_waits_for_its_time(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let run = subject.claimed(job.id).await?;
    subject
        .store
        .mark_running(subject.presence(), &[(run.id, at(61))])
        .await?;
    assert_eq!(
        subject
            .settle(settlement(&run, Verdict::RetryAt(at(300))))
            .await?,
        DONE
    );
    let retrying = Run {
        state: RunState::Retrying,
        attempt: SECOND,
        due_at: at(300),
        claim: None,
        dispatched_at: Some(at(61)),
        attempts: vec![attempt(&run, Outcome::Failed)],
        ..run
    };
    assert_eq!(subject.run(retrying.id).await?, retrying);
    assert_eq!(subject.due_run_ids(at(299)).await?, []);
    assert_eq!(subject.due_run_ids(at(300)).await?, [retrying.id]);
    Ok(())
}

pub async fn a_run_keeps_when_it_was_first_dispatched(subject: Subject) -> Kept {
    let (first, second) = subject.second_try().await?;
    let dispatched_at = attempt(&first, Outcome::Failed).dispatched_at;
    assert_eq!(second.dispatched_at, dispatched_at);
    let marks = [(second.id, at(72))];
    subject
        .store
        .mark_running(subject.presence(), &marks)
        .await?;
    assert_eq!(subject.run(first.id).await?.dispatched_at, dispatched_at);
    subject
        .settle(settlement(&second, Verdict::RetryAt(at(80))))
        .await?;
    assert_eq!(subject.run(first.id).await?.dispatched_at, dispatched_at);
    Ok(())
}

pub async fn an_earlier_attempt_keeps_the_head_of_its_output(subject: Subject) -> Kept {
    let (first, second) = {
        let job = subject.put(job(1)?).await?;
        let first = subject.claimed(job.id).await?;
        let mut failed = settlement(&first, Verdict::RetryAt(at(70)));
        failed.attempt = failed.attempt.map(|attempt| model::Attempt {
            output: Bytes::from(vec![0; OUTPUT_EARLIER_MAX * 2]),
            error: Some("connection refused".to_owned()),
            ..attempt
        });
        subject.settle(failed).await?;
        subject.claim(&subject.leases, first.id).await?;
        (first.clone(), subject.run(first.id).await?)
    };
    let mut succeeded = settlement(&second, Verdict::Succeed);
    let output = Bytes::from(vec![1; OUTPUT_EARLIER_MAX * 3]);
    succeeded.attempt = succeeded
        .attempt
        .map(|attempt| model::Attempt { output, ..attempt });
    assert_eq!(subject.settle(succeeded).await?, DONE);
    let ended = subject.run(first.id).await?;
    let kept: Vec<_> = ended
        .attempts
        .iter()
        .map(|attempt| attempt.output.len())
        .collect();
    assert_eq!(
        kept,
        [OUTPUT_EARLIER_MAX, OUTPUT_EARLIER_MAX * 3],
        "the last keeps all"
    );
    let numbers: Vec<_> = ended.attempts.iter().map(|attempt| attempt.no).collect();
    assert_eq!(
        (numbers, ended.attempt),
        (vec![AttemptNo(1), SECOND], SECOND)
    );
    let error = ended
        .attempts
        .first()
        .and_then(|first| first.error.as_deref());
    assert_eq!(error, Some("connection refused"));
    Ok(())
}

pub async fn attempts_keep_what_is_known_of_their_exchange(subject: Subject) -> Kept {
    let mut exchange = model::Exchange {
        peer: Some(([192, 0, 2, 7], 443).into()),
        ..model::Exchange::default()
    };
    exchange.times.first_byte = Some(Duration::from_micros(1_480));
    exchange.times.total = Some(Duration::from_micros(1_502));
    let with = |settlement: &mut Settlement, exchange: &model::Exchange| {
        if let Some(attempt) = &mut settlement.attempt {
            attempt.truncated = true;
            attempt.exchange = Some(Box::new(exchange.clone()));
        }
    };
    // The usual end, in one attempt.
    let other = subject.put(job(2)?).await?;
    let plain = subject.claimed(other.id).await?;
    let mut end = settlement(&plain, Verdict::Succeed);
    with(&mut end, &exchange);
    let expected = end.attempt.clone();
    assert_eq!(subject.settle(end).await?, DONE);
    assert_eq!(subject.run(plain.id).await?.attempts.pop(), expected);
    // And one that is tried again.
    let (first, second) = subject.second_try().await?;
    exchange.keep_header("etag", b"abc");
    let mut end = settlement(&second, Verdict::Succeed);
    with(&mut end, &exchange);
    let expected = end.attempt.clone();
    assert_eq!(subject.settle(end).await?, DONE);
    let kept = subject.run(first.id).await?.attempts;
    assert_eq!((kept.len(), kept.last()), (2, expected.as_ref()));
    Ok(())
}

pub async fn attempts_keep_their_node_and_their_marks(subject: Subject) -> Kept {
    let (late, long) = (Duration::from_millis(1_500), Duration::from_secs(60));
    let marks = [
        Marks::default(),
        Marks {
            late_by: Some(late),
            long_by: None,
        },
        Marks {
            late_by: Some(late),
            long_by: Some(long),
        },
    ];
    let job = subject.put(job(1)?).await?;
    for marks in marks {
        let run = subject.claimed(job.id).await?;
        let mut end = settlement(&run, Verdict::Succeed);
        end.attempt = end.attempt.map(|attempt| attempt.marked(marks));
        let made = end.attempt.clone();
        subject.settle(end).await?;
        let ended = subject.run(run.id).await?;
        assert_eq!(ended.attempts.last(), made.as_ref());
        assert_eq!(ended.attempts.len(), 1, "{marks:?}");
        assert_eq!((ended.late_by(), ended.actor), (marks.late_by, None));
    }
    let run = subject.claimed(job.id).await?;
    let mut failed = settlement(&run, Verdict::RetryAt(at(400)));
    let marked = |late_by, long_by| Marks { late_by, long_by };
    failed.attempt = failed.attempt.map(|it| it.marked(marked(Some(late), None)));
    subject.settle(failed).await?;
    let live = subject.run(run.id).await?;
    assert_eq!((live.late_by(), live.long_by()), (Some(late), None));
    subject.claim(&subject.leases, run.id).await?;
    let second = subject.run(run.id).await?;
    let mut buried = settlement(&second, Verdict::Bury(Reason::AttemptsSpent));
    let by = Arc::from("another");
    let end = |it: model::Attempt| it.marked(marked(None, Some(long))).made_by(&by);
    buried.attempt = buried.attempt.map(end);
    subject.settle(buried).await?;
    let ended = subject.run(run.id).await?;
    assert_eq!((ended.late_by(), ended.long_by()), (Some(late), Some(long)));
    let nodes = ended.attempts.iter().map(|it| it.node.as_deref());
    assert_eq!(nodes.collect::<Vec<_>>(), [Some(NODE), Some("another")]);
    Ok(())
}

pub async fn a_run_to_be_cancelled_is_not_tried_again(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let run = subject.claimed(job.id).await?;
    subject
        .store
        .cancel_run(TenantId::DEFAULT, run.id, at(60))
        .await?;
    assert_eq!(
        subject
            .settle(settlement(&run, Verdict::RetryAt(at(300))))
            .await?,
        DONE
    );
    let ended = subject.run(run.id).await?;
    assert_eq!(
        (ended.state, ended.reason),
        (RunState::Cancelled, Some(Reason::Requested))
    );
    assert_eq!(ended.attempts, [attempt(&run, Outcome::Failed)]);
    Ok(())
}

pub async fn a_released_run_keeps_its_number(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let run = subject.claimed(job.id).await?;
    assert_eq!(
        subject.settle(settlement(&run, Verdict::Release)).await?,
        DONE
    );
    let released = Run { claim: None, ..run };
    assert_eq!(subject.run(released.id).await?, released);
    assert_eq!(subject.due_run_ids(at(60)).await?, [released.id]);
    let claimed = subject.claim(&subject.leases, released.id).await?;
    assert!(matches!(claimed, Claimed::Ours(..)), "{claimed:?}");
    Ok(())
}

pub async fn a_released_retry_is_still_a_retry(subject: Subject) -> Kept {
    let (_, second) = subject.second_try().await?;
    assert_eq!(
        subject
            .settle(settlement(&second, Verdict::Release))
            .await?,
        DONE
    );
    let released = Run {
        claim: None,
        state: RunState::Retrying,
        ..second
    };
    assert_eq!(subject.run(released.id).await?, released);
    Ok(())
}

pub async fn a_released_run_that_was_to_be_cancelled_ends(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let run = subject.claimed(job.id).await?;
    subject
        .store
        .cancel_run(TenantId::DEFAULT, run.id, at(60))
        .await?;
    assert_eq!(
        subject.settle(settlement(&run, Verdict::Release)).await?,
        DONE
    );
    let ended = subject.run(run.id).await?;
    assert_eq!(
        (ended.state, ended.reason),
        (RunState::Cancelled, Some(Reason::Requested))
    );
    assert_eq!(
        (ended.attempts.len(), ended.settled_at),
        (0, Some(at(0))),
        "the store's moment"
    );
    Ok(())
}

pub async fn a_released_run_that_was_marked_is_decided_again(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let run = subject.claimed(job.id).await?;
    let stands = subject.job(job.id).await?;
    let (edited, skipped) =
        stands.edited(None, model::Definition::clone(&job.def), at(57), &someone());
    let runs = crate::RunsOfChange::TakeBack;
    let change = JobChange {
        before: stands,
        after: edited.into(),
        skipped,
        runs,
    };
    subject.store.change_job(&change).await?;
    assert_eq!(subject.run(run.id).await?.mark, Some(Mark::TakeBack));
    assert_eq!(
        subject.settle(settlement(&run, Verdict::Release)).await?,
        DONE
    );
    assert_eq!(subject.runs().await?, []);
    assert_eq!(subject.job(job.id).await?.next_slot, Some(slot(60)));
    Ok(())
}

pub async fn each_settlement_of_a_batch_has_its_own_answer(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let (first, second) = (
        subject.claimed(job.id).await?,
        subject.claimed(job.id).await?,
    );
    let ready = subject.ready(job.id).await?;
    let batch = [
        settlement(&first, Verdict::Succeed),
        settlement(&ready, Verdict::Succeed),
        settlement(&first, Verdict::Succeed),
        settlement(&second, Verdict::Bury(Reason::AttemptsSpent)),
    ];
    let settled = subject.store.settle(subject.presence(), &batch).await?;
    assert_eq!(settled, [DONE, Settled::Stale, Settled::Stale, DONE]);
    assert_eq!(subject.store.settle(subject.presence(), &[]).await?, []);
    Ok(())
}
