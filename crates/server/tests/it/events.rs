//! Streams of nudges: they say that something is new, are bounded, and end with the right to have them.

use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use model::{Role, TenantId};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::console::logged_in;
use crate::world::{HANG, OK, World, pause};

/// An open stream.
pub struct Stream {
    body: Body,
    rest: String,
}

impl Stream {
    pub async fn open(world: &World, path: &str, headers: &[(&str, &str)]) -> (u16, Self) {
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).unwrap();
        let response = world.router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let (body, rest) = (response.into_body(), String::new());
        (status, Self { body, rest })
    }

    /// The name of the next event; none at the end.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.rest.split_once("\n\n") {
                let name = event.lines().find_map(|line| line.strip_prefix("event: "));
                let name = name.map(str::to_owned);
                self.rest = rest.to_owned();
                if name.is_some() {
                    return name;
                }
                continue;
            }
            let frame = self.body.frame().await?.unwrap();
            let data = frame.into_data().unwrap();
            self.rest.push_str(&String::from_utf8_lossy(&data));
        }
    }

    pub async fn expect(&mut self, name: Option<&str>, within: u64) {
        let within = Duration::from_secs(within);
        let next = tokio::time::timeout(within, self.next()).await;
        assert_eq!(next.unwrap().as_deref(), name);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "it is how long a stream lasts that is measured"
)]
fn begun() -> Instant {
    Instant::now()
}

fn bearer(key: &str) -> String {
    format!("Bearer {key}")
}

#[tokio::test]
async fn a_change_is_said_to_whoever_watches_the_tenant_or_the_run() {
    let world = World::new().await;
    let job = world.job(HANG).await;
    let run = world.run(&job).await;
    let (status, mut all) = Stream::open(&world, "/v1/events", &[]).await;
    assert_eq!(status, 200);
    let (_, mut one) = Stream::open(&world, &format!("/v1/events?run={run}"), &[]).await;
    let path = format!("/v1/events?run={run}&events_max=2");
    let (_, mut two) = Stream::open(&world, &path, &[]).await;
    for stream in [&mut all, &mut one, &mut two] {
        stream.expect(Some("open"), 5).await;
    }
    // It is marked as running, or about to be; then it ends.
    pause(2_500).await;
    world.post_empty(&format!("/v1/runs/{run}/cancel")).await;
    world.wait(&run, &["cancelled"]).await;
    for stream in [&mut all, &mut one, &mut two] {
        stream.expect(Some("changed"), 10).await;
    }
    two.expect(None, 5).await;
}

#[tokio::test]
async fn open_streams_are_counted() {
    let world = World::new().await;
    let counted = async |count: u32| {
        let text = world.get("/metrics").await.is(200).text;
        text.lines()
            .any(|line| line == format!("punctual_streams {count}"))
    };
    assert!(counted(0).await);
    let (_, one) = Stream::open(&world, "/v1/events", &[]).await;
    let (_, two) = Stream::open(&world, "/v1/events", &[]).await;
    assert!(counted(2).await);
    drop(one);
    assert!(counted(1).await);
    drop(two);
    assert!(counted(0).await);
}

#[tokio::test]
async fn a_stream_ends_within_a_second_of_its_key_and_of_its_session() {
    let world = World::with_keys().await;
    let root = world.key(TenantId::DEFAULT, Role::Root).await;
    let made = json!({"role": "reader"});
    let made = world.as_key(&root, "POST", "/v1/keys", made).await.is(201);
    let (id, key) = (made.get("id"), bearer(&made.get("key")));
    let (status, mut stream) = Stream::open(&world, "/v1/events", &[("authorization", &key)]).await;
    assert_eq!(status, 200);
    stream.expect(Some("open"), 5).await;
    let path = format!("/v1/keys/{id}");
    world
        .as_key(&root, "DELETE", &path, Value::Null)
        .await
        .is(200);
    let ended = begun();
    stream.expect(None, 5).await;
    let took = ended.elapsed();
    assert!(took < Duration::from_millis(1_500), "{took:?}");

    // So does the log of a run that says nothing.
    let job = json!({"schedule": "@yearly", "target": HANG});
    let job = world.as_key(&root, "POST", "/v1/jobs", job).await.is(201);
    let path = format!("/v1/jobs/{}/run", job.get("id"));
    let run = world.as_key(&root, "POST", &path, Value::Null).await;
    let path = format!("/v1/runs/{}/log?follow=true", run.is(201).get("id"));
    let made = json!({"role": "reader"});
    let made = world.as_key(&root, "POST", "/v1/keys", made).await.is(201);
    let (id, key) = (made.get("id"), bearer(&made.get("key")));
    let (status, mut stream) = Stream::open(&world, &path, &[("authorization", &key)]).await;
    assert_eq!(status, 200);
    let ends_by_itself = tokio::time::timeout(Duration::from_millis(1_500), stream.next());
    assert!(ends_by_itself.await.is_err(), "it goes on until then");
    let path = format!("/v1/keys/{id}");
    world
        .as_key(&root, "DELETE", &path, Value::Null)
        .await
        .is(200);
    let ended = begun();
    stream.expect(None, 5).await;
    let took = ended.elapsed();
    assert!(took < Duration::from_millis(1_500), "{took:?}");

    let browser = logged_in(&world, Role::Reader).await;
    let cookie = [("cookie", browser.cookie.as_str())];
    let (status, mut stream) = Stream::open(&world, "/live", &cookie).await;
    assert_eq!(status, 200);
    stream.expect(Some("open"), 5).await;
    browser.post("/logout", &[]).await.is(303);
    let ended = begun();
    stream.expect(None, 5).await;
    let took = ended.elapsed();
    assert!(took < Duration::from_millis(1_500), "{took:?}");
    // Whoever is not logged in is shown the way.
    let (status, _) = Stream::open(&world, "/live", &cookie).await;
    assert_eq!(status, 303);
}

#[tokio::test]
async fn so_many_streams_of_one_key_and_no_more() {
    let world = World::with_keys().await;
    let [one, other] = [Role::Reader, Role::Admin];
    let one = bearer(&world.key(TenantId::DEFAULT, one).await);
    let other = bearer(&world.key(TenantId::DEFAULT, other).await);
    let mut streams = Vec::new();
    for _ in 0..16 {
        let (status, stream) = Stream::open(&world, "/v1/events", &[("authorization", &one)]).await;
        assert_eq!(status, 200);
        streams.push(stream);
    }
    let open =
        async |key: &str| Stream::open(&world, "/v1/events", &[("authorization", key)]).await;
    assert_eq!(open(&one).await.0, 503);
    assert_eq!(open(&other).await.0, 200);
    // One that is closed gives its place back.
    streams.pop();
    assert_eq!(open(&one).await.0, 200);
}

#[tokio::test]
async fn streams_end_when_the_node_stops_and_what_cannot_be_watched_is_refused() {
    let world = World::new().await;
    let body = json!({"schedule": "@yearly", "target": OK});
    world.post("/v1/jobs", body).await.is(201);
    for (query, field) in [
        ("run=nonsense", "run"),
        ("events_max=0", "events_max"),
        ("events_max=many", "events_max"),
        ("limit=1", "limit"),
    ] {
        let reply = world.get(&format!("/v1/events?{query}")).await;
        reply.refused(400, "parameter-invalid");
        assert_eq!(reply.problem().1.as_deref(), Some(field), "{query}");
    }
    let nobody = "run_0192f0c1a2b37def8123456789abcdef";
    let reply = world.get(&format!("/v1/events?run={nobody}")).await;
    reply.refused(404, "run-not-found");
    let (_, mut stream) = Stream::open(&world, "/v1/events", &[]).await;
    stream.expect(Some("open"), 5).await;
    world.stopping.cancel();
    stream.expect(None, 2).await;
}
