use model::rollup::Count;
use store::LiveCount;

use super::*;

fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(secs * 1_000)
}

fn fired(slots: u64) -> Rollup {
    let mut rollup = Rollup::default();
    rollup.count(Count::Fired(slots));
    rollup
}

#[test]
fn every_span_ends_now_and_has_all_of_its_points() {
    for span in Span::ALL {
        let (count, point, step) = span.points();
        assert_eq!(Span::parse(span.as_str()), Some(span));
        assert!(step.keep() > point * count, "{span:?} is kept");
        assert_eq!(point.as_secs() % step.span().as_secs(), 0);
        assert_eq!(points(&[], at(0), (count, point)).len(), count as usize);
    }
    assert_eq!(Span::parse("1d"), None);
}

#[test]
fn steps_are_put_together_to_the_points_they_lie_in() {
    let five = Duration::from_secs(300);
    let counted = [
        (at(600), fired(1)),
        (at(660), fired(2)),
        (at(900), fired(4)),
        (at(9_000), fired(8)),
    ];
    let points = points(&counted, at(600), (3, five));
    let fired: Vec<_> = points.iter().map(|(at, sum)| (*at, sum.fired)).collect();
    assert_eq!(fired, [(at(600), 3), (at(900), 4), (at(1_200), 0)]);
}

#[test]
fn a_tenant_sees_its_own_runs_and_jobs_only() {
    let (ours, other) = (TenantId::DEFAULT, TenantId(uuid::Uuid::from_u128(7)));
    let live = |tenant, lane, state, waiting, runs| LiveCount {
        tenant,
        lane,
        state,
        waiting,
        runs,
    };
    let standing = StandingCounts {
        live: vec![
            live(ours, Lane::Critical, RunState::Ready, false, 1),
            live(ours, Lane::Critical, RunState::Ready, true, 2),
            live(ours, Lane::Batch, RunState::Running, false, 3),
            live(ours, Lane::Batch, RunState::Retrying, false, 4),
            live(other, Lane::Batch, RunState::Running, false, 99),
        ],
        live_complete: true,
        jobs: vec![
            (ours, JobState::Paused, 2),
            (ours, JobState::Invalid, 1),
            (other, JobState::Invalid, 99),
        ],
        jobs_complete: false,
    };
    let found = live_of(&standing, ours);
    let depth = |ready, running, retrying, waiting| LaneDepth {
        ready,
        running,
        retrying,
        waiting,
    };
    let lanes = [depth(1, 0, 0, 2), depth(0, 0, 0, 0), depth(0, 3, 4, 0)];
    assert_eq!((found.lanes, found.complete), (lanes, true));
    assert_eq!(found.total(), depth(1, 3, 4, 2));
    assert_eq!(found.total().live(), 10);
    let jobs = jobs_of(&standing, ours, 10);
    assert_eq!((jobs.total, jobs.active, jobs.paused), (10, 7, 2));
    assert_eq!((jobs.invalid, jobs.complete), (1, false));
    let fewer = jobs_of(&standing, ours, 1);
    assert_eq!((fewer.total, fewer.active), (3, 0), "never below nothing");
}

#[test]
fn what_is_wrong_is_said_and_nothing_else() {
    let jobs = Jobs::default();
    assert_eq!(attention_to(&fired(9), &jobs, Span::Day), []);
    let mut total = fired(9);
    for count in [
        Count::Ended(RunState::Dead, 1),
        Count::Skipped(Reason::Missed, 3),
        Count::Skipped(Reason::QueueFull, 1),
        Count::Skipped(Reason::Overload, 1),
        Count::Skipped(Reason::Paused, 5),
        Count::Late,
    ] {
        total.count(count);
    }
    let jobs = Jobs { invalid: 2, ..jobs };
    let all = attention_to(&total, &jobs, Span::Day);
    let codes: Vec<_> = all.iter().map(|it| (it.code, it.count)).collect();
    let expected = [
        ("dead-runs", 1),
        ("missed-slots", 3),
        ("slots-overloaded", 2),
        ("late-runs", 1),
        ("invalid-jobs", 2),
    ];
    assert_eq!(codes, expected);
    assert!(all[0].text.starts_with("1 run is dead since 24h ago"));
}

#[test]
fn nodes_that_are_silent_or_whose_clock_is_off_are_named() {
    let peer = |name: &str, beaten: u64, ahead: i64| store::Peer {
        presence: model::PresenceId(uuid::Uuid::from_u128(1)),
        node: store::NodeInfo {
            name: name.to_owned(),
            ..store::NodeInfo::default()
        },
        node_status: store::NodeStatus {
            offset: Some(store::Offset {
                ahead,
                uncertainty: 100,
            }),
            ..store::NodeStatus::default()
        },
        joined_at: at(0),
        mark: model::BeatMark::default(),
        beaten: Duration::from_millis(beaten),
        shards: 1,
    };
    let heard = |peers, heard| NodesHeard {
        nodes: engine::Nodes {
            peers,
            me: None,
            heard,
        },
        heard_at: None,
    };
    let well = heard(vec![peer("a", 900, 999_999)], Duration::ZERO);
    assert_eq!(attention_to_nodes(&well), []);
    let peers = vec![peer("a", 2_000, 0), peer("b", 0, -1_000_000)];
    let ill = attention_to_nodes(&heard(peers, limits::PRESENCE_TTL));
    let codes: Vec<_> = ill.iter().map(|it| (it.code, it.count)).collect();
    let expected = [("store-silent", 1), ("silent-nodes", 1), ("clocks-off", 1)];
    assert_eq!(codes, expected);
    assert!(ill[1].text.ends_with(": a") && ill[2].text.ends_with(": b"));
    let many: Vec<_> = (0..9).map(|number| number.to_string()).collect();
    assert_eq!(some(&many), "0, 1, 2, 3, 4 and 4 more");
}
