//! `punctual calendar …`: named sets of local times that jobs leave out or keep to.

use std::path::PathBuf;

use bytes::Bytes;
use clap::{Args, Subcommand};
use comfy_table::Cell;
use hyper::Method;
use hyper::header::IF_MATCH;
use serde_json::{Map, Value};

use super::fields::text_of;
use super::output;
use super::view::{self, cut, items, moment, text};
use crate::client::{Call, Client, encode};
use crate::failure::Failure;

const PUT_HELP: &str = "\
A calendar is the union of its entries. It is written as a whole: what is not said is not in it any
more. Jobs that name it follow the change from then on.

Examples:
  punctual calendar put holidays --yearly 12-25 --yearly 12-26 --date 2027-04-05
  punctual calendar put office-hours --weekly \"MON-FRI 09:00-17:00\" --timezone Europe/Berlin
  punctual calendar put freeze --range 2026-12-24T18:00/2027-01-02 --note \"no deploys\"
  echo '{\"weekly\": [\"SAT-SUN\"]}' | punctual calendar put weekend --file -
  punctual job edit hello --exclude holidays";

const DELETE_HELP: &str = "\
A calendar that jobs name is not deleted. Take it off them first: `punctual job edit JOB --exclude \"\"`
empties the list of what a job leaves out, `--only \"\"` the list of what it keeps to.";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List calendars by name
    List(List),
    /// Show a calendar, and how many jobs go by it
    Show(Name),
    /// Create or replace a calendar
    #[command(after_help = PUT_HELP)]
    Put(Put),
    /// Delete a calendar that no job names
    #[command(after_help = DELETE_HELP)]
    Delete(Delete),
}

#[derive(Debug, Args)]
pub(super) struct Name {
    /// The calendar's name
    name: String,
}

#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    page: view::PageArgs,
}

#[derive(Debug, Args)]
pub(super) struct Put {
    #[command(flatten)]
    name: Name,
    #[command(flatten)]
    entries: Entries,
    /// A file with the whole calendar as JSON; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "Entries")]
    file: Option<PathBuf>,
    #[command(flatten)]
    version: IfMatch,
}

#[derive(Debug, Args)]
pub(super) struct Delete {
    #[command(flatten)]
    name: Name,
    #[command(flatten)]
    version: IfMatch,
}

#[derive(Debug, Args)]
struct IfMatch {
    /// Refuse unless the calendar is at this version
    #[arg(long, value_name = "VERSION")]
    if_match: Option<u32>,
}

/// What a calendar holds. The server checks it, and its answer names the entry.
#[derive(Debug, Default, Args)]
struct Entries {
    /// A date, such as 2026-12-25; as all entries, may be given several times
    #[arg(long = "date", value_name = "DATE")]
    dates: Vec<String>,
    /// A day of every year, month first, such as 12-25
    #[arg(long, value_name = "MM-DD")]
    yearly: Vec<String>,
    /// A part of every week: SAT, MON-FRI or "MON-FRI 09:00-17:00"
    #[arg(long, value_name = "DAYS")]
    weekly: Vec<String>,
    /// From one date or local time to another, such as 2026-12-24/2027-01-02
    #[arg(long = "range", value_name = "FROM/TO")]
    ranges: Vec<String>,
    /// The zone that its dates are meant in [default: that of each job]
    #[arg(long, visible_alias = "tz", value_name = "ZONE")]
    timezone: Option<String>,
    /// What it is for
    #[arg(long)]
    note: Option<String>,
}

pub(super) async fn execute(command: Command, client: &Client, json: bool) -> Result<(), Failure> {
    match command {
        Command::List(List { page }) => {
            view::list(client, "/v1/calendars", Vec::new(), &page, json, calendars).await
        }
        Command::Show(name) => {
            let answer = client.send(Call::get(name.path())).await?;
            view::print(&answer, json, calendar)
        }
        Command::Put(put) => put.execute(client, json).await,
        Command::Delete(delete) => {
            let call = Call::new(Method::DELETE, delete.name.path());
            let answer = client.send(delete.version.put(call)).await?;
            if json {
                // Of what is gone there may be nothing to say.
                return if answer.is_empty() {
                    Ok(())
                } else {
                    output::json(&answer)
                };
            }
            output::line(&format!("deleted {}", output::clean(&delete.name.name)))
        }
    }
}

impl Name {
    fn path(&self) -> String {
        format!("/v1/calendars/{}", encode(&self.name))
    }
}

impl IfMatch {
    fn put(&self, call: Call) -> Call {
        match self.if_match {
            Some(version) => call.header(IF_MATCH, format!("\"{version}\"")),
            None => call,
        }
    }
}

impl Put {
    async fn execute(&self, client: &Client, json: bool) -> Result<(), Failure> {
        let body = match &self.file {
            Some(path) => Bytes::from(text_of(path)?),
            None => self.entries.to_json()?,
        };
        let call = Call::new(Method::PUT, self.name.path())
            .json(body)
            .of_file(self.file.is_some());
        let answer = client.send(self.version.put(call)).await?;
        view::print(&answer, json, stored)
    }
}

impl Entries {
    fn to_json(&self) -> Result<Bytes, Failure> {
        let mut body = Map::new();
        let lists = [
            ("dates", &self.dates),
            ("yearly", &self.yearly),
            ("weekly", &self.weekly),
            ("ranges", &self.ranges),
        ];
        for (name, entries) in lists {
            if !entries.is_empty() {
                body.insert(name.to_owned(), entries.as_slice().into());
            }
        }
        if body.is_empty() {
            return Err(Failure::usage(
                "a calendar without entries holds nothing: say --date, --yearly, --weekly, --range or --file",
            ));
        }
        for (name, text) in [("timezone", &self.timezone), ("note", &self.note)] {
            if let Some(text) = text {
                body.insert(name.to_owned(), text.as_str().into());
            }
        }
        Ok(Value::from(body).to_string().into())
    }
}

const LISTS: [&str; 4] = ["dates", "yearly", "weekly", "ranges"];

fn size(calendar: &Value) -> usize {
    LISTS.iter().map(|name| items(&calendar[*name]).len()).sum()
}

fn stored(calendar: &Value) -> Result<(), Failure> {
    let (name, version) = (text(&calendar["name"]), text(&calendar["version"]));
    let entries = match size(calendar) {
        1 => "1 entry".to_owned(),
        count => format!("{count} entries"),
    };
    output::line(&format!("stored {name}, version {version}: {entries}"))?;
    following(calendar);
    Ok(())
}

/// Says if jobs have yet to follow.
fn following(calendar: &Value) {
    if calendar["applied"] == false {
        output::note("note: not all jobs that name it follow it as it stands yet");
    }
}

fn calendars(items: &[Value], first: bool) -> Result<(), Failure> {
    let rows = items.iter().map(|calendar| {
        vec![
            Cell::new(text(&calendar["name"])),
            Cell::new(text(&calendar["version"])),
            Cell::new(size(calendar)),
            Cell::new(text(&calendar["timezone"])),
            Cell::new(text(&calendar["jobs"])),
            Cell::new(cut(&text(&calendar["note"]))),
        ]
    });
    let head = ["NAME", "VERSION", "ENTRIES", "TIMEZONE", "JOBS", "NOTE"];
    view::rows_of(&head, rows.collect(), first, "calendars")
}

/// One calendar, an entry to a line.
fn calendar(calendar: &Value) -> Result<(), Failure> {
    for (name, shown) in lines(calendar) {
        output::line(&format!("{name:10}  {shown}"))?;
    }
    following(calendar);
    Ok(())
}

fn lines(calendar: &Value) -> Vec<(&'static str, String)> {
    let zone = if calendar["timezone"].is_null() {
        "that of each job".to_owned()
    } else {
        text(&calendar["timezone"])
    };
    let mut lines = vec![("name", text(&calendar["name"]))];
    if !calendar["note"].is_null() {
        lines.push(("note", text(&calendar["note"])));
    }
    lines.push(("timezone", zone));
    for name in LISTS {
        for (at, entry) in items(&calendar[name]).iter().enumerate() {
            lines.push((if at == 0 { name } else { "" }, entry_text(entry)));
        }
    }
    lines.push(("version", text(&calendar["version"])));
    lines.push(("updated_at", moment(&calendar["updated_at"], true)));
    lines.push(("jobs", text(&calendar["jobs"])));
    lines.push(("applied", text(&calendar["applied"])));
    lines
}

/// A range may be a text, or an object with its two ends.
fn entry_text(entry: &Value) -> String {
    if entry.is_object() {
        format!("{}/{}", text(&entry["from"]), text(&entry["to"]))
    } else {
        text(entry)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_become_the_json_of_a_calendar() {
        let entries = Entries {
            dates: vec!["2026-12-25".to_owned()],
            weekly: vec!["SAT".to_owned(), "SUN".to_owned()],
            timezone: Some("UTC".to_owned()),
            ..Entries::default()
        };
        let body: Value = serde_json::from_slice(&entries.to_json().unwrap()).unwrap();
        assert_eq!(
            body,
            json!({ "dates": ["2026-12-25"], "weekly": ["SAT", "SUN"], "timezone": "UTC" })
        );
        assert!(Entries::default().to_json().is_err());
    }

    #[test]
    fn a_calendar_is_shown_an_entry_to_a_line() {
        let shown = lines(&json!({
            "name": "a", "note": null, "timezone": null, "dates": ["2026-12-25", "2026-12-26"],
            "ranges": [{ "from": "2026-12-24T18:00", "to": "2026-12-27" }], "version": 2, "jobs": 1,
        }));
        let line = |name: &str, shown: &str| (name.to_owned(), shown.to_owned());
        let shown: Vec<_> = shown.iter().map(|(name, text)| line(name, text)).collect();
        assert_eq!(
            shown.get(..5).unwrap(),
            [
                line("name", "a"),
                line("timezone", "that of each job"),
                line("dates", "2026-12-25"),
                line("", "2026-12-26"),
                line("ranges", "2026-12-24T18:00/2026-12-27"),
            ]
        );
    }
}
