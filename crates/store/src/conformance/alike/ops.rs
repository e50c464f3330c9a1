//! What may happen. Jobs, presences and runs are picked by small numbers, which mean whatever a world knows by
//! then; so a sequence that lost some of its steps is still one.

use proptest::collection::vec;
use proptest::prelude::*;

/// One thing that happens, and whether its answer is lost first.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub op: Op,
    /// The call is made, its answer never arrives, and it is made again.
    pub lost: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Op {
    /// The call before, word for word, once more.
    Again,
    Advance { millis: u32 },
    StepWall { millis: i32 },
    /// A crash, and what follows.
    Reopen,
    Join,
    Beat(By),
    Lease(By, Want),
    Leave(By),
    Bar(By),
    /// Seconds pass in which only one is heard, and then it bars the others.
    Outlive(By),
    Create(Vec<u8>),
    Change { job: u8, kind: Change, fresh: bool },
    Park(u8),
    Fire { by: By, jobs: Vec<u8>, claim: bool, fresh: bool, late: u32 },
    Claim { by: By, runs: Vec<u8>, fresh: bool },
    Start { job: u8, nonce: u8, force: bool },
    Mark { by: By, runs: Vec<u8>, fresh: bool },
    Cancel { run: u8, own: bool },
    /// Answers all that a presence was asked for.
    Withdraw { by: By, taken_back: bool },
    Settle { by: By, runs: Vec<u8>, fresh: bool, end: End, queues: bool },
    /// Settles what the gone have left, as the engine does.
    Recover(By),
    Retain,
}

/// Who acts.
#[derive(Debug, Clone, Copy)]
pub(super) enum By {
    /// Whoever thinks it has the most shards.
    Leader,
    One(u8),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Want {
    All,
    Odd,
    Nothing,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    Pause,
    Resume,
    Edit { overlap: u8, every: u8 },
    Rename(u8),
    Delete,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    Succeed,
    Retry { lost: bool },
    Bury,
    Cancel,
    Release,
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (op(), prop::bool::weighted(0.15)).prop_map(|(op, lost)| Step { op, lost });
    // The first job is there from the start, so that few sequences are about nothing.
    vec(step, 1..80).prop_map(|mut steps| {
        steps.insert(0, Step { op: Op::Create((0..6).collect()), lost: false });
        steps
    })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::Again),
        30 => presences(),
        20 => jobs(),
        60 => engine(),
        14 => clients(),
    ]
}

fn presences() -> impl Strategy<Value = Op> {
    let advance = prop_oneof![0_u32..2_000, 0_u32..10_000, 0_u32..200_000_000];
    prop_oneof![
        8 => advance.prop_map(|millis| Op::Advance { millis }),
        2 => (-5_000_000_i32..5_000_000).prop_map(|millis| Op::StepWall { millis }),
        1 => Just(Op::Reopen),
        3 => Just(Op::Join),
        6 => by().prop_map(Op::Beat),
        8 => (by(), want()).prop_map(|(by, want)| Op::Lease(by, want)),
        1 => by().prop_map(Op::Leave),
        1 => by().prop_map(Op::Bar),
        2 => by().prop_map(Op::Outlive),
    ]
}

fn jobs() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => vec(0_u8..24, 1..4).prop_map(Op::Create),
        16 => (any::<u8>(), change(), fresh())
            .prop_map(|(job, kind, fresh)| Op::Change { job, kind, fresh }),
        1 => any::<u8>().prop_map(Op::Park),
        2 => Just(Op::Retain),
    ]
}

fn engine() -> impl Strategy<Value = Op> {
    let late = prop_oneof![2 => Just(0_u32), 1 => 0_u32..30_000, 1 => 0_u32..7_200_000];
    let many = || vec(any::<u8>(), 1..4);
    prop_oneof![
        24 => (by(), many(), any::<bool>(), fresh(), late)
            .prop_map(|(by, jobs, claim, fresh, late)| Op::Fire { by, jobs, claim, fresh, late }),
        8 => (by(), many(), fresh()).prop_map(|(by, runs, fresh)| Op::Claim { by, runs, fresh }),
        3 => (by(), many(), fresh()).prop_map(|(by, runs, fresh)| Op::Mark { by, runs, fresh }),
        16 => (by(), many(), fresh(), end(), prop::bool::weighted(0.9)).prop_map(
            |(by, runs, fresh, end, queues)| Op::Settle { by, runs, fresh, end, queues }
        ),
        6 => (by(), prop::bool::weighted(0.7))
            .prop_map(|(by, taken_back)| Op::Withdraw { by, taken_back }),
        3 => by().prop_map(Op::Recover),
    ]
}

fn clients() -> impl Strategy<Value = Op> {
    prop_oneof![
        (any::<u8>(), 0_u8..4, prop::bool::weighted(0.2))
            .prop_map(|(job, nonce, force)| Op::Start { job, nonce, force }),
        (any::<u8>(), prop::bool::weighted(0.9)).prop_map(|(run, own)| Op::Cancel { run, own }),
    ]
}

fn by() -> impl Strategy<Value = By> {
    prop_oneof![6 => Just(By::Leader), 1 => (0_u8..3).prop_map(By::One)]
}

fn fresh() -> impl Strategy<Value = bool> {
    prop::bool::weighted(0.8)
}

fn want() -> impl Strategy<Value = Want> {
    prop_oneof![6 => Just(Want::All), 2 => Just(Want::Odd), 1 => Just(Want::Nothing)]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        2 => Just(Change::Pause),
        2 => Just(Change::Resume),
        4 => (0_u8..5, 0_u8..3).prop_map(|(overlap, every)| Change::Edit { overlap, every }),
        1 => (0_u8..3).prop_map(Change::Rename),
        1 => Just(Change::Delete),
    ]
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        3 => Just(End::Succeed),
        3 => any::<bool>().prop_map(|lost| End::Retry { lost }),
        1 => Just(End::Bury),
        1 => Just(End::Cancel),
        2 => Just(End::Release),
    ]
}
