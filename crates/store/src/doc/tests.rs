use std::time::Duration;

use bytes::Bytes;
use model::policy::{CatchUp, CatchUpPolicy, Delivery, Overlap};
use model::retry::{Backoff, RetryPolicy};
use model::schedule::{Cron, CronOptions, Dialect, DstGap, DstOverlap, Every, Zone};
use model::target::HttpTarget;
use model::{
    Attempt, AttemptNo, Definition, JobId, Lane, Outcome, Schedule, Slot, Target, Timestamp,
};
use proptest::prelude::*;

use super::*;

fn job() -> JobId {
    JobId::new(Timestamp::from_millis(1_700_000_000_000), [7; 10])
}

fn hook() -> HttpTarget {
    HttpTarget::new("https://example.com/hook", None).unwrap()
}

fn one_off() -> Definition {
    let slot = Slot(Timestamp::from_millis(1_798_138_800_000));
    Definition::new(Schedule::Once(slot), Target::Http(hook()))
}

fn cron() -> Definition {
    let options = CronOptions {
        hash: job().hash(),
        ..CronOptions::default()
    };
    let cron = Cron::parse(&["0 9 * * MON-FRI".to_owned()], options).unwrap();
    Definition::new(Schedule::Cron(cron), Target::Http(hook()))
}

/// Everything that can differ from its default does.
fn full() -> Definition {
    let options = CronOptions {
        zone: Some(Zone::get("Europe/Berlin").unwrap()),
        dialect: Dialect::Quartz,
        dst_gap: DstGap::Skip,
        dst_overlap: DstOverlap::Both,
        hash: 5,
    };
    let texts = ["0 0 9 ? * MON".to_owned(), "0 30 10 1 * ?".to_owned()];
    let target = HttpTarget::new("http://127.0.0.1:8080/a?b=c", Some("PUT"))
        .and_then(|target| target.header("x-team", "ops \"night\""))
        .and_then(|target| target.output_max(100))
        .unwrap();
    Definition {
        schedule: Schedule::Cron(Cron::parse(&texts, options).unwrap()),
        target: Target::Http(target),
        payload: Some(Bytes::from_static(b"{\"report\": \"daily\"}")),
        retry: RetryPolicy {
            attempts_max: 9,
            backoff: Backoff::Linear,
            delay_first: Duration::from_millis(1_500),
            delay_max: Duration::from_secs(60),
            jitter: 0,
        },
        timeout: Duration::from_secs(30),
        lane: Lane::Critical,
        overlap: Overlap::QueueAll { max: 3 },
        catch_up: CatchUp {
            policy: CatchUpPolicy::All,
            window: Duration::from_secs(60),
            max: 7,
        },
        spread: Duration::from_secs(30),
        delivery: Delivery::AtMostOnce,
        start_within: Some(Duration::from_secs(10)),
        finish_within: Some(Duration::from_secs(600)),
        labels: [
            ("team".to_owned(), "ops".to_owned()),
            ("größe".to_owned(), "\u{0}".to_owned()),
        ]
        .into(),
    }
}

fn interval() -> Definition {
    let anchor = Timestamp::from_millis(1_700_000_000_000);
    let zone = Zone::get("Europe/Berlin").unwrap();
    let every = Every::parse("P1M", anchor, zone).unwrap();
    Definition::new(Schedule::Every(every), Target::Fake("ok".to_owned()))
}

fn attempts() -> Vec<Attempt> {
    let failed = Attempt {
        no: AttemptNo(1),
        dispatched_at: Some(Timestamp::from_millis(1_700_000_000_000)),
        settled_at: Timestamp::from_millis(1_700_000_000_250),
        outcome: Outcome::Failed,
        status: Some(503),
        error: Some("the target answered 503".to_owned()),
        output: Bytes::from_static(b"try \"later\"\0"),
    };
    let lost = Attempt {
        no: AttemptNo(2),
        dispatched_at: None,
        settled_at: Timestamp::from_millis(1_700_000_009_000),
        outcome: Outcome::Lost,
        status: None,
        error: None,
        output: Bytes::from_static(&[0, 0xff, 0x10]),
    };
    vec![failed, lost]
}

/// The form reads as in the file, and the file as the definition.
#[track_caller]
fn check(def: &Definition, golden: &str) {
    let stored = encode_definition(job(), def).unwrap();
    assert_eq!(String::from_utf8(stored).unwrap(), golden.trim_end());
    let read = decode_definition(job(), golden.trim_end().as_bytes(), def.payload.clone());
    assert_eq!(read.as_ref(), Ok(def));
}

#[test]
fn stored_definitions_never_change() {
    check(&one_off(), include_str!("golden/once.json"));
    check(&cron(), include_str!("golden/cron.json"));
    check(&full(), include_str!("golden/full.json"));
    check(&interval(), include_str!("golden/every.json"));
}

#[test]
fn stored_attempts_never_change() {
    let golden = include_str!("golden/attempts.json").trim_end();
    let stored = encode_attempts(&attempts()).unwrap().unwrap();
    assert_eq!(String::from_utf8(stored).unwrap(), golden);
    assert_eq!(decode_attempts(Some(golden.as_bytes())), Ok(attempts()));
    assert_eq!(encode_attempts(&[]), Ok(None));
    assert_eq!(decode_attempts(None), Ok(Vec::new()));
}

#[test]
fn a_common_one_off_is_small() {
    let length = encode_definition(job(), &one_off()).unwrap().len();
    assert!(length <= 100, "{length}");
}

#[test]
fn what_cannot_be_read_says_why() {
    let read = |text: &str| {
        decode_definition(job(), text.as_bytes(), None)
            .unwrap_err()
            .to_string()
    };
    let target = r#""target":{"fake":""}"#;
    assert!(read("").contains("EOF"));
    assert!(read("{}").contains("schedule"));
    assert!(read(&format!(r#"{{"schedule":{{}},{target}}}"#)).contains("none of at, cron"));
    assert!(read(&format!(r#"{{"schedule":{{"at":-1}},{target}}}"#)).contains("out of range"));
    assert!(read(&format!(r#"{{"schedule":{{"every":"1m"}},{target}}}"#)).contains("anchor"));
    let mars = format!(r#"{{"schedule":{{"cron":["* * * * *"],"zone":"Mars/Olympus"}},{target}}}"#);
    assert!(read(&mars).contains("Mars/Olympus"));
    let lane = format!(r#"{{"schedule":{{"at":1}},{target},"lane":"fast"}}"#);
    assert_eq!(read(&lane), "lane \"fast\" is not known");
    assert!(decode_attempts(Some(b"[{}]")).is_err());
}

proptest! {
    /// A stored form with one byte changed is read, or refused; nothing else.
    #[test]
    fn no_damage_makes_reading_panic(at in 0_usize..900, byte: u8) {
        for golden in [include_str!("golden/full.json"), include_str!("golden/every.json")] {
            let mut bytes = golden.as_bytes().to_vec();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _either = decode_definition(job(), &bytes, None);
            let _either = decode_definition(job(), &bytes[..at], None);
        }
    }
}
