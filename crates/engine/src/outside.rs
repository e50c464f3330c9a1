//! The outside: what whoever has a handed-over attempt says of it. Requests that come while a write is under way share the
//! next one (`gather.rs`). Heartbeats are many and can wait a moment: so that one write serves many of them, writes keep a
//! distance. Texts are kept without the secrets that the attempt was sent (`vault/said.rs`).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use model::{Attempt, Progress, Report, RunId, Timestamp, Verdict, limits};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use store::{
    Beaten, EndedHanded, EngineStore, HandedEnd, Heartbeat, LogAppend, Reported, Settled,
    StoreError,
};

use crate::clock::Clock;
use crate::desk::By;
use crate::fleet::Fleet;
use crate::gather::{About, Gather};
use crate::lock;
use crate::metrics::Metrics;
use crate::nudge::Nudge;
use crate::offers::Offers;
use crate::offset::Skew;
use crate::run_logs::RunLogs;
use crate::tokens::{Token, Tokens};
use crate::vault::Vault;

/// Writes of reports under way at once. Of heartbeats there is one.
const DEPTH: usize = 2;

/// Why nothing was taken of what the outside says.
#[derive(Debug, thiserror::Error)]
pub enum OutsideError {
    #[error("the token is not good for this run")]
    Token,
    #[error("there is no such run")]
    Missing,
    /// The attempt has ended; its record, if it is kept.
    #[error("the attempt has ended")]
    Ended(Option<Box<Attempt>>),
    /// This node has no presence just now: nothing was written, and another node may do it.
    #[error("this node does not know the store's time")]
    Unready,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a heartbeat brings back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    /// It is to end.
    pub cancel: bool,
    /// Up to when it is trusted.
    pub until: Timestamp,
}

/// What a report came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    pub verdict: Option<Verdict>,
    /// It was taken before, with the same outcome.
    pub repeated: bool,
}

impl About for Heartbeat {
    fn run(&self) -> RunId {
        self.run
    }

    fn bytes(&self) -> usize {
        self.checkpoint.as_ref().map_or(0, Bytes::len)
    }
}

impl About for Reported {
    fn run(&self) -> RunId {
        self.run
    }

    fn bytes(&self) -> usize {
        self.report.output.len()
    }
}

/// What ends outside is counted, and what follows from it is passed on.
#[derive(Clone)]
pub(crate) struct Followed {
    pub offers: Offers,
    pub metrics: Metrics,
    pub by: By,
    pub claim_due: Nudge,
    pub fire: Nudge,
    pub beat: Nudge,
}

impl Followed {
    pub(crate) fn follow(&self, ended: &EndedHanded) {
        let EndedHanded {
            settlement,
            settled,
            job,
        } = ended;
        if let Some(attempt) = &settlement.attempt {
            self.metrics.settled_with(attempt.outcome);
            if let Some(dispatched_at) = attempt.dispatched_at {
                let took = attempt.settled_at.since(dispatched_at);
                self.metrics.attempt_took(attempt.outcome, took);
            }
        }
        if let Some((state, _)) = settlement.end() {
            self.metrics.run_ended(state);
        }
        if let Some(job) = job {
            self.by.trouble.observe_end(job, settlement);
        }
        let run = &settlement.run;
        let goes_on = settlement.end().is_none();
        let freed = match settled {
            Settled::Done {
                freed,
                due_at,
                paused,
            } => {
                if let Some(paused) = paused {
                    self.by.trouble.observe_paused(run, paused);
                    self.beat.now();
                    self.offers.hint_marks();
                }
                freed.is_some() || due_at.is_some() || paused.is_some()
            }
            Settled::Stale | Settled::Refused(_) => false,
        };
        if goes_on || freed {
            self.offers.offer((run.tenant, run.job));
            if !self.offers.is_ours(run.shard()) {
                self.claim_due.now();
            }
        }
        // A slot of its job may have waited for that.
        self.fire.now();
    }
}

/// What of a node the outside talks to.
pub struct Outside {
    store: Arc<dyn EngineStore>,
    clock: Arc<dyn Clock>,
    skew: Skew,
    fleet: Arc<Fleet>,
    tokens: Arc<Tokens>,
    vault: Arc<Vault>,
    followed: Followed,
    chance: Mutex<StdRng>,
    beats: Gather<Heartbeat, Beaten>,
    reports: Gather<Reported, HandedEnd>,
    logs: Arc<RunLogs>,
}

impl Outside {
    pub(crate) fn new(
        (store, clock, skew): (Arc<dyn EngineStore>, Arc<dyn Clock>, Skew),
        (fleet, tokens, vault): (Arc<Fleet>, Arc<Tokens>, Arc<Vault>),
        logs: Arc<RunLogs>,
        followed: Followed,
        seed: u64,
    ) -> Self {
        Self {
            store,
            clock,
            skew,
            fleet,
            tokens,
            vault,
            followed,
            chance: Mutex::new(StdRng::seed_from_u64(seed)),
            beats: Gather::new(1, limits::HEARTBEATS_APART),
            reports: Gather::new(DEPTH, Duration::ZERO),
            logs,
        }
    }

    pub(crate) fn followed(&self) -> Followed {
        self.followed.clone()
    }

    /// Whether this node has heard of the store lately.
    fn is_ready(&self) -> bool {
        let silent = self.fleet.silent_for(self.clock.uptime());
        let is_recent = silent < limits::PRESENCE_TTL - limits::PRESENCE_MARGIN;
        is_recent && self.fleet.beats() > 0
    }

    /// The store's time, for what is written now: who waited for a write may have lost it meanwhile.
    fn now(&self) -> Result<Timestamp, StoreError> {
        if self.is_ready() {
            Ok(self.clock.now())
        } else {
            Err(StoreError::unavailable("this node has no presence"))
        }
    }

    /// The same for what is trusted from then on: by a time that lies behind, a heartbeat would be answered and move nothing.
    fn known_now(&self) -> Result<Timestamp, StoreError> {
        if self.skew.is_known() {
            self.now()
        } else {
            Err(StoreError::unavailable("this node does not know the time"))
        }
    }

    /// The attempt that a token is good for.
    async fn may_write(&self, run: RunId, token: &str) -> Result<Token, OutsideError> {
        let token = self.token(run, token).await?;
        if self.is_ready() {
            Ok(token)
        } else {
            Err(OutsideError::Unready)
        }
    }

    async fn token(&self, run: RunId, token: &str) -> Result<Token, OutsideError> {
        let good = self.tokens.check(run, token).await?;
        good.ok_or(OutsideError::Token)
    }

    /// Whoever has the attempt lives.
    pub async fn heartbeat(
        &self,
        run: RunId,
        token: &str,
        mut progress: Option<Progress>,
        mut checkpoint: Option<Bytes>,
    ) -> Result<Heard, OutsideError> {
        let Token {
            attempt,
            dispatched_at,
        } = self.may_write(run, token).await?;
        if !self.skew.is_known() {
            return Err(OutsideError::Unready);
        }
        if matches!(progress, Some(Progress::Text(_))) || checkpoint.is_some() {
            let said = self.vault.said((run, attempt)).await?;
            progress = progress.map(|it| said.progress(it));
            checkpoint = checkpoint.map(|it| said.checkpoint(it)).transpose()?;
        }
        let beat = Heartbeat {
            run,
            attempt,
            dispatched_at,
            progress,
            checkpoint,
        };
        let write = |beats: Vec<Heartbeat>| async move {
            let now = self.known_now()?;
            self.store.handed().heartbeat(&beats, now).await
        };
        heard(self.beats.call(&*self.clock, beat, write).await?)
    }

    /// The attempt has ended so. Reported again with the same outcome, it is answered as before.
    pub async fn report(
        &self,
        run: RunId,
        token: &str,
        report: Report,
    ) -> Result<Taken, OutsideError> {
        let Token {
            attempt,
            dispatched_at,
        } = self.may_write(run, token).await?;
        let report = if report.output.is_empty() && report.error.is_none() {
            report
        } else {
            self.vault.said((run, attempt)).await?.report(report)
        };
        let (outcome, chance) = (report.outcome, lock(&self.chance).random::<f64>());
        let reported = Reported {
            run,
            attempt,
            dispatched_at,
            report,
            chance,
        };
        let write = |reports: Vec<Reported>| async move {
            let now = self.now()?;
            let ends = self.store.handed().report(&reports, now).await?;
            for end in &ends {
                if let HandedEnd::Done(ended) = end {
                    self.followed.follow(ended);
                }
            }
            Ok(ends)
        };
        match self.reports.call(&*self.clock, reported, write).await? {
            HandedEnd::Done(ended) => Ok(Taken {
                verdict: Some(ended.settlement.verdict),
                repeated: false,
            }),
            HandedEnd::Ended(Some(record)) if record.outcome == outcome => Ok(Taken {
                verdict: None,
                repeated: true,
            }),
            HandedEnd::Ended(record) => Err(OutsideError::Ended(record)),
            HandedEnd::Stale | HandedEnd::Missing => Err(OutsideError::Missing),
        }
    }

    /// Text for the run's log.
    pub async fn append_log(
        &self,
        run: RunId,
        token: &str,
        bytes: Bytes,
    ) -> Result<Heard, OutsideError> {
        let Token { attempt, .. } = self.token(run, token).await?;
        let bytes = self.vault.said((run, attempt)).await?.log(bytes);
        let append = LogAppend {
            run,
            attempt,
            bytes,
        };
        heard(self.logs.append(append).await?)
    }

    /// The last checkpoint of the run, by this attempt or one before.
    pub async fn checkpoint(&self, run: RunId, token: &str) -> Result<Option<Bytes>, OutsideError> {
        let Token { attempt, .. } = self.token(run, token).await?;
        let store = self.store.handed();
        let checkpoint = store.get_checkpoint(run).await?;
        // Only now: what a later attempt has written meanwhile is not for this one.
        if store.is_current(run, attempt).await? {
            Ok(checkpoint)
        } else {
            Err(OutsideError::Ended(None))
        }
    }
}

fn heard(beaten: Beaten) -> Result<Heard, OutsideError> {
    match beaten {
        Beaten::Done { cancel, until } => Ok(Heard { cancel, until }),
        Beaten::Ended(record) => Err(OutsideError::Ended(record)),
        Beaten::Missing => Err(OutsideError::Missing),
    }
}
