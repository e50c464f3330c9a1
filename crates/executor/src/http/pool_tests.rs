//! The pool's bounds, over links to nowhere.

use bytes::Bytes;
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;

use super::*;

fn origin(url: &str) -> Origin {
    Origin::of(&url.parse().unwrap()).unwrap()
}

/// A link that is ready, and its far end.
async fn link() -> (Link, DuplexStream) {
    let (near, far) = tokio::io::duplex(64);
    let (mut sender, driver) =
        hyper::client::conn::http1::handshake::<_, Full<Bytes>>(TokioIo::new(near))
            .await
            .unwrap();
    let driver = tokio::spawn(async move { driver.await.unwrap_or_default() });
    sender.ready().await.unwrap();
    (Link::new(sender, driver.abort_handle()), far)
}

fn idle(pool: &Pool) -> usize {
    let shelves = pool.shelves();
    assert_eq!(
        shelves.idle,
        shelves
            .by_origin
            .values()
            .map(|shelf| shelf.links.len())
            .sum::<usize>()
    );
    shelves.idle
}

#[tokio::test]
async fn a_link_goes_to_its_own_origin_only() {
    let pool = Pool::default();
    let (one, _far) = link().await;
    pool.put(origin("http://a.example/x"), one);
    for other in [
        "https://a.example/x",
        "http://a.example:8080/x",
        "http://b.example/x",
    ] {
        assert!(pool.take(&origin(other)).is_none(), "{other}");
    }
    assert!(pool.take(&origin("http://A.example/y")).is_some());
    assert!(pool.take(&origin("http://a.example/x")).is_none());
    assert_eq!(idle(&pool), 0);
}

#[tokio::test]
async fn a_link_that_was_closed_is_not_used() {
    let pool = Pool::default();
    let (open, _far) = link().await;
    let (closed, far) = link().await;
    pool.put(origin("http://a/"), open);
    pool.put(origin("http://a/"), closed);
    drop(far);
    for _ in 0..4 {
        tokio::task::yield_now().await;
    }
    assert!(pool.take(&origin("http://a/")).unwrap().is_ready());
    assert_eq!(idle(&pool), 0);
}

#[tokio::test]
async fn there_is_a_bound_for_one_origin_and_for_all() {
    let pool = Pool::default();
    let mut far = Vec::new();
    for no in 0..IDLE_PER_ORIGIN_MAX + 10 {
        let (one, end) = link().await;
        pool.put(origin("http://a/"), one);
        far.push(end);
        assert_eq!(idle(&pool), (no + 1).min(IDLE_PER_ORIGIN_MAX));
    }
    for no in 0..IDLE_MAX {
        let (one, end) = link().await;
        pool.put(origin(&format!("http://b{no}/")), one);
        far.push(end);
    }
    assert_eq!(idle(&pool), IDLE_MAX);
}

#[tokio::test]
async fn a_link_that_nobody_takes_is_closed_in_the_end() {
    let pool = Pool::default();
    let (one, _far) = link().await;
    pool.put(origin("http://a/"), one);
    let sweep = || {
        for _ in 0..SWEEP_EVERY {
            assert!(pool.take(&origin("http://b/")).is_none());
        }
    };
    sweep();
    assert_eq!(idle(&pool), 1);
    sweep();
    assert_eq!(idle(&pool), 0);
    assert!(pool.shelves().by_origin.is_empty());
}

#[tokio::test]
async fn a_link_in_use_survives_every_sweep() {
    let pool = Pool::default();
    let (one, _far) = link().await;
    pool.put(origin("http://a/"), one);
    for _ in 0..3 * SWEEP_EVERY {
        let one = pool.take(&origin("http://a/")).unwrap();
        pool.put(origin("http://a/"), one);
    }
    assert_eq!(idle(&pool), 1);
}
