//! A receiver of callbacks on loopback: writes down what comes when, and answers as scripted. It keeps
//! connections open, one thread each.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use engine::{Clock, SystemClock};

use super::pause;

/// One callback.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// When its first line had been read, in microseconds since the epoch.
    pub at_micros: i64,
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Delivery {
    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .unwrap_or_else(|| panic!("no {name} in {:?}", self.headers))
    }
}

/// What is said to a callback.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub body: String,
    /// How long to wait before saying it.
    pub after: Duration,
}

impl Answer {
    pub fn ok() -> Self {
        Self::status(200)
    }

    pub fn status(status: u16) -> Self {
        Self {
            status,
            body: String::new(),
            after: Duration::ZERO,
        }
    }

    pub fn saying(mut self, body: &str) -> Self {
        self.body = body.to_owned();
        self
    }

    pub fn after(mut self, span: Duration) -> Self {
        self.after = span;
        self
    }
}

type Script = dyn Fn(&Delivery) -> Answer + Send + Sync;

pub struct Receiver {
    address: String,
    deliveries: Arc<Mutex<Vec<Delivery>>>,
}

impl Receiver {
    /// Says 200 to everything.
    pub fn start() -> Self {
        Self::answering(|_| Answer::ok())
    }

    pub fn answering(script: impl Fn(&Delivery) -> Answer + Send + Sync + 'static) -> Self {
        Self::listening(script, true)
    }

    /// Keeps nothing: what is worth keeping, the script keeps.
    pub fn forgetting(script: impl Fn(&Delivery) -> Answer + Send + Sync + 'static) -> Self {
        Self::listening(script, false)
    }

    fn listening(
        script: impl Fn(&Delivery) -> Answer + Send + Sync + 'static,
        keeps: bool,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let deliveries = Arc::new(Mutex::new(Vec::new()));
        let (script, seen): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&deliveries));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (script, seen) = (Arc::clone(&script), Arc::clone(&seen));
                let seen = keeps.then_some(seen);
                thread::spawn(move || talk(stream, &*script, seen.as_deref()));
            }
        });
        Self {
            address,
            deliveries,
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Everything so far, in the order of arrival.
    pub fn deliveries(&self) -> Vec<Delivery> {
        self.deliveries.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.deliveries.lock().unwrap().len()
    }
}

fn talk(stream: TcpStream, script: &Script, seen: Option<&Mutex<Vec<Delivery>>>) {
    stream.set_nodelay(true).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    while let Some(delivery) = read(&mut reader) {
        let Answer {
            status,
            body,
            after,
        } = script(&delivery);
        if let Some(seen) = seen {
            seen.lock().unwrap().push(delivery);
        }
        pause(after);
        let answer = format!(
            "HTTP/1.1 {status} Said\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// The next request of a connection; none when it ends, or is not a whole request.
fn read(reader: &mut BufReader<TcpStream>) -> Option<Delivery> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let at_micros = SystemClock.now_micros();
    let mut words = line.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Delivery {
        at_micros,
        method,
        path,
        headers,
        body,
    })
}
