//! The overview: after a known story, every number on the page equals what the API says and what happened.

use serde_json::{Value, json};

use super::Browser;
use crate::world::{FAIL, HANG, OK, World, pause};

fn count(number: &Value) -> String {
    number.as_u64().unwrap().to_string()
}

/// The number under a name.
fn figure(page: &str, id: &str) -> String {
    let (_, rest) = page.split_once(&format!("id=\"kpi-{id}\">")).unwrap();
    rest.split('<').next().unwrap().to_owned()
}

/// What stands under that number.
fn more(page: &str, id: &str) -> String {
    let (_, rest) = page.split_once(&format!("id=\"kpi-{id}\">")).unwrap();
    let (_, rest) = rest.split_once("class=\"n\">").unwrap();
    rest.split('<').next().unwrap().replace('\u{2009}', " ")
}

/// The cells of every point in the table, newest first, without its moment.
fn points(page: &str) -> Vec<Vec<String>> {
    let (_, table) = page.split_once("dense points").unwrap();
    let table = table.split("</table>").next().unwrap();
    let rows = table.split("<tr>").skip(2);
    let cells = |row: &str| {
        let cells = row.split("<td class=\"num\">").skip(1);
        cells
            .map(|cell| cell.split('<').next().unwrap().to_owned())
            .collect()
    };
    rows.map(cells).collect()
}

/// A world in which something of everything happened; and how the API counts it.
async fn story() -> (World, Value) {
    let world = World::new().await;
    let every = json!({"schedule": {"every": "1s"}, "target": OK});
    let every = world.post("/v1/jobs", every).await.is(201).get("id");
    let (fails, hangs) = (world.job(FAIL).await, world.job(HANG).await);
    for _ in 0..2 {
        let run = world.run(&fails).await;
        world.wait(&run, &["dead"]).await;
    }
    let run = world.run(&hangs).await;
    world.post_empty(&format!("/v1/runs/{run}/cancel")).await;
    world.wait(&run, &["cancelled"]).await;
    world.run(&hangs).await;
    for _ in 0..500 {
        let found = world.get("/v1/overview").await.is(200).json();
        if found["total"]["fired"].as_u64() >= Some(3) {
            break;
        }
        pause(20).await;
    }
    world
        .post_empty(&format!("/v1/jobs/{every}/pause"))
        .await
        .is(200);
    // Until all of it is counted.
    for _ in 0..500 {
        let found = world.get("/v1/overview").await.is(200).json();
        let total = &found["total"];
        let is_all =
            total["dead"] == 2 && total["cancelled"] == 1 && total["succeeded"] == total["fired"];
        if is_all && found["live"]["live"] == 1 {
            pause(2_500).await;
            return (world, found);
        }
        pause(20).await;
    }
    panic!("{}", world.get("/v1/overview").await.text);
}

/// Every point of the table is one of the API.
fn same_points(page: &str, api: &Value) {
    let names = [
        "fired",
        "succeeded",
        "dead",
        "cancelled",
        "retried",
        "late",
        "skipped",
    ];
    let of = |point: &Value| names.map(|name| count(&point[name])).to_vec();
    let expected = api["points"].as_array().unwrap().iter().rev();
    let expected: Vec<Vec<String>> = expected.map(of).collect();
    let shown = points(page).into_iter().map(|row| row[..7].to_vec());
    assert_eq!(shown.collect::<Vec<_>>(), expected, "{}", api["span"]);
}

#[tokio::test]
async fn every_number_on_the_overview_equals_the_api_s() {
    let (world, found) = story().await;
    let browser = Browser::new(&world);
    for span in ["1h", "6h", "24h", "7d"] {
        let page = browser.get(&format!("/?span={span}")).await.is(200).text;
        let api = world.get(&format!("/v1/overview?span={span}")).await.json();
        let total = &api["total"];
        assert_eq!(total, &found["total"], "nothing happened since");
        let current = format!("href=\"/?span={span}\" aria-current");
        assert!(page.contains(&current), "{span}");
        for (id, value) in [
            ("dead", &total["dead"]),
            ("missed", &total["missed"]),
            ("live", &api["live"]["live"]),
            ("retrying", &api["live"]["retrying"]),
        ] {
            assert_eq!(figure(&page, id), count(value), "{span}: {id}");
        }
        let fired = count(&total["fired"]);
        assert!(
            more(&page, "fired").starts_with(&format!("{fired} in ")),
            "{span}"
        );
        let ran = total["succeeded"].as_u64().unwrap();
        assert_eq!(more(&page, "succeeded"), format!("{ran} of {}", ran + 2));
        let share = figure(&page, "succeeded").parse::<f64>().unwrap();
        let ratio = total["success_ratio"].as_f64().unwrap() * 100.0;
        assert!(
            (ratio - share).abs() < 0.01 && share <= ratio,
            "{share} {ratio}"
        );
        same_points(&page, &api);
        let lanes = api["live"]["lanes"].as_array().unwrap();
        assert_eq!(
            lanes
                .iter()
                .map(|lane| lane["live"].as_u64().unwrap())
                .sum::<u64>(),
            1
        );
        for text in [
            "2 runs are dead",
            "Lateness over the last",
            "<path class=\"f-dead\"",
            "<path class=\"series p99\"",
        ] {
            assert!(page.contains(text), "{span}: {text}");
        }
    }
    browser.get("/?span=1y").await.is(400);
}

#[tokio::test]
async fn an_overview_of_nothing_has_no_numbers_that_are_none() {
    let world = World::new().await;
    let page = Browser::new(&world).get("/").await.is(200).text;
    assert_eq!(figure(&page, "lateness"), "—");
    assert_eq!(figure(&page, "succeeded"), "—");
    assert_eq!(figure(&page, "fired"), "0");
    for bad in ["NaN", "inf", "Needs attention"] {
        assert!(!page.contains(bad), "{bad}");
    }
    assert_eq!(page.matches("Nothing in this span").count(), 4);
}
