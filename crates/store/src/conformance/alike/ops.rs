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
    Time(TimeOp),
    Presence(By, PresenceOp),
    Job(JobOp),
    Engine(By, EngineOp),
    Client(ClientOp),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum TimeOp {
    Advance {
        millis: u32,
    },
    /// Forward only: how much a store knows of the time before a step back is its own affair, and a
    /// promise of its own.
    StepWall {
        millis: u32,
    },
    /// A crash, and what follows.
    Reopen,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum PresenceOp {
    Join,
    Beat,
    Lease(Want),
    Leave,
    Bar,
    /// Seconds pass in which only one is heard, and then it bars the others.
    Outlive,
}

#[derive(Debug, Clone)]
pub(super) enum JobOp {
    Create(Vec<u8>),
    Change { job: u8, kind: Change, fresh: bool },
    Park(u8),
    Retain,
}

/// `fresh`: about things as they stand, not as they once were.
#[derive(Debug, Clone)]
pub(super) enum EngineOp {
    Fire {
        jobs: Vec<u8>,
        claim: bool,
        fresh: bool,
        late: u32,
    },
    Claim {
        runs: Vec<u8>,
        fresh: bool,
    },
    Mark {
        runs: Vec<u8>,
        fresh: bool,
    },
    /// Answers all that a presence was asked for.
    Withdraw {
        taken_back: bool,
    },
    Settle {
        runs: Vec<u8>,
        fresh: bool,
        end: End,
    },
    /// Settles what the gone have left, as the engine does.
    Recover,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum ClientOp {
    Start {
        job: u8,
        nonce: u8,
        force: bool,
    },
    /// `own`: as the tenant whose run it is.
    Cancel {
        run: u8,
        own: bool,
    },
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
    vec(step, 20..80).prop_map(|mut steps| {
        steps.insert(
            0,
            Step {
                op: Op::Job(JobOp::Create((0..6).collect())),
                lost: false,
            },
        );
        steps
    })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::Again),
        11 => time().prop_map(Op::Time),
        20 => (by(), presence()).prop_map(|(by, op)| Op::Presence(by, op)),
        20 => job().prop_map(Op::Job),
        60 => (by(), engine()).prop_map(|(by, op)| Op::Engine(by, op)),
        14 => client().prop_map(Op::Client),
    ]
}

fn time() -> impl Strategy<Value = TimeOp> {
    let advance = prop_oneof![0_u32..2_000, 0_u32..10_000, 0_u32..200_000_000];
    prop_oneof![
        8 => advance.prop_map(|millis| TimeOp::Advance { millis }),
        2 => (0_u32..5_000_000).prop_map(|millis| TimeOp::StepWall { millis }),
        1 => Just(TimeOp::Reopen),
    ]
}

fn presence() -> impl Strategy<Value = PresenceOp> {
    prop_oneof![
        3 => Just(PresenceOp::Join),
        6 => Just(PresenceOp::Beat),
        8 => want().prop_map(PresenceOp::Lease),
        1 => Just(PresenceOp::Leave),
        1 => Just(PresenceOp::Bar),
        2 => Just(PresenceOp::Outlive),
    ]
}

fn job() -> impl Strategy<Value = JobOp> {
    prop_oneof![
        4 => vec(0_u8..24, 1..4).prop_map(JobOp::Create),
        16 => (any::<u8>(), change(), fresh())
            .prop_map(|(job, kind, fresh)| JobOp::Change { job, kind, fresh }),
        1 => any::<u8>().prop_map(JobOp::Park),
        2 => Just(JobOp::Retain),
    ]
}

fn engine() -> impl Strategy<Value = EngineOp> {
    let late = prop_oneof![2 => Just(0_u32), 1 => 0_u32..30_000, 1 => 0_u32..7_200_000];
    let many = || vec(any::<u8>(), 1..4);
    prop_oneof![
        24 => (many(), any::<bool>(), fresh(), late)
            .prop_map(|(jobs, claim, fresh, late)| EngineOp::Fire { jobs, claim, fresh, late }),
        8 => (many(), fresh()).prop_map(|(runs, fresh)| EngineOp::Claim { runs, fresh }),
        3 => (many(), fresh()).prop_map(|(runs, fresh)| EngineOp::Mark { runs, fresh }),
        16 => (many(), fresh(), end())
            .prop_map(|(runs, fresh, end)| EngineOp::Settle { runs, fresh, end }),
        6 => prop::bool::weighted(0.7).prop_map(|taken_back| EngineOp::Withdraw { taken_back }),
        5 => Just(EngineOp::Recover),
    ]
}

fn client() -> impl Strategy<Value = ClientOp> {
    prop_oneof![
        (any::<u8>(), 0_u8..4, prop::bool::weighted(0.2))
            .prop_map(|(job, nonce, force)| ClientOp::Start { job, nonce, force }),
        (any::<u8>(), prop::bool::weighted(0.9))
            .prop_map(|(run, own)| ClientOp::Cancel { run, own }),
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
