#![allow(clippy::all, clippy::unwrap_used, clippy::disallowed_methods, clippy::print_stdout, clippy::allow_attributes)]
use std::sync::Arc;
use std::time::{Duration, Instant};
use model::*;
use store::sqlite::SqliteStore;
use store::*;

struct Clock(Instant);
impl StoreClock for Clock {
    fn now(&self) -> Timestamp { Timestamp::from_millis(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64) }
    fn uptime(&self) -> Duration { self.0.elapsed() }
}

fn rss() -> String { std::fs::read_to_string("/proc/self/status").unwrap().lines().find(|l| l.starts_with("VmRSS")).unwrap().to_owned() }

fn chance(n: u64) -> [u8; 10] { let mut c=[0;10]; c[..8].copy_from_slice(&model::hash::hash(9,&[n]).to_be_bytes()); c[8..].copy_from_slice(&(n as u16).to_be_bytes()); c }

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let n: usize = std::env::args().nth(1).map_or(100_000, |a| a.parse().unwrap());
    let extra: usize = std::env::args().nth(2).map_or(0, |a| a.parse().unwrap());
    let dir = std::env::args().nth(3).unwrap_or("/work/target/benchdir".into());
    let _ = std::fs::remove_dir_all(&dir);
    let clock = Arc::new(Clock(Instant::now()));
    let store = Arc::new(SqliteStore::open(std::path::Path::new(&dir), clock.clone()).unwrap());
    let now = clock.now();
    if extra > 0 {
        let t = Instant::now();
        for chunk in 0..extra / 1000 {
            let jobs: Vec<NewJob> = (0..1000).map(|i| {
                let k = (chunk * 1000 + i) as u64;
                let at = now.plus(Duration::from_millis(3_600_000 + model::hash::hash(4, &[k]) % 1_000_000_000));
                let def = Definition::new(Schedule::Once(Slot(at)), Target::Http(model::target::HttpTarget::new("http://127.0.0.1:8080/hook", None).unwrap()));
                NewJob { job: Arc::new(Job::new(JobId::new(now.plus(Duration::from_millis(k/100)), chance(k + 10_000_000)), TenantId::DEFAULT, None, def, now)), idempotency: None }
            }).collect();
            store.create_jobs(&jobs).await.unwrap();
        }
        let s = t.elapsed().as_secs_f64();
        println!("extra create {} in {:.2}s = {:.0}/s  {}", extra, s, extra as f64 / s, rss());
    }
    // build first
    let batches: Vec<Vec<NewJob>> = (0..n / 1000).map(|chunk| (0..1000).map(|i| {
        let k = (chunk * 1000 + i) as u64;
        let at = now.plus(Duration::from_millis(k / 100));
        let def = Definition::new(Schedule::Once(Slot(at)), Target::Http(model::target::HttpTarget::new("http://127.0.0.1:8080/hook", None).unwrap()));
        NewJob { job: Arc::new(Job::new(JobId::new(now.plus(Duration::from_millis(k/100)), chance(k)), TenantId::DEFAULT, None, def, now)), idempotency: None }
    }).collect()).collect();
    let t = Instant::now();
    for b in &batches { store.create_jobs(b).await.unwrap(); }
    let s = t.elapsed().as_secs_f64();
    println!("create {} in {:.3}s = {:.0}/s {}", n, s, n as f64 / s, rss());
    drop(batches);
    let me = store.join(&NodeName("bench".into())).await.unwrap();
    let leases = store.lease(me, &model::shard::ShardSet::ALL).await.unwrap();
    // drain
    let t = Instant::now();
    let mut cursor = None;
    let (tx, mut rx) = tokio::sync::mpsc::channel::<Vec<Settlement>>(8);
    let s2 = store.clone();
    let settler = tokio::spawn(async move {
        let mut done = 0;
        while let Some(b) = rx.recv().await {
            let r = s2.settle(me, &b).await.unwrap();
            done += r.iter().filter(|x| matches!(x, Settled::Done{..})).count();
        }
        done
    });
    let up_to = now.plus(Duration::from_secs(3_000));
    let (ptx, mut prx) = tokio::sync::mpsc::channel::<Vec<Arc<Job>>>(8);
    let s3 = store.clone();
    tokio::spawn(async move {
        loop {
            let due = s3.due_jobs(&model::shard::ShardSet::ALL, up_to, cursor, 4000).await.unwrap();
            for c in due.jobs.chunks(1000) { ptx.send(c.to_vec()).await.unwrap(); }
            cursor = due.next;
            if cursor.is_none() { break; }
        }
    });
    let mut plan_t = 0.0;
    while let Some(jobs) = prx.recv().await {
        let firings: Vec<Firing> = jobs.iter().map(|j| Firing { job: j.clone(), decision: j.decide(j.next_slot.unwrap(), j.next_slot.unwrap().0), claim: true }).collect();
        let t1 = Instant::now();
        let fired = store.fire(&leases, &firings).await.unwrap();
        plan_t += t1.elapsed().as_secs_f64();
        let settlements: Vec<Settlement> = jobs.iter().zip(&fired).map(|(j, f)| {
            assert!(matches!(f, Fired::Claimed(_)), "{f:?}");
            let slot = j.next_slot.unwrap();
            let mut run = Run::of_slot(j, slot);
            run.claim = Some(me);
            let at = clock.now();
            let attempt = Attempt::new(AttemptNo(1), Some(at), at, Report::succeeded().with_status(200));
            Settlement { run, verdict: Verdict::Succeed, attempt: Some(attempt), queues: false }
        }).collect();
        tx.send(settlements).await.unwrap();
    }
    drop(tx);
    let done = settler.await.unwrap();
    let s = t.elapsed().as_secs_f64();
    println!("drain {} in {:.3}s = {:.0}/s (fire wait {:.3}) {}", done, s, n as f64 / s, plan_t, rss());
    println!("{:?}", store.pulse().await.unwrap());
    let t = Instant::now();
    let l = store.list_jobs(TenantId::DEFAULT, &JobFilter::default(), Page { before: None, limit: 100 }).await.unwrap();
    println!("list_jobs {} {:?}", l.len(), t.elapsed());
    let t = Instant::now();
    let l = store.list_jobs(TenantId::DEFAULT, &JobFilter { states: vec![JobState::Active], ..Default::default() }, Page { before: None, limit: 100 }).await.unwrap();
    println!("list_jobs active {} {:?}", l.len(), t.elapsed());
    let t = Instant::now();
    let l = store.list_runs(TenantId::DEFAULT, &RunFilter::default(), Page { before: None, limit: 100 }).await.unwrap();
    println!("list_runs {} {:?}", l.len(), t.elapsed());
    let t = Instant::now();
    let l = store.list_runs(TenantId::DEFAULT, &RunFilter { states: vec![RunState::Dead], job: None }, Page { before: None, limit: 100 }).await.unwrap();
    println!("list_runs dead {} {:?}", l.len(), t.elapsed());
    for m in std::fs::read_dir(&dir).unwrap() { let m = m.unwrap(); println!("{:?} {}", m.file_name(), m.metadata().unwrap().len()); }
    let t = Instant::now();
    drop(store);
    println!("close {:?}", t.elapsed());
    let t = Instant::now();
    let store = SqliteStore::open(std::path::Path::new(&dir), clock.clone()).unwrap();
    println!("open {:?} {}", t.elapsed(), rss());
    drop(store);
}
