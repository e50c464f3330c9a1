//! What texts of requests look like: the form that is promised. What else is read beside it, such as blanks around a
//! duration, is a courtesy. The tests hold each form against what reads it.

use model::schedule::{EXPRESSION_BYTES_MAX, EXPRESSIONS_MAX};
use model::{Timestamp, limits, success};

use crate::wire::FIELDS_MAX;

/// `90s`, `1h30m`, `PT15M`, `P1M`.
pub(super) const SPAN: &str = "^(([0-9]+([.,][0-9]+)?(w|d|h|ms|m|s)){1,6}|[Pp]([0-9]+[YMWDymwd]){0,4}([Tt]([0-9]+([.,][0-9]+)?[HMShms]){1,3})?)$";
const RETRY: &str = "^(usual|never|([0-9]+([.,][0-9]+)?(w|d|h|ms|m|s)){1,6}|[Pp]([0-9]+[YMWDymwd]){0,4}([Tt]([0-9]+([.,][0-9]+)?[HMShms]){1,3})?)$";
/// RFC 3339 with an offset, or an epoch number: in a parameter all is text.
pub(super) const MOMENT: &str = "^([0-9]+|[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2}))$";
/// The same, or what a clock on a wall shows.
pub(super) const MOMENT_OR_LOCAL: &str = "^([0-9]+|[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})?)?)$";
const ZONE: &str = "^[A-Za-z][A-Za-z0-9_+/-]*$";
const YEARLY: &str = "^[0-9]{2}-[0-9]{2}$";
const WEEKLY: &str = "^[A-Za-z]{3,9}(-[A-Za-z]{3,9})?( [0-9]{2}:[0-9]{2}-[0-9]{2}:[0-9]{2})?$";
const RANGE_END: &str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2})?$";
const RANGE: &str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2})?/[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2})?$";

/// A job: its id, or `key:` and its key.
pub(super) const JOB: &str = "^(job_[0-9a-f]{32}|key:[A-Za-z0-9._:/@+=-]+)$";
pub(super) const JOB_MAX: usize = "key:".len() + limits::NAME_MAX;
pub(super) const JOB_KEY: &str = "^[A-Za-z0-9._:/@+=-]+$";
pub(super) const RUN: &str = "^run_[0-9a-f]{32}$";
pub(super) const REPLAY: &str = "^replay_[0-9a-f]{32}$";
pub(super) const ACCESS_KEY: &str = "^key_[0-9a-f]{32}$";
pub(super) const SIGNING: &str = "^sign_[12]_[0-9]+$";
/// Names of calendars and of alerts.
pub(super) const NAME: &str = "^[A-Za-z0-9._-]+$";
pub(super) const TENANT: &str = "^[a-z][a-z0-9-]*$";
pub(super) const USER: &str = "^[a-z][a-z0-9_.+@-]*$";
/// Names of secrets and of queues.
pub(super) const SECRET: &str = "^[a-z][a-z0-9_.-]*$";
pub(super) const LABEL: &str = "^[^=]+=";
const HEADER: &str = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";
const SIGNING_TEXT: &str = "^whsec_[A-Za-z0-9+/]{32,86}={0,2}$";
/// A status of success, hundreds of them, or a range.
const STATUSES: &str = "^([2-5]xx|[2-5][0-9]{2}(-[2-5][0-9]{2})?)$";

/// Of any page: a mark and a name at the most, in base64.
pub(super) const CURSOR: &str = "^[A-Za-z0-9_-]+$";
pub(super) const CURSOR_MAX: usize = (1 + limits::NAME_MAX).div_ceil(3) * 4;
pub(super) const VERSIONS: &str = r#"^([*]|"?[0-9]+"?( *, *"?[0-9]+"?)*)$"#;
pub(super) const TRACE: &str = "^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$";
pub(super) const TOKEN: &str = "^pt1_[^_]{1,32}_[0-9]+_[0-9]+_[0-9a-f]{64}$";
pub(super) const HEAD: &str = "^[0-9]+:[0-9A-Fa-f]{64}$";

type Fields = &'static [&'static str];

pub(super) const FORMS: &[(&str, &str, Fields)] = &[
    (
        "pattern",
        SPAN,
        &[
            "AlertRequest.repeat",
            "CatchUpRequest.window",
            "JobRequest.finish_within",
            "JobRequest.heartbeat_within",
            "JobRequest.spread",
            "JobRequest.start_within",
            "JobRequest.timeout",
            "JobPatch.finish_within",
            "JobPatch.heartbeat_within",
            "JobPatch.spread",
            "JobPatch.start_within",
            "JobPatch.timeout",
            "KeyRequest.expires_in",
            "RetryRequest.delay_first",
            "RetryRequest.delay_max",
            "ScheduleRequest.every",
            "ScheduleRequest.in",
        ],
    ),
    ("pattern", RETRY, &["ReportBody.retry"]),
    ("format", "date-time", &["MomentForm#0"]),
    (
        "pattern",
        ZONE,
        &[
            "CalendarRequest.timezone",
            "PreviewBody.timezone",
            "ScheduleRequest.timezone",
        ],
    ),
    ("format", "date", &["CalendarRequest.dates.items"]),
    ("pattern", YEARLY, &["CalendarRequest.yearly.items"]),
    ("pattern", WEEKLY, &["CalendarRequest.weekly.items"]),
    ("pattern", RANGE, &["RangeForm#0"]),
    (
        "pattern",
        RANGE_END,
        &["RangeRequest.from", "RangeRequest.to"],
    ),
    ("pattern", JOB, &["AlertRequest.job", "FilterRequest.job"]),
    ("pattern", LABEL, &["AlertRequest.label"]),
    ("pattern", JOB_KEY, &["JobRequest.key", "JobPatch.key"]),
    (
        "pattern",
        NAME,
        &[
            "CalendarRequest.name",
            "JobRequest.exclude.items",
            "JobRequest.only.items",
            "JobPatch.exclude.items",
            "JobPatch.only.items",
            "PreviewBody.exclude.items",
            "PreviewBody.only.items",
        ],
    ),
    (
        "pattern",
        TENANT,
        &["KeyRequest.tenant", "TenantRequest.name"],
    ),
    ("pattern", USER, &["UserRequest.name", "UserPatch.name"]),
    (
        "pattern",
        SECRET,
        &[
            "KeyRequest.queues.items",
            "SecretRequest.name",
            "SecretPatch.name",
            "TlsRequest.ca",
            "TlsRequest.cert",
            "TlsRequest.key",
        ],
    ),
    (
        "pattern",
        HEADER,
        &[
            "HttpRequest.keep_headers.items",
            "HttpPatch.keep_headers.items",
        ],
    ),
    ("pattern", SIGNING_TEXT, &["SigningSecretRequest.secret"]),
    ("pattern", STATUSES, &["StatusesForm#1"]),
    // States and reasons, which are named where they are read.
    (
        "pattern",
        "^[a-z_]+$",
        &["WordsForm#0", "WordsForm#1.items"],
    ),
];

pub(super) const BOUNDS: &[(&str, usize, Fields)] = &[
    (
        "maxLength",
        EXPRESSION_BYTES_MAX,
        &[
            "ScheduleForm#0",
            "ExpressionsForm#0",
            "ExpressionsForm#1.items",
        ],
    ),
    ("minItems", 1, &["ExpressionsForm#1", "StatusesForm#2"]),
    ("maxItems", EXPRESSIONS_MAX, &["ExpressionsForm#1"]),
    ("maxItems", limits::LABELS_MAX, &["WordsForm#1"]),
    (
        "minimum",
        Timestamp::MIN.as_u64() as usize,
        &["MomentForm#1"],
    ),
    (
        "maximum",
        Timestamp::MAX.as_u64() as usize,
        &["MomentForm#1"],
    ),
    (
        "maxLength",
        limits::NAME_MAX,
        &[
            "FilterRequest.labels.additionalProperties",
            "JobRequest.exclude.items",
            "JobRequest.only.items",
            "JobPatch.exclude.items",
            "JobPatch.only.items",
            "PreviewBody.exclude.items",
            "PreviewBody.only.items",
        ],
    ),
    (
        "maxLength",
        JOB_MAX,
        &["AlertRequest.job", "FilterRequest.job"],
    ),
    ("minLength", 1, &["AlertRequest.owner"]),
    (
        "maxLength",
        2 * limits::NAME_MAX,
        &["AlertRequest.label", "AlertRequest.owner"],
    ),
    (
        "maxLength",
        limits::URL_MAX,
        &[
            "HttpRequest.headers.additionalProperties",
            "HttpPatch.headers.additionalProperties",
            "TargetForm#0",
            "TargetPatchForm#0",
        ],
    ),
    (
        "maxLength",
        limits::COMMAND_BYTES_MAX,
        &[
            "ShellRequest.command.items",
            "ShellPatch.command.items",
            "PythonRequest.args.items",
            "PythonPatch.args.items",
        ],
    ),
    (
        "maxLength",
        limits::RENDERED_LINE_MAX,
        &[
            "ShellRequest.env.additionalProperties",
            "ShellPatch.env.additionalProperties",
            "PythonRequest.env.additionalProperties",
            "PythonPatch.env.additionalProperties",
        ],
    ),
    (
        "maximum",
        u8::MAX as usize,
        &[
            "ShellRequest.success.items",
            "ShellRequest.retry.items",
            "ShellRequest.fail.items",
            "ShellRequest.dead.items",
            "ShellPatch.success.items",
            "ShellPatch.retry.items",
            "ShellPatch.fail.items",
            "ShellPatch.dead.items",
            "PythonRequest.success.items",
            "PythonRequest.retry.items",
            "PythonRequest.fail.items",
            "PythonRequest.dead.items",
            "PythonPatch.success.items",
            "PythonPatch.retry.items",
            "PythonPatch.fail.items",
            "PythonPatch.dead.items",
        ],
    ),
    ("minimum", success::STATUS_MIN as usize, &["StatusesForm#0"]),
    ("maximum", success::STATUS_MAX as usize, &["StatusesForm#0"]),
    // An edit may take away as many as it sets.
    (
        "maxProperties",
        FIELDS_MAX,
        &[
            "HttpPatch.headers",
            "JobPatch.labels",
            "ShellPatch.env",
            "PythonPatch.env",
        ],
    ),
    (
        "maxProperties",
        limits::LABELS_MAX,
        &["FilterRequest.labels"],
    ),
    (
        "maxLength",
        limits::SECRET_NAME_MAX,
        &["TlsRequest.ca", "TlsRequest.cert", "TlsRequest.key"],
    ),
    (
        "maxLength",
        limits::QUEUE_NAME_MAX,
        &["KeyRequest.queues.items"],
    ),
    (
        "maxLength",
        limits::HOST_MAX,
        &["SecretRequest.hosts.items", "SecretPatch.hosts.items"],
    ),
    (
        "maxLength",
        limits::PASSWORD_MAX,
        &["UserRequest.password", "UserPatch.password"],
    ),
    ("maxLength", limits::NOTE_MAX, &["ReportBody.error"]),
    ("maxLength", limits::OUTPUT_MAX, &["ReportBody.output"]),
    (
        "maxLength",
        limits::CHECKPOINT_MAX,
        &["HeartbeatBody.checkpoint"],
    ),
];

#[cfg(test)]
mod tests {
    use model::schedule::{DateRange, Point, Weekly, Yearly, Zone, parse_span};
    use model::success::StatusRange;
    use model::{CalendarName, JobKey, SecretName, TenantName, UserName};
    use regex::Regex;

    use super::*;

    /// Whoever reads a text takes all that its form promises, and neither takes what is bad.
    #[track_caller]
    fn check(form: &str, good: &[&str], bad: &[&str], takes: impl Fn(&str) -> bool) {
        let form = Regex::new(form).unwrap();
        for text in good {
            assert!(form.is_match(text), "{text} does not fit {form}");
            assert!(takes(text), "{text} is not taken");
        }
        for text in bad {
            assert!(!form.is_match(text), "{text} fits {form}");
            assert!(!takes(text), "{text} is taken");
        }
    }

    #[test]
    fn what_is_promised_of_times_is_what_is_read() {
        let spans = [
            "90s", "1h30m", "500ms", "1.5h", "2d", "1w", "PT15M", "P1DT2.5S",
        ];
        check(SPAN, &spans, &["", "90", "s", "1y", "-1s", "P1S"], |text| {
            parse_span(text).is_ok()
        });
        let moments = [
            "0",
            "1798138800000",
            "2026-12-24T18:00:00Z",
            "2026-12-24T18:00:00.125+01:00",
        ];
        let is_moment = |text: &str| match text.parse() {
            Ok(number) => Timestamp::from_number(number).is_ok(),
            Err(_) => Timestamp::parse(text).is_ok(),
        };
        let bad = ["", "now", "-1", "2026-12-24", "2026-12-24T18:00:00"];
        check(MOMENT, &moments, &bad, is_moment);
        let local = ["2026-03-29T02:30", "2026-03-29T02:30:15", "0"];
        check(MOMENT_OR_LOCAL, &local, &["", "2026-03-29"], |text| {
            Point::parse(text).is_ok()
        });
        let zones = [
            "UTC",
            "Europe/Berlin",
            "Etc/GMT+8",
            "America/Port-au-Prince",
        ];
        check(ZONE, &zones, &["", "+01:00", "Europe Berlin"], |text| {
            Zone::get(text).is_ok()
        });
    }

    #[test]
    fn what_is_promised_of_calendars_is_what_is_read() {
        check(
            YEARLY,
            &["12-25", "02-29"],
            &["12", "1-1", "25/12"],
            |text| Yearly::parse(text).is_ok(),
        );
        let weekly = ["SAT-SUN", "mon", "MON-FRI 09:00-17:00", "Wednesday"];
        check(WEEKLY, &weekly, &["", "6", "MON 9-17"], |text| {
            Weekly::parse(text).is_ok()
        });
        let ranges = ["2026-12-24/2027-01-02", "2026-12-24T18:00/2026-12-27T06:00"];
        check(RANGE, &ranges, &["2026-12-24", "2026-12-24/"], |text| {
            DateRange::parse(text).is_ok()
        });
        let end = Regex::new(RANGE_END).unwrap();
        let ends = ranges.iter().flat_map(|range| range.split('/'));
        assert!(ends.into_iter().all(|text| end.is_match(text)));
    }

    #[test]
    fn what_is_promised_of_names_is_what_is_read() {
        check(
            JOB_KEY,
            &["nightly", "a/b:c@d+e=f.g_h-i"],
            &["", "a b", "ä"],
            |text| JobKey::new(text).is_ok(),
        );
        check(
            NAME,
            &["holidays", "A.b_c-1"],
            &["", "a b", "a/b"],
            |text| CalendarName::new(text).is_ok(),
        );
        check(TENANT, &["team-1"], &["", "Team", "1team", "a_b"], |text| {
            TenantName::new(text).is_ok()
        });
        check(USER, &["ada", "a-b_c.d+e@f"], &["", "Ada", "1a"], |text| {
            UserName::new(text).is_ok()
        });
        check(
            SECRET,
            &["billing-token", "a.b_c"],
            &["", "A", "1a"],
            |text| SecretName::new(text).is_ok(),
        );
        check(
            STATUSES,
            &["2xx", "404", "300-399"],
            &["", "1xx", "600", "xx"],
            |text| StatusRange::parse(text).is_some(),
        );
        let secrets = [24, 32, 64].map(|count| {
            let bytes = vec![7; count];
            format!(
                "whsec_{}",
                base64::Engine::encode(&base64::prelude::BASE64_STANDARD, bytes)
            )
        });
        let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
        check(
            SIGNING_TEXT,
            &secrets,
            &["", "whsec_", "whsec_abc"],
            |text| executor::sign::check_secret(text).is_ok(),
        );
    }
}
