use std::slice::from_ref;
use std::sync::Arc;

use super::*;
use crate::id::{JobId, TenantId};
use crate::job::Definition;
use crate::run::Reason;
use crate::schedule::samples::{at, cron, every};
use crate::target::Target;

fn job(schedule: Schedule) -> Job {
    let def = Definition::new(schedule, Target::http("http://localhost/").unwrap());
    let now = at("2026-06-01T00:00:00Z");
    Job::new(JobId::new(now, [7; 10]), TenantId::DEFAULT, None, def, now)
}

fn slot(text: &str) -> Slot {
    Slot(at(text))
}

fn skip(slots: Stretch) -> Skip {
    Skip {
        slots,
        reason: Reason::Paused,
        note: Some("holidays".to_owned()),
        actor: Arc::from("ana"),
    }
}

/// All slots between two moments, as one.
fn whole(job: &Job, first: &str, until: &str) -> Skip {
    skip(job.def.schedule.stretch(slot(first), at(until)))
}

fn count(skips: &[Skip]) -> u64 {
    skips.iter().map(|skip| skip.slots.count).sum()
}

#[test]
fn what_is_skipped_is_cut_at_midnight() {
    let job = job(cron("0 */6 * * *", "UTC"));
    let one = whole(&job, "2026-06-02T12:00:00Z", "2026-06-04T06:30:00Z");
    let pieces = job.by_day(vec![one.clone()]);
    let slots: Vec<_> = pieces
        .iter()
        .map(|it| (it.slots.first, it.slots.last, it.slots.count))
        .collect();
    let expected = [
        ("2026-06-02T12:00:00Z", "2026-06-02T18:00:00Z", 2),
        ("2026-06-03T00:00:00Z", "2026-06-03T18:00:00Z", 4),
        ("2026-06-04T00:00:00Z", "2026-06-04T06:00:00Z", 2),
    ];
    assert_eq!(slots, expected.map(|(a, b, n)| (slot(a), slot(b), n)));
    for piece in &pieces {
        let slots = one.slots;
        assert_eq!(
            Skip {
                slots,
                ..piece.clone()
            },
            one
        );
    }
}

#[test]
fn what_lies_within_a_day_stays_as_it_is() {
    let job = job(every("PT1M", "2026-06-01T00:00:00Z", "UTC"));
    let day = whole(&job, "2026-06-02T00:00:00Z", "2026-06-02T23:59:59Z");
    assert_eq!(day.slots.count, 1_440);
    assert_eq!(job.by_day(vec![day.clone()]), [day]);
    assert_eq!(job.by_day(Vec::new()), []);
    let rests = Stretch::one(slot("2026-06-02T00:00:30Z"));
    assert_eq!(job.by_day(vec![skip(rests)]), [skip(rests)]);
}

#[test]
fn days_without_a_slot_have_no_piece() {
    let job = job(cron("0 12 * * MON", "UTC"));
    let month = whole(&job, "2026-06-01T12:00:00Z", "2026-06-30T00:00:00Z");
    let pieces = job.by_day(vec![month]);
    assert_eq!((pieces.len(), count(&pieces)), (5, 5));
}

#[test]
fn years_are_split_by_days_only_at_their_end() {
    let job = job(every("PT1H", "2026-06-01T00:00:00Z", "UTC"));
    let years = whole(&job, "2026-06-01T01:00:00Z", "2036-06-01T00:30:00Z");
    let pieces = job.by_day(vec![years.clone()]);
    assert_eq!(pieces.len() as u64, limits::SKIP_DAYS_MAX);
    assert_eq!(count(&pieces), years.slots.count);
    assert!(pieces[0].slots.count > 10 * 365);
    for pair in pieces.windows(2) {
        let next = job.def.schedule.next_after(pair[0].slots.last.0);
        assert_eq!(next, Some(pair[1].slots.first));
        let day = |slot: Slot| day_of(slot.0);
        assert_eq!(day(pair[1].slots.first), day(pair[1].slots.last));
    }
}

#[test]
fn all_that_is_skipped_together_has_one_bound() {
    let job = job(every("PT6H", "2026-06-01T00:00:00Z", "UTC"));
    let schedule = &job.def.schedule;
    let mut skips = Vec::new();
    let mut next = schedule.next_after(at("2026-06-01T00:00:00Z"));
    for _ in 0..limits::SKIPS_MAX {
        let first = next.unwrap();
        let until = first.0.plus(Duration::from_secs(100 * 24 * 3_600));
        let stretch = schedule.stretch(first, until);
        next = schedule.next_after(stretch.last.0);
        skips.push(skip(stretch));
    }
    let pieces = job.by_day(skips.clone());
    assert_eq!(count(&pieces), count(&skips));
    assert!(pieces.len() <= limits::SKIPS_MAX + limits::SKIP_DAYS_MAX as usize);
}

#[test]
fn a_change_writes_what_the_old_schedule_passed_by_its_days() {
    let hourly = job(cron("0 * * * *", "UTC"));
    // Nothing was decided since midnight: it all belongs to the pause.
    let now = at("2026-06-01T20:30:00Z");
    let (paused, _) = hourly.paused(now, None, &Arc::from("ana"));
    let daily = Definition {
        schedule: cron("0 12 * * *", "UTC"),
        ..Definition::clone(&paused.def)
    };
    let now = at("2026-06-03T02:30:00Z");
    let (_, skips) = paused.edited(None, daily, now, &Arc::from("ana"));
    let counts: Vec<u64> = skips.iter().map(|skip| skip.slots.count).collect();
    assert_eq!(counts, [23, 24, 3]);
    let (_, skips) = paused.resumed(now, false, &Arc::from("ana"));
    assert_eq!(skips.len(), 3);
    let (_, skips) = paused.deleted(now, &Arc::from("ana"));
    assert_eq!(skips.len(), 3);
}

#[test]
fn an_entry_is_written_around_slots_that_have_a_run() {
    let job = job(every("PT10M", "2026-06-01T00:00:00Z", "UTC"));
    let schedule = &job.def.schedule;
    let hour = whole(&job, "2026-06-02T00:00:00Z", "2026-06-02T01:00:00Z");
    let entry = Run::skipped(&job, &hour, at("2026-06-02T02:00:00Z"));
    let around = |ran: &[Slot]| entry.clone().around(schedule, ran);
    assert_eq!(around(&[]), from_ref(&entry));
    let elsewhere = [slot("2026-06-01T00:00:00Z"), slot("2026-06-03T00:00:00Z")];
    assert_eq!(around(&elsewhere), from_ref(&entry));
    let ran = [
        "2026-06-02T00:00:00Z",
        "2026-06-02T00:30:00Z",
        "2026-06-02T00:40:00Z",
    ]
    .map(slot);
    let left = around(&ran);
    let recorded: Vec<_> = left
        .iter()
        .map(|it| (it.slot.unwrap(), it.stretch.map_or(1, |it| it.count)))
        .collect();
    let expected = [("2026-06-02T00:10:00Z", 2), ("2026-06-02T00:50:00Z", 2)];
    assert_eq!(recorded, expected.map(|(first, n)| (slot(first), n)));
    for it in &left {
        assert_eq!(it.id, RunId::for_slot(job.id, it.slot.unwrap()));
        assert_eq!((it.due_at, it.reason), (it.slot.unwrap().0, entry.reason));
    }
    let one = Run::skipped(
        &job,
        &skip(Stretch::one(ran[0])),
        at("2026-06-02T02:00:00Z"),
    );
    assert_eq!(one.around(schedule, &ran), []);
}

#[test]
fn what_is_decided_again_is_recorded_no_more() {
    let job = job(every("PT1M", "2026-06-01T00:00:00Z", "UTC"));
    let slots = whole(&job, "2026-06-02T00:01:00Z", "2026-06-02T00:09:00Z").slots;
    let at_last = |last: Option<&str>| Job {
        slot_last: last.map(at),
        ..job.clone()
    };
    let still = |last| at_last(last).still_recorded(slots);
    assert_eq!(still(None), Some(slots));
    assert_eq!(still(Some("2026-06-02T00:09:00Z")), Some(slots));
    assert_eq!(still(Some("2026-06-02T00:00:59.999Z")), None);
    let cut = still(Some("2026-06-02T00:05:30Z"));
    assert_eq!(
        cut,
        Some(whole(&job, "2026-06-02T00:01:00Z", "2026-06-02T00:05:00Z").slots)
    );
    assert_eq!(
        still(Some("2026-06-02T00:01:00Z")),
        Some(Stretch::one(slots.first))
    );
    // Other slots than this schedule's: nobody knows which of them lie before.
    let others = Stretch { count: 5, ..slots };
    assert_eq!(
        at_last(Some("2026-06-02T00:05:30Z")).still_recorded(others),
        Some(others)
    );
}
