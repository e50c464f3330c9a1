use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use model::Timestamp;
use tokio::task::JoinHandle;

use super::*;
use crate::clock::{Alarm, SystemClock};

#[derive(Clone)]
struct Request(RunId);

impl About for Request {
    fn run(&self) -> RunId {
        self.0
    }

    fn bytes(&self) -> usize {
        0
    }
}

/// What the callers share: writes are done when they are let, and every poll of a caller counts.
struct Shared {
    gather: Gather<Request, usize>,
    lets: Semaphore,
    polls: AtomicUsize,
}

impl Shared {
    async fn call(self: Arc<Self>, of: u8) -> usize {
        let lets = &self.lets;
        let write = |requests: Vec<Request>| async move {
            lets.acquire().await.unwrap().forget();
            Ok(vec![requests.len(); requests.len()])
        };
        let request = Request(RunId::from_bytes([of; 16]));
        let mut call = pin!(self.gather.call(&SystemClock, request, write));
        let counted = poll_fn(|context| {
            self.polls.fetch_add(1, Ordering::SeqCst);
            call.as_mut().poll(context)
        });
        counted.await.unwrap()
    }
}

async fn meanwhile() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn who_waits_for_the_write_of_another_is_not_busy_meanwhile() {
    let shared = Arc::new(Shared {
        gather: Gather::new(2, Duration::ZERO),
        lets: Semaphore::new(0),
        polls: AtomicUsize::new(0),
    });
    let callers = (1..=4).map(|of| tokio::spawn(Arc::clone(&shared).call(of)));
    let callers: Vec<_> = callers.collect();
    meanwhile().await;
    // Two have written for themselves; the third writes for the fourth as well, and one permit is left.
    shared.lets.add_permits(2);
    meanwhile().await;
    let polls = shared.polls.load(Ordering::SeqCst);
    assert!(polls < 20, "{polls} polls");
    shared.lets.add_permits(1);
    let mut shares = Vec::new();
    for caller in callers {
        shares.push(caller.await.unwrap());
    }
    assert_eq!(shares, [1, 1, 2, 2]);
}

/// A clock that stands still, where whoever sleeps does so until it is let go on.
struct Still(Semaphore);

#[async_trait::async_trait]
impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn uptime(&self) -> Duration {
        Duration::from_secs(1)
    }

    async fn sleep(&self, _: Duration) {
        self.0.acquire().await.unwrap().forget();
    }

    fn alarm(&self) -> io::Result<Box<dyn Alarm>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[tokio::test]
async fn a_write_that_is_full_keeps_no_distance_to_the_one_before() {
    const FULL: usize = limits::HANDED_BATCH_MAX;
    let gather = Arc::new(Gather::<Request, usize>::new(1, Duration::from_secs(1)));
    let clock = Arc::new(Still(Semaphore::new(0)));
    let call = |of: usize| {
        let (gather, clock) = (Arc::clone(&gather), Arc::clone(&clock));
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&of.to_be_bytes());
        let write =
            |requests: Vec<Request>| async move { Ok(vec![requests.len(); requests.len()]) };
        tokio::spawn(async move {
            let request = Request(RunId::from_bytes(bytes));
            gather.call(&*clock, request, write).await.unwrap()
        })
    };
    assert_eq!(call(0).await.unwrap(), 1, "there was none before");
    let callers: Vec<_> = (1..=2 * FULL + 1).map(call).collect();
    meanwhile().await;
    let ended =
        |callers: &[JoinHandle<usize>]| callers.iter().filter(|it| it.is_finished()).count();
    assert_eq!(ended(&callers), 0, "the write may be shared for a while");
    clock.0.add_permits(1);
    meanwhile().await;
    assert_eq!(
        ended(&callers),
        2 * FULL,
        "two that are full, one after the other"
    );
    clock.0.add_permits(1);
    let mut shares = Vec::new();
    for caller in callers {
        shares.push(caller.await.unwrap());
    }
    assert_eq!(
        (shares[0], shares[2 * FULL - 1], shares[2 * FULL]),
        (FULL, FULL, 1)
    );
}
