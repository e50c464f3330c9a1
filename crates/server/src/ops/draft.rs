//! What a client says about a job, read but not yet checked: each field is left as it is, set back
//! to its default, or given. A create is a draft over the defaults, an edit is one over what stands.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Uri};
use model::schedule::{DateRange, Day, Dialect, DstGap, DstOverlap, Weekly, Yearly, Zone};
use model::success::{JsonEquals, Statuses};
use model::{
    Backoff, CalendarName, CatchUpPolicy, Delivery, ExitCodes, FailuresMax, JobKey, Lane, Overlap,
    Redirects, SecretName, Timestamp,
};

/// What is said about one field.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Patch<T> {
    /// Nothing.
    #[default]
    Keep,
    /// Back to the default.
    Reset,
    Set(T),
}

impl<T> Patch<T> {
    /// The value, if one is given.
    pub fn given(&self) -> Option<&T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Reset => None,
        }
    }

    pub fn into_given(self) -> Option<T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Reset => None,
        }
    }

    /// What is said, or what stands if nothing is.
    pub fn or_keep(self, stands: impl FnOnce() -> Option<T>) -> Self {
        match self {
            Self::Keep => stands().map_or(Self::Keep, Self::Set),
            said @ (Self::Reset | Self::Set(_)) => said,
        }
    }

    /// Writes what is said over what stands.
    pub fn put(self, to: &mut T, default: T) {
        match self {
            Self::Keep => {}
            Self::Reset => *to = default,
            Self::Set(value) => *to = value,
        }
    }

    /// The same where nothing is the default.
    pub fn put_option(self, to: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Reset => *to = None,
            Self::Set(value) => *to = Some(value),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct JobDraft {
    pub key: Patch<JobKey>,
    pub owner: Patch<Arc<str>>,
    pub schedule: Patch<ScheduleDraft>,
    /// Calendars by their names; each list is replaced whole.
    pub exclude: Patch<Vec<CalendarName>>,
    pub only: Patch<Vec<CalendarName>>,
    pub target: Patch<TargetDraft>,
    pub payload: Patch<Bytes>,
    pub retry: Patch<RetryDraft>,
    pub timeout: Patch<Duration>,
    pub lane: Patch<Lane>,
    pub overlap: Patch<OverlapDraft>,
    pub catch_up: Patch<CatchUpDraft>,
    pub spread: Patch<Duration>,
    pub delivery: Patch<Delivery>,
    /// Whether a report completes an attempt.
    pub callback: Patch<bool>,
    pub heartbeat_within: Patch<Duration>,
    pub start_within: Patch<Duration>,
    pub finish_within: Patch<Duration>,
    pub pause_after_failures: Patch<FailuresMax>,
    /// A label without a value is taken away.
    pub labels: Patch<BTreeMap<String, Option<String>>>,
}

impl JobDraft {
    /// Who the job is to belong to: as it stands unless something is said, and the caller by default.
    pub fn owner(&self, stands: Option<&Arc<str>>, caller: &Arc<str>) -> Option<Arc<str>> {
        match &self.owner {
            Patch::Keep => stands.cloned(),
            Patch::Reset => Some(Arc::clone(caller)),
            Patch::Set(owner) => Some(Arc::clone(owner)),
        }
    }

    /// Every calendar that it names.
    pub fn calendars(&self) -> impl Iterator<Item = &CalendarName> {
        let lists = [self.exclude.given(), self.only.given()];
        lists.into_iter().flatten().flatten()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RetryDraft {
    pub attempts_max: Patch<u32>,
    pub backoff: Patch<Backoff>,
    pub delay_first: Patch<Duration>,
    pub delay_max: Patch<Duration>,
    /// From 0 to 1.
    pub jitter: Patch<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct OverlapDraft {
    pub policy: Patch<Overlap>,
    /// How many runs may wait; of `queue_all` only.
    pub max: Patch<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CatchUpDraft {
    pub policy: Patch<CatchUpPolicy>,
    pub window: Patch<Duration>,
    pub max: Patch<u32>,
}

/// When a job is to be due, before the job's own number and the moment of the request are known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScheduleDraft {
    /// What repeats. An edit may leave it out, and change only what stands beside it.
    pub kind: Option<KindDraft>,
    pub zone: Patch<Zone>,
    pub dialect: Patch<Dialect>,
    pub dst_gap: Patch<DstGap>,
    pub dst_overlap: Patch<DstOverlap>,
    pub anchor: Patch<Timestamp>,
    pub after_completion: Patch<bool>,
    pub starts_at: Patch<Timestamp>,
    pub ends_at: Patch<Timestamp>,
    pub runs_max: Patch<u32>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum KindDraft {
    /// The short form: an expression, a macro, or `@every 90s`.
    Text(String),
    Cron(Vec<String>),
    /// A period.
    Every(String),
    At(Timestamp),
    In(Duration),
}

/// Where work is to go. What is not said about a target of the same kind that stands stays as it is.
#[derive(Debug, Clone, PartialEq)]
pub enum TargetDraft {
    Http(Box<HttpDraft>),
    Shell(Box<ShellDraft>),
    Python(Box<PythonDraft>),
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct HttpDraft {
    /// With the template of its path, if it is one.
    pub url: Option<(Uri, Option<String>)>,
    pub method: Patch<Method>,
    /// A header without a value is taken away.
    pub headers: Patch<Vec<(HeaderName, Option<HeaderValue>)>>,
    pub body: Patch<String>,
    pub output_max: Patch<usize>,
    pub keep_headers: Patch<Vec<HeaderName>>,
    pub success: Patch<SuccessDraft>,
    pub redirects: Patch<Redirects>,
    pub tls: Patch<TlsDraft>,
}

/// What is to be started.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ShellDraft {
    pub command: Option<Vec<String>>,
    pub dir: Patch<String>,
    /// A variable without a value is taken away.
    pub env: Patch<Vec<(String, Option<String>)>>,
    pub exit: ExitDraft,
    pub output_max: Patch<usize>,
}

/// What is to run in a sandbox.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PythonDraft {
    pub source: Option<String>,
    pub interpreter: Patch<String>,
    pub args: Patch<Vec<String>>,
    /// A variable without a value is taken away.
    pub env: Patch<Vec<(String, Option<String>)>>,
    pub exit: ExitDraft,
    pub output_max: Patch<usize>,
}

/// What exit codes are to mean.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExitDraft {
    pub success: Patch<ExitCodes>,
    pub retry: Patch<ExitCodes>,
    pub fail: Patch<ExitCodes>,
    pub dead: Patch<ExitCodes>,
}

/// Secrets that hold the certificates of a target.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TlsDraft {
    pub ca: Patch<SecretName>,
    pub cert: Patch<SecretName>,
    pub key: Patch<SecretName>,
}

/// What is to count as success.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SuccessDraft {
    pub status: Patch<Statuses>,
    pub json: Patch<JsonEquals>,
}

/// What a client says about a calendar. It is always the whole of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CalendarDraft {
    pub name: Option<CalendarName>,
    pub note: Option<String>,
    pub zone: Option<Zone>,
    pub dates: Vec<Day>,
    pub yearly: Vec<Yearly>,
    pub weekly: Vec<Weekly>,
    pub ranges: Vec<DateRange>,
}
