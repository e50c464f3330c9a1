//! What stands between a node and its database: a link that can be cut, held up, slowed down, and led elsewhere.
//!
//! Held, not a byte passes in either direction and nobody is informed, as when a cable is pulled; what was under way
//! passes when the link opens again. Deaf, what the node says arrives and no answer comes back: whatever it requested
//! happens, and it does not know. Refused, connections end at once and new ones with them.

use std::collections::VecDeque;
use std::io;
use std::net::TcpListener as Bound;
use std::thread;
use std::time::Duration;

use engine::{Clock, SystemClock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Bytes that one direction reads at once.
const PIECE: usize = 64 * 1024;
/// Pieces that are on their way at most, in one direction of a connection.
const PIECES_MAX: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Open,
    Held,
    Deaf,
    Refused,
}

/// Which way something goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    There,
    Back,
}

impl Flow {
    fn lets(self, way: Way) -> bool {
        match self {
            Self::Open => true,
            Self::Deaf => way == Way::There,
            Self::Held | Self::Refused => false,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Link {
    upstream: u16,
    flow: Flow,
    /// What each direction takes longer.
    delay: Duration,
    /// Connections of an earlier era have ended.
    era: u64,
}

/// A link of its own port. Dropped, it ends.
pub struct Proxy {
    port: u16,
    link: watch::Sender<Link>,
}

impl Proxy {
    pub fn to(upstream: u16) -> Self {
        let bound = Bound::bind("127.0.0.1:0").unwrap();
        bound.set_nonblocking(true).unwrap();
        let port = bound.local_addr().unwrap().port();
        let (link, seen) = watch::channel(Link {
            upstream,
            flow: Flow::Open,
            delay: Duration::ZERO,
            era: 0,
        });
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(listen(bound, seen));
        });
        Self { port, link }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn open(&self) {
        self.link.send_modify(|link| link.flow = Flow::Open);
    }

    pub fn hold(&self) {
        self.link.send_modify(|link| link.flow = Flow::Held);
    }

    pub fn deafen(&self) {
        self.link.send_modify(|link| link.flow = Flow::Deaf);
    }

    pub fn refuse(&self) {
        self.link.send_modify(|link| {
            link.flow = Flow::Refused;
            link.era += 1;
        });
    }

    pub fn delay(&self, delay: Duration) {
        self.link.send_modify(|link| link.delay = delay);
    }

    /// Leads elsewhere from now on.
    pub fn lead_to(&self, upstream: u16) {
        self.link.send_modify(|link| {
            link.upstream = upstream;
            link.era += 1;
        });
    }
}

async fn listen(bound: Bound, mut link: watch::Receiver<Link>) {
    let listener = TcpListener::from_std(bound).unwrap();
    loop {
        tokio::select! {
            biased;
            changed = link.changed() => if changed.is_err() { return },
            accepted = listener.accept() => {
                let now = *link.borrow();
                if let (Ok((stream, _)), true) = (accepted, now.flow != Flow::Refused) {
                    tokio::spawn(connect(stream, link.clone()));
                }
            }
        }
    }
}

/// One connection, until either side or its era ends.
async fn connect(near: TcpStream, mut link: watch::Receiver<Link>) {
    let era = link.borrow().era;
    if !passes(&mut link, era, Way::There).await {
        return;
    }
    let upstream = link.borrow().upstream;
    let Ok(far) = TcpStream::connect(("127.0.0.1", upstream)).await else {
        return;
    };
    if near.set_nodelay(true).is_err() || far.set_nodelay(true).is_err() {
        return;
    }
    let (near_in, near_out) = near.into_split();
    let (far_in, far_out) = far.into_split();
    let there = Pipe::new((near_in, far_out), &link, era, Way::There);
    let back = Pipe::new((far_in, near_out), &link, era, Way::Back);
    // The end of one direction is the end of both: PostgreSQL never closes just one.
    tokio::select! {
        _ = there.carry() => {}
        _ = back.carry() => {}
    }
}

/// Waits until the link lets something pass; false when the connection has ended meanwhile.
async fn passes(link: &mut watch::Receiver<Link>, era: u64, way: Way) -> bool {
    let found = link.wait_for(|link| link.flow.lets(way) || link.era != era);
    found.await.is_ok_and(|link| link.era == era)
}

/// One direction of a connection.
struct Pipe {
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    link: watch::Receiver<Link>,
    era: u64,
    way: Way,
    /// What is on its way, and when it arrives, by uptime.
    pieces: VecDeque<(Duration, Vec<u8>)>,
    piece: Vec<u8>,
}

impl Pipe {
    fn new(
        (from, to): (OwnedReadHalf, OwnedWriteHalf),
        link: &watch::Receiver<Link>,
        era: u64,
        way: Way,
    ) -> Self {
        Self {
            from,
            to,
            link: link.clone(),
            era,
            way,
            pieces: VecDeque::new(),
            piece: vec![0; PIECE],
        }
    }

    async fn carry(mut self) -> io::Result<()> {
        let mut ended = false;
        while passes(&mut self.link, self.era, self.way).await {
            let now = SystemClock.uptime();
            let next = self.pieces.front().map(|(arrives, _)| *arrives);
            if next.is_some_and(|arrives| arrives <= now) {
                if let Some((_, piece)) = self.pieces.pop_front() {
                    self.to.write_all(&piece).await?;
                }
                continue;
            }
            if ended && next.is_none() {
                break;
            }
            let wait = next.map_or(Duration::from_secs(3_600), |arrives| arrives - now);
            tokio::select! {
                biased;
                changed = self.link.changed() => if changed.is_err() { break },
                () = SystemClock.sleep(wait) => {}
                read = self.from.read(&mut self.piece), if !ended && self.pieces.len() < PIECES_MAX => {
                    let length = read?;
                    ended = length == 0;
                    let delay = self.link.borrow().delay;
                    let piece = self.piece[..length].to_vec();
                    // An end travels like what came before it.
                    self.pieces.push_back((SystemClock.uptime() + delay, piece));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;
    use crate::support::{now, pause};

    /// Says every byte back, after a name of its own.
    fn echo(name: u8) -> u16 {
        let listener = Bound::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                thread::spawn(move || {
                    let mut byte = [0];
                    while stream.read_exact(&mut byte).is_ok() {
                        stream.write_all(&[name, byte[0]]).unwrap();
                    }
                });
            }
        });
        port
    }

    fn connect(proxy: &Proxy) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
        let patience = Some(Duration::from_millis(500));
        stream.set_read_timeout(patience).unwrap();
        stream
    }

    fn said(stream: &mut TcpStream, byte: u8) -> Option<[u8; 2]> {
        stream.write_all(&[byte]).ok()?;
        let mut answer = [0; 2];
        stream.read_exact(&mut answer).ok()?;
        Some(answer)
    }

    #[test]
    fn a_link_is_held_delayed_refused_and_led_elsewhere() {
        let proxy = Proxy::to(echo(b'1'));
        let mut stream = connect(&proxy);
        assert_eq!(said(&mut stream, b'a'), Some([b'1', b'a']));

        proxy.hold();
        assert_eq!(said(&mut stream, b'b'), None, "nothing passes");
        let mut second = connect(&proxy);
        assert_eq!(said(&mut second, b'c'), None, "nor for whoever comes new");
        proxy.open();
        let mut late = [0; 2];
        stream.read_exact(&mut late).unwrap();
        assert_eq!(late, [b'1', b'b'], "nothing was lost");

        proxy.deafen();
        assert_eq!(said(&mut stream, b'x'), None, "no answer comes");
        proxy.open();
        stream.read_exact(&mut late).unwrap();
        assert_eq!(late, [b'1', b'x'], "but it was heard");

        proxy.delay(Duration::from_millis(50));
        let begun = now();
        assert_eq!(said(&mut stream, b'd'), Some([b'1', b'd']));
        let took = now() - begun;
        assert!((100..300).contains(&took), "{took} ms");
        proxy.delay(Duration::ZERO);

        proxy.refuse();
        pause(Duration::from_millis(50));
        assert_eq!(said(&mut stream, b'e'), None, "it has ended");
        assert_eq!(said(&mut connect(&proxy), b'f'), None);
        proxy.open();
        assert_eq!(said(&mut connect(&proxy), b'g'), Some([b'1', b'g']));

        let mut before = connect(&proxy);
        assert_eq!(said(&mut before, b'h'), Some([b'1', b'h']));
        proxy.lead_to(echo(b'2'));
        pause(Duration::from_millis(50));
        assert_eq!(said(&mut before, b'i'), None, "it led to the first");
        assert_eq!(said(&mut connect(&proxy), b'j'), Some([b'2', b'j']));
    }
}
