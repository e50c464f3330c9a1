//! Presences: who lives, who is barred, and what is left of those who are gone.

use std::time::Duration;

use model::limits::PRESENCE_TTL;
use model::shard::ShardSet;
use model::{Ask, AttemptNo, PresenceId, Reason, RunId, Shard, TenantId};

use super::{Kept, NODE, Subject, at, firing, job, node};
use crate::{HeldClaim, Offset, Orphan, Peer, StoreError, Vitals};

const MOMENT: Duration = Duration::from_millis(1);

pub async fn a_presence_sees_who_lives(subject: Subject) -> Kept {
    let Subject {
        store,
        leases,
        other,
        ..
    } = &subject;
    let mut beat = store.beat(leases.presence, &Vitals::default()).await?;
    beat.living.sort_by_key(|peer| peer.presence);
    let first = Peer {
        shards: 256,
        ..peer(leases.presence, NODE)
    };
    let mut both = [first, peer(other.presence, "second")];
    both.sort_by_key(|peer| peer.presence);
    assert_eq!(beat.living, both, "and what each says of itself");
    assert_eq!((beat.now_micros, beat.asks), (micros(0), vec![]));
    let third = store.join(&node("third")).await?;
    let living = store
        .beat(leases.presence, &Vitals::default())
        .await?
        .living;
    assert!(living.contains(&peer(third, "third")), "{living:?}");
    Ok(())
}

fn peer(presence: PresenceId, name: &str) -> Peer {
    Peer {
        presence,
        node: node(name),
        vitals: Vitals::default(),
        joined_at: at(0),
        beaten: Duration::ZERO,
        shards: 0,
    }
}

/// So many seconds after the tests' beginning of time, as a beat tells it.
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
        Vitals {
            schedules: true,
            executes: false,
            room: 0,
            lag: u32::MAX,
            offset: Some(offset),
        },
        Vitals {
            schedules: false,
            executes: true,
            room: u32::MAX,
            lag: 0,
            offset: None,
        },
    ];
    for vitals in said {
        store.beat(leases.presence, &vitals).await?;
        clock.advance(Duration::from_millis(250));
        let living = store.beat(other.presence, &Vitals::default()).await?.living;
        let heard = Peer {
            vitals,
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
    let mut living = store.beat(other.presence, &Vitals::default()).await?.living;
    living.sort_by_key(|peer| peer.presence != leases.presence);
    let shards: Vec<_> = living.iter().map(|peer| peer.shards).collect();
    assert_eq!(shards, [100, 6]);
    store.leave(leases.presence).await?;
    let third = store.join(&node("third")).await?;
    let living = store.beat(third, &Vitals::default()).await?.living;
    let shards: u16 = living.iter().map(|peer| peer.shards).sum();
    assert_eq!(shards, 6, "what nobody holds is not counted");
    Ok(())
}

pub async fn a_silent_presence_is_not_among_the_living(subject: Subject) -> Kept {
    let Subject {
        store,
        leases,
        other,
        clock,
        ..
    } = &subject;
    clock.advance(PRESENCE_TTL);
    assert_eq!(
        store
            .beat(leases.presence, &Vitals::default())
            .await?
            .living
            .len(),
        2,
        "its time is just not up"
    );
    clock.advance(MOMENT);
    let named = |living: &[Peer]| living.iter().map(|peer| peer.presence).collect::<Vec<_>>();
    let living = store
        .beat(leases.presence, &Vitals::default())
        .await?
        .living;
    assert_eq!(named(&living), [leases.presence]);
    store.leave(leases.presence).await?;
    let living = store.beat(other.presence, &Vitals::default()).await?.living;
    assert_eq!(living, [peer(other.presence, "second")]);
    Ok(())
}

pub async fn a_late_beat_revives_a_presence_that_nobody_barred(subject: Subject) -> Kept {
    let Subject {
        store,
        leases,
        clock,
        ..
    } = &subject;
    let job = subject.put(job(1)?).await?;
    clock.advance(Duration::from_secs(3_600));
    store.beat(leases.presence, &Vitals::default()).await?;
    assert_eq!(subject.claimed(job.id).await?.claim, Some(leases.presence));
    Ok(())
}

pub async fn a_barred_presence_must_join_again(subject: Subject) -> Kept {
    let Subject { store, leases, .. } = &subject;
    subject.bar_first().await?;
    let beat = store.beat(leases.presence, &Vitals::default()).await;
    assert!(matches!(beat, Err(StoreError::Barred)), "{beat:?}");
    let leased = store.lease(leases.presence, &ShardSet::ALL).await;
    assert!(matches!(leased, Err(StoreError::Barred)), "{leased:?}");
    let marked = store.mark_running(leases.presence, &[]).await;
    assert!(matches!(marked, Err(StoreError::Barred)), "{marked:?}");
    let again = store.join(&node("first")).await?;
    assert_ne!(again, leases.presence);
    assert_eq!(
        store.lease(again, &ShardSet::ALL).await?.shards(),
        ShardSet::ALL
    );
    Ok(())
}

pub async fn a_presence_nobody_knows_is_barred(subject: Subject) -> Kept {
    let stranger = PresenceId::new(at(9), [9; 10]);
    let beat = subject.store.beat(stranger, &Vitals::default()).await;
    assert!(matches!(beat, Err(StoreError::Barred)), "{beat:?}");
    let leased = subject.store.lease(stranger, &ShardSet::ALL).await;
    assert!(matches!(leased, Err(StoreError::Barred)), "{leased:?}");
    let settled = subject.store.settle(stranger, &[]).await;
    assert!(matches!(settled, Err(StoreError::Barred)), "{settled:?}");
    subject.store.leave(stranger).await?;
    Ok(())
}

pub async fn a_newcomer_bars_nobody(subject: Subject) -> Kept {
    let Subject { store, clock, .. } = &subject;
    clock.advance(Duration::from_secs(60));
    let third = store.join(&node("third")).await?;
    assert_eq!(store.bar_lapsed(third).await?, []);
    subject.pass(2, &[third]).await?;
    assert_eq!(store.bar_lapsed(third).await?, []);
    subject.pass(1, &[third]).await?;
    assert_eq!(
        store.bar_lapsed(third).await?.len(),
        2,
        "now it has lived a whole lifetime"
    );
    Ok(())
}

pub async fn one_that_was_silent_itself_bars_nobody(subject: Subject) -> Kept {
    let Subject {
        store,
        leases,
        clock,
        ..
    } = &subject;
    subject.pass(10, &[leases.presence]).await?;
    clock.advance(PRESENCE_TTL + MOMENT);
    assert_eq!(
        store.bar_lapsed(leases.presence).await?,
        [],
        "its own time is up"
    );
    store.beat(leases.presence, &Vitals::default()).await?;
    assert_eq!(
        store.bar_lapsed(leases.presence).await?,
        [],
        "it cannot know who tried to beat"
    );
    Ok(())
}

pub async fn an_outage_of_the_store_costs_nobody_a_presence(subject: Subject) -> Kept {
    let Subject {
        store,
        leases,
        other,
        clock,
        ..
    } = &subject;
    let both = [leases.presence, other.presence];
    subject.pass(10, &both).await?;
    clock.advance(Duration::from_secs(600));
    // The store is back: one of them is first, the other comes within its own second.
    store.beat(leases.presence, &Vitals::default()).await?;
    assert_eq!(store.bar_lapsed(leases.presence).await?, []);
    subject.pass(5, &both).await?;
    assert_eq!(store.bar_lapsed(leases.presence).await?, []);
    assert_eq!(store.bar_lapsed(other.presence).await?, []);
    Ok(())
}

pub async fn a_lapsed_presence_is_barred_once(subject: Subject) -> Kept {
    let Subject {
        store,
        leases,
        other,
        ..
    } = &subject;
    subject.pass(3, &[other.presence]).await?;
    assert_eq!(
        store.bar_lapsed(other.presence).await?,
        [],
        "its time is just not up"
    );
    subject.pass(1, &[other.presence]).await?;
    assert_eq!(store.bar_lapsed(other.presence).await?, [leases.presence]);
    assert_eq!(store.bar_lapsed(other.presence).await?, []);
    assert_eq!(
        store.bar_lapsed(leases.presence).await?,
        [],
        "the dead bar nobody"
    );
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
    subject.pass(4, &[leases.presence, other.presence]).await?;
    clock.step_wall(3_600_000);
    assert_eq!(store.bar_lapsed(leases.presence).await?, []);
    assert_eq!(
        store
            .beat(leases.presence, &Vitals::default())
            .await?
            .living
            .len(),
        2
    );
    clock.step_wall(-7_200_000);
    assert_eq!(store.bar_lapsed(leases.presence).await?, []);
    let beat = store.beat(other.presence, &Vitals::default()).await?;
    assert_eq!((beat.living.len(), beat.now_micros), (2, micros(4 - 3_600)));
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
    subject.bar_first().await?;
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
    subject.bar_first().await?;
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

pub async fn orphans_come_by_shard_and_at_most_as_many_as_asked(subject: Subject) -> Kept {
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
            ask: None,
        });
    }
    subject.ready(job.id).await?;
    store
        .cancel_run(TenantId::DEFAULT, expected[2].run, at(0))
        .await?;
    expected[2].ask = Some(Ask::Cancel(Reason::Asked));
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
    let beat = store.beat(leases.presence, &Vitals::default()).await;
    assert!(matches!(beat, Err(StoreError::Barred)), "{beat:?}");
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
