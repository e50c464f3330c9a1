use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::policy::{CatchUp, CatchUpPolicy, Delivery, Overlap};
use model::retry::{Backoff, RetryPolicy};
use model::schedule::{
    Bounds, Calendars, Cron, CronOptions, DateRange, Day, Dialect, DstGap, DstOverlap, Every, Kind,
    Weekly, Yearly, Zone,
};
use model::success::{JsonEquals, Statuses, Success};
use model::target::{HttpTarget, check_keep_headers};
use model::{
    Attempt, AttemptNo, Calendar, CalendarName, Completion, Definition, Exchange, ExitCodes,
    FailuresMax, JobId, Lane, Outcome, Redirects, Schedule, SecretName, ShellTarget, Slot, Target,
    Times, Timestamp, TlsSecrets, Version,
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
    Definition::new(Schedule::from(slot), Target::Http(hook()))
}

fn cron() -> Definition {
    let options = CronOptions {
        hash: job().hash(),
        ..CronOptions::default()
    };
    let cron = Cron::parse(&["0 9 * * MON-FRI".to_owned()], options).unwrap();
    Definition::new(Schedule::from(cron), Target::Http(hook()))
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
    let target = HttpTarget {
        path: Some("/{{ job.key }}".to_owned()),
        body: Some("{\"a\": {{ slot }}}".to_owned()),
        keep_headers: check_keep_headers(["ETag", "x-request-id"]).unwrap(),
        success: Some(Success {
            status: Some(Statuses::new(["2xx", "404", "300-305"]).unwrap()),
            json: Some(JsonEquals::new("/ok", "true".to_owned()).unwrap()),
        }),
        redirects: Redirects::SameOrigin,
        tls: Some(TlsSecrets {
            ca: SecretName::new("ca").ok(),
            cert: SecretName::new("cert").ok(),
            key: SecretName::new("key").ok(),
        }),
        ..target
    };
    Definition {
        schedule: Schedule::from(Cron::parse(&texts, options).unwrap()),
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
        completion: Completion::default(),
        start_within: Some(Duration::from_secs(10)),
        finish_within: Some(Duration::from_secs(600)),
        pause_after_failures: None,
        labels: [
            ("team".to_owned(), "ops".to_owned()),
            ("größe".to_owned(), "\u{0}".to_owned()),
        ]
        .into(),
    }
}

fn callback() -> Definition {
    Definition {
        completion: Completion::Callback {
            heartbeat_within: Duration::from_secs(60),
        },
        ..one_off()
    }
}

fn command() -> Definition {
    let mut shell = ShellTarget::new(["/usr/bin/pg_dump", "--file=a \"b\"", ""]).unwrap();
    shell.dir = Some("/srv/dumps".to_owned());
    shell.env = vec![("PGPASSWORD".to_owned(), "{{ secret('pg') }}".to_owned())];
    shell.exit.success = ExitCodes::new([0, 3]);
    shell.exit.dead = ExitCodes::new([2]);
    shell.output_max = 100;
    Definition {
        target: Target::Shell(shell),
        ..one_off()
    }
}

fn failures() -> Definition {
    Definition {
        pause_after_failures: FailuresMax::new(5),
        ..one_off()
    }
}

fn interval() -> Definition {
    let anchor = Timestamp::from_millis(1_700_000_000_000);
    let zone = Zone::get("Europe/Berlin").unwrap();
    let every = Every::parse("P1M", anchor, zone).unwrap();
    Definition::new(
        Schedule::from(every),
        Target::http("http://localhost/ok").unwrap(),
    )
}

/// Every bound, and slots that the end of a run sets.
fn bounded() -> Definition {
    let anchor = Timestamp::from_millis(1_700_000_000_000);
    let every = Every::parse("PT15M", anchor, Zone::utc()).unwrap();
    let schedule = Schedule {
        bounds: Bounds {
            starts_at: Some(Timestamp::from_millis(1_700_000_000_001)),
            ends_at: Some(Timestamp::from_millis(1_800_000_000_002)),
            runs_max: Some(3),
        },
        ..Schedule::from(every.after_completion())
    };
    Definition::new(schedule, Target::http("http://localhost/ok").unwrap())
}

fn calendar(name: &str) -> Calendar {
    let moment = Timestamp::from_millis(1_700_000_000_003);
    Calendar::new(CalendarName::new(name).unwrap(), moment)
}

/// Calendars of both kinds, which stand as they always do.
fn by_calendars() -> Definition {
    let named = |names: &[&str]| {
        let all = names.iter().map(|name| Arc::new(calendar(name)));
        all.collect()
    };
    let mut def = cron();
    def.schedule.calendars = Calendars {
        exclude: named(&["holidays.de", "freeze"]),
        only: named(&["office_hours-1"]),
    };
    def
}

/// A calendar with something of everything.
fn elaborate() -> Calendar {
    Calendar {
        version: Version(7),
        note: Some("für \"alle\"".to_owned()),
        zone: Some(Zone::get("Europe/Berlin").unwrap()),
        dates: vec![Day::parse("2026-12-25").unwrap()],
        yearly: vec![Yearly::parse("02-29").unwrap()],
        weekly: ["SAT-SUN", "MON-FRI 17:00-09:00"]
            .map(|text| Weekly::parse(text).unwrap())
            .to_vec(),
        ranges: ["2026-12-24/2027-01-02", "2026-12-24T18:00/2026-12-27T06:00"]
            .map(|text| DateRange::parse(text).unwrap())
            .to_vec(),
        ..calendar("holidays.de")
    }
}

/// A store that has every calendar.
fn any(name: &CalendarName) -> Option<Arc<Calendar>> {
    Some(Arc::new(calendar(name.as_str())))
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
        node: Some(Arc::from("a:7710")),
        late_by: Some(Duration::from_millis(1_500)),
        long_by: Some(Duration::from_secs(60)),
        truncated: true,
        exchange: Some(Box::new(Exchange {
            peer: Some(([192, 0, 2, 7], 443).into()),
            times: Times {
                connect: Some(Duration::from_micros(812)),
                tls: Some(Duration::from_micros(2_400)),
                first_byte: Some(Duration::from_millis(120)),
                total: Some(Duration::from_millis(125)),
            },
            headers: vec![("etag".to_owned(), "\"a\"".to_owned())],
            note: Some("odd".to_owned()),
        })),
        cost: None,
    };
    let lost = Attempt {
        no: AttemptNo(2),
        dispatched_at: None,
        settled_at: Timestamp::from_millis(1_700_000_009_000),
        outcome: Outcome::Lost,
        status: None,
        error: None,
        output: Bytes::from_static(&[0, 0xff, 0x10]),
        truncated: false,
        exchange: None,
        cost: None,
        node: None,
        late_by: None,
        long_by: None,
    };
    vec![failed, lost]
}

/// The form reads as in the file, and the file as the definition.
#[track_caller]
fn check(def: &Definition, golden: &str) {
    let stored = encode_definition(job(), def).unwrap();
    assert_eq!(String::from_utf8(stored).unwrap(), golden.trim_end());
    let read = decode_definition(
        job(),
        golden.trim_end().as_bytes(),
        def.payload.clone(),
        &any,
    );
    assert_eq!(read.as_ref(), Ok(def));
}

#[test]
fn stored_definitions_never_change() {
    check(&one_off(), include_str!("golden/once.json"));
    check(&cron(), include_str!("golden/cron.json"));
    check(&full(), include_str!("golden/full.json"));
    check(&interval(), include_str!("golden/every.json"));
    check(&callback(), include_str!("golden/callback.json"));
    check(&command(), include_str!("golden/command.json"));
    check(&failures(), include_str!("golden/failures.json"));
    check(&bounded(), include_str!("golden/bounds.json"));
    check(&by_calendars(), include_str!("golden/calendars.json"));
}

#[test]
fn stored_calendars_never_change() {
    let golden = include_str!("golden/calendar.json").trim_end();
    let whole = elaborate();
    let stored = encode_calendar(&whole).unwrap();
    assert_eq!(String::from_utf8(stored).unwrap(), golden);
    let Calendar {
        name,
        version,
        updated_at,
        ..
    } = whole.clone();
    let read = decode_calendar(name, version, updated_at, golden.as_bytes());
    assert_eq!(read, Ok(whole));
    let empty = calendar("empty");
    assert_eq!(encode_calendar(&empty), Ok(b"{}".to_vec()));
    let read = decode_calendar(empty.name.clone(), Version::FIRST, empty.updated_at, b"{}");
    assert_eq!(read, Ok(empty));
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
        decode_definition(job(), text.as_bytes(), None, &any)
            .unwrap_err()
            .to_string()
    };
    let target = r#""target":{"http":{"url":"http://localhost/"}}"#;
    assert!(read("").contains("EOF"));
    assert!(read("{}").contains("schedule"));
    assert!(read(&format!(r#"{{"schedule":1,{target}}}"#)).contains("invalid"));
    let lane = format!(r#"{{"schedule":{{"at":1}},{target},"lane":"fast"}}"#);
    assert_eq!(read(&lane), "lane \"fast\" is not known");
    assert!(decode_attempts(Some(b"[{}]")).is_err());
    let name = || CalendarName::new("a").unwrap();
    let calendar = |text: &str| {
        decode_calendar(name(), Version(1), Timestamp::MIN, text.as_bytes())
            .unwrap_err()
            .to_string()
    };
    assert!(calendar("").contains("EOF"));
    assert!(calendar(r#"{"zone":"Mars/Olympus"}"#).contains("Mars/Olympus"));
    assert!(calendar(r#"{"dates":["2026-02-30"]}"#).contains("2026-02-30"));
    assert!(calendar(r#"{"weekly":["SAT-"]}"#).contains("SAT-"));
}

/// Whoever reads a schedule that is broken by now still reads the rest, and writes back what was there.
#[track_caller]
fn broken(schedule: &str, says: &str, recurring: bool) {
    let text = format!(
        r#"{{"schedule":{schedule},"target":{{"http":{{"url":"http://localhost/it"}}}},"lane":"batch"}}"#
    );
    let none = |_: &CalendarName| None;
    let def = decode_definition(job(), text.as_bytes(), None, &none).unwrap();
    assert_eq!(
        (def.lane, &def.target),
        (Lane::Batch, &Target::http("http://localhost/it").unwrap())
    );
    let Kind::Broken(it) = &def.schedule.kind else {
        panic!("{:?}", def.schedule);
    };
    assert!(it.error.contains(says), "{}", it.error);
    assert_eq!((it.recurring, it.stored.as_str()), (recurring, schedule));
    assert_eq!(
        (def.schedule.bounds, def.schedule.calendars.is_empty()),
        (Bounds::default(), true)
    );
    let stored = encode_definition(job(), &def).unwrap();
    assert_eq!(String::from_utf8(stored).unwrap(), text);
}

#[test]
fn a_broken_schedule_hides_nothing_else_and_is_stored_back_byte_for_byte() {
    broken("{}", "none of at, cron", true);
    broken(r#"{"at":1,"every":"1m"}"#, "none of at, cron", false);
    broken(r#"{"at":-1}"#, "out of range", false);
    broken(r#"{"at":1,"ends_at":-1}"#, "out of range", false);
    broken(r#"{"every":"1m"}"#, "anchor", true);
    broken(r#"{ "every" : "1ms", "anchor" : 1 }"#, "1ms", true);
    broken(r#"{"cron":["61 * * * *"]}"#, "61", true);
    broken(r#"{"cron":["* * * * *"],"dst_gap":"jump"}"#, "jump", true);
    let mars = r#"{"runs_max":3,  "cron":["* * * * *"], "zone":"Mars/Olympus"}"#;
    broken(mars, "Mars/Olympus", true);
    let newer = r#"{"runs_max":3,  "cron":["* * * * *"], "later":[1, {}]}"#;
    broken(newer, "later", true);
    let gone = r#"{"cron":["* * * * *"],"exclude":["holidays"]}"#;
    broken(
        gone,
        "the calendar \"holidays\" does not exist any more",
        true,
    );
    broken(r#"{"at":1,"only":["a b"]}"#, "a b", false);
}

#[test]
fn calendars_are_read_as_they_stand() {
    let golden = include_str!("golden/calendars.json").trim_end();
    let now = |name: &CalendarName| {
        Some(Arc::new(Calendar {
            version: Version(9),
            ..calendar(name.as_str())
        }))
    };
    let def = decode_definition(job(), golden.as_bytes(), None, &now).unwrap();
    let Calendars { exclude, only } = &def.schedule.calendars;
    let read: Vec<_> = exclude.iter().chain(only).collect();
    assert_eq!(read.len(), 3);
    assert!(read.iter().all(|it| it.version == Version(9)), "{read:?}");
    let stored = encode_definition(job(), &def).unwrap();
    assert_eq!(String::from_utf8(stored).unwrap(), golden, "by name only");
}

proptest! {
    /// A stored form with one byte changed is read, or refused; nothing else.
    #[test]
    fn no_damage_makes_reading_panic(at in 0_usize..900, byte: u8) {
        for golden in [
            include_str!("golden/full.json"),
            include_str!("golden/every.json"),
            include_str!("golden/bounds.json"),
            include_str!("golden/calendars.json"),
            include_str!("golden/calendar.json"),
        ] {
            let mut bytes = golden.as_bytes().to_vec();
            let at = at % bytes.len();
            bytes[at] = byte;
            for bytes in [&bytes[..], &bytes[..at]] {
                if let Ok(def) = decode_definition(job(), bytes, None, &any) {
                    prop_assert!(encode_definition(job(), &def).is_ok());
                }
                let name = CalendarName::new("a").unwrap();
                let _either = decode_calendar(name, Version(1), Timestamp::MIN, bytes);
            }
        }
    }
}

/// It may be what matters most: a job that is read without it would do something else than it says.
#[test]
fn a_form_with_a_field_that_is_not_known_is_not_read_in_part() {
    let calendars = |_: &CalendarName| None;
    let stored = encode_definition(job(), &full()).unwrap();
    let read = |text: &str| decode_definition(job(), text.as_bytes(), None, &calendars);
    let text = String::from_utf8(stored).unwrap();
    assert!(read(&text).is_ok());
    for (known, unknown) in [
        (
            "{\"schedule\":",
            "{\"only_on\":\"full moons\",\"schedule\":",
        ),
        ("\"url\":", "\"via\":\"a proxy\",\"url\":"),
        ("\"retry\":{", "\"retry\":{\"until\":1,"),
        ("\"catch_up\":{", "\"catch_up\":{\"newest\":1,"),
    ] {
        let newer = text.replacen(known, unknown, 1);
        assert_ne!(newer, text, "{known}");
        assert!(read(&newer).is_err(), "{unknown}");
    }
    // A schedule that cannot be read does not hide the rest.
    let newer = text.replacen("\"cron\":", "\"tides\":1,\"cron\":", 1);
    assert!(matches!(
        read(&newer).unwrap().schedule.kind,
        Kind::Broken(_)
    ));
}

#[test]
fn a_replay_reads_back_as_it_was_stored() {
    use model::{Reason, RunMatch, RunState, Timestamp};

    use crate::{ReplayWork, RunFilter, RunFind};

    let at = Timestamp::from_millis;
    let find = RunFind {
        filter: RunFilter {
            job: Some(JobId::new(at(1_700_000_000_000), [7; 10])),
            states: vec![RunState::Dead, RunState::Cancelled],
            from: Some(at(1_700_000_000_000)),
            to: Some(at(1_700_000_060_000)),
            ..RunFilter::default()
        },
        matches: RunMatch {
            reasons: vec![Reason::AttemptsSpent],
            error: Some("cannot be reached".to_owned()),
            labels: vec![("team".to_owned(), "ops".to_owned())],
            target: Some("api.example.com".to_owned()),
        },
    };
    let payload = Some(bytes::Bytes::from_static(b"{}"));
    let job = JobId::new(at(1_700_000_000_000), [7; 10]);
    let slots = ReplayWork::Slots(job, at(0), at(60_000));
    let runs = include_str!("golden/replay.json").trim_end();
    for (work, payload, golden) in [
        (ReplayWork::Runs(find, payload.clone()), payload, runs),
        (slots, None, include_str!("golden/backfill.json").trim_end()),
        (
            ReplayWork::Runs(RunFind::default(), None),
            None,
            "{\"runs\":{}}",
        ),
    ] {
        let stored = encode_replay(&work).unwrap();
        assert_eq!(String::from_utf8(stored).unwrap(), golden);
        assert_eq!(decode_replay(golden.as_bytes(), payload).unwrap(), work);
    }
    let unknown = b"{\"runs\":{\"colour\":1}}";
    decode_replay(unknown, None).unwrap_err();
}
