//! What may happen. Jobs, presences and runs are picked by small numbers, which mean whatever a world knows by
//! then; so a sequence that lost some of its steps is still one.

use proptest::collection::vec;
use proptest::prelude::*;

use super::people::SCHEDULES;

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
    Rule(RuleOp),
    Engine(By, EngineOp),
    Outside(By, OutsideOp),
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
    Beat(u8),
    Lease(Want),
    Leave,
    Fence,
    /// Seconds pass in which only one is heard, and then it fences the others.
    Outlive,
}

#[derive(Debug, Clone)]
pub(super) enum JobOp {
    Create(Vec<u8>),
    Change {
        job: u8,
        kind: Change,
        fresh: bool,
        /// At the store's moment, or a moment before the slot that was decided last.
        ahead: bool,
    },
    Park(u8),
    Retain,
}

/// About calendars and zones. `fresh`: about what stands; else about something that may never have been.
#[derive(Debug, Clone, Copy)]
pub(super) enum RuleOp {
    Put {
        name: u8,
        holds: u8,
        fresh: bool,
        ours: bool,
    },
    Drop {
        name: u8,
        fresh: bool,
        ours: bool,
    },
    List {
        after: u8,
        limit: u8,
    },
    Changed,
    Under {
        rule: u8,
        after: u8,
        limit: u8,
    },
    Applied {
        rule: u8,
        fresh: bool,
    },
}

/// `fresh`: about things as they stand, not as they once were.
#[derive(Debug, Clone)]
pub(super) enum EngineOp {
    Fire {
        jobs: Vec<u8>,
        claim: bool,
        fresh: bool,
        /// In milliseconds, ahead of time if below zero.
        late: i32,
    },
    ClaimDue {
        want: Want,
        room: [u8; 3],
        ahead: u8,
        /// What is overdue by so many seconds is on time yet.
        on_time: u8,
        backlog: [u8; 3],
    },
    Claim {
        runs: Vec<u8>,
        fresh: bool,
    },
    Mark {
        runs: Vec<u8>,
        fresh: bool,
    },
    /// Answers all marks of a presence.
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
    WakeDue {
        want: Want,
        ahead: u8,
        limit: u8,
    },
    Wake {
        runs: Vec<u8>,
    },
}

/// Of attempts that the outside has, or is about to have; and of runs that replays want.
#[derive(Debug, Clone)]
pub(super) enum OutsideOp {
    HandOver {
        runs: Vec<u8>,
        fresh: bool,
        /// How long it may be silent, and how long it may take.
        spans: (u8, u8),
    },
    Heartbeat {
        runs: Vec<u8>,
        fresh: bool,
        /// By a clock that is so many seconds behind.
        behind: u8,
        /// Progress, a checkpoint, or nothing.
        says: u8,
    },
    Report {
        runs: Vec<u8>,
        fresh: bool,
        end: u8,
    },
    /// `fresh`: what is silent now, else what was when somebody last searched.
    Lapse {
        want: Want,
        ahead: u8,
        fresh: bool,
    },
    Append {
        runs: Vec<u8>,
        fresh: bool,
    },
    /// `of_slot`: slots of the past, under their own names.
    Queue {
        jobs: Vec<u8>,
        nonce: u8,
        of_slot: bool,
    },
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
    Wake {
        run: u8,
        own: bool,
    },
    /// What came of so many minutes of a job's slots.
    Slots {
        job: u8,
        from: u8,
        minutes: u8,
        limit: u8,
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
    Resume {
        catch_up: bool,
    },
    Edit {
        overlap: u8,
        schedule: u8,
    },
    Rename(u8),
    /// A rule has changed, or not.
    Reschedule,
    Delete,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    Succeed,
    Retry {
        lost: bool,
    },
    /// Later than any retry is, as after a clock that has gone back.
    Astray,
    Bury,
    Cancel,
    Release,
    /// For something outside, for so many seconds.
    Wait(u8),
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (op(), prop::bool::weighted(0.15)).prop_map(|(op, lost)| Step { op, lost });
    // Some calendars and jobs are there from the start, so that few sequences are about nothing.
    let put = |name, ours| {
        let (holds, fresh) = (name, true);
        Op::Rule(RuleOp::Put {
            name,
            holds,
            fresh,
            ours,
        })
    };
    let create = Op::Job(JobOp::Create((0..9).collect()));
    let mut given = vec![put(0, true), put(1, true), put(0, false), create];
    // Nor about nothing but what is rare: the second time, all is as fast paths want it.
    given.extend(plain_run());
    given.push(Op::Time(TimeOp::Advance { millis: 1_000 }));
    given.extend(plain_run());
    vec(step, 20..80).prop_map(move |steps| {
        let given = given.iter().cloned();
        let given = given.map(|op| Step { op, lost: false });
        given.chain(steps).collect()
    })
}

/// All jobs fire on time, and their runs succeed.
fn plain_run() -> [Op; 2] {
    let fire = EngineOp::Fire {
        jobs: (0..9).collect(),
        claim: true,
        fresh: true,
        late: 0,
    };
    let settle = EngineOp::Settle {
        runs: (0..9).collect(),
        fresh: true,
        end: End::Succeed,
    };
    [fire, settle].map(|op| Op::Engine(By::Leader, op))
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::Again),
        11 => time().prop_map(Op::Time),
        20 => (by(), presence()).prop_map(|(by, op)| Op::Presence(by, op)),
        24 => job().prop_map(Op::Job),
        12 => rule().prop_map(Op::Rule),
        60 => (by(), engine()).prop_map(|(by, op)| Op::Engine(by, op)),
        20 => (by(), outside()).prop_map(|(by, op)| Op::Outside(by, op)),
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
        6 => (0_u8..9).prop_map(PresenceOp::Beat),
        8 => want().prop_map(PresenceOp::Lease),
        1 => Just(PresenceOp::Leave),
        1 => Just(PresenceOp::Fence),
        2 => Just(PresenceOp::Outlive),
    ]
}

fn job() -> impl Strategy<Value = JobOp> {
    prop_oneof![
        4 => vec(0_u8..24, 1..4).prop_map(JobOp::Create),
        16 => (any::<u8>(), change(), fresh(), any::<bool>())
            .prop_map(|(job, kind, fresh, ahead)| JobOp::Change { job, kind, fresh, ahead }),
        1 => any::<u8>().prop_map(JobOp::Park),
        2 => Just(JobOp::Retain),
    ]
}

fn rule() -> impl Strategy<Value = RuleOp> {
    let ours = || prop::bool::weighted(0.8);
    prop_oneof![
        6 => (0_u8..3, 0_u8..6, fresh(), ours())
            .prop_map(|(name, holds, fresh, ours)| RuleOp::Put { name, holds, fresh, ours }),
        4 => (0_u8..3, fresh(), ours())
            .prop_map(|(name, fresh, ours)| RuleOp::Drop { name, fresh, ours }),
        1 => (0_u8..4, 0_u8..3).prop_map(|(after, limit)| RuleOp::List { after, limit }),
        2 => Just(RuleOp::Changed),
        2 => (0_u8..5, any::<u8>(), 0_u8..4)
            .prop_map(|(rule, after, limit)| RuleOp::Under { rule, after, limit }),
        3 => (0_u8..5, fresh()).prop_map(|(rule, fresh)| RuleOp::Applied { rule, fresh }),
    ]
}

fn engine() -> impl Strategy<Value = EngineOp> {
    let late = prop_oneof![3 => Just(0), 2 => -2_000..0, 1 => 0..30_000, 2 => 0..7_200_000];
    let many = || vec(any::<u8>(), 1..4);
    let lanes = || [0_u8..3, 0_u8..3, 0_u8..3];
    prop_oneof![
        24 => (many(), any::<bool>(), fresh(), late)
            .prop_map(|(jobs, claim, fresh, late)| EngineOp::Fire { jobs, claim, fresh, late }),
        8 => (many(), fresh()).prop_map(|(runs, fresh)| EngineOp::Claim { runs, fresh }),
        6 => (want(), lanes(), 0_u8..90, 0_u8..120, lanes())
            .prop_map(|(want, room, ahead, on_time, backlog)| EngineOp::ClaimDue { want, room, ahead, on_time, backlog }),
        3 => (many(), fresh()).prop_map(|(runs, fresh)| EngineOp::Mark { runs, fresh }),
        16 => (many(), fresh(), end())
            .prop_map(|(runs, fresh, end)| EngineOp::Settle { runs, fresh, end }),
        9 => prop::bool::weighted(0.6).prop_map(|taken_back| EngineOp::Withdraw { taken_back }),
        5 => Just(EngineOp::Recover),
        4 => (want(), 0_u8..90, 0_u8..4)
            .prop_map(|(want, ahead, limit)| EngineOp::WakeDue { want, ahead, limit }),
        3 => many().prop_map(|runs| EngineOp::Wake { runs }),
    ]
}

fn outside() -> impl Strategy<Value = OutsideOp> {
    let many = || vec(any::<u8>(), 1..4);
    let behind = prop_oneof![3 => Just(0_u8), 1 => 0_u8..90];
    prop_oneof![
        6 => (many(), fresh(), (0_u8..4, 0_u8..4))
            .prop_map(|(runs, fresh, spans)| OutsideOp::HandOver { runs, fresh, spans }),
        6 => (many(), fresh(), behind, 0_u8..6).prop_map(|(runs, fresh, behind, says)| {
            OutsideOp::Heartbeat { runs, fresh, behind, says }
        }),
        4 => (many(), fresh(), 0_u8..6)
            .prop_map(|(runs, fresh, end)| OutsideOp::Report { runs, fresh, end }),
        3 => (want(), 0_u8..200, fresh())
            .prop_map(|(want, ahead, fresh)| OutsideOp::Lapse { want, ahead, fresh }),
        1 => (many(), fresh()).prop_map(|(runs, fresh)| OutsideOp::Append { runs, fresh }),
        5 => (many(), 0_u8..4, any::<bool>())
            .prop_map(|(jobs, nonce, of_slot)| OutsideOp::Queue { jobs, nonce, of_slot }),
    ]
}

fn client() -> impl Strategy<Value = ClientOp> {
    prop_oneof![
        (any::<u8>(), 0_u8..4, prop::bool::weighted(0.2))
            .prop_map(|(job, nonce, force)| ClientOp::Start { job, nonce, force }),
        (any::<u8>(), prop::bool::weighted(0.9))
            .prop_map(|(run, own)| ClientOp::Cancel { run, own }),
        (any::<u8>(), prop::bool::weighted(0.9)).prop_map(|(run, own)| ClientOp::Wake { run, own }),
        (any::<u8>(), 0_u8..20, 0_u8..20, 0_u8..5).prop_map(|(job, from, minutes, limit)| {
            ClientOp::Slots {
                job,
                from,
                minutes,
                limit,
            }
        }),
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
        2 => any::<bool>().prop_map(|catch_up| Change::Resume { catch_up }),
        4 => (0_u8..5, 0_u8..SCHEDULES)
            .prop_map(|(overlap, schedule)| Change::Edit { overlap, schedule }),
        2 => Just(Change::Reschedule),
        1 => (0_u8..3).prop_map(Change::Rename),
        1 => Just(Change::Delete),
    ]
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        3 => Just(End::Succeed),
        3 => any::<bool>().prop_map(|lost| End::Retry { lost }),
        1 => Just(End::Astray),
        1 => Just(End::Bury),
        1 => Just(End::Cancel),
        2 => Just(End::Release),
        3 => (0_u8..90).prop_map(End::Wait),
    ]
}
