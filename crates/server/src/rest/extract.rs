//! What requests are made of: ids in paths, bodies, parameters, preconditions. Each refuses in the
//! form of a problem.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use model::id::IdError;
use model::schedule::CalendarError;
use model::secret::SecretNameError;
use model::signing::SigningIdError;
use model::tenant::TenantNameError;
use model::user::UserNameError;
use model::{
    AlertName, AlertNameError, CalendarName, JobId, JobKey, KeyId, ReplayId, RunId, SecretName,
    SigningId, TenantId, TenantName, Timestamp, UserName, Version, limits,
};
use sha2::{Digest, Sha256};
use store::Idempotency;

use super::who;
use crate::api::Api;
use crate::ops::{Expect, Mode, jobs};
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

/// A run's id in the path.
pub(super) struct RunPath(pub RunId);

impl FromRequestParts<Arc<Api>> for RunPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let text = path_of(parts, api, Kind::RunNotFound).await?;
        let refused = |error: IdError| Problem::new(Kind::RunNotFound, error.to_string()).at("id");
        RunId::from_str(&text).map(Self).map_err(refused)
    }
}

/// A replay's id in the path.
pub(super) struct ReplayPath(pub ReplayId);

impl FromRequestParts<Arc<Api>> for ReplayPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let text = path_of(parts, api, Kind::ReplayNotFound).await?;
        let refused =
            |error: IdError| Problem::new(Kind::ReplayNotFound, error.to_string()).at("id");
        ReplayId::from_str(&text).map(Self).map_err(refused)
    }
}

/// The id of a key that opens the API, in the path.
pub(super) struct AccessKeyPath(pub KeyId);

impl FromRequestParts<Arc<Api>> for AccessKeyPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let text = path_of(parts, api, Kind::AccessKeyNotFound).await?;
        let refused =
            |error: IdError| Problem::new(Kind::AccessKeyNotFound, error.to_string()).at("id");
        KeyId::from_str(&text).map(Self).map_err(refused)
    }
}

/// A job's own key in the path; slashes and all.
pub(super) struct KeyPath(pub JobKey);

impl FromRequestParts<Arc<Api>> for KeyPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let text = path_of(parts, api, Kind::JobNotFound).await?;
        let refused = |error: model::job::KeyError| {
            Problem::new(Kind::FieldInvalid, error.to_string()).at("key")
        };
        JobKey::new(&text).map(Self).map_err(refused)
    }
}

/// A calendar's name in the path.
pub(super) struct CalendarPath(pub CalendarName);

impl FromRequestParts<Arc<Api>> for CalendarPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let text = path_of(parts, api, Kind::CalendarNotFound).await?;
        let refused =
            |error: CalendarError| Problem::new(Kind::FieldInvalid, error.to_string()).at("name");
        CalendarName::new(&text).map(Self).map_err(refused)
    }
}

/// An alert's name in the path.
pub(super) struct AlertPath(pub AlertName);

impl FromRequestParts<Arc<Api>> for AlertPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let text = path_of(parts, api, Kind::AlertNotFound).await?;
        let refused =
            |error: AlertNameError| Problem::new(Kind::FieldInvalid, error.to_string()).at("name");
        AlertName::new(&text).map(Self).map_err(refused)
    }
}

/// A user's name in the path.
pub(super) struct UserPath(pub UserName);

impl FromRequestParts<Arc<Api>> for UserPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let text = path_of(parts, api, Kind::UserNotFound).await?;
        let refused =
            |error: UserNameError| Problem::new(Kind::FieldInvalid, error.to_string()).at("name");
        UserName::new(&text).map(Self).map_err(refused)
    }
}

/// A tenant's name in the path.
pub(super) struct TenantPath(pub TenantName);

impl FromRequestParts<Arc<Api>> for TenantPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let text = path_of(parts, api, Kind::TenantNotFound).await?;
        let refused =
            |error: TenantNameError| Problem::new(Kind::FieldInvalid, error.to_string()).at("name");
        TenantName::new(&text).map(Self).map_err(refused)
    }
}

/// A secret's name in the path.
pub(super) struct SecretPath(pub SecretName);

impl FromRequestParts<Arc<Api>> for SecretPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let text = path_of(parts, api, Kind::SecretNotFound).await?;
        let refused =
            |error: SecretNameError| Problem::new(Kind::FieldInvalid, error.to_string()).at("name");
        SecretName::new(&text).map(Self).map_err(refused)
    }
}

/// A signing secret's id in the path.
pub(super) struct SigningPath(pub SigningId);

impl FromRequestParts<Arc<Api>> for SigningPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let text = path_of(parts, api, Kind::SigningSecretNotFound).await?;
        let refused = |error: SigningIdError| {
            Problem::new(Kind::SigningSecretNotFound, error.to_string()).at("id")
        };
        text.parse().map(Self).map_err(refused)
    }
}

/// A request that has no use for parameters: whoever sends one means something else.
pub(super) struct NoParams;

impl FromRequestParts<Arc<Api>> for NoParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let params = Params::from_request_parts(parts, api).await?;
        params.known(&[])?;
        Ok(Self)
    }
}

/// A request that may ask for a rehearsal, with `dry_run`.
pub(super) struct DryRun(pub Mode);

impl FromRequestParts<Arc<Api>> for DryRun {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let params = Params::from_request_parts(parts, api).await?;
        params.known(&["dry_run"])?;
        let dry = params.switch("dry_run")?;
        Ok(Self(if dry { Mode::Dry } else { Mode::Write }))
    }
}

/// Query parameters, each known to its reader.
pub(super) struct Params(Vec<(String, String)>);

impl FromRequestParts<Arc<Api>> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let query = Query::from_request_parts(parts, api).await;
        query.map(|Query(list)| Self(list)).map_err(|error| {
            Problem::new(
                Kind::ParameterInvalid,
                format!("the query cannot be read: {error}"),
            )
        })
    }
}

impl Params {
    /// Refuses a parameter that nobody knows.
    pub(super) fn known(&self, known: &[&str]) -> Result<(), Problem> {
        match self
            .0
            .iter()
            .find(|(name, _)| !known.contains(&name.as_str()))
        {
            None => Ok(()),
            Some((name, _)) => {
                let name = shown(name);
                let list = match known {
                    [] => "there are none here".to_owned(),
                    known => format!("known are {}", known.join(", ")),
                };
                let detail = format!("{name:?} is not a known parameter: {list}");
                Err(Problem::new(Kind::ParameterInvalid, detail).at(name))
            }
        }
    }

    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(move |(given, _)| given == name)
            .map(|(_, value)| value.as_str())
    }

    /// True or false; false if it is not given. One without a value is refused: nobody may guess what was meant.
    pub(super) fn switch(&self, name: &'static str) -> Result<bool, Problem> {
        let given: Vec<&str> = self.all(name).collect();
        match given.as_slice() {
            [] | ["false"] => Ok(false),
            ["true"] => Ok(true),
            _ => Err(refuse(name, format!("{name} is true or false, once"))),
        }
    }

    /// A parameter that may stand once.
    pub(super) fn one(&self, name: &'static str) -> Result<Option<&str>, Problem> {
        let mut all = self.all(name);
        let first = all.next();
        match all.next() {
            None => Ok(first.filter(|value| !value.is_empty())),
            Some(_) => Err(refuse(name, format!("{name} is given twice"))),
        }
    }
}

impl Params {
    /// A moment: RFC 3339, or epoch seconds or milliseconds.
    pub(super) fn moment(&self, name: &'static str) -> Result<Option<Timestamp>, Problem> {
        let read = |text: &str| match text.parse() {
            Ok(number) => Timestamp::from_number(number),
            // An offset's plus, sent as it is, arrives as a space.
            Err(_) => Timestamp::parse(&text.replace(' ', "+")),
        };
        let moment = self.one(name)?.map(read).transpose();
        moment.map_err(|error| refuse(name, error.to_string()))
    }
}

/// A parameter that cannot be used.
pub(super) fn refuse(name: &'static str, detail: impl Into<String>) -> Problem {
    Problem::new(Kind::ParameterInvalid, detail).at(name)
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
