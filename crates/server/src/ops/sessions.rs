//! Logging in to the console, and out. A token is 256 bits of chance; only its digest is kept.

use std::net::IpAddr;
use std::sync::Arc;

use model::hex::to_hex;
use model::{ConsoleLink, Holder, Session, Tenant, TenantId, Timestamp, User, UserName, limits};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::error::OpError;
use crate::access::Caller;
use crate::api::Api;
use crate::same::is_same;

/// What a browser has in its cookie, and a link in its address.
#[derive(Clone)]
pub struct Token(Zeroizing<String>);

impl Token {
    fn new() -> Self {
        let bytes: [u8; 32] = rand::random();
        Self(Zeroizing::new(to_hex(&bytes)))
    }

    /// None if it cannot be one of ours.
    pub fn read(text: &str) -> Option<Self> {
        let fits = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        fits.then(|| Self(Zeroizing::new(text.to_owned())))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What names the session without opening it.
    pub(super) fn digest_text(&self) -> String {
        to_hex(&self.digest())
    }

    fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// What every change of this session carries that is made on a page of a tenant. It follows from the token, and the token
    /// does not follow from it.
    pub fn csrf(&self, tenant: TenantId) -> String {
        let mut hash = Sha256::new();
        hash.update(b"punctual csrf 2");
        hash.update(self.0.as_bytes());
        hash.update(tenant.to_string().as_bytes());
        to_hex(&hash.finalize())
    }

    pub fn is_csrf(&self, tenant: TenantId, text: &str) -> bool {
        is_same(self.csrf(tenant).as_bytes(), text.as_bytes())
    }
}

/// Whoever is logged in, and in which tenant.
pub struct LoggedIn {
    pub caller: Caller,
    pub name: Arc<str>,
    pub tenant: Tenant,
    /// Where it may go.
    pub tenants: Vec<Tenant>,
}

/// How a login came out.
pub enum Login {
    Done(Token),
    /// The name or the password is wrong, or the user belongs nowhere: all look the same.
    Wrong,
    /// Too many were wrong.
    Locked {
        seconds: u64,
    },
}

/// Logs a user in, in place of whatever session the browser had.
pub async fn login(
    api: &Api,
    (name, password): (&str, Zeroizing<String>),
    address: Option<IpAddr>,
    before: Option<&Token>,
) -> Result<Login, OpError> {
    let clock = api.engine.clock();
    if let Err(wait) = api.lockouts.begin(name, address, clock.uptime()) {
        return Ok(Login::Locked {
            seconds: wait.as_secs() + 1,
        });
    }
    let user = match UserName::new(name) {
        Ok(name) => api.store.access().find_user(&name).await?,
        Err(_) => None,
    };
    let fits = password.len() <= limits::PASSWORD_MAX;
    let hashed = user
        .as_ref()
        .filter(|_| fits)
        .map(|user| user.password.clone());
    let is_right = api.passwords.is(password, hashed).await?;
    let Some(user) = user.filter(|user| is_right && !user.members.is_empty()) else {
        tracing::info!(address = address.map(|it| it.to_string()), "a login failed");
        return Ok(Login::Wrong);
    };
    api.lockouts.end(name, address);
    let Some(tenant) = tenants_of(api, &user).await?.into_iter().next() else {
        return Ok(Login::Wrong);
    };
    let acting = store::Acting {
        name: Arc::from(user.name.as_str()),
        ..(*store::Acting::now()).clone()
    };
    let begun = begin(api, Holder::User(user.id), tenant.id, before);
    Ok(Login::Done(Arc::new(acting).during(begun).await?))
}

async fn begin(
    api: &Api,
    holder: Holder,
    tenant: TenantId,
    before: Option<&Token>,
) -> Result<Token, OpError> {
    let (token, now) = (Token::new(), api.engine.now());
    let session = Session {
        digest: token.digest(),
        holder,
        tenant,
        created_at: now,
        used_at: now,
    };
    let access = api.store.access();
    let begun = access.begin_session(&session, before.map(Token::digest));
    begun.await.map_err(OpError::Write)?;
    Ok(token)
}

/// A link that logs in whoever opens it first, as the holder of the caller's key. None where no key is asked for: the
/// console is open there.
pub async fn link(api: &Api, caller: Caller) -> Result<Option<(Token, Timestamp)>, OpError> {
    let Some(key) = caller.key else {
        return Ok(None);
    };
    let (token, now) = (Token::new(), api.engine.now());
    let link = ConsoleLink {
        digest: token.digest(),
        key,
        tenant: caller.tenant,
        expires_at: now.plus(limits::LINK_KEEP),
    };
    let put = api.store.access().put_link(&link, now).await;
    put.map_err(OpError::Write)?;
    Ok(Some((token, link.expires_at)))
}

/// Opens a link; none if it was opened before, or has expired, or its key opens nothing any more.
pub async fn open_link(
    api: &Api,
    link: &Token,
    before: Option<&Token>,
) -> Result<Option<Token>, OpError> {
    let now = api.engine.now();
    let opened = api.store.access().open_link(link.digest(), now).await;
    let Some(link) = opened.map_err(OpError::Write)? else {
        return Ok(None);
    };
    let Some(caller) = api.access.by_id(link.key, now) else {
        return Ok(None);
    };
    let acting = store::Acting {
        name: api.access.name(caller),
        key: Some(link.key),
        ..(*store::Acting::now()).clone()
    };
    let begun = begin(api, Holder::Key(link.key), link.tenant, before);
    Ok(Some(Arc::new(acting).during(begun).await?))
}

/// Tenants that a user belongs to and that are not going.
async fn tenants_of(api: &Api, user: &User) -> Result<Vec<Tenant>, OpError> {
    let mut tenants = Vec::with_capacity(user.members.len());
    for member in &user.members {
        let found = api.store.access().get_tenant(member.tenant).await?;
        tenants.extend(found.filter(|tenant| tenant.deleting_at.is_none()));
    }
    Ok(tenants)
}

/// Whoever a session is of, and the session. None if it is nobody's any more.
async fn holder(api: &Api, token: &Token) -> Result<Option<(Session, LoggedIn)>, OpError> {
    let now = api.engine.now();
    let access = api.store.access();
    let found = access.get_session(token.digest()).await?;
    let Some(session) = found.filter(|session| session.is_valid(now)) else {
        return Ok(None);
    };
    let logged_in = match session.holder {
        Holder::User(id) => match access.get_user(id).await? {
            Some(user) => of_user(api, &session, user).await?,
            None => None,
        },
        Holder::Key(id) => match api.access.by_id(id, now) {
            Some(caller) => of_key(api, caller).await?,
            None => None,
        },
    };
    Ok(logged_in.map(|logged_in| (session, logged_in)))
}

/// Whether a session still is of this caller, in this tenant and role. To look is no use of it.
pub async fn stands(api: &Api, token: &Token, caller: Caller) -> Result<bool, OpError> {
    let found = holder(api, token).await?;
    Ok(found.is_some_and(|(_, logged_in)| logged_in.caller == caller))
}

/// Who a token is of, without using it: for what a page reads by itself.
pub async fn peek(api: &Api, token: &Token) -> Result<Option<LoggedIn>, OpError> {
    Ok(holder(api, token).await?.map(|(_, logged_in)| logged_in))
}

/// Who a token is of. None if it is nobody's any more.
pub async fn who(api: &Api, token: &Token) -> Result<Option<LoggedIn>, OpError> {
    let (now, access) = (api.engine.now(), api.store.access());
    let found = holder(api, token).await?;
    if let Some((session, logged_in)) = &found {
        let is_old = session.used_at.plus(limits::SESSION_USE_EVERY) <= now;
        if is_old || logged_in.tenant.id != session.tenant {
            let used = access.use_session(session.digest, now, logged_in.tenant.id);
            used.await.map_err(OpError::Write)?;
        }
    }
    Ok(found.map(|(_, logged_in)| logged_in))
}

async fn of_user(api: &Api, session: &Session, user: User) -> Result<Option<LoggedIn>, OpError> {
    let tenants = tenants_of(api, &user).await?;
    let shown = tenants.iter().find(|tenant| tenant.id == session.tenant);
    let Some(tenant) = shown.or(tenants.first()).cloned() else {
        return Ok(None);
    };
    let Some(role) = user.role_in(tenant.id) else {
        return Ok(None);
    };
    Ok(Some(LoggedIn {
        caller: Caller {
            tenant: tenant.id,
            role,
            key: None,
        },
        name: Arc::from(user.name.as_str()),
        tenant,
        tenants,
    }))
}

async fn of_key(api: &Api, caller: Caller) -> Result<Option<LoggedIn>, OpError> {
    let access = api.store.access();
    let Some(tenant) = access.get_tenant(caller.tenant).await? else {
        return Ok(None);
    };
    // A key is of one tenant.
    let tenant = Some(tenant).filter(|tenant| tenant.deleting_at.is_none());
    Ok(tenant.map(|tenant| LoggedIn {
        caller,
        name: api.access.name(caller),
        tenants: vec![tenant.clone()],
        tenant,
    }))
}

/// Whoever is there where no key is asked for.
pub async fn anyone(api: &Api) -> Result<Option<LoggedIn>, OpError> {
    let Some(caller) = api.access.anyone() else {
        return Ok(None);
    };
    let tenant = api.store.access().get_tenant(caller.tenant).await?;
    Ok(tenant.map(|tenant| LoggedIn {
        caller,
        name: api.access.name(caller),
        tenants: vec![tenant.clone()],
        tenant,
    }))
}

/// Shows another tenant that the user belongs to.
pub async fn switch(api: &Api, token: &Token, to: &Tenant) -> Result<(), OpError> {
    let now = api.engine.now();
    let access = api.store.access();
    let used = access.use_session(token.digest(), now, to.id).await;
    used.map_err(OpError::Write)
}

pub async fn logout(api: &Api, token: &Token) -> Result<(), OpError> {
    let ended = api.store.access().end_session(token.digest()).await;
    ended.map_err(OpError::Write)
}
