//! A rollup as it is stored. What is zero is left out. Nodes of two versions write side by side for a while, so what one
//! does not know it leaves out too: a count that is not shown yet is better than an overview that cannot be read.

use std::collections::BTreeMap;

use model::rollup::{Count, Histogram};
use model::{Reason, Rollup};
use serde::{Deserialize, Serialize};

use super::DocError;

fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct RollupDoc {
    #[serde(skip_serializing_if = "is_zero")]
    fired: u64,
    #[serde(skip_serializing_if = "is_zero")]
    succeeded: u64,
    #[serde(skip_serializing_if = "is_zero")]
    dead: u64,
    #[serde(skip_serializing_if = "is_zero")]
    cancelled: u64,
    #[serde(skip_serializing_if = "is_zero")]
    retried: u64,
    #[serde(skip_serializing_if = "is_zero")]
    late: u64,
    /// By the word of the reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    skipped: BTreeMap<String, u64>,
    /// Pairs of a bucket's number and its count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lateness: Vec<(usize, u64)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    duration: Vec<(usize, u64)>,
}

pub fn encode_rollup(rollup: &Rollup) -> Result<Vec<u8>, DocError> {
    let word = |(reason, count): (Reason, u64)| (reason.as_str().to_owned(), count);
    let doc = RollupDoc {
        fired: rollup.fired,
        succeeded: rollup.succeeded,
        dead: rollup.dead,
        cancelled: rollup.cancelled,
        retried: rollup.retried,
        late: rollup.late,
        skipped: rollup.skipped().map(word).collect(),
        lateness: rollup.lateness.buckets().collect(),
        duration: rollup.duration.buckets().collect(),
    };
    Ok(serde_json::to_vec(&doc)?)
}

pub fn decode_rollup(bytes: &[u8]) -> Result<Rollup, DocError> {
    let doc: RollupDoc = serde_json::from_slice(bytes)?;
    let mut rollup = Rollup::default();
    (rollup.fired, rollup.retried, rollup.late) = (doc.fired, doc.retried, doc.late);
    (rollup.succeeded, rollup.dead) = (doc.succeeded, doc.dead);
    rollup.cancelled = doc.cancelled;
    rollup.lateness = histogram(&doc.lateness);
    rollup.duration = histogram(&doc.duration);
    for (reason, count) in doc.skipped {
        if let Some(reason) = Reason::parse(&reason) {
            rollup.count(Count::Skipped(reason, count));
        }
    }
    Ok(rollup)
}

fn histogram(buckets: &[(usize, u64)]) -> Histogram {
    let mut histogram = Histogram::default();
    for (bucket, count) in buckets {
        histogram.put(*bucket, *count);
    }
    histogram
}
