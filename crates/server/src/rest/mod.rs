//! REST: decode, call ops, encode. Every answer that is not what was asked for is a problem.
//!
//! In reading order: `who` (who may), `extract` (what requests are made of), `jobs`, `versions`, `runs`, `outside` (handed-over attempts), `find` (which of them), `replays` (many of them), `batch`, `calendars`, `alerts`, `preview`,
//! `slots`, `nodes`, `overview`, `forecast`, `events` (streams), `tenants`, `keys`, `users`, `secrets`, `signing`, `audit`, `system` (health and the like), `docs` (the guides), `pages` (one per problem),
//! `rates` (how fast), `observe` (what is done around every request), `openapi` (the contract).

mod alerts;
mod answer;
mod audit;
mod batch;
mod calendars;
mod docs;
mod events;
mod extract;
mod find;
mod forecast;
mod jobs;
mod keys;
mod nodes;
mod observe;
mod openapi;
mod outside;
mod overview;
mod pages;
mod params;
mod preview;
mod rates;
mod replays;
mod runs;
mod secrets;
mod signing;
mod slots;
mod split;
mod system;
mod targets;
mod tenants;
mod users;
mod versions;
mod who;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::from_fn_with_state;
use axum::routing::{delete, get, post};

pub(crate) use events::stream as event_stream;
pub(crate) use extract::shown;
pub use openapi::openapi_json;
pub(crate) use outside::refused as token_refused;

use crate::api::Api;
use crate::problem::{Kind, Problem};

/// Everything that clients can reach. A node without the api part only says how it is.
pub fn router(api: Api) -> Router {
    let api = Arc::new(api);
    let (open, closed) = if api.metrics_open {
        (open().route("/metrics", get(system::metrics)), closed())
    } else {
        let metrics = get(system::metrics_to_root);
        (open(), closed().route("/metrics", metrics))
    };
    let (open, closed) = if api.engine.parts().api {
        let open = open.route("/openapi.json", get(openapi::serve));
        let open = open.merge(crate::console::router(&api));
        (open, with_api(closed).fallback(route_unknown))
    } else {
        (open, closed.fallback(not_api))
    };
    closed
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(Arc::clone(&api), who::admit))
        .merge(open.method_not_allowed_fallback(method_not_allowed))
        .layer(from_fn_with_state(Arc::clone(&api), rates::by_address))
        .layer(from_fn_with_state(Arc::clone(&api), observe::observe))
        .with_state(api)
}

/// For everyone: how a node is, what its problems mean, and the guides.
fn open() -> Router<Arc<Api>> {
    Router::new()
        .route("/healthz", get(system::healthz))
        .route("/readyz", get(system::readyz))
        .route("/docs", get(docs::index))
        .route("/docs/api", get(docs::api))
        .route("/docs/style.css", get(docs::style))
        .route("/docs/{name}", get(docs::show))
        .route("/problems", get(pages::index))
        .route("/problems/{name}", get(pages::show))
}

/// For those who have a key, on every node.
fn closed() -> Router<Arc<Api>> {
    Router::new().route("/version", get(system::version))
}

fn with_runs(router: Router<Arc<Api>>) -> Router<Arc<Api>> {
    router
        .route("/v1/runs", get(runs::list))
        .route("/v1/runs/groups", get(find::groups))
        .route("/v1/runs/{id}", get(runs::show))
        .route("/v1/runs/{id}/cancel", post(runs::cancel))
        .route("/v1/runs/{id}/wake", post(runs::wake))
        .route("/v1/runs/{id}/replay", post(runs::replay))
        .route("/v1/runs/{id}/retry", post(runs::replay))
        .route("/v1/runs/{id}/report", post(outside::report))
        .route("/v1/runs/{id}/heartbeat", post(outside::heartbeat))
        .route(
            "/v1/runs/{id}/log",
            get(outside::log).post(outside::append_log),
        )
        .route("/v1/runs/{id}/checkpoint", get(outside::checkpoint))
}

fn with_views(router: Router<Arc<Api>>) -> Router<Arc<Api>> {
    router
        .route("/v1/targets", get(targets::list))
        .route("/v1/nodes", get(nodes::list))
        .route("/v1/overview", get(overview::show))
        .route("/v1/forecast", get(forecast::show))
        .route("/v1/forecast/second", get(forecast::second))
        .route("/v1/events", get(events::watch))
}

fn with_alerts(router: Router<Arc<Api>>) -> Router<Arc<Api>> {
    let alert = get(alerts::show).put(alerts::put).delete(alerts::delete);
    router
        .route("/v1/alerts", get(alerts::list))
        .route("/v1/alerts/{name}", alert)
        .route("/v1/alerts/{name}/mute", post(alerts::mute))
        .route("/v1/alerts/{name}/test", post(alerts::test))
        .route("/v1/alerts/{name}/deliveries", get(alerts::deliveries))
}

fn with_api(router: Router<Arc<Api>>) -> Router<Arc<Api>> {
    let by_key = get(jobs::find).put(jobs::put).delete(jobs::delete_by_key);
    let tenant = get(tenants::show)
        .patch(tenants::patch)
        .delete(tenants::delete);
    let calendar = get(calendars::show)
        .put(calendars::put)
        .delete(calendars::delete);
    let user = get(users::show).patch(users::patch).delete(users::delete);
    let secret = get(secrets::show).put(secrets::put).delete(secrets::delete);
    with_alerts(with_views(with_runs(router)))
        .route("/v1/jobs", post(jobs::create).get(jobs::list))
        .route("/v1/jobs/batch", post(batch::create))
        .route("/v1/jobs/by-key/{*key}", by_key)
        .route(
            "/v1/jobs/{id}",
            get(jobs::show).patch(jobs::patch).delete(jobs::delete),
        )
        .route("/v1/jobs/{id}/pause", post(jobs::pause))
        .route("/v1/jobs/{id}/resume", post(jobs::resume))
        .route("/v1/jobs/{id}/revert", post(versions::revert))
        .route("/v1/jobs/{id}/versions", get(versions::list))
        .route("/v1/jobs/{id}/versions/{version}", get(versions::show))
        .route("/v1/jobs/{id}/run", post(runs::start))
        .route("/v1/jobs/{id}/replay", post(runs::replay_last))
        .route("/v1/jobs/{id}/retry", post(runs::replay_last))
        .route("/v1/jobs/{id}/backfill", post(replays::backfill))
        .route("/v1/jobs/{id}/runs", get(runs::list_of_job))
        .route("/v1/jobs/{id}/slots", get(slots::list))
        .route("/v1/jobs/{id}/explain", get(slots::explain))
        .route("/v1/replays", post(replays::create).get(replays::list))
        .route("/v1/replays/{id}", get(replays::show))
        .route("/v1/replays/{id}/cancel", post(replays::cancel))
        .route("/v1/schedules/preview", post(preview::preview))
        .route(
            "/v1/calendars",
            post(calendars::create).get(calendars::list),
        )
        .route("/v1/calendars/{name}", calendar)
        .route("/v1/tenants", post(tenants::create).get(tenants::list))
        .route("/v1/tenants/{name}", tenant)
        .route("/v1/secrets", post(secrets::create).get(secrets::list))
        .route("/v1/secrets/rewrap", post(secrets::rewrap))
        .route("/v1/secrets/{name}", secret)
        .route(
            "/v1/signing-secrets",
            post(signing::create).get(signing::list),
        )
        .route("/v1/signing-secrets/{id}", delete(signing::delete))
        .route("/v1/keys", post(keys::create).get(keys::list))
        .route("/v1/keys/{id}", get(keys::show).delete(keys::revoke))
        .route("/v1/users", post(users::create).get(users::list))
        .route("/v1/users/{name}", user)
        .route("/v1/console/links", post(users::link))
        .route("/v1/audit", get(audit::list))
        .route("/v1/audit/export", get(audit::export))
        .route("/v1/audit/verify", get(audit::verify))
}

/// The router adds `Allow`.
async fn method_not_allowed(request: Request) -> Problem {
    let detail = format!(
        "{} is not taken here: Allow names what is",
        extract::shown(request.method().as_str())
    );
    Problem::new(Kind::MethodNotAllowed, detail)
}

async fn route_unknown(request: Request) -> Problem {
    let path = extract::shown(request.uri().path());
    Problem::new(
        Kind::RouteUnknown,
        format!("{path:?} is not a path of ours: /openapi.json names them all"),
    )
}

async fn not_api(State(api): State<Arc<Api>>) -> Problem {
    let parts = api.engine.parts();
    let detail = format!("this node answers no clients, its parts are {parts}: call one with api");
    Problem::new(Kind::NotApi, detail).with("parts", parts.names())
}
