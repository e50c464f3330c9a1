//! Alerts: rules, the ends that they may be about, and where each alert stands.

use std::sync::Arc;
use std::time::Duration;

use model::view::QueueRun;
use model::{
    Alert, AlertMove, AlertName, AlertState, Cause, Channel, Condition, Job, JobId, Reason, Run,
    RunId, RunKind, RunState, Scope, TenantId, Timestamp, Verdict, Version, limits,
};

use super::{DONE, Kept, Subject, at, job, once, settlement};
use crate::{AlertMoves, AlertPut, AlertsMoved, BoxError};

const ME: TenantId = TenantId::DEFAULT;
const STRANGER: TenantId = TenantId(uuid::Uuid::from_u128(7));

/// A rule that says everything there is to say.
fn alert(name: &str, scope: Scope) -> Result<Alert, BoxError> {
    Ok(Alert {
        tenant: ME,
        name: AlertName::new(name)?,
        version: Version::FIRST,
        scope,
        condition: Condition::Skipped(3),
        channel: Channel::Slack,
        url: "https://ops.example.com/\"ö\"".to_owned(),
        job: JobId::new(at(0), [9; 10]),
        recovered: false,
        repeat: Some(Duration::from_secs(3_600)),
        enabled: true,
        muted_until: Some(at(50)),
        created_at: at(1),
        updated_at: at(2),
    })
}

fn state(alert: &str, job: JobId, now: i64) -> Result<AlertState, BoxError> {
    Ok(AlertState {
        tenant: ME,
        alert: AlertName::new(alert)?,
        job,
        step: 0,
        firing: true,
        since: at(now),
        run: RunId::least_at(at(now)),
        state: RunState::Dead,
        reason: Some(Reason::Refused),
        at: at(now),
        causes: 3,
        sent: 2,
        send_at: Some(at(now + 5)),
        ended: Some((RunId::least_at(at(now + 9)), at(now + 10))),
    })
}

impl Subject {
    async fn rule(&self, alert: &Alert) -> Kept {
        let put = self.store.alerts().put_alert(alert, None).await?;
        assert_eq!(put, AlertPut::Done);
        Ok(())
    }

    async fn causes(&self) -> Result<Vec<Cause>, BoxError> {
        Ok(self.store.alerts().alert_causes(100).await?)
    }

    async fn moved(&self, moves: AlertMoves) -> Result<AlertsMoved, BoxError> {
        Ok(self.store.alerts().move_alerts(&moves).await?)
    }

    /// A run of a job that ends as it is said.
    async fn comes_to(&self, job: &Job, verdict: Verdict) -> Result<Run, BoxError> {
        let run = self.claimed(job.id).await?;
        assert_eq!(self.settle(settlement(&run, verdict)).await?, DONE);
        self.run(run.id).await
    }

    /// The job that delivers.
    async fn channel(&self) -> Result<Arc<Job>, BoxError> {
        let job = Job {
            tenant: TenantId::SYSTEM,
            ..once(9, 1_000_000)?
        };
        self.put(job).await
    }
}

fn delivery(channel: &Job, nonce: u64) -> QueueRun {
    let id = RunId::of_request(channel.id, at(7), nonce);
    QueueRun::alone(Run {
        payload: Some("{}".into()),
        ..Run::of_request(channel, id, RunKind::Manual, at(7))
    })
}

fn only(state: AlertState) -> AlertMoves {
    AlertMoves {
        moves: vec![AlertMove::to(state)],
        ..AlertMoves::default()
    }
}

pub async fn an_alert_rule_reads_back_whole(subject: Subject) -> Kept {
    let alerts = subject.store.alerts();
    let job = job(1)?;
    let scopes = [
        Scope::Tenant,
        Scope::Job(job.id),
        Scope::Owner("Ana Ö.".to_owned()),
        Scope::Label("team".to_owned(), "ö=ps".to_owned()),
    ];
    for (name, scope) in ["b", "a", "c", "B"].into_iter().zip(scopes) {
        subject.rule(&alert(name, scope)?).await?;
    }
    let names = |all: &[Alert]| {
        let names = all.iter().map(|it| it.name.to_string());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&alerts.list_alerts(ME, None, 9).await?), "B a b c");
    let after = AlertName::new("a")?;
    let page = alerts.list_alerts(ME, Some(&after), 1).await?;
    assert_eq!(page, [alert("b", Scope::Tenant)?]);
    assert_eq!(alerts.list_alerts(STRANGER, None, 9).await?, []);
    assert_eq!(alerts.get_alert(STRANGER, &after).await?, None);
    // It is changed over the version that stands, and over no other.
    let edited = Alert {
        version: Version(2),
        condition: Condition::Missed,
        enabled: false,
        repeat: None,
        muted_until: None,
        channel: Channel::Webhook,
        ..alert("a", Scope::Tenant)?
    };
    for before in [None, Some(Version(2))] {
        let put = alerts.put_alert(&edited, before).await?;
        assert_eq!(put, AlertPut::Conflict);
    }
    let put = alerts.put_alert(&edited, Some(Version::FIRST)).await?;
    assert_eq!(put, AlertPut::Done);
    assert_eq!(alerts.get_alert(ME, &after).await?, Some(edited));
    assert!(!alerts.drop_alert(ME, &after, Version::FIRST).await?);
    assert!(alerts.drop_alert(ME, &after, Version(2)).await?);
    assert_eq!(alerts.get_alert(ME, &after).await?, None);
    let strange = Alert {
        tenant: STRANGER,
        ..alert("a", Scope::Tenant)?
    };
    let put = alerts.put_alert(&strange, None).await?;
    assert_eq!(put, AlertPut::NoTenant);
    Ok(())
}

pub async fn so_many_alert_rules_are_there_and_no_more(subject: Subject) -> Kept {
    for n in 0..limits::ALERTS_MAX {
        subject
            .rule(&alert(&format!("a{n}"), Scope::Tenant)?)
            .await?;
    }
    let more = alert("more", Scope::Tenant)?;
    let put = subject.store.alerts().put_alert(&more, None).await?;
    assert_eq!(put, AlertPut::Full);
    Ok(())
}

pub async fn an_end_is_noted_as_long_as_a_rule_may_be_about_it(subject: Subject) -> Kept {
    let watched = subject.put(job(1)?).await?;
    let other = subject.put(job(2)?).await?;
    // Nobody wants to hear of anything.
    subject
        .comes_to(&watched, Verdict::Bury(Reason::Refused))
        .await?;
    assert_eq!(subject.causes().await?, []);
    subject.rule(&alert("a", Scope::Job(watched.id))?).await?;
    subject
        .comes_to(&other, Verdict::Bury(Reason::Refused))
        .await?;
    subject.comes_to(&watched, Verdict::Succeed).await?;
    subject
        .comes_to(&watched, Verdict::Cancel(Reason::Requested))
        .await?;
    assert_eq!(subject.causes().await?, []);
    let dead = subject
        .comes_to(&watched, Verdict::Bury(Reason::Refused))
        .await?;
    let [cause] = &subject.causes().await?[..] else {
        return Err("one cause".into());
    };
    let wanted = Cause::of(&dead).map(|it| Cause { no: cause.no, ..it });
    assert_eq!(Some(cause), wanted.as_ref());
    // Of all jobs, in the order in which they were written.
    subject.rule(&alert("b", Scope::Tenant)?).await?;
    subject
        .comes_to(&other, Verdict::Bury(Reason::AttemptsSpent))
        .await?;
    let causes = subject.causes().await?;
    let jobs: Vec<JobId> = causes.iter().map(|cause| cause.job).collect();
    assert_eq!(jobs, [watched.id, other.id]);
    assert_eq!(subject.store.alerts().alert_causes(1).await?, causes[..1]);
    let alerts = subject.store.alerts();
    for name in ["a", "b"] {
        let name = AlertName::new(name)?;
        assert!(alerts.drop_alert(ME, &name, Version::FIRST).await?);
    }
    subject
        .comes_to(&other, Verdict::Bury(Reason::Refused))
        .await?;
    assert_eq!(subject.causes().await?.len(), 2);
    Ok(())
}

pub async fn an_alert_is_moved_over_the_step_before_it(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    subject.rule(&alert("a", Scope::Tenant)?).await?;
    subject
        .comes_to(&job, Verdict::Bury(Reason::Refused))
        .await?;
    let no = subject.causes().await?[0].no;
    let begins = AlertMoves {
        causes: vec![no],
        ..only(state("a", job.id, 1)?)
    };
    assert_eq!(subject.moved(begins.clone()).await?, AlertsMoved::Done);
    assert_eq!(subject.causes().await?, []);
    // Again: the cause is gone, and the alert is at another step.
    assert_eq!(subject.moved(begins).await?, AlertsMoved::Stale);
    let first = AlertState {
        step: 1,
        ..state("a", job.id, 1)?
    };
    let alerts = subject.store.alerts();
    let key = |name: &str| Ok::<_, BoxError>((ME, AlertName::new(name)?, job.id));
    let found = alerts.alert_states(&[key("b")?, key("a")?]).await?;
    assert_eq!(found, [None, Some(first.clone())]);
    let second = AlertState {
        firing: false,
        reason: None,
        send_at: None,
        ended: None,
        ..first.clone()
    };
    assert_eq!(
        subject.moved(only(second.clone())).await?,
        AlertsMoved::Done
    );
    assert_eq!(
        subject.moved(only(second.clone())).await?,
        AlertsMoved::Stale
    );
    let name = AlertName::new("a")?;
    let stands = AlertState { step: 2, ..second };
    let all = alerts.alerts_of(ME, &name, None, 9).await?;
    assert_eq!(all, [stands]);
    assert_eq!(alerts.alerts_of(ME, &name, Some(job.id), 9).await?, []);
    Ok(())
}

pub async fn moves_are_written_together_or_not_at_all(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let begins = only(state("a", job.id, 1)?);
    assert_eq!(subject.moved(begins).await?, AlertsMoved::Done);
    let stands = AlertState {
        step: 1,
        ..state("a", job.id, 1)?
    };
    let name = AlertName::new("a")?;
    let all = async || {
        let alerts = subject.store.alerts();
        Ok::<_, BoxError>(alerts.alerts_of(ME, &name, None, 9).await?)
    };
    let gone = AlertMoves {
        moves: vec![
            AlertMove::end(stands.clone()),
            AlertMove::to(state("b", job.id, 1)?),
        ],
        causes: vec![7],
        run: None,
    };
    assert_eq!(subject.moved(gone).await?, AlertsMoved::Stale);
    assert_eq!(all().await?, std::slice::from_ref(&stands));
    let other = AlertState {
        step: 7,
        ..state("b", job.id, 1)?
    };
    let other = AlertMoves {
        moves: vec![AlertMove::end(stands.clone()), AlertMove::to(other)],
        ..AlertMoves::default()
    };
    assert_eq!(subject.moved(other).await?, AlertsMoved::Stale);
    assert_eq!(all().await?, std::slice::from_ref(&stands));
    let over = AlertMoves {
        moves: vec![AlertMove::end(stands)],
        ..AlertMoves::default()
    };
    assert_eq!(subject.moved(over.clone()).await?, AlertsMoved::Done);
    assert_eq!(subject.moved(over).await?, AlertsMoved::Stale);
    assert_eq!(all().await?, []);
    Ok(())
}

pub async fn alerts_are_due_in_the_order_of_their_moments(subject: Subject) -> Kept {
    let [one, two] = [job(1)?, job(2)?];
    for (name, id, now) in [("b", one.id, 3), ("a", one.id, 2), ("a", two.id, 1)] {
        let moved = subject.moved(only(state(name, id, now)?)).await?;
        assert_eq!(moved, AlertsMoved::Done);
    }
    let quiet = AlertState {
        send_at: None,
        ..state("c", one.id, 0)?
    };
    assert_eq!(subject.moved(only(quiet)).await?, AlertsMoved::Done);
    let due = async |now: i64, limit| {
        let due = subject.store.alerts().due_alerts(at(now), limit).await?;
        let names = due.iter().map(|it| (it.alert.to_string(), it.job));
        Ok::<_, BoxError>(names.collect::<Vec<_>>())
    };
    assert_eq!(due(5, 9).await?, []);
    let all = [("a", two.id), ("a", one.id), ("b", one.id)];
    let all = all.map(|(name, job)| (name.to_owned(), job));
    assert_eq!(due(8, 9).await?, all);
    assert_eq!(due(8, 2).await?, all[..2]);
    Ok(())
}

pub async fn a_delivery_is_inserted_with_the_move_or_not_at_all(subject: Subject) -> Kept {
    let channel = subject.channel().await?;
    let job = job(1)?;
    let fires = AlertMoves {
        run: Some(delivery(&channel, 1)),
        ..only(state("a", job.id, 1)?)
    };
    assert_eq!(subject.moved(fires.clone()).await?, AlertsMoved::Done);
    let page = crate::Page {
        before: None,
        limit: 9,
    };
    let filter = crate::RunFilter::default();
    let runs = async || {
        subject
            .store
            .list_runs(TenantId::SYSTEM, &filter, page)
            .await
    };
    let [run] = &runs().await?[..] else {
        return Err("one delivery".into());
    };
    assert_eq!(run.state, RunState::Ready);
    assert_eq!(run.payload.as_deref(), Some(&b"{}"[..]));
    // Of a move that is stale nothing comes, under whatever name.
    let again = AlertMoves {
        run: Some(delivery(&channel, 2)),
        ..fires
    };
    assert_eq!(subject.moved(again).await?, AlertsMoved::Stale);
    assert_eq!(runs().await?.len(), 1);
    // And without the job that delivers, nothing is moved.
    let gone = Job {
        id: JobId::new(at(0), [8; 10]),
        ..Job::clone(&channel)
    };
    let lost = AlertMoves {
        run: Some(delivery(&gone, 3)),
        ..only(state("b", job.id, 1)?)
    };
    assert_eq!(subject.moved(lost).await?, AlertsMoved::Missing);
    let name = AlertName::new("b")?;
    let states = subject.store.alerts().alerts_of(ME, &name, None, 9);
    assert_eq!(states.await?, []);
    Ok(())
}

pub async fn an_alert_has_recovered_when_a_later_run_has_succeeded(subject: Subject) -> Kept {
    let watched = subject.put(job(1)?).await?;
    let other = subject.put(job(2)?).await?;
    subject.comes_to(&watched, Verdict::Succeed).await?;
    let dead = subject
        .comes_to(&watched, Verdict::Bury(Reason::Refused))
        .await?;
    let fires = AlertState {
        run: dead.id,
        at: dead.settled_at.unwrap_or(Timestamp::MIN),
        ..state("a", watched.id, 1)?
    };
    let quiet = AlertState {
        firing: false,
        ..state("b", watched.id, 1)?
    };
    for state in [fires, quiet, state("c", other.id, 1)?] {
        assert_eq!(subject.moved(only(state)).await?, AlertsMoved::Done);
    }
    let alerts = subject.store.alerts();
    let firing = async || {
        let firing = alerts.firing_alerts(None, 9).await?;
        let ends = firing.iter().map(|(state, by)| (state.job, by.is_some()));
        Ok::<_, BoxError>(ends.collect::<Vec<_>>())
    };
    assert_eq!(firing().await?, [(watched.id, false), (other.id, false)]);
    subject
        .comes_to(&watched, Verdict::Bury(Reason::Refused))
        .await?;
    assert_eq!(firing().await?, [(watched.id, false), (other.id, false)]);
    let healed = subject.comes_to(&watched, Verdict::Succeed).await?;
    assert_eq!(firing().await?, [(watched.id, true), (other.id, false)]);
    let page = alerts.firing_alerts(None, 1).await?;
    let [(state, by)] = &page[..] else {
        return Err("one alert".into());
    };
    assert_eq!(*by, healed.settled_at.map(|at| (healed.id, at)));
    let after = (state.tenant, state.alert.clone(), state.job);
    let rest = alerts.firing_alerts(Some(&after), 9).await?;
    let jobs: Vec<JobId> = rest.iter().map(|(state, _)| state.job).collect();
    assert_eq!(jobs, [other.id]);
    Ok(())
}
