use std::time::Duration;

use model::{AttemptNo, Report, RunKind};

use super::*;
use crate::code::{read_slot, slot_column};

fn run() -> Run {
    let at = Timestamp::from_millis(1_700_000_000_000);
    let def = model::Definition::new(
        model::Schedule::from(Slot(at)),
        model::Target::http("http://localhost/").unwrap(),
    );
    let job = Job::new(JobId::new(at, [1; 10]), TenantId::DEFAULT, None, def, at);
    Run::of_slot(&job, Slot(at))
}

#[test]
fn the_attempt_that_ended_a_run_is_in_columns_and_others_are_not() {
    let at = Timestamp::from_millis(1_700_000_000_500);
    let attempt = |no| Attempt::new(AttemptNo(no), Some(at), at, Report::succeeded());
    let ended = Run {
        dispatched_at: Some(at),
        settled_at: Some(at),
        ..run()
    };
    let row = EndedRow::new(Run {
        attempts: vec![attempt(1)],
        ..ended.clone()
    })
    .unwrap();
    assert_eq!((row.last, row.attempts), (Some(attempt(1)), None));
    let two = vec![attempt(1), attempt(2)];
    let row = EndedRow::new(Run {
        attempt: AttemptNo(2),
        attempts: two,
        ..ended.clone()
    })
    .unwrap();
    assert_eq!((row.last, row.attempts.is_some()), (Some(attempt(2)), true));
    // Cancelled while it waited for a second attempt: the first did not end it.
    let later = Some(at.plus(Duration::from_secs(1)));
    let waited = Run {
        attempt: AttemptNo(2),
        attempts: vec![attempt(1)],
        settled_at: later,
        ..ended
    };
    let row = EndedRow::new(waited).unwrap();
    assert_eq!((row.last, row.attempts.is_some()), (None, true));
}

#[test]
fn a_slot_that_follows_from_the_id_takes_no_room() {
    assert_eq!(slot_column(&run()), None);
    let replay = Run {
        kind: RunKind::Replay,
        ..run()
    };
    assert_eq!(slot_column(&replay), Some(1_700_000_000_000));
    assert_eq!(read_slot(run().id, RunKind::Slot, None), run().slot);
    assert_eq!(read_slot(run().id, RunKind::Manual, None), None);
}
