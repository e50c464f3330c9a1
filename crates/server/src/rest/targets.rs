//! Targets over REST.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use model::Role;

use super::answer::{self, Answer};
use super::extract::NoParams;
use super::who::Viewer;
use crate::api::Api;
use crate::wire;

/// List the origins that the answering node calls for your jobs, and how it sees them; with a root key those of all tenants.
/// Each node sees for itself.
#[utoipa::path(
    get, path = "/v1/targets", tag = "nodes", operation_id = "list_targets",
    responses(
        (status = 200, body = wire::TargetList, description = "The origins"),
    ),
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    Viewer(caller): Viewer,
    _: NoParams,
) -> Answer {
    let of = Some(caller.tenant).filter(|_| caller.role != Role::Root);
    let now = api.engine.now();
    let targets = api.engine.targets(of);
    answer::json(StatusCode::OK, &wire::TargetList::of(&targets, now))
}
