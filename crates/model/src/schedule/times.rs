//! The times of day of a rule in words: `words` adds the days.

use super::days::bits;
use super::names;
use super::rule::Rule;

/// As many times of day as are listed one by one.
const LISTED_MAX: u32 = 6;

/// How the numbers of a set lie.
enum Shape {
    All,
    One(u32),
    /// From a number below the step to the end.
    Every {
        step: u32,
        first: u32,
    },
    Run(u32, u32),
    List(Vec<u32>),
}

impl Shape {
    fn of(set: impl Into<u64>, size: u32) -> Self {
        let numbers: Vec<u32> = bits(set).collect();
        let step = match numbers.as_slice() {
            [one] => return Self::One(*one),
            [one, next, ..] => next - one,
            [] => 1,
        };
        let (first, last) = (numbers.first().copied(), numbers.last().copied());
        let (first, last) = (first.unwrap_or(0), last.unwrap_or(0));
        // "Every 12 hours" may be said of 0 and 12; of 2 and 14 the two hours themselves say more.
        let often = numbers.len() > 2 || first == 0;
        let even = numbers
            .windows(2)
            .all(|pair| matches!(pair, [one, next] if next - one == step));
        if numbers.len() as u32 == size {
            Self::All
        } else if even && step == 1 {
            Self::Run(first, last)
        } else if even && size.is_multiple_of(step) && first < step && last + step >= size && often
        {
            Self::Every { step, first }
        } else {
            Self::List(numbers)
        }
    }
}

pub(super) fn of_time(rule: &Rule) -> String {
    let times = rule.seconds.count_ones() * rule.minutes.count_ones() * rule.hours.count_ones();
    let minute = Shape::of(rule.minutes, 60);
    let hour = Shape::of(rule.hours, 24);
    if times > LISTED_MAX {
        return match (Shape::of(rule.seconds, 60), minute) {
            (Shape::One(second), Shape::One(minute)) => of_hours(&hour, minute * 60 + second),
            (Shape::One(0), minute) => of_minutes(&minute, &hour) + &within_hours(&hour),
            (Shape::One(second), Shape::All) => {
                format!("every minute at second {second}{}", within_hours(&hour))
            }
            (Shape::One(second), minute) => {
                format!(
                    "{} at second {second}{}",
                    of_minutes(&minute, &hour),
                    within_hours(&hour)
                )
            }
            (second, minute) => {
                format!(
                    "{}{}{}",
                    of_seconds(&second),
                    within_minutes(&minute, &hour),
                    within_hours(&hour)
                )
            }
        };
    }
    let mut listed = Vec::new();
    for hour in bits(rule.hours) {
        for minute in bits(rule.minutes) {
            for second in bits(rule.seconds) {
                listed.push(names::clock(i64::from(hour * 3_600 + minute * 60 + second)));
            }
        }
    }
    format!("at {}", names::list(&listed))
}

pub(super) fn plain(numbers: &[u32]) -> String {
    names::numbers(numbers, |number| number.to_string())
}

fn of_seconds(second: &Shape) -> String {
    match second {
        Shape::All => "every second".to_owned(),
        Shape::One(one) => format!("at second {one}"),
        Shape::Every { step, first: 0 } => {
            format!("every {}", names::count((*step).into(), "second"))
        }
        Shape::Every { step, first } => format!("every {step} seconds from second {first}"),
        Shape::Run(first, last) => format!("every second from {first} to {last}"),
        Shape::List(list) => format!("at seconds {}", plain(list)),
    }
}

/// Which minutes, when seconds came first.
fn within_minutes(minute: &Shape, hour: &Shape) -> String {
    let of = match hour {
        Shape::All => " of every hour",
        Shape::One(_) | Shape::Every { .. } | Shape::Run(..) | Shape::List(_) => "",
    };
    match minute {
        Shape::All => String::new(),
        Shape::One(one) => format!(" in minute {one}{of}"),
        Shape::Every { step, first: 0 } => format!(" in every {} minute", names::ordinal(*step)),
        Shape::Every { step, first } => {
            format!(
                " in every {} minute from minute {first}",
                names::ordinal(*step)
            )
        }
        Shape::Run(first, last) => format!(" in minutes {first} to {last}{of}"),
        Shape::List(list) => format!(" in minutes {}{of}", plain(list)),
    }
}

fn of_minutes(minute: &Shape, hour: &Shape) -> String {
    let past = match hour {
        Shape::All => "past every hour",
        Shape::One(_) | Shape::Every { .. } | Shape::Run(..) | Shape::List(_) => "past the hour",
    };
    match minute {
        Shape::All => "every minute".to_owned(),
        Shape::One(one) => format!("at {} {past}", names::count((*one).into(), "minute")),
        Shape::Every { step, first: 0 } => format!("every {step} minutes"),
        Shape::Every { step, first } => format!("every {step} minutes from minute {first}"),
        Shape::Run(first, last) => format!("every minute from {first} to {last} {past}"),
        Shape::List(list) => format!("at {} minutes {past}", plain(list)),
    }
}

/// Which hours, when something finer came first.
fn within_hours(hour: &Shape) -> String {
    match hour {
        Shape::All => String::new(),
        Shape::One(one) => format!(" from {one:02}:00 to {one:02}:59"),
        Shape::Every { step, first: 0 } => format!(" in every {} hour", names::ordinal(*step)),
        Shape::Every { step, first } => {
            format!(
                " in every {} hour from {first:02}:00",
                names::ordinal(*step)
            )
        }
        Shape::Run(first, last) => format!(" from {first:02}:00 to {last:02}:59"),
        Shape::List(list) => format!(" in the hours {}", plain(list)),
    }
}

/// One time in each of several hours; `past` in seconds.
fn of_hours(hour: &Shape, past: u32) -> String {
    let at = |hour: u32| names::clock(i64::from(hour * 3_600 + past));
    let offset = match (past / 60, past % 60) {
        (0, 0) => String::new(),
        (minutes, 0) => format!("at {} past ", names::count(minutes.into(), "minute")),
        (minutes, seconds) => format!("at {minutes:02}:{seconds:02} past "),
    };
    match (hour, past) {
        (Shape::All, _) => format!("{offset}every hour"),
        (Shape::Every { step, first: 0 }, 0) => format!("every {step} hours"),
        (Shape::Every { step, first: 0 }, _) => {
            format!("{offset}every {} hour", names::ordinal(*step))
        }
        (Shape::Run(first, last), _) => format!("every hour from {} to {}", at(*first), at(*last)),
        (Shape::One(one), _) => format!("at {}", at(*one)),
        (Shape::Every { step, first }, _) => format!("every {step} hours from {}", at(*first)),
        (Shape::List(list), _) => {
            let times: Vec<String> = list.iter().map(|hour| at(*hour)).collect();
            format!("at {}", names::list(&times))
        }
    }
}
