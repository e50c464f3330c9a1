use std::time::Duration;

use model::RunState;

use super::*;

const BY: PresenceId = PresenceId(uuid::Uuid::from_u128(1));
const TENANT: TenantId = TenantId::DEFAULT;

fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(secs * 1_000)
}

fn fired(rollups: &Rollups, secs: i64, slots: u64) {
    rollups.count(at(secs), &[(TENANT, Count::Fired(slots))]);
}

/// What is to be written: the step, where it begins in seconds, and how many slots were fired.
fn rows(rollups: &Rollups) -> Vec<(Step, i64, u64)> {
    let unwritten = rollups.unwritten(100);
    let row = |row: &RollupRow| (row.step, row.at.as_millis() / 1_000, row.rollup.fired);
    unwritten.rows.iter().map(row).collect()
}

fn write(rollups: &Rollups, now: i64) {
    rollups.written(&rollups.unwritten(100), at(now));
}

#[test]
fn nothing_is_written_before_a_presence_has_named_the_counts() {
    let rollups = Rollups::default();
    fired(&rollups, 60, 1);
    assert_eq!(rows(&rollups), []);
    rollups.name(BY);
    rollups.name(PresenceId(uuid::Uuid::from_u128(2)));
    let unwritten = rollups.unwritten(100);
    assert_eq!(unwritten.rows.len(), 2);
    assert!(unwritten.rows.iter().all(|row| row.by == BY), "the first");
}

#[test]
fn a_step_that_lasts_is_written_whole_each_time_it_has_changed() {
    let rollups = Rollups::default();
    rollups.name(BY);
    fired(&rollups, 61, 1);
    assert_eq!(
        rows(&rollups),
        [(Step::Minute, 60, 1), (Step::Quarter, 0, 1)]
    );
    write(&rollups, 62);
    assert_eq!(rows(&rollups), [], "nothing has changed");
    fired(&rollups, 70, 2);
    assert_eq!(
        rows(&rollups),
        [(Step::Minute, 60, 3), (Step::Quarter, 0, 3)]
    );
}

#[test]
fn what_comes_while_a_write_is_under_way_is_written_with_the_next() {
    let rollups = Rollups::default();
    rollups.name(BY);
    fired(&rollups, 61, 1);
    let under_way = rollups.unwritten(100);
    fired(&rollups, 62, 1);
    rollups.written(&under_way, at(62));
    assert_eq!(
        rows(&rollups),
        [(Step::Minute, 60, 2), (Step::Quarter, 0, 2)]
    );
}

#[test]
fn a_sum_is_kept_until_its_step_is_over_and_it_is_written() {
    let rollups = Rollups::default();
    rollups.name(BY);
    fired(&rollups, 61, 1);
    fired(&rollups, 121, 1);
    // Not written: nothing is forgotten.
    rollups.written(&Unwritten::default(), at(9_000));
    let all = [
        (Step::Minute, 60, 1),
        (Step::Minute, 120, 1),
        (Step::Quarter, 0, 2),
    ];
    assert_eq!(rows(&rollups), all);
    write(&rollups, 9_001);
    assert_eq!(lock(&rollups.0).all.len(), 0, "all of it was over");
}

#[test]
fn a_clock_that_goes_back_a_little_counts_on_in_the_latest_step() {
    let rollups = Rollups::default();
    rollups.name(BY);
    fired(&rollups, 9_000, 1);
    write(&rollups, 9_000);
    fired(&rollups, 8_999, 1);
    assert_eq!(
        rows(&rollups),
        [(Step::Minute, 9_000, 2), (Step::Quarter, 9_000, 2)]
    );
    write(&rollups, 8_999);
    fired(&rollups, 0, 1);
    write(&rollups, 0);
    fired(&rollups, 0, 5);
    let rows = rows(&rollups);
    assert_eq!(rows, [(Step::Minute, 0, 6), (Step::Quarter, 0, 6)]);
}

#[test]
fn there_is_room_for_so_many_and_what_is_beyond_is_said() {
    let rollups = Rollups::default();
    rollups.name(BY);
    let tenant = |number: usize| TenantId(uuid::Uuid::from_u128(number as u128));
    let ended = Count::Ended(RunState::Dead, 1);
    let many = (0..limits::ROLLUPS_MAX).map(|number| (tenant(number), ended));
    rollups.count(at(60), &many.collect::<Vec<_>>());
    assert_eq!(lock(&rollups.0).all.len(), limits::ROLLUPS_MAX);
    assert_eq!(rollups.left_out(), limits::ROLLUPS_MAX as u64);
    assert_eq!(rollups.left_out(), 0);
    rollups.count(at(61), &[(tenant(0), ended)]);
    assert_eq!(rollups.left_out(), 0, "those that are known are counted on");
    while !rollups.unwritten(1_000).rows.is_empty() {
        rollups.written(&rollups.unwritten(1_000), at(900));
    }
    assert_eq!(lock(&rollups.0).all.len(), 0);
    assert_eq!(Duration::from_secs(900), Step::Quarter.span());
}
