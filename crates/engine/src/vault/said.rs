//! What is said of a handed-over attempt is kept without the secrets that the attempt was sent. The node that sent it knows
//! them; any other reads them again, from the version of the job that was sent and from the secrets as they stand. What
//! cannot be compared with a secret, because that is closed or gone, is not kept.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use model::mask::MASK;
use model::{AttemptNo, Job, Progress, Report, RunId, SecretName, limits};
use store::{StoreError, Whose};

use super::scrub::Hidden;
use super::{Opened, Vault, VaultError, template};
use crate::lock;

type Of = (RunId, AttemptNo);

/// What attempts were sent that may be handed over: of a bounded number, the oldest go first.
#[derive(Default)]
pub(super) struct Sent {
    of: BTreeMap<Of, Arc<Hidden>>,
    order: VecDeque<Of>,
}

impl Sent {
    fn insert(&mut self, of: Of, hidden: Arc<Hidden>) {
        if self.of.insert(of, hidden).is_none() {
            self.order.push_back(of);
        }
        while self.order.len() > limits::SENT_KNOWN_MAX {
            if let Some(first) = self.order.pop_front() {
                self.of.remove(&first);
            }
        }
    }
}

/// How to keep what is said of an attempt.
pub(crate) enum Said {
    Without(Arc<Hidden>),
    /// Not at all, and why.
    Not(String),
}

impl Said {
    fn instead(why: &str) -> String {
        format!("not kept, because it could not be compared with what the attempt was sent: {why}")
    }

    pub(crate) fn report(&self, mut report: Report) -> Report {
        match self {
            Self::Without(hidden) => hidden.take_out(report),
            Self::Not(why) => {
                if !report.output.is_empty() {
                    report.output = Bytes::from(Self::instead(why));
                }
                report.error = report.error.map(|_| Self::instead(why));
                report
            }
        }
    }

    pub(crate) fn log(&self, part: Bytes) -> Bytes {
        match self {
            Self::Without(hidden) => hidden.take_out_of_part(part),
            Self::Not(why) => Bytes::from(format!("{}\n", Self::instead(why))),
        }
    }

    pub(crate) fn progress(&self, progress: Progress) -> Progress {
        match (self, progress) {
            (_, Progress::Share(share)) => Progress::Share(share),
            (Self::Without(hidden), Progress::Text(text)) => {
                let kept = hidden.take_out_of(Bytes::from(text));
                Progress::Text(String::from_utf8_lossy(&kept).into_owned())
            }
            (Self::Not(_), Progress::Text(_)) => Progress::Text(MASK.to_owned()),
        }
    }

    /// A checkpoint is refused rather than replaced: another attempt would go on from it.
    pub(crate) fn checkpoint(&self, checkpoint: Bytes) -> Result<Bytes, StoreError> {
        match self {
            Self::Without(hidden) => Ok(hidden.take_out_of(checkpoint)),
            Self::Not(why) => Err(StoreError::unavailable(Self::instead(why))),
        }
    }
}

impl Vault {
    /// An attempt is about to leave that may be handed over, and this is what it will be sent.
    pub(crate) fn will_send(&self, of: Of, hidden: &Arc<Hidden>) {
        lock(&self.sent).insert(of, Arc::clone(hidden));
    }

    /// How to keep what is said of an attempt.
    pub(crate) async fn said(&self, of: Of) -> Result<Said, StoreError> {
        if let Some(known) = lock(&self.sent).of.get(&of) {
            return Ok(Said::Without(Arc::clone(known)));
        }
        let mut whose = self.store.handed().whose(&[of.0]).await?;
        let Some(whose) = whose.pop().flatten() else {
            // It has ended: nothing is kept of what is said now.
            return Ok(Said::Without(Arc::default()));
        };
        let hidden = match self.read_sent(whose).await {
            Ok(hidden) => Arc::new(hidden),
            Err(Unknown::Store(error)) => return Err(error),
            Err(Unknown::Why(why)) => return Ok(Said::Not(why)),
        };
        self.will_send(of, &hidden);
        Ok(Said::Without(hidden))
    }

    async fn read_sent(&self, whose: Whose) -> Result<Hidden, Unknown> {
        let job = self.job_as_sent(whose).await?;
        let job = job.ok_or_else(|| Unknown::Why("its job is gone".to_owned()))?;
        let target = &job.def.target;
        let mut names: Vec<SecretName> = Vec::new();
        for (_, _, text) in template::all_of(target) {
            let named = template::secrets_in(&text);
            names.extend(named.map_err(|error| Unknown::Why(error.to_string()))?);
        }
        let certificates = target.certificates();
        let keys = certificates.filter(|(field, _)| *field == "key");
        names.extend(keys.map(|(_, name)| name.clone()));
        let mut opened: Vec<Arc<Opened>> = Vec::new();
        for name in names {
            match self.get(whose.tenant, &name).await {
                Ok(Some(found)) => opened.push(found),
                Ok(None) => {
                    return Err(Unknown::Why(format!("there is no secret {name} any more")));
                }
                Err(VaultError::Store(error)) => return Err(Unknown::Store(error)),
                Err(error) => return Err(Unknown::Why(format!("the secret {name}: {error}"))),
            }
        }
        let hidden = Hidden::default();
        hidden.set(target, opened.iter().map(|it| it.value()));
        Ok(hidden)
    }

    async fn job_as_sent(&self, whose: Whose) -> Result<Option<Arc<Job>>, StoreError> {
        let Whose {
            tenant,
            job,
            version,
        } = whose;
        let stands = self.store.get_job(tenant, job).await?;
        if stands.as_ref().is_some_and(|job| job.version == version) {
            return Ok(stands.map(Arc::new));
        }
        let access = self.store.access();
        let before = access.get_version(tenant, job, version).await?;
        // Versions are kept in a bounded number; then the job as it stands is the nearest that is known.
        Ok(before.map(|it| it.job).or_else(|| stands.map(Arc::new)))
    }
}

/// Why it is not known what an attempt was sent.
enum Unknown {
    Store(StoreError),
    Why(String),
}

impl From<StoreError> for Unknown {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
