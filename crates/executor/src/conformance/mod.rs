//! What every executor promises, whatever it delivers to. An executor's tests say how its targets are made to succeed, fail,
//! flood, hang and misbehave, and get one test per promise:
//!
//! ```text
//! executor::conformance_suite!(async || MySubject::new().await);
//! ```
//!
//! Deadlines and cancels are the caller's: it drops the delivery, and that must end it. A node contains panics of executors
//! (`engine/src/attempt.rs`), so one costs an attempt and not the node; but no target may bring one about, and the suite names
//! the order that did. Other crates have the suite with the feature `conformance`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    async_fn_in_trait,
    reason = "a suite of tests: what does not hold panics, and each runs on its own thread"
)]

use std::sync::Arc;
use std::time::Duration;

use model::{AttemptNo, JobId, Outcome, Report, RetryHint, RunId, limits};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::{Executor, WorkOrder};

/// An executor, and targets of its kind.
pub trait Subject {
    fn executor(&self) -> Arc<dyn Executor>;
    /// The subject lets go of its executor.
    fn drop_executor(&mut self);
    fn succeeding(&self) -> WorkOrder;
    fn failing(&self) -> WorkOrder;
    /// One whose output never ends, and how much of it is to be kept.
    fn flooding(&self) -> (WorkOrder, usize);
    /// One that never ends.
    fn hanging(&self) -> WorkOrder;
    /// Failures that say something about trying again, and what.
    fn classified(&self) -> Vec<(WorkOrder, RetryHint)>;
    /// Targets that keep to no rule.
    async fn hostile(&self) -> Vec<WorkOrder>;
    /// What the succeeding target learned: whose attempt it was.
    fn delivered(&self) -> Vec<(JobId, RunId, AttemptNo)>;
    /// Returns when as many deliveries to the hanging target have begun.
    async fn begun(&self, count: usize);
    /// Returns when as many of them have ended, as the target sees it.
    async fn ended(&self, count: usize);
    /// Returns when nothing is open any more at any target.
    async fn left_alone(&self);
}

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(100);
const MANY: usize = 100;

async fn report_of(subject: &impl Subject, order: WorkOrder) -> Report {
    let (executor, target) = (subject.executor(), format!("{:?}", order.job.def.target));
    // A task of its own contains what goes wrong, as a node does.
    let mut delivery = JoinSet::new();
    delivery.spawn(async move { executor.execute(order).await });
    match timeout(LONG, delivery.join_next()).await {
        Ok(Some(Ok(report))) => report,
        Ok(Some(Err(error))) => panic!("the executor failed on {target}: {error}"),
        Ok(None) | Err(_) => panic!("nothing came of {target}"),
    }
}

/// One line that can be stored and shown.
#[track_caller]
fn check_line(error: Option<&str>) {
    let error = error.unwrap();
    assert!(
        !error.is_empty() && error.len() <= limits::ERROR_MAX,
        "{error}"
    );
    assert!(error.chars().all(|c| !c.is_control()), "{error:?}");
}

pub async fn success_is_reported(subject: impl Subject) {
    let report = report_of(&subject, subject.succeeding()).await;
    assert_eq!((report.outcome, report.error), (Outcome::Succeeded, None));
    assert!(!report.truncated, "nothing was cut");
}

pub async fn the_target_learns_whose_attempt_it_is(subject: impl Subject) {
    let order = WorkOrder {
        attempt: AttemptNo(7),
        ..subject.succeeding()
    };
    let expected = (order.job.id, order.run, order.attempt);
    report_of(&subject, order).await;
    assert_eq!(subject.delivered(), [expected]);
}

pub async fn a_failure_says_why_in_one_line(subject: impl Subject) {
    let report = report_of(&subject, subject.failing()).await;
    assert_eq!(report.outcome, Outcome::Failed);
    check_line(report.error.as_deref());
}

pub async fn a_failure_says_whether_trying_again_can_help(subject: impl Subject) {
    for (order, retry) in subject.classified() {
        let report = report_of(&subject, order).await;
        assert_eq!(
            (report.outcome, report.retry),
            (Outcome::Failed, retry),
            "{:?}",
            report.error
        );
        check_line(report.error.as_deref());
    }
}

pub async fn no_more_output_is_kept_than_was_requested(subject: impl Subject) {
    let (order, output_max) = subject.flooding();
    let report = report_of(&subject, order).await;
    assert_eq!(
        (report.output.len(), report.truncated),
        (output_max, true),
        "and it says so"
    );
}

pub async fn a_dropped_delivery_ends_at_its_target(subject: impl Subject) {
    let executor = subject.executor();
    let delivery = executor.execute(subject.hanging());
    tokio::select! {
        biased;
        report = delivery => panic!("it ended by itself: {report:?}"),
        () = subject.begun(1) => {}
    }
    timeout(LONG, subject.ended(1)).await.unwrap();
}

pub async fn a_deadline_ends_a_delivery_wherever_it_is(subject: impl Subject) {
    let executor = subject.executor();
    let delivery = executor.execute(subject.hanging());
    assert!(timeout(SHORT, delivery).await.is_err(), "it never ends");
    // By then it had begun, or never will.
    let begun = timeout(SHORT, subject.begun(1)).await.is_ok();
    if begun {
        timeout(LONG, subject.ended(1)).await.unwrap();
    }
    let report = report_of(&subject, subject.succeeding()).await;
    assert_eq!(report.outcome, Outcome::Succeeded, "others go on");
}

pub async fn whatever_a_target_does_a_report_comes_of_it(subject: impl Subject) {
    for order in subject.hostile().await {
        let report = report_of(&subject, order).await;
        if report.outcome != Outcome::Succeeded {
            check_line(report.error.as_deref());
        }
    }
    let report = report_of(&subject, subject.succeeding()).await;
    assert_eq!(report.outcome, Outcome::Succeeded, "and others go on");
}

pub async fn nothing_is_left_behind_when_it_goes(mut subject: impl Subject) {
    report_of(&subject, subject.succeeding()).await;
    report_of(&subject, subject.failing()).await;
    let executor = subject.executor();
    let hanging = tokio::spawn({
        let order = subject.hanging();
        async move { executor.execute(order).await }
    });
    timeout(LONG, subject.begun(1)).await.unwrap();
    hanging.abort();
    let _ = hanging.await;
    subject.drop_executor();
    timeout(LONG, subject.left_alone()).await.unwrap();
}

pub async fn those_that_hang_hold_up_no_others(subject: impl Subject) {
    let executor = subject.executor();
    let mut hanging = JoinSet::new();
    for _ in 0..MANY {
        let (executor, order) = (executor.clone(), subject.hanging());
        hanging.spawn(async move { executor.execute(order).await });
    }
    timeout(LONG, subject.begun(MANY)).await.unwrap();
    for _ in 0..MANY {
        let report = timeout(LONG, executor.execute(subject.succeeding()))
            .await
            .unwrap();
        assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
    }
    hanging.abort_all();
    timeout(LONG, subject.ended(MANY)).await.unwrap();
}

/// One test per promise, for the subject that the closure makes.
#[macro_export]
macro_rules! conformance_suite {
    ($subject:expr) => {
        $crate::conformance_suite!($subject;
            success_is_reported
            the_target_learns_whose_attempt_it_is
            a_failure_says_why_in_one_line
            a_failure_says_whether_trying_again_can_help
            no_more_output_is_kept_than_was_requested
            a_dropped_delivery_ends_at_its_target
            a_deadline_ends_a_delivery_wherever_it_is
            whatever_a_target_does_a_report_comes_of_it
            nothing_is_left_behind_when_it_goes
            those_that_hang_hold_up_no_others
        );
    };
    ($subject:expr; $($promise:ident)*) => {
        $(
            #[tokio::test]
            async fn $promise() {
                let subject = $subject;
                $crate::conformance::$promise(subject().await).await;
            }
        )*
    };
}
