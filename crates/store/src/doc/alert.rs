//! An alert rule as it is stored; its name, version, the one job that it is about, the job that delivers it and its moments are
//! columns.

use std::borrow::Cow;
use std::time::Duration;

use model::{Alert, AlertName, Channel, Condition, JobId, Scope, TenantId, Timestamp, Version};
use serde::{Deserialize, Serialize};

use super::DocError;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AlertDoc<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    job: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    owner: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    label: Option<(Cow<'a, str>, Cow<'a, str>)>,
    #[serde(borrow)]
    condition: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    count: Option<u32>,
    #[serde(borrow)]
    channel: Cow<'a, str>,
    #[serde(borrow)]
    url: Cow<'a, str>,
    recovered: bool,
    /// Milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repeat: Option<u64>,
    enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    muted_until: Option<i64>,
}

pub fn encode_alert(alert: &Alert) -> Result<Vec<u8>, DocError> {
    let (mut job, mut owner, mut label) = (None, None, None);
    match &alert.scope {
        Scope::Tenant => {}
        Scope::Job(id) => job = Some(id.to_string().into()),
        Scope::Owner(name) => owner = Some(name.as_str().into()),
        Scope::Label(name, value) => label = Some((name.as_str().into(), value.as_str().into())),
    }
    let count = match alert.condition {
        Condition::Failed | Condition::Dead | Condition::Missed => None,
        Condition::Skipped(count) => Some(count),
    };
    let doc = AlertDoc {
        job,
        owner,
        label,
        condition: alert.condition.as_str().into(),
        count,
        channel: alert.channel.as_str().into(),
        url: alert.url.as_str().into(),
        recovered: alert.recovered,
        repeat: alert.repeat.map(|span| span.as_millis() as u64),
        enabled: alert.enabled,
        muted_until: alert.muted_until.map(Timestamp::as_millis),
    };
    Ok(serde_json::to_vec(&doc)?)
}

/// What stands beside it in columns.
#[derive(Debug, Clone)]
pub struct AlertColumns {
    pub tenant: TenantId,
    pub name: AlertName,
    pub version: Version,
    pub job: JobId,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

pub fn decode_alert(columns: AlertColumns, bytes: &[u8]) -> Result<Alert, DocError> {
    let doc: AlertDoc<'_> = serde_json::from_slice(bytes)?;
    let id = |text: &str| -> Result<JobId, DocError> {
        text.parse()
            .map_err(|error: model::id::IdError| DocError(error.to_string()))
    };
    let scope = match (doc.job, doc.owner, doc.label) {
        (Some(job), _, _) => Scope::Job(id(&job)?),
        (None, Some(owner), _) => Scope::Owner(owner.into_owned()),
        (None, None, Some((name, value))) => Scope::Label(name.into_owned(), value.into_owned()),
        (None, None, None) => Scope::Tenant,
    };
    let condition = match (&*doc.condition, doc.count) {
        ("failed", None) => Condition::Failed,
        ("dead", None) => Condition::Dead,
        ("missed", None) => Condition::Missed,
        ("skipped", Some(count)) => Condition::Skipped(count),
        (other, _) => return Err(DocError::unknown("condition", other)),
    };
    let channel = Channel::parse(&doc.channel);
    Ok(Alert {
        scope,
        condition,
        channel: channel.ok_or_else(|| DocError::unknown("channel", &doc.channel))?,
        url: doc.url.into_owned(),
        recovered: doc.recovered,
        repeat: doc.repeat.map(Duration::from_millis),
        enabled: doc.enabled,
        muted_until: doc.muted_until.map(Timestamp::from_millis),
        tenant: columns.tenant,
        name: columns.name,
        version: columns.version,
        job: columns.job,
        created_at: columns.created_at,
        updated_at: columns.updated_at,
    })
}
