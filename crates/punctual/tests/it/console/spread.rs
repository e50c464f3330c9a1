//! A hot second in a real browser: marked on the chart, proposed to be spread, looked at, and spread.

use serde_json::Value;

use super::axe::Axe;
use super::driver::Browser;
use super::{World, check_whole};
use crate::support::wait_for;

#[test]
fn a_hot_second_is_marked_and_its_jobs_are_spread_from_the_page() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = World::new();
    for number in 0..24 {
        let lane = ["critical", "standard", "batch"][number % 3];
        let key = format!("tenant-{number}/nightly-settlement-of-the-ledger");
        world.server.printed(&format!(
            "job create --key {key} --cron '0 3 * * *' --lane {lane} --url {}",
            world.receiver.url("/ok")
        ));
    }
    browser.resize(1600, 900, "light");
    world.log_in(&browser);
    wait_for("the hot second", || {
        browser.go(&world.url("/"));
        browser.text().contains("Propose spread").then_some(())
    });
    for (width, scheme) in [
        (320, "light"),
        (320, "dark"),
        (1600, "light"),
        (1600, "dark"),
    ] {
        check_whole(&browser, "overview-hot", (width, scheme));
    }
    browser.resize(1600, 900, "light");
    browser.click("#hot a.btn");
    browser.wait_text("in one second now");
    // Jobs of the world around them that are due every few seconds may be due then, too.
    let chosen = browser.js("return document.querySelectorAll('input[name=job]:checked').length");
    let chosen = chosen.as_u64().unwrap();
    assert!((24..30).contains(&chosen), "{chosen}");
    for (width, scheme) in [(320, "dark"), (1600, "light")] {
        check_whole(&browser, "spread", (width, scheme));
        if let Some(axe) = Axe::find() {
            axe.check(&browser, "spread");
        }
    }
    // One of them is left as it is.
    browser.click("input[aria-label='Spread tenant-0/nightly-settlement-of-the-ledger']");
    browser.click("button.primary");
    browser.wait_text(&format!("{} jobs are spread now", chosen - 1));
    check_whole(&browser, "spread-done", (1600, "light"));
    let jobs: Value = world.get("/v1/jobs?limit=100");
    let jobs = jobs["items"].as_array().unwrap();
    let ours = |job: &&Value| job["key"].as_str().unwrap().contains("nightly-settlement");
    let spread = jobs
        .iter()
        .filter(ours)
        .filter(|job| job["spread"] == "60s");
    assert_eq!(spread.count(), 23);
    let said = world.server.printed("forecast --reach 1h --json");
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["reach"], "1h");
    // From the command line the last one follows.
    let day = world.get("/v1/forecast/second?at=0");
    assert_eq!(day["field"], "at");
    let shown = world.server.printed("forecast");
    assert!(shown.contains("PER SECOND"), "{shown}");
    let lines = world.server.printed("events --events-max 1");
    assert!(lines.contains("open"), "{lines}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
