//! What is done to the fleet while jobs fire: one fault after another, in an order that a seed gives.

use std::fmt;
use std::time::Duration;

use nix::sys::signal::Signal;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use store::postgres::server::Stop;

use super::database::Database;
use super::fleet::{Fleet, NAMES, NODES};
use super::proxy::Proxy;
use crate::support::{now, pause};

/// How long nothing is done to anyone before the next fault.
const CALM: Duration = Duration::from_secs(5);
/// How long a node stays away.
const AWAY: Duration = Duration::from_secs(7);
const PAUSE: Duration = Duration::from_secs(15);
const CUT: Duration = Duration::from_secs(12);
const SLOW: Duration = Duration::from_secs(6);
const DELAY: Duration = Duration::from_millis(30);
/// How often answers are lost in a row, how long none comes before the connections end, and the time between.
const DEAF_TIMES: u32 = 8;
const DEAF: Duration = Duration::from_millis(80);
const DEAF_GAP: Duration = Duration::from_millis(700);
/// Longer than a presence lives, shorter than a statement waits for a lock.
const LOCKED: u64 = 4;
/// Tables that everyone needs.
const TABLES: [&str; 3] = ["presences", "jobs", "live"];
/// Longer than a slot may be late: some are missed.
const DARK: Duration = Duration::from_secs(14);
/// The long form: there is time for every node to be gone at once, and after each other fault the database is away, so
/// about every twenty seconds.
const LONG_FROM: u64 = 300;
/// How long the database is away, or stands still, in milliseconds.
const OUTAGE_MIN: u64 = 500;
const OUTAGE_MAX: u64 = 6_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// `kill -9`, and started again later.
    Kill,
    /// SIGSTOP for longer than its presence lives, then SIGCONT.
    Pause,
    /// Nothing passes between it and the database.
    Hold,
    /// Its connections to the database end, and no new one can be made.
    Refuse,
    /// The database hears it and it does not hear the database; then its connections end. Several times.
    Deafen,
    /// Every byte between it and the database takes longer.
    Delay,
    /// Stopped in good order, and started again.
    Stop,
    /// A table that everyone needs is locked by somebody else.
    Lock,
    RestartFast,
    RestartImmediate,
    /// The primary falls for good, and its standby takes over.
    FailOver,
    /// The database falls, and is away for a while.
    Outage,
    /// The database does nothing for a while.
    Freeze,
    /// `kill -9` of every node.
    Blackout,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kill => "kill -9",
            Self::Pause => "SIGSTOP 15 s",
            Self::Hold => "link held 12 s",
            Self::Refuse => "link refused 12 s",
            Self::Deafen => "answers lost",
            Self::Delay => "link slowed by 2 × 30 ms",
            Self::Stop => "stop in good order",
            Self::Lock => "table locked",
            Self::RestartFast => "database restart, fast",
            Self::RestartImmediate => "database restart, immediate",
            Self::FailOver => "standby takes over",
            Self::Outage => "database away",
            Self::Freeze => "database frozen",
            Self::Blackout => "kill -9 of all for 14 s",
        })
    }
}

/// A fault that happened, in milliseconds since the epoch.
#[derive(Debug, Clone)]
pub struct Strike {
    pub fault: Fault,
    pub node: Option<&'static str>,
    pub begun: i64,
    /// When everything was whole again, as far as we did it.
    pub ended: i64,
}

impl Strike {
    /// What it leaves behind has mostly passed so long after its end, in milliseconds.
    pub fn aftermath(&self) -> i64 {
        if self.fault == Fault::Blackout {
            8_000
        } else {
            3_000
        }
    }
}

/// One of each, shuffled. Cuts are of either kind.
fn round(random: &mut StdRng, long: bool) -> Vec<Fault> {
    let cut = if random.random() {
        Fault::Hold
    } else {
        Fault::Refuse
    };
    let mut faults = vec![
        Fault::Kill,
        Fault::Pause,
        cut,
        Fault::Deafen,
        Fault::Delay,
        Fault::Stop,
        Fault::Lock,
        Fault::RestartFast,
        Fault::RestartImmediate,
        Fault::FailOver,
    ];
    let outages = [Fault::Outage, Fault::Freeze];
    if !long {
        faults.extend(outages);
        faults.shuffle(random);
        return faults;
    }
    faults.push(Fault::Blackout);
    faults.shuffle(random);
    let mut outage = || outages[usize::from(random.random::<bool>())];
    let faults = faults.into_iter();
    faults.flat_map(|fault| [fault, outage()]).collect()
}

/// What a fault takes, about, with the calm before it.
fn takes(fault: Fault) -> Duration {
    let itself = match fault {
        Fault::Kill => AWAY + Duration::from_secs(1),
        Fault::Stop => AWAY + Duration::from_secs(3),
        Fault::Pause => PAUSE,
        Fault::Hold | Fault::Refuse => CUT,
        Fault::Delay | Fault::Deafen => SLOW,
        Fault::Blackout => DARK + CALM + Duration::from_secs(3),
        Fault::Lock | Fault::RestartFast | Fault::RestartImmediate | Fault::FailOver => {
            Duration::from_secs(6)
        }
        Fault::Outage | Fault::Freeze => Duration::from_millis(OUTAGE_MAX + 1_000),
    };
    CALM + itself
}

pub struct Faults<'a> {
    pub fleet: &'a mut Fleet,
    pub database: &'a mut Database,
    pub seed: u64,
    pub seconds: u64,
    /// When the last of them must be over, in milliseconds.
    pub until: i64,
}

impl Faults<'_> {
    /// Round after round, as long as there is time.
    pub fn strike_all(mut self) -> Vec<Strike> {
        let mut random = StdRng::seed_from_u64(self.seed);
        let mut strikes = Vec::new();
        loop {
            for fault in round(&mut random, self.seconds >= LONG_FROM) {
                let node = random.random_range(0..NODES);
                let span = Duration::from_millis(random.random_range(OUTAGE_MIN..=OUTAGE_MAX));
                if now() + takes(fault).as_millis() as i64 > self.until {
                    return strikes;
                }
                pause(CALM);
                let strike = self.strike(fault, node, span);
                eprintln!(
                    "{fault}{}: {:.1} s",
                    strike
                        .node
                        .map_or(String::new(), |node| format!(" of {node}")),
                    (strike.ended - strike.begun) as f64 / 1_000.0
                );
                strikes.push(strike);
                if fault == Fault::Blackout {
                    // What was not fired for so long takes a while.
                    pause(CALM);
                }
                let fallen = self.fleet.fallen();
                assert!(fallen.is_empty(), "{fallen:?} fell by themselves");
            }
        }
    }

    /// `span` is for outages.
    fn strike(&mut self, fault: Fault, node: usize, span: Duration) -> Strike {
        if fault == Fault::FailOver {
            // A copy takes a while, and the machine with it: that is no part of the fault.
            self.database.follow();
        }
        let begun = now();
        let struck = match fault {
            Fault::Lock
            | Fault::RestartFast
            | Fault::RestartImmediate
            | Fault::FailOver
            | Fault::Outage
            | Fault::Freeze => {
                self.strike_database(fault, TABLES[node % TABLES.len()], span);
                None
            }
            Fault::Blackout => {
                (0..NODES).for_each(|node| self.fleet.kill(node));
                pause(DARK);
                (0..NODES).for_each(|node| self.fleet.launch(node));
                None
            }
            Fault::Kill | Fault::Stop => {
                if fault == Fault::Kill {
                    self.fleet.kill(node)
                } else {
                    self.fleet.stop(node)
                }
                pause(AWAY);
                self.fleet.launch(node);
                Some(NAMES[node])
            }
            Fault::Pause => {
                self.fleet.signal(node, Signal::SIGSTOP);
                pause(PAUSE);
                self.fleet.signal(node, Signal::SIGCONT);
                Some(NAMES[node])
            }
            Fault::Hold | Fault::Refuse | Fault::Deafen | Fault::Delay => {
                harm(self.fleet.link(node), fault);
                Some(NAMES[node])
            }
        };
        Strike {
            fault,
            node: struck,
            begun,
            ended: now(),
        }
    }

    fn strike_database(&mut self, fault: Fault, table: &str, span: Duration) {
        match fault {
            Fault::Lock => self.database.lock(table, LOCKED),
            Fault::RestartFast => self.database.restart(Stop::Fast),
            Fault::RestartImmediate => self.database.restart(Stop::Immediate),
            Fault::Outage => self.database.fall(span),
            Fault::Freeze => self.database.freeze(span),
            Fault::FailOver => {
                self.database.fail_over();
                self.fleet.lead_to(self.database);
            }
            Fault::Kill
            | Fault::Pause
            | Fault::Hold
            | Fault::Refuse
            | Fault::Deafen
            | Fault::Delay
            | Fault::Stop
            | Fault::Blackout => {}
        }
    }
}

/// Does something to a link for a while.
fn harm(link: &Proxy, fault: Fault) {
    match fault {
        Fault::Hold => {
            link.hold();
            pause(CUT);
        }
        Fault::Refuse => {
            link.refuse();
            pause(CUT);
        }
        Fault::Deafen => {
            for _ in 0..DEAF_TIMES {
                link.deafen();
                pause(DEAF);
                link.refuse();
                link.open();
                pause(DEAF_GAP);
            }
        }
        Fault::Delay => {
            link.delay(DELAY);
            pause(SLOW);
            link.delay(Duration::ZERO);
        }
        Fault::Kill
        | Fault::Pause
        | Fault::Stop
        | Fault::Lock
        | Fault::RestartFast
        | Fault::RestartImmediate
        | Fault::FailOver
        | Fault::Outage
        | Fault::Freeze
        | Fault::Blackout => {}
    }
    link.open();
}
