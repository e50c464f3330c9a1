//! Pages that follow what happens, in a real browser: numbers change without a load, and a server that goes away is said.

use serde_json::json;

use super::driver::Browser;
use super::{World, check, screenshots};
use crate::support::{Answer, KEYS, Receiver, Server, wait_for};

/// A page keeps this as long as it is not loaded again.
const MARK: &str = "window.mark = true";

fn is_same_page(browser: &Browser) -> bool {
    browser.js("return window.mark === true") == true
}

#[test]
fn the_overview_and_a_run_follow_what_happens_without_a_load() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = World::new();
    browser.resize(1200, 900, "light");
    world.log_in(&browser);
    browser.wait_text("Live");
    browser.js(MARK);
    let dead = "return document.getElementById('kpi-dead').textContent";
    wait_for("the first dead run", || {
        (browser.js(dead) == "1").then_some(())
    });
    // Whoever has the focus keeps it.
    browser.js("document.querySelector('main a[href=\"/dead\"]').focus()");
    let focus = "return document.activeElement.getAttribute('href')";
    assert_eq!(browser.js(focus), "/dead");
    world.server.printed("job run orders-export");
    wait_for("the second dead run", || {
        (browser.js(dead) == "2").then_some(())
    });
    assert!(is_same_page(&browser));
    assert_eq!(browser.js(focus), "/dead");

    world.server.printed(&format!(
        "job create --key slow --every 24h --timeout 30s --url {}",
        world.receiver.url("/slow")
    ));
    let started = world.server.printed("--json job run slow");
    let started: serde_json::Value = serde_json::from_str(&started).unwrap();
    let run = started["id"].as_str().unwrap();
    browser.go(&world.url(&format!("/runs/{run}")));
    browser.js(MARK);
    browser.wait_text("Live");
    browser.wait_text("Succeeded");
    browser.wait_text("Attempt 1");
    assert!(is_same_page(&browser));
    // It has ended: nobody waits for more.
    wait_for("the mark to go", || {
        let shown = "return [...document.querySelectorAll('.live')].every(it => it.hidden)";
        (browser.js(shown) == true).then_some(())
    });
    check(&browser, "run-live", 1200);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_server_that_is_killed_and_comes_back_is_said_and_the_page_goes_on() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let folder = tempfile::TempDir::new().unwrap();
    let receiver = Receiver::answering(|_| Answer::ok());
    let server = Server::start_in(folder.path(), &[KEYS]);
    let address = server.url().trim_start_matches("http://").to_owned();
    server.printed(&format!(
        "job create --key one --every 24h --url {}",
        receiver.url("/ok")
    ));
    let link = server.printed("console");
    browser.resize(1200, 900, "light");
    browser.go(link.trim());
    browser.wait_text("Overview");
    browser.wait_text("Live");
    browser.js(MARK);
    server.kill();
    browser.wait_text("Reconnecting, numbers of");
    browser.wait_text("The server does not answer.");
    check(&browser, "overview-away", 1200);
    browser.screenshot(&screenshots().join("overview-away-1200-light.png"));
    browser.resize(320, 700, "dark");
    check(&browser, "overview-away", 320);
    browser.screenshot(&screenshots().join("overview-away-320-dark.png"));
    browser.resize(1200, 900, "light");
    let server = Server::start_in(folder.path(), &[KEYS, "--listen", &address]);
    server.printed(&format!(
        "job create --key two --every 24h --url {}",
        receiver.url("/ok")
    ));
    browser.wait_text("Live");
    // It has read itself once more.
    browser.wait_text("2 jobs in default");
    assert!(is_same_page(&browser));
    assert_eq!(
        browser.js("return document.getElementById('away')"),
        json!(null)
    );
    drop(server);
}
