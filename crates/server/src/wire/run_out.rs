//! Runs as we answer them, and what a schedule looks like ahead.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::Marks;
use model::schedule::format_span;
use serde::Serialize;
use utoipa::ToSchema;

use super::job_out::{Runs, moment};
use super::outside::HandedOver;
use crate::ops::preview;

/// What came of one slot, or of one request to run a job now.
#[derive(Debug, Serialize, ToSchema)]
pub struct Run {
    /// Its id; for a slot always the same.
    #[schema(example = "run_0192f0c1a2b38def8123456789abcdef")]
    pub id: String,
    /// The job's id.
    pub job: String,
    /// `slot`, `manual` or `replay`.
    pub kind: &'static str,
    /// The nominal moment; none for a manual run.
    #[schema(format = DateTime)]
    pub slot: Option<String>,
    /// When it is due: the slot and the job's offset, or the time of a retry.
    #[schema(format = DateTime)]
    pub due_at: String,
    /// Where it stands.
    #[schema(example = "succeeded")]
    pub state: &'static str,
    /// The attempt under way or coming next; the last one, once ended.
    pub attempt: u32,
    /// When its first attempt was handed to the target.
    #[schema(format = DateTime)]
    pub dispatched_at: Option<String>,
    /// When it ended.
    #[schema(format = DateTime)]
    pub settled_at: Option<String>,
    /// By how much it started after the job's `start_within`. Of a run under way only where that run alone is read.
    #[schema(example = "2500ms")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_by: Option<String>,
    /// By how much it has taken longer than the job's `finish_within`, from its first dispatch on.
    #[schema(example = "1m")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_by: Option<String>,
    /// Of an attempt that its target took over, where that run alone is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handed_over: Option<HandedOver>,
    /// How the last attempt ended.
    pub outcome: Option<&'static str>,
    /// Why it ended without success, or never began.
    pub reason: Option<&'static str>,
    /// Ended attempts, oldest first.
    pub attempts: Vec<Attempt>,
    /// The run that this one was made from.
    pub replay_of: Option<String>,
    /// The class of service.
    #[schema(example = "standard")]
    pub lane: &'static str,
    /// The job's version at the attempt's claim.
    pub version: u32,
    /// Whether it may not start yet.
    pub waiting: bool,
    /// What it waits for: `turn` is the end of the job's run before it, `breaker` a target that does not answer,
    /// `concurrency` calls to the same target under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_reason: Option<&'static str>,
    /// When it stops waiting at the latest.
    #[schema(format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_until: Option<String>,
    /// The slots that one skipped entry stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stretch: Option<Stretch>,
    /// Of a skipped entry: the calendar's name, or what was said when the job was paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Of a skipped entry: a node, or whoever changed the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
}

/// A run after its end was requested, and whether its holder agreed.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunAnswer {
    #[serde(flatten)]
    pub run: Run,
    /// What became of the run.
    pub runs: Runs,
}

/// A page of runs.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunList {
    /// Newest first.
    pub items: Vec<Run>,
    /// Where the next page begins; none on the last.
    pub next_cursor: Option<String>,
}

/// One try at a run.
#[derive(Debug, Serialize, ToSchema)]
pub struct Attempt {
    /// Counts the attempts of the run, from 1.
    pub no: u32,
    /// When it was handed to the target; none if it never was.
    #[schema(format = DateTime)]
    pub dispatched_at: Option<String>,
    /// When it ended.
    #[schema(format = DateTime)]
    pub settled_at: String,
    /// How it ended.
    #[schema(example = "succeeded")]
    pub outcome: &'static str,
    /// The target's own number for it: an HTTP status.
    pub status: Option<i32>,
    /// What went wrong.
    pub error: Option<String>,
    /// The head of what the target answered.
    pub output: String,
    /// `utf8` as it is, or `base64` when it is not text.
    #[schema(example = "utf8")]
    pub output_encoding: &'static str,
    /// The node that made it.
    pub node: Option<String>,
    /// There was more of the answer than is kept.
    pub truncated: bool,
    /// How the answer came, over a network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<Exchange>,
    /// What a command took of the node's machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// What a command and all that it started took.
#[derive(Debug, Serialize, ToSchema)]
pub struct Cost {
    /// Of processors, in milliseconds.
    #[schema(example = 812.5)]
    pub cpu_ms: f64,
    /// The most memory that one of its processes had at once, in bytes.
    #[schema(example = 18874368)]
    pub memory_max: u64,
    /// Read from storage, in bytes; what the kernel still had in memory is not read again. None where that is not known.
    #[schema(example = 40960)]
    pub read_bytes: Option<u64>,
    /// Written for storage, in bytes. None where that is not known.
    #[schema(example = 1048576)]
    pub written_bytes: Option<u64>,
}

impl Cost {
    fn of(cost: &model::Cost) -> Self {
        Self {
            cpu_ms: cost.cpu.as_micros() as f64 / 1_000.0,
            memory_max: cost.memory_max,
            read_bytes: cost.io.map(|io| io.read),
            written_bytes: cost.io.map(|io| io.written),
        }
    }
}

/// One request and its answer, as far as they got.
#[derive(Debug, Serialize, ToSchema)]
pub struct Exchange {
    /// The address at the other end of the connection.
    #[schema(example = "203.0.113.7:443")]
    pub peer: Option<String>,
    /// To resolve the name and to connect, in milliseconds; none where the connection was there already.
    #[schema(example = 12.25)]
    pub connect_ms: Option<f64>,
    /// The handshake of TLS, in milliseconds.
    #[schema(example = 24.5)]
    pub tls_ms: Option<f64>,
    /// From the start of the attempt to the head of the answer, in milliseconds.
    #[schema(example = 80.125)]
    pub first_byte_ms: Option<f64>,
    /// From the start of the attempt to the end of the answer, in milliseconds.
    #[schema(example = 81.5)]
    pub total_ms: Option<f64>,
    /// Headers of the answer that the target's `keep_headers` names; values whose name says secret are `***`.
    pub headers: BTreeMap<String, String>,
    /// What was odd about the answer and is no failure.
    pub note: Option<String>,
}

impl Exchange {
    fn of(exchange: &model::Exchange) -> Self {
        let ms = |span: Option<Duration>| span.map(|it| it.as_micros() as f64 / 1_000.0);
        let times = exchange.times;
        Self {
            peer: exchange.peer.map(|peer| peer.to_string()),
            connect_ms: ms(times.connect),
            tls_ms: ms(times.tls),
            first_byte_ms: ms(times.first_byte),
            total_ms: ms(times.total),
            headers: exchange.headers.iter().cloned().collect(),
            note: exchange.note.clone(),
        }
    }
}

/// Slots in a row.
#[derive(Debug, Serialize, ToSchema)]
pub struct Stretch {
    /// The first of them.
    #[schema(format = DateTime)]
    pub first: String,
    /// The last of them.
    #[schema(format = DateTime)]
    pub last: String,
    /// How many there are.
    pub count: u64,
}

/// The slots ahead of a schedule, in words too.
#[derive(Debug, Serialize, ToSchema)]
pub struct Preview {
    /// Strictly after `from`; those that calendars keep.
    pub slots: Vec<String>,
    /// The first that calendars leave out between those shown.
    pub excluded: Vec<ExcludedSlot>,
    /// The schedule in words.
    pub words: String,
    /// What its author may not expect.
    pub notes: Vec<String>,
}

/// A slot, and the calendar that leaves it out.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExcludedSlot {
    /// The nominal moment.
    #[schema(format = DateTime)]
    pub slot: String,
    /// The calendar that leaves it out.
    #[schema(example = "holidays")]
    pub calendar: String,
}

impl Preview {
    pub fn of(preview: preview::Preview) -> Self {
        let excluded = |(slot, calendar): (model::Slot, String)| ExcludedSlot {
            slot: slot.to_string(),
            calendar,
        };
        Self {
            slots: preview.slots.iter().map(ToString::to_string).collect(),
            excluded: preview.excluded.into_iter().map(excluded).collect(),
            words: preview.words,
            notes: preview.notes,
        }
    }
}

impl Run {
    pub fn of(run: &model::Run) -> Self {
        Self {
            id: run.id.to_string(),
            job: run.job.to_string(),
            kind: run.kind.as_str(),
            slot: run.slot.map(|slot| slot.to_string()),
            due_at: moment(&run.due_at),
            state: run.state.as_str(),
            attempt: run.attempt.0,
            dispatched_at: run.dispatched_at.as_ref().map(moment),
            settled_at: run.settled_at.as_ref().map(moment),
            late_by: run.late_by().map(format_span),
            long_by: run.long_by().map(format_span),
            handed_over: None,
            outcome: run.attempts.last().map(|attempt| attempt.outcome.as_str()),
            reason: run.reason.map(model::Reason::as_str),
            attempts: run.attempts.iter().map(Attempt::of).collect(),
            replay_of: run.replay_of.map(|id| id.to_string()),
            lane: run.lane.as_str(),
            version: run.version.0,
            waiting: run.wait.is_some(),
            wait_reason: run.wait.map(|wait| wait.reason.as_str()),
            wait_until: run.wait.and_then(|wait| wait.until).as_ref().map(moment),
            stretch: run.stretch.map(|stretch| Stretch {
                first: stretch.first.to_string(),
                last: stretch.last.to_string(),
                count: stretch.count,
            }),
            note: run.note.clone(),
            actor: run.actor.as_ref().map(ToString::to_string),
        }
    }
}

impl Run {
    /// The same of a run under way, as its job's bounds have it by now.
    pub fn marked(mut self, marks: Marks) -> Self {
        let Marks { late_by, long_by } = marks;
        self.late_by = late_by.map(format_span).or(self.late_by);
        self.long_by = long_by.map(format_span).or(self.long_by);
        self
    }
}

impl Run {
    /// The same with what is known of an attempt that its target took over.
    pub fn handed(mut self, handed: Option<&model::Handed>) -> Self {
        self.handed_over = handed.map(HandedOver::of);
        self
    }
}

impl Attempt {
    fn of(attempt: &model::Attempt) -> Self {
        let (output, output_encoding) = match str::from_utf8(whole_characters(&attempt.output)) {
            Ok(text) => (text.to_owned(), "utf8"),
            Err(_) => (STANDARD.encode(&attempt.output), "base64"),
        };
        Self {
            no: attempt.no.0,
            dispatched_at: attempt.dispatched_at.as_ref().map(moment),
            settled_at: moment(&attempt.settled_at),
            outcome: attempt.outcome.as_str(),
            status: attempt.status,
            error: attempt.error.clone(),
            output,
            output_encoding,
            node: attempt.node.as_deref().map(str::to_owned),
            truncated: attempt.truncated,
            exchange: attempt.exchange.as_deref().map(Exchange::of),
            cost: attempt.cost.as_deref().map(Cost::of),
        }
    }
}

/// The head of an answer may end within a character; text is still text then.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    match str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => {
            bytes.get(..error.valid_up_to()).unwrap_or(bytes)
        }
        Ok(_) | Err(_) => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cut_within_a_character_is_still_text() {
        assert_eq!(whole_characters("grö".as_bytes().get(..3).unwrap()), b"gr");
        assert_eq!(whole_characters(b"\xff\xfe"), b"\xff\xfe");
    }
}
