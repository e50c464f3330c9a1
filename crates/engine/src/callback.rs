//! Callback: attempts whose target may take them over and report later. What they need before they leave, and what becomes
//! of them once the target has said that it has them.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use executor::Callback;
use futures_util::FutureExt;
use model::handed::ACCEPTED;
use model::{Completion, Outcome, Report, Timestamp};
use store::{HandOver, StoreError};

use crate::attempt::Attempts;
use crate::board::Work;
use crate::desk::Gone;
use crate::payloads::Unsent;
use crate::tokens::Token;
use crate::vault::Sending;

/// How soon the store is tried again.
const STORE_AGAIN: Duration = Duration::from_millis(250);

/// How an attempt is sent, if nothing of the store is needed before it can leave: no payload, no key for tokens, no secret.
pub(crate) fn ready(attempts: &Attempts, work: &Work) -> Option<Sending> {
    if work.payload_left().is_some() || lacks_key(attempts, work) {
        return None;
    }
    attempts
        .vault
        .ready(work.job.sends_for(), &work.job.def.target)
}

/// Whether an attempt needs something of the store before it can leave: a key for tokens, if its target may report later; what it
/// is signed with; secrets.
fn waits_for_store(attempts: &Attempts, work: &Work) -> bool {
    lacks_key(attempts, work)
        || attempts
            .vault
            .lacks(work.job.sends_for(), &work.job.def.target)
}

fn lacks_key(attempts: &Attempts, work: &Work) -> bool {
    work.job.def.completion != Completion::Answer && !attempts.tokens.has_key()
}

/// Reads that. What is wrong for another reason than that the store is away shows when it is used.
async fn read(attempts: &Attempts, work: &Work) -> Result<(), StoreError> {
    if lacks_key(attempts, work) {
        attempts.tokens.find_key().await?;
    }
    let (tenant, target) = (work.job.sends_for(), &work.job.def.target);
    attempts.vault.fetch(tenant, target).await
}

/// The same; whether it is there now. A panic is a failure like others: an attempt that vanished in it would keep its claim for
/// as long as the node lives, and nobody would start its run.
async fn has_read(attempts: &Attempts, work: &Work) -> bool {
    let read = AssertUnwindSafe(read(attempts, work)).catch_unwind().await;
    if read.is_err() {
        attempts.metrics.panicked("attempt");
    }
    matches!(read, Ok(Ok(())))
}

/// Reads what an attempt needs of the store before it leaves. A store that is away costs it no attempt.
pub(crate) async fn prepare(attempts: &Attempts, work: &Work) -> Result<Option<Bytes>, Unsent> {
    let kill = &attempts.presence.kill;
    if waits_for_store(attempts, work) {
        let read = async {
            while !has_read(attempts, work).await {
                attempts.clock.sleep(STORE_AGAIN).await;
            }
        };
        tokio::select! {
            biased;
            () = kill.cancelled() => return Err(Unsent::Killed),
            () = work.stop.notified() => return Err(Unsent::HandedBack),
            () = read => {}
        }
    }
    attempts.payloads.payload_of(work, kill).await
}

/// Whether the target has taken the attempt over, and reports later.
pub(crate) fn is_taken_over(work: &Work, report: &Report) -> bool {
    let accepted = report.outcome == Outcome::Succeeded && report.status == Some(ACCEPTED);
    match work.job.def.completion {
        Completion::Answer => false,
        Completion::Callback { .. } => accepted,
    }
}

/// Passes the attempt on to whoever writes that the outside has it. Its claim is known here until then.
pub(crate) async fn hand_over(
    attempts: &Attempts,
    work: &Work,
    dispatched_at: Timestamp,
) -> Result<(), Gone> {
    let Work { run, job, .. } = work;
    let within = job.def.completion.heartbeat_within();
    if !attempts.board.handing_over(run.id, run.attempt) {
        return Ok(());
    }
    let taken_over = HandOver {
        run: run.id,
        job: run.job,
        attempt: run.attempt,
        node: Arc::clone(&attempts.by.node),
        dispatched_at,
        within: within.unwrap_or(Completion::HEARTBEAT_WITHIN_DEFAULT),
        timeout: job.def.timeout,
    };
    let sent = attempts.taken_over.send(taken_over).await;
    sent.map_err(|_| Gone)
}

/// What a target gets that may report later; none if its attempt completes with its answer.
pub(crate) async fn callback(
    attempts: &Attempts,
    work: &Work,
    dispatched_at: Timestamp,
) -> Result<Option<Callback>, StoreError> {
    let Work { run, job, .. } = work;
    if job.def.completion == Completion::Answer {
        return Ok(None);
    }
    let token = Token {
        attempt: run.attempt,
        dispatched_at,
    };
    let signed = AssertUnwindSafe(attempts.tokens.sign(run.id, token)).catch_unwind();
    let token = signed.await.unwrap_or_else(|_| {
        attempts.metrics.panicked("attempt");
        Err(StoreError::unavailable("the node failed on it"))
    })?;
    let report_url = format!("{}/v1/runs/{}/report", attempts.public_url, run.id);
    Ok(Some(Callback { token, report_url }))
}
