//! `punctual next`: when a schedule is due, worked out here.

use clap::Args;
use comfy_table::Cell;
use engine::{Clock, SystemClock};
use model::schedule::{CronOptions, Schedule, Zone};
use model::{Slot, Timestamp, limits};
use serde_json::json;

use super::output;
use super::view::distance;
use crate::failure::Failure;

pub const HELP: &str = "\
Examples:
  punctual next \"0 9 * * MON-FRI\" --tz Europe/Berlin
  punctual next \"@every 90s\" --count 3
  punctual next \"30 2 * * *\" --tz America/New_York --from 2027-03-13T00:00:00Z";

#[derive(Debug, Args)]
pub struct Next {
    /// A cron expression, a macro such as @daily, or "@every 90s"
    schedule: String,
    /// The time zone [default: UTC, or that of a CRON_TZ= in front of the expression]
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// How many slots
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=limits::PREVIEW_MAX as i64))]
    count: u32,
    /// Slots after this moment [default: now]
    #[arg(long, value_name = "MOMENT")]
    from: Option<String>,
}

pub fn execute(next: &Next, json: bool) -> Result<(), Failure> {
    let zone = next
        .tz
        .as_deref()
        .map(Zone::get)
        .transpose()
        .map_err(|error| refused(&error))?;
    let now = Clock::now(&SystemClock);
    let from = match &next.from {
        Some(text) => Timestamp::parse(text).map_err(|error| refused(&error))?,
        None => now,
    };
    let shown_in = zone.clone();
    let options = CronOptions {
        zone,
        ..CronOptions::default()
    };
    let schedule =
        Schedule::parse_text(&next.schedule, options, from).map_err(|error| refused(&error))?;
    let following = |slot: &Slot| schedule.next_after(slot.0);
    let slots: Vec<Slot> = std::iter::successors(schedule.next_after(from), following)
        .take(next.count as usize)
        .collect();
    let notes = schedule.notes(from);
    if json {
        let slots: Vec<_> = slots.iter().map(Slot::to_string).collect();
        let answer = json!({ "slots": slots, "words": schedule.words(), "notes": notes });
        return output::line(&answer.to_string());
    }
    output::line(&schedule.words())?;
    let row = |slot: &Slot| {
        vec![
            Cell::new(slot),
            Cell::new(local(slot.0, shown_in.as_ref())),
            Cell::new(distance(slot.0, now)),
        ]
    };
    output::table(
        &["SLOT", "LOCAL TIME", "FROM NOW"],
        slots.iter().map(row).collect(),
    )?;
    for note in notes {
        output::note(&format!("note: {note}"));
    }
    Ok(())
}

fn refused(error: &dyn std::error::Error) -> Failure {
    Failure::usage(error.to_string())
}

/// A moment by the clock on the zone's walls.
fn local(moment: Timestamp, zone: Option<&Zone>) -> String {
    let zoned = moment.to_jiff().in_tz(zone.map_or("UTC", Zone::name));
    zoned.map_or(String::new(), |zoned| {
        zoned.strftime("%a %Y-%m-%d %H:%M:%S %Z").to_string()
    })
}
