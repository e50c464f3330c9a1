//! Waiting for the holders of marked claims. Only they know what they dispatched; they answer in the
//! store, and the caller reads it there.

use std::time::Duration;

use model::{Mark, PresenceId, Run, RunId, RunState, TenantId, limits};

use crate::api::Api;

const POLL_FIRST: Duration = Duration::from_millis(2);
const POLL_MAX: Duration = Duration::from_millis(100);

/// What the holders' marks want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// As if never fired.
    TakeBack,
    /// An end.
    Cancel,
}

/// What became of the runs that were marked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Withdrawn {
    /// They did not, and will not, reach their target.
    pub withdrawn: Vec<RunId>,
    /// They were on their way before they were marked.
    pub dispatched: Vec<RunId>,
    /// Their holder has not answered in time; the mark stays.
    pub unconfirmed: Vec<RunId>,
}

/// Nudges the holders and waits until all have answered, or for `WITHDRAW_WAIT`.
pub(super) async fn confirm(
    api: &Api,
    tenant: TenantId,
    marked: Vec<RunId>,
    wish: Wish,
) -> Withdrawn {
    let mut answer = Withdrawn::default();
    if marked.is_empty() {
        return answer;
    }
    api.engine.nudge_holder();
    let clock = api.engine.clock();
    let since = clock.uptime();
    let mut waiting = marked;
    let mut pause = POLL_FIRST;
    loop {
        let ids: Vec<_> = waiting.iter().map(|id| (tenant, *id)).collect();
        // The change is written: a store that cannot be read now only leaves us without news.
        if let Ok(read) = api.store.get_runs(&ids).await {
            let mut still = Vec::new();
            for (id, run) in waiting.into_iter().zip(read) {
                match run.map(|run| to_answer(run.as_ref(), wish)) {
                    Ok(News::Withdrawn) => answer.withdrawn.push(id),
                    Ok(News::Dispatched) => answer.dispatched.push(id),
                    Ok(News::None) | Err(_) => still.push(id),
                }
            }
            waiting = still;
        }
        if waiting.is_empty() || clock.uptime().saturating_sub(since) >= limits::WITHDRAW_WAIT {
            answer.unconfirmed = waiting;
            return answer;
        }
        clock.sleep(pause).await;
        pause = (pause * 2).min(POLL_MAX);
    }
}

enum News {
    None,
    Withdrawn,
    Dispatched,
}

fn to_answer(run: Option<&Run>, wish: Wish) -> News {
    let Some(run) = run else {
        return News::Withdrawn;
    };
    if run.claim == Some(PresenceId::OUTSIDE) {
        // Whoever has it hears of it with the next heartbeat, which may take as long as it may be silent.
        return News::Dispatched;
    }
    match (run.state, wish) {
        // It ended as marked, but an attempt that was cut off may have reached its target.
        (RunState::Cancelled, _) if run.dispatched_at.is_some() => News::Dispatched,
        (RunState::Cancelled, _) => News::Withdrawn,
        (RunState::Succeeded | RunState::Dead | RunState::Skipped, _) => News::Dispatched,
        (RunState::Ready | RunState::Retrying | RunState::Running, Wish::Cancel) => News::None,
        (RunState::Running | RunState::Retrying, Wish::TakeBack) => News::Dispatched,
        (RunState::Ready, Wish::TakeBack) => match run.mark {
            Some(Mark::TooLate) => News::Dispatched,
            Some(Mark::TakeBack | Mark::Cancel(_)) | None => News::None,
        },
    }
}

#[cfg(test)]
mod tests {
    use model::schedule::Schedule;
    use model::{Definition, Job, JobId, Slot, Target, Timestamp};

    use super::*;

    #[test]
    fn a_run_that_was_cut_off_on_its_way_is_not_called_withdrawn() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let def = Definition::new(
            Schedule::from(Slot(now)),
            Target::http("http://localhost/").unwrap(),
        );
        let job = Job::new(JobId::new(now, [1; 10]), TenantId::DEFAULT, None, def, now);
        let mut run = Run {
            state: RunState::Cancelled,
            ..Run::of_slot(&job, Slot(now))
        };
        assert!(matches!(
            to_answer(Some(&run), Wish::Cancel),
            News::Withdrawn
        ));
        run.dispatched_at = Some(now);
        assert!(matches!(
            to_answer(Some(&run), Wish::Cancel),
            News::Dispatched
        ));
    }
}
