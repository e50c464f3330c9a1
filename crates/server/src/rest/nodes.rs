//! Nodes over REST.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;

use super::answer::{self, Answer};
use super::extract::NoParams;
use super::who::Root;
use crate::api::Api;
use crate::ops::nodes;
use crate::wire;

/// List the nodes that live, by name. The answering node says what it heard with its last beat, once a second.
#[utoipa::path(
    get, path = "/v1/nodes", tag = "nodes", operation_id = "list_nodes",
    responses(
        (status = 200, body = wire::NodeList, description = "The nodes"),
    ),
)]
pub(super) async fn list(State(api): State<Arc<Api>>, _: Root, _: NoParams) -> Answer {
    answer::json(StatusCode::OK, &wire::NodeList::of(&nodes::list(&api)))
}
