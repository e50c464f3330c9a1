//! Cron schedules: one or several expressions in one zone, and what they do when the clocks change.
//! Text and options come in; what is kept is the text, for storing, and one `Rule` for each expression, read by `expression`.

use std::sync::Arc;
use std::time::Duration;

use super::expression;
use super::rule::Rule;
use super::walk::{self, Policy};
use super::{ScheduleError, Zone};
use crate::time::{Slot, Timestamp};

/// How long an expression may be.
pub const EXPRESSION_BYTES_MAX: usize = 256;
/// How many expressions one schedule may unite.
pub const EXPRESSIONS_MAX: usize = 16;

/// A cron schedule. Cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub struct Cron(Arc<Inner>);

#[derive(Debug, PartialEq)]
struct Inner {
    texts: Vec<String>,
    rules: Vec<Rule>,
    zone: Zone,
    dialect: Dialect,
    policy: Policy,
    hash: u64,
}

/// How an expression is to be read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CronOptions {
    /// The zone; nothing means that of a `CRON_TZ=` prefix, or UTC.
    pub zone: Option<Zone>,
    pub dialect: Dialect,
    pub dst_gap: DstGap,
    pub dst_overlap: DstOverlap,
    /// The job's own number, from which `H` is chosen.
    pub hash: u64,
}

/// Whose conventions the numbers follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// Sunday is 0 and 7; five fields or more.
    #[default]
    Unix,
    /// Sunday is 1; six fields or seven, one of the day fields being `?`.
    Quartz,
}

/// What becomes of fixed times that do not exist on the day the clocks jump ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DstGap {
    /// One slot at the end of the gap, however many fell into it.
    #[default]
    RunAfter,
    Skip,
}

/// What becomes of fixed times that come twice on the day the clocks go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DstOverlap {
    #[default]
    First,
    Both,
}

impl Cron {
    /// Reads one or several expressions; a moment that several of them name is one slot.
    pub fn parse(texts: &[String], options: CronOptions) -> Result<Self, ScheduleError> {
        if texts.is_empty() || texts.len() > EXPRESSIONS_MAX {
            return Err(ScheduleError::Count {
                count: texts.len(),
                max: EXPRESSIONS_MAX,
            });
        }
        let mut kept = Vec::with_capacity(texts.len());
        let mut rules = Vec::with_capacity(texts.len());
        let mut prefix: Option<Option<Zone>> = None;
        for text in texts {
            check_length(text)?;
            let (named, rest) = split_zone(text.trim())?;
            match &prefix {
                Some(Some(before)) if named.is_some() && named.as_ref() != Some(before) => {
                    one_zone(named, Some(before.clone()))?;
                }
                Some(before) if before.is_some() != named.is_some() && options.zone.is_none() => {
                    return Err(ScheduleError::ZoneMixed);
                }
                Some(_) => {}
                None => prefix = Some(named),
            }
            rules.push(expression::read(rest, options.dialect, options.hash)?);
            kept.push(rest.to_owned());
        }
        let zone = one_zone(prefix.flatten(), options.zone)?;
        let policy = Policy {
            gap: options.dst_gap,
            overlap: options.dst_overlap,
        };
        for (rule, text) in rules.iter().zip(&kept) {
            // The search is bounded, so searching the very first slot shows whether there is any.
            if walk::next(rule, &zone, policy, 0).is_none() {
                return Err(ScheduleError::Never { text: text.clone() });
            }
        }
        let (dialect, hash) = (options.dialect, options.hash);
        Ok(Self(Arc::new(Inner {
            texts: kept,
            rules,
            zone,
            dialect,
            policy,
            hash,
        })))
    }

    /// The first slot strictly after a moment.
    pub fn next_after(&self, after: Timestamp) -> Option<Slot> {
        let Inner {
            rules,
            zone,
            policy,
            ..
        } = self.0.as_ref();
        let after = after.as_millis().div_euclid(1_000);
        let next = rules
            .iter()
            .filter_map(|rule| walk::next(rule, zone, *policy, after))
            .min()?;
        Timestamp::checked(next.checked_mul(1_000)?).map(Slot)
    }

    /// The expressions, without a zone in front: with the options they read back as this schedule.
    pub fn texts(&self) -> &[String] {
        &self.0.texts
    }

    pub fn zone(&self) -> &Zone {
        &self.0.zone
    }

    pub fn dialect(&self) -> Dialect {
        self.0.dialect
    }

    pub fn dst_gap(&self) -> DstGap {
        self.0.policy.gap
    }

    pub fn dst_overlap(&self) -> DstOverlap {
        self.0.policy.overlap
    }

    pub fn hash(&self) -> u64 {
        self.0.hash
    }

    pub(super) fn rules(&self) -> &[Rule] {
        &self.0.rules
    }

    pub(super) fn shortest_period(&self) -> Option<Duration> {
        let rules = self.rules();
        let alone = rules.iter().filter_map(Rule::shortest).min();
        // Two expressions may lie a second apart; how close they come is looked up, not worked out.
        let shortest = if rules.len() > 1 {
            alone.into_iter().chain(self.sampled()).min()
        } else {
            alone
        };
        shortest.map(|seconds| Duration::from_secs(seconds.max(1) as u64))
    }

    /// The shortest time between the next few slots of a union, from 2024 on.
    fn sampled(&self) -> Option<i64> {
        const START: i64 = 1_704_067_200;
        const SLOTS: usize = 64;
        let next = |from: i64| {
            self.rules()
                .iter()
                .filter_map(|rule| rule.next_local(from))
                .min()
        };
        let slots = std::iter::successors(next(START), |slot| next(slot + 1)).take(SLOTS);
        slots
            .clone()
            .zip(slots.skip(1))
            .map(|(one, other)| other - one)
            .min()
    }
}

pub(super) fn check_length(text: &str) -> Result<(), ScheduleError> {
    let (length, max) = (text.len(), EXPRESSION_BYTES_MAX);
    if length > max {
        Err(ScheduleError::TooLong { length, max })
    } else {
        Ok(())
    }
}

fn strip_zone_mark(text: &str) -> Option<&str> {
    text.strip_prefix("CRON_TZ=")
        .or_else(|| text.strip_prefix("TZ="))
}

/// Whether an expression names its own zone, with `CRON_TZ=` or `TZ=` in front.
pub fn names_zone(text: &str) -> bool {
    strip_zone_mark(text.trim()).is_some()
}

/// Takes `CRON_TZ=Zone ` or `TZ=Zone ` off the front.
pub(super) fn split_zone(text: &str) -> Result<(Option<Zone>, &str), ScheduleError> {
    let Some(named) = strip_zone_mark(text) else {
        return Ok((None, text));
    };
    let (name, rest) = named
        .split_once(|c: char| c.is_ascii_whitespace())
        .unwrap_or((named, ""));
    Ok((Some(Zone::get(name)?), rest.trim()))
}

/// The zone of a prefix and that of the schedule must be one.
pub(super) fn one_zone(prefix: Option<Zone>, given: Option<Zone>) -> Result<Zone, ScheduleError> {
    match (prefix, given) {
        (Some(prefix), Some(given)) if prefix != given => Err(ScheduleError::ZoneConflict {
            prefix: prefix.name().to_owned(),
            given: given.name().to_owned(),
        }),
        (Some(zone), _) | (None, Some(zone)) => Ok(zone),
        (None, None) => Ok(Zone::utc()),
    }
}

#[cfg(test)]
#[path = "cron_tests.rs"]
mod tests;
