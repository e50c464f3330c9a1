//! Stopping in good order. Other nodes take over while this one still works: it says that it schedules no more,
//! fires and starts what is due within half a second, and gives up its shards at once, so that nothing is late.
//! Then nothing new starts, what runs gets its grace, and the rest is handed back.
//!
//! Nothing is decided further ahead: whether a slot overlaps with the run before it shows when it is due.
//!
//! All of it ends within the grace and a little more, whatever the store does: what could not be written then is found
//! by others, or at the next start, when this presence has lapsed.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use model::retry::LostClaim;
use model::shard::ShardSet;
use model::{Attempt, Outcome, Report, limits};
use store::{EngineStore, Hint, Settlement, StoreError};
use tracing::{info, warn};

use crate::board::Board;
use crate::clock::Clock;
use crate::desk::{By, Endings};
use crate::duty::describe;
use crate::fleet::Fleet;
use crate::nudge::Nudge;
use crate::presence::Presence;
use crate::shards::Leasing;

/// How long the last writes of fire may take.
const FIRE_OUT: Duration = Duration::from_secs(2);

/// How long the beat may take that announces the stop to others.
const ANNOUNCE: Duration = Duration::from_millis(500);

/// What the last settlements may take beyond the grace, while the store answers.
const LAST: Duration = Duration::from_secs(2);

/// How much longer than the grace all of it takes at most, before the presence is given up; and what that may take.
const MARGIN: Duration = Duration::from_secs(3);
const LEAVE: Duration = Duration::from_secs(1);

/// How often it is looked whether what is waited for has come.
const CHECK_EVERY: Duration = Duration::from_millis(5);

/// A node that stops.
pub(crate) struct Stop {
    pub board: Arc<Board>,
    pub store: Arc<dyn EngineStore>,
    pub clock: Arc<dyn Clock>,
    pub presence: Arc<Presence>,
    pub fleet: Arc<Fleet>,
    pub leasing: Arc<Leasing>,
    pub endings: Endings,
    pub by: By,
    pub fire: Nudge,
    pub fired_out: Nudge,
    pub beat: Nudge,
    pub beaten: Nudge,
}

impl Stop {
    /// Hands over, for as long as there is time.
    pub(crate) async fn wind_up(&self, grace: Duration) {
        tokio::select! {
            biased;
            () = self.hand_over(grace) => {}
            () = self.clock.sleep(grace + MARGIN) => {}
        }
    }

    /// Gives the presence up, so that nobody has to wait until it lapses, and says what was not written to the store.
    pub(crate) async fn leave(&self) {
        let (presence, unwritten) = (self.presence.id, self.board.unwritten());
        let answer = tokio::select! {
            biased;
            answer = self.store.leave(presence) => answer,
            () = self.clock.sleep(LEAVE) => Err(StoreError::unavailable("no answer in time")),
        };
        match answer {
            Ok(()) if unwritten == 0 => info!(%presence, "left"),
            Ok(()) => warn!(
                %presence,
                runs = unwritten,
                "left, but how these runs went could not be written: others, or the next start, take them up as lost"
            ),
            Err(error) => warn!(
                %presence,
                runs = unwritten,
                error = %describe(&error),
                "stopped without the store: how these runs went is not written, and others, or the next start, take them up as lost once this presence has lapsed"
            ),
        }
    }

    async fn hand_over(&self, grace: Duration) {
        let begun = self.clock.uptime();
        // One that the store has not answered for so long holds nothing any more that others could wait for.
        if self.fleet.others_schedule(self.presence.id) && self.presence.is_sure() {
            self.announce().await;
            self.fire_out().await;
            self.give_up_shards().await;
            self.start_what_waits().await;
        }
        self.board.close();
        // Fire hears of what it wrote before.
        self.fire_out().await;
        // Whoever came meanwhile is not kept waiting for attempts under way.
        self.give_up_shards().await;
        self.release().await;
        self.wait_for_attempts(begun, grace).await;
        // Settle is gone only with the presence.
        let _gone = self.endings.send_all(self.cut_off()).await;
        // What was just sent must reach the store; it is quick or the store is down.
        let begun = self.clock.uptime();
        while self.board.unwritten() > 0 && self.presence.is_sure() && self.since(begun) < LAST {
            self.release().await;
            self.clock.sleep(CHECK_EVERY).await;
        }
    }

    fn since(&self, begun: Duration) -> Duration {
        self.clock.uptime().saturating_sub(begun)
    }

    /// What runs gets its grace; what comes meanwhile is handed back.
    async fn wait_for_attempts(&self, begun: Duration, grace: Duration) {
        let mut said = false;
        let is_busy = || self.board.unwritten() > 0 || self.board.is_claiming_due();
        while is_busy() && self.since(begun) < grace {
            let attempts = self.board.running();
            if !said && attempts > 0 {
                info!(attempts, "waiting for attempts under way");
                said = true;
            }
            self.release().await;
            self.clock.sleep(CHECK_EVERY).await;
        }
    }

    async fn fire_out(&self) {
        if !self.presence.is_sure() {
            return;
        }
        self.presence.hand_over();
        // What was said before is not about now.
        let _before = self.fired_out.heard().now_or_never();
        self.fire.now();
        tokio::select! {
            biased;
            () = self.fired_out.heard() => {}
            () = self.clock.sleep(FIRE_OUT) => warn!("not everything due soon could be fired"),
        }
    }

    /// Says with a beat that shards do not fall to this node any more.
    async fn announce(&self) {
        // A beat under way may have been sent before the stop; the one after it says so.
        let heard = self.fleet.beats() + 2;
        let begun = self.clock.uptime();
        while self.fleet.beats() < heard && self.since(begun) < ANNOUNCE {
            self.beat.now();
            tokio::select! {
                biased;
                () = self.beaten.heard() => {}
                () = self.clock.sleep(ANNOUNCE) => {}
            }
        }
    }

    /// Lets the others have the shards, with as little of a gap as can be.
    async fn give_up_shards(&self) {
        if !self.presence.is_sure() {
            return;
        }
        let leasing = &self.leasing;
        let given_up = async {
            // The claim of some may just be in flight.
            let _one = leasing.one.lock().await;
            if leasing.shards.leases().epochs.is_empty() {
                Ok(None)
            } else {
                leasing.lease(&ShardSet::default()).await.map(Some)
            }
        };
        let answer = tokio::select! {
            biased;
            answer = given_up => answer,
            () = self.clock.sleep(FIRE_OUT) => Err(StoreError::unavailable("no answer in time")),
        };
        match answer {
            Ok(None) => return,
            Ok(Some(leases)) => leasing.hold(leases),
            Err(error) => warn!(error = %describe(&error), "could not give up its shards"),
        }
        leasing.shards.set_pausing(false);
        self.store.hint(&[Hint::Leases]);
    }

    /// What is claimed and due in a moment starts here.
    async fn start_what_waits(&self) {
        let begun = self.clock.uptime();
        while self.board.is_waiting() && self.since(begun) < limits::LEAD_HAND_OVER * 2 {
            self.clock.sleep(CHECK_EVERY).await;
        }
    }

    /// Hands back what has not been started, as soon as it is known: a write under way may still bring some.
    async fn release(&self) {
        // Settle is gone only with the presence.
        let _gone = self.endings.send_all(self.board.release_waiting()).await;
    }

    /// Attempts that did not finish in time: they may have run, so they are lost.
    fn cut_off(&self) -> Vec<Settlement> {
        let now = self.clock.now();
        let cut = self.board.cut_off().into_iter();
        let settlements = cut.map(|(run, job, dispatched_at)| {
            let claim = LostClaim {
                attempt: run.attempt,
                lost: run.lost,
                due_at: run.due_at.min(now),
                from: run.could_start_at(),
                ended_at: now,
                dispatched: dispatched_at.is_some(),
                delivery: job.def.delivery,
                window: job.def.catch_up.window,
            };
            let mut report = Report::of(Outcome::Lost);
            report.error = Some("the node stopped before the attempt ended".to_owned());
            let attempt = Attempt::new(run.attempt, dispatched_at, now, report);
            let settlement = Settlement {
                run,
                verdict: claim.verdict(now),
                attempt: Some(attempt.made_by(&self.by.node)),
            };
            self.by.trouble.observe_end(&job, &settlement);
            settlement
        });
        settlements.collect()
    }
}
