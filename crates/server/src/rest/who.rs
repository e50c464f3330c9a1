//! Who may: a request is let in by its key, and each handler names the role that it needs. Only so does it learn whose
//! things it reads and writes.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use model::{Role, TenantId};

use crate::access::Caller;
use crate::api::Api;
use crate::problem::{Kind, Problem};

/// Lets in who has a key.
pub async fn admit(State(api): State<Arc<Api>>, mut request: Request, next: Next) -> Response {
    let text = bearer(request.headers());
    let Some(caller) = api.access.caller(text, api.engine.now()) else {
        return unauthorized().into_response();
    };
    request.extensions_mut().insert(caller);
    next.run(request).await
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
pub fn unauthorized() -> Problem {
    let detail = "send a key that is valid, as Authorization: Bearer punctual_…; an admin makes one with POST /v1/keys";
    Problem::new(Kind::Unauthorized, detail).at("Authorization")
}

fn caller(parts: &Parts, needed: Role) -> Result<Caller, Problem> {
    let caller = parts.extensions.get::<Caller>().copied();
    let caller = caller.ok_or_else(unauthorized)?;
    if caller.role.allows(needed) {
        return Ok(caller);
    }
    let role = caller.role;
    let detail = format!("this needs a key with the role {needed}, and yours has the role {role}");
    Err(Problem::new(Kind::RoleInsufficient, detail)
        .at("Authorization")
        .with("role", role.as_str())
        .with("needed", needed.as_str()))
}

/// Whose request it is, whatever it asks for.
pub fn tenant(parts: &Parts) -> Result<TenantId, Problem> {
    Ok(caller(parts, Role::Reader)?.tenant)
}

macro_rules! callers {
    ($($name:ident: $role:ident, $what:ty, $of:expr;)*) => {$(
        pub struct $name(pub $what);

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
    Operator: Operator, TenantId, |caller| caller.tenant;
    Admin: Admin, Caller, |caller| caller;
}

/// Whoever sees to the installation; whose key it is does not matter.
pub struct Root;

impl FromRequestParts<Arc<Api>> for Root {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Api>) -> Result<Self, Problem> {
        caller(parts, Role::Root).map(|_| Self)
    }
}
