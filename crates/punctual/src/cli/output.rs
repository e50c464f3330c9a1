//! The one place that writes to the terminal.
//!
//! Rust programs ignore SIGPIPE, and a server must: a client that hangs up would end it. So a closed pipe
//! arrives here as an error, and ends the command without a word.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use comfy_table::{Attribute, Cell, ColumnConstraint, ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::failure::Failure;

/// On a narrower terminal wrapping makes a table harder to read, not easier.
const WIDTH_MIN: u16 = 60;

/// Writes a line to standard output.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    raw(format!("{text}\n").as_bytes())
}

/// Writes bytes as they are, and ends the line if they do not.
pub(crate) fn json(bytes: &[u8]) -> Result<(), Failure> {
    raw(bytes)?;
    if bytes.last() == Some(&b'\n') {
        Ok(())
    } else {
        raw(b"\n")
    }
}

/// Writes bytes as they are.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    raw(bytes)
}

fn raw(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    out.write_all(bytes)
        .and_then(|()| out.flush())
        .map_err(|error| {
            if error.kind() == io::ErrorKind::BrokenPipe {
                return Failure::closed_pipe();
            }
            Failure::usage(format!("cannot write the answer: {error}"))
        })
}

/// Says something to the person at the terminal. Nobody there is no reason to fail.
pub(crate) fn note(text: &str) {
    let _unheard = writeln!(anstream::stderr().lock(), "{text}");
}

/// The same, where somebody is to answer in the same line.
pub(crate) fn prompt(text: &str) {
    let mut out = anstream::stderr().lock();
    let _unheard = write!(out, "{text}").and_then(|()| out.flush());
}

/// Says why a command failed: a line for people, or a problem document for programs.
pub(crate) fn failure(failure: &Failure, json: bool) {
    if failure.text.is_empty() {
        return;
    }
    if json {
        return note(&failure.to_problem().to_string());
    }
    let style = anstyle::AnsiColor::Red.on_default().bold();
    note(&format!("{style}error:{style:#} {}", clean(&failure.text)));
}

pub(crate) fn warning(text: &str) {
    let style = anstyle::AnsiColor::Yellow.on_default().bold();
    note(&format!("{style}warning:{style:#} {}", clean(text)));
}

/// A text from elsewhere, made harmless: what could move the cursor, colour the screen or turn the
/// direction of writing is shown as its number.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    let unsafe_to_show = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(unsafe_to_show) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if unsafe_to_show(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Whether a person reads standard output.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// A column that wraps is at least as wide.
const COLUMN_MIN: u16 = 12;

/// Columns that are copied from a terminal: what stands in them is never wrapped.
const COPIED: [&str; 5] = ["ID", "KEY", "SLOT", "NEXT SLOT", "REASON OR RUN"];

/// Prints rows below a head. On a terminal long cells wrap to its width; elsewhere a row is a line.
pub(crate) fn table(head: &[&str], rows: Vec<Vec<Cell>>) -> Result<(), Failure> {
    line(&lines_of(head, rows).join("\n"))
}

/// More rows of a table whose head has been printed.
pub(crate) fn table_goes_on(head: &[&str], rows: Vec<Vec<Cell>>) -> Result<(), Failure> {
    // The head still has its say in how wide the columns are.
    let lines = lines_of(head, rows);
    line(&lines.get(1..).unwrap_or(&[]).join("\n"))
}

fn lines_of(head: &[&str], rows: Vec<Vec<Cell>>) -> Vec<String> {
    let mut table = Table::new();
    if is_terminal() {
        // Colours are written always; the stream takes them out where they are not wanted.
        table.enforce_styling();
        // A terminal that does not say how wide it is gets lines as long as they are.
        if table.width().is_some_and(|width| width >= WIDTH_MIN) {
            table.set_content_arrangement(ContentArrangement::Dynamic);
        }
    } else {
        table.force_no_tty();
    }
    arranged(table, head, rows)
}

fn arranged(mut table: Table, head: &[&str], rows: Vec<Vec<Cell>>) -> Vec<String> {
    table.load_style(presets::NOTHING);
    let bold = |text: &&str| Cell::new(text).add_attribute(Attribute::Bold);
    table.set_header(head.iter().map(bold));
    table.add_rows(rows);
    let widths = table.column_max_content_widths();
    // Below this a column is a ladder of letters: longer lines are easier to read.
    let least = head.iter().zip(&widths).map(|(name, width)| {
        let narrow = if COPIED.contains(name) {
            u16::MAX
        } else {
            COLUMN_MIN
        };
        narrow.min(*width) + 2
    });
    if table
        .width()
        .is_some_and(|width| least.sum::<u16>() > width)
    {
        table.set_content_arrangement(ContentArrangement::Disabled);
    }
    for (column, name) in table.column_iter_mut().zip(head) {
        column.set_padding((0, 2));
        if COPIED.contains(name) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    table.trim_fmt().lines().map(str::to_owned).collect()
}

/// A bar on the terminal for long work; silent where nobody looks.
pub(crate) fn progress(total: Option<u64>, unit: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    let template = match total {
        Some(_) => format!("{{bar:32}} {{percent:>3}} %  {{human_pos}} {unit}  {{eta}} left"),
        None => format!("{{spinner}} {{human_pos}} {unit}  {{per_sec}}"),
    };
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    if io::stderr().is_terminal() {
        bar.enable_steady_tick(Duration::from_millis(200));
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_slots_are_never_wrapped() {
        let lines = |width: u16| {
            let mut table = Table::new();
            table.set_width(width);
            table.set_content_arrangement(ContentArrangement::Dynamic);
            let row = [
                "run_0192f0c1a2b38def8123456789abcdef",
                "2026-11-16T05:53:06.000Z",
                "a reason of many words that may wrap",
            ];
            let rows = vec![row.map(Cell::new).to_vec()];
            arranged(table, &["ID", "SLOT", "REASON"], rows)
        };
        let ids = "run_0192f0c1a2b38def8123456789abcdef  2026-11-16T05:53:06.000Z  a reason";
        for (width, count) in [(200, 2), (90, 3), (60, 2)] {
            let lines = lines(width);
            assert!(lines.get(1).unwrap().starts_with(ids), "{width}: {lines:?}");
            assert_eq!(lines.len(), count, "{width}: {lines:?}");
        }
    }

    #[test]
    fn what_could_steer_a_terminal_is_shown_as_its_number() {
        assert_eq!(clean("größe"), "größe");
        assert_eq!(clean("a\u{1b}[2Jb\r\n"), "a\\u{1b}[2Jb\\r\\n");
        assert_eq!(clean("\u{9b}31m\u{202e}x"), "\\u{9b}31m\\u{202e}x");
    }
}
