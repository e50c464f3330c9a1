//! Whose form it is: behind proxies, across tabs and tenants, by links, and after a session has ended.

use model::{Role, TenantId};
use serde_json::{Value, json};
use server::{Door, Proxies, ProxyHeader};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{Browser, PASSWORD, cookie_of, csrf_of, form, logged_in, user};
use crate::door::{exchange, header, request};
use crate::sockets::{Served, read, served_by};
use crate::world::{OK, World};

/// A world with a user, behind a door that trusts this machine as a proxy, or nobody.
async fn served(trusted: Option<ProxyHeader>) -> Served {
    let world = World::with_keys().await;
    user(&world, "ada", Role::Reader).await;
    let proxies = trusted.map(|header| {
        let here = vec!["127.0.0.1/32".parse().unwrap()];
        Proxies::new(here, header)
    });
    let door = Door::default().with_proxies(proxies.unwrap_or_default());
    served_by(world, door).await
}

/// Whom a door trusts, what a request says, and whether its browser speaks TLS by that.
type Case<'a> = (Option<ProxyHeader>, &'a [(&'a str, &'a str)], bool);

/// The cookie that a login is answered with.
async fn cookie(served: &Served, headers: &[(&str, &str)]) -> String {
    let body = form(&[("name", "ada"), ("password", PASSWORD)]);
    let length = body.len().to_string();
    let mut all = vec![
        ("content-type", "application/x-www-form-urlencoded"),
        ("content-length", length.as_str()),
    ];
    all.extend(headers);
    let mut bytes = request("POST", "/login", &all);
    bytes.extend(body.into_bytes());
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    stream.write_all(&bytes).await.unwrap();
    let reply = read(&mut stream).await;
    assert!(reply.starts_with("HTTP/1.1 303"), "{reply}");
    header(&reply, "set-cookie").unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_names_its_origin_and_nothing_else_is_given_away() {
    let served = served(None).await;
    let page = exchange(&served, "GET", "/login", &[]).await;
    // By no-referrer, a browser would send `Origin: null` with every form.
    assert_eq!(header(&page, "referrer-policy"), Some("same-origin"));
    let other = exchange(&served, "GET", "/healthz", &[]).await;
    assert_eq!(header(&other, "referrer-policy"), Some("no-referrer"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trusted_proxy_says_whether_the_browser_speaks_tls() {
    let (x, forwarded) = (ProxyHeader::XForwardedFor, ProxyHeader::Forwarded);
    let for_x = [
        ("x-forwarded-for", "198.51.100.7"),
        ("x-forwarded-proto", "https"),
    ];
    let plain_x = [
        ("x-forwarded-for", "198.51.100.7"),
        ("x-forwarded-proto", "http"),
    ];
    let of = [("forwarded", "for=198.51.100.7;proto=https")];
    let plain = [("forwarded", "for=198.51.100.7;proto=http")];
    let cases: [Case<'_>; 6] = [
        (Some(x), &for_x, true),
        (Some(x), &plain_x, false),
        (Some(forwarded), &of, true),
        (Some(forwarded), &plain, false),
        (Some(forwarded), &for_x, false),
        (None, &for_x, false),
    ];
    for (trusted, headers, is_secure) in cases {
        let served = served(trusted).await;
        let set = cookie(&served, headers).await;
        assert_eq!(set.contains("; Secure"), is_secure, "{headers:?}: {set}");
        assert_eq!(set.starts_with("__Host-"), is_secure, "{set}");
    }
}

#[tokio::test]
async fn links_that_nobody_has_do_not_keep_out_whoever_has_one() {
    let world = World::with_keys().await;
    let root = world.key(TenantId::DEFAULT, Role::Root).await;
    let link = world
        .as_key(&root, "POST", "/v1/console/links", Value::Null)
        .await;
    let path = link.is(201).get("path");
    let token = path.split_once("token=").unwrap().1.to_owned();
    let browser = Browser::new(&world);
    for _ in 0..10 {
        let body = form(&[("token", &"0".repeat(64))]);
        let wrong = browser.post_raw("/login/link", body, &[]).await;
        assert_eq!(wrong.status, 401);
    }
    let body = form(&[("token", &token)]);
    browser.post_raw("/login/link", body, &[]).await.is(303);
}

#[tokio::test]
async fn a_link_logs_in_by_itself_only_for_whoever_opened_it_and_is_nobody_yet() {
    let world = World::with_keys().await;
    let root = world.key(TenantId::DEFAULT, Role::Root).await;
    let link = world
        .as_key(&root, "POST", "/v1/console/links", Value::Null)
        .await;
    let path = link.is(201).get("path");
    let ada = logged_in(&world, Role::Reader).await;
    let (mine, none) = (ada.cookie.as_str(), "");
    for (site, cookie, is_auto) in [
        (Some("none"), none, true),
        (Some("same-origin"), none, true),
        (Some("cross-site"), none, false),
        (Some("same-site"), none, false),
        (None, none, false),
        (Some("none"), mine, false),
    ] {
        let mut headers = vec![("cookie", cookie)];
        headers.extend(site.map(|site| ("sec-fetch-site", site)));
        let page = world.call("GET", &path, &headers, "").await.is(200);
        let says = format!("{site:?} {cookie}");
        assert_eq!(page.text.contains("data-auto"), is_auto, "{says}");
        assert!(page.text.contains("Log in</button>"), "{says}");
        assert_eq!(
            page.text.contains("logged in as <b>reader</b>"),
            cookie == mine
        );
    }
}

/// A job as a form says it.
const TYPED: [(&str, &str); 10] = [
    ("key", "nightly"),
    ("kind", "cron"),
    ("cron", "0 9 * * *"),
    ("url", OK),
    ("method", "POST"),
    ("attempts", "3"),
    ("timeout", "10s"),
    ("lane", "batch"),
    ("overlap", "skip"),
    ("catch_up", "latest"),
];

/// A user of two tenants, with a page of the first before it.
async fn both(world: &World) -> (Browser<'_>, String) {
    world.key(TenantId::from_bytes([7; 16]), Role::Admin).await;
    let root = world.key(TenantId::DEFAULT, Role::Root).await;
    let body = json!({"name": "both", "password": PASSWORD, "roles": {"default": "admin", "other": "admin"}});
    world.as_key(&root, "POST", "/v1/users", body).await.is(201);
    let mut both = Browser::new(world);
    both.login("both", PASSWORD).await.is(303);
    let page = both.get("/jobs").await.is(200).text;
    (both, page)
}

#[tokio::test]
async fn a_form_of_one_tenant_changes_nothing_in_another() {
    let world = World::with_keys().await;
    let (both, page) = both(&world).await;
    let old = csrf_of(&page);
    both.post("/tenant", &[("tenant", "other")]).await.is(303);
    let mut typed = TYPED.to_vec();
    typed.push(("csrf", &old));
    let refused = both.post_raw("/jobs/new", form(&typed), &[]).await.is(409);
    for part in ["default", "other", "Nothing was changed"] {
        assert!(refused.text.contains(part), "{part}: {}", refused.text);
    }
    assert!(world.store.all_jobs().is_empty());
    // The old tab still leads back, and is good again.
    let back = form(&[("tenant", "default"), ("csrf", &old)]);
    both.post_raw("/tenant", back, &[]).await.is(303);
    both.post_raw("/jobs/new", form(&typed), &[]).await.is(303);
    let jobs = world.store.all_jobs();
    assert_eq!(jobs.first().unwrap().tenant, TenantId::DEFAULT);
}

#[tokio::test]
async fn tenants_are_switched_on_small_screens_too() {
    let world = World::with_keys().await;
    let (_, page) = both(&world).await;
    let (_, menu) = page.split_once("class=\"menu\"").unwrap();
    let menu = menu.split("</details>").next().unwrap();
    assert!(menu.contains("action=\"/tenant\""), "{menu}");
}

#[tokio::test]
async fn what_was_typed_outlives_the_session() {
    let world = World::with_keys().await;
    user(&world, "ada", Role::Admin).await;
    let gone = Browser {
        world: &world,
        cookie: format!("punctual_session={}", "0".repeat(64)),
    };
    let mut typed = TYPED.to_vec();
    typed.push(("labels", "note=\"><script>alert(1)</script>"));
    typed.push(("csrf", "of a session that has ended"));
    let page = gone.post_raw("/jobs/new", form(&typed), &[]).await.is(401);
    assert!(page.text.contains("Nothing was sent"), "{}", page.text);
    assert!(!page.text.contains("<script>alert"), "{}", page.text);
    let kept = kept(&page.text);
    let mut login: Vec<(&str, &str)> = vec![("name", "ada"), ("password", "wrong password")];
    login.extend(
        kept.iter()
            .map(|(name, value)| (name.as_str(), value.as_str())),
    );
    let wrong = gone.post_raw("/login", form(&login), &[]).await.is(401);
    assert_eq!(self::kept(&wrong.text), kept, "also after a wrong password");
    login[1].1 = PASSWORD;
    let resend = gone.post_raw("/login", form(&login), &[]).await.is(200);
    assert!(
        resend.text.contains("action=\"/jobs/new\""),
        "{}",
        resend.text
    );
    assert!(
        world.store.all_jobs().is_empty(),
        "nothing is sent by itself"
    );
    let ada = Browser {
        world: &world,
        cookie: cookie_of(&resend).unwrap(),
    };
    let mut again: Vec<(&str, &str)> = typed.to_vec();
    again.retain(|(name, _)| !["csrf", "labels"].contains(name));
    let token = csrf_of(&resend.text);
    again.extend([("csrf", token.as_str()), ("labels", "note=x")]);
    for (name, value) in &again {
        if *name != "labels" {
            let field = format!("name=\"{name}\" value=\"{value}\"");
            assert!(resend.text.contains(&field), "{field}");
        }
    }
    ada.post_raw("/jobs/new", form(&again), &[]).await.is(303);
    // Nowhere else than here.
    let mut far: Vec<(&str, &str)> = vec![("name", "ada"), ("password", PASSWORD)];
    far.extend([("kept-path", "https://evil.example/"), ("kept:key", "a")]);
    let reply = gone.post_raw("/login", form(&far), &[]).await.is(303);
    assert_eq!(reply.header("location"), Some("/"));
}

/// Hidden fields of a login that keep what was typed.
fn kept(page: &str) -> Vec<(String, String)> {
    let fields = page.split("name=\"kept").skip(1).map(|field| {
        let (name, rest) = field.split_once("\" value=\"").unwrap();
        let value = rest.split('"').next().unwrap();
        let plain = value
            .replace("&#60;", "<")
            .replace("&#62;", ">")
            .replace("&#34;", "\"");
        (format!("kept{name}"), plain)
    });
    fields.collect()
}

#[tokio::test]
async fn a_search_after_the_session_has_ended_leads_to_the_login() {
    let world = World::with_keys().await;
    let headers = [
        ("hx-request", "true"),
        ("hx-current-url", "http://127.0.0.1:7710/jobs?q=a"),
    ];
    let reply = world.call("GET", "/jobs?q=ab", &headers, "").await.is(401);
    assert_eq!(
        reply.header("hx-redirect"),
        Some("/login?next=%2Fjobs%3Fq%3Dab")
    );
}
