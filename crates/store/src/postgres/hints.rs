//! Hints on their way: gathered, each once, and written as one short text. Many jobs are announced by their shards, so
//! that there is never more to send than fits.

use std::collections::BTreeSet;

use model::shard::ShardSet;
use model::{JobId, Shard, TenantId};
use uuid::Uuid;

use crate::Hint;

/// Jobs that are named one by one; beyond, their shards are.
const JOBS_MAX: usize = 64;

/// What `NOTIFY` carries at most, less what is safe.
#[cfg(test)]
const TEXT_MAX: usize = 7_900;

/// Hints that wait, each once. It grows no further than so many jobs, every shard and every other word.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Gathered {
    jobs: BTreeSet<(TenantId, JobId)>,
    shards: ShardSet,
    words: BTreeSet<Hint>,
}

impl Gathered {
    pub(super) fn add(&mut self, hint: Hint) {
        match hint {
            Hint::Job(_, job) if self.shards.contains(Shard::of(job)) => {}
            Hint::Job(tenant, job) => {
                self.jobs.insert((tenant, job));
                if self.jobs.len() > JOBS_MAX {
                    let jobs = std::mem::take(&mut self.jobs);
                    for (_, job) in jobs {
                        self.shards.insert(Shard::of(job));
                    }
                }
            }
            Hint::Shard(shard) => self.shards.insert(shard),
            Hint::Ready | Hint::Marks | Hint::Leases | Hint::Rules | Hint::Keys | Hint::Lost => {
                self.words.insert(hint);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// All of them; none are left.
    pub(super) fn drain(&mut self) -> Vec<Hint> {
        let Self {
            jobs,
            shards,
            words,
        } = std::mem::take(self);
        let jobs = jobs.into_iter().map(|(tenant, job)| Hint::Job(tenant, job));
        let shards: Vec<_> = shards.iter().map(Hint::Shard).collect();
        words.into_iter().chain(shards).chain(jobs).collect()
    }

    /// As one text; none are left.
    pub(super) fn write(&mut self) -> String {
        let mut text: Vec<String> = Vec::new();
        let Self {
            jobs,
            shards,
            words,
        } = std::mem::take(self);
        text.extend(
            words
                .iter()
                .filter_map(|hint| Some(word(*hint)?.to_owned())),
        );
        if !shards.is_empty() {
            text.push(format!("{SHARDS}{}", write_shards(&shards)));
        }
        for (tenant, job) in jobs {
            let whose = if tenant == TenantId::DEFAULT {
                String::new()
            } else {
                tenant.0.simple().to_string()
            };
            text.push(format!("{JOB}{}{whose}", job.0.simple()));
        }
        text.join(" ")
    }

    /// What someone wrote. What is not understood may come from a newer node, and is ignored.
    pub(super) fn read(&mut self, text: &str) {
        for part in text.split(' ') {
            if let Some(shards) = part.strip_prefix(SHARDS) {
                let shards = read_shards(shards).unwrap_or_default();
                shards.iter().for_each(|shard| self.add(Hint::Shard(shard)));
            } else if let Some(job) = part.strip_prefix(JOB) {
                read_job(job).into_iter().for_each(|hint| self.add(hint));
            } else {
                let words = WORDS.into_iter().filter(|hint| word(*hint) == Some(part));
                words.for_each(|hint| self.add(hint));
            }
        }
    }
}

const JOB: &str = "j:";
const SHARDS: &str = "s:";
const WORDS: [Hint; 6] = [
    Hint::Ready,
    Hint::Marks,
    Hint::Leases,
    Hint::Rules,
    Hint::Keys,
    Hint::Lost,
];

/// Hints that are one word.
fn word(hint: Hint) -> Option<&'static str> {
    match hint {
        Hint::Job(..) | Hint::Shard(_) => None,
        Hint::Ready => Some("ready"),
        Hint::Marks => Some("marks"),
        Hint::Leases => Some("leases"),
        Hint::Rules => Some("rules"),
        Hint::Keys => Some("keys"),
        Hint::Lost => Some("lost"),
    }
}

/// A bit for each, as hexadecimal numbers of four.
fn write_shards(shards: &ShardSet) -> String {
    let four = |first: u8| {
        let bits = (0..4).filter(|bit| shards.contains(Shard(first + bit)));
        let number = bits.fold(0_u32, |number, bit| number | 1 << bit);
        char::from_digit(number, 16).unwrap_or('0')
    };
    (0..=u8::MAX).step_by(4).map(four).collect()
}

fn read_shards(text: &str) -> Option<ShardSet> {
    let mut shards = ShardSet::default();
    for (first, digit) in (0..=u8::MAX).step_by(4).zip(text.chars()) {
        let number = digit.to_digit(16)?;
        let bits = (0..4).filter(|bit| number >> bit & 1 == 1);
        bits.for_each(|bit| shards.insert(Shard(first + bit)));
    }
    Some(shards)
}

/// A job's id, and its tenant's unless that is the one that is always there.
fn read_job(text: &str) -> Option<Hint> {
    let (job, tenant) = text.split_at_checked(32)?;
    let tenant = if tenant.is_empty() {
        TenantId::DEFAULT
    } else {
        TenantId(Uuid::try_parse(tenant).ok()?)
    };
    Some(Hint::Job(tenant, JobId(Uuid::try_parse(job).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(number: u128) -> Hint {
        Hint::Job(TenantId::DEFAULT, JobId(Uuid::from_u128(number)))
    }

    fn sent(hints: &[Hint]) -> Vec<Hint> {
        let (mut from, mut to) = (Gathered::default(), Gathered::default());
        hints.iter().for_each(|hint| from.add(*hint));
        let text = from.write();
        assert!(from.is_empty() && text.len() < TEXT_MAX, "{}", text.len());
        to.read(&text);
        to.drain()
    }

    #[test]
    fn every_hint_arrives_as_it_was_sent() {
        let tenant = TenantId(Uuid::from_u128(u128::MAX));
        let mut hints = vec![job(1), Hint::Job(tenant, JobId(Uuid::from_u128(7 << 90)))];
        hints.extend(WORDS);
        hints.extend(Shard::all().map(Hint::Shard));
        for hint in &hints {
            assert_eq!(sent(&[*hint]), [*hint]);
        }
        let few = [hints[0], hints[1], Hint::Ready, Hint::Marks];
        let mut arrived = sent(&few);
        arrived.sort();
        let mut few = few.to_vec();
        few.sort();
        assert_eq!(arrived, few, "several in one text");
    }

    #[test]
    fn the_same_hint_is_sent_once() {
        assert_eq!(sent(&[job(1), job(1), Hint::Ready, Hint::Ready]).len(), 2);
    }

    #[test]
    fn many_jobs_are_announced_by_their_shards() {
        let tenant = TenantId(Uuid::from_u128(9));
        let many: Vec<_> = (0..10_000)
            .map(|number| Hint::Job(tenant, JobId(Uuid::from_u128(number << 40 | number))))
            .collect();
        let most = sent(&many[..JOBS_MAX]);
        assert!(most.iter().all(|hint| matches!(hint, Hint::Job(..))));
        assert_eq!(most.len(), JOBS_MAX);
        let arrived = sent(&many);
        let shards: BTreeSet<_> = arrived.iter().collect();
        assert_eq!(shards.len(), arrived.len());
        for hint in &many {
            let Hint::Job(_, id) = hint else { continue };
            let is_announced =
                shards.contains(&Hint::Shard(Shard::of(*id))) || shards.contains(hint);
            assert!(is_announced, "{hint:?}");
        }
        assert!(arrived.len() <= Shard::COUNT + JOBS_MAX);
    }

    #[test]
    fn what_is_not_understood_is_ignored() {
        for (text, hints) in [
            ("", vec![]),
            ("later:5 ready wake", vec![Hint::Ready]),
            ("j: j:zz s: s:xyz j:é lost", vec![Hint::Lost]),
            ("s:1é2", vec![]),
            ("s:1", vec![Hint::Shard(Shard(0))]),
            (
                "j:00000000000000000000000000000001x j:00000000000000000000000000000001",
                vec![job(1)],
            ),
            (
                "READY \u{1f600} s:ffff\0",
                (0..16).map(|it| Hint::Shard(Shard(it))).collect(),
            ),
        ] {
            let mut gathered = Gathered::default();
            gathered.read(text);
            let found = gathered.drain();
            assert!(found == hints || text.contains('\0'), "{text}: {found:?}");
        }
    }
}
