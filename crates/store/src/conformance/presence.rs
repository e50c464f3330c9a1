//! Presences: who lives, who is fenced, and what is left of those who are gone.

use std::time::Duration;

use model::shard::ShardSet;
use model::{AttemptNo, BeatMark, Mark, Observer, PresenceId, Reason, RunId, Shard, TenantId};

use super::{Kept, NODE, Subject, at, firing, job, node};
use crate::{HeldClaim, NodeStatus, Offset, Orphan, Peer, StoreClock as _, StoreError};

pub async fn a_presence_sees_who_lives(subject: Subject) -> Kept {
    let Subject {
        store,
        leases,
        other,
        ..
    } = &subject;
    let mut beat = store.beat(leases.presence, &NodeStatus::default()).await?;
    beat.living.sort_by_key(|peer| peer.presence);
    beat.living.iter_mut().for_each(unmark);
    let first = Peer {
        shards: 256,
        ..peer(leases.presence, NODE)
    };
    let mut both = [first, peer(other.presence, "second")];
    both.sort_by_key(|peer| peer.presence);
    assert_eq!(beat.living, both, "and what each says of itself");
    assert_eq!((beat.now_micros, beat.marks), (micros(0), vec![]));
    let third = store.join(&node("third")).await?;
    let mut living = store
        .beat(leases.presence, &NodeStatus::default())
        .await?
        .living;
    living.iter_mut().for_each(unmark);
    assert!(living.contains(&peer(third, "third")), "{living:?}");
    Ok(())
}

fn peer(presence: PresenceId, name: &str) -> Peer {
    Peer {
        presence,
        node: node(name),
        node_status: NodeStatus::default(),
        joined_at: at(0),
        mark: BeatMark::default(),
        beaten: Duration::ZERO,
        shards: 0,
    }
}

/// What a mark is, is the store's own affair.
fn unmark(peer: &mut Peer) {
    peer.mark = BeatMark::default();
}

/// So many seconds after the tests' beginning of time, as a beat says it.
fn micros(secs: i64) -> i64 {
    at(secs).as_millis() * 1_000
}

pub async fn what_a_node_says_of_itself_is_what_others_hear(subject: Subject) -> Kept {
    let Subject {
        store,
        leases,
        other,
        clock,
        ..
    } = &subject;
    clock.advance(Duration::from_millis(1_500));
    let offset = Offset {
        ahead: -3_000_000_000,
        uncertainty: 4_000_000_000,
    };
    let said = [
        NodeStatus {
            schedules: true,
            executes: false,
            room: 0,
            lateness: u32::MAX,
            offset: Some(offset),
            low_water: None,
        },
        NodeStatus {
            schedules: false,
            executes: true,
            room: u32::MAX,
            lateness: 0,
            offset: None,
            low_water: None,
        },
    ];
    for node_status in said {
        store.beat(leases.presence, &node_status).await?;
        clock.advance(Duration::from_millis(250));
        let mut living = store
            .beat(other.presence, &NodeStatus::default())
            .await?
            .living;
        living.iter_mut().for_each(unmark);
        let heard = Peer {
            node_status,
            beaten: Duration::from_millis(250),
            shards: 256,
            ..peer(leases.presence, NODE)
        };
        assert!(living.contains(&heard), "{living:?}");
    }
    Ok(())
}

pub async fn the_shards_of_each_are_counted(subject: Subject) -> Kept {
    let Subject {
        store,
        leases,
        other,
        ..
    } = &subject;
    let few: ShardSet = Shard::all().take(100).collect();
    store.lease(leases.presence, &few).await?;
    let rest: ShardSet = Shard::all().skip(250).collect();
    store.lease(other.presence, &rest).await?;
    let mut living = store
        .beat(other.presence, &NodeStatus::default())
        .await?
        .living;
    living.sort_by_key(|peer| peer.presence != leases.presence);
    let shards: Vec<_> = living.iter().map(|peer| peer.shards).collect();
    assert_eq!(shards, [100, 6]);
    store.leave(leases.presence).await?;
    let third = store.join(&node("third")).await?;
    let living = store.beat(third, &NodeStatus::default()).await?.living;
    let shards: u16 = living.iter().map(|peer| peer.shards).sum();
    assert_eq!(shards, 6, "what nobody holds is not counted");
    Ok(())
}

pub async fn a_silent_presence_lives_until_it_is_fenced(subject: Subject) -> Kept {
    let Subject {
        store,
        leases,
        other,
        clock,
        ..
    } = &subject;
    clock.advance(Duration::from_secs(3_600));
    let living = store
        .beat(other.presence, &NodeStatus::default())
        .await?
        .living;
    let silent = living.iter().find(|it| it.presence == leases.presence);
    let beaten = silent.map(|peer| peer.beaten);
    assert_eq!(beaten, Some(Duration::from_secs(3_600)), "{living:?}");
    subject.fence_first().await?;
    let living = store
        .beat(other.presence, &NodeStatus::default())
        .await?
        .living;
    let named: Vec<_> = living.iter().map(|peer| peer.presence).collect();
    assert_eq!(named, [other.presence]);
    Ok(())
}

pub async fn a_late_beat_is_as_good_as_any_unless_somebody_fenced(subject: Subject) -> Kept {
    let Subject {
        store,
        leases,
        clock,
        ..
    } = &subject;
    let job = subject.put(job(1)?).await?;
    clock.advance(Duration::from_secs(3_600));
    store.beat(leases.presence, &NodeStatus::default()).await?;
    assert_eq!(subject.claimed(job.id).await?.claim, Some(leases.presence));
    Ok(())
}

pub async fn a_fenced_presence_must_join_again(subject: Subject) -> Kept {
    let Subject { store, leases, .. } = &subject;
    subject.fence_first().await?;
    let beat = store.beat(leases.presence, &NodeStatus::default()).await;
    assert!(matches!(beat, Err(StoreError::Fenced)), "{beat:?}");
    let leased = store.lease(leases.presence, &ShardSet::ALL).await;
    assert!(matches!(leased, Err(StoreError::Fenced)), "{leased:?}");
    let marked = store.mark_running(leases.presence, &[]).await;
    assert!(matches!(marked, Err(StoreError::Fenced)), "{marked:?}");
    let again = store.join(&node("first")).await?;
    assert_ne!(again, leases.presence);
    assert_eq!(
        store.lease(again, &ShardSet::ALL).await?.shards(),
        ShardSet::ALL
    );
    Ok(())
}

pub async fn a_presence_nobody_knows_is_fenced(subject: Subject) -> Kept {
    let stranger = PresenceId::new(at(9), [9; 10]);
    let beat = subject.store.beat(stranger, &NodeStatus::default()).await;
    assert!(matches!(beat, Err(StoreError::Fenced)), "{beat:?}");
    let leased = subject.store.lease(stranger, &ShardSet::ALL).await;
    assert!(matches!(leased, Err(StoreError::Fenced)), "{leased:?}");
    let settled = subject.store.settle(stranger, &[]).await;
    assert!(matches!(settled, Err(StoreError::Fenced)), "{settled:?}");
    subject.store.leave(stranger).await?;
    Ok(())
}

/// Also at one moment.
pub async fn no_two_beats_have_one_mark(subject: Subject) -> Kept {
    let (me, other) = (subject.presence(), subject.other.presence);
    let mut last = subject.last_beat(other, me).await?;
    for step in [0, 0, 1, 0, 1, 1_000] {
        subject.clock.advance(Duration::from_millis(step));
        let next = subject.last_beat(me, me).await?;
        assert!(next > last, "{next:?} after {last:?}");
        assert_eq!(subject.last_beat(other, me).await?, next, "its last beat");
        last = next;
    }
    Ok(())
}

pub async fn a_silent_presence_is_fenced_once(subject: Subject) -> Kept {
    let Subject {
        store,
        leases,
        other,
        ..
    } = &subject;
    let last = subject.last_beat(other.presence, leases.presence).await?;
    let own = subject.last_beat(other.presence, other.presence).await?;
    let fenced = store.fence(other.presence, &[last]).await?;
    assert_eq!(fenced, [leases.presence]);
    assert_eq!(store.fence(other.presence, &[last]).await?, []);
    let by_fenced = store.fence(leases.presence, &[own]).await?;
    assert_eq!(by_fenced, [], "the fenced fence nobody");
    let stranger = PresenceId::new(at(9), [9; 10]);
    assert_eq!(store.fence(stranger, &[own]).await?, []);
    let nobody = [(stranger, own.1)];
    assert_eq!(store.fence(other.presence, &nobody).await?, []);
    assert_eq!(store.fence(other.presence, &[]).await?, []);
    Ok(())
}

/// A fence that was long on its way finds that it is wrong.
pub async fn whoever_has_beaten_since_is_not_fenced(subject: Subject) -> Kept {
    let Subject {
        store,
        leases,
        other,
        ..
    } = &subject;
    let last = subject.last_beat(other.presence, leases.presence).await?;
    store.beat(leases.presence, &NodeStatus::default()).await?;
    assert_eq!(store.fence(other.presence, &[last]).await?, []);
    subject.pass(60, &[other.presence]).await?;
    assert_eq!(store.fence(other.presence, &[last]).await?, []);
    store.beat(leases.presence, &NodeStatus::default()).await?;
    Ok(())
}

/// One beats at 0 s, the other at 0.9 s; nobody reaches the store from 0.95 to 3.45 s, and the other is back first.
pub async fn an_outage_of_the_store_costs_nobody_a_presence(subject: Subject) -> Kept {
    let Subject {
        store,
        leases,
        other,
        clock,
        ..
    } = &subject;
    let (mut observer, start) = (Observer::default(), clock.uptime());
    for (after, beats) in [
        (0, leases),
        (900, other),
        (2_600, other),
        (900, other),
        (50, leases),
        (1_000, other),
        (1_000, other),
    ] {
        clock.advance(Duration::from_millis(after));
        let beat = store.beat(beats.presence, &NodeStatus::default()).await?;
        let now = clock.uptime().saturating_sub(start);
        if beats == other {
            let last = beat.living.iter().map(|peer| (peer.presence, peer.mark));
            observer.observe(now, now, last);
        }
        assert_eq!(observer.lapsed(now), [], "at {now:?}");
    }
    Ok(())
}

pub async fn a_step_of_the_wall_clock_ends_no_presence(subject: Subject) -> Kept {
    let Subject {
        store,
        leases,
        other,
        clock,
        ..
    } = &subject;
    for step in [3_600_000, -7_200_000, -100] {
        let last = subject.last_beat(other.presence, leases.presence).await?;
        clock.step_wall(step);
        let heard = subject.last_beat(other.presence, leases.presence).await?;
        assert_eq!(heard, last, "a step is no beat");
        store.beat(leases.presence, &NodeStatus::default()).await?;
        assert_eq!(store.fence(other.presence, &[last]).await?, []);
    }
    let beat = store.beat(other.presence, &NodeStatus::default()).await?;
    let now = micros(-3_600) - 100_000;
    assert_eq!((beat.living.len(), beat.now_micros), (2, now));
    Ok(())
}

/// What was dispatched before the clock went back must not look as if it had never been due.
pub async fn a_clock_that_went_back_leaves_no_claim_in_doubt(subject: Subject) -> Kept {
    let Subject {
        store,
        leases,
        other,
        clock,
        ..
    } = &subject;
    let job = subject.put(job(1)?).await?;
    let (due, ahead) = (
        subject.claimed(job.id).await?,
        subject.claimed(job.id).await?,
    );
    subject.pass(61, &[leases.presence, other.presence]).await?;
    clock.step_wall(-3_600_000);
    subject.fence_first().await?;
    let orphans = store.orphans(&ShardSet::ALL, 9).await?;
    let runs: Vec<_> = orphans.iter().map(|orphan| &orphan.run).collect();
    assert_eq!(runs, [&due, &ahead]);
    for Orphan {
        run,
        ended_at,
        node,
        ..
    } in &orphans
    {
        assert_eq!(&**node, NODE);
        assert_eq!(
            *ended_at >= run.due_at,
            run.due_at == due.due_at,
            "{ended_at} {run:?}"
        );
    }
    Ok(())
}

pub async fn leaving_twice_is_leaving_once(subject: Subject) -> Kept {
    let Subject {
        store,
        leases,
        clock,
        ..
    } = &subject;
    let job = subject.put(job(1)?).await?;
    subject.claimed(job.id).await?;
    store.leave(leases.presence).await?;
    clock.advance(Duration::from_secs(1));
    store.leave(leases.presence).await?;
    let orphans = store.orphans(&ShardSet::ALL, 9).await?;
    assert_eq!(
        orphans
            .iter()
            .map(|orphan| orphan.ended_at)
            .collect::<Vec<_>>(),
        [at(0)]
    );
    Ok(())
}

pub async fn orphans_are_the_claims_of_those_who_are_gone(subject: Subject) -> Kept {
    let Subject { store, leases, .. } = &subject;
    let job = subject.put(job(1)?).await?;
    let held = subject.claimed(job.id).await?;
    subject.ready(job.id).await?;
    assert_eq!(store.orphans(&ShardSet::ALL, 9).await?, []);
    subject.fence_first().await?;
    let orphans = store.orphans(&ShardSet::ALL, 9).await?;
    let [orphan] = orphans.as_slice() else {
        return Err(format!("{orphans:?}").into());
    };
    assert_eq!((&orphan.run, orphan.ended_at), (&held, at(7)));
    assert_eq!(orphan.job, subject.job(job.id).await?);
    assert_eq!(
        orphan.run.claim,
        Some(leases.presence),
        "the token it is settled with"
    );
    Ok(())
}

pub async fn orphans_come_by_shard_and_at_most_as_many_as_requested(subject: Subject) -> Kept {
    let Subject { store, leases, .. } = &subject;
    let mut runs = Vec::new();
    for number in 1..=4 {
        let job = subject.put(job(number)?).await?;
        runs.push(subject.claimed(job.id).await?);
    }
    runs.sort_by_key(|run| run.id);
    store.leave(leases.presence).await?;
    let named = |orphans: Vec<Orphan>| -> Vec<RunId> {
        orphans.into_iter().map(|orphan| orphan.run.id).collect()
    };
    let all: Vec<_> = runs.iter().map(|run| run.id).collect();
    assert_eq!(named(store.orphans(&ShardSet::ALL, 9).await?), all);
    assert_eq!(named(store.orphans(&ShardSet::ALL, 2).await?), all[..2]);
    for run in &runs {
        let shard: ShardSet = [run.shard()].into_iter().collect();
        assert!(named(store.orphans(&shard, 9).await?).contains(&run.id));
        let rest: ShardSet = Shard::all().filter(|shard| *shard != run.shard()).collect();
        assert!(!named(store.orphans(&rest, 9).await?).contains(&run.id));
    }
    Ok(())
}

pub async fn claims_are_read_page_by_page(subject: Subject) -> Kept {
    let Subject {
        store,
        leases,
        other,
        ..
    } = &subject;
    let job = subject.put(job(1)?).await?;
    let mut expected = Vec::new();
    for _ in 0..3 {
        let run = subject.claimed(job.id).await?;
        let (run, due_at) = (run.id, run.due_at);
        expected.push(HeldClaim {
            run,
            attempt: AttemptNo::FIRST,
            due_at,
            mark: None,
        });
    }
    subject.ready(job.id).await?;
    store
        .cancel_run(TenantId::DEFAULT, expected[2].run, at(0))
        .await?;
    expected[2].mark = Some(Mark::Cancel(Reason::Requested));
    assert_eq!(store.claims(leases.presence, None, 9).await?, expected);
    assert_eq!(store.claims(leases.presence, None, 2).await?, expected[..2]);
    let after = Some(expected[1].run);
    assert_eq!(
        store.claims(leases.presence, after, 2).await?,
        expected[2..]
    );
    assert_eq!(store.claims(other.presence, None, 9).await?, []);
    Ok(())
}

/// A crash: what was answered is still there, and whoever wrote is gone.
pub async fn opening_again_keeps_everything_but_presences(subject: Subject) -> Kept {
    let Some(reopen) = subject.reopen.clone() else {
        return Ok(());
    };
    let job = subject.put(job(1)?).await?;
    let held = subject.claimed(job.id).await?;
    let stands = subject.job(job.id).await?;
    subject.clock.advance(Duration::from_secs(5));
    let Subject {
        store,
        leases,
        clock,
        guard,
        ..
    } = subject;
    let store = reopen(store).await?;
    let beat = store.beat(leases.presence, &NodeStatus::default()).await;
    assert!(matches!(beat, Err(StoreError::Fenced)), "{beat:?}");
    let fired = store.fire(&leases, &[firing(&stands, at(120))]).await?;
    assert_eq!(fired, [crate::Fired::LeaseLost]);
    let orphans = store.orphans(&ShardSet::ALL, 9).await?;
    let [orphan] = orphans.as_slice() else {
        return Err(format!("{orphans:?}").into());
    };
    assert_eq!(
        (&orphan.run, &orphan.job, orphan.ended_at),
        (&held, &stands, at(5))
    );
    let again = Subject::over(store, clock).await?;
    assert!(
        again
            .leases
            .epochs
            .iter()
            .all(|(shard, epoch)| Some(*epoch) > leases.epoch(*shard))
    );
    assert_eq!(
        again.leases.shards(),
        ShardSet::ALL,
        "nobody living held them"
    );
    drop(guard);
    Ok(())
}
