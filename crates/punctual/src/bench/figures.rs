//! What a workload measured, how it compares, and how that is shown.

use serde_json::{Value, json};

/// One measured workload.
#[derive(Debug, Clone)]
pub(super) struct Figures {
    pub workload: &'static str,
    /// What was measured, in words, with its unit.
    pub measured: Vec<(&'static str, f64, &'static str)>,
    /// What the same run's floor program reached, in the unit of the first measure.
    pub floor: Option<f64>,
    pub bars: Vec<Bar>,
}

/// What a workload is held to.
#[derive(Debug, Clone)]
pub(super) struct Bar {
    pub text: String,
    pub value: f64,
    pub met: bool,
}

impl Bar {
    pub(super) fn at_least(text: &str, value: f64, bound: f64) -> Self {
        Self {
            text: format!("{text} ≥ {}", plain(bound)),
            value,
            met: value >= bound,
        }
    }

    pub(super) fn at_most(text: &str, value: f64, bound: f64) -> Self {
        Self {
            text: format!("{text} ≤ {}", plain(bound)),
            value,
            met: value <= bound,
        }
    }
}

impl Figures {
    pub(super) fn new(workload: &'static str) -> Self {
        Self {
            workload,
            measured: Vec::new(),
            floor: None,
            bars: Vec::new(),
        }
    }

    pub(super) fn with(mut self, what: &'static str, value: f64, unit: &'static str) -> Self {
        self.measured.push((what, value, unit));
        self
    }

    pub(super) fn bar(mut self, bar: Bar) -> Self {
        self.bars.push(bar);
        self
    }

    /// The first measure against the floor of the same run, and what it is held to.
    pub(super) fn against(mut self, floor: f64, least: f64) -> Self {
        self.floor = Some(floor);
        let value = self
            .measured
            .first()
            .map_or(0.0, |(_, value, _)| value / floor);
        self.bars
            .push(Bar::at_least("ratio to floor", value, least));
        self
    }

    pub(super) fn json(&self) -> Value {
        let measured: Vec<Value> = self
            .measured
            .iter()
            .map(|(what, value, unit)| json!({"what": what, "value": value, "unit": unit}))
            .collect();
        let bars: Vec<Value> = self
            .bars
            .iter()
            .map(|bar| json!({"bar": bar.text, "value": bar.value, "met": bar.met}))
            .collect();
        json!({"workload": self.workload, "measured": measured, "floor": self.floor, "bars": bars})
    }

    /// Workload, what was measured, floor, bars: the cells of a table's row.
    pub(super) fn row(&self) -> [String; 4] {
        let measured: Vec<String> = self
            .measured
            .iter()
            .map(|(what, value, unit)| format!("{what} {}{unit}", plain(*value)))
            .collect();
        let bars: Vec<String> = self
            .bars
            .iter()
            .map(|bar| {
                let sign = if bar.met { "met" } else { "MISSED" };
                format!("{}: {} ({sign})", bar.text, plain(bar.value))
            })
            .collect();
        let floor = self.floor.map_or_else(|| "–".to_owned(), plain);
        [
            self.workload.to_owned(),
            measured.join(", "),
            floor,
            bars.join("; "),
        ]
    }

    /// The middle of several rounds, measure by measure; a bar is met when its middle is.
    pub(super) fn middle(rounds: &[Self]) -> Option<Self> {
        let mut middle = rounds.first()?.clone();
        for (index, measure) in middle.measured.iter_mut().enumerate() {
            measure.1 = median(rounds.iter().filter_map(|r| Some(r.measured.get(index)?.1)));
        }
        middle.floor = middle
            .floor
            .map(|_| median(rounds.iter().filter_map(|round| round.floor)));
        for (index, bar) in middle.bars.iter_mut().enumerate() {
            let of_bar = || rounds.iter().filter_map(|round| round.bars.get(index));
            bar.value = median(of_bar().map(|bar| bar.value));
            bar.met = of_bar().filter(|bar| bar.met).count() * 2 > rounds.len();
        }
        Some(middle)
    }
}

pub(super) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    percentile(&mut values, 50.0)
}

/// The value below which `percent` of all lie; zero of none.
pub(super) fn percentile(values: &mut [f64], percent: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (percent / 100.0 * values.len() as f64).ceil() as usize;
    values.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

/// A number as people write it.
pub(super) fn plain(value: f64) -> String {
    if value.abs() >= 1_000.0 {
        let digits = format!("{:.0}", value.abs());
        let mut text = String::new();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        if value < 0.0 {
            format!("-{text}")
        } else {
            text
        }
    } else if value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(
            percentile(&mut (1..=100).map(f64::from).collect::<Vec<_>>(), 99.0),
            99.0
        );
        assert_eq!(percentile(&mut [], 99.0), 0.0);
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(plain(1_234_567.8), "1,234,568");
        assert_eq!(plain(0.614), "0.61");
        assert_eq!(plain(150.0), "150");
    }

    #[test]
    fn a_bar_is_met_when_most_rounds_meet_it() {
        let round = |value| {
            Figures::new("x")
                .with("rate", value, "/s")
                .against(100.0, 0.6)
        };
        let middle = Figures::middle(&[round(50.0), round(70.0), round(80.0)]).unwrap();
        assert!(middle.bars[0].met);
        assert_eq!(middle.bars[0].value, 0.7);
    }
}
