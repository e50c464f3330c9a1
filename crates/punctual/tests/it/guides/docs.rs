//! The guides as a browser meets them.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Http, Reply, Server};

/// What stands between quotes after each `name=`.
fn values<'a>(html: &'a str, name: &str) -> Vec<&'a str> {
    let begin = format!(" {name}=\"");
    let parts = html.split(begin.as_str()).skip(1);
    parts.map(|rest| rest.split_once('"').unwrap().0).collect()
}

fn visit(http: &Http, path: &str) -> Reply {
    http.send("GET", path, &[("accept", "text/html")], b"")
}

#[track_caller]
fn is_a_safe_page(path: &str, reply: &Reply) {
    assert_eq!(reply.status, 200, "{path}");
    let policy = reply.header("content-security-policy").unwrap();
    for part in [
        "default-src 'none'",
        "style-src 'self'",
        "frame-ancestors 'none'",
        "form-action 'none'",
        "base-uri 'none'",
    ] {
        assert!(policy.contains(part), "{path}: {policy}");
    }
    assert!(
        !policy.contains("unsafe") && !policy.contains("script"),
        "{policy}"
    );
    assert_eq!(
        reply.header("x-content-type-options"),
        Some("nosniff"),
        "{path}"
    );
    assert_eq!(
        reply.header("referrer-policy"),
        Some("no-referrer"),
        "{path}"
    );
    assert!(
        reply
            .header("content-type")
            .unwrap()
            .starts_with("text/html"),
        "{path}"
    );
    let html = String::from_utf8_lossy(&reply.body);
    for forbidden in [
        "<script",
        "<iframe",
        "<img",
        "<style",
        " style=",
        "javascript:",
    ] {
        assert!(!html.contains(forbidden), "{path} has {forbidden}");
    }
}

/// Where a page's links lead, and what of it can be linked to.
#[derive(Default)]
struct Visited {
    links: BTreeSet<String>,
    ids: BTreeSet<String>,
}

/// Everything that can be reached from the first page.
fn visit_all(http: &Http) -> BTreeMap<String, Visited> {
    let mut pages = BTreeMap::<String, Visited>::new();
    let mut ahead = vec!["/docs".to_owned()];
    while let Some(path) = ahead.pop() {
        if pages.contains_key(&path) {
            continue;
        }
        let reply = visit(http, &path);
        if path == "/openapi.json" || path == "/docs/style.css" {
            assert_eq!(reply.status, 200, "{path}");
            pages.insert(path, Visited::default());
            continue;
        }
        is_a_safe_page(&path, &reply);
        let html = String::from_utf8(reply.body).unwrap();
        let own = |name| values(&html, name).into_iter().map(str::to_owned).collect();
        let (links, ids): (BTreeSet<String>, _) = (own("href"), own("id"));
        for link in links.iter().filter(|link| link.starts_with('/')) {
            ahead.push(link.split('#').next().unwrap().to_owned());
        }
        pages.insert(path, Visited { links, ids });
    }
    pages
}

const GUIDES: [&str; 9] = [
    "access",
    "schedules",
    "receivers",
    "policies",
    "configuration",
    "cluster",
    "monitoring",
    "backup",
    "upgrade",
];

#[test]
fn every_page_answers_and_every_link_on_it_leads_somewhere() {
    let server = Server::start();
    let pages = visit_all(&server.http());
    let mut broken = Vec::new();
    for (path, page) in &pages {
        for link in &page.links {
            let (to, id) = link.split_once('#').unwrap_or((link, ""));
            let to = if to.is_empty() { path } else { to };
            let outside = to.starts_with("https://") || to.starts_with("http://");
            let found = pages
                .get(to)
                .is_some_and(|page| id.is_empty() || page.ids.contains(id));
            if !outside && !found {
                broken.push(format!("{path}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    for name in GUIDES.iter().chain(&["changelog", "benchmarks", "api"]) {
        assert!(
            pages.contains_key(&format!("/docs/{name}")),
            "{name} cannot be reached"
        );
    }
    let problems = pages.keys().filter(|path| path.starts_with("/problems/"));
    assert!(problems.count() > 40);
}

#[test]
fn the_reference_has_every_operation_of_the_contract() {
    let server = Server::start();
    let http = server.http();
    let page = String::from_utf8(visit(&http, "/docs/api").body).unwrap();
    let contract = http.get("/openapi.json").json();
    for (path, operations) in contract["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            let title = format!("<code>{} {path}</code></h3>", method.to_uppercase());
            assert!(page.contains(&title), "{title}");
        }
    }
}

#[test]
fn an_unknown_page_is_a_problem() {
    let server = Server::start();
    let http = server.http();
    for path in [
        "/docs/none",
        "/docs/",
        "/docs/guides/backup",
        "/docs/%2e%2e",
        "/docs/%ff",
    ] {
        let reply = visit(&http, path);
        assert_eq!(reply.status, 404, "{path}");
        assert_eq!(
            reply.header("content-type"),
            Some("application/problem+json"),
            "{path}"
        );
        assert_eq!(reply.json()["type"], "/problems/route-unknown", "{path}");
    }
    let reply = http.send("POST", "/docs", &[], b"");
    assert_eq!((reply.status, reply.header("allow").is_some()), (405, true));
}
