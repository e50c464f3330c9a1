//! What every executor promises, whatever it delivers to. An executor's tests say how its targets
//! are made to succeed, fail, flood and hang, and get one test per promise:
//!
//! ```text
//! conformance_suite!(async || MySubject::new().await);
//! ```

use std::sync::Arc;
use std::time::Duration;

use model::{Outcome, limits};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::{Executor, WorkOrder};

/// An executor, and targets of its kind.
pub(crate) trait Subject {
    fn executor(&self) -> Arc<dyn Executor>;
    fn succeeding(&self) -> WorkOrder;
    fn failing(&self) -> WorkOrder;
    /// One whose output never ends, and how much of it is to be kept.
    fn flooding(&self) -> (WorkOrder, usize);
    /// One that never ends.
    fn hanging(&self) -> WorkOrder;
    /// Returns when as many deliveries to the hanging target have begun.
    async fn begun(&self, count: usize);
    /// Returns when as many of them have ended, as the target sees it.
    async fn ended(&self, count: usize);
}

const LONG: Duration = Duration::from_secs(20);
const MANY: usize = 100;

pub(crate) async fn success_is_reported(subject: impl Subject) {
    let report = timeout(LONG, subject.executor().execute(subject.succeeding()))
        .await
        .unwrap();
    assert_eq!((report.outcome, report.error), (Outcome::Succeeded, None));
}

pub(crate) async fn a_failure_says_why_in_one_line(subject: impl Subject) {
    let report = timeout(LONG, subject.executor().execute(subject.failing()))
        .await
        .unwrap();
    assert_eq!(report.outcome, Outcome::Failed);
    let error = report.error.unwrap();
    assert!(
        !error.is_empty() && error.len() <= limits::ERROR_MAX,
        "{error}"
    );
    assert!(error.chars().all(|c| !c.is_control()), "{error:?}");
}

pub(crate) async fn no_more_output_is_kept_than_was_asked_for(subject: impl Subject) {
    let (order, output_max) = subject.flooding();
    let report = timeout(LONG, subject.executor().execute(order))
        .await
        .unwrap();
    assert_eq!(report.output.len(), output_max);
}

pub(crate) async fn a_dropped_delivery_ends_at_its_target(subject: impl Subject) {
    let executor = subject.executor();
    let delivery = executor.execute(subject.hanging());
    tokio::select! {
        biased;
        report = delivery => panic!("it ended by itself: {report:?}"),
        () = subject.begun(1) => {}
    }
    timeout(LONG, subject.ended(1)).await.unwrap();
}

pub(crate) async fn those_that_hang_hold_up_no_others(subject: impl Subject) {
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
macro_rules! conformance_suite {
    ($subject:expr) => {
        $crate::conformance::conformance_suite!($subject;
            success_is_reported
            a_failure_says_why_in_one_line
            no_more_output_is_kept_than_was_asked_for
            a_dropped_delivery_ends_at_its_target
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
pub(crate) use conformance_suite;
