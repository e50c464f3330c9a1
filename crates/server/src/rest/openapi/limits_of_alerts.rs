//! The bounds of alerts.

use model::limits;

pub(super) const BOUNDS: &[(&str, usize, &[&str])] = &[
    ("minimum", 1, &["AlertRequest.count", "Alert.count"]),
    (
        "maximum",
        limits::ALERT_SKIPPED_MAX as usize,
        &["AlertRequest.count", "Alert.count"],
    ),
    (
        "maxLength",
        limits::URL_MAX,
        &["AlertRequest.url", "Alert.url"],
    ),
    ("maxLength", limits::NAME_MAX, &["Alert.name"]),
    ("maxItems", 50, &["Alert.alerts"]),
];
