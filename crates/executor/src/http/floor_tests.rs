//! How much of what bare connections can do is left when the executor stands before them. Run by
//! `cargo test --release -p executor --features http floor -- --ignored --nocapture`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use model::Outcome;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

use super::HttpExecutor;
use super::receiver::{dialer, order, pause, post};
use crate::{Executor, WorkOrder};

const ROUNDS: usize = 5;
const CALLERS: usize = 64;
const ROUND_MILLIS: u64 = 1_000;
const PAYLOAD: &str = "{\"report\":\"daily\"}";

/// A receiver on a thread of its own that reads every request and says ok.
fn receiver() -> SocketAddr {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        runtime.block_on(async move {
            while let Ok((socket, _)) = listener.accept().await {
                socket.set_nodelay(true).unwrap();
                tokio::spawn(async move {
                    let ok = service_fn(async |request: Request<Incoming>| {
                        request.into_body().collect().await?;
                        Ok::<_, hyper::Error>(Response::new(Full::new(Bytes::from_static(b"ok"))))
                    });
                    let serving = hyper::server::conn::http1::Builder::new();
                    serving
                        .serve_connection(TokioIo::new(socket), ok)
                        .await
                        .unwrap_or_default();
                });
            }
        });
    });
    address
}

async fn bare(address: SocketAddr, done: Arc<AtomicU64>) {
    let socket = TcpStream::connect(address).await.unwrap();
    socket.set_nodelay(true).unwrap();
    let (mut sender, driver) = hyper::client::conn::http1::handshake(TokioIo::new(socket))
        .await
        .unwrap();
    tokio::spawn(driver);
    let host = address.to_string();
    loop {
        sender.ready().await.unwrap();
        let request = Request::post("/hook")
            .header("host", &host)
            .body(Full::new(Bytes::from_static(PAYLOAD.as_bytes())));
        let answer = sender.send_request(request.unwrap()).await.unwrap();
        answer.into_body().collect().await.unwrap();
        done.fetch_add(1, Ordering::Relaxed);
    }
}

async fn ours(executor: Arc<HttpExecutor>, order: WorkOrder, done: Arc<AtomicU64>) {
    loop {
        let report = executor.execute(order.clone()).await;
        assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Calls a second, with `CALLERS` at once.
fn rate(runtime: Runtime, callers: impl Fn(Arc<AtomicU64>)) -> f64 {
    let done = Arc::new(AtomicU64::new(0));
    let rate = runtime.block_on(async {
        (0..CALLERS).for_each(|_| callers(done.clone()));
        pause(ROUND_MILLIS / 5).await;
        let (began, before) = (Instant::now(), done.load(Ordering::Relaxed));
        pause(ROUND_MILLIS).await;
        (done.load(Ordering::Relaxed) - before) as f64 / began.elapsed().as_secs_f64()
    });
    runtime.shutdown_background();
    rate
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

#[test]
#[ignore = "a measurement, for a quiet machine and a release build"]
fn the_executor_keeps_most_of_what_bare_connections_reach() {
    let address = receiver();
    let order = order(post(&format!("http://{address}/hook")), Some(PAYLOAD));
    let one = || Builder::new_current_thread().enable_all().build().unwrap();
    let two = || {
        Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap()
    };
    let runtimes: [(&str, &dyn Fn() -> Runtime); 2] = [("one thread", &one), ("two threads", &two)];
    for (name, runtime) in runtimes {
        let (mut floor, mut own) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            floor.push(rate(runtime(), |done| {
                drop(tokio::spawn(bare(address, done)))
            }));
            let executor = Arc::new(HttpExecutor::new(dialer()).unwrap());
            own.push(rate(runtime(), |done| {
                drop(tokio::spawn(ours(executor.clone(), order.clone(), done)));
            }));
        }
        let (floor, own) = (median(floor), median(own));
        println!(
            "{name}: bare {floor:.0}/s, executor {own:.0}/s, ratio {:.2}",
            own / floor
        );
    }
}
