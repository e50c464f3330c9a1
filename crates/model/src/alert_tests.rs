use super::*;
use crate::id::TenantId;
use crate::run::Stretch;
use crate::time::Slot;

fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + secs * 1_000)
}

fn job() -> JobId {
    JobId::new(at(0), [7; 10])
}

fn alert() -> Alert {
    Alert {
        tenant: TenantId::DEFAULT,
        name: AlertName::new("nightly").unwrap(),
        version: Version::FIRST,
        scope: Scope::Tenant,
        condition: Condition::Dead,
        channel: Channel::Webhook,
        url: "http://127.0.0.1/".to_owned(),
        job: JobId::new(at(0), [8; 10]),
        recovered: true,
        repeat: Some(Duration::from_secs(60)),
        enabled: true,
        muted_until: None,
        created_at: at(0),
        updated_at: at(0),
    }
}

fn cause(secs: i64, state: RunState, reason: Reason) -> Cause {
    Cause {
        no: 1,
        tenant: TenantId::DEFAULT,
        job: job(),
        run: RunId::for_slot(job(), Slot(at(secs))),
        state,
        reason: Some(reason),
        count: 1,
        at: at(secs),
    }
}

fn dead(secs: i64) -> Cause {
    cause(secs, RunState::Dead, Reason::AttemptsSpent)
}

#[test]
fn it_is_sent_once_when_it_begins_and_again_after_the_repeat_interval() {
    let alert = alert();
    let fires = AlertState::after(None, &alert, &dead(1), at(2));
    assert_eq!((fires.send_at, fires.causes), (Some(at(2)), 1));
    let sent = fires.after_sent(&alert, at(2)).unwrap();
    assert_eq!((sent.send_at, sent.sent), (Some(at(62)), 1));
    // A further cause is counted, and sends nothing by itself.
    let more = AlertState::after(Some(sent.clone()), &alert, &dead(5), at(6));
    assert_eq!(
        (more.send_at, more.causes, more.at),
        (Some(at(62)), 2, at(5))
    );
    // The same one, noted again, is not.
    assert_eq!(
        AlertState::after(Some(more.clone()), &alert, &dead(5), at(7)),
        more
    );
    let once = Alert {
        repeat: None,
        ..alert
    };
    assert_eq!(sent.after_sent(&once, at(3)).unwrap().send_at, None);
}

#[test]
fn it_recovers_once_and_only_if_it_was_sent_before() {
    let alert = alert();
    let by = (RunId::for_slot(job(), Slot(at(3))), at(4));
    let fires = AlertState::after(None, &alert, &dead(1), at(2));
    assert!(fires.is_new(at(2)));
    assert_eq!(fires.clone().recovered(Some(&alert), by, at(4)), None);
    let sent = fires.after_sent(&alert, at(2)).unwrap();
    assert!(!sent.is_new(at(2)));
    assert_eq!(sent.clone().recovered(None, by, at(4)), None);
    let over = sent.recovered(Some(&alert), by, at(5)).unwrap();
    assert_eq!(
        (over.firing, over.send_at, over.ended),
        (false, Some(at(5)), Some(by))
    );
    // One that fails again before that was sent fires again.
    let again = AlertState::after(Some(over.clone()), &alert, &dead(6), at(6));
    assert_eq!((again.firing, again.sent, again.since), (true, 0, at(6)));
    assert_eq!(over.after_sent(&alert, at(5)), None);
}

#[test]
fn conditions_fit_what_they_say() {
    let check = |cause: &Cause, fits: [bool; 4]| {
        let all = [
            Condition::Failed,
            Condition::Dead,
            Condition::Missed,
            Condition::Skipped(1),
        ];
        assert_eq!(all.map(|it| it.fits(cause)), fits, "{cause:?}");
    };
    check(&dead(1), [true, true, false, false]);
    let missed = cause(1, RunState::Dead, Reason::Missed);
    check(&missed, [true, true, true, false]);
    let missed = cause(1, RunState::Skipped, Reason::Missed);
    check(&missed, [false, false, true, true]);
    let cancelled = cause(1, RunState::Cancelled, Reason::Lost);
    check(&cancelled, [true, false, false, false]);
    let skipped = cause(1, RunState::Skipped, Reason::Overlap);
    check(&skipped, [false, false, false, true]);
}

fn run(secs: i64, state: RunState, reason: Option<Reason>) -> Run {
    use crate::schedule::Schedule;
    use crate::target::{HttpTarget, Target};
    let target = Target::Http(HttpTarget::new("http://127.0.0.1/", None).unwrap());
    let def = crate::job::Definition::new(Schedule::from(Slot(at(0))), target);
    let job = Job::new(job(), TenantId::DEFAULT, None, def, at(0));
    Run {
        state,
        reason,
        settled_at: Some(at(secs)),
        ..Run::of_slot(&job, Slot(at(secs)))
    }
}

#[test]
fn what_somebody_wanted_causes_nothing() {
    assert_eq!(Cause::of(&run(1, RunState::Succeeded, None)), None);
    for reason in [
        Reason::Paused,
        Reason::Calendar,
        Reason::Requested,
        Reason::Replaced,
    ] {
        assert_eq!(Cause::of(&run(1, RunState::Skipped, Some(reason))), None);
    }
    assert!(Cause::of(&run(1, RunState::Dead, Some(Reason::Refused))).is_some());
}

#[test]
fn slots_in_a_row_are_counted_back_to_the_last_that_ran() {
    let skip = |secs| run(secs, RunState::Skipped, Some(Reason::Overlap));
    let several = Run {
        stretch: Some(Stretch {
            first: Slot(at(3)),
            last: Slot(at(5)),
            count: 3,
        }),
        ..skip(3)
    };
    let ran = run(2, RunState::Succeeded, None);
    let live = run(9, RunState::Ready, None);
    let paused = run(7, RunState::Skipped, Some(Reason::Paused));
    let runs = [live, skip(8), paused, several, ran, skip(1)];
    assert_eq!(skipped_in_row(&runs), 4);
}

#[test]
fn a_delivery_has_one_name() {
    let state = AlertState::after(None, &alert(), &dead(1), at(2));
    let name = |step| {
        let state = AlertState {
            step,
            ..state.clone()
        };
        RunId::of_delivery(job(), at(2), [&state].into_iter())
    };
    assert_eq!(name(1), name(1));
    assert_ne!(name(1), name(2));
}
