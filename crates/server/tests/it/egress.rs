//! Targets that a node may not call are refused when they are written, whichever way.

use serde_json::json;

use crate::world::{OK, World};

/// One address of each kind, in the ways that it can be written.
const REFUSED: &[&str] = &[
    "http://127.0.0.1/",
    "http://127.0.0.1:8080/hook",
    "https://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.0.1/",
    "http://100.64.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://0.0.0.0/",
    "http://255.255.255.255/",
    "http://224.0.0.1/",
    "http://198.18.0.1/",
    "http://192.0.2.1/",
    "http://240.0.0.1/",
    "http://[::1]/",
    "http://[::]/",
    "http://[fe80::1]/",
    "http://[fd00:ec2::254]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::127.0.0.1]/",
    "http://[64:ff9b:1::10.0.0.1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:4136:e378::1]/",
    "http://[0:0:0:0:0:0:0:1]/",
];

/// What some programs read as 127.0.0.1.
const ODD: &[&str] = &[
    "http://127.1/",
    "http://127.0.0.1./",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://2130706433/",
    "http://017700000001/",
    "http://0177.0.0.1/",
    "http://127%2e0%2e0%2e1/",
    "http://１２７.0.0.1/",
    "http://127。0。0。1/",
    "http://[::1%25lo]/",
];

#[tokio::test]
async fn a_target_that_may_not_be_called_is_refused_whichever_way_it_is_written() {
    let world = World::new().await;
    let job = world.job(OK).await;
    let before = world.snapshot();
    let cases = REFUSED.iter().map(|url| (url, "egress-refused"));
    for (url, problem) in cases.chain(ODD.iter().map(|url| (url, "field-invalid"))) {
        let new = json!({"schedule": "@daily", "target": url});
        let full = json!({"schedule": "@daily", "target": {"http": {"url": url}}});
        let patch = json!({"target": {"http": {"url": url}}});
        for (reply, field) in [
            (world.post("/v1/jobs", new.clone()).await, None),
            (
                world.post("/v1/jobs?dry_run=true", full.clone()).await,
                Some("target.http.url"),
            ),
            (
                world.put("/v1/jobs/by-key/a", full).await,
                Some("target.http.url"),
            ),
            (
                world.patch(&format!("/v1/jobs/{job}"), patch).await,
                Some("target.http.url"),
            ),
        ] {
            reply.refused(422, problem);
            let named = reply.problem().1.unwrap();
            assert!(field.is_none_or(|field| field == named), "{url}: {named}");
            assert!(named.starts_with("target"), "{url}: {named}");
        }
        let kind = [("content-type", "application/x-ndjson")];
        let line = format!("{new}\n");
        let reply = world.call("POST", "/v1/jobs/batch", &kind, line).await;
        assert!(reply.text.contains(problem), "{url}: {}", reply.text);
    }
    assert_eq!(world.snapshot(), before);
}

#[tokio::test]
async fn names_and_public_addresses_are_taken() {
    let world = World::new().await;
    for url in [
        "http://localhost/",
        "http://127.0.0.1.nip.io/",
        "https://1.1.1.1/",
        "https://[2606:4700::1111]/",
        "https://example.com./",
    ] {
        world.job(url).await;
    }
}
