//! What a product is built with in the place of bugs put in on purpose: none.

use model::{Job, Observer, Timestamp};
use store::{Firing, Settlement};

#[derive(Debug, Clone, Copy, Default)]
pub enum Flaw {
    #[default]
    None,
}

impl Flaw {
    pub fn observer(self) -> Observer {
        Observer::default()
    }

    pub fn skips_renewal(self) -> bool {
        false
    }

    pub fn skips_presence_check(self) -> bool {
        false
    }

    pub fn skips_watch(self) -> bool {
        false
    }

    pub fn skips_zones(self) -> bool {
        false
    }

    pub fn spoil(self, _firing: &mut Firing) {}

    pub fn settle(self, settlement: Settlement, _job: &Job, _now: Timestamp) -> Settlement {
        settlement
    }
}
