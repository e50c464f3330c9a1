//! Whether a store takes its fast paths. In tests also how often each was taken: one that never is proves nothing when it is
//! compared with the core.

#[cfg(test)]
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

#[derive(Debug, Clone)]
pub(crate) struct FastPaths {
    /// Off only where a test compares them with the slow ones.
    pub are_on: bool,
    #[cfg(test)]
    pub taken: Taken,
}

impl FastPaths {
    pub(crate) fn on() -> Self {
        Self {
            are_on: true,
            #[cfg(test)]
            taken: Taken::default(),
        }
    }

    /// One of them has written so many.
    pub(crate) fn wrote(&self, name: &'static str, count: usize) {
        #[cfg(test)]
        self.taken.add(name, count);
        #[cfg(not(test))]
        let _ = (name, count);
    }
}

/// How many were written by each, by its name.
#[cfg(test)]
#[derive(Debug, Clone, Default)]
pub(crate) struct Taken(Arc<Mutex<BTreeMap<&'static str, usize>>>);

#[cfg(test)]
impl Taken {
    fn add(&self, name: &'static str, count: usize) {
        *self.0.lock().unwrap().entry(name).or_default() += count;
    }

    /// Fails unless each of these has written something.
    pub(crate) fn were_all_taken(&self, names: &[&str]) {
        let counts = self.0.lock().unwrap();
        let has_written = |name: &&str| counts.get(*name).is_some_and(|count| *count > 0);
        assert!(names.iter().all(has_written), "{counts:?}");
    }
}
