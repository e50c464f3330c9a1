//! What the stores on disk have in common about columns: the numbers that stand for the model's words, and what is left
//! out of a row. They are in files and databases that people keep, so none may ever change its meaning; a test pins
//! them all.

use model::rollup::Step;
use model::{
    CalendarName, JobId, JobState, Lane, Mark, Outcome, Reason, Role, Run, RunId, RunKind,
    RunState, Slot, Stretch, Timestamp, Wait, WaitReason,
};

use crate::{BadRow, NodeInfo, ReplayState, StoreError};

/// How a word is written as a number.
pub(crate) trait Code: Copy {
    #[cfg(feature = "postgres")]
    const WHAT: &'static str;
    fn code(self) -> i16;
    fn from_code(code: i16) -> Option<Self>;
}

macro_rules! codes {
    ($($word:ident { $($variant:ident = $code:literal),+ $(,)? })+) => {
        #[cfg(any(test, feature = "postgres"))]
        /// The number of a word by its name in statements, such as `JobState::Active`.
        pub(crate) fn number(name: &str) -> Option<i16> {
            match name {
                $($(concat!(stringify!($word), "::", stringify!($variant)) => Some($code),)+)+
                _ => None,
            }
        }

    $(
        impl Code for $word {
            #[cfg(feature = "postgres")]
            const WHAT: &'static str = stringify!($word);

            fn code(self) -> i16 {
                match self { $(Self::$variant => $code),+ }
            }

            fn from_code(code: i16) -> Option<Self> {
                match code {
                    $($code => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    )+};
}

codes! {
    JobState { Active = 0, Paused = 1, Finished = 2, Invalid = 3, Deleted = 4 }
    RunState {
        Ready = 0, Running = 1, Retrying = 2, Succeeded = 3, Dead = 4, Cancelled = 5, Skipped = 6,
    }
    RunKind { Slot = 0, Manual = 1, Replay = 2 }
    Lane { Critical = 0, Standard = 1, Batch = 2 }
    Role { Reader = 0, Operator = 1, Admin = 2, Root = 3, Worker = 4 }
    WaitReason { Turn = 0, Breaker = 1, Concurrency = 2 }
    Step { Minute = 0, Quarter = 1 }
    Outcome { Succeeded = 0, Failed = 1, TimedOut = 2, Lost = 3, Cancelled = 4 }
    ReplayState { Running = 0, Done = 1, Cancelled = 2, Failed = 3 }
    Reason {
        Overlap = 0, QueueFull = 1, Paused = 2, Missed = 3, AttemptsSpent = 4, Refused = 5,
        Lost = 6, Poison = 7, Requested = 8, Replaced = 9, JobDeleted = 10, Unreadable = 11,
        Calendar = 12, Invalid = 13, Overload = 14, Quota = 15,
    }
}

/// Reasons of `Mark::Cancel` are counted from here.
const CANCEL_FIRST: i16 = 16;

impl Code for Mark {
    #[cfg(feature = "postgres")]
    const WHAT: &'static str = "Mark";

    fn code(self) -> i16 {
        match self {
            Self::TakeBack => 1,
            Self::TooLate => 2,
            Self::Cancel(reason) => CANCEL_FIRST + reason.code(),
        }
    }

    fn from_code(code: i16) -> Option<Self> {
        match code {
            1 => Some(Self::TakeBack),
            2 => Some(Self::TooLate),
            code => Reason::from_code(code.checked_sub(CANCEL_FIRST)?).map(Self::Cancel),
        }
    }
}

/// A job whose definition cannot be read.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub job: JobId,
    pub detail: String,
}

impl From<Unreadable> for BadRow {
    fn from(bad: Unreadable) -> Self {
        Self {
            what: bad.job.to_string(),
            detail: bad.detail,
        }
    }
}

impl From<Unreadable> for StoreError {
    fn from(bad: Unreadable) -> Self {
        Self::BadRow(bad.into())
    }
}

/// A row of ours that cannot be read, or a value that cannot be written.
pub(crate) fn bad_row(what: impl ToString, detail: &impl ToString) -> StoreError {
    StoreError::BadRow(BadRow {
        what: what.to_string(),
        detail: detail.to_string(),
    })
}

/// The inner answer is about the row, the outer one about the store.
pub(crate) fn of_row<T, E: Into<StoreError>>(
    read: Result<T, E>,
) -> Result<Result<T, BadRow>, StoreError> {
    match read.map_err(Into::into) {
        Err(StoreError::BadRow(bad)) => Ok(Err(bad)),
        read => read.map(Ok),
    }
}

/// The name of a calendar, from its column.
pub(crate) fn calendar_name(stored: &str) -> Result<CalendarName, StoreError> {
    CalendarName::new(stored).map_err(|error| bad_row(format!("calendar {stored}"), &error))
}

/// A slot's column: empty when it is the moment in the run's id.
pub(crate) fn slot_column(run: &Run) -> Option<i64> {
    let slot = run.slot.map(|slot| slot.0);
    match run.kind {
        RunKind::Slot => slot.filter(|slot| *slot != run.id.at()),
        RunKind::Manual | RunKind::Replay => slot,
    }
    .map(Timestamp::as_millis)
}

/// A stretch's columns; a single slot has none.
pub(crate) fn stretch_columns(stretch: Option<Stretch>) -> (Option<i64>, Option<i64>) {
    let last = stretch.map(|stretch| stretch.last.0.as_millis());
    let count = stretch.map(|stretch| i64::try_from(stretch.count).unwrap_or(i64::MAX));
    (last, count)
}

/// The slots that a skipped entry stands for, by its columns.
pub(crate) fn read_stretch(id: RunId, last: Option<i64>, count: Option<i64>) -> Stretch {
    let first = Slot(id.at());
    Stretch {
        first,
        last: last.map_or(first, |last| Slot(Timestamp::from_millis(last))),
        count: count.map_or(1, |count| u64::try_from(count).unwrap_or(1)),
    }
}

/// What a run waits for outside of its job, and until when; or when it stopped doing so. One that waits for its turn has
/// neither.
pub(crate) fn wait_columns(run: &Run) -> (Option<i16>, Option<i64>) {
    let outside = run.wait.filter(|wait| wait.reason != WaitReason::Turn);
    let until = outside.map_or(run.woken_at, |wait| wait.until);
    (
        outside.map(|wait| wait.reason.code()),
        until.map(Timestamp::as_millis),
    )
}

/// The same read back: why it waits, and when it was woken.
pub(crate) fn read_wait(
    waits: bool,
    reason: Option<WaitReason>,
    until: Option<Timestamp>,
) -> (Option<Wait>, Option<Timestamp>) {
    match (waits, reason) {
        (true, Some(reason)) => (Some(Wait { reason, until }), None),
        (true, None) => (Some(Wait::TURN), None),
        (false, None) => (None, until),
        // A node of the version before freed it, and does not know these columns.
        (false, Some(_)) => (None, None),
    }
}

pub(crate) fn read_slot(id: RunId, kind: RunKind, column: Option<Timestamp>) -> Option<Slot> {
    match kind {
        RunKind::Slot => Some(Slot(column.unwrap_or_else(|| id.at()))),
        RunKind::Manual | RunKind::Replay => column.map(Slot),
    }
}

impl NodeInfo {
    /// The kinds as they are stored.
    pub fn kinds_text(&self) -> String {
        self.kinds.join(",")
    }

    pub fn read_kinds(text: &str) -> Vec<String> {
        let kinds = text.split(',').filter(|kind| !kind.is_empty());
        kinds.map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check<T: Code + PartialEq + std::fmt::Debug>(words: &[T], codes: &[i16]) {
        assert_eq!(
            words.iter().map(|word| word.code()).collect::<Vec<_>>(),
            codes
        );
        for word in words {
            assert_eq!(T::from_code(word.code()).as_ref(), Some(word));
        }
        assert_eq!(T::from_code(99), None);
        assert_eq!(T::from_code(-1), None);
    }

    #[test]
    fn numbers_of_words_never_change() {
        check(&JobState::ALL, &[0, 1, 2, 3, 4]);
        check(&RunState::ALL, &[0, 1, 2, 3, 4, 5, 6]);
        check(&RunKind::ALL, &[0, 1, 2]);
        check(&Lane::ALL, &[0, 1, 2]);
        check(&Role::ALL, &[0, 1, 2, 3, 4]);
        check(&WaitReason::ALL, &[0, 1, 2]);
        check(&ReplayState::ALL, &[0, 1, 2, 3]);
        check(&Step::ALL, &[0, 1]);
        check(&Outcome::ALL, &[0, 1, 2, 3, 4]);
        check(
            &Reason::ALL,
            &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        );
        let marks = [
            Mark::TakeBack,
            Mark::TooLate,
            Mark::Cancel(Reason::Overlap),
            Mark::Cancel(Reason::Requested),
            Mark::Cancel(Reason::Invalid),
        ];
        check(&marks, &[1, 2, 16, 24, 29]);
    }
}
