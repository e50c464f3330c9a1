//! Leases: one holder per shard, and epochs that only grow.

use model::shard::ShardSet;
use model::{Shard, Timestamp};

use super::{Kept, Subject, at, firing, job};
use crate::{Epoch, Fired, Leases, LowWater, NodeStatus, StoreError};

fn shards(numbers: &[u8]) -> ShardSet {
    numbers.iter().copied().map(Shard).collect()
}

pub async fn a_shard_has_one_holder(subject: Subject) -> Kept {
    let Subject {
        store,
        leases,
        other,
        ..
    } = &subject;
    assert_eq!(leases.shards(), ShardSet::ALL);
    assert!(other.epochs.is_empty());
    assert!(
        store
            .lease(other.presence, &ShardSet::ALL)
            .await?
            .epochs
            .is_empty()
    );
    assert_eq!(&store.lease(leases.presence, &ShardSet::ALL).await?, leases);
    Ok(())
}

pub async fn every_change_of_hands_raises_the_epoch(subject: Subject) -> Kept {
    let Subject {
        store,
        leases,
        other,
        ..
    } = &subject;
    let mut last = leases.epoch(Shard(7));
    for holder in [other.presence, leases.presence, leases.presence] {
        for presence in [leases.presence, other.presence] {
            store.lease(presence, &ShardSet::default()).await?;
        }
        let epoch = store.lease(holder, &shards(&[7])).await?.epoch(Shard(7));
        assert!(epoch > last, "{epoch:?} after {last:?}");
        last = epoch;
    }
    Ok(())
}

pub async fn a_lease_kept_keeps_its_epoch(subject: Subject) -> Kept {
    let Subject { store, leases, .. } = &subject;
    let fewer = store.lease(leases.presence, &shards(&[1, 2])).await?;
    assert_eq!(fewer.shards(), shards(&[1, 2]));
    assert!(
        fewer
            .epochs
            .iter()
            .all(|(shard, epoch)| leases.epoch(*shard) == Some(*epoch))
    );
    let more = store.lease(leases.presence, &shards(&[1, 2, 3])).await?;
    assert_eq!(more.epoch(Shard(1)), leases.epoch(Shard(1)));
    assert!(
        more.epoch(Shard(3)) > leases.epoch(Shard(3)),
        "it was free in between"
    );
    Ok(())
}

pub async fn a_shard_not_wanted_is_given_up(subject: Subject) -> Kept {
    let Subject {
        store,
        leases,
        other,
        ..
    } = &subject;
    let odd: ShardSet = Shard::all().filter(|shard| shard.0 % 2 == 1).collect();
    let kept = store.lease(leases.presence, &odd).await?;
    assert_eq!(kept.shards(), odd);
    let taken = store.lease(other.presence, &ShardSet::ALL).await?;
    assert_eq!(
        taken.shards(),
        Shard::all().filter(|shard| shard.0 % 2 == 0).collect()
    );
    Ok(())
}

pub async fn leases_of_one_that_left_are_free(subject: Subject) -> Kept {
    let Subject {
        store,
        leases,
        other,
        ..
    } = &subject;
    store.leave(leases.presence).await?;
    let taken = store.lease(other.presence, &ShardSet::ALL).await?;
    assert_eq!(taken.shards(), ShardSet::ALL);
    let next = |epoch: Epoch| Epoch(epoch.0 + 1);
    assert_eq!(taken.epoch(Shard(0)), leases.epoch(Shard(0)).map(next));
    Ok(())
}

pub async fn a_silent_holder_keeps_its_leases_until_it_is_fenced(subject: Subject) -> Kept {
    let Subject { store, other, .. } = &subject;
    let job = subject.put(job(1)?).await?;
    subject.pass(60, &[other.presence]).await?;
    assert!(
        store
            .lease(other.presence, &ShardSet::ALL)
            .await?
            .epochs
            .is_empty()
    );
    let last = subject
        .last_beat(other.presence, subject.presence())
        .await?;
    store.fence(other.presence, &[last]).await?;
    let taken = store.lease(other.presence, &ShardSet::ALL).await?;
    let due_at = job.next_due_at().unwrap_or(Timestamp::MAX);
    let fired = store.fire(&taken, &[firing(&job, due_at)]).await?;
    assert!(matches!(fired.as_slice(), [Fired::Claimed(_)]), "{fired:?}");
    Ok(())
}

/// What is said with a beat by one who has taken shards so often.
fn mark(secs: i64, taken: u32) -> NodeStatus {
    let at = at(secs);
    NodeStatus {
        low_water: Some(LowWater { at, taken }),
        ..NodeStatus::default()
    }
}

fn at_mark(leases: &Leases) -> (Timestamp, u32) {
    (leases.low_water.at, leases.low_water.taken)
}

pub async fn the_low_water_mark_of_a_shard_stays_with_it(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let (first, second) = (subject.leases.presence, subject.other.presence);
    assert_eq!(at_mark(&subject.leases), (Timestamp::MIN, 1), "not known");
    assert_eq!(at_mark(&subject.other), (Timestamp::MAX, 0), "of nothing");

    let (one, two) = (shards(&[1, 2]), shards(&[2]));
    // Given up.
    store.beat(first, &mark(50, 1)).await?;
    let kept = store.lease(first, &one).await?;
    assert_eq!(at_mark(&kept), (at(50), 1), "it took none");
    let taken = store.lease(second, &shards(&[7])).await?;
    assert_eq!(at_mark(&taken), (at(50), 1));
    // A lower one of another shard makes it lower.
    store.beat(second, &mark(70, 1)).await?;
    store.beat(first, &mark(60, 1)).await?;
    store.lease(first, &shards(&[1])).await?;
    let taken = store.lease(second, &shards(&[2, 7])).await?;
    assert_eq!(at_mark(&taken), (at(60), 2));
    // Of one that has left, and of one that was fenced.
    store.beat(second, &mark(80, 2)).await?;
    store.leave(second).await?;
    let taken = store.lease(first, &two).await?;
    assert_eq!(at_mark(&taken), (at(60), 2), "it had that of its first");
    store.beat(first, &mark(90, 2)).await?;
    let third = store.join(&super::node("third")).await?;
    let last = subject.last_beat(third, first).await?;
    assert_eq!(store.fence(third, &[last]).await?, [first]);
    let taken = store.lease(third, &two).await?;
    assert_eq!(at_mark(&taken), (at(90), 1));
    Ok(())
}

pub async fn a_low_water_mark_of_before_a_change_of_hands_is_refused(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let (first, second) = (subject.leases.presence, subject.other.presence);
    store.beat(first, &mark(50, 1)).await?;
    store.lease(first, &shards(&[1])).await?;
    let taken = store.lease(second, &shards(&[2])).await?;
    assert_eq!(at_mark(&taken), (at(50), 1));
    // By one who had it before.
    store.beat(first, &mark(90, 1)).await?;
    assert_eq!(store.lease(second, &shards(&[2])).await?, taken);
    // By its holder, for what it held before.
    store.beat(second, &mark(40, 1)).await?;
    store.lease(second, &shards(&[])).await?;
    let taken = store.lease(first, &shards(&[1, 2])).await?;
    assert_eq!(at_mark(&taken), (at(40), 2));
    store.beat(first, &mark(95, 1)).await?;
    assert_eq!(store.lease(first, &shards(&[1, 2])).await?, taken);
    // It goes up and down; a beat that says nothing leaves it.
    for secs in [95, 10] {
        store.beat(first, &mark(secs, 2)).await?;
        store.beat(first, &NodeStatus::default()).await?;
        let kept = store.lease(first, &shards(&[1, 2])).await?;
        assert_eq!(at_mark(&kept), (at(secs), 2));
    }
    store.leave(first).await?;
    let refused = store.beat(first, &mark(99, 2)).await;
    assert!(matches!(refused, Err(StoreError::Fenced)), "{refused:?}");
    let taken = store.lease(second, &shards(&[1])).await?;
    assert_eq!(taken.low_water.at, at(10));
    Ok(())
}
