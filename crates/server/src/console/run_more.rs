//! More of a run: how an answer came over the network, what a target says that took it over, and waking.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect};
use model::{Handed, Progress, Role, Run, WaitReason};

use super::charts::millis;
use super::fault::PageError;
use super::format::When;
use super::frame::{Answer, face};
use super::job::Fact;
use super::run::find;
use super::viewer::{Posted, Viewer};
use crate::api::Api;
use crate::ops::{outside, runs};
use crate::wire;

/// One request and its answer, on its own scale.
pub(super) struct Network {
    pub facts: Vec<Fact>,
    /// Class, place and width of each step, in percent of the whole.
    pub bars: Vec<(&'static str, String, String)>,
    pub says: String,
    pub headers: Vec<(String, String)>,
    pub note: Option<String>,
}

/// What a command took of its node's machine.
pub(super) fn cost(attempt: &wire::Attempt) -> Vec<Fact> {
    let Some(cost) = &attempt.cost else {
        return Vec::new();
    };
    let fact = |name, value, more: &str| Fact {
        name,
        value,
        more: more.to_owned(),
    };
    let mut facts = vec![
        fact("Processor", millis(cost.cpu_ms), "of all its processes"),
        fact("Memory", bytes(cost.memory_max), "at most, of one process"),
    ];
    let storage = [
        ("Read", cost.read_bytes, "from storage"),
        ("Written", cost.written_bytes, "for storage"),
    ];
    for (name, moved, more) in storage {
        facts.extend(moved.map(|moved| fact(name, bytes(moved), more)));
    }
    facts
}

/// In the unit that shows one to three digits before the point.
fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1_000.0 {
            let digits = usize::from(unit != "B" && value < 100.0);
            return format!("{value:.digits$} {unit}");
        }
        value /= 1_024.0;
    }
    format!("{value:.1} TiB")
}

pub(super) fn network(attempt: &wire::Attempt) -> Option<Network> {
    let of = attempt.exchange.as_ref()?;
    let mut facts = Vec::new();
    let mut fact = |name, value: Option<String>, more: &str| {
        facts.extend(value.map(|value| Fact {
            name,
            value,
            more: more.to_owned(),
        }));
    };
    fact("Peer", of.peer.clone(), "at the other end");
    fact(
        "Connected",
        of.connect_ms.map(millis),
        "name and connection",
    );
    fact("TLS", of.tls_ms.map(millis), "handshake");
    fact(
        "First byte",
        of.first_byte_ms.map(millis),
        "since its start",
    );
    fact("Total", of.total_ms.map(millis), "since its start");
    let steps = [("ph-lead", of.connect_ms), ("ph-sent", of.tls_ms)];
    let whole = of.total_ms.or(of.first_byte_ms).unwrap_or_default();
    let mut bars = Vec::new();
    let mut bar = |class, from: f64, to: f64| {
        if whole > 0.0 && to > from {
            let percent = |it: f64| format!("{:.2}%", it / whole * 100.0);
            bars.push((class, percent(from), percent(to - from)));
        }
    };
    let mut at = 0.0;
    for (class, span) in steps {
        let end = (at + span.unwrap_or_default()).min(whole);
        bar(class, at, end);
        at = end;
    }
    let first = of.first_byte_ms.unwrap_or(at).clamp(at, whole.max(at));
    bar("ph-work", at, first);
    bar("ph-settle", first, whole);
    let parts = facts
        .iter()
        .map(|fact| format!("{} {}", fact.name, fact.value));
    Some(Network {
        says: parts.collect::<Vec<_>>().join(", "),
        facts,
        bars,
        headers: of.headers.clone().into_iter().collect(),
        note: of.note.clone(),
    })
}

/// What is known of work that is with its target.
pub(super) struct Outside {
    pub facts: Vec<(&'static str, When)>,
    /// In percent, where it is a share.
    pub share: Option<String>,
    pub says: Option<String>,
    pub is_cancelled: bool,
}

pub(super) struct Log {
    pub text: String,
    /// Whether the beginning of it is not kept.
    pub is_cut: bool,
}

fn outside_of(viewer: &Viewer, handed: &Handed) -> Outside {
    let face = face(viewer);
    let moments = [
        ("Handed over", Some(handed.dispatched_at)),
        ("Last heartbeat", handed.beaten_at),
        ("Lost if silent until", handed.until),
        ("Its time is up", Some(handed.timeout_at)),
    ];
    let shown = moments.into_iter();
    let shown = shown.filter_map(|(name, at)| at.map(|at| (name, face.when(at))));
    let (share, says) = match &handed.progress {
        Some(Progress::Share(share)) => (Some(format!("{:.0}", share * 100.0)), None),
        Some(Progress::Text(text)) => (None, Some(text.clone())),
        None => (None, None),
    };
    Outside {
        facts: shown.collect(),
        share,
        says,
        is_cancelled: handed.cancelled,
    }
}

/// What a target says of work that it took over, and what it wrote about it.
pub(super) async fn outside(
    api: &Api,
    viewer: &Viewer,
    run: &Run,
) -> Result<(Option<Outside>, Option<Log>), PageError> {
    let handed = outside::handed(api, run).await?;
    let (part, _) = outside::log(api, viewer.id(), run.id, 0).await?;
    let shown = wire::RunLog::of(&part, false);
    let log = (!shown.text.is_empty()).then_some(Log {
        is_cut: shown.from > 0,
        text: shown.text,
    });
    Ok((handed.map(|handed| outside_of(viewer, &handed)), log))
}

/// Whether somebody may let a run go on that waits: not one that waits for its turn.
pub(super) fn may_wake(viewer: &Viewer, run: &Run) -> bool {
    let wait = run.wait.filter(|_| run.state.is_live());
    wait.is_some_and(|wait| wait.reason != WaitReason::Turn) && viewer.may(Role::Operator)
}

pub(super) async fn wake(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Answer {
    posted.by.needs(Role::Operator)?;
    let run = find(&api, &posted.by, &id).await?;
    runs::wake(&api, posted.by.id(), run.id).await?;
    Ok(Redirect::to(&format!("/runs/{id}?done=woken")).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_bytes_are_shown_in_a_fitting_unit() {
        for (amount, shown) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.0 KiB"),
            (18_874_368, "18.0 MiB"),
            (200 << 20, "200 MiB"),
            (3 << 40, "3.0 TiB"),
        ] {
            assert_eq!(bytes(amount), shown);
        }
    }
}
