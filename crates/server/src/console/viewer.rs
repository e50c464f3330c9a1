//! Who looks at a page: whoever the session in the cookie is of. What a page shows and what a form does goes by its tenant and its
//! role, as with a key.
//!
//! What always holds: a change carries the token of its session and comes from a page of ours; each is enough.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Form;
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use model::schedule::Zone;
use model::{Role, Tenant, TenantId, Timestamp};
use store::Acting;

use super::fault::PageError;
use super::login;
use super::shared::is_live;
use crate::access::Caller;
use crate::api::Api;
use crate::ops::sessions::{self, LoggedIn, Token};
use crate::peer::{Peer, is_ours};
use crate::problem::{Kind, Problem};
use crate::rates::network;

const COOKIE: &str = "punctual_session";
/// Bound to this host and to TLS by its name.
const COOKIE_TLS: &str = "__Host-punctual_session";
const ZONE_COOKIE: &str = "punctual_zone";
const KEYS_COOKIE: &str = "punctual_keys";

#[derive(Clone)]
pub(super) struct Viewer {
    pub caller: Caller,
    pub name: Arc<str>,
    pub tenant: Tenant,
    pub tenants: Vec<Tenant>,
    /// None where no key is asked for.
    pub token: Option<Token>,
    pub zone: Zone,
    /// Whether single letters do something.
    pub keys: bool,
    pub now: Timestamp,
}

impl Viewer {
    fn new(
        logged_in: LoggedIn,
        token: Option<Token>,
        (zone, keys): (Zone, bool),
        now: Timestamp,
    ) -> Arc<Self> {
        Arc::new(Self {
            caller: logged_in.caller,
            name: logged_in.name,
            tenant: logged_in.tenant,
            tenants: logged_in.tenants,
            token,
            zone,
            keys,
            now,
        })
    }

    pub(super) fn id(&self) -> TenantId {
        self.tenant.id
    }

    pub(super) fn may(&self, needed: Role) -> bool {
        self.caller.role.allows(needed)
    }

    pub(super) fn needs(&self, needed: Role) -> Result<(), PageError> {
        if self.may(needed) {
            return Ok(());
        }
        let role = self.caller.role;
        let detail = format!("this needs the role {needed}, and yours is {role}");
        Err(Problem::new(Kind::RoleInsufficient, detail).into())
    }

    /// What forms carry: it names the session and the tenant of the page that they are on.
    pub(super) fn csrf(&self) -> String {
        let token = self.token.as_ref();
        token.map_or_else(String::new, |token| token.csrf(self.id()))
    }

    /// The tenant whose page a form was on; none if it is of another session.
    fn tenant_of(&self, fields: &Fields) -> Option<&Tenant> {
        let Some(token) = &self.token else {
            return Some(&self.tenant);
        };
        let sent = fields.get("csrf");
        let mut all = self.tenants.iter();
        all.find(|tenant| token.is_csrf(tenant.id, sent))
    }
}

/// The one value of a cookie. Two of a name are none: nobody may guess which was meant.
fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).iter();
    let pairs = all.filter_map(|value| value.to_str().ok());
    let pairs = pairs.flat_map(|value| value.split(';'));
    let pairs = pairs.filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(given, _)| *given == name);
    let (value, more) = (values.next(), values.next());
    value.filter(|_| more.is_none()).map(|(_, value)| value)
}

/// Whether the browser speaks TLS, to this node or to a proxy before it: a trusted proxy says so, and a form names its origin.
pub(super) fn is_secure(headers: &HeaderMap, peer: &Peer) -> bool {
    let origin = headers.get(header::ORIGIN);
    let is_https = origin.is_some_and(|origin| origin.as_bytes().starts_with(b"https://"));
    peer.is_tls || peer.is_tls_before || is_https
}

/// The token that a browser has. Over TLS another cookie could be from somebody who listened where there was none.
pub(super) fn token(headers: &HeaderMap, is_tls: bool) -> Option<Token> {
    let plain = || cookie(headers, COOKIE).filter(|_| !is_tls);
    let found = cookie(headers, COOKIE_TLS).or_else(plain);
    found.and_then(Token::read)
}

/// Gives a browser its token, or takes it away.
pub(super) fn set_token(response: &mut Response, token: Option<&Token>, is_secure: bool) {
    let (name, secure) = if is_secure {
        (COOKIE_TLS, "; Secure")
    } else {
        (COOKIE, "")
    };
    let text = match token {
        Some(token) => {
            let keep = model::limits::SESSION_KEEP.as_secs();
            let token = token.as_str();
            format!("{name}={token}; Path=/; HttpOnly; SameSite=Lax; Max-Age={keep}{secure}")
        }
        None => format!("{name}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0{secure}"),
    };
    if let Ok(mut value) = HeaderValue::from_str(&text) {
        value.set_sensitive(true);
        response.headers_mut().append(header::SET_COOKIE, value);
    }
}

fn zone_of(headers: &HeaderMap) -> Zone {
    let name = cookie(headers, ZONE_COOKIE).map(|name| name.replace("%2F", "/"));
    name.and_then(|name| Zone::get(&name).ok())
        .unwrap_or_else(Zone::utc)
}

/// Remembers a viewer's zone, for a year.
pub(super) fn set_zone(response: &mut Response, zone: &Zone) {
    keep(response, ZONE_COOKIE, zone.name());
}

/// Remembers whether single letters do something.
pub(super) fn set_keys(response: &mut Response, on: bool) {
    keep(response, KEYS_COOKIE, if on { "on" } else { "off" });
}

fn keep(response: &mut Response, name: &str, value: &str) {
    let text = format!("{name}={value}; Path=/; SameSite=Lax; Max-Age=31536000");
    if let Ok(value) = HeaderValue::from_str(&text) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
}

/// Lets in who is logged in; anybody else is shown the way.
pub(super) async fn admit(
    State(api): State<Arc<Api>>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<Peer>().cloned();
    let headers = request.headers();
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    if !is_read && !is_ours(headers) {
        return PageError::from(foreign()).into_response();
    }
    let is_tls = peer.as_ref().is_some_and(|peer| peer.is_tls);
    let token = token(headers, is_tls);
    let chosen = (
        zone_of(headers),
        cookie(headers, KEYS_COOKIE) != Some("off"),
    );
    let found = match &token {
        // A page that follows what happens reads by itself: that is no use of the session.
        Some(token) if is_live(headers) => sessions::peek(&api, token).await,
        Some(token) => sessions::who(&api, token).await,
        None => Ok(None),
    };
    let found = match found {
        Ok(Some(logged_in)) => Ok(Some((logged_in, token))),
        Ok(None) => sessions::anyone(&api)
            .await
            .map(|found| found.map(|it| (it, None))),
        Err(error) => Err(error),
    };
    let (logged_in, token) = match found {
        Ok(Some(found)) => found,
        Ok(None) if is_read => return to_login(&request),
        Ok(None) => return login::keep(&api, request).await,
        Err(error) => return PageError::from(error).into_response(),
    };
    let viewer = Viewer::new(logged_in, token, chosen, api.engine.now());
    let address = peer.as_ref().and_then(|peer| peer.address);
    let acting = Acting {
        name: Arc::clone(&viewer.name),
        key: viewer.caller.key,
        address: address.map(|address| Arc::from(address.to_string())),
        request: peer.map(|peer| peer.request_id),
    };
    request.extensions_mut().insert(viewer);
    Arc::new(acting).during(next.run(request)).await
}

/// Where a login leads back to is a path of ours.
fn to_login(request: &Request) -> Response {
    let path = request
        .uri()
        .path_and_query()
        .map_or("/", |path| path.as_str());
    let next = if path == "/" {
        "/login".to_owned()
    } else {
        format!("/login?next={}", super::format::encode(path))
    };
    // What only wants a part of a page would find none of it in the login.
    let is_part = request.headers().contains_key("hx-request");
    match HeaderValue::from_str(&next) {
        Ok(to) if is_part => (StatusCode::UNAUTHORIZED, [("hx-redirect", to)]).into_response(),
        Ok(_) | Err(_) => Redirect::to(&next).into_response(),
    }
}

fn foreign() -> Problem {
    let detail = "the form was sent from a page of another origin, so that nothing was changed";
    Problem::new(Kind::RoleInsufficient, detail)
}

/// Whoever looks at the page.
pub(super) struct By(pub Arc<Viewer>);

impl FromRequestParts<Arc<Api>> for By {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Api>) -> Result<Self, PageError> {
        let viewer = parts.extensions.get::<Arc<Viewer>>().cloned();
        viewer
            .map(Self)
            .ok_or_else(|| Problem::new(Kind::Unauthorized, "log in to see this page").into())
    }
}

/// A form that a page of ours sent, by whoever looks at it. There is no other way to the fields of one.
pub(super) struct Posted {
    pub by: Arc<Viewer>,
    pub fields: Fields,
}

impl FromRequest<Arc<Api>> for Posted {
    type Rejection = PageError;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, PageError> {
        let OfAnyTenant(posted) = OfAnyTenant::from_request(request, api).await?;
        let (shown, of) = (&posted.by.tenant, posted.by.tenant_of(&posted.fields));
        match of {
            Some(of) if of.id != shown.id => Err(PageError::other_tenant(format!(
                "the form was on a page of {0}, and since then you switched to {1}, maybe in another tab: to send it, \
                 switch to {0} and load that page again",
                of.name, shown.name
            ))),
            Some(_) | None => Ok(posted),
        }
    }
}

/// The same for what has nothing to do with the tenant that is shown.
pub(super) struct OfAnyTenant(pub Posted);

impl FromRequest<Arc<Api>> for OfAnyTenant {
    type Rejection = PageError;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, PageError> {
        let (mut parts, body) = request.into_parts();
        let By(by) = By::from_request_parts(&mut parts, api).await?;
        let request = Request::from_parts(parts, body);
        let fields = Fields::from_request(request, api).await?;
        if by.tenant_of(&fields).is_none() {
            let detail =
                "the form is of another session: load the page again, and send it once more";
            return Err(Problem::new(Kind::RoleInsufficient, detail).into());
        }
        Ok(Self(Posted { by, fields }))
    }
}

/// What a form says.
#[derive(Default)]
pub(super) struct Fields(pub Vec<(String, String)>);

impl Fields {
    pub(super) fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(given, _)| given == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    pub(super) fn set(&mut self, name: &str, value: String) {
        self.0.retain(|(given, _)| given != name);
        self.0.push((name.to_owned(), value));
    }
}

impl FromRequest<Arc<Api>> for Fields {
    type Rejection = PageError;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, PageError> {
        let form = Form::<Vec<(String, String)>>::from_request(request, api).await;
        form.map(|Form(fields)| Self(fields)).map_err(|error| {
            let detail = format!("the form cannot be read: {}", error.body_text());
            Problem::new(Kind::BodyUnreadable, detail).into()
        })
    }
}

/// Where a request comes from, as far as logins are counted.
pub(super) fn address(peer: &Peer) -> Option<IpAddr> {
    peer.address.map(network)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn over_tls_only_the_cookie_that_is_bound_to_it_counts() {
        let (plain, bound) = ("a".repeat(64), "b".repeat(64));
        let token = |text: &str, is_tls| {
            let mut map = HeaderMap::new();
            map.insert("cookie", HeaderValue::from_str(text).unwrap());
            token(&map, is_tls).map(|token| token.as_str().to_owned())
        };
        let both = format!("{COOKIE}={plain}; {COOKIE_TLS}={bound}");
        let one = format!("{COOKIE}={plain}");
        assert_eq!(token(&both, true), Some(bound.clone()));
        assert_eq!(token(&both, false), Some(bound));
        assert_eq!(token(&one, true), None);
        assert_eq!(token(&one, false), Some(plain));
    }

    #[test]
    fn a_cookie_that_comes_twice_is_none() {
        let one = headers(&[("cookie", "a=1; punctual_session=x; b=2")]);
        assert_eq!(cookie(&one, COOKIE), Some("x"));
        let two = headers(&[("cookie", "punctual_session=x; punctual_session=y")]);
        assert_eq!(cookie(&two, COOKIE), None);
        let apart = headers(&[
            ("cookie", "punctual_session=x"),
            ("cookie", "punctual_session=y"),
        ]);
        assert_eq!(cookie(&apart, COOKIE), None);
        assert_eq!(cookie(&headers(&[]), COOKIE), None);
    }
}
