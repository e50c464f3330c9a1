use model::{Definition, Job, JobId, JobKey, RunId, RunKind, Schedule, Slot, TenantId};

use super::*;

const AT: Timestamp = Timestamp::from_millis(1_798_138_800_000);

fn job() -> Job {
    let target = Target::http("http://localhost/").unwrap();
    let mut def = Definition::new(Schedule::from(Slot(AT)), target);
    def.labels.insert("team".to_owned(), "a \"b\"/c".to_owned());
    let key = Some(JobKey::new("nightly").unwrap());
    Job::new(JobId::new(AT, [7; 10]), TenantId::DEFAULT, key, def, AT)
}

fn rendered(text: &str, place: Place) -> Result<String, String> {
    let job = job();
    let facts = Facts {
        job: Some(&job),
        run: RunId::for_slot(job.id, Slot(AT)),
        attempt: model::AttemptNo(3),
        slot: Some(Slot(AT)),
        due_at: AT,
        kind: RunKind::Slot,
        payload: Some(br#"{"n": 1.5, "list": [1, "x"], "text": "a\"b\r\nc"}"#),
    };
    let name = SecretName::new("a").unwrap();
    let secrets = [(name, "s3\"cret".to_owned())].into();
    render(text, place, &facts, secrets).map_err(|error| error.0)
}

#[track_caller]
fn check_body(text: &str, expected: &str) {
    assert_eq!(rendered(text, Place::Body).as_deref(), Ok(expected));
}

#[test]
fn values_in_a_body_are_json() {
    check_body(
        r#"{"team": {{ job.labels.team }}, "n": {{ payload.n }}, "try": {{ attempt }}}"#,
        r#"{"team": "a \"b\"/c", "n": 1.5, "try": 3}"#,
    );
    check_body("{{ payload.list }}", r#"[1,"x"]"#);
    check_body("{{ 'Bearer ' ~ secret('a') }}", r#""Bearer s3\"cret""#);
    check_body("{{ job.key|safe }}", "nightly");
    check_body(
        "{% for x in payload.list %}{{ x }};{% endfor %}",
        "1;\"x\";",
    );
    check_body("{{ payload.none|default('x') }}", "\"x\"");
    check_body(
        "{{ run.kind }} {{ run.slot }}",
        "\"slot\" \"2026-12-24T19:00:00.000Z\"",
    );
}

#[test]
fn values_in_a_path_are_percent_encoded_and_in_a_header_as_they_are() {
    let path = rendered("/{{ job.labels.team }}?n={{ payload.n }}", Place::Path);
    assert_eq!(path.as_deref(), Ok("/a%20%22b%22%2Fc?n=1.5"));
    let path = rendered("/{{ job.labels.team|safe }}", Place::Path);
    assert_eq!(path.as_deref(), Ok("/a \"b\"/c"));
    let header = rendered("Bearer {{ secret('a') }} {{ payload.list }}", Place::Header);
    assert_eq!(header.as_deref(), Ok("Bearer s3\"cret [1,\"x\"]"));
}

#[test]
fn moments_are_written_as_dates_of_a_zone() {
    check_body("{{ slot|date('%Y-%m-%d %H:%M')|safe }}", "2026-12-24 19:00");
    let there = "{{ run.due_at|date('%d.%m. %H:%M', 'Europe/Berlin')|safe }}";
    check_body(there, "24.12. 20:00");
    for (text, part) in [
        ("{{ slot|date('%K') }}", "line 1"),
        ("{{ slot|date('%Y', 'Mars/Base') }}", "Mars/Base"),
        ("{{ run.kind|date('%Y') }}", "moments"),
    ] {
        for error in [
            rendered(text, Place::Body).unwrap_err(),
            check(text, Place::Body).unwrap_err().0,
        ] {
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}

#[test]
fn what_a_template_cannot_use_is_refused_when_it_is_written() {
    let refused = |text: &str, part: &str| {
        let error = check(text, Place::Body).unwrap_err().0;
        assert!(error.contains(part), "{text}: {error}");
    };
    refused("{{ secret('a' }}", "cannot be read");
    refused("a\n\n{{ secret('a')", "cannot be read");
    refused("a\n{{ nam }}", "line 2: unknown variable nam");
    refused("{{ job.name }}", "job has no name: it has id, key");
    refused("{{ slot|upper }}", "unknown filter upper");
    refused("{{ env('HOME') }}", "secret('name')");
    refused("{% include 'a' %}", "line 1");
    assert!(
        check(
            "{{ payload.anything.at.all }} {{ job.labels.x }}",
            Place::Body
        )
        .is_ok()
    );
    let secrets = check("{% if payload %}{{ secret('b') }}{% endif %}", Place::Body).unwrap();
    assert_eq!(
        secrets.iter().map(SecretName::as_str).collect::<Vec<_>>(),
        ["b"]
    );
}

#[test]
fn a_rendering_is_bounded_in_steps_and_in_bytes() {
    let error = |text: &str, place| rendered(text, place).unwrap_err();
    let digits = "[1,2,3,4,5,6,7,8,9,0]";
    let inner = "{{ run.id }}".repeat(120);
    let loops = format!(
        "{{% for a in {digits} %}}{{% for b in {digits} %}}{inner}{{% endfor %}}{{% endfor %}}"
    );
    assert!(error(&loops, Place::Body).contains("too much"));
    let long = "x".repeat(limits::RENDERED_LINE_MAX + 1);
    assert!(error(&long, Place::Header).contains("more comes of"));
    assert!(error("{{ payload.none }}", Place::Body).contains("not there"));
}

#[test]
fn errors_hold_nothing_that_was_filled_in() {
    let error = rendered("{{ secret('a')|date('%Y') }}", Place::Body).unwrap_err();
    assert!(!error.contains("s3"), "{error}");
}
