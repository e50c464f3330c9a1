//! How fast clients may call. Rates are one request a second, and clients try until they are refused: a machine that takes
//! a second for each is no machine.

use model::{Role, TenantId};
use server::{Door, RatesMax};

use crate::door::{exchange, header};
use crate::sockets::{Served, served_by};
use crate::world::{World, pause};

const TRIES: usize = 500;

async fn served(max: RatesMax) -> Served {
    served_by(World::with_rates(max).await, Door::default()).await
}

/// Calls until the answer has this status.
async fn until(served: &Served, path: &str, key: &str, status: u16) -> String {
    let bearer = format!("Bearer {key}");
    for _ in 0..TRIES {
        let reply = exchange(served, "GET", path, &[("authorization", &bearer)]).await;
        if reply.starts_with(&format!("HTTP/1.1 {status}")) {
            return reply;
        }
        if status != 429 {
            pause(20).await;
        }
    }
    panic!("no answer was {status}");
}

#[track_caller]
fn is_refused(reply: &str, bound: &str, max: u32) {
    assert!(reply.starts_with("HTTP/1.1 429"), "{reply}");
    let (_, body) = reply.split_once("\r\n\r\n").unwrap();
    let problem: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(problem["type"], "/problems/rate-exceeded", "{reply}");
    assert_eq!(
        (&problem["bound"], &problem["max"]),
        (&bound.into(), &max.into())
    );
    let wait: u32 = header(reply, "retry-after").unwrap().parse().unwrap();
    assert!((1..=2).contains(&wait), "{reply}");
    let limit = format!("\"{bound}\";r=0;t=1");
    assert_eq!(header(reply, "ratelimit"), Some(limit.as_str()));
    let policy = format!("\"{bound}\";q={max};w=1");
    assert_eq!(header(reply, "ratelimit-policy"), Some(policy.as_str()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_calls_too_fast_learns_when_to_come_back_and_others_are_served() {
    let max = RatesMax {
        of_key: 1,
        ..RatesMax::default()
    };
    let served = served(max).await;
    let key = served.world.key(TenantId::DEFAULT, Role::Reader).await;
    let first = until(&served, "/v1/jobs", &key, 200).await;
    assert_eq!(header(&first, "ratelimit"), Some("\"key\";r=0;t=1"));
    is_refused(&until(&served, "/v1/jobs", &key, 429).await, "key", 1);
    let other = served.world.key(TenantId::DEFAULT, Role::Reader).await;
    let bearer = format!("Bearer {other}");
    let reply = exchange(&served, "GET", "/v1/jobs", &[("authorization", &bearer)]).await;
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    until(&served, "/v1/jobs", &key, 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_calls_too_fast_is_refused_whatever_it_calls_but_health() {
    let max = RatesMax {
        of_address: 1,
        ..RatesMax::default()
    };
    let served = served(max).await;
    let first = until(&served, "/docs", "", 200).await;
    assert_eq!(header(&first, "ratelimit"), Some("\"address\";r=0;t=1"));
    let policy = header(&first, "ratelimit-policy");
    assert_eq!(policy, Some("\"address\";q=1;w=1"));
    for path in ["/docs", "/v1/jobs", "/nowhere"] {
        is_refused(&until(&served, path, "", 429).await, "address", 1);
        for path in ["/healthz", "/readyz"] {
            let reply = exchange(&served, "GET", path, &[]).await;
            // Whether it is well or ready by now is another question.
            assert!(!reply.starts_with("HTTP/1.1 429"), "{reply}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_tries_keys_is_refused_and_valid_keys_of_its_address_are_not() {
    let max = RatesMax {
        of_refused: 1,
        ..RatesMax::default()
    };
    let served = served(max).await;
    let key = served.world.key(TenantId::DEFAULT, Role::Reader).await;
    let first = exchange(&served, "GET", "/v1/jobs", &[]).await;
    assert!(first.starts_with("HTTP/1.1 401"), "{first}");
    let bearer = format!("Bearer {key}");
    for _ in 0..10 {
        let wrong = until(&served, "/v1/jobs", "wrong", 429).await;
        is_refused(&wrong, "refused", 1);
        let valid = exchange(&served, "GET", "/v1/jobs", &[("authorization", &bearer)]).await;
        assert!(valid.starts_with("HTTP/1.1 200"), "{valid}");
    }
    let open = exchange(&served, "GET", "/docs", &[]).await;
    assert!(open.starts_with("HTTP/1.1 200"), "{open}");
    until(&served, "/v1/jobs", "wrong", 401).await;
}
