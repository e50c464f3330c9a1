//! Alerts: rules that say which ends of runs somebody wants to hear of, and where an alert stands.
//!
//! ```text
//!              cause                       due                        a run succeeded            due
//!   (nothing) ───────▶ firing, to be sent ─────▶ firing, sent ───────▶ recovered, to be sent ─────▶ (nothing)
//!                        ▲     │ ▲                │   ▲      │ repeat
//!                        │     └─┘ cause          └───┘ cause└──▶ to be sent again
//! ```
//!
//! What always holds: there is one alert for each rule and job; it is sent once when it begins to fire, once more for each
//! repeat interval, and once when it has recovered. What has not been sent yet is in the store, with the moment it is due.

use std::fmt;
use std::time::Duration;

use crate::hash::hash;
use crate::id::{JobId, RunId, TenantId};
use crate::job::{Job, Version};
use crate::limits;
use crate::mask;
use crate::run::{Reason, Run, RunState};
use crate::target::check_address;
use crate::time::Timestamp;

/// What an alert rule is called, within its tenant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AlertName(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "an alert's name has 1 to {} letters, digits or any of . _ -",
    limits::NAME_MAX
)]
pub struct AlertNameError;

impl AlertName {
    pub fn new(text: &str) -> Result<Self, AlertNameError> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if (1..=limits::NAME_MAX).contains(&text.len()) && text.bytes().all(fits) {
            Ok(Self(text.to_owned()))
        } else {
            Err(AlertNameError)
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AlertName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whose runs a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All of the tenant's.
    Tenant,
    Job(JobId),
    /// Those of jobs that belong to somebody.
    Owner(String),
    /// Those of jobs that have a label.
    Label(String, String),
}

impl Scope {
    /// Whether the job itself has to be read to know.
    pub fn needs_job(&self) -> bool {
        match self {
            Self::Tenant | Self::Job(_) => false,
            Self::Owner(_) | Self::Label(..) => true,
        }
    }

    /// The one job that it is about, if that is all.
    pub fn only_job(&self) -> Option<JobId> {
        match self {
            Self::Job(job) => Some(*job),
            Self::Tenant | Self::Owner(_) | Self::Label(..) => None,
        }
    }

    /// Whether a job is meant; it may be gone by now.
    pub fn covers(&self, id: JobId, job: Option<&Job>) -> bool {
        match self {
            Self::Tenant => true,
            Self::Job(only) => *only == id,
            Self::Owner(owner) => job.is_some_and(|job| job.owner.as_deref() == Some(owner)),
            Self::Label(name, value) => {
                job.is_some_and(|job| job.def.labels.get(name) == Some(value))
            }
        }
    }
}

/// What makes an alert fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// A run ended without success, and nobody wanted that.
    Failed,
    /// A run ended dead: it will not be tried again.
    Dead,
    /// Slots passed while no node could fire them in time.
    Missed,
    /// So many slots in a row were skipped.
    Skipped(u32),
}

impl Condition {
    pub const WORDS: [&'static str; 4] = ["failed", "dead", "missed", "skipped"];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Dead => "dead",
            Self::Missed => "missed",
            Self::Skipped(_) => "skipped",
        }
    }

    /// Whether an end is one of those it is about. How many slots in a row were skipped is another question.
    pub fn fits(self, cause: &Cause) -> bool {
        match self {
            Self::Failed => matches!(cause.state, RunState::Dead | RunState::Cancelled),
            Self::Dead => cause.state == RunState::Dead,
            Self::Missed => cause.reason == Some(Reason::Missed),
            Self::Skipped(_) => cause.state == RunState::Skipped,
        }
    }
}

/// What an alert is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// Our own JSON, signed if the tenant signs.
    Webhook,
    /// `{"text": …}`, as Slack and what is compatible with it reads.
    Slack,
}

impl Channel {
    pub const ALL: [Self; 2] = [Self::Webhook, Self::Slack];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Slack => "slack",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == text)
    }
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    pub tenant: TenantId,
    pub name: AlertName,
    pub version: Version,
    pub scope: Scope,
    pub condition: Condition,
    pub channel: Channel,
    /// Where it is sent, as it was written.
    pub url: String,
    /// The job whose runs deliver it; it belongs to the system.
    pub job: JobId,
    /// Whether it is also sent that a job has recovered.
    pub recovered: bool,
    /// How often it is sent again while it fires.
    pub repeat: Option<Duration>,
    /// Off, nothing is noticed.
    pub enabled: bool,
    /// Until then nothing is sent.
    pub muted_until: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Alert {
    /// Where it is sent, without what may be secret of it.
    pub fn shown_url(&self) -> String {
        match check_address(&self.url) {
            // The whole path of such an address is what lets a message in.
            Ok((url, None)) if self.channel == Channel::Slack => {
                let authority = url.authority().map_or("", |it| it.as_str());
                let host = authority.rsplit('@').next().unwrap_or_default();
                let scheme = url.scheme_str().unwrap_or_default();
                format!("{scheme}://{host}/{}", mask::MASK)
            }
            Ok((url, None)) => mask::shown_url(&url),
            Ok((url, Some(path))) => {
                let base = mask::shown_url(&url);
                format!("{}{}", base.trim_end_matches('/'), mask::shown_path(&path))
            }
            Err(_) => mask::MASK.to_owned(),
        }
    }

    /// Until when nothing may be sent.
    pub fn muted(&self, now: Timestamp) -> Option<Timestamp> {
        self.muted_until.filter(|until| *until > now)
    }
}

/// An end that a rule may be about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Counts the causes of a store; those that were considered are gone.
    pub no: u64,
    pub tenant: TenantId,
    pub job: JobId,
    pub run: RunId,
    pub state: RunState,
    pub reason: Option<Reason>,
    /// Slots that it stands for.
    pub count: u64,
    /// When it ended, or was decided.
    pub at: Timestamp,
}

impl Cause {
    /// Of a run that enters history, if any rule could be about it. What somebody wanted is none: a run that was cancelled by
    /// hand or for a newer one, slots of a paused or a deleted job, and those that a calendar leaves out.
    pub fn of(run: &Run) -> Option<Self> {
        let wanted = match run.reason {
            Some(
                Reason::Paused
                | Reason::Calendar
                | Reason::JobDeleted
                | Reason::Requested
                | Reason::Replaced,
            ) => true,
            None
            | Some(
                Reason::Overlap
                | Reason::QueueFull
                | Reason::Missed
                | Reason::AttemptsSpent
                | Reason::Refused
                | Reason::Lost
                | Reason::Poison
                | Reason::Unreadable
                | Reason::Invalid
                | Reason::Overload
                | Reason::Quota,
            ) => false,
        };
        if run.state == RunState::Succeeded || run.state.is_live() || wanted {
            return None;
        }
        Some(Self {
            no: 0,
            tenant: run.tenant,
            job: run.job,
            run: run.id,
            state: run.state,
            reason: run.reason,
            count: run.stretch.map_or(1, |stretch| stretch.count),
            at: run.settled_at.unwrap_or_else(|| run.id.at()),
        })
    }
}

/// How many slots in a row were skipped, by the job's runs from the newest back to the last that is read. Runs under way, and
/// slots that somebody wanted left out, say nothing.
pub fn skipped_in_row<'a>(newest_first: impl IntoIterator<Item = &'a Run>) -> u64 {
    let ended = newest_first.into_iter().filter(|run| !run.state.is_live());
    let row = ended.take_while(|run| run.state == RunState::Skipped);
    let causes = row.filter_map(Cause::of);
    causes.fold(0, |sum, cause| sum.saturating_add(cause.count))
}

/// Where the alert of a rule about one job stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertState {
    pub tenant: TenantId,
    pub alert: AlertName,
    pub job: JobId,
    /// Counts the writes of it: whoever writes it names the one before.
    pub step: u32,
    /// Else it has recovered, which is still to be sent.
    pub firing: bool,
    /// When it began to fire.
    pub since: Timestamp,
    /// Its last cause.
    pub run: RunId,
    pub state: RunState,
    pub reason: Option<Reason>,
    /// When that was.
    pub at: Timestamp,
    /// Causes since it fires.
    pub causes: u64,
    /// How often it was sent that it fires.
    pub sent: u32,
    /// When it is to be sent.
    pub send_at: Option<Timestamp>,
    /// The run that recovered it, and when that succeeded.
    pub ended: Option<(RunId, Timestamp)>,
}

impl AlertState {
    /// After a cause: none before means that it begins to fire, as does one that has recovered.
    pub fn after(before: Option<Self>, alert: &Alert, cause: &Cause, now: Timestamp) -> Self {
        let fresh = |step| Self {
            tenant: alert.tenant,
            alert: alert.name.clone(),
            job: cause.job,
            step,
            firing: true,
            since: cause.at,
            run: cause.run,
            state: cause.state,
            reason: cause.reason,
            at: cause.at,
            causes: 1,
            sent: 0,
            send_at: Some(now),
            ended: None,
        };
        match before {
            None => fresh(0),
            Some(before) if !before.firing => fresh(before.step),
            // The same end, noted again: a slot that was decided again has the same name.
            Some(before) if before.run == cause.run => before,
            Some(before) => Self {
                run: before.run.max(cause.run),
                state: cause.state,
                reason: cause.reason,
                at: before.at.max(cause.at),
                causes: before.causes.saturating_add(1),
                ..before
            },
        }
    }

    /// After it was sent; none if there is nothing more to say.
    pub fn after_sent(self, alert: &Alert, now: Timestamp) -> Option<Self> {
        self.firing.then(|| Self {
            sent: self.sent.saturating_add(1),
            send_at: alert.repeat.map(|repeat| now.plus(repeat)),
            ..self
        })
    }

    /// After a run has succeeded; none if nobody is to hear of it.
    pub fn recovered(
        self,
        alert: Option<&Alert>,
        by: (RunId, Timestamp),
        now: Timestamp,
    ) -> Option<Self> {
        let wanted = alert.is_some_and(|alert| alert.recovered && alert.enabled) && self.sent > 0;
        wanted.then_some(Self {
            firing: false,
            send_at: Some(now),
            ended: Some(by),
            ..self
        })
    }

    /// Whether it is about to be sent for the first time: only then may it recover.
    pub fn is_new(&self, now: Timestamp) -> bool {
        self.sent == 0 && self.send_at.is_some_and(|at| at <= now)
    }
}

/// What is to be written of an alert, over the step before it: its state, or that it is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertMove {
    /// With the step that it has now.
    pub state: AlertState,
    pub is_over: bool,
}

impl AlertMove {
    /// From a state that was read, if it was, to another.
    pub fn to(mut state: AlertState) -> Self {
        state.step = state.step.wrapping_add(1);
        Self {
            state,
            is_over: false,
        }
    }

    pub fn end(state: AlertState) -> Self {
        Self {
            is_over: true,
            ..Self::to(state)
        }
    }

    /// From a state to what it is afterwards.
    pub fn between(before: AlertState, after: Option<AlertState>) -> Self {
        match after {
            Some(after) => Self::to(after),
            None => Self::end(before),
        }
    }

    /// The step that it is written over; 0 is none at all.
    pub fn before(&self) -> u32 {
        self.state.step.wrapping_sub(1)
    }
}

impl RunId {
    /// The run that delivers what some alerts have come to: the same for the same steps.
    pub fn of_delivery<'a>(
        channel: JobId,
        at: Timestamp,
        of: impl Iterator<Item = &'a AlertState>,
    ) -> Self {
        let nonce = of.fold(0x0061_6c65_7274, |sum, state| {
            hash(sum, &[state.job.hash(), u64::from(state.step)])
        });
        Self::of_request(channel, at, nonce)
    }
}

#[cfg(test)]
#[path = "alert_tests.rs"]
mod tests;
