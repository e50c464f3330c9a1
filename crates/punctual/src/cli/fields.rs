//! What a command line says about a job, and the JSON that it becomes. Values are not checked here: the
//! server checks them, and its answer names the field.

use std::io::Read;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Args;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::when::{CalendarFields, ScheduleFields};
use crate::failure::Failure;

/// The groups of flags that say what a job is. A file says all of it, or none.
pub const GROUPS: [&str; 5] = [
    "Fields",
    "ScheduleFields",
    "BoundFields",
    "CalendarFields",
    "TargetFields",
];

#[derive(Debug, Clone, Default, Args)]
pub struct Fields {
    #[command(flatten)]
    schedule: ScheduleFields,
    #[command(flatten)]
    calendars: CalendarFields,
    #[command(flatten)]
    target: TargetFields,
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
    /// Tries after the first one [default of the server: 3]
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
    /// The JSON of a job to be created.
    pub fn to_create(&self, key: Option<&str>) -> Result<Bytes, Failure> {
        let mut body = self.policies()?;
        if let Some(key) = key {
            body.insert("key".to_owned(), key.into());
        }
        self.put_schedule(&mut body, &Value::Null)?;
        self.put_target(&mut body, &Value::Null)?;
        self.finish(&body)
    }

    /// The JSON of what is to change about a job. A schedule or a target is replaced as a whole, so what
    /// is not said about it is taken from the job as it stands.
    pub fn to_edit(&self, job: &Value, key: Option<&str>) -> Result<Bytes, Failure> {
        let mut body = self.policies()?;
        if let Some(key) = key {
            body.insert("key".to_owned(), key.into());
        }
        self.put_schedule(&mut body, &job["schedule"])?;
        self.put_target(&mut body, &job["target"])?;
        if body.is_empty() && self.payload.is_none() && self.payload_file.is_none() {
            return Err(Failure::usage(
                "nothing to change: see `punctual job edit --help`",
            ));
        }
        self.finish(&body)
    }

    fn finish(&self, fields: &Map<String, Value>) -> Result<Bytes, Failure> {
        let unsendable =
            |error: serde_json::Error| Failure::usage(format!("cannot be sent: {error}"));
        let body = Body {
            fields,
            payload: self.payload()?,
        };
        serde_json::to_vec(&body)
            .map(Bytes::from)
            .map_err(unsendable)
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
        ];
        for (name, value) in texts {
            if let Some(value) = value {
                body.insert(name.to_owned(), value.as_str().into());
            }
        }
        if let Some(retries) = self.retries {
            body.insert(
                "retry".to_owned(),
                json!({ "attempts_max": u64::from(retries) + 1 }),
            );
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

    fn put_schedule(&self, body: &mut Map<String, Value>, stands: &Value) -> Result<(), Failure> {
        if let Some(schedule) = self.schedule.to_json(stands)? {
            body.insert("schedule".to_owned(), schedule);
        }
        self.calendars.put(body);
        Ok(())
    }

    fn put_target(&self, body: &mut Map<String, Value>, stands: &Value) -> Result<(), Failure> {
        let TargetFields {
            url,
            method,
            headers,
        } = &self.target;
        if url.is_none() && method.is_none() && headers.is_empty() {
            return Ok(());
        }
        let mut http = stands["http"].as_object().cloned().unwrap_or_default();
        put(&mut http, "url", url.as_deref());
        put(&mut http, "method", method.as_deref());
        if !headers.is_empty() {
            let headers = pairs(headers, ':', "a header is NAME: VALUE")?;
            http.insert("headers".to_owned(), headers.into());
        }
        body.insert("target".to_owned(), json!({ "http": http }));
        Ok(())
    }
}

fn put(map: &mut Map<String, Value>, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        map.insert(name.to_owned(), value.into());
    }
}

fn pairs(texts: &[String], between: char, shape: &str) -> Result<Map<String, Value>, Failure> {
    let mut map = Map::new();
    for text in texts {
        let refused = || Failure::usage(format!("{text:?} cannot be read: {shape}"));
        let (name, value) = text.split_once(between).ok_or_else(refused)?;
        put(&mut map, name.trim(), Some(value.trim()));
    }
    Ok(map)
}

/// The text of a file; `-` is standard input.
pub fn text_of(path: &Path) -> Result<String, Failure> {
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
        let body = fields(words).to_create(None).unwrap();
        assert_eq!(str::from_utf8(&body).unwrap(), expected);
    }

    #[test]
    fn flags_become_the_json_of_a_job() {
        check(
            &["--every", "5s", "--url", "http://a/"],
            r#"{"schedule":{"every":"5s"},"target":{"http":{"url":"http://a/"}}}"#,
        );
        check(
            &["--cron", "0 9 * * *", "--tz", "Europe/Berlin"],
            r#"{"schedule":{"cron":"0 9 * * *","timezone":"Europe/Berlin"}}"#,
        );
        check(
            &["--cron", "@daily", "--cron", "@hourly"],
            r#"{"schedule":{"cron":["@daily","@hourly"]}}"#,
        );
        check(&["--retries", "0"], r#"{"retry":{"attempts_max":1}}"#);
        check(
            &["--label", "team=ops", "--label", "a=b=c"],
            r#"{"labels":{"a":"b=c","team":"ops"}}"#,
        );
        check(
            &["--catch-up", "all", "--catch-up-window", "1h"],
            r#"{"catch_up":{"policy":"all","window":"1h"}}"#,
        );
        check(
            &["--header", "X-A: 1:2"],
            r#"{"target":{"http":{"headers":{"X-A":"1:2"}}}}"#,
        );
    }

    #[test]
    fn a_payload_goes_out_as_it_came() {
        check(
            &["--payload", r#"{"n": 10000000000000000000001, "x":1.0}"#],
            r#"{"payload":{"n": 10000000000000000000001, "x":1.0}}"#,
        );
        let refused = fields(&["--payload", "hello"]).to_create(None).unwrap_err();
        assert!(refused.text.contains("not JSON"), "{refused}");
    }

    #[test]
    fn an_edit_keeps_what_it_does_not_mention() {
        let job = json!({
            "schedule": { "cron": "0 9 * * *", "timezone": "UTC" },
            "target": { "http": { "url": "http://a/", "method": "POST" } },
        });
        let body = fields(&["--method", "PUT", "--tz", "Asia/Tokyo"])
            .to_edit(&job, None)
            .unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            body["target"]["http"],
            json!({ "url": "http://a/", "method": "PUT" })
        );
        assert_eq!(
            body["schedule"],
            json!({ "cron": "0 9 * * *", "timezone": "Asia/Tokyo" })
        );
        assert!(fields(&[]).to_edit(&job, None).is_err());
    }

    #[test]
    fn one_kind_of_schedule_at_a_time() {
        let both = ["x", "--every", "5s", "--at", "2026-12-24T18:00:00Z"];
        assert!(Line::try_parse_from(both).is_err());
        assert!(Line::try_parse_from(["x", "--in", "5s", "--tz", "UTC"]).is_err());
        assert!(fields(&["--tz", "UTC"]).to_create(None).is_err());
        assert!(fields(&["--label", "x"]).to_create(None).is_err());
    }
}
