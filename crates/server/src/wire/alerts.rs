//! Alert rules: as clients write them, and as we answer them.

use model::target::check_address;
use model::{Alert as Rule, AlertState, Channel, Condition, Scope, Timestamp, limits};
use serde::Serialize;
use utoipa::ToSchema;

use super::job_out::{moment, span};
use super::read::{self, Fields, Path, Read, Value};
use crate::ops::alerts::{AlertDraft, Shown};
use crate::ops::{Fault, FieldError};

pub const ALERT_FIELDS: [&str; 10] = [
    "job",
    "owner",
    "label",
    "on",
    "count",
    "channel",
    "url",
    "recovered",
    "repeat",
    "enabled",
];
pub const MUTE_FIELDS: [&str; 1] = ["until"];

/// Reads the whole of a rule, and the job that it is about, as it was written: that is looked up by the caller.
pub fn alert_draft(body: &[u8]) -> Read<(AlertDraft, Option<String>)> {
    let fields = read::document(body, &ALERT_FIELDS)?;
    let job = fields.get("job", bounded)?;
    let channel = fields.get("channel", |value, path| {
        value.choice(path, &Channel::ALL.map(Channel::as_str), Channel::parse)
    })?;
    let draft = AlertDraft {
        scope: scope(&fields, job.is_some())?,
        condition: condition(&fields)?,
        channel: channel.unwrap_or(Channel::Webhook),
        url: fields.get("url", |value, path| {
            let text = value.text(path)?;
            let url = check_address(&text).map_err(|error| path.invalid(error.detail))?;
            Ok((text.into_owned(), url))
        })?,
        recovered: fields.get("recovered", Value::boolean)?.unwrap_or(true),
        repeat: fields.get("repeat", |value, path| {
            let span = value.duration(path)?;
            if (limits::ALERT_REPEAT_MIN..=limits::DELAY_MAX * 30).contains(&span) {
                return Ok(span);
            }
            Err(path.invalid(
                "an alert is sent again after 1 minute to 30 days: leave it out to send it once",
            ))
        })?,
        enabled: fields.get("enabled", Value::boolean)?.unwrap_or(true),
    };
    Ok((draft, job))
}

fn bounded(value: Value<'_>, path: Path<'_>) -> Read<String> {
    let text = value.text(path)?;
    let max = limits::OWNER_MAX.max(limits::NAME_MAX) * 2;
    if text.is_empty() || text.len() > max {
        return Err(path.invalid(format!("1 to {max} bytes: leave it out to mean every job")));
    }
    Ok(text.into_owned())
}

/// Whose runs it is about; a job is looked up later.
fn scope(fields: &Fields<'_>, of_job: bool) -> Read<Scope> {
    let owner = fields.get("owner", bounded)?;
    let label = fields.get("label", |value, path| {
        let text = value.text_or(path, "a label such as \"team=ops\"")?;
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() && text.len() <= 2 * limits::NAME_MAX => {
                Ok((name.to_owned(), value.to_owned()))
            }
            Some(_) | None => {
                Err(path.invalid("a label is written name=value, as in \"team=ops\""))
            }
        }
    })?;
    let given = usize::from(of_job) + usize::from(owner.is_some()) + usize::from(label.is_some());
    if given > 1 {
        let detail = "an alert is about one of job, owner and label, or about all jobs: leave out the others";
        return Err(Path::ROOT.invalid(detail));
    }
    Ok(match (owner, label) {
        (Some(owner), _) => Scope::Owner(owner),
        (None, Some((name, value))) => Scope::Label(name, value),
        (None, None) => Scope::Tenant,
    })
}

fn condition(fields: &Fields<'_>) -> Read<Condition> {
    let most = i64::from(limits::ALERT_SKIPPED_MAX);
    let count = fields.get("count", |value, path| value.integer(path, 1, most))?;
    let known = |word: &str| Condition::WORDS.into_iter().find(|it| *it == word);
    let word = fields.get("on", |value, path| {
        value.choice(path, &Condition::WORDS, known)
    })?;
    let Some(word) = word else {
        let detail = "on is missing: write failed, dead, missed or skipped";
        return Err(FieldError::new(Fault::Missing, "on", detail));
    };
    match (word, count) {
        ("skipped", Some(count)) => Ok(Condition::Skipped(count as u32)),
        ("skipped", None) => {
            let detail = "count is missing: how many slots in a row must have been skipped";
            Err(FieldError::new(Fault::Missing, "count", detail))
        }
        (_, Some(_)) => Err(FieldError::invalid(
            "count",
            "only skipped has a count: leave it out",
        )),
        ("dead", None) => Ok(Condition::Dead),
        ("missed", None) => Ok(Condition::Missed),
        (_, None) => Ok(Condition::Failed),
    }
}

/// Until when nothing is to be sent; null or nothing sends again.
pub fn mute(body: &[u8]) -> Read<Option<Timestamp>> {
    let fields = read::document(body, &MUTE_FIELDS)?;
    fields.get("until", Value::moment)
}

/// A rule that says who is to hear of what.
#[derive(Debug, Serialize, ToSchema)]
pub struct Alert {
    /// Its name.
    #[schema(example = "nightly")]
    pub name: String,
    /// The job that it is about; none of `job`, `owner` and `label` means every job.
    pub job: Option<String>,
    /// It is about jobs that belong to this owner.
    pub owner: Option<String>,
    /// It is about jobs with this label, `name=value`.
    pub label: Option<String>,
    /// What makes it fire.
    #[schema(example = "dead")]
    pub on: &'static str,
    /// Of `skipped`: how many slots in a row.
    pub count: Option<u32>,
    /// What it is written as.
    #[schema(example = "webhook")]
    pub channel: &'static str,
    /// Where it is sent, without what may be secret of it.
    #[schema(example = "https://ops.example.com/alerts")]
    pub url: String,
    /// Whether it is also sent that a job has recovered.
    pub recovered: bool,
    /// How often it is sent again while it fires; none: never.
    pub repeat: Option<String>,
    /// Off, nothing is noticed.
    pub enabled: bool,
    /// Until then nothing is sent.
    #[schema(format = DateTime)]
    pub muted_until: Option<String>,
    /// Counts its changes.
    pub version: u32,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it was changed last.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// Only where one is shown: its alerts that are not over, at most 50 of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alerts: Option<Vec<AlertOfJob>>,
}

/// Where an alert about one job stands.
#[derive(Debug, Serialize, ToSchema)]
pub struct AlertOfJob {
    /// The job.
    pub job: String,
    /// `firing`, or `recovered` until that is sent.
    #[schema(example = "firing")]
    pub state: &'static str,
    /// When it began to fire.
    #[schema(format = DateTime)]
    pub since: String,
    /// Its last cause.
    pub run: String,
    /// What became of that run.
    #[schema(example = "dead")]
    pub run_state: &'static str,
    /// And why.
    pub reason: Option<&'static str>,
    /// How many causes there were since it fires.
    pub causes: u64,
    /// How often it was sent that it fires.
    pub sent: u32,
    /// When it is sent next.
    #[schema(format = DateTime)]
    pub send_at: Option<String>,
}

/// A page of rules.
#[derive(Debug, Serialize, ToSchema)]
pub struct AlertList {
    /// By name.
    pub items: Vec<Alert>,
    /// Where the next page begins; none on the last.
    pub next_cursor: Option<String>,
}

impl Alert {
    pub fn of(rule: &Rule) -> Self {
        let (mut job, mut owner, mut label) = (None, None, None);
        match &rule.scope {
            Scope::Tenant => {}
            Scope::Job(id) => job = Some(id.to_string()),
            Scope::Owner(name) => owner = Some(name.clone()),
            Scope::Label(name, value) => label = Some(format!("{name}={value}")),
        }
        let count = match rule.condition {
            Condition::Failed | Condition::Dead | Condition::Missed => None,
            Condition::Skipped(count) => Some(count),
        };
        Self {
            name: rule.name.to_string(),
            job,
            owner,
            label,
            on: rule.condition.as_str(),
            count,
            channel: rule.channel.as_str(),
            url: rule.shown_url(),
            recovered: rule.recovered,
            repeat: rule.repeat.map(span),
            enabled: rule.enabled,
            muted_until: rule.muted_until.as_ref().map(moment),
            version: rule.version.0,
            created_at: moment(&rule.created_at),
            updated_at: moment(&rule.updated_at),
            alerts: None,
        }
    }

    pub fn shown(shown: &Shown) -> Self {
        Self {
            alerts: Some(shown.states.iter().map(AlertOfJob::of).collect()),
            ..Self::of(&shown.alert)
        }
    }
}

impl AlertOfJob {
    fn of(state: &AlertState) -> Self {
        Self {
            job: state.job.to_string(),
            state: if state.firing { "firing" } else { "recovered" },
            since: moment(&state.since),
            run: state.run.to_string(),
            run_state: state.state.as_str(),
            reason: state.reason.map(|reason| reason.as_str()),
            causes: state.causes,
            sent: state.sent,
            send_at: state.send_at.as_ref().map(moment),
        }
    }
}
