//! The server on a real socket: raw requests, bounds on connections, the end.

use std::net::SocketAddr;
use std::time::Duration;

use server::Door;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::world::{OK, World};

pub struct Served {
    pub world: World,
    pub address: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

async fn served() -> Served {
    served_by(World::new().await, Door::default()).await
}

pub async fn served_by(world: World, door: Door) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let task = tokio::spawn(server::serve(
        listener,
        world.router.clone(),
        door,
        stop.clone(),
    ));
    Served {
        world,
        address,
        stop,
        task,
    }
}

impl Served {
    /// Sends bytes as they are, and reads until the other side closes or says no more for a while.
    pub async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        read(&mut stream).await
    }
}

pub async fn read(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match tokio::time::timeout(Duration::from_millis(500), stream.read(&mut buffer)).await {
            Ok(Ok(0) | Err(_)) | Err(_) => return String::from_utf8_lossy(&all).into_owned(),
            Ok(Ok(count)) => all.extend_from_slice(&buffer[..count]),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_requests_are_refused_and_others_are_served() {
    let served = served().await;
    let many = format!(
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\n{}\r\n",
        "x: y\r\n".repeat(200)
    );
    assert!(
        served
            .raw(many.as_bytes())
            .await
            .starts_with("HTTP/1.1 431")
    );
    let large = format!(
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n",
        "y".repeat(100_000)
    );
    assert!(
        served
            .raw(large.as_bytes())
            .await
            .starts_with("HTTP/1.1 431")
    );
    let smuggled = "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\ncontent-length: 5\r\n\r\nabcd";
    assert!(
        served
            .raw(smuggled.as_bytes())
            .await
            .starts_with("HTTP/1.1 400")
    );
    for garbage in ["\0\0\0\0\r\n\r\n", "GET\r\n\r\n", "BREW / HTTP/9.9\r\n\r\n"] {
        let reply = served.raw(garbage.as_bytes()).await;
        assert!(
            reply.is_empty() || reply.starts_with("HTTP/1.1 4") || reply.starts_with("HTTP/1.1 5"),
            "{reply}"
        );
    }
    let reply = served
        .raw(b"GET /v1/jobs/x HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await;
    assert!(
        reply.contains("404 Not Found") && reply.contains("/problems/job-not-found"),
        "{reply}"
    );
    let reply = served
        .raw(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await;
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalled_connections_hold_up_nobody() {
    let served = served().await;
    let mut stalled = Vec::new();
    for index in 0..200 {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        let head: &[u8] = match index % 3 {
            0 => b"",
            1 => b"GET /healthz HTTP/1.1\r\nhost: ",
            _ => b"POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{",
        };
        stream.write_all(head).await.unwrap();
        stalled.push(stream);
    }
    let reply = served
        .raw(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await;
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_is_sent_whole_before_it_is_read_comes_through() {
    let served = served().await;
    let line =
        format!("{{\"schedule\":{{\"at\":\"2099-01-01T00:00:00Z\"}},\"target\":\"{OK}\"}}\n");
    let body = line.repeat(20_000);
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let length = body.len();
    let head = format!(
        "POST /v1/jobs/batch HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/x-ndjson\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    let reply = read(&mut stream).await;
    assert_eq!(reply.matches("\"status\":201").count(), 20_000);
    assert_eq!(served.world.store.all_jobs().len(), 20_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_lets_requests_end_and_takes_no_more() {
    let served = served().await;
    let body = format!("{{\"schedule\":\"@daily\",\"target\":\"{OK}\"}}");
    let head = format!(
        "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut busy = TcpStream::connect(served.address).await.unwrap();
    let mut idle = TcpStream::connect(served.address).await.unwrap();
    busy.write_all(head.as_bytes()).await.unwrap();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    assert!(read(&mut idle).await.starts_with("HTTP/1.1 200"));
    served.stop.cancel();
    assert_eq!(read(&mut idle).await, "", "an idle connection is closed");
    assert!(
        TcpStream::connect(served.address).await.is_err(),
        "no more are taken"
    );
    assert!(!served.task.is_finished());
    busy.write_all(body.as_bytes()).await.unwrap();
    assert!(read(&mut busy).await.starts_with("HTTP/1.1 201"));
    tokio::time::timeout(Duration::from_secs(2), served.task)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(served.world.store.all_jobs().len(), 1);
}
