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
/// Who a job belongs to, in characters.
pub const OWNER_MAX: usize = 100;
/// What is said about a pause or a calendar, in bytes: a sentence or two.
pub const NOTE_MAX: usize = 1_024;
/// Labels of one job.
pub const LABELS_MAX: usize = 32;
/// Variables of one command's environment, its parts, and the bytes of all of them.
pub const ENV_MAX: usize = 64;
pub const COMMAND_PARTS_MAX: usize = 64;
/// Exit codes of one list: each there is.
pub const EXIT_CODES_MAX: usize = 256;
pub const COMMAND_BYTES_MAX: usize = 16 * 1024;
/// The source of a script.
pub const SOURCE_MAX: usize = 64 * 1024;
/// What a script may say of its result.
pub const RESULT_MAX: usize = 64 * 1024;
/// A path of a file or folder.
pub const PATH_MAX: usize = 1_024;
/// Headers of one http target.
pub const HEADERS_MAX: usize = 32;
/// The URL of a tenant's proxy, in bytes.
pub const PROXY_MAX: usize = 1_024;
/// One header's value, and a URL.
pub const URL_MAX: usize = 2_048;
/// Attempts a job may ask for.
pub const ATTEMPTS_MAX: u32 = 100;
/// Failed runs in a row after which a job may be paused.
pub const FAILURES_MAX: u32 = 1_000;
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
/// Alert rules of one tenant.
pub const ALERTS_MAX: usize = 100;
/// Skipped slots in a row that a rule may wait for.
pub const ALERT_SKIPPED_MAX: u32 = 100;
/// How often an alert that fires may be sent again at most.
pub const ALERT_REPEAT_MIN: Duration = Duration::from_secs(60);
/// Causes that are considered together, alerts that are sent by one step, and those that are looked at for a success.
pub const ALERT_BATCH_MAX: usize = 256;
/// Alerts of one rule that one delivery names.
pub const ALERT_GROUP_MAX: usize = 50;
/// Replays and backfills of a tenant that are under way at once.
pub const REPLAYS_MAX: usize = 10;
/// Runs a second that a replay starts, and how many unless it says so.
pub const REPLAY_RATE_MAX: u32 = 1_000;
pub const REPLAY_RATE_DEFAULT: u32 = 10;
/// Runs that one replay starts.
pub const REPLAY_RUNS_MAX: u64 = 1_000_000;
/// Slots that one backfill starts.
pub const BACKFILL_SLOTS_MAX: u64 = 100_000;
/// Runs that a replay starts by one call.
pub const REPLAY_BATCH_MAX: usize = 100;
/// Runs of a job that wait on account of replays, and that live if the job lets them overlap. Beyond it a replay waits.
pub const QUEUED_WAITING_MAX: usize = 10;
pub const QUEUED_MOVING_MAX: usize = 1_000;
/// Runs that are looked at to group their errors, bytes of what they hold, and groups.
pub const GROUPS_SCAN_MAX: usize = 10_000;
pub const GROUPS_BYTES_MAX: usize = 64 * 1024 * 1024;
pub const GROUPS_MAX: usize = 1_000;
/// Jobs that a group names; it counts them all.
pub const GROUP_JOBS_MAX: usize = 10;
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
/// How long a tenant that is deleted stays marked at least: no request is under way for so long.
pub const TENANT_DRAIN: Duration = Duration::from_secs(120);
/// Jobs of a tenant that is deleted, in one step.
pub const TENANT_SWEEP_MAX: usize = 100;
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

/// Users of an installation: an administrator lists them on one page.
pub const USERS_MAX: usize = 1_000;
pub const USER_NAME_MAX: usize = 64;
/// Tenants that one user belongs to.
pub const MEMBERS_MAX: usize = 100;
/// Characters of a password: long enough that length, not rules about characters, makes it strong.
pub const PASSWORD_MIN: usize = 12;
/// Bytes of a password that are hashed.
pub const PASSWORD_MAX: usize = 256;
/// Passwords that are hashed at once on a node: each needs 19 MiB and a core for some tens of milliseconds.
pub const HASHES_MAX: usize = 2;
/// Sessions of one user: the one that was used longest ago goes.
pub const SESSIONS_MAX: usize = 20;
/// A session that nobody used for so long has ended.
pub const SESSION_IDLE: Duration = Duration::from_secs(12 * 3600);
/// No session lasts longer.
pub const SESSION_KEEP: Duration = Duration::from_secs(7 * 24 * 3600);
/// How often the last use of a session is written.
pub const SESSION_USE_EVERY: Duration = Duration::from_secs(60);
/// How long a link that logs in is good for.
pub const LINK_KEEP: Duration = Duration::from_secs(60);
/// Names and addresses whose failed logins are remembered.
pub const LOCKOUTS_MAX: usize = 10_000;
/// How long an `Idempotency-Key` is remembered.
pub const IDEMPOTENCY_KEEP: Duration = Duration::from_secs(24 * 3600);

/// Bytes of a signing secret: as many as Standard Webhooks wants.
pub const SIGNING_BYTES_MIN: usize = 24;
pub const SIGNING_BYTES_MAX: usize = 64;
/// Tenants of which a node remembers how their callbacks are signed, and what they go through.
pub const SENDING_KNOWN_MAX: usize = 10_000;

// What an attempt may leave behind.

/// Bytes of an answer kept with the last attempt, unless the target asks for more.
pub const OUTPUT_DEFAULT: usize = 4 * 1024;
/// The most a target may ask for.
pub const OUTPUT_MAX: usize = 64 * 1024;
/// Bytes that a command may write before it is ended. What is not kept is read all the same.
pub const COMMAND_OUTPUT_MAX: u64 = 256 * 1024 * 1024;
/// Bytes kept of an earlier attempt.
pub const OUTPUT_EARLIER_MAX: usize = 1024;
/// An error's text.
pub const ERROR_MAX: usize = 1024;
/// Bytes kept of what a handed-over run says of its work: the head, and the tail.
pub const LOG_HEAD_MAX: usize = 64 * 1024;
pub const LOG_TAIL_MAX: usize = 64 * 1024;
/// Bytes of one request that appends to it.
pub const LOG_APPEND_MAX: usize = 64 * 1024;
/// Bytes of a checkpoint.
pub const CHECKPOINT_MAX: usize = 64 * 1024;
/// Bytes of a text that says how far the work is.
pub const PROGRESS_MAX: usize = 256;

// The engine.

/// Bytes of the template of a body, of what a template may read of a payload, and of what may come of one for a header or a path.
pub const TEMPLATE_MAX: usize = 64 * 1024;
pub const TEMPLATE_PAYLOAD_MAX: usize = 64 * 1024;
pub const RENDERED_LINE_MAX: usize = 8 * 1024;
/// Bytes of the form of a date in a template.
pub const DATE_FORMAT_MAX: usize = 64;
/// Headers of an answer that are kept, and bytes of each of their values.
pub const KEEP_HEADERS_MAX: usize = 8;
pub const KEPT_HEADER_MAX: usize = 256;
/// Redirects that one attempt follows.
pub const REDIRECTS_MAX: usize = 5;
/// Requests that are under way at once on one connection of HTTP/2; a target may allow fewer.
pub const STREAMS_MAX: usize = 100;
/// Sets of certificates that jobs bring and a node keeps ready.
pub const IDENTITIES_MAX: usize = 256;
/// Statuses and ranges of statuses in one `success` rule.
pub const STATUSES_MAX: usize = 16;
/// Bytes of a JSON pointer in a `success` rule, and of the value that it is compared with.
pub const SUCCESS_JSON_MAX: usize = 1024;
/// Bytes of an answer that are read for the sake of a `success` rule.
pub const SUCCESS_READ_MAX: usize = 64 * 1024;
/// Runs written by one `EngineStore::fire`: amortises a commit, keeps a transaction short.
pub const FIRE_BATCH_MAX: usize = 1_000;
/// Attempts settled by one `EngineStore::settle`.
pub const SETTLE_BATCH_MAX: usize = 1_000;
/// Outcomes that wait for settle; an executor that is faster waits.
pub const SETTLE_QUEUE_MAX: usize = 32_768;
/// Attempts handed over, heartbeats and reports written by one call of the store.
pub const HANDED_BATCH_MAX: usize = 500;
/// Hand-overs that wait to be written; an attempt that ends meanwhile waits.
pub const HANDED_QUEUE_MAX: usize = 8_192;
/// Requests about handed-over attempts that wait for a write; more are refused.
pub const HANDED_CALLS_MAX: usize = 4_096;
/// Bytes of checkpoints, outputs and logs among them.
pub const HANDED_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Between the beginnings of two writes of heartbeats, unless one is full: at 1,667 a second, as of 100,000 attempts, some 330
/// share one. A heartbeat is heard once a minute or so, and nobody minds when it is answered a moment later.
pub const HEARTBEATS_APART: Duration = Duration::from_millis(200);
const _: () = assert!(HANDED_CALLS_MAX >= 2 * HANDED_BATCH_MAX);
/// Keys that tokens of handed-over attempts are made with, as far as they are kept.
pub const REPORT_KEYS_MAX: usize = 64;
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
/// Bytes of them that one read fetches.
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
/// Calls to one origin that may be under way on a node, unless configured.
pub const ORIGIN_CALLS_MAX: usize = 256;
/// Origins that a node knows of.
pub const ORIGINS_MAX: usize = 10_000;
/// Claims that wait in memory for calls to one origin to end; beyond that runs wait in the store.
pub const ORIGIN_QUEUE_MAX: usize = HELD_MAX / 2;
/// Runs that wait in the store for one origin and are woken by name when it is well again, or has room; others are woken in their
/// time. All claims of a node may have been for one origin.
pub const ORIGIN_WAITING_MAX: usize = HELD_MAX;
/// The same for all origins together.
pub const ORIGINS_WAITING_MAX: usize = 1_000_000;
/// How much longer than its breaker is open a run waits at the most.
pub const BREAKER_WAIT_AFTER: Duration = Duration::from_secs(60);
/// How long after its due time a run is tried although its breaker is open, so that it comes to an end.
pub const BREAKER_WAIT_MAX: Duration = Duration::from_secs(24 * 3600);
/// Runs that are woken at once.
pub const WAKE_BATCH_MAX: usize = 1_000;
/// Of these, so many start at once. More follow every `WIDEN_EVERY` while few of them end: a quick
/// target is served best over few connections that stay warm, a slow one has all a moment later.
pub const WIDTH_MIN: usize = 256;
pub const WIDEN_EVERY: Duration = Duration::from_millis(10);
/// Jobs just written that wait for plan to look at them; beyond that it reads the store again.
pub const OFFERS_MAX: usize = 8_192;
/// Lines about jobs in trouble that a node logs in a minute; beyond that it counts them.
pub const TROUBLE_LINES_MAX: usize = 1_000;
/// Rollups that a node has in memory: two for each tenant that something happened to lately, and those that are not written
/// yet. What comes beyond that is not counted.
pub const ROLLUPS_MAX: usize = 40_000;
/// Rollups in one write, and how often they are written.
pub const ROLLUP_BATCH_MAX: usize = 1_000;
pub const ROLLUP_EVERY: Duration = Duration::from_secs(2);
/// Live runs, and jobs of each state but active, that are counted for overviews; beyond that they are said to be incomplete.
pub const STANDING_MAX: usize = 20_000;
/// Slots one decision may skip; a longer stretch takes several.
pub const STRETCH_STEP_MAX: u64 = 10_000;
/// Edges of calendars looked at to find one slot that they keep; over thirteen years of days.
pub const CALENDAR_STEPS_MAX: u32 = 5_000;
/// Entries that one decision or change writes about slots it skips.
pub const SKIPS_MAX: usize = 100;
/// Days by which skipped slots are told apart; entries are cut at their midnights, so a decision or a change
/// writes at most so many more.
pub const SKIP_DAYS_MAX: u64 = 400;
/// Runs that a node remembers as beyond it.
pub const BEYOND_MAX: usize = 10_000;
/// How often a node says how many runs it has inserted, and of how many tenants and days at once.
pub const RUN_COUNTS_EVERY: Duration = Duration::from_secs(1);
pub const RUN_COUNTS_BATCH_MAX: usize = 1_000;

/// Bytes of the name of a queue, and queues that one key may use.
pub const QUEUE_NAME_MAX: usize = 64;
pub const QUEUES_MAX: usize = 16;

/// Secrets of one tenant, bytes of a name and of a value, and hosts that one may be sent to.
pub const SECRETS_MAX: usize = 200;
pub const SECRET_NAME_MAX: usize = 64;
pub const SECRET_MIN: usize = 4;
pub const SECRET_MAX: usize = 8 * 1024;
pub const HOSTS_MAX: usize = 32;
/// Secrets that a node has open at once.
pub const SECRETS_OPEN_MAX: usize = 1_000;

/// Attempts that may be handed over of which a node remembers what they were sent; of others it is read again.
pub const SENT_KNOWN_MAX: usize = 1_000;
/// Bytes of a host's name.
pub const HOST_MAX: usize = 253;
/// Master keys that a node reads: the current one, and those that only open what they once sealed.
pub const MASTER_KEYS_MAX: usize = 16;
/// Bytes of jobs and payloads that clients have waiting for a write; more are refused.
pub const WRITES_BYTES_MAX: usize = 64 * 1024 * 1024;
/// What a job counts beside its payload.
pub const WRITE_BYTES_MIN: usize = 1024;
/// Bytes of payloads that creates of several clients share one write with; a call that has more goes alone.
pub const SHARED_WRITE_BYTES_MAX: usize = 8 * 1024 * 1024;
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
const _: () = assert!(WRITES_BYTES_MAX >= 4 * SHARED_WRITE_BYTES_MAX);
const _: () = assert!(LINE_MAX > PAYLOAD_MAX && BODY_MAX > LINE_MAX);

// Time.

/// How far ahead the wheel is filled.
pub const HORIZON: Duration = Duration::from_secs(10);
/// What is due is read in steps of this length: pages of it end anywhere within one.
pub const PLAN_STEP: Duration = Duration::from_millis(64);
/// The least and the most that a slot is fired ahead of its due time.
pub const LEAD_MIN: Duration = Duration::from_millis(50);
pub const LEAD_MAX: Duration = Duration::from_secs(2);
/// The least for a node that leaves its runs to others, who have to hear of them.
pub const LEAD_APART: Duration = Duration::from_millis(300);
/// The least for a node that is about to give up its shards: others need a moment to take them.
pub const LEAD_HAND_OVER: Duration = Duration::from_millis(500);
/// The most that slow writes add to any of these. A store so far away that it needs more cannot give its time to
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
/// How late a slot may be decided, and still meet the job's runs as they stood when it was due.
pub const ON_TIME_MAX: Duration = Duration::from_millis(250);
/// How soon a slot is fired again while another node has yet to say whether it dispatched the run in its way.
pub const EARLY_AGAIN: Duration = Duration::from_millis(250);
/// How long a presence lives without a beat, and how often it beats.
pub const PRESENCE_TTL: Duration = Duration::from_secs(3);
pub const BEAT_EVERY: Duration = Duration::from_secs(1);
/// What a node takes off its own presence, for its own slowness.
pub const PRESENCE_MARGIN: Duration = Duration::from_millis(500);
/// How often one attempt may be lost before its run is poison.
pub const LOST_MAX: u32 = 5;
/// For how long a node watches the clock before that says that a handed-over attempt's time is up: steps are often undone soon,
/// and those that a node has seen it makes allowance for.
pub const STEADY_FOR: Duration = Duration::from_secs(30);
/// How long a cancel waits for whoever has an attempt that is handed over, at least.
pub const HANDED_GRACE_MIN: Duration = Duration::from_secs(30);
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
/// Versions of one job that are kept.
pub const VERSIONS_MAX: usize = 100;
/// The audit log, by default.
pub const AUDIT_KEEP: Duration = Duration::from_secs(365 * 24 * 3_600);
/// How long history stays.
pub const HISTORY_KEEP: Duration = Duration::from_secs(30 * 24 * 3600);
