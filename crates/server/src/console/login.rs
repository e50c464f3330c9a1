//! Logging in, by a password or by a link; and out.

use std::sync::Arc;

use askama::Template;
use axum::extract::{FromRequest, Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use model::schedule::Zone;
use zeroize::Zeroizing;

use super::fault::PageError;
use super::frame::{Answer, Bare, page};
use super::viewer::{self, Fields, OfAnyTenant};
use crate::api::Api;
use crate::ops::sessions::{self, Login, Token};
use crate::peer::{Peer, is_ours};
use crate::problem::{Kind, Problem};

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage {
    bare: Bare,
    name: String,
    next: String,
    /// Why the last one failed.
    error: Option<String>,
    /// What somebody sent whose session had ended, as fields of this form.
    kept: Vec<(String, String)>,
    /// Whether it is a link that is to be opened.
    link: Option<Link>,
}

struct Link {
    token: String,
    /// Whether it is opened without a click: whoever opened it did so here, and is nobody yet.
    is_auto: bool,
    /// Who is logged in already.
    instead_of: Option<Arc<str>>,
}

/// Where what was kept is to be sent, and what its fields' names begin with.
const KEPT_PATH: &str = "kept-path";
const KEPT: &str = "kept:";

#[derive(Template)]
#[template(path = "resend.html")]
struct ResendPage {
    bare: Bare,
    name: Arc<str>,
    tenant: String,
    path: String,
    csrf: String,
    fields: Vec<(String, String)>,
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
    form(
        StatusCode::OK,
        ("", param(&params, "next")),
        None,
        Vec::new(),
    )
}

fn form(
    status: StatusCode,
    (name, next): (&str, &str),
    error: Option<String>,
    kept: Vec<(String, String)>,
) -> Answer {
    let text = LoginPage {
        bare: Bare::new("Log in"),
        name: name.chars().take(64).collect(),
        next: safe_next(next),
        error,
        kept,
        link: None,
    };
    Ok(page(status, text.render()?))
}

/// A form of somebody whose session has ended: what was typed goes through the login, and is sent by a click after it.
pub(super) async fn keep(api: &Arc<Api>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let fields = match Fields::from_request(request, api).await {
        Ok(fields) if path != "/logout" => fields,
        Ok(_) => return Redirect::to("/login").into_response(),
        Err(error) => return error.into_response(),
    };
    let fields = fields.0.into_iter().filter(|(name, _)| name != "csrf");
    let fields = fields.map(|(name, value)| (format!("{KEPT}{name}"), value));
    let kept = std::iter::once((KEPT_PATH.to_owned(), path)).chain(fields);
    let shown = form(StatusCode::UNAUTHORIZED, ("", ""), None, kept.collect());
    shown.unwrap_or_else(IntoResponse::into_response)
}

/// What a login carries besides.
fn kept_of(fields: &Fields) -> Vec<(String, String)> {
    let is_kept = |name: &str| name == KEPT_PATH || name.starts_with(KEPT);
    let kept = fields.0.iter().filter(|(name, _)| is_kept(name));
    kept.cloned().collect()
}

/// What was kept, as a form of the new session.
async fn resend(api: &Api, token: &Token, path: String, kept: &Fields) -> Answer {
    let Some(who) = sessions::who(api, token).await? else {
        return Ok(Redirect::to("/login").into_response());
    };
    let field = |(name, value): &(String, String)| {
        let name = name.strip_prefix(KEPT)?;
        Some((name.to_owned(), value.clone()))
    };
    let text = ResendPage {
        bare: Bare::new("Send it now?"),
        csrf: token.csrf(who.tenant.id),
        name: who.name,
        tenant: who.tenant.name.to_string(),
        fields: kept.0.iter().filter_map(field).collect(),
        path,
    };
    Ok(page(StatusCode::OK, text.render()?))
}

/// Nobody else's page logs somebody in here.
fn of_our_page(headers: &HeaderMap) -> Result<(), PageError> {
    if is_ours(headers) {
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
    let before = viewer::token(&headers, peer.is_tls);
    let (name, next) = (fields.get("name").trim(), fields.get("next"));
    let password = Zeroizing::new(fields.get("password").to_owned());
    let address = viewer::address(&peer);
    let acting = acting(&peer);
    let done = sessions::login(&api, (name, password), address, before.as_ref());
    let kept = kept_of(&fields);
    let path = fields.get(KEPT_PATH).to_owned();
    match acting.during(done).await? {
        Login::Done(token) => {
            let mut response = if !path.is_empty() && safe_next(&path) == path {
                resend(&api, &token, path, &fields).await?
            } else {
                Redirect::to(&safe_next(next)).into_response()
            };
            let is_secure = viewer::is_secure(&headers, &peer);
            viewer::set_token(&mut response, Some(&token), is_secure);
            Ok(response)
        }
        Login::Wrong => {
            let error = "The name or the password is wrong.".to_owned();
            form(StatusCode::UNAUTHORIZED, (name, next), Some(error), kept)
        }
        Login::Locked { seconds } => {
            let error = format!("Too many wrong passwords: try again in {seconds} s.");
            form(
                StatusCode::TOO_MANY_REQUESTS,
                (name, next),
                Some(error),
                kept,
            )
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
/// One that another page sent somebody to waits for a click, as does one that would end a session: who is logged in does not
/// become somebody else unawares.
pub(super) async fn link(
    State(api): State<Arc<Api>>,
    peer: Peer,
    headers: HeaderMap,
    Query(params): Params,
) -> Answer {
    let token = Token::read(param(&params, "token"));
    let who = match viewer::token(&headers, peer.is_tls) {
        Some(before) => sessions::who(&api, &before).await?,
        None => None,
    };
    let site = headers.get("sec-fetch-site");
    let is_opened_here = site.is_some_and(|site| site == "none" || site == "same-origin");
    let text = LoginPage {
        bare: Bare::new("Log in"),
        name: String::new(),
        next: "/".to_owned(),
        error: None,
        kept: Vec::new(),
        link: Some(Link {
            token: token.map_or_else(String::new, |token| token.as_str().to_owned()),
            is_auto: is_opened_here && who.is_none(),
            instead_of: who.map(|who| who.name),
        }),
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
    let before = viewer::token(&headers, peer.is_tls);
    let address = viewer::address(&peer);
    let now = api.engine.clock().uptime();
    if let Err(wait) = api.lockouts.begin_at(address, now) {
        let seconds = wait.as_secs() + 1;
        let error = format!("Too many logins from here have failed: try again in {seconds} s.");
        let status = StatusCode::TOO_MANY_REQUESTS;
        return form(status, ("", "/"), Some(error), Vec::new());
    }
    let opened = match Token::read(fields.get("token")) {
        Some(link) => {
            let opened = sessions::open_link(&api, &link, before.as_ref());
            acting(&peer).during(opened).await?
        }
        None => None,
    };
    let Some(token) = opened else {
        let error = "The link has been used, or has expired. Make another with: punctual console";
        let status = StatusCode::UNAUTHORIZED;
        return form(status, ("", "/"), Some(error.to_owned()), Vec::new());
    };
    api.lockouts.end_at(address);
    let mut response = Redirect::to("/").into_response();
    let is_secure = viewer::is_secure(&headers, &peer);
    viewer::set_token(&mut response, Some(&token), is_secure);
    Ok(response)
}

pub(super) async fn logout(
    State(api): State<Arc<Api>>,
    peer: Peer,
    headers: HeaderMap,
    OfAnyTenant(posted): OfAnyTenant,
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
pub(super) async fn switch(
    State(api): State<Arc<Api>>,
    OfAnyTenant(posted): OfAnyTenant,
) -> Answer {
    let wanted = posted.fields.get("tenant");
    let mut tenants = posted.by.tenants.iter();
    let tenant = tenants.find(|tenant| tenant.name.as_str() == wanted);
    if let Some((token, tenant)) = posted.by.token.as_ref().zip(tenant) {
        sessions::switch(&api, token, tenant).await?;
    }
    Ok(Redirect::to("/").into_response())
}

/// Shows every moment in another zone from now on.
pub(super) async fn zone(OfAnyTenant(posted): OfAnyTenant) -> Answer {
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
