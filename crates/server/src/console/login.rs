//! Logging in, by a password or by a link; and out.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use model::schedule::Zone;
use zeroize::Zeroizing;

use super::fault::PageError;
use super::frame::{Answer, Bare, page};
use super::viewer::{self, Fields, Posted};
use crate::api::Api;
use crate::ops::sessions::{self, Login, Token};
use crate::peer::Peer;
use crate::problem::{Kind, Problem};

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage {
    bare: Bare,
    name: String,
    next: String,
    /// Why the last one failed.
    error: Option<String>,
    /// Whether it is a link that asks to be opened.
    link: Option<String>,
}

type Params = Query<Vec<(String, String)>>;

pub(super) fn param<'a>(params: &'a [(String, String)], name: &str) -> &'a str {
    let found = params.iter().find(|(given, _)| given == name);
    found.map_or("", |(_, value)| value.as_str())
}

/// Only a path of ours: a login leads nowhere else.
fn safe_next(text: &str) -> String {
    let is_path = text.starts_with('/') && !text.starts_with("//") && !text.contains('\\');
    let is_plain = !text.contains(char::is_control) && text.len() <= 2_000;
    if is_path && is_plain { text } else { "/" }.to_owned()
}

pub(super) async fn show(State(api): State<Arc<Api>>, Query(params): Params) -> Answer {
    if sessions::anyone(&api).await?.is_some() {
        return Ok(Redirect::to("/").into_response());
    }
    form(StatusCode::OK, "", param(&params, "next"), None)
}

fn form(status: StatusCode, name: &str, next: &str, error: Option<String>) -> Answer {
    let text = LoginPage {
        bare: Bare::new("Log in"),
        name: name.chars().take(64).collect(),
        next: safe_next(next),
        error,
        link: None,
    };
    Ok(page(status, text.render()?))
}

/// Nobody else's page logs somebody in here.
fn of_our_page(headers: &HeaderMap) -> Result<(), PageError> {
    if viewer::is_ours(headers) {
        return Ok(());
    }
    let detail = "the form was sent from a page of another origin, so that nobody was logged in";
    Err(Problem::new(Kind::RoleInsufficient, detail).into())
}

pub(super) async fn login(
    State(api): State<Arc<Api>>,
    peer: Peer,
    headers: HeaderMap,
    fields: Fields,
) -> Answer {
    of_our_page(&headers)?;
    let before = viewer::token(&headers);
    let (name, next) = (fields.get("name").trim(), fields.get("next"));
    let password = Zeroizing::new(fields.get("password").to_owned());
    let address = viewer::address(&peer);
    let acting = acting(&peer);
    let done = sessions::login(&api, (name, password), address, before.as_ref());
    match acting.during(done).await? {
        Login::Done(token) => {
            let mut response = Redirect::to(&safe_next(next)).into_response();
            let is_secure = viewer::is_secure(&headers, &peer);
            viewer::set_token(&mut response, Some(&token), is_secure);
            Ok(response)
        }
        Login::Wrong => {
            let error = "The name or the password is wrong.".to_owned();
            form(StatusCode::UNAUTHORIZED, name, next, Some(error))
        }
        Login::Locked { seconds } => {
            let error = format!("Too many wrong passwords: try again in {seconds} s.");
            form(StatusCode::TOO_MANY_REQUESTS, name, next, Some(error))
        }
    }
}

fn acting(peer: &Peer) -> Arc<store::Acting> {
    let address = peer.address.map(|address| Arc::from(address.to_string()));
    Arc::new(store::Acting {
        address,
        request: Some(Arc::clone(&peer.request_id)),
        ..store::Acting::default()
    })
}

/// A link is opened by a form, so that whoever only looks at it (a preview, a scanner) does not use it up.
pub(super) async fn link(Query(params): Params) -> Answer {
    let token = Token::read(param(&params, "token"));
    let text = LoginPage {
        bare: Bare::new("Log in"),
        name: String::new(),
        next: "/".to_owned(),
        error: None,
        link: Some(token.map_or_else(String::new, |token| token.as_str().to_owned())),
    };
    Ok(page(StatusCode::OK, text.render()?))
}

pub(super) async fn open_link(
    State(api): State<Arc<Api>>,
    peer: Peer,
    headers: HeaderMap,
    fields: Fields,
) -> Answer {
    of_our_page(&headers)?;
    let before = viewer::token(&headers);
    let address = viewer::address(&peer);
    let now = api.engine.clock().uptime();
    let opened = match Token::read(fields.get("token")) {
        Some(link) if api.lockouts.begin("", address, now).is_ok() => {
            let opened = sessions::open_link(&api, &link, before.as_ref());
            acting(&peer).during(opened).await?
        }
        Some(_) | None => None,
    };
    let Some(token) = opened else {
        let error = "The link has been used, or has expired. Make another with: punctual console";
        return form(StatusCode::UNAUTHORIZED, "", "/", Some(error.to_owned()));
    };
    api.lockouts.end("", address);
    let mut response = Redirect::to("/").into_response();
    let is_secure = viewer::is_secure(&headers, &peer);
    viewer::set_token(&mut response, Some(&token), is_secure);
    Ok(response)
}

pub(super) async fn logout(
    State(api): State<Arc<Api>>,
    peer: Peer,
    headers: HeaderMap,
    posted: Posted,
) -> Answer {
    if let Some(token) = &posted.by.token {
        sessions::logout(&api, token).await?;
    }
    let mut response = Redirect::to("/login").into_response();
    let is_secure = viewer::is_secure(&headers, &peer);
    viewer::set_token(&mut response, None, is_secure);
    Ok(response)
}

/// Shows another of the viewer's tenants.
pub(super) async fn switch(State(api): State<Arc<Api>>, posted: Posted) -> Answer {
    let wanted = posted.fields.get("tenant");
    let mut tenants = posted.by.tenants.iter();
    let tenant = tenants.find(|tenant| tenant.name.as_str() == wanted);
    if let Some((token, tenant)) = posted.by.token.as_ref().zip(tenant) {
        sessions::switch(&api, token, tenant).await?;
    }
    Ok(Redirect::to("/").into_response())
}

/// Shows every moment in another zone from now on.
pub(super) async fn zone(posted: Posted) -> Answer {
    let name = posted.fields.get("zone").trim();
    let zone = Zone::get(name)
        .map_err(|error| Problem::new(Kind::ParameterInvalid, error.to_string()).at("zone"))?;
    let mut response: Response =
        Redirect::to(&safe_next(posted.fields.get("next"))).into_response();
    viewer::set_zone(&mut response, &zone);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_leads_to_a_path_of_ours_and_nowhere_else() {
        for path in ["/", "/jobs?q=a", "/jobs/job_0192?at=1#explain"] {
            assert_eq!(safe_next(path), path);
        }
        for far in [
            "",
            "jobs",
            "//b.example",
            "https://b.example",
            "/\\b.example",
            "/a\r\nb",
        ] {
            assert_eq!(safe_next(far), "/", "{far:?}");
        }
    }
}
