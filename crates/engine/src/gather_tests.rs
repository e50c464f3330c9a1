use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::clock::SystemClock;

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
