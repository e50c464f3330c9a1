//! What must hold when answers cross: a run ends while a write that claims it is under way.

use std::sync::Arc;

use model::{Definition, Job, JobId, Run, Schedule, Slot, Target, TenantId, Verdict};

use super::*;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + millis)
}

fn board() -> Board {
    let metrics = Metrics::default();
    let origins = Arc::new(Origins::new(10, &metrics));
    Board::new(10, origins, Request::default(), &metrics)
}

fn job(number: u8) -> Arc<Job> {
    let schedule = Schedule::from(Slot(at(100)));
    let def = Definition::new(schedule, Target::http("http://localhost/").unwrap());
    let id = JobId::new(at(0), [number; 10]);
    Arc::new(Job::new(id, TenantId::DEFAULT, None, def, at(0)))
}

fn work(job: &Arc<Job>) -> Arc<Work> {
    Work::new(Run::of_slot(job, Slot(at(100))), Arc::clone(job), at(0))
}

fn ended(work: &Work) -> EndedClaim {
    EndedClaim {
        run: work.run.id,
        attempt: AttemptNo::FIRST,
        released: false,
        waits: false,
    }
}

/// The slot of a job that is being fired.
fn writing(board: &Board, job: &Arc<Job>) -> Decided {
    let work = work(job);
    board.begin_reading();
    board.insert_read(vec![Arc::clone(job)], Vec::new());
    let scope = Scope {
        age: Age::OnTime,
        now: at(60),
        lead: Duration::from_millis(50),
        has_patience: true,
        may_take: true,
    };
    assert_eq!(board.take_due(scope).fast.len(), 1);
    board.begin_writing(std::iter::once(work.run.id));
    Decided {
        job: Arc::clone(job),
        run: Some(work.run.id),
        then: Then::Claimed(work),
        next: None,
    }
}

#[test]
fn a_run_that_ended_before_its_firing_was_answered_does_not_start() {
    let (board, job) = (board(), job(1));
    let decided = writing(&board, &job);
    // The watchdog has taken it up meanwhile, and it has ended.
    board.settled(&[ended(&work(&job))], &[]);
    board.fired(vec![decided], at(90));
    assert_eq!((board.unwritten(), board.in_wheel()), (0, 0));
}

#[test]
fn a_slot_that_was_fired_is_a_claim_and_is_not_known_otherwise() {
    let (board, job) = (board(), job(1));
    let decided = writing(&board, &job);
    let run = work(&job).run.id;
    let claims = || std::iter::once((run, AttemptNo::FIRST));
    assert_eq!(board.unknown(claims()), [], "it is being written");
    board.fired(vec![decided], at(90));
    assert_eq!((board.unwritten(), board.in_wheel()), (1, 0));
    assert_eq!(board.unknown(claims()), []);
    board.settled(&[ended(&work(&job))], &[]);
    assert_eq!(board.unknown(claims()), [run]);
}

#[test]
fn what_ended_while_runs_were_claimed_does_not_start() {
    let (board, first, second) = (board(), job(1), job(2));
    board.begin_claiming_due();
    board.settled(&[ended(&work(&first))], &[]);
    board.claimed_due(vec![work(&first), work(&second)], Vec::new(), at(0));
    assert_eq!(board.unwritten(), 1);
    assert!(!board.is_claiming_due());
}

#[test]
fn a_claim_that_was_handed_back_before_it_was_answered_does_not_start() {
    let job = job(1);
    let run = [work(&job).run.id];
    let released = EndedClaim {
        released: true,
        waits: true,
        ..ended(&work(&job))
    };
    // The watchdog has taken it up, and its origin cannot be called: it waits in the store, held by nobody.
    let handed_back = |board: &Board| {
        let write = board.begin_claiming(&run);
        write.take_up(vec![work(&job)], Vec::new(), at(0)).unwrap();
        board.settled(&[released], &[]);
        assert!(!board.compare.take());
    };
    let fired = |board: &Board| {
        let decided = writing(board, &job);
        handed_back(board);
        board.fired(vec![decided], at(90));
    };
    let claimed_due = |board: &Board| {
        board.begin_claiming_due();
        handed_back(board);
        board.claimed_due(vec![work(&job)], Vec::new(), at(90));
    };
    for answered in [&fired as &dyn Fn(&Board), &claimed_due] {
        let board = board();
        answered(&board);
        assert_eq!(board.unwritten(), 0);
        assert!(board.compare.take(), "it may have been claimed again since");
    }
}

#[test]
fn a_claim_that_is_answered_twice_starts_once() {
    let (board, job) = (board(), job(1));
    let answered = || {
        board.begin_claiming_due();
        board.claimed_due(vec![work(&job)], Vec::new(), at(200));
        board.start_due(at(200), Duration::ZERO, true).0.len()
    };
    assert_eq!((answered(), answered()), (1, 0));
    assert_eq!((board.unwritten(), board.running()), (1, 1));
}

#[test]
fn what_is_beyond_a_node_is_known_until_it_is_handed_back_and_never_starts() {
    let (board, job) = (board(), job(1));
    board.begin_claiming_due();
    let back = board.claimed_due(Vec::new(), vec![work(&job)], at(0));
    assert_eq!((back.len(), board.unwritten()), (1, 1));
    let (starts, _) = board.start_due(at(200), Duration::ZERO, true);
    assert!(starts.is_empty());
    let released = EndedClaim {
        released: true,
        ..ended(&work(&job))
    };
    board.settled(&[released], &[]);
    assert_eq!(board.unwritten(), 0);
}

#[test]
fn claims_are_not_taken_up_by_a_write_that_the_board_has_lost_count_of() {
    let (board, job) = (board(), job(1));
    let run = [work(&job).run.id];
    let write = board.begin_claiming(&run);
    board.forget_taken();
    assert_eq!(write.take_up(vec![work(&job)], Vec::new(), at(0)), None);
    assert_eq!(board.unwritten(), 0);
    let write = board.begin_claiming(&run);
    let (claims, back) = write.take_up(vec![work(&job)], Vec::new(), at(0)).unwrap();
    assert_eq!((claims, back.len()), (1, 0));
    assert_eq!(board.unwritten(), 1);
}

#[test]
fn a_write_that_was_given_up_is_in_flight_no_more() {
    let (board, job) = (board(), job(1));
    let run = [work(&job).run.id];
    let claims = || run.iter().map(|run| (*run, AttemptNo::FIRST));
    let write = board.begin_claiming(&run);
    assert_eq!(board.unknown(claims()), []);
    drop(write);
    assert_eq!(board.unknown(claims()), run);
}

#[test]
fn when_fire_begins_again_plan_may_put_in_again_what_it_had_taken() {
    let (board, job) = (board(), job(1));
    writing(&board, &job);
    board.begin_reading();
    board.insert_read(vec![Arc::clone(&job)], Vec::new());
    assert_eq!(board.in_wheel(), 0, "it is being written");
    board.forget_taken();
    board.begin_reading();
    board.insert_read(vec![job], Vec::new());
    assert_eq!(board.in_wheel(), 1);
}

#[test]
fn the_end_of_a_call_does_not_touch_the_next_attempt_that_a_report_has_let_start() {
    let board = board();
    let job = job(1);
    let first = work(&job);
    let second = Work::new(
        Run {
            attempt: AttemptNo(2),
            ..first.run.clone()
        },
        Arc::clone(&job),
        at(0),
    );
    for work in [&first, &second] {
        board.state().claims.insert(Arc::clone(work), at(100));
        let (starts, _) = board.start_due(at(100), Duration::ZERO, true);
        assert_eq!(starts.len(), 1);
    }
    let calls = || board.origins.list(None, Duration::ZERO)[0].calls;
    let called = |work: &Work| {
        let call = Call {
            signal: None,
            now: at(200),
            uptime: Duration::ZERO,
            chance: &|| 0.0,
        };
        board.called(work.key(), call)
    };
    assert_eq!(calls(), 2);
    called(&first);
    assert_eq!(calls(), 1);
    assert!(!board.handing_over(first.run.id, first.run.attempt));
    let ended = |work: &Work| {
        let (verdict, _) = board.ended(work.key(), None, (|| Verdict::Succeed, at(200)), None);
        verdict
    };
    assert_eq!(ended(&first), None);
    called(&second);
    assert_eq!(calls(), 0);
    assert_eq!(ended(&second), Some(Verdict::Succeed));
}
