use std::time::Duration;

use model::{Alert, AlertName, Channel, Condition, JobId, Scope, TenantId, Timestamp, Version};

use super::*;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + millis)
}

fn columns() -> AlertColumns {
    AlertColumns {
        tenant: TenantId::DEFAULT,
        name: AlertName::new("ops").unwrap(),
        version: Version(3),
        job: JobId::new(at(0), [9; 10]),
        created_at: at(1),
        updated_at: at(2),
    }
}

fn plain() -> Alert {
    let stored =
        r#"{"condition":"dead","channel":"webhook","url":"","recovered":true,"enabled":true}"#;
    decode_alert(columns(), stored.as_bytes()).unwrap()
}

#[test]
fn stored_alert_rules_never_change() {
    let whole = Alert {
        scope: Scope::Label("team".to_owned(), "ö\"ps".to_owned()),
        condition: Condition::Skipped(3),
        channel: Channel::Slack,
        url: "https://hooks.example.com/{{ secret('a') }}".to_owned(),
        recovered: false,
        repeat: Some(Duration::from_secs(3_600)),
        enabled: false,
        muted_until: Some(at(5)),
        ..plain()
    };
    let golden = include_str!("golden/alert.json").trim_end();
    let stored = encode_alert(&whole).unwrap();
    assert_eq!(String::from_utf8(stored).unwrap(), golden);
    assert_eq!(decode_alert(columns(), golden.as_bytes()), Ok(whole));
}

#[test]
fn every_scope_and_condition_reads_back() {
    let scopes = [
        Scope::Tenant,
        Scope::Job(JobId::new(at(0), [7; 10])),
        Scope::Owner("Ana Ö.".to_owned()),
    ];
    for scope in scopes {
        for condition in [Condition::Failed, Condition::Dead, Condition::Missed] {
            let alert = Alert {
                scope: scope.clone(),
                condition,
                url: "http://a/".to_owned(),
                ..plain()
            };
            let stored = encode_alert(&alert).unwrap();
            assert_eq!(decode_alert(columns(), &stored), Ok(alert));
        }
    }
}

#[test]
fn one_that_says_something_unknown_cannot_be_read() {
    let stored =
        r#"{"condition":"late","channel":"webhook","url":"","recovered":true,"enabled":true}"#;
    assert!(decode_alert(columns(), stored.as_bytes()).is_err());
    let stored = stored.replace("late", "dead").replace("\"url\"", "\"to\"");
    assert!(decode_alert(columns(), stored.as_bytes()).is_err());
}
