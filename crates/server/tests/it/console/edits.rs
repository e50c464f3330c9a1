//! Editing by forms: a form that is sent back as it came changes nothing, whatever the job is like.

use std::sync::Arc;

use model::schedule::Kind;
use model::{JobId, JobState, Role, Slot, TenantId, Timestamp};
use serde_json::{Value, json};
use store::{ClientStore, NewJob};

use super::{Browser, logged_in};
use crate::access::now;
use crate::world::{OK, World};

fn unescaped(text: &str) -> String {
    [
        ("&#60;", "<"),
        ("&#62;", ">"),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&#38;", "&"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    rest.split('"').next().map(unescaped)
}

/// What a browser would send of the job's form, if nobody touched it.
pub fn untouched(page: &str) -> Vec<(String, String)> {
    let (_, form) = page.split_once("id=\"job-form\"").unwrap();
    let form = form.split("</form>").next().unwrap();
    let mut fields = Vec::new();
    for part in form.split('<') {
        let Some((tag, text)) = part.split_once('>') else {
            continue;
        };
        let name = attribute(tag, "name");
        let is_radio = tag.contains("type=\"radio\"");
        if tag.starts_with("input") && (!is_radio || tag.contains(" checked")) {
            let value = attribute(tag, "value").unwrap_or_default();
            fields.extend(name.map(|name| (name, value)));
        } else if tag.starts_with("textarea") {
            fields.extend(name.map(|name| (name, unescaped(text))));
        } else if tag.starts_with("select") {
            fields.extend(name.map(|name| (name, String::new())));
        } else if tag.starts_with("option") && tag.contains(" selected") {
            let value = attribute(tag, "value").unwrap_or_else(|| unescaped(text));
            fields.last_mut().unwrap().1 = value;
        }
    }
    fields.retain(|(name, _)| name != "csrf");
    fields
}

pub async fn post(
    browser: &Browser<'_>,
    path: &str,
    fields: &[(String, String)],
) -> crate::world::Reply {
    let pairs: Vec<(&str, &str)> = fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    browser.post(path, &pairs).await
}

pub fn set(fields: &mut [(String, String)], name: &str, value: &str) {
    let found = fields.iter_mut().find(|(given, _)| given == name);
    found.unwrap().1 = value.to_owned();
}

async fn made(world: &World, body: Value) -> (String, String) {
    let root = world.key(TenantId::DEFAULT, Role::Root).await;
    let id = world
        .as_key(&root, "POST", "/v1/jobs", body)
        .await
        .is(201)
        .get("id");
    (root, id)
}

async fn job(world: &World, root: &str, id: &str) -> Value {
    let bearer = format!("Bearer {root}");
    let headers = [("authorization", bearer.as_str())];
    let path = format!("/v1/jobs/{id}");
    world.call("GET", &path, &headers, "").await.is(200).json()
}

#[tokio::test]
async fn a_preview_of_an_edit_is_still_an_edit() {
    let world = World::with_keys().await;
    let body = json!({"key": "nightly", "schedule": "0 9 * * *", "target": OK});
    let (root, id) = made(&world, body).await;
    let admin = logged_in(&world, Role::Admin).await;
    let page = admin.get(&format!("/jobs/{id}/edit")).await.is(200).text;
    let mut fields = untouched(&page);
    set(&mut fields, "cron", "0 11 * * *");
    let page = post(&admin, "/jobs/preview", &fields).await.is(200).text;
    let action = format!("action=\"/jobs/{id}/edit\"");
    assert!(page.contains(&action), "{page}");
    assert!(page.contains("Save as version 2") && page.contains("11:00:00"));
    let path = format!("/jobs/{id}/edit");
    post(&admin, &path, &untouched(&page)).await.is(303);
    assert_eq!(
        job(&world, &root, &id).await["schedule"]["cron"],
        "0 11 * * *"
    );
    // What is not a job is not edited.
    set(&mut fields, "id", "job_nonsense");
    post(&admin, "/jobs/preview", &fields).await.is(404);
}

#[tokio::test]
async fn what_the_form_does_not_show_stays_as_it_is() {
    let world = World::with_keys().await;
    let admin = logged_in(&world, Role::Admin).await;
    let schedules = [
        json!({"cron": "0 0 9 ? * MON#1", "dialect": "quartz", "timezone": "Europe/Berlin", "dst_gap": "skip"}),
        json!({"every": "1h", "anchor": "2026-01-01T00:17:00Z"}),
        json!({"cron": ["0 9 * * *", "0 17 * * *"], "runs_max": 2, "ends_at": "2099-01-01T00:00:00Z"}),
    ];
    for (number, schedule) in schedules.into_iter().enumerate() {
        let target = json!({"http": {"url": OK, "method": "HEAD"}});
        let body = json!({"key": format!("job-{number}"), "schedule": schedule, "target": target});
        let (root, id) = made(&world, body).await;
        let before = job(&world, &root, &id).await;
        let path = format!("/jobs/{id}/edit");
        let page = admin.get(&path).await.is(200).text;
        assert!(!page.contains("Not saved."), "{page}");
        let (_, shown) = page.split_once("Next slots").unwrap();
        match number {
            0 => assert!(shown.contains("09:00:00"), "{shown}"),
            1 => assert!(shown.contains(":17:00"), "{shown}"),
            _ => assert_eq!(shown.matches("<tr>").count(), 1 + 2, "{shown}"),
        }
        let mut fields = untouched(&page);
        set(&mut fields, "timeout", "7s");
        post(&admin, &path, &fields).await.is(303);
        let after = job(&world, &root, &id).await;
        assert_eq!(after["schedule"], before["schedule"]);
        assert_eq!(after["target"], before["target"]);
        assert_eq!(after["timeout"], "7s");
        // Another expression keeps how it is read.
        let mut fields = untouched(&admin.get(&path).await.is(200).text);
        set(&mut fields, "cron", "0 30 9 ? * MON#1");
        if number == 0 {
            let page = post(&admin, "/jobs/preview", &fields).await.is(200).text;
            assert!(page.contains("09:30:00"), "{page}");
            post(&admin, &path, &fields).await.is(303);
            let after = job(&world, &root, &id).await;
            assert_eq!(after["schedule"]["dialect"], "quartz");
            assert_eq!(after["schedule"]["dst_gap"], "skip");
        }
    }
}

#[tokio::test]
async fn a_one_off_whose_moment_has_passed_is_edited_all_the_same() {
    let world = World::with_keys().await;
    let body = json!({"schedule": "@yearly", "target": OK});
    let (root, _) = made(&world, body).await;
    let like = world.store.all_jobs().first().unwrap().clone();
    let mut old = (*like).clone();
    let at = now().minus(std::time::Duration::from_secs(90 * 86_400));
    old.id = JobId::new(at, [7; 10]);
    Arc::make_mut(&mut old.def).schedule.kind = Kind::Once(Slot(at));
    old.state = JobState::Finished;
    old.next_slot = None;
    old.slot_last = Some(at);
    (old.created_at, old.updated_at) = (Timestamp::from_millis(at.as_millis() - 1_000), at);
    let id = old.id.to_string();
    let new = NewJob {
        job: Arc::new(old),
        idempotency: None,
    };
    world.store.create_jobs(&[new]).await.unwrap();
    let admin = logged_in(&world, Role::Admin).await;
    let path = format!("/jobs/{id}/edit");
    let page = admin.get(&path).await.is(200).text;
    assert!(!page.contains("Not saved."), "{page}");
    let mut fields = untouched(&page);
    set(&mut fields, "labels", "team=a");
    post(&admin, &path, &fields).await.is(303);
    assert_eq!(job(&world, &root, &id).await["labels"]["team"], "a");
    // Another moment that has passed is refused, in the words of the API.
    set(&mut fields, "at", "2020-01-01T00:00:00Z");
    set(&mut fields, "version", "2");
    let refused = post(&admin, &path, &fields).await.is(422).text;
    assert!(refused.contains("hours ago"), "{refused}");
}

#[tokio::test]
async fn whoever_was_overtaken_sees_what_changed_and_may_save_over_it() {
    let world = World::with_keys().await;
    let body =
        json!({"key": "nightly", "schedule": "0 9 * * *", "target": OK, "labels": {"team": "a"}});
    let (root, id) = made(&world, body).await;
    let admin = logged_in(&world, Role::Admin).await;
    let path = format!("/jobs/{id}/edit");
    let mut fields = untouched(&admin.get(&path).await.is(200).text);
    set(&mut fields, "timeout", "9s");
    let patch = json!({"labels": {"team": "b"}, "schedule": "0 10 * * *"});
    let api = format!("/v1/jobs/{id}");
    world.as_key(&root, "PATCH", &api, patch).await.is(200);
    let page = post(&admin, &path, &fields).await.is(412).text;
    for line in [
        "labels.team: a",
        "labels.team: b",
        "schedule.cron: 0 10 * * *",
        "Save over version 2",
    ] {
        assert!(page.contains(line), "{line}: {page}");
    }
    assert!(page.contains("value=\"9s\""), "what was typed is kept");
    post(&admin, &path, &untouched(&page)).await.is(303);
    let after = job(&world, &root, &id).await;
    assert_eq!(
        (&after["timeout"], &after["labels"]["team"]),
        (&json!("9s"), &json!("a"))
    );
    assert_eq!(after["version"], 3);
}
