//! Tokens: a key that another node just made is found, and one from before there was a master key is wrapped.

use std::sync::Arc;
use std::time::Duration;

use model::{AttemptNo, JobId, RunId, Slot};
use store::mem::MemStore;
use store::{EngineStore, ReportKey};

use super::world::{HandClock, at};
use crate::tokens::{Token, Tokens};
use crate::vault::{KeyRing, MasterKey, MasterKeys};

const SECOND: Duration = Duration::from_secs(1);

struct Nodes {
    clock: HandClock,
    store: MemStore,
}

impl Nodes {
    fn new() -> Self {
        let clock = HandClock::default();
        let store = MemStore::new(Arc::new(clock.clone()));
        Self { clock, store }
    }

    fn one(&self, ring: &Arc<KeyRing>) -> Tokens {
        let (store, clock) = (self.store.clone(), self.clock.clone());
        Tokens::new(Arc::new(store), Arc::new(clock), Arc::clone(ring))
    }

    async fn keys(&self) -> Vec<ReportKey> {
        self.store.handed().report_keys().await.unwrap()
    }
}

fn run() -> RunId {
    RunId::for_slot(JobId::new(at(0), [7; 10]), Slot(at(1_000)))
}

fn token() -> Token {
    Token {
        attempt: AttemptNo::FIRST,
        dispatched_at: at(1_000),
    }
}

fn ring(bytes: &[u8]) -> Arc<KeyRing> {
    Arc::new(KeyRing::new(master(bytes)))
}

/// The first of them seals.
fn master(bytes: &[u8]) -> Option<Arc<MasterKeys>> {
    let text = |byte: &u8| MasterKey::new([*byte; 32]).to_text().to_string();
    let lines: Vec<String> = bytes.iter().map(text).collect();
    MasterKeys::parse(&lines.join("\n")).ok().map(Arc::new)
}

#[tokio::test]
async fn a_key_that_another_node_made_after_the_last_read_is_found() {
    let nodes = Nodes::new();
    let (one, other) = (nodes.one(&ring(&[])), nodes.one(&ring(&[])));
    let wrong = "pt1_00000000_1_1000_".to_owned() + &"0".repeat(64);
    assert_eq!(other.check(run(), &wrong).await.unwrap(), None);
    let text = one.sign(run(), token()).await.unwrap();
    let (found, ()) = tokio::join!(other.check(run(), &text), async {
        nodes.clock.advance(SECOND);
    });
    assert_eq!(found.unwrap(), Some(token()));
}

#[tokio::test]
async fn all_who_send_unknown_keys_are_served_by_one_read() {
    let nodes = Nodes::new();
    let one = nodes.one(&ring(&[]));
    let wrong = |key: usize| format!("pt1_0000000{key}_1_1000_{}", "0".repeat(64));
    one.check(run(), &wrong(0)).await.unwrap();
    let (first, second) = (wrong(1), wrong(2));
    // A second passes once: a second read would wait for ever.
    let (first, second, ()) =
        tokio::join!(one.check(run(), &first), one.check(run(), &second), async {
            nodes.clock.advance(SECOND)
        });
    assert_eq!((first.unwrap(), second.unwrap()), (None, None));
}

#[tokio::test]
async fn a_key_from_before_there_was_a_master_key_does_not_stay_readable() {
    let nodes = Nodes::new();
    let of_node = ring(&[]);
    let one = nodes.one(&of_node);
    let text = one.sign(run(), token()).await.unwrap();
    assert!(
        nodes
            .keys()
            .await
            .iter()
            .all(|key| key.master_key.is_none())
    );
    of_node.replace(master(&[1]).unwrap());
    one.renew().await.unwrap();
    let kept = nodes.keys().await;
    assert!(!kept.is_empty());
    assert!(kept.iter().all(|key| key.master_key.is_some()), "{kept:?}");
    assert_eq!(one.check(run(), &text).await.unwrap(), Some(token()));
    let later = nodes.one(&ring(&[2, 1]));
    assert_eq!(later.check(run(), &text).await.unwrap(), Some(token()));
}

/// Nodes get a master key one after another.
#[tokio::test]
async fn a_key_that_another_node_wrapped_stays_good_where_it_was_made() {
    let nodes = Nodes::new();
    let without = nodes.one(&ring(&[]));
    let text = without.sign(run(), token()).await.unwrap();
    let with = nodes.one(&ring(&[1]));
    assert_eq!(with.check(run(), &text).await.unwrap(), Some(token()));
    nodes.clock.advance(SECOND);
    let wrong = "pt1_00000000_1_1000_".to_owned() + &"0".repeat(64);
    assert_eq!(without.check(run(), &wrong).await.unwrap(), None);
    assert_eq!(without.check(run(), &text).await.unwrap(), Some(token()));
}
