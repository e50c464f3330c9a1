//! Permits for what only computes. Schedules under large calendars take a processor for long, and the runtime's
//! threads are few: other requests wait for them, and so does the engine. So such work is done beside them,
//! and only so much of it at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::api::Api;
use crate::ops::OpError;

/// Work under way at once.
pub(crate) const PERMITS_MAX: usize = 2;
/// How long a request waits for a permit before it is refused.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// Leave to compute.
#[derive(Debug)]
pub(crate) struct Permit(OwnedSemaphorePermit);

impl Api {
    /// Waits for a permit; not for long.
    pub(crate) async fn permit(&self) -> Result<Permit, OpError> {
        let wait = self.engine.clock().sleep(WAIT_MAX);
        take(&self.permits, wait).await
    }
}

async fn take(permits: &Arc<Semaphore>, wait: impl Future<Output = ()>) -> Result<Permit, OpError> {
    tokio::select! {
        biased;
        permit = Arc::clone(permits).acquire_owned() => permit.map(Permit).map_err(|_| OpError::Overloaded),
        () = wait => Err(OpError::Overloaded),
    }
}

impl Permit {
    /// Computes beside the runtime. The permit is taken until it is done, also if nobody waits for it any more.
    pub(crate) async fn work<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, OpError> {
        let Self(permit) = self;
        let with_permit = move || {
            let done = work();
            drop(permit);
            done
        };
        match tokio::task::spawn_blocking(with_permit).await {
            Ok(done) => Ok(done),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The process is going down.
                Err(_) => Err(OpError::Overloaded),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use engine::{Node, NodeConfig, SystemClock};
    use executor::Registry;
    use http_body_util::BodyExt;
    use serde_json::{Value, json};
    use store::mem::MemStore;
    use tower::ServiceExt;

    use super::*;

    fn permits() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(PERMITS_MAX))
    }

    #[tokio::test]
    async fn work_does_not_hold_up_the_runtime_and_only_so_much_is_done_at_once() {
        let permits = permits();
        let mut ends = Vec::new();
        let mut works = Vec::new();
        for number in 0..PERMITS_MAX {
            let (end, ended) = mpsc::channel::<()>();
            let permit = take(&permits, std::future::pending()).await.unwrap();
            works.push(tokio::spawn(permit.work(move || {
                ended.recv().unwrap();
                number
            })));
            ends.push(end);
        }
        // This test has one thread, and still gets here.
        let none = take(&permits, tokio::task::yield_now()).await;
        assert!(matches!(none, Err(OpError::Overloaded)));
        // Whoever does not wait for it any more has not ended it.
        works.remove(0).abort();
        let none = take(&permits, tokio::task::yield_now()).await;
        assert!(matches!(none, Err(OpError::Overloaded)));
        for end in ends {
            end.send(()).unwrap();
        }
        assert_eq!(works.remove(0).await.unwrap().unwrap(), 1);
        take(&permits, std::future::pending()).await.unwrap();
    }

    #[tokio::test]
    #[should_panic(expected = "as it was")]
    async fn a_panic_goes_on() {
        let permit = take(&permits(), std::future::pending()).await.unwrap();
        let _ = permit.work(|| panic!("as it was")).await;
    }

    async fn call(router: &axum::Router, method: &str, path: &str, body: Value) -> (u16, Value) {
        let request = axum::http::Request::builder()
            .method(method)
            .header("content-type", "application/json")
            .uri(path)
            .body(axum::body::Body::from(body.to_string()))
            .unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap())
    }

    #[tokio::test]
    async fn without_a_permit_nothing_is_computed_and_nothing_is_written() {
        let store = Arc::new(MemStore::new(Arc::new(SystemClock)));
        let (clock, config) = (Arc::new(SystemClock), NodeConfig::default());
        let node = Node::start(store.clone(), clock, Registry::default(), config);
        let node = node.await.unwrap();
        let api = Api::new(store, node.handle(), Arc::new(crate::Access::for_anyone()));
        let permits = Arc::clone(&api.permits);
        let router = &crate::router(api);
        let body = json!({"schedule": "@daily", "target": "http://target.example/"});
        let (status, job) = call(router, "POST", "/v1/jobs", body.clone()).await;
        assert_eq!(status, 201, "{job}");
        let path = format!("/v1/jobs/{}", job["id"].as_str().unwrap());
        let all = permits.acquire_many(PERMITS_MAX as u32).await.unwrap();
        let (dry, slots, explain) = (
            format!("{path}?dry_run=true"),
            format!("{path}/slots"),
            format!("{path}/explain?at=0"),
        );
        let other = json!({"schedule": "@hourly"});
        let answers = tokio::join!(
            call(router, "POST", "/v1/schedules/preview", other.clone()),
            call(router, "POST", "/v1/jobs?dry_run=true", body),
            call(router, "PATCH", &path, other.clone()),
            call(router, "PATCH", &dry, other.clone()),
            call(router, "GET", &slots, Value::Null),
            call(router, "GET", &explain, Value::Null),
        );
        let answers: [(u16, Value); 6] = answers.into();
        for (status, problem) in answers {
            assert_eq!(status, 503, "{problem}");
            assert_eq!(problem["type"], "/problems/overloaded");
        }
        // Whatever needs none goes on.
        let (status, found) = call(router, "GET", &path, Value::Null).await;
        assert_eq!((status, &found), (200, &job));
        let lane = json!({"lane": "batch"});
        assert_eq!(call(router, "PATCH", &path, lane).await.0, 200);
        drop(all);
        assert_eq!(call(router, "PATCH", &path, other).await.0, 200);
    }
}
