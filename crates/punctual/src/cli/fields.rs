//! What a command line says about a job, and the JSON that it becomes. Values are not checked here: the
//! server checks them. What is not said is not sent, and the server keeps it.

use std::io::Read;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Args;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::shell::{self, ShellFields};
use super::when::{CalendarFields, ScheduleFields, number, text};
use super::words;
use crate::failure::Failure;

#[derive(Debug, Clone, Default, Args)]
pub(super) struct Fields {
    #[command(flatten)]
    schedule: ScheduleFields,
    #[command(flatten)]
    calendars: CalendarFields,
    #[command(flatten)]
    target: TargetFields,
    #[command(flatten)]
    shell: ShellFields,
    /// The payload, as JSON
    #[arg(
        long,
        value_name = "JSON",
        conflicts_with = "payload_file",
        help_heading = "What is sent"
    )]
    payload: Option<String>,
    /// A file with the payload, as JSON; `-` is standard input
    #[arg(long, value_name = "FILE", help_heading = "What is sent")]
    payload_file: Option<PathBuf>,
    /// How many attempts a run may have [default of the server: 4]
    #[arg(
        long,
        value_name = "COUNT",
        help_heading = "Policies",
        conflicts_with = "retries"
    )]
    attempts_max: Option<u32>,
    /// The same without the first attempt: --retries 3 is --attempts-max 4
    #[arg(long, value_name = "COUNT", help_heading = "Policies")]
    retries: Option<u32>,
    /// How long one attempt may take, such as 30s
    #[arg(long, value_name = "SPAN", help_heading = "Policies")]
    timeout: Option<String>,
    /// critical, standard or batch
    #[arg(long, value_name = "LANE", help_heading = "Policies")]
    lane: Option<String>,
    /// When the last run still lives: skip, queue_one, queue_all, cancel_running or allow
    #[arg(long, value_name = "POLICY", help_heading = "Policies")]
    overlap: Option<String>,
    /// After downtime, which missed slots run: none, latest or all
    #[arg(long, value_name = "POLICY", help_heading = "Policies")]
    catch_up: Option<String>,
    /// How old a missed slot may be and still run, such as 1h
    #[arg(long, value_name = "SPAN", help_heading = "Policies")]
    catch_up_window: Option<String>,
    /// Shift the job by a fixed offset within this span, so that midnight is not one moment
    #[arg(long, value_name = "SPAN", help_heading = "Policies")]
    spread: Option<String>,
    /// at_least_once or at_most_once
    #[arg(long, value_name = "MODE", help_heading = "Policies")]
    delivery: Option<String>,
    /// What completes an attempt: answer, or callback (a target that answers 202 reports later) [default of the server: answer]
    #[arg(long, value_name = "MODE", help_heading = "Policies")]
    completion: Option<String>,
    /// With callback: how long the target may be silent, such as 5m
    #[arg(long, value_name = "SPAN", help_heading = "Policies")]
    heartbeat_within: Option<String>,
    /// Mark runs that start later than this after they were due, such as 10s
    #[arg(long, value_name = "SPAN", help_heading = "Policies")]
    start_within: Option<String>,
    /// Mark runs that take longer than this, such as 10m
    #[arg(long, value_name = "SPAN", help_heading = "Policies")]
    finish_within: Option<String>,
    /// Pause the job after so many runs in a row that ended dead, such as 5; empty for never
    #[arg(long, value_name = "RUNS", help_heading = "Policies")]
    pause_after_failures: Option<String>,
    /// Who the job belongs to [default of the server: whoever creates it]
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// A label; may be given several times
    #[arg(long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
}

#[derive(Debug, Clone, Default, Args)]
struct TargetFields {
    /// The URL to call
    #[arg(long, value_name = "URL", help_heading = "What is sent")]
    url: Option<String>,
    /// The method to call it with [default of the server: POST]
    #[arg(long, value_name = "METHOD", help_heading = "What is sent")]
    method: Option<String>,
    /// A header, such as "X-Team: ops"; may be given several times
    #[arg(
        long = "header",
        value_name = "NAME: VALUE",
        help_heading = "What is sent"
    )]
    headers: Vec<String>,
    /// A template for what is sent, instead of the payload as it is
    #[arg(long, value_name = "TEMPLATE", help_heading = "What is sent")]
    body: Option<String>,
    /// How many bytes of an answer are kept [default of the server: 4096]
    #[arg(long, value_name = "BYTES", help_heading = "What is sent")]
    output_max: Option<String>,
    /// A header of the answer to keep; may be given several times, empty for none
    #[arg(
        long = "keep-header",
        value_name = "NAME",
        help_heading = "What is sent"
    )]
    keep_headers: Vec<String>,
    /// Statuses that count as success, such as 2xx,404,300-399; empty for 2xx
    #[arg(long, value_name = "STATUSES", help_heading = "What is sent")]
    success_status: Option<String>,
    /// What a JSON answer must say to count as success, such as /ok=true; empty for nothing
    #[arg(long, value_name = "POINTER=JSON", help_heading = "What is sent")]
    success_json: Option<String>,
    /// same_origin: redirects within the same scheme, host and port are followed [default of the server: none]
    #[arg(long, value_name = "WHICH", help_heading = "What is sent")]
    redirects: Option<String>,
    /// The secret with authorities to trust beside the public ones, in PEM
    #[arg(long, value_name = "SECRET", help_heading = "What is sent")]
    target_ca: Option<String>,
    /// The secret with the certificate to show to the target, in PEM
    #[arg(long, value_name = "SECRET", help_heading = "What is sent")]
    target_cert: Option<String>,
    /// The secret with its private key, in PEM
    #[arg(long, value_name = "SECRET", help_heading = "What is sent")]
    target_key: Option<String>,
}

/// A body whose payload goes out byte for byte as it came in.
#[derive(Serialize)]
struct Body<'a> {
    #[serde(flatten)]
    fields: &'a Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Box<RawValue>>,
}

impl Fields {
    /// The JSON of a job to be created. What every job must have is demanded here, in words that can be typed.
    pub(super) fn to_create(&self, key: Option<&str>) -> Result<Bytes, Failure> {
        if !self.schedule.has_kind() {
            return Err(Failure::usage(
                "it is not said when the job is due: say --cron, --every, --at or --in",
            ));
        }
        if self.target.url.is_none() && !self.shell.has_command() {
            return Err(Failure::usage(
                "it is not said what to call: say --url, --command for a program of the node's machine, or --script",
            ));
        }
        self.to_json(key)
    }

    /// The JSON of what is to change about a job.
    pub(super) fn to_edit(&self, key: Option<&str>) -> Result<Bytes, Failure> {
        let body = self.to_json(key)?;
        if body == "{}" {
            return Err(Failure::usage(
                "nothing to change: see `punctual job edit --help`",
            ));
        }
        Ok(body)
    }

    /// Refuses any of these flags beside a file, which says what they would.
    pub(super) fn none_beside(&self, flag: &str) -> Result<(), Failure> {
        let said: Value = serde_json::from_slice(&self.to_json(None)?).unwrap_or_default();
        match first_field(&said).and_then(|field| words::flag(&field)) {
            Some(first) => Err(Failure::usage(format!(
                "{first} cannot be used with {flag}: write it into the file"
            ))),
            None => Ok(()),
        }
    }

    /// All that is said.
    pub(super) fn to_json(&self, key: Option<&str>) -> Result<Bytes, Failure> {
        let mut body = self.policies()?;
        if let Some(key) = key {
            body.insert("key".to_owned(), text(key));
        }
        if let Some(schedule) = self.schedule.to_json() {
            body.insert("schedule".to_owned(), schedule);
        }
        self.calendars.put(&mut body);
        let (http, shell) = (self.target.to_json()?, self.shell.to_json()?);
        let target = match (http, shell) {
            (None, None) => None,
            (Some(http), None) => Some(json!({ "http": http })),
            (None, Some((kind, said))) => Some(json!({ kind: said })),
            // What is said of both may be meant for the command.
            (Some(http), Some(shell)) => Some(shell::both(http, shell)?),
        };
        if let Some(target) = target {
            body.insert("target".to_owned(), target);
        }
        let body = Body {
            fields: &body,
            payload: self.payload()?,
        };
        serde_json::to_vec(&body)
            .map(Bytes::from)
            .map_err(|error| Failure::usage(format!("cannot be sent: {error}")))
    }

    fn payload(&self) -> Result<Option<Box<RawValue>>, Failure> {
        let text = match (&self.payload, &self.payload_file) {
            (Some(text), _) => text.clone(),
            (None, Some(path)) => text_of(path)?,
            (None, None) => return Ok(None),
        };
        let refused = |error: serde_json::Error| {
            Failure::usage(format!(
                "the payload is not JSON ({error}): a text is written '\"text\"'"
            ))
        };
        RawValue::from_string(text.trim().to_owned())
            .map(Some)
            .map_err(refused)
    }

    fn policies(&self) -> Result<Map<String, Value>, Failure> {
        let mut body = Map::new();
        let texts = [
            ("timeout", &self.timeout),
            ("lane", &self.lane),
            ("overlap", &self.overlap),
            ("spread", &self.spread),
            ("delivery", &self.delivery),
            ("completion", &self.completion),
            ("heartbeat_within", &self.heartbeat_within),
            ("start_within", &self.start_within),
            ("finish_within", &self.finish_within),
            ("owner", &self.owner),
        ];
        for (name, value) in texts {
            put(&mut body, name, value.as_deref());
        }
        let retries = self.retries.map(|count| count.saturating_add(1));
        if let Some(attempts) = self.attempts_max.or(retries) {
            body.insert("retry".to_owned(), json!({ "attempts_max": attempts }));
        }
        if let Some(runs) = &self.pause_after_failures {
            body.insert("pause_after_failures".to_owned(), number(runs));
        }
        let mut catch_up = Map::new();
        put(&mut catch_up, "policy", self.catch_up.as_deref());
        put(&mut catch_up, "window", self.catch_up_window.as_deref());
        if !catch_up.is_empty() {
            body.insert("catch_up".to_owned(), catch_up.into());
        }
        if !self.labels.is_empty() {
            let labels = pairs(&self.labels, '=', "a label is NAME=VALUE")?;
            body.insert("labels".to_owned(), labels.into());
        }
        Ok(body)
    }
}

impl TargetFields {
    fn to_json(&self) -> Result<Option<Value>, Failure> {
        let mut http = Map::new();
        put(&mut http, "url", self.url.as_deref());
        put(&mut http, "method", self.method.as_deref());
        put(&mut http, "body", self.body.as_deref());
        put(&mut http, "redirects", self.redirects.as_deref());
        if let Some(bytes) = &self.output_max {
            http.insert("output_max".to_owned(), number(bytes));
        }
        let mut tls = Map::new();
        put(&mut tls, "ca", self.target_ca.as_deref());
        put(&mut tls, "cert", self.target_cert.as_deref());
        put(&mut tls, "key", self.target_key.as_deref());
        if !tls.is_empty() {
            http.insert("tls".to_owned(), tls.into());
        }
        if !self.keep_headers.is_empty() {
            let names = self.keep_headers.iter().filter(|name| !name.is_empty());
            http.insert("keep_headers".to_owned(), names.cloned().collect());
        }
        if let Some(success) = self.success()? {
            http.insert("success".to_owned(), success);
        }
        if !self.headers.is_empty() {
            let headers = pairs(&self.headers, ':', "a header is NAME: VALUE")?;
            http.insert("headers".to_owned(), headers.into());
        }
        Ok((!http.is_empty()).then(|| http.into()))
    }
}

impl TargetFields {
    /// What counts as success, if anything is said of it.
    fn success(&self) -> Result<Option<Value>, Failure> {
        let mut success = Map::new();
        if let Some(statuses) = &self.success_status {
            let statuses = statuses.split(',').map(str::trim);
            let statuses: Vec<&str> = statuses.filter(|status| !status.is_empty()).collect();
            let statuses = Some(statuses).filter(|statuses| !statuses.is_empty());
            success.insert("status".to_owned(), json!(statuses));
        }
        match self.success_json.as_deref() {
            None => {}
            Some("") => {
                success.insert("json".to_owned(), Value::Null);
            }
            Some(rule) => {
                let (pointer, equals) = rule.split_once('=').ok_or_else(|| {
                    Failure::usage(format!("{rule:?} cannot be read: write /ok=true"))
                })?;
                let equals: Value = serde_json::from_str(equals).map_err(|error| {
                    Failure::usage(format!(
                        "{equals:?} is not JSON ({error}): a text is written '\"text\"'"
                    ))
                })?;
                let json = json!({ "pointer": pointer, "equals": equals });
                success.insert("json".to_owned(), json);
            }
        }
        Ok((!success.is_empty()).then(|| success.into()))
    }
}

/// The path of the first value in an object.
fn first_field(value: &Value) -> Option<String> {
    let (name, value) = value.as_object()?.iter().next()?;
    let below = first_field(value).filter(|_| name != "payload");
    Some(below.map_or(name.clone(), |below| format!("{name}.{below}")))
}

pub(super) fn put(map: &mut Map<String, Value>, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        map.insert(name.to_owned(), text(value));
    }
}

/// Names and values; without a value, a name is taken away.
pub(super) fn pairs(
    texts: &[String],
    between: char,
    shape: &str,
) -> Result<Map<String, Value>, Failure> {
    let mut map = Map::new();
    for text in texts {
        let refused = || Failure::usage(format!("{text:?} cannot be read: {shape}"));
        let (name, value) = text.split_once(between).ok_or_else(refused)?;
        put(&mut map, name.trim(), Some(value.trim()));
    }
    Ok(map)
}

/// The text of a file; `-` is standard input.
pub(super) fn text_of(path: &Path) -> Result<String, Failure> {
    let read = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    read.map_err(|error| Failure::usage(format!("{} cannot be read: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        fields: Fields,
    }

    fn fields(words: &[&str]) -> Fields {
        Line::try_parse_from([&["x"][..], words].concat())
            .unwrap()
            .fields
    }

    fn check(words: &[&str], expected: &str) {
        let body = fields(words).to_json(None).unwrap();
        assert_eq!(str::from_utf8(&body).unwrap(), expected);
    }

    #[test]
    fn flags_become_the_json_of_a_job() {
        check(
            &["--every", "5s", "--url", "http://a/"],
            r#"{"schedule":{"every":"5s"},"target":{"http":{"url":"http://a/"}}}"#,
        );
        check(
            &["--cron", "0 9 * * *", "--timezone", "Europe/Berlin"],
            r#"{"schedule":{"cron":"0 9 * * *","timezone":"Europe/Berlin"}}"#,
        );
        check(
            &["--cron", "@daily", "--cron", "@hourly"],
            r#"{"schedule":{"cron":["@daily","@hourly"]}}"#,
        );
        let attempts = r#"{"retry":{"attempts_max":1}}"#;
        check(&["--attempts-max", "1"], attempts);
        check(&["--retries", "0"], attempts);
        check(
            &["--label", "team=ops", "--label", "a=b=c", "--label", "old="],
            r#"{"labels":{"a":"b=c","old":null,"team":"ops"}}"#,
        );
        check(
            &["--catch-up", "all", "--catch-up-window", "1h"],
            r#"{"catch_up":{"policy":"all","window":"1h"}}"#,
        );
        check(
            &[
                "--header",
                "X-A: 1:2",
                "--header",
                "X-B:",
                "--output-max",
                "10",
            ],
            r#"{"target":{"http":{"headers":{"X-A":"1:2","X-B":null},"output_max":10}}}"#,
        );
        check(
            &["--timeout", "", "--start-within", "5s"],
            r#"{"start_within":"5s","timeout":null}"#,
        );
        check(&["--owner", "Ann"], r#"{"owner":"Ann"}"#);
    }

    #[test]
    fn flags_say_what_of_an_answer_counts_and_is_kept() {
        check(
            &["--redirects", "same_origin"],
            r#"{"target":{"http":{"redirects":"same_origin"}}}"#,
        );
        check(
            &["--redirects", ""],
            r#"{"target":{"http":{"redirects":null}}}"#,
        );
        check(
            &["--target-ca", "a", "--target-cert", "b", "--target-key", ""],
            r#"{"target":{"http":{"tls":{"ca":"a","cert":"b","key":null}}}}"#,
        );
        check(
            &[
                "--keep-header",
                "etag",
                "--success-status",
                "2xx, 404",
                "--success-json",
                "/ok=true",
            ],
            r#"{"target":{"http":{"keep_headers":["etag"],"success":{"json":{"equals":true,"pointer":"/ok"},"status":["2xx","404"]}}}}"#,
        );
        check(
            &[
                "--keep-header",
                "",
                "--success-status",
                "",
                "--success-json",
                "",
            ],
            r#"{"target":{"http":{"keep_headers":[],"success":{"json":null,"status":null}}}}"#,
        );
    }

    #[test]
    fn a_payload_goes_out_as_it_came() {
        check(
            &["--payload", r#"{"n": 10000000000000000000001, "x":1.0}"#],
            r#"{"payload":{"n": 10000000000000000000001, "x":1.0}}"#,
        );
        let refused = fields(&["--payload", "hello"]).to_json(None).unwrap_err();
        assert!(refused.text.contains("not JSON"), "{refused}");
    }

    #[test]
    fn an_edit_says_something_and_a_create_says_when_and_where() {
        assert!(fields(&[]).to_edit(None).is_err());
        assert!(fields(&["--tz", "UTC"]).to_edit(None).is_ok());
        let refused = |words: &[&str]| fields(words).to_create(None).unwrap_err().text;
        assert!(refused(&["--tz", "UTC", "--url", "http://a/"]).contains("--cron"));
        assert!(refused(&["--every", "5s"]).contains("--url"));
    }

    #[test]
    fn one_kind_of_schedule_at_a_time() {
        let both = ["x", "--every", "5s", "--at", "2026-12-24T18:00:00Z"];
        assert!(Line::try_parse_from(both).is_err());
        assert!(Line::try_parse_from(["x", "--in", "5s", "--tz", "UTC"]).is_err());
        assert!(Line::try_parse_from(["x", "--retries", "5", "--attempts-max", "6"]).is_err());
        assert!(fields(&["--label", "x"]).to_json(None).is_err());
    }
}
