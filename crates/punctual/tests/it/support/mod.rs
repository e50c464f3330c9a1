//! What tests need of the world: the real binary on a free port with a folder of its own, a receiver for its
//! callbacks, and plain requests.

mod binary;
mod receiver;
mod request;
mod scan;

use std::io::Write;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use engine::{Clock, SystemClock};
use model::Timestamp;
use serde_json::Value;

pub use binary::{BINARY, KEYS, Server, punctual};
pub use receiver::{Answer, Delivery, Receiver};
pub use request::{Http, Reply};

/// Tries until something holds, for at most half a minute.
#[track_caller]
pub fn wait_for<T>(what: &str, find: impl FnMut() -> Option<T>) -> T {
    wait_within(30, what, find)
}

/// The same for so many seconds.
#[track_caller]
pub fn wait_within<T>(secs: u32, what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    for _ in 0..secs * 50 {
        if let Some(found) = find() {
            return found;
        }
        pause(Duration::from_millis(20));
    }
    panic!("waited in vain for {what}");
}

/// Milliseconds since the epoch.
pub fn now() -> i64 {
    Clock::now(&SystemClock).as_millis()
}

/// What a test's chance begins with: printed, and the same again with `TEST_SEED`.
pub fn seed() -> u64 {
    let given = std::env::var("TEST_SEED").ok();
    let seed = given.map_or_else(
        || u64::from(rand::random::<u32>()),
        |text| text.parse().expect("TEST_SEED is a number"),
    );
    eprintln!("TEST_SEED={seed}");
    seed
}

#[expect(
    clippy::disallowed_methods,
    reason = "the real binary takes real time; this is the door of all these tests"
)]
pub fn pause(span: Duration) {
    thread::sleep(span);
}

/// A moment as the API writes it.
pub fn moment(text: &Value) -> i64 {
    Timestamp::parse(text.as_str().expect("a moment"))
        .unwrap()
        .as_millis()
}

/// All of a listing, page after page.
#[track_caller]
pub fn list(http: &Http, path: &str) -> Vec<Value> {
    let mut items = Vec::new();
    let mut cursor = String::new();
    for _ in 0..1_000 {
        let page = http.get(&format!("{path}limit=1000{cursor}"));
        assert_eq!(page.status, 200, "{}", String::from_utf8_lossy(&page.body));
        let mut page = page.json();
        let Value::Array(found) = page["items"].take() else {
            panic!("no items");
        };
        items.extend(found);
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return items,
        }
    }
    panic!("{path} has no last page");
}

/// A program that a test needs and that may not be installed. A test that gets none says that it was skipped
/// and returns; under `make test` it fails instead.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file());
    if found.is_none() {
        skip(&format!("{name} is not installed"));
    }
    found
}

/// Says that a test is skipped, and why; under `make test` it fails instead.
pub fn skip(why: &str) {
    let complete = ["PUNCTUAL_TEST_COMPLETE", "CI"];
    assert!(
        complete.iter().all(|name| std::env::var_os(name).is_none()),
        "{why}, and this run must be complete"
    );
    // Written past the test harness, which would keep the word of a test that passes to itself.
    let said = format!("SKIPPED, {why}: {:?}\n", thread::current().name());
    std::io::stderr().write_all(said.as_bytes()).unwrap();
}
