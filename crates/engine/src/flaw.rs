//! Bugs put in on purpose: the simulator must find each of them, or it proves nothing.

use std::sync::Arc;
use std::time::Duration;

use model::{Delivery, Job, Observer, Reason, Skip, Stretch, Timestamp, Verdict};
use store::{Firing, Settlement};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flaw {
    #[default]
    None,
    /// The node beats once and never again.
    SkipRenewal,
    /// The node never checks its own presence.
    SkipPresenceCheck,
    /// The node trusts what it sees of others' beats although its own were broken.
    IgnoreBreaks,
    /// Every slot is skipped as missed, and nothing starts.
    SkipEverything,
    /// A slot that is late is skipped as an overlap, whether or not a run is in its way.
    SkipLate,
    /// A lost attempt is tried again although its job wants no second delivery.
    RetryLost,
    /// The same where the job has been edited since, and wants it delivered now.
    RetryLostOfEdited,
    /// What the gone may have dispatched goes on under the same number.
    ReleaseDispatched,
    /// Silence of the outside counts whether or not the node was there to hear.
    SkipWatch,
    /// Jobs stay where other tables of their zone had them.
    SkipZones,
}

impl Flaw {
    /// Who watches the others' beats.
    pub fn observer(self) -> Observer {
        if self == Self::IgnoreBreaks {
            Observer::new(Duration::MAX)
        } else {
            Observer::default()
        }
    }

    pub fn skips_renewal(self) -> bool {
        self == Self::SkipRenewal
    }

    pub fn skips_presence_check(self) -> bool {
        self == Self::SkipPresenceCheck
    }

    pub fn skips_watch(self) -> bool {
        self == Self::SkipWatch
    }

    pub fn skips_zones(self) -> bool {
        self == Self::SkipZones
    }

    /// Turns a firing into what a node with this bug sends.
    pub fn spoil(self, firing: &mut Firing) {
        let late = |slot| firing.decision.at > firing.job.due_at(slot);
        let reason = match self {
            Self::SkipEverything => Reason::Missed,
            Self::SkipLate if firing.decision.start.is_some_and(late) => Reason::Overlap,
            Self::None
            | Self::SkipRenewal
            | Self::SkipPresenceCheck
            | Self::IgnoreBreaks
            | Self::SkipLate
            | Self::RetryLost
            | Self::RetryLostOfEdited
            | Self::ReleaseDispatched
            | Self::SkipWatch
            | Self::SkipZones => return,
        };
        if let Some(slot) = firing.decision.start.take() {
            firing.decision.passed.push(Skip {
                slots: Stretch::one(slot),
                reason,
                note: None,
                actor: Arc::clone(&firing.decision.actor),
            });
        }
    }

    /// The end of an attempt of the gone, as a node with this bug settles it.
    pub fn settle(self, mut settlement: Settlement, job: &Job, now: Timestamp) -> Settlement {
        let is_lost = settlement.verdict == Verdict::Bury(Reason::Lost);
        let wants_it_now = job.def.delivery == Delivery::AtLeastOnce;
        match self {
            Self::RetryLost if is_lost => settlement.verdict = Verdict::RetryAt(now),
            Self::RetryLostOfEdited if is_lost && wants_it_now => {
                settlement.verdict = Verdict::RetryAt(now);
            }
            Self::ReleaseDispatched => {
                settlement.verdict = Verdict::Release;
                settlement.attempt = None;
            }
            Self::None
            | Self::SkipRenewal
            | Self::SkipPresenceCheck
            | Self::IgnoreBreaks
            | Self::SkipEverything
            | Self::SkipLate
            | Self::RetryLost
            | Self::RetryLostOfEdited
            | Self::SkipWatch
            | Self::SkipZones => {}
        }
        settlement
    }
}
