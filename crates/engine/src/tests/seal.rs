//! Seal: what becomes a segment when, and what a check of the chain finds.

use std::sync::Arc;
use std::time::Duration;

use store::mem::MemStore;
use store::{AuditEntry, AuditStore, ClientStore, DroppedSeals, NewJob, Seal};

use super::bench::Bench;
use super::world::{at, ms, once};
use crate::chain::{Check, Head, KeyMissing, Step, Wrong};
use crate::duty::Wake;
use crate::vault::{MasterKey, MasterKeys};

fn keys() -> MasterKeys {
    MasterKeys::new(MasterKey::new([1; 32]))
}

async fn bench() -> Bench {
    let bench = Bench::with(|config| config.master_keys = Some(Arc::new(keys()))).await;
    bench.hold(&model::shard::ShardSet::ALL).await;
    bench
}

/// So many changes, each an entry.
async fn change(bench: &Bench, first: u8, count: u8) {
    for number in first..first + count {
        let job = Arc::new(once(number, 1_000_000));
        let new = NewJob {
            job,
            idempotency: None,
        };
        bench.mem.create_jobs(&[new]).await.unwrap();
    }
}

async fn seals(mem: &MemStore) -> Vec<Seal> {
    mem.list_seals(0, 100).await.unwrap()
}

async fn check_by(mem: &MemStore, keys: &MasterKeys, head: Option<Head>, bench: &Bench) -> Step {
    let mut check = Check::new(mem, keys, head, bench.now());
    loop {
        match check.step().await.unwrap() {
            Step::More => {}
            step @ (Step::Whole { .. } | Step::KeyMissing(_) | Step::Wrong(_)) => return step,
        }
    }
}

async fn check(bench: &Bench) -> Step {
    check_by(&bench.mem, &keys(), None, bench).await
}

fn head(seal: &Seal) -> Head {
    Head {
        number: seal.number,
        mac: model::hex::to_hex(&seal.mac),
    }
}

/// Three segments of two entries each.
async fn sealed() -> Bench {
    let bench = bench().await;
    let mut sealing = bench.sealing();
    for first in [1, 3, 5] {
        change(&bench, first, 2).await;
        bench.rest(&mut sealing).await;
        bench.pass(ms(1_000));
    }
    assert_eq!(check(&bench).await, Step::Whole { unsealed: 0 });
    bench
}

fn found(step: Step) -> (Option<u64>, Option<u64>) {
    match step {
        Step::Wrong(Wrong { segment, entry, .. }) => (segment, entry),
        Step::More | Step::Whole { .. } | Step::KeyMissing(_) => panic!("nothing was found"),
    }
}

#[tokio::test]
async fn each_second_what_was_entered_becomes_a_segment() {
    let bench = bench().await;
    let mut sealing = bench.sealing();
    assert_eq!(bench.rest(&mut sealing).await, Wake::At(at(1_000)));
    assert_eq!(seals(&bench.mem).await, []);
    change(&bench, 1, 2).await;
    bench.pass(ms(1_000));
    assert_eq!(bench.rest(&mut sealing).await, Wake::At(at(2_000)));
    change(&bench, 3, 1).await;
    bench.pass(ms(1_000));
    bench.rest(&mut sealing).await;
    let seals = seals(&bench.mem).await;
    let spans: Vec<_> = seals.iter().map(|seal| (seal.from, seal.to)).collect();
    assert_eq!(spans, [(1, 2), (3, 3)]);
    assert_eq!(seals[1].previous, seals[0].mac);
    assert_eq!(check(&bench).await, Step::Whole { unsealed: 0 });
    change(&bench, 4, 1).await;
    assert_eq!(check(&bench).await, Step::Whole { unsealed: 1 });
}

#[tokio::test]
async fn an_entry_that_appears_late_is_taken_up_by_the_next_segment() {
    let bench = bench().await;
    let mut sealing = bench.sealing();
    change(&bench, 1, 3).await;
    let mut held = None;
    bench.mem.edit_audit(|log| held = log.remove(&2));
    bench.rest(&mut sealing).await;
    // A node that takes over knows the gap from the seals.
    let mut sealing = bench.sealing();
    bench.pass(ms(1_000));
    bench.rest(&mut sealing).await;
    assert_eq!(seals(&bench.mem).await.len(), 1);
    bench
        .mem
        .edit_audit(|log| log.extend(held.map(|entry| (2, entry))));
    bench.pass(ms(1_000));
    bench.rest(&mut sealing).await;
    let seals = seals(&bench.mem).await;
    assert_eq!(
        (seals[0].gaps.len(), seals[1].late.as_slice()),
        (1, [2].as_slice())
    );
    assert_eq!(check(&bench).await, Step::Whole { unsealed: 0 });
    bench.mem.edit_audit(|log| drop(log.remove(&2)));
    assert_eq!(found(check(&bench).await), (Some(2), Some(2)));
}

#[tokio::test]
async fn of_many_gaps_none_waits_for_the_others() {
    let bench = bench().await;
    change(&bench, 1, 1).await;
    let mut held = None;
    bench.mem.edit_audit(|log| {
        let one = log[&1].clone();
        for seq in (3..2_400).step_by(2) {
            let entry = AuditEntry { seq, ..one.clone() };
            log.insert(seq, entry);
        }
        held = Some(AuditEntry { seq: 2_398, ..one });
    });
    let mut sealing = bench.sealing();
    bench.rest(&mut sealing).await;
    bench
        .mem
        .edit_audit(|log| log.extend(held.map(|entry| (entry.seq, entry))));
    for _ in 0..3 {
        bench.pass(ms(1_000));
        bench.rest(&mut sealing).await;
    }
    let last = seals(&bench.mem).await.pop().unwrap();
    assert_eq!(last.late, [2_398]);
    assert_eq!(check(&bench).await, Step::Whole { unsealed: 0 });
}

#[tokio::test]
async fn nothing_is_sealed_without_a_key_or_without_the_first_shard() {
    let keyless = Bench::holding().await;
    change(&keyless, 1, 1).await;
    keyless.rest(&mut keyless.sealing()).await;
    assert_eq!(seals(&keyless.mem).await, []);
    let other = Bench::with(|config| config.master_keys = Some(Arc::new(keys()))).await;
    change(&other, 1, 1).await;
    other.rest(&mut other.sealing()).await;
    assert_eq!(seals(&other.mem).await, []);
}

#[tokio::test]
async fn of_two_that_seal_one_chain_comes() {
    let bench = bench().await;
    let (mut one, mut other) = (bench.sealing(), bench.sealing());
    for round in 0..3 {
        change(&bench, 1 + 2 * round, 1).await;
        bench.rest(&mut one).await;
        change(&bench, 2 + 2 * round, 1).await;
        bench.rest(&mut other).await;
        bench.rest(&mut one).await;
    }
    assert_eq!(seals(&bench.mem).await.len(), 6);
    assert_eq!(check(&bench).await, Step::Whole { unsealed: 0 });
}

#[tokio::test]
async fn whatever_is_done_to_a_sealed_entry_is_found() {
    type Edit = fn(&mut std::collections::BTreeMap<u64, AuditEntry>);
    /// The segment and the entry that are found wrong.
    type Found = (Option<u64>, Option<u64>);
    let edits: [(Edit, Found); 4] = [
        (
            |log| log.get_mut(&3).unwrap().actor = "nobody".to_owned(),
            (Some(2), None),
        ),
        (|log| drop(log.remove(&3)), (Some(2), Some(3))),
        (
            |log| {
                let (third, fourth) = (log[&3].clone(), log[&4].clone());
                log.insert(3, AuditEntry { seq: 3, ..fourth });
                log.insert(4, AuditEntry { seq: 4, ..third });
            },
            (Some(2), None),
        ),
        (|log| log.get_mut(&1).unwrap().after = None, (Some(1), None)),
    ];
    for (edit, expected) in edits {
        let bench = sealed().await;
        bench.mem.edit_audit(edit);
        assert_eq!(found(check(&bench).await), expected);
    }
}

#[tokio::test]
async fn an_entry_that_was_put_in_a_gap_long_after_is_found() {
    let bench = bench().await;
    change(&bench, 1, 3).await;
    let mut held = None;
    bench.mem.edit_audit(|log| held = log.remove(&2));
    let mut sealing = bench.sealing();
    bench.rest(&mut sealing).await;
    bench.pass(Duration::from_secs(700));
    bench
        .mem
        .edit_audit(|log| log.extend(held.map(|entry| (2, entry))));
    bench.rest(&mut sealing).await;
    assert_eq!(found(check(&bench).await), (Some(1), Some(2)));
}

#[tokio::test]
async fn an_entry_older_than_the_last_seal_that_is_in_none_is_found() {
    let bench = sealed().await;
    bench.mem.edit_audit(|log| {
        let old = log[&1].clone();
        let at = old.at.minus(Duration::from_secs(3_600));
        log.insert(9, AuditEntry { seq: 9, at, ..old });
    });
    assert_eq!(found(check(&bench).await), (None, Some(9)));
}

#[tokio::test]
async fn a_head_that_was_written_down_shows_a_log_that_was_cut_or_made_again() {
    let bench = sealed().await;
    let last = seals(&bench.mem).await.pop().unwrap();
    let noted = Some(head(&last));
    let whole = check_by(&bench.mem, &keys(), noted.clone(), &bench).await;
    assert_eq!(whole, Step::Whole { unsealed: 0 });
    bench.mem.edit_seals(|seals| drop(seals.remove(&3)));
    bench.mem.edit_audit(|log| log.retain(|seq, _| *seq <= 4));
    assert_eq!(check(&bench).await, Step::Whole { unsealed: 0 });
    let cut = check_by(&bench.mem, &keys(), noted, &bench).await;
    assert_eq!(found(cut), (Some(3), None));
    let other = Head::parse(&format!("2:{}", "0".repeat(64)));
    let again = check_by(&bench.mem, &keys(), other, &bench).await;
    assert_eq!(found(again), (Some(2), None));
}

#[tokio::test]
async fn a_segment_that_is_gone_or_does_not_follow_is_found() {
    let bench = sealed().await;
    bench.mem.edit_seals(|seals| drop(seals.remove(&2)));
    assert_eq!(found(check(&bench).await), (Some(3), None));
    let bench = sealed().await;
    bench.mem.edit_seals(|seals| drop(seals.remove(&1)));
    assert_eq!(found(check(&bench).await), (Some(2), None));
}

#[tokio::test]
async fn old_segments_are_checked_with_the_keys_of_their_time() {
    let bench = sealed().await;
    let strange = MasterKeys::new(MasterKey::new([9; 32]));
    let step = check_by(&bench.mem, &strange, None, &bench).await;
    let missing = KeyMissing {
        segment: 1,
        segments: 3,
        key: keys().current().id().to_owned(),
    };
    assert_eq!(step, Step::KeyMissing(missing));
    let text = MasterKey::new([1; 32]).to_text();
    let rotated = strange.with_old(&text).unwrap();
    let step = check_by(&bench.mem, &rotated, None, &bench).await;
    assert_eq!(step, Step::Whole { unsealed: 0 });
}

#[tokio::test]
async fn what_was_kept_long_enough_goes_by_whole_segments_and_the_chain_holds() {
    let bench = sealed().await;
    let mut sealing = bench.sealing();
    bench.pass(Duration::from_secs(366 * 24 * 3_600));
    bench.rest(&mut sealing).await;
    let left: Vec<u64> = seals(&bench.mem).await.iter().map(|it| it.number).collect();
    assert_eq!(left, [4, 5], "these say what went");
    assert_eq!(check(&bench).await, Step::Whole { unsealed: 0 });
    bench.mem.edit_seals(|seals| drop(seals.remove(&4)));
    assert_eq!(
        found(check(&bench).await),
        (Some(5), None),
        "nothing says that this went"
    );
}

/// A log whose first three segments were kept long enough.
async fn dropped() -> (Bench, Vec<Seal>) {
    let bench = sealed().await;
    let old = seals(&bench.mem).await;
    bench.pass(Duration::from_secs(366 * 24 * 3_600));
    bench.rest(&mut bench.sealing()).await;
    assert_eq!(check(&bench).await, Step::Whole { unsealed: 0 });
    (bench, old)
}

/// Deletes the two oldest segments, as somebody who owns the database can, and says that they were dropped.
fn forge(bench: &Bench, old: &[Seal], edit: impl Fn(&mut DroppedSeals)) {
    let mut said = DroppedSeals::of(&old[..2], keys().current().id()).unwrap();
    edit(&mut said);
    bench
        .mem
        .edit_seals(|seals| seals.retain(|number, _| *number > 2));
    bench.mem.edit_audit(|log| {
        log.retain(|seq, _| *seq > 4);
        let (seq, last) = log.last_key_value().unwrap();
        let entry = AuditEntry {
            seq: seq + 1,
            action: "audit.drop".to_owned(),
            subject: "2".to_owned(),
            before: serde_json::to_string(&said).ok(),
            after: None,
            ..last.clone()
        };
        log.insert(entry.seq, entry);
    });
}

#[tokio::test]
async fn segments_that_were_deleted_and_said_to_be_dropped_are_found() {
    let bench = sealed().await;
    let old = seals(&bench.mem).await;
    forge(&bench, &old, |said| said.code = said.mac.clone());
    let mut sealing = bench.sealing();
    bench.rest(&mut sealing).await;
    assert_eq!(found(check(&bench).await), (Some(3), None));
    // A node does not vouch for what follows, either.
    bench.pass(Duration::from_secs(366 * 24 * 3_600));
    bench.rest(&mut sealing).await;
    assert_eq!(found(check(&bench).await), (Some(3), None));
}

#[tokio::test]
async fn a_drop_under_a_key_that_is_not_given_does_not_make_a_log_whole() {
    let bench = sealed().await;
    let old = seals(&bench.mem).await;
    forge(&bench, &old, |said| said.key = "00000000".to_owned());
    bench.rest(&mut bench.sealing()).await;
    let missing = KeyMissing {
        segment: 2,
        segments: 1,
        key: "00000000".to_owned(),
    };
    assert_eq!(check(&bench).await, Step::KeyMissing(missing));
}

#[tokio::test]
async fn a_head_of_a_segment_that_was_dropped_is_compared() {
    let (bench, old) = dropped().await;
    for seal in &old {
        let step = check_by(&bench.mem, &keys(), Some(head(seal)), &bench).await;
        assert_eq!(step, Step::Whole { unsealed: 0 });
        let other = Head {
            mac: "0".repeat(64),
            ..head(seal)
        };
        let step = check_by(&bench.mem, &keys(), Some(other), &bench).await;
        assert_eq!(found(step), (Some(4), None));
    }
}

#[tokio::test]
async fn a_segment_that_was_changed_is_not_dropped() {
    let bench = sealed().await;
    bench
        .mem
        .edit_audit(|log| log.get_mut(&1).unwrap().after = None);
    bench.pass(Duration::from_secs(366 * 24 * 3_600));
    bench.rest(&mut bench.sealing()).await;
    assert_eq!(found(check(&bench).await), (Some(1), None));
}

#[tokio::test]
async fn without_a_key_entries_go_by_their_age() {
    let bench = Bench::holding().await;
    change(&bench, 1, 3).await;
    let mut sealing = bench.sealing();
    bench.rest(&mut sealing).await;
    bench.pass(Duration::from_secs(366 * 24 * 3_600));
    change(&bench, 4, 1).await;
    bench.rest(&mut sealing).await;
    let mut left = Vec::new();
    bench
        .mem
        .edit_audit(|log| left.extend(log.values().map(|entry| entry.action.clone())));
    assert_eq!(left, ["job.create", "audit.drop"]);
}
