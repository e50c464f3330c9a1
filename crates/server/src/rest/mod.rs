//! REST: decode, call ops, encode. Every answer that is not what was asked for is a problem.
//!
//! In reading order: `extract` (what requests are made of), `jobs`, `runs`, `batch`, `calendars`, `preview`,
//! `slots`, `nodes`, `system` (health and the like), `docs` (the guides), `pages` (one per problem), `observe` (what is
//! done around every request), `openapi` (the contract).

mod answer;
mod batch;
mod calendars;
mod docs;
mod extract;
mod jobs;
mod nodes;
mod observe;
mod openapi;
mod pages;
mod preview;
mod runs;
mod slots;
mod split;
mod system;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use model::TenantId;

pub(crate) use extract::shown;
pub use openapi::openapi_json;

use crate::api::Api;
use crate::problem::{Kind, Problem};

/// The one tenant there is until keys say whose a request is.
const TENANT: TenantId = TenantId::DEFAULT;

/// Everything that clients can reach. A node without the api part only says how it is.
pub fn router(api: Api) -> Router {
    let api = Arc::new(api);
    let router = if api.engine.parts().api {
        with_api(system()).fallback(route_unknown)
    } else {
        system().fallback(not_api)
    };
    router
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(Arc::clone(&api), observe::observe))
        .with_state(api)
}

/// How a node is, what its problems mean, and the guides.
fn system() -> Router<Arc<Api>> {
    Router::new()
        .route("/healthz", get(system::healthz))
        .route("/readyz", get(system::readyz))
        .route("/version", get(system::version))
        .route("/metrics", get(system::metrics))
        .route("/docs", get(docs::index))
        .route("/docs/api", get(docs::api))
        .route("/docs/style.css", get(docs::style))
        .route("/docs/{name}", get(docs::show))
        .route("/problems", get(pages::index))
        .route("/problems/{name}", get(pages::show))
}

fn with_api(router: Router<Arc<Api>>) -> Router<Arc<Api>> {
    let by_key = get(jobs::find).put(jobs::put).delete(jobs::delete_by_key);
    let calendar = get(calendars::show)
        .put(calendars::put)
        .delete(calendars::delete);
    router
        .route("/v1/jobs", post(jobs::create).get(jobs::list))
        .route("/v1/jobs/batch", post(batch::create))
        .route("/v1/jobs/by-key/{*key}", by_key)
        .route(
            "/v1/jobs/{id}",
            get(jobs::show).patch(jobs::patch).delete(jobs::delete),
        )
        .route("/v1/jobs/{id}/pause", post(jobs::pause))
        .route("/v1/jobs/{id}/resume", post(jobs::resume))
        .route("/v1/jobs/{id}/run", post(runs::start))
        .route("/v1/jobs/{id}/replay", post(runs::replay_last))
        .route("/v1/jobs/{id}/retry", post(runs::replay_last))
        .route("/v1/jobs/{id}/runs", get(runs::list_of_job))
        .route("/v1/jobs/{id}/slots", get(slots::list))
        .route("/v1/jobs/{id}/explain", get(slots::explain))
        .route("/v1/runs", get(runs::list))
        .route("/v1/runs/{id}", get(runs::show))
        .route("/v1/runs/{id}/cancel", post(runs::cancel))
        .route("/v1/runs/{id}/replay", post(runs::replay))
        .route("/v1/runs/{id}/retry", post(runs::replay))
        .route("/v1/schedules/preview", post(preview::preview))
        .route(
            "/v1/calendars",
            post(calendars::create).get(calendars::list),
        )
        .route("/v1/calendars/{name}", calendar)
        .route("/v1/nodes", get(nodes::list))
        .route("/openapi.json", get(openapi::serve))
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
    let detail = format!("this node answers no clients, its parts are {parts}: ask one with api");
    Problem::new(Kind::NotApi, detail).with("parts", parts.names())
}
