//! What is kept of handed-over attempts: checkpoints, logs, and the keys of their tokens.

use std::time::Duration;

use bytes::Bytes;
use model::shard::ShardSet;
use model::{Report, RunId, TenantId, Verdict, limits};

use super::handed::{done, heartbeat, lapse, reported};
use super::{Kept, Subject, at, settlement};
use crate::{
    Beaten, Claimed, HandedEnd, HandedOver, Heartbeat, Keep, Lapse, LogAppend, ReportKey, Whose,
};

pub async fn only_the_attempt_that_somebody_holds_is_current(subject: Subject) -> Kept {
    let run = subject.handed_claim(1).await?;
    let handed = subject.store.handed();
    assert!(handed.is_current(run.id, run.attempt).await?, "a node's");
    subject.hand(&run).await?;
    assert!(
        handed.is_current(run.id, run.attempt).await?,
        "the outside's"
    );
    let next = run.attempt.next();
    assert!(!handed.is_current(run.id, next).await?);
    assert!(
        !handed
            .is_current(RunId::from_bytes([9; 16]), run.attempt)
            .await?
    );
    let end = subject
        .report(reported(&run, Report::failed("no")), 90)
        .await?;
    assert!(matches!(end, HandedEnd::Done(_)), "{end:?}");
    for attempt in [run.attempt, next] {
        let is_current = handed.is_current(run.id, attempt).await?;
        assert!(!is_current, "nobody has claimed the next one");
    }
    Ok(())
}

pub async fn a_checkpoint_stays_for_the_next_attempt(subject: Subject) -> Kept {
    let run = subject.handed(1).await?;
    let handed = subject.store.handed();
    assert_eq!(handed.get_checkpoint(run.id).await?, None);
    for (now, text) in [(70, &b"one"[..]), (80, b"two\0")] {
        let beat = Heartbeat {
            checkpoint: Some(Bytes::from_static(text)),
            ..heartbeat(&run)
        };
        handed.heartbeat(&[beat], at(now)).await?;
    }
    subject.beat_at(&run, 90).await?;
    let kept = Some(Bytes::from_static(b"two\0"));
    assert_eq!(handed.get_checkpoint(run.id).await?, kept);
    let silent = subject.lapsing(300).await?;
    let lapses: Vec<Lapse> = silent.iter().map(lapse).collect();
    // Its answer may be lost: then it comes again.
    for now in [300, 301] {
        handed.lapse(&subject.leases, &lapses, at(now)).await?;
        assert_eq!(handed.get_checkpoint(run.id).await?, kept);
    }
    let Claimed::Ours(second, _) = subject.claim(&subject.leases, run.id).await? else {
        return Err("the second attempt is ours".into());
    };
    assert_eq!(subject.hand(&second).await?, HandedOver::Done);
    assert_eq!(handed.get_checkpoint(run.id).await?, kept);
    subject
        .report(reported(&second, Report::succeeded()), 310)
        .await?;
    assert_eq!(handed.get_checkpoint(run.id).await?, None);
    Ok(())
}

pub async fn a_run_is_somebodys_as_long_as_it_lives(subject: Subject) -> Kept {
    let run = subject.handed(1).await?;
    let handed = subject.store.handed();
    let none = RunId::from_bytes([9; 16]);
    let whose = Whose {
        tenant: run.tenant,
        job: run.job,
        version: run.version,
    };
    let found = handed.whose(&[none, run.id]).await?;
    assert_eq!(found, [None, Some(whose)]);
    subject
        .report(reported(&run, Report::succeeded()), 90)
        .await?;
    assert_eq!(handed.whose(&[run.id]).await?, [None]);
    assert_eq!(handed.whose(&[]).await?, []);
    Ok(())
}

pub async fn a_log_keeps_its_head_and_its_tail(subject: Subject) -> Kept {
    let run = subject.handed(1).await?;
    let handed = subject.store.handed();
    let append = |bytes: Vec<u8>| LogAppend {
        run: run.id,
        attempt: run.attempt,
        bytes: Bytes::from(bytes),
    };
    let (tenant, mut expected) = (TenantId::DEFAULT, Vec::new());
    assert_eq!(handed.get_log(tenant, run.id).await?, None);
    for part in [&b"begun\n"[..], b"\0\xff", b"more\n"] {
        let answers = handed.append_log(&[append(part.to_vec())]).await?;
        assert!(matches!(answers[..], [Beaten::Done { cancel: false, .. }]));
        expected.extend_from_slice(part);
    }
    let log = handed.get_log(tenant, run.id).await?.ok_or("no log")?;
    assert_eq!(log.read(0).bytes, Bytes::from(expected));
    for _ in 0..4 {
        let much = vec![b'x'; limits::LOG_APPEND_MAX];
        handed.append_log(&[append(much)]).await?;
    }
    let log = handed.get_log(tenant, run.id).await?.ok_or("no log")?;
    assert!(log.head.starts_with(b"begun\n"));
    assert_eq!(log.tail.len(), limits::LOG_TAIL_MAX);
    let other = TenantId(uuid::Uuid::from_u128(7));
    assert_eq!(handed.get_log(other, run.id).await?, None);
    subject
        .report(reported(&run, Report::succeeded()), 90)
        .await?;
    let answers = handed.append_log(&[append(b"late".to_vec())]).await?;
    assert!(
        matches!(answers[..], [Beaten::Ended(Some(_))]),
        "{answers:?}"
    );
    assert_eq!(handed.get_log(tenant, run.id).await?, Some(log));
    Ok(())
}

pub async fn keys_of_tokens_read_back_whole(subject: Subject) -> Kept {
    let handed = subject.store.handed();
    assert_eq!(handed.report_keys().await?, []);
    let key = |id: &str, secs| ReportKey {
        id: id.to_owned(),
        created_at: at(secs),
        master_key: None,
        bytes: vec![0, 255, 7],
    };
    let (first, second) = (key("one", 1), key("two", 2));
    handed.put_report_key(&first).await?;
    handed.put_report_key(&second).await?;
    let wrapped = ReportKey {
        master_key: Some("164febdf".to_owned()),
        bytes: vec![1],
        ..first
    };
    handed.put_report_key(&wrapped).await?;
    assert_eq!(handed.report_keys().await?, [second, wrapped]);
    Ok(())
}

pub async fn opening_again_keeps_what_is_handed_over(mut subject: Subject) -> Kept {
    let run = subject.handed(1).await?;
    let before = (subject.run(run.id).await?, subject.kept_of(run.id).await?);
    let Some(reopen) = subject.reopen.clone() else {
        return Ok(());
    };
    subject.store = reopen(subject.store).await?;
    let after = (subject.run(run.id).await?, subject.kept_of(run.id).await?);
    assert_eq!(after, before);
    assert_eq!(subject.store.orphans(&ShardSet::ALL, 9).await?, []);
    assert_eq!(subject.beat_at(&run, 100).await?, done(160));
    Ok(())
}

pub async fn what_is_kept_of_runs_that_are_over_goes(subject: Subject) -> Kept {
    let run = subject.handed(1).await?;
    let handed = subject.store.handed();
    let append = LogAppend {
        run: run.id,
        attempt: run.attempt,
        bytes: Bytes::from_static(b"said"),
    };
    handed.append_log(&[append]).await?;
    subject
        .report(reported(&run, Report::failed("no")), 90)
        .await?;
    assert!(subject.kept_of(run.id).await?.is_some(), "the run goes on");
    let Claimed::Ours(second, _) = subject.claim(&subject.leases, run.id).await? else {
        return Err("the second attempt is ours".into());
    };
    // Answered at once, as any other.
    subject
        .settle(settlement(&second, Verdict::Succeed))
        .await?;
    let keep = |secs, history| Keep {
        now: at(secs),
        history: Duration::from_secs(history),
        finished: Duration::from_secs(1_000_000),
    };
    subject.store.retain(&keep(100, 1_000_000)).await?;
    assert_eq!(subject.kept_of(run.id).await?, None);
    let tenant = TenantId::DEFAULT;
    assert!(handed.get_log(tenant, run.id).await?.is_some());
    Ok(())
}
