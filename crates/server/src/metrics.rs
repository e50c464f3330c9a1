//! What the server counts, beside what the engine does. Routes are templates: no label ever holds an id.

use std::time::Duration;

use model::schedule::tzdb_version;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::process::Process;

/// How jobs came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Single,
    Batch,
}

impl Way {
    fn as_str(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Batch => "batch",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByRoute {
    method: &'static str,
    route: String,
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRoute {
    method: &'static str,
    route: String,
}

type RouteHistogram = Family<OfRoute, Histogram, fn() -> Histogram>;

/// From half a millisecond to about a minute.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.000_5, 2.0, 18))
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByWay {
    way: &'static str,
}

pub(crate) struct Metrics {
    registry: Registry,
    /// What is not ours to name.
    process: Registry,
    requests: Family<ByRoute, Counter>,
    latency: RouteHistogram,
    single: Counter,
    batch: Counter,
    /// Streams of server-sent events that are open.
    pub(crate) streams: Gauge,
}

impl Metrics {
    /// A registry of its own, with the engine's counters in it.
    pub(crate) fn new(engine: &engine::Metrics) -> Self {
        let mut registry = Registry::with_prefix("punctual");
        engine.register(&mut registry);
        let requests = Family::<ByRoute, Counter>::default();
        registry.register(
            "http_requests",
            "Requests answered, by method, route and class of status",
            requests.clone(),
        );
        let latency: RouteHistogram = Family::new_with_constructor(seconds);
        registry.register_with_unit(
            "http_latency",
            "From a request to the head of its answer, by method and route",
            Unit::Seconds,
            latency.clone(),
        );
        let build = [
            ("version", env!("CARGO_PKG_VERSION")),
            ("tzdb", tzdb_version()),
        ];
        registry.register("build", "What is running here", Info::new(build.to_vec()));
        let created = Family::<ByWay, Counter>::default();
        registry.register(
            "jobs_created",
            "Jobs created, one by one or in a batch",
            created.clone(),
        );
        let counter = |way: Way| created.get_or_create(&ByWay { way: way.as_str() }).clone();
        let (single, batch) = (counter(Way::Single), counter(Way::Batch));
        let streams = Gauge::default();
        let what = "Streams of server-sent events that are open";
        registry.register("streams", what, streams.clone());
        let mut process = Registry::default();
        process.register_collector(Box::new(Process));
        Self {
            registry,
            process,
            streams,
            requests,
            latency,
            single,
            batch,
        }
    }

    pub(crate) fn created(&self, way: Way, count: u64) {
        match way {
            Way::Single => self.single.inc_by(count),
            Way::Batch => self.batch.inc_by(count),
        };
    }

    pub(crate) fn answered(
        &self,
        method: &axum::http::Method,
        route: Option<&str>,
        status: u16,
        took: Duration,
    ) {
        let of = OfRoute {
            method: method_label(method),
            route: route.unwrap_or("none").to_owned(),
        };
        let histogram = self.latency.get_or_create(&of);
        histogram.observe(took.as_secs_f64());
        drop(histogram);
        let label = ByRoute {
            method: method_label(method),
            route: route.unwrap_or("none").to_owned(),
            status: class(status),
        };
        self.requests.get_or_create(&label).inc();
    }

    /// Everything as OpenMetrics text.
    pub(crate) fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode_registry(&mut text, &self.registry)?;
        encode_registry(&mut text, &self.process)?;
        encode_eof(&mut text)?;
        Ok(text)
    }
}

/// A client may send any method it likes; a label may not.
fn method_label(method: &axum::http::Method) -> &'static str {
    match method.as_str() {
        "GET" | "HEAD" => "GET",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        _ => "other",
    }
}

fn class(status: u16) -> &'static str {
    match status / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
