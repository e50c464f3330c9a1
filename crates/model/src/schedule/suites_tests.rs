//! What the test suites of other implementations say, read from `suites.txt`, which explains its columns. Where they
//! agree we agree; where we do not, the row is in its second part, with what they say and what we do, and the guide
//! has the reason.

use super::{Cron, CronOptions, Dialect, DstGap, DstOverlap, ScheduleError, Zone};
use crate::time::Timestamp;

const TABLE: &str = include_str!("suites.txt");
const GUIDE: &str = include_str!("../../../../docs/guides/schedules.md");

struct Row<'a> {
    line: usize,
    sources: &'a str,
    texts: Vec<String>,
    options: CronOptions,
    from: Option<Timestamp>,
    says: &'a str,
    /// For a known difference: its name in the guide, and what we do instead.
    differs: Option<(&'a str, &'a str)>,
}

fn rows() -> Vec<Row<'static>> {
    let mut rows = Vec::new();
    let mut difference = None;
    for (number, line) in TABLE.lines().enumerate() {
        if let Some(heading) = line.strip_prefix("! ") {
            difference = heading.split_once(':').map(|(name, _)| name);
        } else if !line.is_empty() && !line.starts_with('#') {
            rows.push(row(number + 1, line, difference));
        }
    }
    rows
}

fn row(line: usize, text: &'static str, difference: Option<&'static str>) -> Row<'static> {
    let columns: Vec<&str> = text.split('|').collect();
    let wanted = if difference.is_some() { 6 } else { 5 };
    assert_eq!(columns.len(), wanted, "line {line} has other columns");
    let words: Vec<&str> = columns[2].split_whitespace().collect();
    let mut options = CronOptions::default();
    let mut from = (!columns[3].trim().is_empty()).then(|| moment(columns[3].trim()));
    for word in words {
        match word {
            "quartz" => options.dialect = Dialect::Quartz,
            "skip" => options.dst_gap = DstGap::Skip,
            "both" => options.dst_overlap = DstOverlap::Both,
            "at" => from = from.map(|from| Timestamp::from_millis(from.as_millis() - 1)),
            zone => options.zone = Some(Zone::get(zone).unwrap()),
        }
    }
    Row {
        line,
        sources: columns[0].trim(),
        texts: columns[1].split(" ; ").map(str::to_owned).collect(),
        options,
        from,
        says: columns[4].trim(),
        differs: difference.map(|name| (name, columns[5].trim())),
    }
}

/// Reads `2016-12-09`, `2016-12-09T17:35`, with seconds or not, with an offset or in UTC.
fn moment(text: &str) -> Timestamp {
    let (date, time) = text.split_once('T').unwrap_or((text, "00:00"));
    let offset = time.find(['Z', '+', '-']).unwrap_or(time.len());
    let (clock, offset) = time.split_at(offset);
    let seconds = if clock.len() == 5 { ":00" } else { "" };
    let offset = if offset.is_empty() { "Z" } else { offset };
    Timestamp::parse(&format!("{date}T{clock}{seconds}{offset}")).unwrap()
}

/// What we say to a row, in the words of a column that says something else or the same.
fn ours(row: &Row<'_>, column: &str) -> String {
    let cron = match Cron::parse(&row.texts, row.options.clone()) {
        Ok(cron) => cron,
        Err(ScheduleError::Never { .. }) if column == "never" => return "never".to_owned(),
        Err(_) => return "refused".to_owned(),
    };
    let Some(from) = row.from else {
        return "accepted".to_owned();
    };
    let slots = std::iter::successors(cron.next_after(from), |slot| cron.next_after(slot.0));
    let wanted = column.split_whitespace().count();
    let slots: Vec<String> = slots.take(wanted).map(|slot| slot.to_string()).collect();
    if slots.is_empty() {
        "none".to_owned()
    } else {
        slots.join(" ")
    }
}

/// A column as `ours` would say it.
fn said(column: &str) -> String {
    if matches!(column, "refused" | "accepted" | "never" | "none") {
        return column.to_owned();
    }
    let slots = column
        .split_whitespace()
        .map(|slot| moment(slot).to_string());
    slots.collect::<Vec<_>>().join(" ")
}

#[test]
fn where_other_implementations_agree_we_agree() {
    let mut wrong = Vec::new();
    for row in rows().iter().filter(|row| row.differs.is_none()) {
        let (ours, theirs) = (ours(row, row.says), said(row.says));
        if ours != theirs {
            let (line, sources, texts) = (row.line, row.sources, &row.texts);
            wrong.push(format!(
                "line {line}: {sources} {texts:?}\n  say {theirs}\n  we  {ours}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn where_we_differ_we_do_as_the_guide_says() {
    let mut wrong = Vec::new();
    for row in rows() {
        let Some((name, instead)) = row.differs else {
            continue;
        };
        let found = ours(&row, instead);
        if found != said(instead) {
            wrong.push(format!("line {}: {name}: we do {found}", row.line));
        } else if ours(&row, row.says) == said(row.says) {
            wrong.push(format!("line {}: {name}: there is no difference", row.line));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_known_difference_is_in_the_guide() {
    let (_, section) = GUIDE
        .split_once("## Compared with other implementations")
        .unwrap();
    for row in rows() {
        if let Some((name, _)) = row.differs {
            assert!(section.contains(&format!("| {name} |")), "{name}");
        }
    }
}

#[test]
fn the_table_is_as_wide_as_it_says() {
    let rows = rows();
    let sources: std::collections::BTreeSet<&str> =
        rows.iter().flat_map(|row| row.sources.split(' ')).collect();
    assert!(rows.len() > 500, "{}", rows.len());
    assert_eq!(sources.len(), 21, "{sources:?}");
    for source in sources {
        assert!(
            TABLE.contains(&format!("{source} (")) || TABLE.contains(&format!("{source}\n")),
            "{source}"
        );
    }
}
