//! Every bound in one place. A queue, a batch, a body or a wait that has no bound here has a bug.

use std::time::Duration;

// What a client may send.

/// A request body, other than a batch's stream.
pub const BODY_MAX: usize = 1024 * 1024;
/// One line of a batch.
pub const LINE_MAX: usize = 512 * 1024;
/// How deep JSON may nest.
pub const DEPTH_MAX: usize = 32;
/// A job's payload, as it was sent.
pub const PAYLOAD_MAX: usize = 256 * 1024;
/// A job's key, a label's name or its value, in bytes.
pub const NAME_MAX: usize = 128;
/// What is said about a pause or a calendar, in bytes: a sentence or two.
pub const NOTE_MAX: usize = 1_024;
/// Labels of one job.
pub const LABELS_MAX: usize = 32;
/// Headers of one http target.
pub const HEADERS_MAX: usize = 32;
/// One header's value, and a URL.
pub const URL_MAX: usize = 2_048;
/// Attempts a job may ask for.
pub const ATTEMPTS_MAX: u32 = 100;
/// The longest a retry may wait.
pub const DELAY_MAX: Duration = Duration::from_secs(24 * 3600);
/// How far a target's `Retry-After` is obeyed when the job's own `delay_max` is shorter.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);
/// The longest one attempt may take.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 3600);
/// How long ago a one-off may lie and still run at once.
pub const PAST_TOLERANCE: Duration = Duration::from_secs(24 * 3600);
/// Entries of one page.
pub const PAGE_MAX: usize = 1_000;
/// Slots of one preview.
pub const PREVIEW_MAX: usize = 1_000;
/// Calendars that one job may name.
pub const CALENDARS_OF_JOB_MAX: usize = 16;
/// Entries of one calendar.
pub const CALENDAR_ENTRIES_MAX: usize = 2_000;
/// Calendars of one tenant.
pub const CALENDARS_MAX: usize = 1_000;
/// Bytes of a tenant's name.
pub const TENANT_NAME_MAX: usize = 64;
/// Tenants of one installation.
pub const TENANTS_MAX: usize = 100_000;
/// Keys of one tenant, those that ended lately among them.
pub const KEYS_MAX: usize = 1_000;
/// How long a key that was revoked or has expired is still listed.
pub const KEY_KEEP: Duration = Duration::from_secs(30 * 24 * 3600);
/// How often a node looks whether keys have changed: revoked on one, a key opens nothing on any within a second.
pub const KEYS_POLL: Duration = Duration::from_millis(500);
/// How often it is written when a key was last used.
pub const KEY_USE_EVERY: Duration = Duration::from_secs(60);
/// How long an `Idempotency-Key` is remembered.
pub const IDEMPOTENCY_KEEP: Duration = Duration::from_secs(24 * 3600);

// What an attempt may leave behind.

/// Bytes of an answer kept with the last attempt, unless the target asks for more.
pub const OUTPUT_DEFAULT: usize = 4 * 1024;
/// The most a target may ask for.
pub const OUTPUT_MAX: usize = 64 * 1024;
/// Bytes kept of an earlier attempt.
pub const OUTPUT_EARLIER_MAX: usize = 1024;
/// An error's text.
pub const ERROR_MAX: usize = 1024;

// The engine.

/// Runs written by one `EngineStore::fire`: amortises a commit, keeps a transaction short.
pub const FIRE_BATCH_MAX: usize = 1_000;
/// Attempts settled by one `EngineStore::settle`.
pub const SETTLE_BATCH_MAX: usize = 1_000;
/// Outcomes that wait for settle; an executor that is faster waits.
pub const SETTLE_QUEUE_MAX: usize = 32_768;
/// Slots and due runs held by the wheel.
pub const WHEEL_MAX: usize = 100_000;
/// Of these, the backlog: enough to keep fire busy while plan reads on. The rest is for what is on time.
pub const WHEEL_BACKLOG_MAX: usize = 25_000;
/// Bytes of payload held by the wheel.
pub const WHEEL_BYTES_MAX: usize = 64 * 1024 * 1024;
/// A payload up to this size is read ahead with its job or run; a larger one is left in the store until its attempt starts.
/// SQL has the same number.
pub const PAYLOAD_INLINE_MAX: usize = 1024;
/// Bytes of larger payloads that attempts have read and not sent yet.
pub const PAYLOADS_MAX: usize = 64 * 1024 * 1024;
/// Bytes of them that one read asks for.
pub const PAYLOADS_READ_MAX: usize = 4 * 1024 * 1024;
/// Bytes of answers that wait for settle. Those up to `PAYLOAD_INLINE_MAX` are bounded by the number of claims.
pub const OUTPUTS_MAX: usize = 64 * 1024 * 1024;
/// Rows read by one step of plan.
pub const PLAN_PAGE_MAX: usize = 4_000;
/// Claims a node holds ahead of their due time.
pub const HELD_MAX: usize = 50_000;
/// Of these, what is left free by the backlog for what is on time.
pub const HELD_ON_TIME: usize = HELD_MAX / 4;
/// Attempts that run at once on a node, unless configured.
pub const RUNNING_MAX: usize = 1_000;
/// Runs that wait in memory for room among the claims; beyond that they wait in the store.
pub const CROWDED_MAX: usize = 10_000;
/// Of these, so many start at once. More follow every `WIDEN_EVERY` while few of them end: a quick
/// target is served best over few connections that stay warm, a slow one has all a moment later.
pub const WIDTH_MIN: usize = 256;
pub const WIDEN_EVERY: Duration = Duration::from_millis(10);
/// Jobs just written that wait for plan to look at them; beyond that it reads the store again.
pub const OFFERS_MAX: usize = 8_192;
/// Lines about jobs in trouble that a node logs in a minute; beyond that it counts them.
pub const TROUBLE_LINES_MAX: usize = 1_000;
/// Slots one decision may pass over; a longer stretch takes several.
pub const STRETCH_STEP_MAX: u64 = 10_000;
/// Edges of calendars looked at to find one slot that they keep; over thirteen years of days.
pub const CALENDAR_STEPS_MAX: u32 = 5_000;
/// Entries that one decision or change writes about slots it passes over.
pub const SKIPS_MAX: usize = 100;
/// Days that what is passed over is told apart by; entries are cut at their midnights, so a decision or a change
/// writes at most so many more.
pub const SKIP_DAYS_MAX: u64 = 400;
/// Runs that a node remembers as beyond it.
pub const BEYOND_MAX: usize = 10_000;
/// Calls waiting for the embedded store's writer.
pub const WRITER_QUEUE_MAX: usize = 1_024;
/// Rows removed by one step of retention.
pub const RETENTION_BATCH_MAX: usize = 1_000;

const _: () = assert!(SETTLE_QUEUE_MAX >= FIRE_BATCH_MAX);
const _: () = assert!(HELD_MAX >= FIRE_BATCH_MAX);
const _: () = assert!(WHEEL_BACKLOG_MAX >= 2 * PLAN_PAGE_MAX);
const _: () = assert!(WHEEL_MAX >= 2 * WHEEL_BACKLOG_MAX);
const _: () = assert!(PAYLOADS_MAX >= PAYLOADS_READ_MAX && PAYLOADS_READ_MAX >= PAYLOAD_MAX);
const _: () = assert!(OUTPUTS_MAX >= OUTPUT_MAX);
const _: () = assert!(LINE_MAX > PAYLOAD_MAX && BODY_MAX > LINE_MAX);

// Time.

/// How far ahead the wheel is filled.
pub const HORIZON: Duration = Duration::from_secs(10);
/// The least and the most that a slot is fired ahead of its due time.
pub const LEAD_MIN: Duration = Duration::from_millis(50);
pub const LEAD_MAX: Duration = Duration::from_secs(2);
/// The least for a node that leaves its runs to others, who have to hear of them.
pub const LEAD_APART: Duration = Duration::from_millis(300);
/// The least for a node that is about to give up its shards: others need a moment to take them.
pub const LEAD_HAND_OVER: Duration = Duration::from_millis(500);
/// The most that slow writes add to any of these. A store so far away that it needs more cannot tell its time to
/// within `UNCERTAINTY_MAX`, and then the node fires nothing. Slots that look at the runs alive are looked at as much
/// sooner; whatever keeps one from starting is still said when it is due.
pub const LEAD_FAR_MAX: Duration = Duration::from_millis(500);
/// What is overdue by more than this is backlog: what is on time goes before it.
pub const BACKLOG_AFTER: Duration = Duration::from_secs(1);
/// A slot younger than this is only late; older ones are missed.
pub const LATE_MAX: Duration = Duration::from_secs(10);
/// How much longer a run that started late may be under way, at the most, before it counts against a slot. Little: runs that
/// last longer than their period must not have those after them wait for ever.
pub const GRACE_MAX: Duration = Duration::from_millis(250);
/// How long after an attempt has ended its end is in the store, nearly always. So long is a run that another node holds not
/// taken for one that is still under way.
pub const END_WRITTEN_AFTER: Duration = Duration::from_millis(250);
/// How soon a slot is asked about again while another node has yet to say whether it dispatched the run in its way.
pub const EARLY_AGAIN: Duration = Duration::from_millis(250);
/// How long a presence lives without a beat, and how often it beats.
pub const PRESENCE_TTL: Duration = Duration::from_secs(3);
pub const BEAT_EVERY: Duration = Duration::from_secs(1);
/// What a node takes off its own presence, for its own slowness.
pub const PRESENCE_MARGIN: Duration = Duration::from_millis(500);
/// How often one attempt may be lost before its run is poison.
pub const LOST_MAX: u32 = 5;
/// How long a client waits for the holder of a claim to confirm a withdrawal.
pub const WITHDRAW_WAIT: Duration = Duration::from_secs(3);
/// No wait is longer without reading the clock again.
pub const SLEEP_MAX: Duration = Duration::from_secs(1);
/// Runs still alive this long after dispatch are marked `Running`.
pub const RUNNING_MARK_AFTER: Duration = Duration::from_secs(1);
/// How well a node must know the store's clock to fire by it.
pub const UNCERTAINTY_MAX: Duration = Duration::from_millis(50);
/// How far a node's wall clock may be off the store's, unless configured.
pub const CLOCK_SKEW_MAX: Duration = Duration::from_secs(300);
/// How long finished one-offs stay.
pub const FINISHED_KEEP: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long history stays.
pub const HISTORY_KEEP: Duration = Duration::from_secs(30 * 24 * 3600);
