//! What requests are made of: ids in paths, bodies, preconditions, and parameters, which `params` reads. Each refuses in the
//! form of a problem.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use model::id::IdError;
use model::{
    AlertName, CalendarName, JobId, JobKey, KeyId, ReplayId, RunId, SecretName, SigningId,
    TenantId, TenantName, UserName, Version, limits,
};
use sha2::{Digest, Sha256};
use store::Idempotency;

pub(super) use super::params::{DryRun, NoParams, Params, refuse};
use super::who;
use crate::api::Api;
use crate::ops::{Expect, jobs};
use crate::problem::{Kind, Problem};

/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(15);

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What a client sent, short enough to be shown to it.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}

async fn path_of(parts: &mut Parts, api: &Arc<Api>, kind: Kind) -> Result<String, Problem> {
    let path = Path::<String>::from_request_parts(parts, api).await;
    path.map(|Path(text)| text)
        .map_err(|_| Problem::new(kind, "the path is not UTF-8"))
}

/// A job in the path: its id, or `key:` and its key, which is looked up.
pub(super) struct JobPath(pub JobId);

impl FromRequestParts<Arc<Api>> for JobPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let text = path_of(parts, api, Kind::JobNotFound).await?;
        match job_id(api, who::tenant(parts)?, &text).await? {
            Ok(id) => Ok(Self(id)),
            Err(why) => Err(Problem::new(Kind::JobNotFound, why).at("id")),
        }
    }
}

/// The job that a text names; why it names none, if it is neither an id nor a key.
pub(super) async fn job_id(
    api: &Api,
    tenant: TenantId,
    text: &str,
) -> Result<Result<JobId, String>, Problem> {
    let Some(key) = text.strip_prefix("key:") else {
        let refused = |error: IdError| match JobKey::new(text) {
            Ok(key) => format!("{error}; if it is a job's key, write key:{key}"),
            Err(_) => format!("{error}; a job's key is written key:nightly-report"),
        };
        return Ok(JobId::from_str(text).map_err(refused));
    };
    let key = match JobKey::new(key) {
        Ok(key) => key,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let job = jobs::find(api, tenant, &key).await?;
    Ok(Ok(job.id))
}

/// What stands in a path and is read by itself: by whom, how its field is called, what is answered to bytes that are no text,
/// and what to a text that is none of its kind.
macro_rules! paths {
    ($($(#[$doc:meta])* $name:ident($of:ty, $read:expr, $field:literal, $missing:ident, $refused:ident),)*) => {$(
        $(#[$doc])*
        pub(super) struct $name(pub $of);

        impl FromRequestParts<Arc<Api>> for $name {
            type Rejection = Problem;

            async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
                let text = path_of(parts, api, Kind::$missing).await?;
                let read = $read(&text).map(Self);
                read.map_err(|error| Problem::new(Kind::$refused, error.to_string()).at($field))
            }
        }
    )*};
}

paths! {
    /// A run's id in the path.
    RunPath(RunId, RunId::from_str, "id", RunNotFound, RunNotFound),
    /// A replay's id in the path.
    ReplayPath(ReplayId, ReplayId::from_str, "id", ReplayNotFound, ReplayNotFound),
    /// The id of a key that opens the API, in the path.
    AccessKeyPath(KeyId, KeyId::from_str, "id", AccessKeyNotFound, AccessKeyNotFound),
    /// A signing secret's id in the path.
    SigningPath(SigningId, SigningId::from_str, "id", SigningSecretNotFound, SigningSecretNotFound),
    /// A job's own key in the path; slashes and all.
    KeyPath(JobKey, JobKey::new, "key", JobNotFound, FieldInvalid),
    /// A calendar's name in the path.
    CalendarPath(CalendarName, CalendarName::new, "name", CalendarNotFound, FieldInvalid),
    /// An alert's name in the path.
    AlertPath(AlertName, AlertName::new, "name", AlertNotFound, FieldInvalid),
    /// A user's name in the path.
    UserPath(UserName, UserName::new, "name", UserNotFound, FieldInvalid),
    /// A tenant's name in the path.
    TenantPath(TenantName, TenantName::new, "name", TenantNotFound, FieldInvalid),
    /// A secret's name in the path.
    SecretPath(SecretName, SecretName::new, "name", SecretNotFound, FieldInvalid),
}

/// A JSON body, read whole and bounded. It is empty when there is none.
pub(super) struct JsonBody(pub Bytes);

impl FromRequest<Arc<Api>> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        if length(&parts.headers).is_some_and(|length| length > limits::BODY_MAX as u64) {
            return Err(too_large());
        }
        let body = read(body, api).await?;
        if !body.is_empty() {
            check_media_type(&parts.headers, "application/json")?;
        }
        Ok(Self(body))
    }
}

/// A body of any type, byte for byte.
pub(super) struct RawBody(pub Bytes);

impl FromRequest<Arc<Api>> for RawBody {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        if length(&parts.headers).is_some_and(|length| length > limits::BODY_MAX as u64) {
            return Err(too_large());
        }
        read(body, api).await.map(Self)
    }
}

fn length(headers: &HeaderMap) -> Option<u64> {
    headers
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

fn too_large() -> Problem {
    let detail = format!("a body has at most {} bytes", limits::BODY_MAX);
    Problem::new(Kind::BodyTooLarge, detail)
}

async fn read(body: Body, api: &Api) -> Result<Bytes, Problem> {
    let collect = Limited::new(body, limits::BODY_MAX).collect();
    let collected = tokio::select! {
        biased;
        collected = collect => collected,
        () = api.engine.clock().sleep(BODY_TIMEOUT) => {
            let detail = format!("the body did not arrive within {} s", BODY_TIMEOUT.as_secs());
            return Err(Problem::new(Kind::BodySlow, detail));
        }
    };
    match collected {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(_) => Err(Problem::new(Kind::BodyUnreadable, "the body broke off")),
    }
}

/// The media type must be the one named, whatever its parameters.
pub(super) fn check_media_type(headers: &HeaderMap, wanted: &str) -> Result<(), Problem> {
    let refused = |given: &str| {
        let detail = format!("the body is sent as {given}: send it with Content-Type: {wanted}");
        Problem::new(Kind::MediaTypeUnsupported, detail).at("Content-Type")
    };
    if let Some(coding) = headers.get(header::CONTENT_ENCODING)
        && coding != "identity"
    {
        let detail = "compressed bodies are not taken: send it as it is";
        return Err(Problem::new(Kind::MediaTypeUnsupported, detail).at("Content-Encoding"));
    }
    let Some(given) = headers.get(header::CONTENT_TYPE) else {
        return Err(refused("nothing"));
    };
    let given = given.to_str().unwrap_or("something unreadable");
    let (essence, parameters) = given.split_once(';').unwrap_or((given, ""));
    if !essence.trim().eq_ignore_ascii_case(wanted) {
        return Err(refused(&format!("{:?}", shown(given))));
    }
    let charset = parameters
        .split(';')
        .find_map(|parameter| parameter.trim().strip_prefix("charset="));
    match charset {
        Some(name) if !name.trim_matches('"').eq_ignore_ascii_case("utf-8") => {
            Err(refused(&format!("{:?}", shown(given))))
        }
        Some(_) | None => Ok(()),
    }
}

fn header<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
    shown: &str,
) -> Result<Option<&'h str>, Problem> {
    let mut all = headers.get_all(name).iter();
    let Some(first) = all.next() else {
        return Ok(None);
    };
    let refused = |detail: String| Problem::new(Kind::HeaderInvalid, detail).at(shown);
    if all.next().is_some() {
        return Err(refused(format!("{shown} is given twice")));
    }
    first
        .to_str()
        .map(Some)
        .map_err(|_| refused(format!("{shown} holds more than visible ASCII")))
}

/// The request's `Idempotency-Key`.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(key) = header(headers, &IDEMPOTENCY_KEY, "Idempotency-Key")? else {
        return Ok(None);
    };
    if !(1..=limits::NAME_MAX).contains(&key.len()) {
        let detail = format!(
            "an Idempotency-Key has 1 to {} characters",
            limits::NAME_MAX
        );
        return Err(Problem::new(Kind::HeaderInvalid, detail).at("Idempotency-Key"));
    }
    Ok(Some(key))
}

/// The key with a digest of the body it belongs to.
pub(super) fn idempotency(key: String, body: &[u8]) -> Idempotency {
    Idempotency {
        key,
        digest: Sha256::digest(body).into(),
    }
}

/// What `If-Match` and `If-None-Match` expect of the job or calendar.
pub(super) fn expect(headers: &HeaderMap) -> Result<Expect, Problem> {
    let refused = |name: &'static str, detail: &str| {
        Problem::new(Kind::HeaderInvalid, detail.to_owned()).at(name)
    };
    let none = header(headers, &header::IF_NONE_MATCH, "If-None-Match")?;
    let some = header(headers, &header::IF_MATCH, "If-Match")?;
    match (some, none) {
        (None, None) => Ok(Expect::Anything),
        (Some(_), Some(_)) => Err(refused(
            "If-Match",
            "If-Match and If-None-Match exclude each other",
        )),
        (None, Some("*")) => Ok(Expect::Absent),
        (None, Some(_)) => Err(refused(
            "If-None-Match",
            "only If-None-Match: * is understood",
        )),
        (Some("*"), None) => Ok(Expect::Existing),
        (Some(list), None) => list
            .split(',')
            .map(|tag| tag.trim().trim_matches('"').parse().ok().map(Version))
            .collect::<Option<Vec<_>>>()
            .map(Expect::OneOf)
            .ok_or_else(|| refused("If-Match", "write If-Match: \"3\", with the version")),
    }
}
