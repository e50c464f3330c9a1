//! The console in a real browser, on a real server with real runs.

mod actions;
mod axe;
mod driver;
mod live;
mod spread;
mod typed;

use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Answer, Delivery, KEYS, Receiver, Server, wait_for};
use axe::Axe;
use driver::Browser;

const PASSWORD: &str = "correct horse battery";

/// A server whose jobs have run, were retried, and are dead.
struct World {
    server: Server,
    receiver: Receiver,
}

fn answer(delivery: &Delivery) -> Answer {
    let is_first = delivery
        .headers
        .get("punctual-attempt")
        .is_some_and(|no| no == "1");
    match delivery.path.as_str() {
        "/dead" => Answer::status(422).saying("{\"error\": \"the order 4711 has no customer\"}"),
        "/slow" => Answer::ok().after(std::time::Duration::from_secs(3)),
        "/flaky" if is_first => Answer::status(503).saying("busy"),
        _ => Answer::ok().saying("{\"rows\": 1204}"),
    }
}

impl World {
    fn new() -> Self {
        let receiver = Receiver::answering(answer);
        let server = Server::start_with_keys();
        let url = |path: &str| receiver.url(path);
        server.printed(&format!("job create --key invoices-sync --cron '*/15 * * * *' --timezone Europe/Berlin --url {} --label team=billing", url("/ok")));
        server.printed(&format!(
            "job create --key ledger-close --cron '30 2 * * *' --timezone Europe/Berlin --url {}",
            url("/ok")
        ));
        server.printed(&format!(
            "job create --key orders-export --every 1h --url {}",
            url("/dead")
        ));
        server.printed(&format!(
            "job create --key flaky-pull --every 2s --url {}",
            url("/flaky")
        ));
        server.printed("calendar put holidays --yearly 12-25");
        server.printed("job edit ledger-close --timeout 1m");
        server.printed("job run orders-export");
        let made = server.bash(&format!(
            "echo '{PASSWORD}' | punctual user create ada --role admin"
        ));
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        let world = Self { server, receiver };
        wait_for("a dead run", || world.run_of("orders-export", "dead"));
        wait_for("a retried run", || {
            let run = world.run_of("flaky-pull", "succeeded")?;
            (run["attempts"].as_array()?.len() > 1).then_some(())
        });
        world
    }

    fn get(&self, path: &str) -> Value {
        let http = self.server.http().with_key(&self.server.root_key());
        http.get(path).json()
    }

    /// The latest run of a job that is in a state.
    fn run_of(&self, job: &str, state: &str) -> Option<Value> {
        let runs = self.get(&format!("/v1/jobs/key:{job}/runs?limit=50"));
        let runs = runs["items"].as_array()?.clone();
        runs.into_iter().find(|run| run["state"] == state)
    }

    fn id(&self, key: &str) -> String {
        let job = self.get(&format!("/v1/jobs/key:{key}"));
        job["id"].as_str().unwrap().to_owned()
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server.url())
    }

    /// Logs in with a name and a password.
    fn log_in(&self, browser: &Browser) {
        browser.go(&self.url("/login"));
        browser.tab_to("name");
        browser.keys("ada");
        browser.tab_to("password");
        browser.keys(PASSWORD);
        browser.keys("\u{e006}");
        browser.wait_text("Overview");
    }
}

fn screenshots() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../screenshots");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// What every page must keep to, at any width.
fn check(browser: &Browser, name: &str, width: u32) {
    let sizes = browser.js("return [document.documentElement.scrollWidth, document.querySelectorAll('h1').length, document.querySelectorAll('[style]').length]");
    let number = |at: usize| sizes[at].as_u64().unwrap();
    assert!(
        number(0) <= u64::from(width),
        "{name} scrolls sideways at {width}: {sizes}"
    );
    assert_eq!(number(1), 1, "{name} has one h1");
    assert_eq!(number(2), 0, "{name} has style attributes");
    let unnamed = browser.js("return [...document.querySelectorAll('a, button, input:not([type=hidden]), select, textarea')].filter(it => !(it.textContent.trim() || it.getAttribute('aria-label') || it.labels?.length)).map(it => it.outerHTML.slice(0, 120))");
    assert_eq!(
        unnamed,
        serde_json::json!([]),
        "{name} has controls without a name"
    );
    if ["job-json", "job-edit-json", "job-form-json"].contains(&name) {
        // What is null in the API is null there.
        return;
    }
    let text = browser.text();
    for bad in ["NaN", "null", "undefined", "Infinity"] {
        assert!(!text.contains(bad), "{name} shows {bad}:\n{text}");
    }
}

/// The same at one width in one scheme, and a screenshot of the whole page.
fn check_whole(browser: &Browser, name: &str, (width, scheme): (u32, &str)) {
    browser.resize(width, 900, scheme);
    check(browser, name, width);
    let height = browser.js("return document.documentElement.scrollHeight");
    let height = height.as_u64().unwrap().clamp(500, 2_400) as u32;
    browser.resize(width, height, scheme);
    let file = format!("{name}-{width}-{scheme}.png");
    browser.screenshot(&screenshots().join(file));
}

/// Every page, by the name of its screenshots.
fn pages(world: &World) -> [(&'static str, String); 30] {
    let dead = world.run_of("orders-export", "dead").unwrap();
    let retried = world.run_of("flaky-pull", "succeeded").unwrap();
    let id = |run: &Value| run["id"].as_str().unwrap().to_owned();
    let (flaky, ledger) = (world.id("flaky-pull"), world.id("ledger-close"));
    let invoices = world.id("invoices-sync");
    [
        ("overview", "/".to_owned()),
        ("jobs", "/jobs".to_owned()),
        ("jobs-none", "/jobs?q=no-such-job".to_owned()),
        ("job", format!("/jobs/{flaky}")),
        (
            "job-explain",
            format!("/jobs/{invoices}?at=2030-01-01T00:00:00Z"),
        ),
        ("job-versions", format!("/jobs/{ledger}/versions")),
        ("job-audit", format!("/jobs/{ledger}/audit")),
        ("job-json", format!("/jobs/{ledger}/json")),
        ("job-slots", format!("/jobs/{flaky}/slots")),
        ("job-new", "/jobs/new".to_owned()),
        ("job-edit", format!("/jobs/{ledger}/edit")),
        ("job-edit-json", format!("/jobs/{ledger}/edit?as=json")),
        ("job-duplicate", format!("/jobs/new?from={ledger}")),
        ("runs", "/runs".to_owned()),
        ("run", format!("/runs/{}", id(&retried))),
        ("run-dead", format!("/runs/{}", id(&dead))),
        ("dead", "/dead".to_owned()),
        ("dead-group", "/dead?error=answered".to_owned()),
        ("targets", "/targets".to_owned()),
        ("overview-7d", "/?span=7d".to_owned()),
        ("calendars", "/calendars".to_owned()),
        ("lanes", "/lanes".to_owned()),
        ("nodes", "/nodes".to_owned()),
        ("tenants", "/tenants".to_owned()),
        ("users", "/users".to_owned()),
        ("keys", "/keys".to_owned()),
        ("secrets", "/secrets".to_owned()),
        ("audit", "/audit".to_owned()),
        ("settings", "/settings".to_owned()),
        (
            "missing",
            "/jobs/job_00000000000000000000000000000000".to_owned(),
        ),
    ]
}

#[test]
fn every_page_fits_narrow_and_wide_in_both_colour_schemes() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = World::new();
    let link = world.server.printed("console");
    browser.go(&world.url("/login"));
    let axe = Axe::find();
    for (width, scheme) in [(1600, "light"), (320, "dark")] {
        browser.resize(width, 800, scheme);
        check(&browser, "login", width);
        if let Some(axe) = &axe {
            axe.check(&browser, "login");
        }
        browser.screenshot(&screenshots().join(format!("login-{width}-{scheme}.png")));
    }
    browser.go(link.trim());
    browser.wait_text("Overview");
    for (name, path) in &pages(&world) {
        browser.go(&world.url(path));
        for width in [320, 1600] {
            for scheme in ["light", "dark"] {
                check_whole(&browser, name, (width, scheme));
                if let Some(axe) = &axe {
                    axe.check(&browser, name);
                }
            }
        }
    }
    // A page that is not there is the one complaint.
    let complaints = browser.complaints();
    let others = complaints.iter().filter(|it| !it.contains("404"));
    assert_eq!(others.count(), 0, "{complaints:?}");
}

#[test]
fn a_job_is_created_by_keyboard_alone_then_paused_and_resumed() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = World::new();
    browser.resize(1200, 900, "light");
    world.log_in(&browser);
    browser.keys("gj");
    browser.wait_text("New job");
    browser.tab_to("New job");
    browser.keys("\u{e006}");
    browser.wait_text("If things go wrong");
    browser.tab_to("key");
    browser.keys("by-keyboard");
    browser.tab_to("cron");
    // All that is there is replaced.
    browser.js("document.activeElement.select()");
    browser.keys("30 7 * * MON");
    // The preview follows without a click.
    browser.wait_text("07:30:00");
    browser.tab_to("url");
    browser.keys(&world.receiver.url("/ok"));
    browser.tab_to("Create job");
    browser.keys("\u{e006}");
    browser.wait_text("Created.");
    browser.wait_text("by-keyboard");
    let id = world.id("by-keyboard");
    assert_eq!(browser.path(), format!("/jobs/{id}"));
    browser.click(&format!("form[action='/jobs/{id}/pause'] button"));
    browser.wait_text("Its slots are skipped until it is resumed.");
    assert_eq!(world.get(&format!("/v1/jobs/{id}"))["state"], "paused");
    // By its toast.
    browser.click(&format!(".toast form[action='/jobs/{id}/resume'] button"));
    browser.wait_text("Resumed.");
    assert_eq!(world.get(&format!("/v1/jobs/{id}"))["state"], "active");
    assert_eq!(world.get(&format!("/v1/jobs/{id}"))["owner"], "ada");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    // What is wrong stands beside its field, and what was typed is kept.
    browser.go(&world.url(&format!("/jobs/{id}/edit")));
    browser.tab_to("cron");
    browser.js("document.activeElement.select()");
    browser.keys("75 7 * * MON");
    browser.js("document.getElementById('job-form').requestSubmit()");
    browser.wait_text("Not saved.");
    assert_eq!(
        browser.js("return document.getElementById('cron').value"),
        "75 7 * * MON"
    );
}

#[test]
fn the_palette_finds_pages_jobs_and_runs_by_keyboard_alone() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = World::new();
    browser.resize(1200, 900, "light");
    world.log_in(&browser);
    let palette = || {
        browser.control("k");
        wait_for("the palette", || {
            let shown = browser.js("return document.activeElement.id");
            (shown == "palette-field").then_some(())
        });
    };
    let found = "return [...document.querySelectorAll('#palette-list [role=option]')].map(it => it.firstChild.textContent)";
    palette();
    browser.keys("invoic");
    wait_for("the job", || {
        (browser.js(found) == serde_json::json!(["invoices-sync"])).then_some(())
    });
    check(&browser, "palette", 1200);
    if let Some(axe) = Axe::find() {
        axe.check(&browser, "palette");
    }
    browser.screenshot(&screenshots().join("palette-1200-light.png"));
    browser.keys("\u{e006}");
    browser.wait_text("Versions");
    assert_eq!(
        browser.path(),
        format!("/jobs/{}", world.id("invoices-sync"))
    );
    // The second of two, by the arrow; then a page by its name.
    palette();
    browser.keys("cal");
    wait_for("the page", || {
        (browser.js(found) == serde_json::json!(["Calendars"])).then_some(())
    });
    browser.keys("\u{e006}");
    browser.wait_text("holidays");
    let run = world.run_of("orders-export", "dead").unwrap();
    let run = run["id"].as_str().unwrap();
    palette();
    browser.keys(run);
    browser.keys("\u{e006}");
    browser.wait_text("the order 4711 has no customer");
    assert_eq!(browser.path(), format!("/runs/{run}"));
    // It closes, and the focus is where it was.
    palette();
    browser.keys("zzzz");
    browser.wait_text("Nothing is called so.");
    browser.keys("\u{e00c}");
    wait_for("the palette to close", || {
        let open = browser.js("return document.querySelector('dialog.palette').open");
        (open == false).then_some(())
    });
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_dead_run_is_found_replayed_and_the_log_has_neither_token_nor_password() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = World::new();
    browser.resize(1200, 900, "dark");
    world.log_in(&browser);
    // What was counted is written every other second or so.
    wait_for("the dead run on the overview", || {
        browser.go(&world.url("/"));
        browser.text().contains("1 run is dead").then_some(())
    });
    browser.click("a[href='/dead'].btn");
    browser.wait_text("orders-export");
    let run = world.run_of("orders-export", "dead").unwrap();
    let run = run["id"].as_str().unwrap();
    browser.click(&format!("a[href='/runs/{run}']"));
    browser.wait_text("the order 4711 has no customer");
    browser.click(&format!("form[action='/runs/{run}/replay'] button.primary"));
    browser.wait_text("A replay of");
    let replayed = wait_for("the replay's end", || {
        let latest = world.run_of("orders-export", "dead")?;
        (latest["replay_of"] == run).then_some(latest)
    });
    assert_eq!(replayed["kind"], "replay");
    // A link is good for one login.
    let link = world.server.printed("console");
    browser.go(link.trim());
    // Whoever is logged in has to agree first.
    browser.wait_text("You are logged in as ada");
    browser.click("form[action='/login/link'] button");
    browser.wait_text("root of default");
    browser.click(".rail form[action='/logout'] button");
    browser.wait_text("Password");
    browser.go(link.trim());
    browser.wait_text("has been used, or has expired");
    let token = link.trim().rsplit('=').next().unwrap().to_owned();
    let log = world.server.log();
    assert!(!log.contains(&token) && !log.contains(PASSWORD));
}

/// Browsers have less for pages that come neither over TLS nor from this machine: no clipboard, no Sec-Fetch-Site.
#[test]
fn forms_and_copying_work_over_plain_http_at_a_name_of_the_network() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let folder = tempfile::TempDir::new().unwrap();
    let keys = [KEYS, "--hosts", "punctual.test"];
    let server = Server::start_in(folder.path(), &keys);
    let made = server.bash(&format!(
        "echo '{PASSWORD}' | punctual user create ada --role admin"
    ));
    assert!(made.status.success());
    let http = server.http().with_key(&server.root_key());
    let port = server.url().rsplit(':').next().unwrap().to_owned();
    let at = |path: &str| format!("http://punctual.test:{port}{path}");
    browser.resize(1200, 900, "light");
    browser.go(&at("/login"));
    browser.tab_to("name");
    browser.keys("ada");
    browser.tab_to("password");
    browser.keys(PASSWORD);
    browser.keys("\u{e006}");
    browser.wait_text("Overview");
    assert_eq!(browser.js("return isSecureContext"), false);
    browser.go(&at("/jobs/new"));
    browser.tab_to("key");
    browser.keys("from-afar");
    browser.tab_to("url");
    browser.keys("http://127.0.0.1:9/");
    browser.tab_to("Create job");
    browser.keys("\u{e006}");
    browser.wait_text("Created.");
    let job: Value = http.get("/v1/jobs/key:from-afar").json();
    let id = job["id"].as_str().unwrap();
    browser.go(&at(&format!("/jobs/{id}/json")));
    browser.click("button[data-copy=json]");
    browser.wait_text("Copied");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
