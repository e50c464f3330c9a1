//! Levels: what definitions may need, and nodes must know.

use model::{Level, PresenceId};

use super::{Kept, NODE, Subject, node};
use crate::{NodeInfo, Raised, StoreError};

fn knows(level: u16) -> NodeInfo {
    NodeInfo {
        level: Level(level),
        ..node("some")
    }
}

impl Subject {
    async fn leave(&self, presences: &[PresenceId]) -> Kept {
        for presence in presences {
            self.store.leave(*presence).await?;
        }
        Ok(())
    }
}

/// Both nodes of a subject know level 3.
pub async fn a_level_is_raised_when_every_living_node_knows_it(subject: Subject) -> Kept {
    let store = &subject.store;
    assert_eq!(store.raise_level(Level(3)).await?, Raised::Done);
    let Raised::Below(below) = store.raise_level(Level(4)).await? else {
        return Err("it was raised".into());
    };
    assert_eq!(below.level, Level(3));
    assert!([node(NODE), node("second")].contains(&below), "{below:?}");
    let newer = store.join(&knows(4)).await?;
    assert!(matches!(
        store.raise_level(Level(4)).await?,
        Raised::Below(_)
    ));
    subject
        .leave(&[subject.leases.presence, subject.other.presence])
        .await?;
    assert_eq!(store.raise_level(Level(4)).await?, Raised::Done);
    assert_eq!(store.raise_level(Level(4)).await?, Raised::Done);
    assert_eq!(store.raise_level(Level::FIRST).await?, Raised::Done);
    subject.leave(&[newer]).await
}

pub async fn a_node_below_the_level_may_not_join(subject: Subject) -> Kept {
    let store = &subject.store;
    store.join(&knows(1)).await?;
    let below = store.raise_level(Level(2)).await?;
    assert_eq!(below, Raised::Below(Box::new(knows(1))));
    is_refused(&subject, 0, 1).await
}

/// Whoever knows `level` is refused by a store that needs `needed`.
async fn is_refused(subject: &Subject, level: u16, needed: u16) -> Kept {
    let refused = subject.store.join(&knows(level)).await;
    let Err(StoreError::Unusable(line)) = refused else {
        return Err(format!("{refused:?}").into());
    };
    assert!(line.contains(&format!("level {needed},")), "{line}");
    assert!(line.contains(&format!("level {level}:")), "{line}");
    Ok(())
}

pub async fn a_level_that_was_raised_stays(subject: Subject) -> Kept {
    let Some(reopen) = subject.reopen.clone() else {
        return Ok(());
    };
    assert_eq!(subject.store.raise_level(Level(3)).await?, Raised::Done);
    is_refused(&subject, 2, 3).await?;
    let Subject {
        store,
        clock,
        guard,
        ..
    } = subject;
    let subject = Subject::over(reopen(store).await?, clock).await?;
    is_refused(&subject, 2, 3).await?;
    subject.store.join(&knows(3)).await?;
    drop(guard);
    Ok(())
}
