//! The store's own moment for what is handed over: what each call does, and whether it should have been let.

use std::time::Duration;

use model::{AttemptNo, Mark, PresenceId, Run, RunId, Timestamp};
use store::*;

use crate::faults::FaultStore;
use crate::handed::{Held, HeldEnd};

/// What stands of a run before somebody says something of it, and after.
#[derive(PartialEq)]
struct Stood {
    live: Option<Run>,
    handed: Option<model::Handed>,
    checkpoint: Option<bytes::Bytes>,
}

impl Stood {
    /// Whether an attempt is the one that the run is at.
    fn is_at(&self, attempt: AttemptNo) -> bool {
        let current = |run: &Run| run.attempt == attempt && run.claim.is_some();
        self.live.as_ref().is_some_and(current)
    }
}

impl FaultStore {
    async fn stood(&self, run: RunId) -> Result<Stood, StoreError> {
        let mut handed = self.inner.get_handed(&[run]).await?;
        Ok(Stood {
            live: self.inner.live_run(run),
            handed: handed.pop().flatten(),
            checkpoint: self.inner.get_checkpoint(run).await?,
        })
    }

    /// Writes down that a node heard of the outside at a moment, or may hear of it from then on. That counts, and not when it was
    /// written: the outside is answered up to when it is trusted.
    async fn heard(
        &self,
        (run, attempt): (RunId, AttemptNo),
        heard: Duration,
    ) -> Result<(), StoreError> {
        let stood = self.stood(run).await?;
        let mut book = self.ledger.book();
        book.handed_over(run, attempt);
        if let Some(handed) = stood.handed {
            let before = book.handed.held.get(&(run, attempt));
            let since = before.map_or(self.uptime(), |held| held.since);
            let held = Held {
                job: handed.job,
                within: handed.within,
                timeout: self.uptime_at(handed.timeout_at),
                since,
                heard: before.map_or(heard, |held| held.heard.max(heard)),
                cancelled: handed.cancelled,
                end: None,
            };
            book.handed.held.insert((run, attempt), held);
            let seen = || format!("the outside has {run} {attempt} up to {:?}", handed.until);
            book.note_of(handed.job, self.uptime(), seen);
        }
        Ok(())
    }

    /// Writes down how an attempt ended that the outside had.
    fn ended_outside(&self, ended: &EndedHanded, by_node: Option<usize>) {
        let EndedHanded {
            settlement,
            settled,
            ..
        } = ended;
        let run = &settlement.run;
        let mut book = self.ledger.book();
        book.released(run.id, run.attempt);
        if let Some(attempt) = &settlement.attempt {
            let end = HeldEnd {
                at: self.uptime(),
                outcome: attempt.outcome,
                by_node,
            };
            // It may end before anybody knew that the outside has it.
            let unheard = Held {
                job: run.job,
                within: Duration::ZERO,
                timeout: self.uptime(),
                since: self.uptime(),
                heard: self.uptime(),
                cancelled: false,
                end: None,
            };
            let of = (run.id, run.attempt);
            let held = book.handed.held.entry(of).or_insert(unheard);
            held.cancelled = matches!(run.mark, Some(Mark::Cancel(_)));
            book.handed.ends(of, end);
            book.note_of(run.job, self.uptime(), || {
                format!("{} {} ends outside: {end:?}", run.id, run.attempt)
            });
        }
        if self.inner.live_run(run.id).is_none() {
            book.gone.insert(run.id, self.uptime());
        }
        if let Settled::Done { due_at, .. } = settled
            && due_at.is_some()
        {
            book.changed(run.job, self.uptime());
        }
    }

    pub(crate) async fn hand_over_watched(
        &self,
        by: PresenceId,
        items: &[HandOver],
        (now, heard): (Timestamp, Duration),
    ) -> Result<Vec<HandedOver>, StoreError> {
        let answers = self.inner.hand_over(by, items, now).await?;
        for (it, answer) in items.iter().zip(&answers) {
            if *answer == HandedOver::Done {
                self.heard((it.run, it.attempt), heard).await?;
            }
        }
        Ok(answers)
    }

    pub(crate) async fn heartbeat_watched(
        &self,
        beats: &[Heartbeat],
        (now, heard): (Timestamp, Duration),
    ) -> Result<Vec<Beaten>, StoreError> {
        let mut answers = Vec::new();
        for beat in beats {
            let stood = self.stood(beat.run).await?;
            let one = std::slice::from_ref(beat);
            let answer = self.inner.heartbeat(one, now).await?;
            let done = matches!(answer.as_slice(), [Beaten::Done { .. }]);
            self.check_token((beat.run, beat.attempt), stood, done)
                .await?;
            if done {
                self.heard((beat.run, beat.attempt), heard).await?;
                if let Some(checkpoint) = beat.checkpoint.clone() {
                    let handed = &mut self.ledger.book().handed;
                    handed.checkpoints.insert(beat.run, checkpoint);
                }
            }
            answers.extend(answer);
        }
        Ok(answers)
    }

    /// A token is good for the attempt that the run is at, and nothing changes by any other.
    async fn check_token(
        &self,
        (run, attempt): (RunId, AttemptNo),
        stood: Stood,
        done: bool,
    ) -> Result<(), StoreError> {
        let unchanged = stood == self.stood(run).await?;
        if (done && !stood.is_at(attempt)) || (!done && !unchanged) {
            let at = stood.live.map(|run| (run.attempt, run.claim));
            let seen = format!("{run} was at {at:?}, and {attempt} changed it");
            self.ledger.book().broken("old_token_changes_nothing", seen);
        }
        Ok(())
    }

    pub(crate) async fn report_watched(
        &self,
        reports: &[Reported],
        now: Timestamp,
    ) -> Result<Vec<HandedEnd>, StoreError> {
        let mut answers = Vec::new();
        for it in reports {
            let stood = self.stood(it.run).await?;
            let answer = self.inner.report(std::slice::from_ref(it), now).await?;
            let done = matches!(answer.as_slice(), [HandedEnd::Done(_)]);
            self.check_token((it.run, it.attempt), stood, done).await?;
            if let [HandedEnd::Done(ended)] = answer.as_slice() {
                self.ended_outside(ended, None);
            }
            answers.extend(answer);
        }
        Ok(answers)
    }

    pub(crate) async fn lapse_watched(
        &self,
        leases: &Leases,
        lapses: &[Lapse],
        now: Timestamp,
    ) -> Result<Vec<HandedEnd>, StoreError> {
        let answers = self.inner.lapse(leases, lapses, now).await?;
        for answer in &answers {
            if let HandedEnd::Done(ended) = answer {
                self.ended_outside(ended, Some(self.node));
            }
        }
        Ok(answers)
    }
}
