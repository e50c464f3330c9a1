//! Who may: a request is let in by its key, and each handler names the role that it needs. Only so does it learn whose
//! things it reads and writes.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use model::{Role, TenantId};
use store::Acting;

use super::{outside, rates};
use crate::access::Caller;
use crate::api::Api;
use crate::peer::{Peer, is_ours};
use crate::problem::{Kind, Problem};
use crate::rates::Standing;

/// Lets in who has a key, as often as its rate allows. Who sends too many that are not valid is refused for a while; whoever has
/// a valid one is let in all the same, also from the same address.
pub(super) async fn admit(
    State(api): State<Arc<Api>>,
    mut request: Request,
    next: Next,
) -> Response {
    let now = api.engine.clock().uptime();
    let address = rates::address_of(&request);
    // One more that is not valid.
    let failed = || {
        let standing = address.and_then(|address| api.rates.refused.take(address, now));
        let spent = standing.filter(Standing::is_spent);
        spent.as_ref().map(rates::refuse)
    };
    if outside::is_by_token(&request) {
        let response = next.run(request).await;
        if response.status() == StatusCode::UNAUTHORIZED {
            return failed().unwrap_or(response);
        }
        return response;
    }
    let text = bearer(request.headers());
    let Some(caller) = api.access.caller(text, api.engine.now()) else {
        return failed().unwrap_or_else(|| unauthorized().into_response());
    };
    if caller.key.is_none() && is_foreign(&request) {
        return foreign().into_response();
    }
    let standing = caller.key.and_then(|key| api.rates.by_key.take(key, now));
    if let Some(spent) = standing.filter(Standing::is_spent) {
        return rates::refuse(&spent);
    }
    let acting = acting(&caller, api.access.name(caller), &request);
    request.extensions_mut().insert(caller);
    let mut response = acting.during(next.run(request)).await;
    if let Some(standing) = &standing {
        rates::mark(response.headers_mut(), standing);
    }
    response
}

/// Whether a page of another origin wants to change something. Where no key is asked for, nothing else says who sent it.
fn is_foreign(request: &Request) -> bool {
    let is_read = request.method().is_safe();
    let peer = request.extensions().get::<Peer>();
    let is_listed = peer.is_some_and(|peer| peer.is_listed);
    !is_read && !is_listed && !is_ours(request.headers())
}

fn foreign() -> Problem {
    let detail = "this node asks for no key, and changes nothing for a page of another origin: list that in cors_origins, or \
                  send the request without a browser";
    Problem::new(Kind::RoleInsufficient, detail).at("Origin")
}

/// Under which name the audit log has what a request changes.
fn acting(caller: &Caller, name: Arc<str>, request: &Request) -> Arc<Acting> {
    let peer = request.extensions().get::<Peer>();
    let address = peer.and_then(|peer| peer.address);
    Arc::new(Acting {
        name,
        key: caller.key,
        address: address.map(|address| Arc::from(address.to_string())),
        request: peer.map(|peer| Arc::clone(&peer.request_id)),
    })
}

/// The one key that a request carries. Two are none: nobody may guess which was meant.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (value, more) = (all.next()?, all.next());
    let (scheme, key) = value.to_str().ok()?.split_once(' ')?;
    let is_one = more.is_none() && scheme.eq_ignore_ascii_case("bearer");
    is_one.then_some(key)
}

/// The same whatever is wrong: no key, half a key, one that was revoked.
pub(super) fn unauthorized() -> Problem {
    let detail = "send a key that is valid, as Authorization: Bearer punctual_…; an admin makes one with POST /v1/keys";
    Problem::new(Kind::Unauthorized, detail).at("Authorization")
}

fn anyone(parts: &Parts) -> Result<Caller, Problem> {
    let caller = parts.extensions.get::<Caller>().copied();
    caller.ok_or_else(unauthorized)
}

fn caller(parts: &Parts, needed: Role) -> Result<Caller, Problem> {
    let caller = anyone(parts)?;
    if caller.role.allows(needed) {
        return Ok(caller);
    }
    let role = caller.role;
    let mut detail =
        format!("this needs a key with the role {needed}, and yours has the role {role}");
    if role == Role::Worker {
        detail.push_str(", which is for getting work from queues: those are not there yet");
    }
    Err(Problem::new(Kind::RoleInsufficient, detail)
        .at("Authorization")
        .with("role", role.as_str())
        .with("needed", needed.as_str()))
}

/// Whose request it is, whatever it asks for.
pub(super) fn tenant(parts: &Parts) -> Result<TenantId, Problem> {
    Ok(caller(parts, Role::Reader)?.tenant)
}

/// Whoever has a valid key, a worker too.
pub(super) struct Anyone;

impl FromRequestParts<Arc<Api>> for Anyone {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Api>) -> Result<Self, Problem> {
        anyone(parts).map(|_| Self)
    }
}

macro_rules! callers {
    ($($name:ident: $role:ident, $what:ty, $of:expr;)*) => {$(
        pub(super) struct $name(pub $what);

        impl FromRequestParts<Arc<Api>> for $name {
            type Rejection = Problem;

            async fn from_request_parts(parts: &mut Parts, _: &Arc<Api>) -> Result<Self, Problem> {
                caller(parts, Role::$role).map($of).map(Self)
            }
        }
    )*};
}

callers! {
    Reader: Reader, TenantId, |caller| caller.tenant;
    // A reader of whom more than the tenant matters.
    Viewer: Reader, Caller, |caller| caller;
    Operator: Operator, Caller, |caller| caller;
    Admin: Admin, Caller, |caller| caller;
    // Whoever sees to the installation; whose key it is does not matter.
    Root: Root, Caller, |caller| caller;
}
