//! What operators do by hand, each with a real browser and to its end: run, edit, go back, delete, cancel, replay, stop, revoke, explain.

use serde_json::{Value, json};

use super::axe::Axe;
use super::driver::Browser;
use super::{World, check_whole};
use crate::support::wait_for;

/// Logs in whoever started the server.
fn as_root(world: &World, browser: &Browser) {
    let link = world.server.printed("console");
    browser.go(link.trim());
    browser.wait_text("Overview");
}

/// Replaces what stands in a field.
#[track_caller]
fn fill(browser: &Browser, field: &str, text: &str) {
    browser.tab_to(field);
    browser.js("document.activeElement.select()");
    browser.keys(text);
}

/// What saving would change stands beside the form.
fn planned(browser: &Browser) {
    browser.wait_text("Saving changes");
    let plan = "return document.querySelector('#preview .plan')?.innerText ?? ''";
    let plan = wait_for("the plan", || {
        let text = browser.js(plan).as_str().unwrap().to_owned();
        (text.contains("45s") && text.contains("removed")).then_some(text)
    });
    for part in ["30 2 * * *", "45 2 * * *", ":30:00", ":45:00", "added"] {
        assert!(plan.contains(part), "{part}: {plan}");
    }
    for (width, scheme) in [(320, "dark"), (1600, "light")] {
        check_whole(browser, "job-plan", (width, scheme));
    }
    browser.resize(1200, 900, "light");
}

/// The same as JSON, and back: nothing is lost on the way.
fn as_json_and_back(browser: &Browser) {
    browser.click("button[formaction='/jobs/view']");
    browser.wait_text("The job as JSON");
    let text = browser.js("return document.getElementById('json').value");
    let typed: Value = serde_json::from_str(text.as_str().unwrap()).unwrap();
    assert_eq!(typed["timeout"], "45s");
    assert_eq!(typed["schedule"]["cron"], "45 2 * * *");
    for (width, scheme) in [(320, "light"), (1600, "dark")] {
        check_whole(browser, "job-form-json", (width, scheme));
    }
    browser.resize(1200, 900, "light");
    browser.click("button[formaction='/jobs/view']");
    browser.wait_text("If things go wrong");
}

#[test]
fn a_job_is_run_edited_and_taken_back() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = World::new();
    browser.resize(1200, 900, "light");
    world.log_in(&browser);
    let id = world.id("ledger-close");
    let job = |path: &str| world.url(&format!("/jobs/{id}{path}"));
    browser.go(&job(""));
    browser.click(&format!("form[action='/jobs/{id}/run'] button"));
    wait_for("its run's page", || {
        browser.path().starts_with("/runs/").then_some(())
    });
    wait_for("its run", || world.run_of("ledger-close", "succeeded"));
    browser.go(&job(""));
    // By its letter.
    browser.keys("e");
    browser.wait_text("If things go wrong");
    browser.wait_text("Nothing: it is as the version in force.");
    fill(&browser, "cron", "45 2 * * *");
    fill(&browser, "timeout", "45s");
    planned(&browser);
    as_json_and_back(&browser);
    // Enter in a field saves.
    browser.tab_to("timeout");
    browser.keys("\u{e006}");
    browser.wait_text("Saved. A new version is in force.");
    assert_eq!(world.get(&format!("/v1/jobs/{id}"))["timeout"], "45s");

    browser.go(&job("/versions"));
    browser.click("section:nth-of-type(2) form[action$='/revert'] button");
    browser.wait_text("The earlier version is in force again");
    let stands = world.get(&format!("/v1/jobs/{id}"));
    assert_eq!(stands["schedule"]["cron"], "30 2 * * *");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_job_is_duplicated_copied_and_deleted() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = World::new();
    browser.resize(1200, 900, "light");
    world.log_in(&browser);
    let id = world.id("ledger-close");
    let job = |path: &str| world.url(&format!("/jobs/{id}{path}"));
    let stands = world.get(&format!("/v1/jobs/{id}"));
    // Another as it is, under another key.
    browser.go(&job(""));
    browser.click("details.more summary");
    browser.click(&format!("a[href='/jobs/new?from={id}']"));
    browser.wait_text("If things go wrong");
    assert_eq!(
        browser.js("return ['key', 'cron', 'url'].map(it => document.getElementById(it).value)"),
        json!(["", "30 2 * * *", world.receiver.url("/ok")])
    );
    fill(&browser, "key", "ledger-copy");
    browser.click("#job-form button.primary");
    browser.wait_text("Created.");
    let copy = world.get("/v1/jobs/key:ledger-copy");
    assert_eq!(copy["schedule"], stands["schedule"]);
    // What is to be copied to a terminal makes the same.
    browser.go(&job("/json"));
    let command = browser.js("return document.getElementById('as-command').textContent");
    let made = format!("{} --key ledger-again", command.as_str().unwrap());
    let made = world.server.bash(&made);
    assert!(made.status.success(), "{made:?}");
    let again = world.get("/v1/jobs/key:ledger-again");
    for part in ["schedule", "target", "timeout", "retry", "labels"] {
        assert_eq!(again[part], stands[part], "{part}");
    }

    browser.go(&job(""));
    browser.click("details.more summary");
    browser.click("#sure");
    browser.keys("ledger-close");
    browser.click(&format!("form[action='/jobs/{id}/delete'] button.danger"));
    wait_for("the list", || (browser.path() == "/jobs").then_some(()));
    let jobs = world.get("/v1/jobs?limit=100");
    let jobs = jobs["items"].as_array().unwrap().clone();
    assert!(jobs.iter().all(|job| job["id"] != id.as_str()));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_run_is_cancelled_and_another_replayed_with_another_payload() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = World::new();
    browser.resize(1200, 900, "light");
    world.log_in(&browser);
    world.server.printed(&format!(
        "job create --key slow --every 24h --timeout 30s --url {}",
        world.receiver.url("/slow")
    ));
    let started = world.server.printed("--json job run slow");
    let started: Value = serde_json::from_str(&started).unwrap();
    let run = started["id"].as_str().unwrap();
    browser.go(&world.url(&format!("/runs/{run}")));
    browser.click(&format!("form[action='/runs/{run}/cancel'] button"));
    browser.wait_text("Cancelled");
    wait_for("its end", || world.run_of("slow", "cancelled"));

    let dead = world.run_of("orders-export", "dead").unwrap();
    let dead = dead["id"].as_str().unwrap();
    browser.go(&world.url(&format!("/runs/{dead}")));
    browser.click("details.more summary");
    browser.click("#payload");
    browser.js("document.activeElement.select()");
    browser.keys("{\"order\": 4712}");
    browser.click("form.pop.wide button");
    browser.wait_text("A replay of");
    let replayed = wait_for("the replay's end", || {
        let latest = world.run_of("orders-export", "dead")?;
        (latest["replay_of"] == dead).then_some(latest)
    });
    let sent = world.receiver.deliveries();
    let id = replayed["id"].as_str().unwrap();
    let sent = sent.iter().find(|it| it.headers["punctual-run"] == id);
    let body: Value = serde_json::from_slice(&sent.unwrap().body).unwrap();
    assert_eq!(body, json!({"order": 4712}));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn dead_runs_are_replayed_in_bulk_and_a_replay_is_stopped() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = World::new();
    browser.resize(1200, 900, "light");
    world.log_in(&browser);
    let dead = || {
        let runs = world.get("/v1/runs?state=dead&limit=100");
        runs["items"].as_array().unwrap().len()
    };
    for number in 2..=3 {
        world.server.printed("job run orders-export");
        wait_for("its end", || (dead() == number).then_some(()));
    }
    browser.go(&world.url("/dead"));
    browser.click("form[action='/dead/replay'] button");
    wait_for("its page", || {
        browser.path().starts_with("/replays/").then_some(())
    });
    wait_for("the replays", || (dead() == 6).then_some(()));
    browser.wait_text("Done");
    for (width, scheme) in [(320, "dark"), (1600, "light")] {
        check_whole(&browser, "replay", (width, scheme));
        if let Some(axe) = Axe::find() {
            axe.check(&browser, "replay");
        }
    }

    let made = world
        .server
        .printed("--json replay create --state dead --rate 1");
    let made: Value = serde_json::from_str(&made).unwrap();
    let id = made["id"].as_str().unwrap();
    browser.go(&world.url(&format!("/replays/{id}")));
    browser.click(&format!("form[action='/replays/{id}/stop'] button"));
    browser.wait_text("Stopped");
    assert_eq!(
        world.get(&format!("/v1/replays/{id}"))["state"],
        "cancelled"
    );
    assert!(dead() < 12);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_key_is_revoked_and_a_slot_is_explained_from_the_map() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = World::new();
    browser.resize(1200, 900, "light");
    as_root(&world, &browser);
    let made = world
        .server
        .printed("--json key create --role reader --label ours");
    let made: Value = serde_json::from_str(&made).unwrap();
    let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    let reads = || world.server.http().with_key(key).get("/v1/jobs").status;
    assert_eq!(reads(), 200);
    browser.go(&world.url("/keys"));
    browser.js(&format!(
        "document.querySelector('form[action=\"/keys/revoke\"] input[value=\"{id}\"]').form.querySelector('button').id = 'ours'"
    ));
    browser.click("#ours");
    wait_for("the key to open nothing", || (reads() == 401).then_some(()));

    // Its first attempts fail: such a slot is a link on the map.
    let flaky = world.id("flaky-pull");
    browser.go(&world.url(&format!("/jobs/{flaky}")));
    browser.js("document.querySelector('.heat:not(.heat-hours) a[hx-get]').focus()");
    browser.keys("\u{e006}");
    browser.wait_text("Open its run");
    let shown = browser.text().to_lowercase();
    for part in ["schedule", "overlap"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(
        browser
            .js("return location.search")
            .as_str()
            .unwrap()
            .starts_with("?at=")
    );
    browser.click("#explain a.link");
    browser.wait_text("Attempt 1");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn letters_do_what_the_help_says_unless_they_are_turned_off() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = World::new();
    browser.resize(1200, 900, "light");
    world.log_in(&browser);
    let id = world.id("invoices-sync");
    let state = || world.get(&format!("/v1/jobs/{id}"))["state"].clone();
    browser.go(&world.url(&format!("/jobs/{id}")));
    browser.keys("?");
    browser.wait_text("pause or resume the job");
    browser.screenshot(&super::screenshots().join("help-1200-light.png"));
    // While it is open, letters are its own.
    browser.keys("p");
    browser.keys("\u{e00c}");
    assert_eq!(state(), "active");
    wait_for("the help to close", || {
        (browser.js("return document.querySelector('dialog.help')") == Value::Null).then_some(())
    });
    browser.keys("p");
    browser.wait_text("Its slots are skipped until it is resumed.");
    assert_eq!(state(), "paused");
    browser.keys("p");
    browser.wait_text("Resumed.");
    browser.keys("r");
    wait_for("its run's page", || {
        browser.path().starts_with("/runs/").then_some(())
    });
    browser.keys("gl");
    browser.wait_text("Due in the next hour");
    browser.go(&world.url("/settings"));
    browser.click("form[action='/settings/keys'] button");
    browser.wait_text("They are off");
    browser.go(&world.url(&format!("/jobs/{id}")));
    browser.keys("p");
    browser.keys("?");
    browser.keys("gj");
    assert_eq!(browser.path(), format!("/jobs/{id}"));
    assert_eq!(
        browser.js("return document.querySelector('dialog.help')"),
        Value::Null
    );
    assert_eq!(state(), "active");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
