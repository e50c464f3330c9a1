//! Pages that follow what happens: one stream a page. It says that there is something new, and the page's script reads the page once
//! more and puts what has changed into it.

use std::sync::Arc;

use axum::extract::{Query, State};
use model::Role;

use super::frame::Answer;
use super::login::param;
use super::run::find;
use super::viewer::By;
use crate::api::Api;
use crate::ops::watch::{Subject, Ticket, Watch};
use crate::rest::event_stream;

pub(super) async fn watch(
    State(api): State<Arc<Api>>,
    By(viewer): By,
    Query(params): Query<Vec<(String, String)>>,
) -> Answer {
    viewer.needs(Role::Reader)?;
    let subject = match param(&params, "run") {
        "" => Subject::Tenant(viewer.id()),
        id => Subject::Run(viewer.id(), find(&api, &viewer, id).await?.id),
    };
    let ticket = viewer.token.clone().map_or(Ticket::Anyone, Ticket::Session);
    let watch = Watch::begin(&api, viewer.caller, ticket, subject).await?;
    Ok(event_stream(&api, watch, subject, u32::MAX))
}
