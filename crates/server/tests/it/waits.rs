//! Clients that do not come to an end. Time is the runtime's own: it jumps when all are waiting.

use axum::body::Body;
use futures_util::stream;
use serde_json::Value;

use crate::world::{OK, World};

/// A body that begins and never ends.
fn endless(head: String) -> Body {
    use futures_util::StreamExt;
    let head = stream::iter([Ok::<_, std::io::Error>(head)]);
    Body::from_stream(head.chain(stream::pending()))
}

#[tokio::test(start_paused = true)]
async fn a_body_that_never_ends_is_given_up() {
    let world = World::new().await;
    let reply = world
        .call("POST", "/v1/jobs", &[], endless("{".to_owned()))
        .await;
    reply.refused(408, "body-slow");
    assert!(world.store.all_jobs().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_stands_still_is_given_up_and_keeps_what_it_wrote() {
    let world = World::new().await;
    let line = format!("{{\"schedule\":\"@yearly\",\"target\":\"{OK}\"}}\n");
    let headers = [("content-type", "application/x-ndjson")];
    let reply = world
        .call("POST", "/v1/jobs/batch", &headers, endless(line + "{"))
        .await
        .is(200);
    let answers: Vec<Value> = reply
        .text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let statuses: Vec<_> = answers
        .iter()
        .map(|answer| answer["status"].clone())
        .collect();
    assert_eq!(statuses, [201, 408], "{}", reply.text);
    assert_eq!(world.store.all_jobs().len(), 1);
}
