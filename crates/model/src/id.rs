//! Ids: each its own type, each printed with its kind in front, so that one is never taken for another.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use uuid::Uuid;

use crate::hash::hash;
use crate::time::{Slot, Timestamp};

/// An id that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a {kind} id: it looks like {kind}_0192f0c1a2b37def8123456789abcdef")]
pub struct IdError {
    kind: &'static str,
    text: String,
}

macro_rules! id {
    ($(#[$meta:meta])* $name:ident, $kind:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub Uuid);

        impl $name {
            pub const KIND: &'static str = $kind;

            pub fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }

            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($kind, "_{}"), self.0.simple())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                let refused = || IdError { kind: $kind, text: text.chars().take(64).collect() };
                let hex = text.strip_prefix(concat!($kind, "_")).ok_or_else(refused)?;
                if hex.len() != 32 || hex.bytes().any(|b| b.is_ascii_uppercase()) {
                    return Err(refused());
                }
                Uuid::try_parse(hex).map(Self).map_err(|_| refused())
            }
        }
    };
}

id!(
    /// Who owns a job.
    TenantId,
    "tenant"
);
id!(
    /// A job: UUID v7, so ids sort by creation.
    JobId,
    "job"
);
id!(
    /// A run: UUID v8, 48 bits of milliseconds, then a hash of what it is a run of.
    RunId,
    "run"
);
id!(
    /// A key that opens the API: UUID v7, so ids sort by creation.
    KeyId,
    "key"
);
id!(
    /// Runs that are wanted in bulk, a replay or a backfill: UUID v7, so ids sort by creation.
    ReplayId,
    "replay"
);
id!(
    /// Somebody who logs in: UUID v7, so ids sort by creation.
    UserId,
    "user"
);
id!(
    /// One start of one node, or of one worker; a restart is another presence.
    PresenceId,
    "presence"
);

impl TenantId {
    /// The one that is always there.
    pub const DEFAULT: Self = Self(Uuid::nil());
    /// Whose jobs are the system's own, such as those that deliver alerts. No client belongs to it.
    pub const SYSTEM: Self = Self(Uuid::max());

    pub fn new(now: Timestamp, chance: [u8; 10]) -> Self {
        Self(uuid::Builder::from_unix_timestamp_millis(now.as_u64(), &chance).into_uuid())
    }
}

/// Two words from an id, for hashing.
fn words(id: Uuid) -> [u64; 2] {
    let (high, low) = id.as_u64_pair();
    [high, low]
}

/// What a run is a run of; part of its name.
#[derive(Clone, Copy)]
enum Kind {
    Slot = 0,
    Request = 1,
}

impl JobId {
    /// A new id from the moment and 74 bits of chance.
    pub fn new(now: Timestamp, chance: [u8; 10]) -> Self {
        Self(uuid::Builder::from_unix_timestamp_millis(now.as_u64(), &chance).into_uuid())
    }

    /// The job's own number, the same for ever: shard, spread and `H` come from it.
    pub fn hash(self) -> u64 {
        hash(0x6a6f62, &words(self.0))
    }

    /// The last two bytes, which are chance: samples of jobs go by them.
    pub fn place(self) -> u16 {
        let [.., high, low] = *self.as_bytes();
        u16::from_be_bytes([high, low])
    }

    /// The job's own fixed offset within a spread.
    pub fn offset_within(self, spread: Duration) -> Duration {
        let spread = spread.as_millis() as u64;
        if spread == 0 {
            return Duration::ZERO;
        }
        Duration::from_millis(hash(0x0073_7072_6561_6400, &[self.hash()]) % spread)
    }
}

impl ReplayId {
    pub fn new(now: Timestamp, chance: [u8; 10]) -> Self {
        Self(uuid::Builder::from_unix_timestamp_millis(now.as_u64(), &chance).into_uuid())
    }
}

impl KeyId {
    pub fn new(now: Timestamp, chance: [u8; 10]) -> Self {
        Self(uuid::Builder::from_unix_timestamp_millis(now.as_u64(), &chance).into_uuid())
    }
}

impl UserId {
    pub fn new(now: Timestamp, chance: [u8; 10]) -> Self {
        Self(uuid::Builder::from_unix_timestamp_millis(now.as_u64(), &chance).into_uuid())
    }
}

impl PresenceId {
    pub fn new(now: Timestamp, chance: [u8; 10]) -> Self {
        Self(uuid::Builder::from_unix_timestamp_millis(now.as_u64(), &chance).into_uuid())
    }
}

impl RunId {
    /// The one name of a slot's run: two nodes that fire the same slot collide on it.
    pub fn for_slot(job: JobId, slot: Slot) -> Self {
        Self::derive(job, Kind::Slot, slot.0, slot.0.as_u64())
    }

    /// A manual run or a replay: named by the moment of the request and a nonce chosen once.
    pub fn of_request(job: JobId, at: Timestamp, nonce: u64) -> Self {
        Self::derive(job, Kind::Request, at, nonce)
    }

    /// What a replay in bulk makes of a run that has ended, always under the same name: `at` is when the replay was asked for.
    pub fn replayed(job: JobId, at: Timestamp, replay: ReplayId, ended: Self) -> Self {
        let [a, b] = words(replay.0);
        let [c, d] = words(ended.0);
        Self::of_request(job, at, hash(0x7265_706c_6179, &[a, b, c, d]))
    }

    fn derive(job: JobId, kind: Kind, at: Timestamp, what: u64) -> Self {
        let [high, low] = words(job.0);
        let first = hash(kind as u64, &[high, low, what]);
        let second = hash(first, &[low, high, what]);
        let mut bytes = [0_u8; 16];
        bytes[..6].copy_from_slice(&at.as_u64().to_be_bytes()[2..]);
        bytes[6..8].copy_from_slice(&first.to_be_bytes()[..2]);
        bytes[8..].copy_from_slice(&second.to_be_bytes());
        Self(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }

    /// The moment in front: the slot, or when the run was asked for.
    pub fn at(self) -> Timestamp {
        let bytes = self.0.as_bytes();
        let mut wide = [0_u8; 8];
        wide[2..].copy_from_slice(&bytes[..6]);
        Timestamp::from_millis(u64::from_be_bytes(wide) as i64)
    }

    /// The least id at or after a moment: where a range begins.
    pub fn least_at(at: Timestamp) -> Self {
        let mut bytes = [0_u8; 16];
        bytes[..6].copy_from_slice(&at.as_u64().to_be_bytes()[2..]);
        Self(Uuid::from_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> JobId {
        JobId::new(Timestamp::from_millis(1_700_000_000_000), [7; 10])
    }

    #[test]
    fn ids_print_their_kind_and_refuse_another() {
        let text = job().to_string();
        assert!(text.starts_with("job_"), "{text}");
        assert_eq!(text.parse::<JobId>(), Ok(job()));
        assert!(text.replace("job_", "run_").parse::<JobId>().is_err());
        assert!(text.to_uppercase().parse::<JobId>().is_err());
        assert!("job_".parse::<JobId>().is_err());
    }

    #[test]
    fn a_slot_has_one_name_and_it_sorts_by_time() {
        let early = RunId::for_slot(job(), Slot(Timestamp::from_millis(1_700_000_000_000)));
        let late = RunId::for_slot(job(), Slot(Timestamp::from_millis(1_700_000_000_001)));
        assert!(early < late);
        assert_eq!(
            early,
            RunId::for_slot(job(), Slot(Timestamp::from_millis(1_700_000_000_000)))
        );
        assert_eq!(early.at(), Timestamp::from_millis(1_700_000_000_000));
        assert_eq!(early.0.get_version_num(), 8);
        assert!(RunId::least_at(early.at()) <= early);
    }

    #[test]
    fn run_names_never_change() {
        let run = RunId::for_slot(job(), Slot(Timestamp::from_millis(1_700_000_000_000)));
        assert_eq!(run.to_string(), "run_018bcfe568008da18e861b9605caa46f");
    }

    #[test]
    fn what_a_replay_makes_of_a_run_has_one_name_that_never_changes() {
        let at = Timestamp::from_millis(1_700_000_000_000);
        let replay = |n: u8| ReplayId::new(at, [n; 10]);
        let ended = |n| RunId::of_request(job(), at, n);
        let name = |n, m| RunId::replayed(job(), at, replay(n), ended(m));
        assert_eq!(name(1, 1), name(1, 1));
        assert_ne!(name(1, 1), name(2, 1));
        assert_ne!(name(1, 1), name(1, 2));
        assert_eq!(
            name(1, 1).to_string(),
            "run_018bcfe56800855aa32630078cf56dcf"
        );
    }

    #[test]
    fn a_manual_run_is_not_the_slot_of_its_moment() {
        let at = Timestamp::from_millis(1_700_000_000_000);
        assert_ne!(
            RunId::for_slot(job(), Slot(at)),
            RunId::of_request(job(), at, at.as_u64())
        );
    }
}
