//! Presence and leases: one beat a second shows that the node lives, brings marks on its claims,
//! and keeps its share of the shards.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use model::shard::ShardSet;
use model::{Ask, PresenceId, RunId, Shard, Timestamp, limits};
use store::StoreError;
use tracing::{info, warn};

use crate::duty::{Duty, Wake};
use crate::handle::{Nudge, Shared};
use crate::lock;
use crate::node::{Context, Flaw};
use crate::settle::Ending;

/// A wall clock that moves this much against the other one was stepped.
const STEP_MIN: Duration = Duration::from_millis(500);

pub struct Beats {
    context: Arc<Context>,
    /// Wall time less uptime, in milliseconds, at the last beat.
    offset: Option<i64>,
}

impl Beats {
    pub fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            offset: None,
        }
    }

    /// Notices a step of the wall clock: what is due has to be looked at again.
    fn watch_clock(&mut self, now: Timestamp, uptime: Duration) {
        let offset = now.as_millis().saturating_sub(model::time::millis(uptime));
        let before = self.offset.replace(offset).unwrap_or(offset);
        let step = offset.saturating_sub(before);
        if step.unsigned_abs() >= STEP_MIN.as_millis() as u64 {
            warn!(milliseconds = step, "the wall clock was stepped");
            self.context.shared.metrics.clock_steps.inc();
            self.context
                .shared
                .nudges
                .replan
                .store(true, Ordering::Release);
            self.context.shared.nudges.plan.now();
            self.context.shared.nudges.fire.now();
            self.context.shared.nudges.dispatch.now();
        }
    }

    /// Holds the shards that fall to this node among those that live.
    async fn hold_shards(&self, living: &[PresenceId]) -> Result<(), StoreError> {
        let context = &self.context;
        let me = context.presence.id;
        let unfit = context.shared.unfit();
        let wanted: ShardSet = Shard::all()
            .filter(|shard| unfit.is_none() && shard.owner(living) == Some(me))
            .collect();
        let held = context.leases();
        if held.shards() == wanted {
            return Ok(());
        }
        let leases = context.store.lease(me, &wanted).await?;
        if leases == *held {
            return Ok(());
        }
        info!(shards = leases.epochs.len(), "holds shards");
        let shards = leases.shards();
        *lock(&context.leases) = Arc::new(leases);
        lock(&context.wheel).keep_shards(&shards);
        context.shared.nudges.replan.store(true, Ordering::Release);
        context.shared.nudges.plan.now();
        context.shared.nudges.watchdog.now();
        Ok(())
    }

    /// Answers marks. What is to be settled is handed over by a task of its own: settle may be
    /// behind, and a beat waits for nobody.
    async fn answer(&self, asks: &[(RunId, Ask)], now: Timestamp) -> Result<(), StoreError> {
        let context = &self.context;
        let answers = context.dispatch.answer(asks, now);
        if !answers.settlements.is_empty() {
            let (endings, kill) = (context.endings.clone(), context.kill.clone());
            tokio::spawn(kill.run_until_cancelled_owned(async move {
                for settlement in answers.settlements {
                    if endings
                        .send(Ending::Judged(Box::new(settlement)))
                        .await
                        .is_err()
                    {
                        return;
                    }
                }
            }));
        }
        if !answers.withdrawals.is_empty() {
            context
                .store
                .withdraw(context.presence.id, &answers.withdrawals, now)
                .await?;
        }
        self.forget_taken_back().await
    }

    /// What was taken back is forgotten when the store has let go of it: a cancel may have come
    /// first, or an answer been lost.
    async fn forget_taken_back(&self) -> Result<(), StoreError> {
        let context = &self.context;
        let mut gone = Vec::new();
        for (tenant, run, attempt) in context.dispatch.taken_back() {
            let stands = context.store.get_run(tenant, run).await?;
            if stands.is_none_or(|run| run.claim != Some(context.presence.id)) {
                gone.push((run, attempt));
            }
        }
        if !gone.is_empty() {
            context.dispatch.forget(gone.into_iter());
            // What was taken back is decided anew.
            context.shared.nudges.replan.store(true, Ordering::Release);
            context.shared.nudges.plan.now();
        }
        Ok(())
    }
}

#[async_trait]
impl Duty for Beats {
    fn name(&self) -> &'static str {
        "beats"
    }

    fn nudge<'a>(&self, shared: &'a Shared) -> &'a Nudge {
        &shared.nudges.beat
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        let context = Arc::clone(&self.context);
        let sent = context.shared.clock.uptime();
        self.watch_clock(now, sent);
        if context.config.flaw == Flaw::SkipRenewal && !lock(&context.peers).is_empty() {
            return Ok(Wake::At(now.plus(limits::BEAT_EVERY)));
        }
        let was_present = context.is_present();
        let beat = context.store.beat(context.presence.id).await?;
        context.presence.beaten(sent);
        if let Some(offset) = &context.shared.offset {
            let micros = beat.now.as_millis().saturating_mul(1_000);
            offset.observe(sent, context.shared.clock.uptime(), micros);
        }
        lock(&context.shared.health).present = true;
        if !was_present {
            // Whatever waited for the presence goes on.
            context.shared.nudges.dispatch.now();
            context.shared.nudges.fire.now();
        }
        let living: Vec<PresenceId> = beat.living.iter().map(|peer| peer.presence).collect();
        *lock(&context.peers) = beat.living;
        self.hold_shards(&living).await?;
        self.answer(&beat.asks, now).await?;
        let marks = context.dispatch.to_mark(context.shared.clock.uptime());
        if !marks.is_empty() {
            context
                .store
                .mark_running(context.presence.id, &marks)
                .await?;
        }
        Ok(Wake::At(now.plus(limits::BEAT_EVERY)))
    }
}
