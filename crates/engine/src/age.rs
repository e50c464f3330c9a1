//! On time or backlog: what is due about now goes before what has been due for a while. After an outage the backlog may
//! be of any size; it must not make late what would be on time.

use std::ops::Add;

use model::{Timestamp, limits};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Age {
    OnTime,
    /// Overdue by more than `BACKLOG_AFTER`.
    Backlog,
}

impl Age {
    /// In the order of precedence.
    pub(crate) const ALL: [Self; 2] = [Self::OnTime, Self::Backlog];

    pub(crate) fn of(due_at: Timestamp, now: Timestamp) -> Self {
        if due_at < on_time_from(now) {
            Self::Backlog
        } else {
            Self::OnTime
        }
    }
}

/// The first due time that is on time.
pub(crate) fn on_time_from(now: Timestamp) -> Timestamp {
    now.minus(limits::BACKLOG_AFTER)
}

/// One for each age.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ByAge<T> {
    pub on_time: T,
    pub backlog: T,
}

impl<T> ByAge<T> {
    pub(crate) fn get(&self, age: Age) -> &T {
        match age {
            Age::OnTime => &self.on_time,
            Age::Backlog => &self.backlog,
        }
    }

    pub(crate) fn get_mut(&mut self, age: Age) -> &mut T {
        match age {
            Age::OnTime => &mut self.on_time,
            Age::Backlog => &mut self.backlog,
        }
    }
}

impl<T: Copy + Add<Output = T>> ByAge<T> {
    pub(crate) fn sum(&self) -> T {
        self.on_time + self.backlog
    }
}
