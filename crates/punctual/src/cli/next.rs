//! `punctual next`: when a schedule is due, worked out here; with calendars, which live there, by the server.

use clap::Args;
use comfy_table::Cell;
use engine::{Clock, SystemClock};
use model::schedule::{CronOptions, Dialect, DstGap, DstOverlap, Kind, Schedule, Zone};
use model::{Slot, Timestamp, limits};
use serde_json::{Map, Value, json};

use super::view::{self, distance, items, text};
use super::when::{BoundFields, CalendarFields, CronFields};
use super::{Remote, output, with_client};
use crate::client::{Call, Client};
use crate::failure::Failure;

pub(super) const HELP: &str = "\
Calendars are kept by a server: with --exclude or --only it is called. Everything else is worked out
here.

Examples:
  punctual next \"0 9 * * MON-FRI\" --timezone Europe/Berlin
  punctual next \"@every 90s\" --count 3
  punctual next \"30 2 * * *\" --timezone America/New_York --from 2027-03-13T00:00:00Z
  punctual next \"@every P1W\" --starts-at 2027-01-04T08:00:00Z --ends-at 2027-02-01T08:00:00Z
  punctual next \"0 9 * * *\" --timezone Europe/Berlin --exclude holidays --only office-hours";

#[derive(Debug, Args)]
pub(super) struct Next {
    /// A cron expression, a macro such as @daily, or "@every 90s"
    schedule: String,
    /// The time zone [default: UTC, or that of a CRON_TZ= in front of the expression]
    #[arg(long, visible_alias = "tz", value_name = "ZONE")]
    timezone: Option<String>,
    #[command(flatten)]
    options: CronFields,
    /// How many slots
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=limits::PREVIEW_MAX as i64))]
    count: u32,
    /// Slots after this moment [default: now]
    #[arg(long, value_name = "MOMENT")]
    from: Option<String>,
    #[command(flatten)]
    bounds: BoundFields,
    #[command(flatten)]
    calendars: CalendarFields,
}

impl Next {
    /// Whether only a server knows.
    fn needs_server(&self) -> bool {
        !self.calendars.is_empty()
    }

    /// The schedule as it is understood here, without its calendars, and where to begin.
    fn read(&self, now: Timestamp) -> Result<(Schedule, Timestamp), Failure> {
        let zone = self.timezone.as_deref().map(Zone::get).transpose();
        let zone = zone.map_err(|error| refused(&error))?;
        let options = self.cron_options(zone)?;
        let from = match &self.from {
            Some(text) => moment(text)?,
            None => now,
        };
        let starts_at = given(&self.bounds.starts_at).map(moment).transpose()?;
        let anchor = starts_at.unwrap_or(from);
        let mut schedule = Schedule::parse_text(&self.schedule, options, anchor)
            .map_err(|error| refused(&error))?;
        schedule.bounds.starts_at = starts_at;
        schedule.bounds.ends_at = given(&self.bounds.ends_at).map(moment).transpose()?;
        schedule.bounds.runs_max = given(&self.bounds.runs_max).map(count).transpose()?;
        if self.bounds.after_completion == Some(true) {
            let Kind::Every(every) = &mut schedule.kind else {
                return Err(Failure::usage(
                    "--after-completion belongs to an interval, as in \"@every 90s\"",
                ));
            };
            every.after_completion = true;
        }
        Ok((schedule, from))
    }
}

impl Next {
    fn cron_options(&self, zone: Option<Zone>) -> Result<CronOptions, Failure> {
        let CronFields {
            dialect,
            dst_gap,
            dst_overlap,
        } = &self.options;
        Ok(CronOptions {
            zone,
            dialect: word(
                "--dialect",
                dialect,
                [("unix", Dialect::Unix), ("quartz", Dialect::Quartz)],
            )?,
            dst_gap: word(
                "--dst-gap",
                dst_gap,
                [("run_after", DstGap::RunAfter), ("skip", DstGap::Skip)],
            )?,
            dst_overlap: word(
                "--dst-overlap",
                dst_overlap,
                [("first", DstOverlap::First), ("both", DstOverlap::Both)],
            )?,
            hash: 0,
        })
    }
}

/// One of two words; the default if none is said.
fn word<T: Copy + Default>(
    flag: &str,
    said: &Option<String>,
    words: [(&str, T); 2],
) -> Result<T, Failure> {
    let Some(said) = given(said) else {
        return Ok(T::default());
    };
    let found = words.iter().find(|(word, _)| *word == said);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let [(one, _), (other, _)] = words;
        Failure::usage(format!("{flag} is {one} or {other}, not {said:?}"))
    })
}

/// Works the slots out.
pub(super) fn execute(next: &Next, remote: &Remote) -> Result<(), Failure> {
    if next.needs_server() {
        with_client(remote, async |client| {
            print_next(next, &client, remote.json).await
        })
    } else {
        print_here(next, remote.json)
    }
}

/// Worked out without a server.
fn print_here(next: &Next, json: bool) -> Result<(), Failure> {
    let now = Clock::now(&SystemClock);
    let (schedule, from) = next.read(now)?;
    let following = |slot: &Slot| schedule.next_after(slot.0);
    let runs_max = schedule.bounds.runs_max.unwrap_or(u32::MAX);
    let slots: Vec<String> = std::iter::successors(schedule.next_after(from), following)
        .take(next.count.min(runs_max) as usize)
        .map(|slot| slot.to_string())
        .collect();
    let mut notes = schedule.notes(from);
    if schedule.after_completion() {
        notes.push(
            "each slot follows the end of the run before it: these are for runs that take no time"
                .to_owned(),
        );
    }
    let answer = json!({ "slots": slots, "words": schedule.words(), "notes": notes });
    if json {
        return output::line(&answer.to_string());
    }
    show(&answer, &schedule.zone(), now)
}

/// Lets the server work them out: calendars are kept there.
async fn print_next(next: &Next, client: &Client, json: bool) -> Result<(), Failure> {
    let now = Clock::now(&SystemClock);
    let (schedule, from) = next.read(now)?;
    let body = request(next, &schedule, from);
    let call = Call::post("/v1/schedules/preview").json(body.to_string());
    let answer = client.send(call).await?;
    view::print(&answer, json, |answer| show(answer, &schedule.zone(), now))
}

fn request(next: &Next, schedule: &Schedule, from: Timestamp) -> Value {
    let mut body = Map::new();
    // Only an object can say that it goes by the end of runs.
    let written = match &schedule.kind {
        Kind::Every(every) if every.after_completion => json!({
            "every": every.period.text(),
            "timezone": every.zone.name(),
            "after_completion": true,
        }),
        Kind::Every(_) | Kind::Cron(_) | Kind::Once(_) | Kind::Broken(_) => {
            if let Some(timezone) = &next.timezone {
                body.insert("timezone".to_owned(), timezone.as_str().into());
            }
            next.options.put(&mut body);
            next.schedule.as_str().into()
        }
    };
    body.insert("schedule".to_owned(), written);
    body.insert("from".to_owned(), from.to_string().into());
    body.insert("count".to_owned(), next.count.into());
    let bounds = next.bounds.to_json().into_iter();
    body.extend(bounds.filter(|(name, value)| name != "after_completion" && !value.is_null()));
    next.calendars.put(&mut body);
    body.into()
}

fn show(answer: &Value, zone: &Zone, now: Timestamp) -> Result<(), Failure> {
    output::line(&text(&answer["words"]))?;
    let row = |slot: &Value| {
        let moment = slot.as_str().and_then(|text| Timestamp::parse(text).ok());
        let shown = |show: &dyn Fn(Timestamp) -> String| moment.map_or(String::new(), show);
        vec![
            Cell::new(text(slot)),
            Cell::new(shown(&|moment| local(moment, zone))),
            Cell::new(shown(&|moment| distance(moment, now))),
        ]
    };
    let rows: Vec<_> = items(&answer["slots"]).iter().map(row).collect();
    if !rows.is_empty() {
        output::table(&["SLOT", "LOCAL TIME", "FROM NOW"], rows)?;
    }
    let left_out = |out: &Value| {
        vec![
            Cell::new(text(&out["slot"])),
            Cell::new(text(&out["calendar"])),
        ]
    };
    let rows: Vec<_> = items(&answer["excluded"]).iter().map(left_out).collect();
    if !rows.is_empty() {
        output::line("")?;
        output::table(&["LEFT OUT", "BY CALENDAR"], rows)?;
    }
    for note in items(&answer["notes"]) {
        output::note(&format!("note: {}", text(note)));
    }
    Ok(())
}

fn refused(error: &dyn std::error::Error) -> Failure {
    Failure::usage(error.to_string())
}

/// What is said; an empty text says nothing.
fn given(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

fn moment(text: &str) -> Result<Timestamp, Failure> {
    let read = match text.parse::<i64>() {
        Ok(number) => Timestamp::from_number(number),
        Err(_) => Timestamp::parse(text),
    };
    read.map_err(|error| refused(&error))
}

fn count(text: &str) -> Result<u32, Failure> {
    let count = text.parse::<u32>().ok().filter(|count| *count > 0);
    count.ok_or_else(|| Failure::usage(format!("{text:?} is not a count of runs: write 1 or more")))
}

/// A moment by the clock on the zone's walls.
fn local(moment: Timestamp, zone: &Zone) -> String {
    let zoned = moment.to_jiff().in_tz(zone.name());
    zoned.map_or(String::new(), |zoned| {
        zoned.strftime("%a %Y-%m-%d %H:%M:%S %Z").to_string()
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        next: Next,
    }

    fn next(words: &[&str]) -> Next {
        Line::try_parse_from([&["x"][..], words].concat())
            .unwrap()
            .next
    }

    #[test]
    fn a_preview_says_all_that_the_command_line_says() {
        let check = |words: &[&str], expected: Value| {
            let next = next(words);
            let (schedule, from) = next.read(Timestamp::from_millis(0)).unwrap();
            assert_eq!(request(&next, &schedule, from), expected, "{words:?}");
        };
        check(
            &[
                "@daily",
                "--tz",
                "Asia/Tokyo",
                "--exclude",
                "a",
                "--runs-max",
                "2",
            ],
            json!({
                "schedule": "@daily", "timezone": "Asia/Tokyo", "exclude": ["a"], "runs_max": 2,
                "from": "1970-01-01T00:00:00.000Z", "count": 5,
            }),
        );
        check(
            &[
                "@every 90s",
                "--only",
                "b",
                "--after-completion",
                "--ends-at",
                "",
            ],
            json!({
                "schedule": { "every": "90s", "timezone": "UTC", "after_completion": true }, "only": ["b"],
                "from": "1970-01-01T00:00:00.000Z", "count": 5,
            }),
        );
    }

    #[test]
    fn only_intervals_go_by_the_end_of_runs() {
        let refused = |words: &[&str]| next(words).read(Timestamp::MIN).unwrap_err().text;
        assert!(refused(&["@daily", "--after-completion"]).contains("interval"));
        assert!(refused(&["@daily", "--runs-max", "0"]).contains("1 or more"));
        assert!(refused(&["@daily", "--ends-at", "soon"]).contains("soon"));
    }

    #[test]
    fn local_time_is_that_of_the_schedule() {
        let shown = |words: &[&str]| {
            let (schedule, from) = next(words).read(Timestamp::from_millis(0)).unwrap();
            let slot = schedule.next_after(from).unwrap();
            local(slot.0, &schedule.zone())
        };
        let tokyo = "Fri 1970-01-02 09:00:00 JST";
        assert_eq!(shown(&["CRON_TZ=Asia/Tokyo 0 9 * * *"]), tokyo);
        assert_eq!(shown(&["0 9 * * *", "--tz", "Asia/Tokyo"]), tokyo);
        assert_eq!(shown(&["0 9 * * *"]), "Thu 1970-01-01 09:00:00 UTC");
    }
}
