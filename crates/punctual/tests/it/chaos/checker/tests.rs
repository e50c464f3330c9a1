//! The checker itself: a sound recording passes, and whatever is wrong with one is named.

use model::schedule::Bounds;
use model::{CatchUpPolicy, Delivery, Overlap, RunId, Slot, Timestamp};

use super::*;
use crate::chaos::faults::{Fault, Strike};
use crate::chaos::load::Manner;
use crate::chaos::recording::SlotAnswer;

const SECOND: i64 = 1_000;
const FROM: i64 = 1_800_000_000_000;
const SLOTS: i64 = 30;
/// The slot that something is done to.
const ODD: usize = 10;

/// Every second for half a minute, by one node, each arrival two milliseconds after it was due.
fn sound() -> Recording {
    let id = model::JobId::new(Timestamp::from_millis(FROM), [7; 10]);
    let bounds = Bounds {
        starts_at: Some(Timestamp::from_millis(FROM)),
        ends_at: Some(Timestamp::from_millis(FROM + (SLOTS - 1) * SECOND)),
        runs_max: None,
    };
    let second = std::time::Duration::from_secs(1);
    let mut job = LoadJob::every(second, FROM, bounds, Manner::Quick);
    job.id = id.to_string();
    let mut recording = Recording::default();
    for slot in job.slots() {
        let run = RunId::for_slot(id, Slot(Timestamp::from_millis(slot))).to_string();
        recording.entries.push(Entry {
            id: run.clone(),
            job: job.id.clone(),
            slot,
            due_at: slot,
            state: "succeeded".to_owned(),
            attempt: 1,
            reason: None,
            dispatched_at: Some(slot),
            settled_at: Some(slot + 5),
            stretch: None,
        });
        recording.arrivals.push(Arrival {
            job: job.id.clone().into(),
            run: run.clone().into(),
            node: "n1".into(),
            slot,
            attempt: 1,
            at_micros: slot * 1_000 + 2_000,
        });
        let answers = SlotAnswer {
            first: slot,
            last: slot,
            count: 1,
            fate: "ran".to_owned(),
            run: Some(run),
        };
        recording
            .answers
            .entry(job.id.clone())
            .or_default()
            .push(answers);
    }
    recording.jobs.push(job);
    recording
}

/// What is found in a sound recording after something was done to it.
fn found(harm: impl FnOnce(&mut Recording)) -> Vec<Kind> {
    let mut recording = sound();
    harm(&mut recording);
    recording.arrivals.sort_by_key(|arrival| arrival.at_micros);
    check(&recording).kinds().into_keys().collect()
}

/// The same, when the API says so too.
fn forget(recording: &mut Recording, slot: usize) {
    for answers in recording.answers.values_mut() {
        answers.remove(slot);
    }
}

fn skip(recording: &mut Recording, slot: usize, reason: &str) {
    let entry = &mut recording.entries[slot];
    entry.state = "skipped".to_owned();
    entry.reason = Some(reason.to_owned());
    let id = entry.id.clone();
    recording.arrivals.retain(|arrival| *arrival.run != *id);
    for answers in recording.answers.values_mut() {
        answers[slot].fate = "skipped".to_owned();
        answers[slot].run = None;
    }
}

fn strike(fault: Fault, slot: usize, lasts: i64) -> Strike {
    let begun = FROM + slot as i64 * SECOND - 500;
    Strike {
        fault,
        node: Some("n1"),
        begun,
        ended: begun + lasts,
    }
}

#[test]
fn a_sound_recording_is_sound() {
    assert_eq!(found(|_| ()), []);
    let findings = check(&sound());
    let figures = findings.figures.join("\n");
    assert!(figures.contains("30 slots of 1 jobs, 30 runs"), "{figures}");
    assert!(figures.contains("p50 2.0 ms"), "{figures}");
}

#[test]
fn a_lost_slot_is_named() {
    let lost = found(|it| {
        let run = it.entries.remove(ODD).id;
        it.arrivals.retain(|arrival| *arrival.run != *run);
        forget(it, ODD);
    });
    assert_eq!(lost, [Kind::Lost, Kind::AnsweredOtherwise]);
    let at_the_end = found(|it| {
        let run = it.entries.pop().unwrap().id;
        it.arrivals.retain(|arrival| *arrival.run != *run);
    });
    assert_eq!(at_the_end, [Kind::Lost, Kind::AnsweredOtherwise]);
    let of_a_whole_job = found(|it| {
        it.entries.clear();
        it.arrivals.clear();
        it.answers.clear();
    });
    assert_eq!(of_a_whole_job, [Kind::Lost]);
    let unknown = found(|it| {
        for answers in it.answers.values_mut() {
            answers[ODD].fate = "unknown".to_owned();
        }
    });
    assert_eq!(unknown, [Kind::AnsweredOtherwise]);
}

#[test]
fn a_job_whose_runs_set_the_next_slot_must_not_stand_still() {
    let linked = |harm: &dyn Fn(&mut Recording)| {
        found(|it| {
            let bounds = it.jobs[0].schedule.bounds;
            let before = it.jobs[0].id.clone();
            it.jobs[0] = LoadJob::chain(std::time::Duration::from_secs(1), bounds);
            it.jobs[0].id = before;
            for entry in &mut it.entries {
                entry.settled_at = Some(entry.slot);
            }
            harm(it);
        })
    };
    assert_eq!(linked(&|_| ()), []);
    let stopped = linked(&|it| {
        it.entries.pop();
        it.arrivals.pop();
        it.answers.clear();
    });
    assert_eq!(stopped, [Kind::Lost]);
    let without_cause = linked(&|it| it.entries[ODD].settled_at = Some(FROM));
    assert_eq!(without_cause, [Kind::Stranger]);
    let never_begun = linked(&|it| {
        it.entries.clear();
        it.arrivals.clear();
        it.answers.clear();
    });
    assert_eq!(never_begun, [Kind::Lost]);
}

#[test]
fn a_slot_decided_twice_is_named() {
    let again = found(|it| it.entries.push(it.entries[ODD].clone()));
    assert_eq!(again, [Kind::DecidedTwice]);
    let also_skipped = found(|it| {
        let mut entry = it.entries[ODD].clone();
        entry.id = "run_other".to_owned();
        entry.state = "skipped".to_owned();
        entry.reason = Some("missed".to_owned());
        entry.settled_at = Some(entry.slot + 20_000);
        entry.stretch = Some((entry.slot, entry.slot + SECOND, 2));
        it.jobs[0].catch_up = CatchUpPolicy::Latest;
        it.entries.push(entry);
    });
    assert_eq!(also_skipped, [Kind::DecidedTwice]);
}

#[test]
fn whatever_nobody_requested_is_named() {
    let no_slot = found(|it| {
        it.entries[ODD].slot += 1;
        it.arrivals[ODD].slot += 1;
        it.answers.clear();
    });
    assert_eq!(no_slot, [Kind::Lost, Kind::Stranger]);
    let no_job = found(|it| {
        let mut entry = it.entries[ODD].clone();
        entry.id = "run_other".to_owned();
        entry.job = "job_other".to_owned();
        entry.state = "dead".to_owned();
        it.entries.push(entry);
    });
    assert_eq!(no_job, [Kind::Stranger]);
    let no_run = found(|it| it.arrivals[ODD].run = "run_other".into());
    assert_eq!(no_run, [Kind::Stranger, Kind::Silent]);
    let miscounted = found(|it| {
        it.jobs[0].catch_up = CatchUpPolicy::Latest;
        skip(it, ODD, "missed");
        let entry = &mut it.entries[ODD];
        entry.settled_at = Some(entry.slot + 20_000);
        entry.stretch = Some((entry.slot, entry.slot, 3));
    });
    assert_eq!(miscounted, [Kind::Stranger]);
}

#[test]
fn an_early_arrival_is_named() {
    assert_eq!(found(|it| it.arrivals[ODD].at_micros -= 2_000), []);
    assert_eq!(
        found(|it| it.arrivals[ODD].at_micros -= 2_001),
        [Kind::Early]
    );
    let retried_early = found(|it| {
        let mut arrival = it.arrivals[ODD].clone();
        arrival.attempt = 2;
        arrival.at_micros += 300_000;
        it.entries[ODD].attempt = 2;
        it.entries[ODD].due_at += 400;
        it.arrivals.push(arrival);
    });
    assert_eq!(retried_early, [Kind::Early]);
    let due_otherwise = found(|it| it.entries[ODD].due_at += 1);
    assert_eq!(due_otherwise, [Kind::Stranger]);
}

#[test]
fn an_attempt_that_arrives_twice_is_named() {
    let again = |attempt: u32| {
        move |it: &mut Recording| {
            let mut arrival = it.arrivals[ODD].clone();
            arrival.attempt = attempt;
            arrival.at_micros += 3_000_000;
            it.entries[ODD].attempt = attempt;
            it.entries[ODD].due_at = arrival.at_micros / 1_000;
            if attempt == 1 {
                it.entries[ODD].due_at = it.entries[ODD].slot;
            }
            it.arrivals.push(arrival);
        }
    };
    assert_eq!(found(again(1)), [Kind::Redelivered]);
    assert_eq!(found(again(2)), []);
    let once_only = found(|it| {
        it.jobs[0].delivery = Delivery::AtMostOnce;
        again(2)(it);
    });
    assert_eq!(once_only, [Kind::Redelivered]);
    let unknown_attempt = found(|it| it.arrivals[ODD].attempt = 2);
    assert_eq!(unknown_attempt, [Kind::Stranger]);
}

#[test]
fn a_run_that_did_not_arrive_or_end_is_named() {
    assert_eq!(found(|it| drop(it.arrivals.remove(ODD))), [Kind::Silent]);
    let unended = found(|it| it.entries[ODD].state = "running".to_owned());
    assert_eq!(unended, [Kind::Unended]);
}

#[test]
fn a_skip_is_explained_by_its_jobs_policy_or_named() {
    let overlap = |overlap: Overlap, alive: usize| {
        found(|it| {
            it.jobs[0].overlap = overlap;
            skip(it, ODD, "overlap");
            for run in ODD - alive..ODD {
                it.entries[run].settled_at = Some(it.entries[ODD].slot + 1);
            }
            for run in 0..ODD - alive {
                it.entries[run].settled_at = Some(FROM);
            }
        })
    };
    assert_eq!(overlap(Overlap::Skip, 1), []);
    assert_eq!(overlap(Overlap::Skip, 0), [Kind::Unexplained]);
    assert_eq!(overlap(Overlap::QueueOne, 2), []);
    assert_eq!(overlap(Overlap::QueueOne, 1), [Kind::Unexplained]);
    assert_eq!(overlap(Overlap::Allow, 1), [Kind::Unexplained]);
    let missed = |policy: CatchUpPolicy, after: i64| {
        found(|it| {
            it.jobs[0].catch_up = policy;
            skip(it, ODD, "missed");
            it.entries[ODD].settled_at = Some(it.entries[ODD].slot + after);
        })
    };
    assert_eq!(missed(CatchUpPolicy::Latest, 10_001), []);
    assert_eq!(missed(CatchUpPolicy::Latest, 9_000), [Kind::Unexplained]);
    assert_eq!(missed(CatchUpPolicy::All, 20_000), [Kind::Unexplained]);
    assert_eq!(found(|it| skip(it, ODD, "paused")), [Kind::Unexplained]);
    let arrived = found(|it| {
        let arrival = it.arrivals[ODD].clone();
        it.jobs[0].overlap = Overlap::Skip;
        skip(it, ODD, "overlap");
        it.entries[ODD - 1].settled_at = Some(it.entries[ODD].slot + 1);
        it.arrivals.push(arrival);
    });
    assert_eq!(arrived, [Kind::Stranger]);
}

#[test]
fn only_a_run_that_was_under_way_explains_an_overlap() {
    let skipped = |harm: &dyn Fn(&mut Recording, i64)| {
        found(|it| {
            it.jobs[0].overlap = Overlap::Skip;
            skip(it, ODD, "overlap");
            let due = it.entries[ODD].slot;
            it.entries[ODD - 1].settled_at = Some(due + 1);
            harm(it, due);
        })
    };
    assert_eq!(skipped(&|_, _| ()), []);
    let in_that_millisecond = skipped(&|it, due| it.entries[ODD - 1].settled_at = Some(due));
    assert_eq!(in_that_millisecond, []);
    let known_to_the_target = skipped(&|it, _| it.entries[ODD - 1].dispatched_at = None);
    assert_eq!(known_to_the_target, []);
    let over = skipped(&|it, due| it.entries[ODD - 1].settled_at = Some(due - 1));
    assert_eq!(over, [Kind::Unexplained]);
    let late_itself = skipped(&|it, due| {
        it.entries[ODD - 1].dispatched_at = Some(due);
        it.arrivals[ODD - 1].at_micros = due * 1_000;
    });
    assert_eq!(late_itself, [Kind::Unexplained]);
}

#[test]
fn only_a_run_that_waited_for_long_explains_an_overload() {
    let skipped = |waited: i64, dispatched_after: i64| {
        found(|it| {
            skip(it, ODD + 10, "overload");
            let (due, decided) = (it.entries[ODD + 10].slot, it.entries[ODD + 10].slot + 5);
            let first = it.entries.iter_mut().find(|it| it.slot == due - waited);
            let first = first.unwrap();
            first.dispatched_at = Some(decided + dispatched_after);
            first.settled_at = Some(decided + 20);
        })
    };
    assert_eq!(skipped(11 * SECOND, 10), []);
    assert_eq!(skipped(10 * SECOND, 10), [Kind::Unexplained]);
    assert_eq!(skipped(11 * SECOND, -10), [Kind::Unexplained]);
}

#[test]
fn a_bad_end_is_explained_or_named() {
    let dead = |reason: &str, delivery: Delivery, struck: bool| {
        found(|it| {
            it.jobs[0].delivery = delivery;
            it.entries[ODD].state = "dead".to_owned();
            it.entries[ODD].reason = Some(reason.to_owned());
            if struck {
                it.strikes.push(strike(Fault::Pause, ODD, SECOND));
            }
        })
    };
    assert_eq!(dead("lost", Delivery::AtMostOnce, true), []);
    let unexplained = [Kind::Unexplained];
    assert_eq!(dead("lost", Delivery::AtMostOnce, false), unexplained);
    assert_eq!(dead("lost", Delivery::AtLeastOnce, true), unexplained);
    assert_eq!(dead("poison", Delivery::AtLeastOnce, true), unexplained);
    assert_eq!(
        dead("attempts_spent", Delivery::AtLeastOnce, true),
        unexplained
    );
    let replaced = |overlap: Overlap| {
        found(|it| {
            it.jobs[0].overlap = overlap;
            it.entries[ODD].state = "cancelled".to_owned();
            it.entries[ODD].reason = Some("replaced".to_owned());
        })
    };
    assert_eq!(replaced(Overlap::CancelRunning), []);
    assert_eq!(replaced(Overlap::Skip), unexplained);
    let flaky = found(|it| {
        it.jobs[0].manner = Manner::Flaky;
        it.entries[ODD].state = "dead".to_owned();
        it.entries[ODD].reason = Some("attempts_spent".to_owned());
    });
    assert_eq!(flaky, []);
}

#[test]
fn a_takeover_and_a_hand_over_that_take_too_long_are_named() {
    let late = |fault: Fault, by: i64| {
        found(|it| {
            it.strikes.push(strike(fault, ODD, 8 * SECOND));
            it.arrivals[ODD].at_micros += by * 1_000;
        })
    };
    // The strike came half a second before the slot.
    assert_eq!(late(Fault::Kill, 4_400), []);
    assert_eq!(late(Fault::Kill, 4_600), [Kind::LateTakeover]);
    assert_eq!(late(Fault::Pause, 4_600), [], "there is no bar on it");
    assert_eq!(late(Fault::Stop, 200), []);
    assert_eq!(late(Fault::Stop, 250), [Kind::LateHandOver]);
}
