//! Ten thousand tenants with a hundred jobs each, and one of them with far more runs than the others: how long what they list
//! takes, over REST and with a key of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use executor::{Executor, Registry, WorkOrder};
use hyper::Method;
use hyper::header::{AUTHORIZATION, HeaderValue};
use model::{Job, JobKey, Report, RetryHint, Role, Tenant, TenantId, TenantName, Timestamp};
use store::Store;

use super::figures::{Bar, Figures, percentile};
use super::http::{self, Credentials, Served, broken};
use super::rig::{self, Base, Place};
use crate::failure::Failure;

const TENANTS: usize = 10_000;
const JOBS: usize = 100;
/// Of each tenant's jobs so many have run, and so many of these are dead.
const RUN: usize = 10;
const DEAD: usize = 2;
/// Runs that one of them has beside, after all others; every second of them is dead.
const UNEVEN: usize = 100_000;
/// Tenants that list, and how often each of them does.
const LISTING: usize = 50;
const TIMES: usize = 8;

/// What is listed, in words and as it is requested.
const LISTS: [(&str, &str); 10] = [
    ("jobs", "/v1/jobs?limit=100"),
    ("by label", "/v1/jobs?limit=100&label=team%3Dops"),
    ("by state", "/v1/jobs?limit=100&state=active"),
    ("by owner", "/v1/jobs?limit=100&owner=ann"),
    ("by key", "/v1/jobs?limit=100&q=job-7"),
    ("runs", "/v1/runs?limit=100"),
    ("by end", "/v1/runs?limit=100&state=succeeded"),
    ("dead", "/v1/runs?limit=100&state=dead"),
    ("audit", "/v1/audit?limit=100"),
    ("keys", "/v1/keys?limit=100"),
];
/// What only root lists.
const ROOT_LISTS: [(&str, &str); 1] = [("tenants", "/v1/tenants?limit=100")];

pub(super) async fn tenants(base: &Base, progress: &dyn Fn(u64, u64)) -> Result<Figures, Failure> {
    let place = Place::new(base)?;
    let store = place.open().await?;
    let tenants = fill(&*store, progress).await?;
    // The first is the tenant that is always there, the second the uneven one.
    let listing = tenants.iter().skip(2).step_by(TENANTS / LISTING);
    let listing: Vec<TenantId> = tenants.iter().take(2).chain(listing).copied().collect();
    let root = keys(&*store, &[TenantId::DEFAULT], Role::Root).await?;
    let keys = keys(&*store, &listing, Role::Admin).await?;
    let runs = Runs::default();
    let registry = Registry::default().with("http", Arc::new(runs.clone()));
    let served = Served::on(&place, Arc::clone(&store), registry, Credentials::Key).await?;
    rig::wait("the runs", async || {
        runs.count() >= TENANTS * RUN + UNEVEN && rig::is_settled(&*store).await
    })
    .await?;
    let mut figures = Figures::new("tenants");
    let mut worst: f64 = 0.0;
    let lists = LISTS.into_iter().map(|list| (list, &keys));
    let of_root = ROOT_LISTS.into_iter().map(|list| (list, &root));
    for ((name, path), keys) in lists.chain(of_root) {
        let mut took = listed(&served, path, keys).await?;
        let p99 = percentile(&mut took, 99.0);
        figures = figures.with(name, p99, " ms");
        worst = worst.max(p99);
    }
    served.stop().await;
    drop(store);
    place.end().await?;
    Ok(figures.bar(Bar::at_most("p99 of any list ms", worst, 20.0)))
}

/// Ends attempts at once, and those at jobs whose label says so dead.
#[derive(Clone, Default)]
struct Runs(Arc<AtomicUsize>);

impl Runs {
    fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

#[async_trait]
impl Executor for Runs {
    async fn execute(&self, order: WorkOrder) -> Report {
        self.0.fetch_add(1, Ordering::AcqRel);
        if order.job.def.labels.contains_key(END) {
            return Report::failed("no such order").with_retry(RetryHint::Never);
        }
        Report::succeeded()
    }
}

/// The label of jobs whose runs die.
const END: &str = "end";

/// A job of a tenant, with a label or none, and with a key and an owner or without.
fn job_of(
    tenant: TenantId,
    due_at: Timestamp,
    label: Option<(&str, &str)>,
    named: Option<(&JobKey, &str)>,
) -> Arc<Job> {
    let mut job = Job::clone(&rig::one_off(due_at, rig::no_op()));
    job.tenant = tenant;
    job.key = named.map(|(key, _)| key.clone());
    job.owner = named.map(|(_, owner)| Arc::from(owner));
    if let Some((name, value)) = label {
        let def = Arc::make_mut(&mut job.def);
        def.labels.extend([(name.to_owned(), value.to_owned())]);
    }
    Arc::new(job)
}

/// Tenants, and jobs that are created in turn for all of them, as time brings them.
async fn fill(store: &dyn Store, progress: &dyn Fn(u64, u64)) -> Result<Vec<TenantId>, Failure> {
    let now = rig::now();
    let total = (JOBS * TENANTS + UNEVEN) as u64;
    let mut tenants = Vec::with_capacity(TENANTS);
    tenants.push(TenantId::DEFAULT);
    for number in 1..TENANTS {
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
        let label = match round {
            ..DEAD => Some((END, "dead")),
            _ => round.is_multiple_of(5).then_some(("team", "ops")),
        };
        let key = JobKey::new(&format!("job-{round}")).map_err(rig::failed)?;
        let owner = if round.is_multiple_of(5) {
            "ann"
        } else {
            "ben"
        };
        let named = Some((&key, owner));
        let jobs = tenants.iter();
        let jobs = jobs.map(|tenant| job_of(*tenant, due_at, label, named));
        rig::load(store, &jobs.collect::<Vec<_>>()).await?;
        progress(((round + 1) * TENANTS) as u64, total);
    }
    let uneven = tenants.get(1).copied().unwrap_or(TenantId::DEFAULT);
    let later = now.plus(Duration::from_millis(1));
    let of = |n: usize| {
        let dies = n.is_multiple_of(2);
        job_of(uneven, later, dies.then_some((END, "dead")), None)
    };
    let jobs: Vec<_> = (0..UNEVEN).map(of).collect();
    rig::load(store, &jobs).await?;
    progress(total, total);
    Ok(tenants)
}

async fn keys(
    store: &dyn Store,
    tenants: &[TenantId],
    role: Role,
) -> Result<Vec<HeaderValue>, Failure> {
    let mut keys = Vec::new();
    for tenant in tenants {
        let minted = server::Minted::new(*tenant, role, rig::now());
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
    for key in keys.iter().cycle().take(LISTING * TIMES) {
        let mut request = http::request(Method::GET, path, served.address, Bytes::new())?;
        request.headers_mut().insert(AUTHORIZATION, key.clone());
        let begun = rig::uptime();
        let (status, body) = http::send(&mut sender, request).await?;
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
