//! Leases: one holder per shard, and epochs that only grow.

use model::shard::ShardSet;
use model::{Shard, Timestamp};

use super::{Kept, Subject, firing, job};
use crate::{Epoch, Fired};

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
