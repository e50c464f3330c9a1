//! Calls of many items. What one statement can do for all of them together is the fast path; what that leaves over takes
//! the slow path. There a batch that PostgreSQL refuses for its data is halved until the bad item stands alone, and that
//! one is refused by itself.

use std::collections::BTreeMap;

use super::fault::Done;
use super::store::PgStore;
use crate::StoreError;

/// Answers by the places of their items.
pub(super) type Answers<A> = BTreeMap<usize, A>;

/// What the fast path did. Why it was refused, or who was in its way, is found out on the slow path.
pub(super) fn fast<T: Default>(done: Done<T>) -> Result<T, StoreError> {
    match done {
        Err(fault) if fault.is_about_data() || fault.is_collision() => Ok(T::default()),
        done => done.map_err(StoreError::from),
    }
}

/// The items that have no answer yet.
pub(super) fn left<'a, I, A>(items: &'a [I], answers: &Answers<A>) -> Vec<&'a I> {
    let items = items.iter().enumerate();
    items
        .filter(|(place, _)| !answers.contains_key(place))
        .map(|(_, item)| item)
        .collect()
}

/// One answer for each item: those there were, and in the places between them those of what was left.
pub(super) fn merged<A>(count: usize, mut answers: Answers<A>, left: Vec<A>) -> Vec<A> {
    let mut left = left.into_iter();
    let answer = |place| answers.remove(&place).or_else(|| left.next());
    (0..count).filter_map(answer).collect()
}

impl PgStore {
    /// The slow path: `write` answers each item of a batch, in their order.
    pub(super) async fn in_halves<'a, I, A, F>(
        &self,
        items: &'a [I],
        write: impl Fn(&'a [I]) -> F,
        refused: impl Fn(String) -> A,
    ) -> Result<Vec<A>, StoreError>
    where
        F: Future<Output = Done<Vec<A>>>,
    {
        let mut answers = Vec::with_capacity(items.len());
        let mut batches = vec![items];
        while let Some(batch) = batches.pop() {
            match self.retried(|| write(batch)).await {
                Ok(done) => answers.extend(done),
                Err(fault) if fault.is_about_data() && batch.len() > 1 => {
                    let (first, second) = batch.split_at(batch.len() / 2);
                    batches.extend([second, first]);
                }
                Err(fault) if fault.is_about_data() => answers.push(refused(fault.why())),
                Err(fault) => return Err(fault.into()),
            }
        }
        Ok(answers)
    }
}
