//! Ten thousand tenants with a hundred jobs each: how long what one of them lists takes, over REST and with its key.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use hyper::header::{AUTHORIZATION, HeaderValue};
use model::{Job, Role, Tenant, TenantId, TenantName};
use store::Store;

use super::figures::{Bar, Figures, percentile};
use super::http::{self, Asked, Served, broken};
use super::rig::{self, Base, Notes, Place};
use crate::failure::Failure;

const TENANTS: usize = 10_000;
const JOBS: usize = 100;
/// Of each tenant's jobs so many have run.
const RUN: usize = 10;
/// Tenants that list, and how often each of them does.
const LISTING: usize = 50;
const TIMES: usize = 8;

/// What is listed, in words and as it is requested.
const LISTS: [(&str, &str); 6] = [
    ("jobs", "/v1/jobs?limit=100"),
    ("by label", "/v1/jobs?limit=100&label=team%3Dops"),
    ("by state", "/v1/jobs?limit=100&state=active"),
    ("runs", "/v1/runs?limit=100"),
    ("by end", "/v1/runs?limit=100&state=succeeded"),
    ("audit", "/v1/audit?limit=100"),
];

pub(super) async fn tenants(base: &Base, tell: &dyn Fn(u64, u64)) -> Result<Figures, Failure> {
    let place = Place::new(base)?;
    let store = place.open().await?;
    let tenants = fill(&*store, tell).await?;
    let listing: Vec<TenantId> = tenants.iter().step_by(TENANTS / LISTING).copied().collect();
    let keys = keys(&*store, &listing).await?;
    let notes = Notes::new(TENANTS * RUN);
    let served = Served::on(&place, Arc::clone(&store), notes.registry(), Asked::Key).await?;
    rig::wait("the runs", async || {
        notes.count() >= TENANTS * RUN && rig::is_settled(&*store).await
    })
    .await?;
    let mut figures = Figures::new("tenants");
    let mut worst: f64 = 0.0;
    for (name, path) in LISTS {
        let mut took = listed(&served, path, &keys).await?;
        let p99 = percentile(&mut took, 99.0);
        figures = figures.with(name, p99, " ms");
        worst = worst.max(p99);
    }
    served.stop().await;
    drop(store);
    place.end().await?;
    Ok(figures.bar(Bar::at_most("p99 of any list ms", worst, 20.0)))
}

/// Tenants, and jobs that are created in turn for all of them, as time brings them.
async fn fill(store: &dyn Store, tell: &dyn Fn(u64, u64)) -> Result<Vec<TenantId>, Failure> {
    let (now, target) = (rig::now(), rig::no_op());
    let mut tenants = Vec::with_capacity(TENANTS);
    for number in 0..TENANTS {
        let name = TenantName::new(&format!("team-{number}")).map_err(rig::failed)?;
        let tenant = Tenant::new(TenantId::new(now, rand::random()), name, now);
        store
            .access()
            .create_tenant(&tenant)
            .await
            .map_err(rig::failed)?;
        tenants.push(tenant.id);
    }
    for round in 0..JOBS {
        let ahead = Duration::from_secs(3_600 + 60 * round as u64);
        let due_at = if round < RUN { now } else { now.plus(ahead) };
        let of = |tenant: &TenantId| {
            let mut job = Job::clone(&rig::one_off(due_at, target.clone()));
            job.tenant = *tenant;
            if round.is_multiple_of(5) {
                let label = ("team".to_owned(), "ops".to_owned());
                let def = Arc::make_mut(&mut job.def);
                def.labels.extend([label]);
            }
            Arc::new(job)
        };
        let jobs: Vec<_> = tenants.iter().map(of).collect();
        rig::load(store, &jobs).await?;
        tell(((round + 1) * TENANTS) as u64, (JOBS * TENANTS) as u64);
    }
    Ok(tenants)
}

async fn keys(store: &dyn Store, tenants: &[TenantId]) -> Result<Vec<HeaderValue>, Failure> {
    let mut keys = Vec::new();
    for tenant in tenants {
        let minted = server::Minted::new(*tenant, Role::Admin, rig::now());
        store
            .access()
            .create_key(&minted.key)
            .await
            .map_err(rig::failed)?;
        keys.push(HeaderValue::try_from(format!("Bearer {}", minted.text)).map_err(broken)?);
    }
    Ok(keys)
}

/// How many milliseconds each request took.
async fn listed(served: &Served, path: &str, keys: &[HeaderValue]) -> Result<Vec<f64>, Failure> {
    let mut sender = http::connect(served.address).await?;
    let mut took = Vec::new();
    for key in keys.iter().cycle().take(keys.len() * TIMES) {
        let mut request = http::request(Method::GET, path, served.address, Bytes::new())?;
        request.headers_mut().insert(AUTHORIZATION, key.clone());
        let begun = rig::uptime();
        let (status, body) = http::ask(&mut sender, request).await?;
        took.push(rig::uptime().saturating_sub(begun).as_secs_f64() * 1_000.0);
        if !status.is_success() || body.len() < 200 {
            return Err(Failure::refused(format!(
                "{path} was answered {status} with {} bytes",
                body.len()
            )));
        }
    }
    Ok(took)
}
