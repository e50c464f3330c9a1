//! Clients see problems, not errors: this is the one mapping. Each kind has a page in
//! `docs/problems/`, which the server serves; what we tripped over ourselves goes to the log.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::{JobId, Outcome, QuotaExceeded, Version};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use store::StoreError;

use crate::ops::{Fault, FieldError, OpError};

macro_rules! problems {
    ($($kind:ident, $name:literal, $status:ident, $title:literal;)*) => {
        /// What kinds of problem there are.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Kind { $($kind),* }

        impl Kind {
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name),* }
            }

            pub fn title(self) -> &'static str {
                match self { $(Self::$kind => $title),* }
            }

            pub fn status(self) -> StatusCode {
                match self { $(Self::$kind => StatusCode::$status),* }
            }

            /// Its page, in Markdown.
            pub fn page(self) -> &'static str {
                match self {
                    $(Self::$kind => {
                        include_str!(concat!("../../../docs/problems/", $name, ".md"))
                    })*
                }
            }
        }
    };
}

problems! {
    BodyUnreadable, "body-unreadable", BAD_REQUEST, "The body cannot be read";
    TooDeep, "too-deep", BAD_REQUEST, "The body nests too deep";
    ParameterInvalid, "parameter-invalid", BAD_REQUEST, "A query parameter cannot be used";
    HeaderInvalid, "header-invalid", BAD_REQUEST, "A header cannot be used";
    Unauthorized, "unauthorized", UNAUTHORIZED, "A valid key is needed";
    RoleInsufficient, "role-insufficient", FORBIDDEN, "The key may not do this";
    QuotaExceeded, "quota-exceeded", FORBIDDEN, "The tenant has as much as it may";
    RouteUnknown, "route-unknown", NOT_FOUND, "There is nothing at this path";
    JobNotFound, "job-not-found", NOT_FOUND, "There is no such job";
    VersionNotFound, "version-not-found", NOT_FOUND, "There is no such version of the job";
    CalendarNotFound, "calendar-not-found", NOT_FOUND, "There is no such calendar";
    AlertNotFound, "alert-not-found", NOT_FOUND, "There is no such alert";
    AccessKeyNotFound, "access-key-not-found", NOT_FOUND, "There is no such key";
    TenantNotFound, "tenant-not-found", NOT_FOUND, "There is no such tenant";
    SecretNotFound, "secret-not-found", NOT_FOUND, "There is no such secret";
    SigningSecretNotFound, "signing-secret-not-found", NOT_FOUND, "There is no such signing secret";
    ReplayNotFound, "replay-not-found", NOT_FOUND, "There is no such replay";
    UserNotFound, "user-not-found", NOT_FOUND, "There is no such user";
    RunNotFound, "run-not-found", NOT_FOUND, "There is no such run";
    MethodNotAllowed, "method-not-allowed", METHOD_NOT_ALLOWED, "The path does not take this method";
    BodySlow, "body-slow", REQUEST_TIMEOUT, "The body took too long to arrive";
    KeyTaken, "key-taken", CONFLICT, "Another job has this key";
    IdempotencyMismatch, "idempotency-mismatch", CONFLICT, "The idempotency key belongs to another request";
    StateConflict, "state-conflict", CONFLICT, "The job is in another state";
    OverlapRefused, "overlap-refused", CONFLICT, "Another run of the job is alive";
    RunAlive, "run-alive", CONFLICT, "The run has not ended";
    AttemptEnded, "attempt-ended", CONFLICT, "The attempt has ended";
    RunEnded, "run-ended", CONFLICT, "The run has ended";
    RunNotWaiting, "run-not-waiting", CONFLICT, "The run does not wait for anything that can be lifted";
    NoDeadRun, "no-dead-run", CONFLICT, "The job has no dead run";
    CalendarExists, "calendar-exists", CONFLICT, "There is a calendar of this name";
    CalendarInUse, "calendar-in-use", CONFLICT, "Jobs go by the calendar";
    CalendarsFull, "calendars-full", CONFLICT, "There are too many calendars";
    AlertsFull, "alerts-full", CONFLICT, "There are too many alerts";
    AlertBusy, "alert-busy", CONFLICT, "Too many deliveries of the alert are under way";
    AccessKeysFull, "access-keys-full", CONFLICT, "There are too many keys";
    LastRootKey, "last-root-key", CONFLICT, "It is the last root key";
    TenantExists, "tenant-exists", CONFLICT, "There is a tenant of this name";
    TenantInUse, "tenant-in-use", CONFLICT, "The tenant cannot go";
    TenantsFull, "tenants-full", CONFLICT, "There are too many tenants";
    SecretExists, "secret-exists", CONFLICT, "There is a secret of this name";
    SigningSecretsFull, "signing-secrets-full", CONFLICT, "There are two signing secrets";
    SecretsFull, "secrets-full", CONFLICT, "There are too many secrets";
    ReplaysFull, "replays-full", CONFLICT, "Too many replays are under way";
    UserExists, "user-exists", CONFLICT, "There is a user of this name";
    UsersFull, "users-full", CONFLICT, "There are too many users";
    MasterKeyMissing, "master-key-missing", CONFLICT, "The master key is not there";
    NodeTooOld, "node-too-old", CONFLICT, "A node does not know this yet";
    Contended, "contended", CONFLICT, "It keeps changing";
    JobGone, "job-gone", GONE, "The job is gone";
    VersionConflict, "version-conflict", PRECONDITION_FAILED, "It was changed by someone else";
    JobExists, "job-exists", PRECONDITION_FAILED, "There is such a job already";
    BodyTooLarge, "body-too-large", PAYLOAD_TOO_LARGE, "The body is too large";
    MediaTypeUnsupported, "media-type-unsupported", UNSUPPORTED_MEDIA_TYPE, "The body is of another type";
    NotApi, "not-api", MISDIRECTED_REQUEST, "The node has no api part";
    HostUnknown, "host-unknown", MISDIRECTED_REQUEST, "The node does not answer to this name";
    HeadTooLarge, "head-too-large", REQUEST_HEADER_FIELDS_TOO_LARGE, "The head of the request is too large";
    RateExceeded, "rate-exceeded", TOO_MANY_REQUESTS, "Requests come too fast";
    FieldUnknown, "field-unknown", UNPROCESSABLE_ENTITY, "A field is not known";
    FieldMissing, "field-missing", UNPROCESSABLE_ENTITY, "A field is missing";
    FieldDuplicate, "field-duplicate", UNPROCESSABLE_ENTITY, "A field is given twice";
    FieldInvalid, "field-invalid", UNPROCESSABLE_ENTITY, "A field cannot be used";
    ScheduleInvalid, "schedule-invalid", UNPROCESSABLE_ENTITY, "The schedule cannot be read";
    ScheduleNever, "schedule-never", UNPROCESSABLE_ENTITY, "The schedule has no slot to run";
    CalendarUnknown, "calendar-unknown", UNPROCESSABLE_ENTITY, "There is no calendar of this name";
    EgressRefused, "egress-refused", UNPROCESSABLE_ENTITY, "The node may not call this target";
    CommandRefused, "command-refused", UNPROCESSABLE_ENTITY, "The node may not start this command";
    JobRefused, "job-refused", UNPROCESSABLE_ENTITY, "The store cannot keep the job";
    InPast, "in-past", UNPROCESSABLE_ENTITY, "The moment lies too far in the past";
    Internal, "internal", INTERNAL_SERVER_ERROR, "Something went wrong on our side";
    Unwell, "unwell", SERVICE_UNAVAILABLE, "The node is not well";
    NotReady, "not-ready", SERVICE_UNAVAILABLE, "The node is not ready";
    StoreUnavailable, "store-unavailable", SERVICE_UNAVAILABLE, "The store cannot be reached";
    Overloaded, "overloaded", SERVICE_UNAVAILABLE, "Too much is under way";
    TimedOut, "timed-out", SERVICE_UNAVAILABLE, "The request took too long";
    StorageFull, "storage-full", INSUFFICIENT_STORAGE, "The disk is full";
}

impl Kind {
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

/// What a client gets instead of what it asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    pub kind: Kind,
    pub detail: String,
    pub field: Option<String>,
    /// Members of their own kind, such as the version that was found.
    pub more: Vec<(&'static str, Value)>,
    /// Seconds.
    pub retry_after: Option<u32>,
}

impl Problem {
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            field: None,
            more: Vec::new(),
            retry_after: None,
        }
    }

    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.more.push((name, value.into()));
        self
    }

    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &format_args!("/problems/{}", self.kind.name()))?;
        map.serialize_entry("title", self.kind.title())?;
        map.serialize_entry("status", &self.kind.status().as_u16())?;
        map.serialize_entry("detail", &self.detail)?;
        if let Some(field) = &self.field {
            map.serialize_entry("field", field)?;
        }
        for (name, value) in &self.more {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.kind.status();
        let headers = response.headers_mut();
        let mut set = |name: HeaderName, value: HeaderValue| headers.insert(name, value);
        set(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        set(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        set(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
        if self.kind == Kind::Unauthorized {
            set(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after {
            set(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<FieldError> for Problem {
    fn from(error: FieldError) -> Self {
        let kind = match error.fault {
            Fault::Syntax => Kind::BodyUnreadable,
            Fault::Depth => Kind::TooDeep,
            Fault::Unknown => Kind::FieldUnknown,
            Fault::Missing => Kind::FieldMissing,
            Fault::Duplicate => Kind::FieldDuplicate,
            Fault::Invalid => Kind::FieldInvalid,
            Fault::Schedule => Kind::ScheduleInvalid,
            Fault::Past => Kind::InPast,
            Fault::Never => Kind::ScheduleNever,
            Fault::Calendar => Kind::CalendarUnknown,
            Fault::Level => Kind::NodeTooOld,
            Fault::Egress => Kind::EgressRefused,
            Fault::Command => Kind::CommandRefused,
        };
        let problem = Self::new(kind, error.detail);
        if error.field.is_empty() {
            problem
        } else {
            problem.at(error.field)
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full => Self::new(
                Kind::StorageFull,
                "the disk that holds the data is full: nothing was written",
            )
            .retry_after(30),
            StoreError::Unavailable(source) => {
                tracing::warn!(error = %source, "the store cannot be reached");
                let detail = "the store cannot be reached: nothing was changed";
                Self::new(Kind::StoreUnavailable, detail).retry_after(1)
            }
            StoreError::Overloaded => {
                let detail = "too much waits to be written: send this a little later";
                Self::new(Kind::Overloaded, detail).retry_after(1)
            }
            StoreError::Slow(why) => Self::new(Kind::TimedOut, why).retry_after(5),
            error @ (StoreError::InUse(_)
            | StoreError::Unusable(_)
            | StoreError::Fenced
            | StoreError::BadRow(_)) => {
                tracing::error!(%error, "a request met an error of the store");
                Self::new(
                    Kind::Internal,
                    "the request could not be completed; the log says why",
                )
            }
        }
    }
}

impl From<OpError> for Problem {
    fn from(error: OpError) -> Self {
        let detail = error.to_string();
        match error {
            OpError::Field(error) => error.into(),
            OpError::Store(error) => error.into(),
            OpError::Write(error) => in_doubt(error),
            OpError::VersionMissing(_) => Self::new(Kind::VersionNotFound, detail).at("version"),
            OpError::JobMissing => Self::new(Kind::JobNotFound, detail),
            OpError::KeyMissing(key) => {
                Self::new(Kind::JobNotFound, detail).with("key", key.as_str())
            }
            OpError::RunMissing => Self::new(Kind::RunNotFound, detail),
            OpError::TokenRefused => crate::rest::token_refused(),
            OpError::Unready => Self::new(Kind::NotReady, detail).retry_after(1),
            OpError::AttemptEnded(outcome) => attempt_ended(&detail, outcome),
            OpError::JobGone(job) => Self::new(Kind::JobGone, detail).with("job", job.to_string()),
            OpError::VersionConflict { found } => version_conflict(&detail, found),
            OpError::NothingToMatch => Self::new(Kind::VersionConflict, detail).at("If-Match"),
            OpError::JobExists(job) => Self::new(Kind::JobExists, detail)
                .at("If-None-Match")
                .with("job", job.to_string()),
            OpError::KeyTaken(job) => key_taken(job, &detail),
            OpError::IdempotencyMismatch => {
                let detail = format!("{detail}: send a new key with a new request");
                Self::new(Kind::IdempotencyMismatch, detail).at("Idempotency-Key")
            }
            OpError::JobRefused { job, why } => job_refused(job, &why, &detail),
            OpError::QuotaExceeded(it) => quota_exceeded(&detail, it),
            OpError::JobState { state, .. } => {
                Self::new(Kind::StateConflict, detail).with("state", state.as_str())
            }
            OpError::Overlap(reason) => {
                let detail = format!("{detail}: wait for it, cancel it, or send \"force\": true");
                Self::new(Kind::OverlapRefused, detail).with("reason", reason.as_str())
            }
            OpError::RunAlive(state) => {
                let detail = format!("{detail}; only an ended run is replayed");
                Self::new(Kind::RunAlive, detail).with("state", state.as_str())
            }
            OpError::RunEnded(state) => {
                Self::new(Kind::RunEnded, detail).with("state", state.as_str())
            }
            OpError::RunNotWaiting(state, _) => {
                Self::new(Kind::RunNotWaiting, detail).with("state", state.as_str())
            }
            OpError::JobOfRunGone(_) => job_of_run_gone(&detail),
            OpError::NoDeadRun => no_dead_run(&detail),
            OpError::Calendar(fault) => fault.into(),
            OpError::Key(fault) => fault.into(),
            OpError::Tenant(fault) => fault.into(),
            OpError::User(fault) => fault.into(),
            OpError::Secret(fault) => fault.into(),
            OpError::Replay(fault) => fault.into(),
            OpError::Alert(fault) => fault.into(),
            OpError::Contended => Self::new(Kind::Contended, detail).retry_after(1),
            OpError::Overloaded => {
                let detail = format!("{detail}: send this a little later");
                Self::new(Kind::Overloaded, detail).retry_after(1)
            }
        }
    }
}

fn no_dead_run(detail: &str) -> Problem {
    let detail = format!("{detail}: replay another with POST /v1/runs/{{id}}/replay");
    Problem::new(Kind::NoDeadRun, detail)
}

fn attempt_ended(detail: &str, outcome: Option<Outcome>) -> Problem {
    let Some(outcome) = outcome else {
        return Problem::new(Kind::AttemptEnded, format!("{detail}: stop"));
    };
    let detail = format!("{detail}: it {}; stop", ended_as(outcome));
    Problem::new(Kind::AttemptEnded, detail).with("outcome", outcome.as_str())
}

fn ended_as(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::Failed => "failed",
        Outcome::TimedOut => "ran out of its time",
        Outcome::Lost => "was lost, because nothing was heard of it for too long",
        Outcome::Cancelled => "was cancelled",
    }
}

fn job_of_run_gone(detail: &str) -> Problem {
    let detail = format!("{detail}: there is nothing left to run");
    Problem::new(Kind::JobGone, detail)
}

/// A write whose answer was lost may have come about.
fn in_doubt(error: StoreError) -> Problem {
    let away = matches!(error, StoreError::Unavailable(_));
    let mut problem = Problem::from(error);
    if away {
        problem.detail =
            "the store cannot be reached: whether the request was written is not known".to_owned();
    }
    problem
}

pub(crate) fn version_conflict(detail: &str, found: Version) -> Problem {
    let detail = format!("{detail}: read it again and send If-Match: \"{found}\"");
    Problem::new(Kind::VersionConflict, detail)
        .at("If-Match")
        .with("version", found.0)
}

fn quota_exceeded(detail: &str, it: QuotaExceeded) -> Problem {
    let detail = format!("{detail}: delete what is not needed, or have root raise the quota");
    Problem::new(Kind::QuotaExceeded, detail)
        .with("quota", it.quota.as_str())
        .with("limit", it.limit)
        .with("used", it.used)
}

fn key_taken(job: JobId, detail: &str) -> Problem {
    let detail = format!("{detail}: choose another, or PATCH /v1/jobs/key:… to change it");
    Problem::new(Kind::KeyTaken, detail)
        .at("key")
        .with("job", job.to_string())
}

/// The store's words are for the log.
fn job_refused(job: JobId, why: &str, detail: &str) -> Problem {
    tracing::warn!(%job, error = why, "the store refuses a job");
    let detail = format!("{detail}; the log says why, under {job}");
    Problem::new(Kind::JobRefused, detail).with("job", job.to_string())
}
