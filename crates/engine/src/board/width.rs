//! Width: how many attempts are under way at once.

use std::time::Duration;

use model::limits;

/// How many attempts may be under way: few while they end soon, more and more while they do not.
#[derive(Debug)]
pub(super) struct Width {
    tasks: usize,
    /// Attempts ended since the last look; by uptime.
    ended: usize,
    checked_at: Duration,
}

impl Default for Width {
    fn default() -> Self {
        Self {
            tasks: limits::WIDTH_MIN,
            ended: 0,
            checked_at: Duration::ZERO,
        }
    }
}

impl Width {
    pub(super) fn tasks(&self) -> usize {
        self.tasks
    }

    /// An attempt has ended.
    pub(super) fn ended(&mut self) {
        self.ended += 1;
    }

    /// How many may be, by now.
    pub(super) fn now(&mut self, uptime: Duration, crowded: bool) -> usize {
        if !crowded {
            *self = Self {
                checked_at: uptime,
                ..Self::default()
            };
        } else if uptime.saturating_sub(self.checked_at) >= limits::WIDEN_EVERY {
            if self.ended < self.tasks / 8 {
                self.tasks += limits::WIDTH_MIN;
            } else {
                self.tasks = self
                    .tasks
                    .saturating_sub(limits::WIDTH_MIN / 4)
                    .max(limits::WIDTH_MIN);
            }
            (self.ended, self.checked_at) = (0, uptime);
        }
        self.tasks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widen(width: &mut Width, tick: u32, ended: usize) -> usize {
        width.ended += ended;
        width.now(limits::WIDEN_EVERY * tick, true)
    }

    #[test]
    fn slow_targets_get_more_attempts_and_quick_ones_fewer() {
        let mut width = Width::default();
        assert_eq!(widen(&mut width, 1, 400), limits::WIDTH_MIN);
        assert_eq!(widen(&mut width, 2, 3), limits::WIDTH_MIN * 2);
        assert_eq!(widen(&mut width, 3, 0), limits::WIDTH_MIN * 3);
        assert!(widen(&mut width, 4, 900) < limits::WIDTH_MIN * 3);
        assert_eq!(width.now(Duration::MAX, false), limits::WIDTH_MIN);
    }
}
