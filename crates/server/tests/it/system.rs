use std::sync::Arc;
use std::time::Duration;

use engine::{Clock, ClockOf, NodeConfig, SystemClock};
use model::Timestamp;
use serde_json::Value;
use store::StoreClock;
use store::mem::MemStore;

use crate::world::{OK, World};

/// A store whose clock is ten minutes ahead of ours.
struct Ahead;

impl StoreClock for Ahead {
    fn now(&self) -> Timestamp {
        Clock::now(&SystemClock).plus(Duration::from_secs(600))
    }

    fn uptime(&self) -> Duration {
        Clock::uptime(&SystemClock)
    }
}

#[tokio::test]
async fn a_node_whose_clock_is_off_is_not_ready_and_says_so() {
    let config = NodeConfig {
        clock: ClockOf::Store,
        ..NodeConfig::default()
    };
    let store = MemStore::new(Arc::new(Ahead));
    let world = World::with_node(store, |store| Arc::new(store), config).await;
    for _ in 0..300 {
        let reply = world.get("/readyz").await;
        reply.refused(503, "not-ready");
        if reply
            .get("detail")
            .contains("the wall clock is -600.0 s off")
        {
            return;
        }
        crate::world::pause(10).await;
    }
    panic!("it did not say so");
}

#[tokio::test]
async fn a_node_that_runs_is_well_and_becomes_ready() {
    let world = World::new().await;
    assert_eq!(world.get("/healthz").await.is(200).get("status"), "well");
    for _ in 0..300 {
        if world.get("/readyz").await.status == 200 {
            let version = world.get("/version").await.is(200).json();
            assert!(
                version["tzdb"].as_str().unwrap().starts_with("20"),
                "{version}"
            );
            assert_eq!(version["features"], serde_json::json!(["mem"]));
            return;
        }
        crate::world::pause(10).await;
    }
    panic!("it did not become ready");
}

#[tokio::test]
async fn metrics_are_counted_by_route_and_never_by_id() {
    let world = World::new().await;
    let job = world.job(OK).await;
    world.get(&format!("/v1/jobs/{job}")).await.is(200);
    world.get("/v1/jobs/by-key/x").await.is(404);
    world.get("/nowhere").await.is(404);
    let run = world.run(&job).await;
    world.wait(&run, &["succeeded"]).await;
    let reply = world.get("/metrics").await.is(200);
    assert!(
        reply
            .header("content-type")
            .unwrap()
            .starts_with("application/openmetrics-text")
    );
    for line in [
        "punctual_http_requests_total{method=\"GET\",route=\"/v1/jobs/{id}\",status=\"2xx\"} 1",
        "punctual_http_requests_total{method=\"GET\",route=\"/v1/jobs/by-key/{*key}\",status=\"4xx\"} 1",
        "punctual_http_requests_total{method=\"GET\",route=\"none\",status=\"4xx\"} 1",
        "punctual_jobs_created_total{way=\"single\"} 1",
        "punctual_dispatched_total 1",
        "punctual_lateness_seconds_count{lane=\"standard\"} 1",
        "# TYPE punctual_caught_up_lateness_seconds histogram",
        "# EOF",
    ] {
        assert!(
            reply.text.lines().any(|found| found == line),
            "{line}\n{}",
            reply.text
        );
    }
    assert!(
        !reply.text.contains("job_") && !reply.text.contains("run_"),
        "{}",
        reply.text
    );
}

#[tokio::test]
async fn metrics_say_how_the_node_and_its_process_stand() {
    let world = World::new().await;
    let run = world.run(&world.job(OK).await).await;
    world.wait(&run, &["succeeded"]).await;
    let figure = async |name: &str| -> Option<f64> {
        let text = world.get("/metrics").await.is(200).text;
        let of = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
        text.lines().find_map(of)
    };
    for lane in ["critical", "standard", "batch"] {
        let name = format!("punctual_lane_depth{{lane=\"{lane}\"}}");
        assert_eq!(figure(&name).await, Some(0.0));
        let name = format!("punctual_lane_oldest_age_seconds{{lane=\"{lane}\"}}");
        assert_eq!(figure(&name).await, Some(0.0));
    }
    for (name, least) in [
        ("punctual_shards", 256.0),
        ("punctual_lease_epochs", 256.0),
        ("punctual_shard_takeovers_total", 0.0),
        ("punctual_crowded_runs", 0.0),
        ("punctual_streams", 0.0),
        (
            "punctual_executed_total{executor=\"http\",outcome=\"succeeded\"}",
            1.0,
        ),
        ("process_cpu_seconds_total", 0.0),
        ("process_resident_memory_bytes", 1e6),
        ("process_start_time_seconds", 1e9),
        ("process_open_fds", 3.0),
        ("process_max_fds", 16.0),
    ] {
        let found = figure(name).await;
        assert!(found.is_some_and(|it| it >= least), "{name}: {found:?}");
    }
}

#[tokio::test]
async fn nothing_is_at_an_unknown_path_and_methods_are_named() {
    let world = World::new().await;
    for path in [
        "/nowhere",
        "/v1",
        "/v1/jobs/",
        "/v2/jobs",
        "/v1/jobs/x/y",
        "/v1/jobs/../jobs",
        "/v1//jobs",
    ] {
        let reply = world.get(path).await;
        reply.refused(404, "route-unknown");
    }
    for (method, path, allow) in [
        ("PUT", "/v1/jobs", "GET"),
        ("DELETE", "/v1/jobs", "POST"),
        ("GET", "/v1/jobs/batch", "POST"),
        ("POST", "/v1/runs", "GET"),
        (
            "PUT",
            "/v1/jobs/job_0192f0c1a2b37def8123456789abcdef",
            "PATCH",
        ),
        ("TRACE", "/healthz", "GET"),
        ("PROPFIND", "/v1/schedules/preview", "POST"),
    ] {
        let reply = world.call(method, path, &[], "").await;
        reply.refused(405, "method-not-allowed");
        assert!(
            reply.header("allow").unwrap().contains(allow),
            "{path} {:?}",
            reply.headers
        );
    }
    let head = world.call("HEAD", "/healthz", &[], "").await.is(200);
    assert!(head.text.is_empty());
}

#[tokio::test]
async fn answers_are_not_guessed_at_nor_kept() {
    let world = World::new().await;
    for path in ["/v1/jobs", "/nowhere", "/healthz"] {
        let reply = world.get(path).await;
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(reply.header("cache-control"), Some("no-store"));
    }
    let json: Value = world.get("/openapi.json").await.is(200).json();
    assert!(json["openapi"].as_str().unwrap().starts_with("3.1"));
}
