//! What something costs: the same work with it and without, in turn.

use super::figures::{Bar, Figures, median, percentile, plain};
use crate::cli::output;
use crate::failure::Failure;

/// How often each of the two runs.
const PAIRS: usize = 9;
/// The ranks between which the middle of nine lies in 96 of 100 cases: the second and the eighth.
const INTERVAL: (f64, f64) = (2.0 / 9.0 * 100.0, 8.0 / 9.0 * 100.0);

/// What is compared, in words.
pub(super) struct Pairs {
    pub workload: &'static str,
    /// What there are so many of a second.
    pub unit: &'static str,
    pub with: &'static str,
    pub without: &'static str,
    /// What the ratio of with to without must reach.
    pub least: f64,
}

impl Pairs {
    /// Nine pairs: the middle of their ratios is what counts, and the interval says how sure it is.
    pub(super) async fn measure(
        self,
        rate: impl AsyncFn(bool) -> Result<f64, Failure>,
    ) -> Result<Figures, Failure> {
        let (mut rates, mut ratios) = (Vec::new(), Vec::new());
        for pair in 1..=PAIRS {
            // Who begins changes: a machine that gets slower or faster favours nobody.
            let first = pair.is_multiple_of(2);
            let measured = (rate(first).await?, rate(!first).await?);
            let (with, without) = if first {
                measured
            } else {
                (measured.1, measured.0)
            };
            output::note(&format!(
                "  pair {pair} of {PAIRS}: {} {}/s {}, {} {}",
                plain(with),
                self.unit,
                self.with,
                plain(without),
                self.without
            ));
            rates.push(with);
            ratios.push(with / without);
        }
        let ratio = median(ratios.iter().copied());
        let bar = format!("ratio {} to {}", self.with, self.without);
        Ok(Figures::new(self.workload)
            .with(self.unit, median(rates.into_iter()), "/s")
            .with("ratio from", percentile(&mut ratios, INTERVAL.0), "")
            .with("to", percentile(&mut ratios, INTERVAL.1), "")
            .bar(Bar::at_least(&bar, ratio, self.least)))
    }
}
