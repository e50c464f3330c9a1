//! A lease whose answer was lost: what a node believes to hold and what it holds must not part for good.

use std::sync::Arc;
use std::time::Duration;

use engine::{Clock, ClockOf, Node, NodeConfig};
use executor::Registry;
use sim::clock::{NodeClock, SimClock};
use sim::faults::{Cut, FaultStore};
use store::mem::MemStore;
use store::{EngineStore, Store};

async fn start(store: Arc<dyn Store>, clock: &SimClock, name: &str) -> Node {
    let config = NodeConfig {
        name: name.to_owned(),
        clock: ClockOf::Store,
        ..NodeConfig::default()
    };
    let clock = Arc::new(NodeClock::new(clock.clone(), 1));
    let started = Node::start(store, clock, Registry::default(), config).await;
    started.unwrap()
}

/// How many shards the store has under a node, as another hears of it.
fn shards(node: &Node, name: &str) -> u16 {
    let peers = node.handle().nodes().peers;
    let peer = peers.into_iter().find(|peer| peer.node.name == name);
    peer.map_or(0, |peer| peer.shards)
}

/// The guest is heard of, shards are given up to it, the answer is cut off on its way, and the guest is gone again.
async fn visit(after: Duration, cut: Duration) -> u16 {
    let clock = SimClock::new();
    let mem = MemStore::new(Arc::new(clock.clone()));
    let node_clock = NodeClock::new(clock.clone(), 1);
    let way = FaultStore::at(Duration::from_millis(5), &mem, &clock, &node_clock.pause);
    let stays = start(Arc::new(way.clone()), &clock, "stays").await;
    clock.sleep(Duration::from_secs(5)).await;
    let guest = start(Arc::new(mem.clone()), &clock, "guest").await;
    for _ in 0..3_000 {
        let peers = stays.handle().nodes().peers;
        if peers
            .iter()
            .filter(|peer| peer.node_status.schedules)
            .count()
            == 2
        {
            break;
        }
        clock.sleep(Duration::from_millis(1)).await;
    }
    clock.sleep(after).await;
    let until = Clock::uptime(&clock) + cut;
    way.cut(Cut {
        until,
        silent: false,
    });
    let peers = guest.handle().nodes();
    guest.crash();
    mem.leave(peers.me.unwrap()).await.unwrap();
    clock.sleep(Duration::from_secs(10)).await;
    let held = shards(&stays, "stays");
    stays.stop(Duration::ZERO).await;
    held
}

#[tokio::test(start_paused = true)]
async fn shards_given_up_by_a_write_whose_answer_was_lost_are_leased_again() {
    for after in 1..11 {
        for cut in (100..2_500).step_by(200) {
            let (after, cut) = (Duration::from_millis(after), Duration::from_millis(cut));
            let held = visit(after, cut).await;
            assert_eq!(held, 256, "after {after:?}, cut off for {cut:?}");
        }
    }
}
