#![allow(clippy::all, clippy::unwrap_used, clippy::disallowed_methods, clippy::print_stdout, clippy::allow_attributes)]
use std::time::{Duration, Instant};
use model::*;
use rusqlite::{Connection, params};
fn chance(n: u64) -> [u8; 10] { let mut c=[0;10]; c[..8].copy_from_slice(&model::hash::hash(9,&[n]).to_be_bytes()); c[8..].copy_from_slice(&(n as u16).to_be_bytes()); c }
fn main() {
    let n: usize = std::env::args().nth(1).map_or(100_000, |a| a.parse().unwrap());
    let batch: usize = std::env::args().nth(2).map_or(1000, |a| a.parse().unwrap());
    let page: i64 = std::env::args().nth(3).map_or(4096, |a| a.parse().unwrap());
    let ckpt: i64 = std::env::args().nth(4).map_or(4000, |a| a.parse().unwrap());
    let dir = "/work/target/floordir"; let _ = std::fs::remove_dir_all(dir); std::fs::create_dir_all(dir).unwrap();
    let conn = Connection::open(format!("{dir}/f.db")).unwrap();
    conn.pragma_update(None, "page_size", page).unwrap();
    conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).unwrap();
    conn.pragma_update(None, "synchronous", "full").unwrap();
    conn.pragma_update(None, "cache_size", -65536).unwrap();
    conn.pragma_update(None, "temp_store", "memory").unwrap();
    conn.pragma_update(None, "wal_autocheckpoint", ckpt).unwrap();
    conn.execute_batch(include_str!("../src/sqlite/migrations/0001_init.sql")).unwrap();
    let now = Timestamp::from_millis(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64);
    let day = now.as_millis() / 86_400_000;
    conn.execute_batch(&include_str!("../src/sqlite/sql/create_range.sql").replace("{day}", &day.to_string())).unwrap();
    let items: Vec<(JobId, i64, RunId)> = (0..n as u64).map(|k| { let at = now.plus(Duration::from_millis(k/100)); let j = JobId::new(at, chance(k)); (j, at.as_millis(), RunId::for_slot(j, Slot(at))) }).collect();
    let mut due = items.clone(); due.sort_by_key(|x| (x.1, x.0));
    let doc = br#"{"schedule":{"at":1798138800000},"target":{"http":{"url":"http://127.0.0.1:8080/hook"}}}"#;
    let t = Instant::now();
    for chunk in items.chunks(batch) {
        conn.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut a = conn.prepare_cached(include_str!("../src/sqlite/sql/create_jobs.sql")).unwrap();
        let mut b = conn.prepare_cached(include_str!("../src/sqlite/sql/create_jobs_def.sql")).unwrap();
        for (j, at, _) in chunk {
            a.execute(params![j.as_bytes(), 0, 0, 1, at, at, None::<i64>, now.as_millis()]).unwrap();
            b.execute(params![j.as_bytes(), 0, None::<i64>, 0, now.as_millis(), now.as_millis(), None::<i64>, &doc[..], None::<i64>]).unwrap();
        }
        drop(a); drop(b);
        conn.execute_batch("COMMIT").unwrap();
    }
    let s = t.elapsed().as_secs_f64();
    println!("floor create {:.0}/s", n as f64 / s);
    let t = Instant::now();
    let put = include_str!("../src/sqlite/sql/put_ended.sql").replace("{day}", &day.to_string());
    for chunk in due.chunks(batch) {
        conn.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut a = conn.prepare_cached(include_str!("../src/sqlite/sql/fire.sql")).unwrap();
        let mut b = conn.prepare_cached(include_str!("../src/sqlite/sql/put_live.sql")).unwrap();
        for (j, at, r) in chunk {
            a.execute(params![None::<i64>, None::<i64>, at, 2, at, j.as_bytes(), 1, at]).unwrap();
            b.execute(params![r.as_bytes(), j.as_bytes(), 0, 0, None::<i64>, None::<i64>, at, 1, 0, 1, 0, 1, 1, None::<i64>, 0, None::<i64>, None::<i64>, None::<i64>]).unwrap();
        }
        drop(a); drop(b);
        conn.execute_batch("COMMIT").unwrap();
        conn.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut a = conn.prepare_cached(include_str!("../src/sqlite/sql/settle.sql")).unwrap();
        let mut b = conn.prepare_cached(&put).unwrap();
        for (j, at, r) in chunk {
            a.execute(params![r.as_bytes(), 1, 1]).unwrap();
            b.execute(params![r.as_bytes(), j.as_bytes(), 0, 0, None::<i64>, None::<i64>, None::<i64>, 1, 3, None::<i64>, 1, 0, 1, at, at, 0, 200, None::<i64>, None::<i64>, None::<i64>, None::<i64>, None::<i64>, None::<i64>]).unwrap();
        }
        drop(a); drop(b);
        conn.execute_batch("COMMIT").unwrap();
    }
    let s = t.elapsed().as_secs_f64();
    println!("floor drain {:.0}/s", n as f64 / s);
}
