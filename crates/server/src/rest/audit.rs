//! The audit log over REST.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use engine::chain::{Check, Head, Step};
use model::{KeyId, TenantId, TenantName, limits};
use store::Action;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

use super::answer::{self, Answer};
use super::extract::{Params, refuse};
use super::who::{Admin, Root};
use crate::access::Caller;
use crate::api::{Api, EXPORTS_MAX};
use crate::ops::audit::{self, AuditFilter, Names};
use crate::problem::{Kind, Problem};
use crate::wire;

const NDJSON: &str = "application/x-ndjson";
/// Pieces of an export that wait for the client.
const PIECES_MAX: usize = 2;

const FILTERS: [&str; 7] = [
    "tenant", "since", "until", "action", "actor", "key", "subject",
];

/// Whose entries, and which of them.
async fn tenant_and_filter(
    api: &Api,
    caller: Caller,
    params: &Params,
) -> Result<(Option<TenantId>, AuditFilter), Problem> {
    let name = params.one("tenant")?.map(TenantName::new).transpose();
    let name = name.map_err(|error| refuse("tenant", error.to_string()))?;
    let tenant = audit::whose(api, caller, name.as_ref()).await?;
    let action = params.one("action")?.map(|text| {
        let unknown = || {
            let known = Action::ALL.map(Action::as_str).join(", ");
            refuse(
                "action",
                format!("the action is not known: it is one of {known}"),
            )
        };
        Action::parse(text).ok_or_else(unknown)
    });
    let key = params.one("key")?.map(str::parse::<KeyId>).transpose();
    let filter = AuditFilter {
        since: params.moment("since")?,
        until: params.moment("until")?,
        action: action.transpose()?,
        actor: params.text("actor", limits::NAME_MAX)?.map(str::to_owned),
        key: key.map_err(|error| refuse("key", error.to_string()))?,
        subject: params.text("subject", limits::NAME_MAX)?.map(str::to_owned),
    };
    Ok((tenant, filter))
}

/// List what was changed, and by whom, newest first.
#[utoipa::path(
    get, path = "/v1/audit", tag = "audit", operation_id = "list_audit",
    params(
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
        ("limit" = Option<u32>, Query, description = "1 to 1000; 50 by default. A page may be shorter, and have a cursor"),
        ("tenant" = Option<String>, Query, description = "Whose, by name; any but its own is found by root only, which sees all of them otherwise"),
        ("since" = Option<String>, Query, description = "From this moment on"),
        ("until" = Option<String>, Query, description = "Before this moment"),
        ("action" = Option<String>, Query, description = "What was done, such as job.edit"),
        ("actor" = Option<String>, Query, description = "Who did it"),
        ("key" = Option<String>, Query, description = "With which key, by its id"),
        ("subject" = Option<String>, Query, description = "To what: an id, or the name of what has none"),
    ),
    responses(
        (status = 200, body = wire::AuditList, description = "A page of entries"),
    ),
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    params: Params,
) -> Answer {
    params.known(&[&["cursor", "limit"], FILTERS.as_slice()].concat())?;
    let (tenant, filter) = tenant_and_filter(&api, caller, &params).await?;
    let listed = audit::list(&api, tenant, &filter, answer::page(&params)?).await?;
    let mut names = Names::default();
    names.learn(&api, &listed.items).await?;
    let items = listed.items.into_iter().map(|entry| {
        let tenant = names.of(entry.tenant);
        wire::AuditEntry::of(entry, tenant)
    });
    answer::json(
        StatusCode::OK,
        &wire::AuditList {
            items: items.collect(),
            next_cursor: listed.next.as_ref().map(answer::cursor),
        },
    )
}

/// Everything that fits, oldest first, one entry per line. A log that ends without its last line was cut off.
#[utoipa::path(
    get, path = "/v1/audit/export", tag = "audit", operation_id = "export_audit",
    params(
        ("tenant" = Option<String>, Query, description = "Whose, by name; any but its own is found by root only, which sees all of them otherwise"),
        ("since" = Option<String>, Query, description = "From this moment on"),
        ("until" = Option<String>, Query, description = "Before this moment"),
        ("action" = Option<String>, Query, description = "What was done, such as job.edit"),
        ("actor" = Option<String>, Query, description = "Who did it"),
        ("key" = Option<String>, Query, description = "With which key, by its id"),
        ("subject" = Option<String>, Query, description = "To what: an id, or the name of what has none"),
    ),
    responses(
        (status = 200, body = wire::AuditEntry, content_type = "application/x-ndjson", description = "One entry per line"),
    ),
)]
pub(super) async fn export(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    params: Params,
) -> Answer {
    params.known(&FILTERS)?;
    let (tenant, filter) = tenant_and_filter(&api, caller, &params).await?;
    let permit = permit(&api)?;
    let (pieces, receiver) = mpsc::channel(PIECES_MAX);
    let answer = ndjson(&api, caller, receiver);
    tokio::spawn(async move {
        let exported = write_all(&api, caller, tenant, &filter, &pieces).await;
        if let Err(why) = exported {
            // The client is to see that this is not all.
            let _gone = pieces.send(Err(std::io::Error::other(why))).await;
        }
        drop(permit);
    });
    Ok(answer)
}

/// Check that nobody has rewritten the audit log: one line for each part that was checked, the last with what came of it.
#[utoipa::path(
    get, path = "/v1/audit/verify", tag = "audit", operation_id = "verify_audit",
    params(
        ("head" = Option<String>, Query, description = "A head that was logged, as 12:9a82…: the log must still have it"),
    ),
    responses(
        (status = 200, body = wire::AuditCheck, content_type = "application/x-ndjson", description = "How far it has come, line by line"),
    ),
)]
pub(super) async fn verify(
    State(api): State<Arc<Api>>,
    Root(caller): Root,
    params: Params,
) -> Answer {
    params.known(&["head"])?;
    let head = params.one("head")?.map(|text| {
        let detail = "a head is the number of a segment and its code, as the log has it: 12:9a82…";
        Head::parse(text).ok_or_else(|| refuse("head", detail))
    });
    let head = head.transpose()?;
    let permit = permit(&api)?;
    let (pieces, receiver) = mpsc::channel(PIECES_MAX);
    let answer = ndjson(&api, caller, receiver);
    tokio::spawn(async move {
        if let Err(error) = check_all(&api, head, &pieces).await {
            let _gone = pieces.send(Err(std::io::Error::other(error))).await;
        }
        drop(permit);
    });
    Ok(answer)
}

async fn check_all(
    api: &Api,
    head: Option<Head>,
    pieces: &mpsc::Sender<Piece>,
) -> Result<(), String> {
    let send = async |line: &wire::AuditCheck| {
        let mut text = serde_json::to_vec(line).map_err(|error| error.to_string())?;
        text.push(b'\n');
        Ok::<_, String>(pieces.send(Ok(text.into())).await.is_ok())
    };
    let Some(keys) = api.engine.master_keys() else {
        send(&wire::AuditCheck::without_key()).await?;
        return Ok(());
    };
    let store = api.store.access();
    let mut check = Check::new(store, &keys, head, api.engine.now());
    loop {
        let step = check.step().await.map_err(|error| error.to_string())?;
        let goes_on = send(&wire::AuditCheck::of(&check.checked, &step)).await?;
        if step != Step::More || !goes_on {
            return Ok(());
        }
    }
}

fn permit(api: &Api) -> Result<OwnedSemaphorePermit, Problem> {
    let permit = Arc::clone(&api.exports).try_acquire_owned();
    permit.map_err(|_| {
        let detail = format!("{EXPORTS_MAX} exports are under way: try a little later");
        Problem::new(Kind::Overloaded, detail).retry_after(1)
    })
}

/// Pieces as they come, until the caller's key is not valid any more: also those that wait for a client that
/// is slow to read.
fn ndjson(api: &Arc<Api>, caller: Caller, pieces: mpsc::Receiver<Piece>) -> Response {
    let api = Arc::clone(api);
    let pieces = ReceiverStream::new(pieces).map(move |piece| {
        check_key(&api, caller).map_err(std::io::Error::other)?;
        piece
    });
    let mut response = Response::new(Body::from_stream(pieces));
    let ndjson = HeaderValue::from_static(NDJSON);
    response.headers_mut().insert(header::CONTENT_TYPE, ndjson);
    response
}

fn check_key(api: &Api, caller: Caller) -> Result<(), String> {
    if api.access.is_still_valid(caller, api.engine.now()) {
        Ok(())
    } else {
        Err("the key is not valid any more".to_owned())
    }
}

type Piece = Result<Bytes, std::io::Error>;

/// A few entries at a time, as fast as the client takes them.
async fn write_all(
    api: &Api,
    caller: Caller,
    tenant: Option<TenantId>,
    filter: &AuditFilter,
    pieces: &mpsc::Sender<Piece>,
) -> Result<(), String> {
    let (mut after, mut names) = (0, Names::default());
    loop {
        // It may take long, and its key be revoked meanwhile.
        check_key(api, caller)?;
        let read = audit::read_on(api, tenant, filter, after).await;
        let read = read.map_err(|error| error.to_string())?;
        let learned = names.learn(api, &read.items).await;
        learned.map_err(|error| error.to_string())?;
        let mut text = Vec::new();
        for entry in read.items {
            let tenant = names.of(entry.tenant);
            let written = serde_json::to_writer(&mut text, &wire::AuditEntry::of(entry, tenant));
            written.map_err(|error| error.to_string())?;
            text.push(b'\n');
        }
        if !text.is_empty() && pieces.send(Ok(text.into())).await.is_err() {
            return Ok(());
        }
        match read.next {
            Some(next) => after = next,
            None => return Ok(()),
        }
    }
}
