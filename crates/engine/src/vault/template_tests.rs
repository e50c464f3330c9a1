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

fn rendered_with(text: &str, place: Place, payload: &str) -> Result<String, String> {
    let mut facts = Facts::sample();
    facts.payload = Some(payload.as_bytes());
    render(text, place, &facts, BTreeMap::new()).map_err(|error| error.0)
}

#[test]
fn filters_that_double_a_text_again_and_again_are_stopped_on_the_way() {
    // Sixty-four megabytes would come of it, and of ten more filters as many gigabytes.
    let doubled = format!("'\"'{}", "|tojson".repeat(26));
    for text in [
        format!("{{{{ {doubled} }}}}"),
        format!("{{% if {doubled} == 'a' %}}{{% endif %}}"),
    ] {
        for error in [
            rendered(&text, Place::Body).unwrap_err(),
            check(&text, Place::Body).unwrap_err().0,
        ] {
            let expected = ["too much", "more comes of"];
            assert!(
                expected.iter().any(|part| error.contains(part)),
                "{text}: {error}"
            );
        }
    }
}

#[test]
fn a_value_is_not_repeated_in_a_list() {
    let payload = format!("\"{}\"", "x".repeat(60_000));
    let many = vec!["payload"; 200].join(", ");
    for text in [
        format!("{{{{ [{many}] }}}}"),
        format!("{{% if [{many}] ~ '' == 'a' %}}{{% endif %}}"),
        format!("{{% if [{many}]|tojson == 'a' %}}{{% endif %}}"),
    ] {
        let error = rendered_with(&text, Place::Body, &payload).unwrap_err();
        assert!(error.contains("holds texts and numbers"), "{error}");
        assert!(check(&text, Place::Body).is_err());
    }
}

#[test]
fn a_rendering_takes_some_milliseconds_whatever_it_does() {
    let text = format!("{{\"t\": \"{}\"}}", "é".repeat(31_000));
    let numbers = format!("[{}1]", "1,".repeat(31_000));
    let rounds = "{% for a in '0123456789012345678901234567890123456789' %}\
                  {% for b in '0123456789012345678901234567890123456789' %}";
    let ends = "{% endfor %}{% endfor %}";
    let mut slowest = std::time::Duration::ZERO;
    for (inside, payload) in [
        (
            "{% if payload.t ~ payload.t ~ payload.t == 'a' %}{% endif %}",
            &text,
        ),
        ("{% if payload.t[:-1] == 'a' %}{% endif %}", &text),
        ("{% if payload.t[::-1] == 'a' %}{% endif %}", &text),
        ("{% if 'éa' in payload.t %}{% endif %}", &text),
        ("{% if payload.t == payload.t %}{% endif %}", &text),
        ("{% if payload|tojson == 'a' %}{% endif %}", &text),
        ("{% if payload ~ '' == 'a' %}{% endif %}", &numbers),
        ("{% if payload == payload[:] %}{% endif %}", &numbers),
        ("{% if payload|tojson == 'a' %}{% endif %}", &numbers),
        ("{% if 2 in payload %}{% endif %}", &numbers),
        ("{% for x in payload %}{% endfor %}", &numbers),
        (
            "{% if slot|date('%A %B %c %Y', 'Europe/Berlin') == 'a' %}{% endif %}",
            &numbers,
        ),
    ] {
        let text = if inside.starts_with("{% for") {
            inside.to_owned()
        } else {
            format!("{rounds}{inside}{ends}")
        };
        let begun = tokio::time::Instant::now();
        let rendered = rendered_with(&text, Place::Body, payload);
        let took = begun.elapsed();
        assert!(
            rendered.is_err_and(|error| error.contains("too much")),
            "{inside}"
        );
        slowest = slowest.max(took);
    }
    // Of an unoptimized build on a busy machine, which takes a tenth of a second.
    assert!(slowest < std::time::Duration::from_secs(5), "{slowest:?}");
}

#[test]
fn lists_and_maps_of_a_payload_are_as_they_were() {
    let payload = r#"{"b": {"x": [1, 2, 2.5]}, "a": [], "n": null}"#;
    let check = |text: &str, expected: &str| {
        let rendered = rendered_with(text, Place::Body, payload);
        assert_eq!(rendered.as_deref(), Ok(expected), "{text}");
    };
    check("{{ payload }}", r#"{"a":[],"b":{"x":[1,2,2.5]},"n":null}"#);
    check("{% for k in payload %}{{ k }}{% endfor %}", r#""a""b""n""#);
    check(
        "{% if payload.a or payload.n %}1{% else %}2{% endif %}",
        "2",
    );
    check("{% if payload.b.x == [1, 2, 2.5] %}1{% endif %}", "1");
    check(
        "{% if 2 in payload.b.x and 'a' in payload %}1{% endif %}",
        "1",
    );
    check("{{ payload.b.x[1:] }}{{ payload.b.x[-1] }}", "[2,2.5]2.5");
    check("{{ payload['b']['x'][0] }}", "1");
    check("{{ payload.a + payload.b.x }}", "[1,2,2.5]");
    check("{{ payload.none|default(payload.a) }}", "[]");
}
