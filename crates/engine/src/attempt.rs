//! One attempt after another: deliver, report, take the next. A task that ends an attempt starts
//! the next one itself, so that a busy lane needs no hand-over.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use bytes::Bytes;
use executor::{Progress, Stopwatch, WorkOrder};
use futures_util::FutureExt;
use model::breaker::{Signal, Turned};
use model::rollup::Count;
use model::{AttemptNo, Completion, Outcome, Report, RunId, Target, Timestamp, Verdict, limits};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use store::{HandOver, StoreError};
use tokio::sync::mpsc;

use crate::age::Age;
use crate::board::{Board, Call, Start, Work};
use crate::callback::{callback, hand_over, is_taken_over, prepare, ready};
use crate::clock::Clock;
use crate::desk::{By, Ended, Ending, Endings, Gone};
use crate::executors::Executors;
use crate::lateness::Lateness;
use crate::length::{timed_out, watch_length, watch_start};
use crate::live_log::LiveLog;
use crate::lock;
use crate::metrics::Metrics;
use crate::nudge::Nudge;
use crate::payloads::{Payloads, Unsent};
use crate::presence::Presence;
use crate::run_logs::RunLogs;
use crate::tokens::Tokens;
use crate::vault::{Hidden, Sending, Signing, Vault, Way, template};

/// What attempts work with.
pub(crate) struct Attempts {
    pub board: Arc<Board>,
    pub clock: Arc<dyn Clock>,
    /// The same clock, for executors.
    pub stopwatch: Arc<dyn Stopwatch>,
    pub presence: Arc<Presence>,
    pub executors: Arc<Executors>,
    pub payloads: Arc<Payloads>,
    pub vault: Arc<Vault>,
    pub endings: Endings,
    /// Where attempts go that their targets have taken over.
    pub taken_over: mpsc::Sender<HandOver>,
    pub tokens: Arc<Tokens>,
    pub logs: Arc<RunLogs>,
    pub public_url: Arc<str>,
    pub by: By,
    pub metrics: Metrics,
    pub lateness: Lateness,
    pub chance: Chance,
    /// Marks are written of runs that somebody asked for.
    pub marks: Nudge,
    /// Attempts that may not start are handed back.
    pub dispatch: Nudge,
    /// Runs that waited for an origin may be woken.
    pub wake: Nudge,
}

/// Where chance comes from.
pub(crate) struct Chance(Mutex<StdRng>);

impl Chance {
    pub(crate) fn of_seed(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }
}

impl Attempts {
    /// Starts as many tasks as there are attempts to start and room to run them. Answers when to look again.
    pub(crate) fn start_due(self: &Arc<Self>) -> Option<Timestamp> {
        let (now, uptime) = (self.clock.now(), self.clock.uptime());
        let is_sure = self.presence.is_sure_at(uptime);
        let (starts, next) = self.board.start_due(now, uptime, is_sure);
        for start in starts {
            tokio::spawn(run(Arc::clone(self), start));
        }
        next
    }

    /// Those that may not start wait in the store.
    pub(crate) async fn hand_back_refused(&self) {
        let refused = self.board.take_refused();
        // Settle is gone only with the presence.
        let _gone = self.endings.send_all(refused).await;
    }

    /// What a task that just ended an attempt does next.
    fn next(&self, ended: Age) -> Option<Start> {
        let (now, uptime) = (self.clock.now(), self.clock.uptime());
        let is_sure = self.presence.is_sure_at(uptime);
        let (next, has_refused) = self.board.next(ended, now, uptime, is_sure);
        if has_refused {
            self.dispatch.now();
        }
        next
    }

    fn chance(&self) -> f64 {
        let Chance(chance) = &self.chance;
        lock(chance).random()
    }

    fn turned(&self, turned: Option<Turned>) {
        if turned.is_some() {
            self.dispatch.now();
            self.wake.now();
        }
    }

    /// A call is over: what that says of its origin.
    fn called(&self, of: (RunId, AttemptNo), signal: Option<Signal>, now: Timestamp) {
        let call = Call {
            signal,
            now,
            uptime: self.clock.uptime(),
            chance: &|| self.chance(),
        };
        self.turned(self.board.called(of, call));
    }

    /// The same, and with its call the attempt has ended. If none was made, it did not leave.
    fn ended(
        &self,
        of: (RunId, AttemptNo),
        signal: Option<Signal>,
        (verdict, at): (impl FnOnce() -> Verdict, Timestamp),
    ) -> Option<Verdict> {
        let call = Call {
            signal,
            now: at,
            uptime: self.clock.uptime(),
            chance: &|| self.chance(),
        };
        let (verdict, turned) = self.board.ended(of, Some(call), (verdict, at), None);
        self.turned(turned);
        verdict
    }
}

async fn run(attempts: Arc<Attempts>, first: Start) {
    let mut next = Some(first);
    while let Some(start) = next.take() {
        let is_requested = start.is_requested();
        let Start {
            work,
            age,
            at,
            from,
        } = start;
        let mut sending = ready(&attempts, &work);
        if sending.is_none() {
            attempts.board.set_dispatched(work.key(), None);
        }
        let prepared = match sending {
            Some(_) => Ok(work.run.payload.clone()),
            None => prepare(&attempts, &work).await,
        };
        let payload = match prepared {
            Ok(payload) => payload,
            Err(Unsent::Killed) => return,
            Err(Unsent::HandedBack) => {
                if hand_back(&attempts, work).await.is_err() {
                    return;
                }
                next = attempts.next(age);
                continue;
            }
        };
        let Some(dispatched_at) = leaves(&attempts, &work, (at, from), &mut sending).await else {
            return;
        };
        if dispatched_at < work.run.due_at {
            // The clock went back while it waited: whoever claims it next starts it when it is due again.
            if hand_back(&attempts, work).await.is_err() {
                return;
            }
            next = attempts.next(age);
            continue;
        }
        attempts.metrics.dispatched.inc();
        if is_requested {
            // Whoever wants it may be watching; and only now it is known when it was dispatched.
            attempts.marks.now();
        }
        watch_start(&attempts, &work, dispatched_at);
        let prepared = (payload, sending);
        let Some(report) = deliver(&attempts, &work, prepared, dispatched_at).await else {
            return;
        };
        attempts.executors.count_executed(&work.job, report.outcome);
        if end(&attempts, work, report, dispatched_at).await.is_err() {
            return;
        }
        next = attempts.next(age);
    }
}

/// The moment at which an attempt is dispatched: when its turn came, if nothing has kept it since. It may be before the run
/// is due, by a clock that went back meanwhile: then it is not dispatched. None when the presence has ended. How it is sent is
/// known from its turn on only if nothing has kept it.
async fn leaves(
    attempts: &Attempts,
    work: &Work,
    (at, from): (Timestamp, Timestamp),
    sending: &mut Option<Sending>,
) -> Option<Timestamp> {
    if !attempts.presence.is_sure() {
        *sending = None;
        attempts.board.set_dispatched(work.key(), None);
        if !is_still_here(attempts).await {
            return None;
        }
    }
    if attempts.presence.kill.is_cancelled() {
        return None;
    }
    let waited = sending.is_none();
    let micros = attempts.clock.now_micros();
    let left_at = if waited {
        Timestamp::from_millis(micros / 1_000)
    } else {
        at
    };
    if left_at < work.run.due_at {
        return Some(left_at);
    }
    let late = attempts.lateness.observe(work, from, micros);
    if !work.caught_up {
        let count = (work.run.tenant, Count::Lateness(late));
        attempts.metrics.rollups.count(left_at, &[count]);
    }
    if waited {
        attempts.board.set_dispatched(work.key(), Some(left_at));
    }
    Some(left_at)
}

/// Gives up the claim of an attempt that did not leave: whoever claims its run next works on its job as it stands then.
async fn hand_back(attempts: &Attempts, work: Arc<Work>) -> Result<(), Gone> {
    let now = attempts.clock.now();
    match attempts.ended(work.key(), None, (|| Verdict::Release, now)) {
        Some(verdict) => {
            let settlement = work.undispatched(verdict, now);
            attempts.endings.send(Ending::settled(settlement)).await
        }
        None => Ok(()),
    }
}

/// Passes on what came of an attempt: that its target has taken it over, or how it ended.
async fn end(
    attempts: &Attempts,
    work: Arc<Work>,
    report: Report,
    dispatched_at: Timestamp,
) -> Result<(), Gone> {
    let settled_at = attempts.clock.now();
    let (key, signal) = (work.key(), Signal::of(&report));
    if is_taken_over(&work, &report) {
        attempts.called(key, signal, settled_at);
        return hand_over(attempts, &work, dispatched_at).await;
    }
    let ended = (|| verdict(attempts, &work, &report, settled_at), settled_at);
    let verdict = if Payloads::takes_room(&report) {
        // Others may call meanwhile.
        attempts.called(key, signal, settled_at);
        let kill = &attempts.presence.kill;
        let Ok(room) = attempts.payloads.output_room(&report, kill).await else {
            return Err(Gone);
        };
        attempts.board.ended(key, None, ended, room).0
    } else {
        attempts.ended(key, signal, ended)
    };
    if let Some(verdict) = verdict {
        let ended = Ended {
            work,
            report,
            verdict,
            dispatched_at,
            settled_at,
        };
        attempts.endings.send(Ending::of(ended)).await?;
    }
    Ok(())
}

/// What follows from how the attempt ended, if it was not to be cancelled.
fn verdict(attempts: &Attempts, work: &Work, report: &Report, settled_at: Timestamp) -> Verdict {
    let (run, retry) = (&work.run, &work.job.def.retry);
    // Most succeed, and those need no chance.
    match report.outcome {
        Outcome::Succeeded => Verdict::Succeed,
        Outcome::Failed | Outcome::TimedOut | Outcome::Lost | Outcome::Cancelled => {
            retry.verdict(run.attempt, run.lost, report, settled_at, attempts.chance())
        }
    }
}

/// Right before something leaves the node: a machine that stood still may have lost its presence, and
/// does not know it yet. Waits for the next beat; false when the presence has ended.
async fn is_still_here(attempts: &Attempts) -> bool {
    let Attempts {
        presence, clock, ..
    } = attempts;
    while !presence.is_sure() {
        tokio::select! {
            biased;
            () = presence.kill.cancelled() => return false,
            () = clock.sleep(limits::LEAD_MIN) => {}
        }
    }
    !presence.kill.is_cancelled()
}

/// What an executor delivers.
async fn order_of(
    attempts: &Attempts,
    work: &Work,
    payload: Option<Bytes>,
    dispatched_at: Timestamp,
) -> Result<WorkOrder, StoreError> {
    let Work { run, job, .. } = work;
    Ok(WorkOrder {
        run: run.id,
        attempt: run.attempt,
        slot: run.slot,
        job: Arc::clone(job),
        payload,
        headers: None,
        env: None,
        trace: run.trace.as_deref().copied(),
        sent_at: dispatched_at,
        signer: None,
        path: None,
        identity: None,
        proxy: None,
        callback: callback(attempts, work, dispatched_at).await?,
        node: Arc::clone(&attempts.by.node),
        progress: Progress::new(Arc::clone(&attempts.stopwatch)),
    })
}

/// What an attempt is sent with: its payload, and how, if that is known.
type Prepared = (Option<Bytes>, Option<Sending>);

/// None when the presence ended first: then nobody may report. However it ends, what is not shown is taken out.
async fn deliver(
    attempts: &Attempts,
    work: &Work,
    prepared: Prepared,
    dispatched_at: Timestamp,
) -> Option<Report> {
    let hidden = Arc::new(Hidden::default());
    if work.job.def.completion != Completion::Answer {
        attempts.vault.will_send(work.key(), &hidden);
    }
    let report = deliver_as_is(attempts, work, prepared, dispatched_at, &hidden).await?;
    Some(hidden.take_out(report))
}

async fn deliver_as_is(
    attempts: &Attempts,
    work: &Work,
    (payload, sending): Prepared,
    dispatched_at: Timestamp,
    hidden: &Arc<Hidden>,
) -> Option<Report> {
    let Work { run, job, stop, .. } = work;
    let Some(executor) = attempts.executors.of(job) else {
        let kind = job.def.target.kind();
        return Some(Report::failed(format!(
            "this node has no executor for {kind} targets"
        )));
    };
    let mut order = match order_of(attempts, work, payload, dispatched_at).await {
        Ok(order) => order,
        Err(error) => {
            let why = format!("no token can be made for it: {error}");
            return Some(Report::failed(why));
        }
    };
    let progress = Arc::clone(&order.progress);
    let vault = &attempts.vault;
    let delivery = async move {
        let tenant = order.job.sends_for();
        let sending = match sending.or_else(|| vault.sending_known(tenant)) {
            Some(sending) => sending,
            None => Box::pin(vault.sending(tenant)).await,
        };
        // A command is neither signed nor sent through anything.
        if order.job.def.target.has_origin()
            && let Err(why) = set_sending(&mut order, sending)
        {
            return Report::failed(why);
        }
        if template::is_in(&order.job.def.target) {
            // Boxed because few need it: the usual delivery stays a small future.
            Box::pin(vault.deliver(Arc::clone(executor), order, run, hidden)).await
        } else {
            hidden.set_own(&order.job.def.target);
            executor.execute(order).await
        }
    };
    let log = live_log(attempts, work, &progress, hidden);
    let done = {
        let mut delivery = pin!(AssertUnwindSafe(delivery).catch_unwind());
        // Most that can end at once does: then no timer and no watch is set up.
        match futures_util::poll!(&mut delivery) {
            Poll::Ready(done) => done,
            Poll::Pending => tokio::select! {
                biased;
                done = &mut delivery => done,
                () = attempts.presence.kill.cancelled() => return None,
                () = stop.notified() => Ok(progress.lay_into(Report::of(Outcome::Cancelled))),
                () = attempts.clock.sleep(job.def.timeout) => Ok(timed_out(job, &progress)),
                never = watch_length(attempts, work, dispatched_at) => match never {},
            },
        }
    };
    if let Some(log) = log {
        log.end().await;
    }
    Some(done.unwrap_or_else(|_| {
        attempts.metrics.panicked("executor");
        Report::failed("the executor failed on this attempt")
    }))
}

/// What a command writes is in its run's log while it runs. What others answer is there at once.
fn live_log(
    attempts: &Attempts,
    work: &Work,
    progress: &Arc<Progress>,
    hidden: &Arc<Hidden>,
) -> Option<LiveLog> {
    match work.job.def.target {
        Target::Http(_) => None,
        Target::Shell(_) | Target::Python(_) => {
            let ways = (Arc::clone(&attempts.logs), Arc::clone(&attempts.clock));
            let (progress, hidden) = (Arc::clone(progress), Arc::clone(hidden));
            Some(LiveLog::begin(work.key(), ways, progress, hidden))
        }
    }
}

/// How an attempt leaves. Whoever checks signatures would refuse an unsigned one, and whoever forgot to must not get it; past
/// its tenant's proxy none is sent at all.
fn set_sending(order: &mut WorkOrder, sending: Sending) -> Result<(), String> {
    match sending.signing {
        Signing::Unsigned => {}
        Signing::By(signer) => order.signer = Some(signer),
        Signing::Closed(why) => {
            return Err(format!("not sent, because it could not be signed: {why}"));
        }
    }
    match sending.way {
        Way::Direct => {}
        Way::Through(proxy) => order.proxy = Some(proxy),
        Way::Closed(why) => {
            return Err(format!("not sent, because of its way out: {why}"));
        }
    }
    Ok(())
}
