use std::collections::BTreeSet;

use serde_json::Value;
use server::ProblemKind;

use crate::world::World;

#[test]
fn the_committed_contract_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../api/openapi.json");
    let made = server::openapi_json();
    if std::env::var_os("PUNCTUAL_WRITE_OPENAPI").is_some() {
        std::fs::write(path, &made).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == made,
        "api/openapi.json is not current: run make api"
    );
}

#[tokio::test]
async fn every_operation_of_the_contract_is_served() {
    let world = World::new().await;
    let contract: Value = serde_json::from_str(&server::openapi_json()).unwrap();
    let mut count = 0;
    for (name, operations) in contract["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            let path = name
                .replace("{id}", "x")
                .replace("{key}", "x")
                .replace("{name}", "x")
                .replace("{version}", "1")
                // A stream goes on otherwise.
                .replace("/v1/events", "/v1/events?events_max=1");
            let reply = world.call(&method.to_uppercase(), &path, &[], "").await;
            assert_ne!(reply.status, 405, "{method} {path}");
            if reply.status == 404 {
                assert_ne!(reply.problem().0, "route-unknown", "{method} {path}");
            }
            assert!(
                reply.status.as_u16() < 500 || path == "/readyz",
                "{method} {path}: {}",
                reply.text
            );
            let operation = &contract["paths"][name][method];
            for answer in operation["responses"].as_object().unwrap().values() {
                assert!(
                    answer["description"].is_string(),
                    "{method} {path}: {answer}"
                );
            }
            count += 1;
        }
    }
    assert_eq!(count, 85);
}

#[test]
fn the_contract_describes_every_field_that_is_read() {
    let contract: Value = serde_json::from_str(&server::openapi_json()).unwrap();
    let fields = |schema: &str| -> BTreeSet<String> {
        let properties = &contract["components"]["schemas"][schema]["properties"];
        properties
            .as_object()
            .unwrap_or_else(|| panic!("{schema}"))
            .keys()
            .cloned()
            .collect()
    };
    let known = |known: &[&str]| BTreeSet::from_iter(known.iter().map(ToString::to_string));
    assert_eq!(fields("JobRequest"), known(&server::wire::JOB_FIELDS));
    assert_eq!(fields("JobPatch"), known(&server::wire::JOB_FIELDS));
    assert_eq!(
        fields("ScheduleRequest"),
        known(&server::wire::SCHEDULE_FIELDS)
    );
    assert_eq!(fields("RetryRequest"), known(&server::wire::RETRY_FIELDS));
    assert_eq!(
        fields("CatchUpRequest"),
        known(&server::wire::CATCH_UP_FIELDS)
    );
    assert_eq!(
        fields("OverlapRequest"),
        known(&server::wire::OVERLAP_FIELDS)
    );
    assert_eq!(fields("HttpRequest"), known(&server::wire::HTTP_FIELDS));
    assert_eq!(fields("HttpPatch"), known(&server::wire::HTTP_FIELDS));
    assert_eq!(fields("ShellRequest"), known(&server::wire::SHELL_FIELDS));
    assert_eq!(fields("ShellPatch"), known(&server::wire::SHELL_FIELDS));
    assert_eq!(fields("PythonRequest"), known(&server::wire::PYTHON_FIELDS));
    assert_eq!(fields("PythonPatch"), known(&server::wire::PYTHON_FIELDS));
    assert_eq!(fields("PreviewBody"), known(&server::wire::PREVIEW_FIELDS));
    assert_eq!(fields("StartBody"), known(&server::wire::START_FIELDS));
    assert_eq!(fields("PauseBody"), known(&server::wire::PAUSE_FIELDS));
    assert_eq!(fields("TenantRequest"), known(&server::wire::TENANT_FIELDS));
    assert_eq!(
        fields("TenantPatch"),
        known(&server::wire::TENANT_PATCH_FIELDS)
    );
    assert_eq!(fields("QuotasRequest"), known(&server::wire::QUOTA_FIELDS));
    assert_eq!(fields("KeyRequest"), known(&server::wire::KEY_FIELDS));
    assert_eq!(fields("RevertBody"), known(&server::wire::REVERT_FIELDS));
    assert_eq!(fields("ResumeBody"), known(&server::wire::RESUME_FIELDS));
    assert_eq!(fields("AlertRequest"), known(&server::wire::ALERT_FIELDS));
    assert_eq!(fields("MuteBody"), known(&server::wire::MUTE_FIELDS));
    assert_eq!(
        fields("CalendarRequest"),
        known(&server::wire::CALENDAR_FIELDS)
    );
    assert_eq!(fields("ReplayRequest"), known(&server::wire::REPLAY_FIELDS));
    assert_eq!(fields("FilterRequest"), known(&server::wire::FILTER_FIELDS));
    assert_eq!(
        fields("BackfillBody"),
        known(&server::wire::BACKFILL_FIELDS)
    );
    assert_eq!(fields("RangeRequest"), known(&server::wire::RANGE_FIELDS));
}

#[tokio::test]
async fn every_problem_has_its_page() {
    let world = World::new().await;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/problems");
    let pages: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let expected: BTreeSet<_> = ProblemKind::ALL
        .iter()
        .map(|kind| format!("{}.md", kind.name()))
        .collect();
    assert_eq!(pages, expected);
    let index = world.get("/problems").await.is(200).text;
    for kind in ProblemKind::ALL {
        let path = format!("/problems/{}", kind.name());
        let page = world.get(&path).await.is(200);
        assert!(
            page.header("content-type")
                .unwrap()
                .starts_with("text/markdown")
        );
        assert!(
            page.text.starts_with(&format!("# {}\n", kind.title())),
            "{path}"
        );
        let head = format!("Status {}, type `{path}`.", kind.status().as_u16());
        assert!(
            page.text.contains(&head) && page.text.contains("## What to do"),
            "{path}"
        );
        assert!(index.contains(&path));
        let html = world
            .call("GET", &path, &[("accept", "text/html,*/*")], "")
            .await
            .is(200);
        assert!(
            html.header("content-type")
                .unwrap()
                .starts_with("text/html")
        );
        assert!(
            html.text.contains(&format!(">{}</h1>", kind.title())),
            "{}",
            html.text
        );
    }
    world
        .get("/problems/none")
        .await
        .refused(404, "route-unknown");
    world
        .get("/problems/%ff")
        .await
        .refused(404, "route-unknown");
}
