//! What there is besides jobs and runs: nodes, calendars, keys, users, secrets (by their names), tenants.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use model::{CalendarName, KeyId, Lane, Quota, Role, SecretName, TenantName, Timestamp, UserName};
use store::Page;

use super::format::{State as Shown, When, count};
use super::frame::{Answer, Frame, face, page};
use super::login::param;
use super::viewer::{By, Posted, Viewer};
use crate::api::Api;
use crate::ops::forecast::Reach;
use crate::ops::overview::Span;
use crate::ops::{calendars, forecast, keys, nodes, overview, secrets, tenants, users};
use crate::problem::{Kind, Problem};
use crate::wire;

const PAGE: usize = 50;

type Params = Query<Vec<(String, String)>>;

/// A table of texts: what most lists are.
pub(super) struct Table {
    pub caption: &'static str,
    pub head: Vec<&'static str>,
    pub rows: Vec<Vec<Cell>>,
}

pub(super) enum Cell {
    Text(String),
    Number(String),
    Mono(String),
    When(When),
    State(Shown),
    None,
    /// A button that does something to the row: its path, what it sends, its word.
    Do(&'static str, String, &'static str),
}

impl Cell {
    fn text(text: Option<String>) -> Self {
        text.filter(|text| !text.is_empty())
            .map_or(Self::None, Self::Text)
    }

    fn when(viewer: &Viewer, at: Option<Timestamp>) -> Self {
        at.map_or(Self::None, |at| Self::When(face(viewer).when(at)))
    }
}

#[derive(Template)]
#[template(path = "list.html")]
struct ListPage {
    frame: Frame,
    heading: &'static str,
    about: String,
    table: Table,
    /// What is said of an empty list, and the command that fills it.
    empty: (&'static str, &'static str),
    next: Option<String>,
}

fn show(of: ListPage) -> Answer {
    Ok(page(StatusCode::OK, of.render()?))
}

pub(super) fn node_rows(viewer: &Viewer, api: &Api) -> Table {
    let list = wire::NodeList::of(&nodes::list(api));
    let row = |node: &wire::Node| {
        let state = match (node.schedules, node.executes) {
            (false, false) => Shown::new("skipped", "Resting"),
            (true, false) | (false, true) | (true, true) => Shown::new("ran", "Working"),
        };
        let name = if node.is_self {
            format!("{} (this one)", node.name)
        } else {
            node.name.clone()
        };
        let offset = node.clock_offset.as_ref().map(|offset| {
            let sure = node.clock_uncertainty.as_deref().unwrap_or("—");
            format!("{} ± {sure}", offset.replacen('-', "−", 1))
        });
        vec![
            Cell::Text(name),
            Cell::State(state),
            Cell::Text(node.parts.join(", ")),
            Cell::Number(node.shards.to_string()),
            Cell::Number(count(node.room.into())),
            Cell::Number(node.lateness.clone()),
            offset.map_or(Cell::None, Cell::Number),
            Cell::when(viewer, Timestamp::parse(&node.beaten_at).ok()),
            Cell::Text(node.version.clone()),
        ]
    };
    Table {
        caption: "Nodes by name",
        head: vec![
            "Node",
            "State",
            "Parts",
            "#Shards",
            "#Room",
            "#Late",
            "#Clock offset",
            "Last beat",
            "Release",
        ],
        rows: list.items.iter().map(row).collect(),
    }
}

pub(super) async fn nodes(State(api): State<Arc<Api>>, By(viewer): By) -> Answer {
    viewer.needs(Role::Root)?;
    let table = node_rows(&viewer, &api);
    show(ListPage {
        heading: "Nodes",
        about: format!("{} share the work", table.rows.len()),
        table,
        frame: Frame::new(&viewer, "Nodes", "/nodes"),
        empty: ("No node has been heard of yet.", "punctual serve"),
        next: None,
    })
}

/// What lives in each lane now, and what comes in the next hour.
pub(super) async fn lanes(State(api): State<Arc<Api>>, By(viewer): By) -> Answer {
    let found = overview::overview(&api, viewer.caller, Span::Hour).await?;
    let of = wire::Overview::of(&found);
    let soon = forecast::soon(&api, viewer.caller).await?;
    let due = |lane: usize| {
        let hour = soon.as_ref()?.points(Reach::Hour);
        let slots: f64 = hour.iter().filter_map(|it| it.lanes.get(lane)).sum();
        let seconds = f64::from(Reach::Hour.points().0);
        Some(count((slots * seconds).round() as u64))
    };
    let row = |(place, lane): (usize, &wire::OverviewLane)| {
        let number = |number| Cell::Number(count(number));
        let weight = Lane::ALL.get(place).map(|lane| lane.weight().to_string());
        vec![
            Cell::Text(lane.lane.to_owned()),
            weight.map_or(Cell::None, Cell::Number),
            number(lane.live),
            number(lane.ready),
            number(lane.running),
            number(lane.retrying),
            number(lane.waiting),
            due(place).map_or(Cell::None, Cell::Number),
        ]
    };
    show(ListPage {
        heading: "Lanes",
        about: "Where runs wait for their turn: a lane of more weight gets more of them".to_owned(),
        table: Table {
            caption: "Lanes, by weight",
            head: vec![
                "Lane",
                "#Weight",
                "#Live",
                "#Ready",
                "#Running",
                "#Retrying",
                "#Waiting",
                "#Due in the next hour",
            ],
            rows: of.live.lanes.iter().enumerate().map(row).collect(),
        },
        frame: Frame::new(&viewer, "Lanes", "/lanes"),
        empty: ("There is no lane.", "punctual serve"),
        next: None,
    })
}

/// What this node calls, and whether it lets calls through.
pub(super) async fn targets(State(api): State<Arc<Api>>, By(viewer): By) -> Answer {
    let targets = api.engine.targets(Some(viewer.id()));
    let list = wire::TargetList::of(&targets, api.engine.now());
    let row = |target: &wire::Origin| {
        let state = match target.state {
            "closed" => Shown::new("ran", "Closed: calls go through"),
            "half_open" => Shown::new("late", "Half open: one call tries it"),
            _ => Shown::new("dead", "Open: nothing is sent"),
        };
        let until = target.open_until.as_deref();
        vec![
            Cell::Text(target.origin.clone()),
            Cell::State(state),
            Cell::Number(count(target.failures.into())),
            Cell::when(&viewer, until.and_then(|at| Timestamp::parse(at).ok())),
            Cell::Number(format!("{} of {}", target.calls, target.calls_max)),
            Cell::Number(target.queued.to_string()),
            Cell::Number(target.waiting.to_string()),
        ]
    };
    show(ListPage {
        heading: "Targets",
        about: "What this node calls, and the breaker of each; each node sees for itself"
            .to_owned(),
        table: Table {
            caption: "Targets by origin",
            head: vec![
                "Origin",
                "Breaker",
                "#Failures in a row",
                "Open until",
                "#Calls",
                "#Queued",
                "#Waiting runs",
            ],
            rows: list.items.iter().map(row).collect(),
        },
        frame: Frame::new(&viewer, "Targets", "/targets"),
        empty: (
            "A target is there from its first call on.",
            "punctual job run KEY",
        ),
        next: None,
    })
}

pub(super) async fn calendars(
    State(api): State<Arc<Api>>,
    By(viewer): By,
    Query(params): Params,
) -> Answer {
    let after = CalendarName::new(param(&params, "after")).ok();
    let found = calendars::list(&api, viewer.id(), after, PAGE).await?;
    let row = |used: &store::CalendarUse| {
        let of = wire::Calendar::of(used);
        let parts = [of.dates, of.yearly, of.weekly, of.ranges].concat();
        vec![
            Cell::Text(of.name),
            Cell::Text(parts.join(", ")),
            Cell::text(of.timezone),
            Cell::Number(count(of.jobs)),
            Cell::Number(of.version.to_string()),
            Cell::when(&viewer, Timestamp::parse(&of.updated_at).ok()),
            Cell::text(of.note),
        ]
    };
    show(ListPage {
        heading: "Calendars",
        about: "Named times that jobs leave out, or keep to".to_owned(),
        table: Table {
            caption: "Calendars by name",
            head: vec![
                "Calendar", "Times", "Zone", "#Jobs", "#Version", "Changed", "Note",
            ],
            rows: found.items.iter().map(row).collect(),
        },
        frame: Frame::new(&viewer, "Calendars", "/calendars"),
        empty: (
            "A calendar names days and hours, such as holidays. Jobs leave them out, or keep to them.",
            "punctual calendar put holidays --yearly 12-25 --yearly 01-01",
        ),
        next: found.next.map(|next| format!("/calendars?after={next}")),
    })
}

pub(super) async fn keys(
    State(api): State<Arc<Api>>,
    By(viewer): By,
    Query(params): Params,
) -> Answer {
    viewer.needs(Role::Admin)?;
    let of = Page {
        before: param(&params, "before").parse::<KeyId>().ok(),
        limit: PAGE,
    };
    let found = keys::list(&api, &viewer.tenant, of).await?;
    let row = |key: &model::AccessKey| {
        let is_valid = key.is_valid(viewer.now);
        let state = match (is_valid, key.revoked_at) {
            (true, _) => Shown::new("ran", "Valid"),
            (false, Some(_)) => Shown::new("skipped", "Revoked"),
            (false, None) => Shown::new("skipped", "Expired"),
        };
        let may_revoke = is_valid && viewer.may(key.role) && viewer.caller.key != Some(key.id);
        vec![
            Cell::Text(key.label.clone().unwrap_or_else(|| "—".to_owned())),
            Cell::State(state),
            Cell::Text(key.role.as_str().to_owned()),
            Cell::Mono(key.id.to_string()),
            Cell::when(&viewer, key.last_used_at),
            Cell::when(&viewer, key.expires_at),
            if may_revoke {
                Cell::Do("/keys/revoke", key.id.to_string(), "Revoke")
            } else {
                Cell::None
            },
        ]
    };
    show(ListPage {
        heading: "Keys",
        about: "Whoever has one may call the API as its role allows; none can be shown again"
            .to_owned(),
        table: Table {
            caption: "Keys, newest first",
            head: vec!["Label", "State", "Role", "Id", "Last used", "Expires", ""],
            rows: found.items.iter().map(row).collect(),
        },
        frame: Frame::new(&viewer, "Keys", "/keys"),
        empty: (
            "Keys open the API.",
            "punctual key create --role operator --label \"on call\"",
        ),
        next: found.next.map(|next| format!("/keys?before={next}")),
    })
}

pub(super) async fn revoke_key(State(api): State<Arc<Api>>, posted: Posted) -> Answer {
    posted.by.needs(Role::Admin)?;
    let id: KeyId = posted
        .fields
        .get("of")
        .parse()
        .map_err(|error: model::id::IdError| {
            Problem::new(Kind::AccessKeyNotFound, error.to_string())
        })?;
    keys::revoke(&api, posted.by.caller, &posted.by.tenant, id).await?;
    Ok(Redirect::to("/keys").into_response())
}

pub(super) async fn users(
    State(api): State<Arc<Api>>,
    By(viewer): By,
    Query(params): Params,
) -> Answer {
    viewer.needs(Role::Admin)?;
    let after = UserName::new(param(&params, "after")).ok();
    let found = users::list(&api, viewer.caller, after, PAGE).await?;
    let row = |of: &users::UserOf| {
        let roles: Vec<String> = of
            .roles
            .iter()
            .map(|(tenant, role)| format!("{role} of {tenant}"))
            .collect();
        vec![
            Cell::Text(of.user.name.to_string()),
            Cell::Text(roles.join(", ")),
            Cell::when(&viewer, Some(of.user.created_at)),
            Cell::when(&viewer, Some(of.user.updated_at)),
        ]
    };
    show(ListPage {
        heading: "Users",
        about: "People who log in here".to_owned(),
        table: Table {
            caption: "Users by name",
            head: vec!["User", "Roles", "Made", "Changed"],
            rows: found.items.iter().map(row).collect(),
        },
        frame: Frame::new(&viewer, "Users", "/users"),
        empty: (
            "Nobody logs in with a password yet.",
            "punctual user create ada --role operator",
        ),
        next: found
            .next
            .map(|next| format!("/users?after={}", super::format::encode(next.as_str()))),
    })
}

pub(super) async fn secrets(
    State(api): State<Arc<Api>>,
    By(viewer): By,
    Query(params): Params,
) -> Answer {
    viewer.needs(Role::Admin)?;
    let after = SecretName::new(param(&params, "after")).ok();
    let found = secrets::list(&api, viewer.id(), after, PAGE).await?;
    let row = |secret: &model::Secret| {
        let hosts: Vec<String> = secret.hosts.iter().map(ToString::to_string).collect();
        vec![
            Cell::Text(secret.name.to_string()),
            Cell::Text(hosts.join(", ")),
            Cell::Number(secret.version.to_string()),
            Cell::when(&viewer, Some(secret.updated_at)),
            Cell::text(secret.note.clone()),
        ]
    };
    show(ListPage {
        heading: "Secrets",
        about: "By their names: no value is ever shown".to_owned(),
        table: Table {
            caption: "Secrets by name",
            head: vec!["Secret", "Hosts", "#Version", "Changed", "Note"],
            rows: found.items.iter().map(row).collect(),
        },
        frame: Frame::new(&viewer, "Secrets", "/secrets"),
        empty: (
            "A secret is a value that jobs send and nobody gets back.",
            "punctual secret set billing-token --host api.example.com",
        ),
        next: found.next.map(|next| format!("/secrets?after={next}")),
    })
}

pub(super) async fn tenants(
    State(api): State<Arc<Api>>,
    By(viewer): By,
    Query(params): Params,
) -> Answer {
    viewer.needs(Role::Root)?;
    let after = TenantName::new(param(&params, "after")).ok();
    let found = tenants::list(&api, after, PAGE).await?;
    let mut rows = Vec::with_capacity(found.items.len());
    for tenant in &found.items {
        let (used, _) = tenants::usage(&api, tenant).await?;
        let jobs_max = tenant.quotas.limit(Quota::Jobs);
        let state = match tenant.deleting_at {
            Some(_) => Shown::new("skipped", "Being deleted"),
            None => Shown::new("ran", "Here"),
        };
        rows.push(vec![
            Cell::Text(tenant.name.to_string()),
            Cell::State(state),
            Cell::Number(count(used.jobs)),
            Cell::Number(jobs_max.map_or_else(|| "—".to_owned(), count)),
            Cell::when(
                &viewer,
                Some(tenant.created_at).filter(|at| at.as_millis() > 0),
            ),
            Cell::text(tenant.note.clone()),
        ]);
    }
    show(ListPage {
        heading: "Tenants",
        about: "Each sees its own jobs, runs, calendars and keys".to_owned(),
        table: Table {
            caption: "Tenants by name",
            head: vec!["Tenant", "State", "#Jobs", "#Jobs at most", "Made", "Note"],
            rows,
        },
        frame: Frame::new(&viewer, "Tenants", "/tenants"),
        empty: ("Tenants own jobs.", "punctual tenant create team-search"),
        next: found.next.map(|next| format!("/tenants?after={next}")),
    })
}
