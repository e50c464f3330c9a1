//! What pages cost: how large they are as they are sent, and that one rendering serves all who follow the same overview.

use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt as _;
use model::Role;
use tower::ServiceExt as _;

use super::{Browser, PAGES, logged_in, user};
use crate::events::Stream;
use crate::world::{FAIL, OK, Reply, World, pause};

const FIRST_MAX: usize = 150_000;
const LATER_MAX: usize = 40_000;

impl Browser<'_> {
    /// Reads as the script of a page does that follows what happens.
    async fn follow(&self, path: &str) -> Reply {
        let headers = [("cookie", self.cookie.as_str()), ("punctual-live", "1")];
        self.world.call("GET", path, &headers, "").await.is(200)
    }

    /// How many bytes of an answer are sent to a browser.
    async fn bytes(&self, path: &str) -> usize {
        let request = Request::builder().uri(path);
        let request = request.header("cookie", &self.cookie);
        let request = request.header("accept-encoding", "gzip");
        let request = request.body(Body::empty()).unwrap();
        let answer = self.world.router.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        assert_eq!(answer.headers()["content-encoding"], "gzip", "{path}");
        answer.into_body().collect().await.unwrap().to_bytes().len()
    }
}

#[tokio::test]
async fn one_rendering_serves_all_who_follow_the_same_overview() {
    let world = World::with_keys().await;
    let one = logged_in(&world, Role::Reader).await;
    user(&world, "beatrice", Role::Reader).await;
    let mut other = Browser::new(&world);
    other.login("beatrice", super::PASSWORD).await.is(303);
    let admin = logged_in(&world, Role::Admin).await;
    let cookie = [("cookie", one.cookie.as_str())];
    let (_, mut stream) = Stream::open(&world, "/live", &cookie).await;
    stream.expect(Some("open"), 5).await;

    let first = one.follow("/").await.text;
    // It names the second in which it was rendered.
    pause(1_100).await;
    assert_eq!(other.follow("/").await.text, first);
    assert_ne!(one.follow("/?span=6h").await.text, first);
    // Nothing of a session is in it, and what a role may do is for this role alone.
    for secret in ["csrf", "reader</", "beatrice"] {
        assert!(!first.contains(secret), "{secret}");
    }
    assert!(!first.contains("New job"));
    assert!(admin.follow("/").await.text.contains("New job"));
    // A page that is opened is another matter: it has all of its frame, and is of this moment.
    let whole = one.get("/").await.is(200).text;
    assert!(whole.contains("csrf") && whole.contains("<nav"), "{whole}");
}

#[tokio::test]
async fn what_a_stream_has_said_is_in_every_rendering_after_it() {
    let world = World::new().await;
    let browser = Browser::new(&world);
    let (_, mut stream) = Stream::open(&world, "/live", &[]).await;
    stream.expect(Some("open"), 5).await;
    let shown = async |number: u32| {
        let page = browser.follow("/").await.text;
        page.contains(&format!("id=\"kpi-dead\">{number}<"))
    };
    assert!(shown(0).await);
    let job = world.job(FAIL).await;
    for dead in 1..=2 {
        let run = world.run(&job).await;
        world.wait(&run, &["dead"]).await;
        // More than one thing may change before its end is counted.
        let mut is_shown = false;
        for _ in 0..5 {
            stream.expect(Some("changed"), 10).await;
            is_shown = shown(dead).await;
            if is_shown {
                break;
            }
        }
        assert!(is_shown, "{dead}");
    }
}

#[tokio::test]
async fn pages_are_small_as_they_are_sent() {
    let world = World::with_keys().await;
    let browser = logged_in(&world, Role::Root).await;
    for number in 0..60 {
        let job = serde_json::json!({
            "key": format!("orders-export-of-shop-number-{number}"), "target": OK,
            "schedule": {"cron": "*/5 8-18 * * MON-FRI", "timezone": "Europe/Berlin"},
            "labels": {"team": "orders", "stage": "production"}, "owner": "ann",
        });
        let root = world.key(model::TenantId::DEFAULT, Role::Root).await;
        world.as_key(&root, "POST", "/v1/jobs", job).await.is(201);
    }
    let page = browser.get("/").await.is(200).text;
    let mut first = browser.bytes("/").await;
    let mut files = 0;
    for part in page.split("\"/assets/").skip(1) {
        let name = part.split('"').next().unwrap();
        first += browser.bytes(&format!("/assets/{name}")).await;
        files += 1;
    }
    assert!(files >= 5 && first < FIRST_MAX, "{first}");
    for (path, _) in PAGES {
        let size = browser.bytes(path).await;
        assert!(size < LATER_MAX, "{path}: {size}");
    }
}
