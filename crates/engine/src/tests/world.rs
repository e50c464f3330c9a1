//! What is around a node on the bench: a clock that stands still until it is moved, a way to the store that fails when it
//! is to, and a target whose answers are scripted.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use executor::{Executor, WorkOrder};
use model::schedule::{Every, Period, Zone};
use model::{Definition, Job, JobId, Report, RunId, Schedule, Slot, Target, TenantId, Timestamp};
use store::{BadRow, StoreClock, StoreError};
use tokio::sync::watch;

use crate::clock::{Alarm, Clock};
use crate::lock;
use crate::timed::Around;

/// 2023-11-14T22:13:20Z: no round number, so that nothing is right by chance.
const BASE: i64 = 1_700_000_000_000;

/// So many milliseconds after the tests' beginning of time.
pub(super) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(BASE + millis)
}

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A job whose schedule and definition are as said.
pub(super) fn job_with(
    number: u8,
    schedule: Schedule,
    change: impl FnOnce(&mut Definition),
) -> Job {
    let mut def = Definition::new(schedule, Target::http("http://localhost/").unwrap());
    change(&mut def);
    let id = JobId::new(at(0), [number; 10]);
    Job::new(id, TenantId::DEFAULT, None, def, at(0))
}

/// A job that is due once.
pub(super) fn once(number: u8, due: i64) -> Job {
    job_with(number, Schedule::from(Slot(at(due))), |_| {})
}

/// Every so many seconds from the beginning of time.
pub(super) fn seconds(secs: u64) -> Every {
    let period = Period::Elapsed(Duration::from_secs(secs));
    Every::new(period, at(0), Zone::utc()).unwrap()
}

/// A job that is due every so many seconds, and skips slots that overlap.
pub(super) fn every(number: u8, secs: u64) -> Job {
    job_with(number, Schedule::from(seconds(secs)), |_| {})
}

#[derive(Clone, Copy)]
struct Reading {
    wall: i64,
    uptime: Duration,
}

/// A clock that stands still until it is moved.
#[derive(Clone)]
pub(super) struct HandClock(Arc<watch::Sender<Reading>>);

impl Default for HandClock {
    fn default() -> Self {
        let first = Reading {
            wall: BASE,
            uptime: Duration::from_secs(1_000),
        };
        Self(Arc::new(watch::Sender::new(first)))
    }
}

impl HandClock {
    /// Lets time pass.
    pub(super) fn advance(&self, span: Duration) {
        self.0.send_modify(|reading| {
            reading.wall += model::time::millis(span);
            reading.uptime += span;
        });
    }

    /// Sets the clock on the wall forward or back; no time passes.
    pub(super) fn step_wall(&self, millis: i64) {
        self.0.send_modify(|reading| reading.wall += millis);
    }
}

#[async_trait]
impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.borrow().wall)
    }

    fn uptime(&self) -> Duration {
        self.0.borrow().uptime
    }

    async fn sleep(&self, span: Duration) {
        let until = Clock::uptime(self) + span;
        let mut readings = self.0.subscribe();
        let woken = readings.wait_for(|reading| reading.uptime >= until);
        assert!(woken.await.is_ok(), "the clock is there");
    }

    fn alarm(&self) -> io::Result<Box<dyn Alarm>> {
        Ok(Box::new(HandAlarm(self.clone())))
    }
}

impl StoreClock for HandClock {
    fn now(&self) -> Timestamp {
        Clock::now(self)
    }

    fn uptime(&self) -> Duration {
        Clock::uptime(self)
    }
}

/// The same where the wall clock is wrong by so many milliseconds.
pub(super) struct WrongClock(pub(super) HandClock, pub(super) i64);

#[async_trait]
impl Clock for WrongClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(Clock::now(&self.0).as_millis() + self.1)
    }

    fn uptime(&self) -> Duration {
        Clock::uptime(&self.0)
    }

    async fn sleep(&self, span: Duration) {
        self.0.sleep(span).await;
    }

    fn alarm(&self) -> io::Result<Box<dyn Alarm>> {
        self.0.alarm()
    }
}

struct HandAlarm(HandClock);

#[async_trait]
impl Alarm for HandAlarm {
    async fn wait_micros(&mut self, moment: i64) {
        let HandAlarm(HandClock(readings)) = self;
        let mut readings = readings.subscribe();
        let rung = readings.wait_for(|reading| reading.wall * 1_000 >= moment);
        assert!(rung.await.is_ok(), "the clock is there");
    }
}

/// What becomes of one call to the store.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    /// It fails, and nothing was written.
    Before,
    /// It was written, and its answer is lost.
    After,
    /// It fails for its data.
    Data,
    /// The store panics.
    Panic,
    /// Nothing is ever heard of it.
    Silence,
    /// Its answer is there, and is read only after so long: whoever waits for it stood still.
    Late(Duration),
}

/// Counts the calls, and spoils those that are named.
#[derive(Clone)]
pub(super) struct Calls {
    book: Arc<Mutex<Book>>,
    clock: HandClock,
}

#[derive(Default)]
struct Book {
    counts: BTreeMap<&'static str, usize>,
    faults: BTreeMap<&'static str, VecDeque<Fault>>,
}

impl Calls {
    pub(super) fn new(clock: HandClock) -> Self {
        let book = Arc::default();
        Self { book, clock }
    }

    /// How often the method was called.
    pub(super) fn count(&self, operation: &str) -> usize {
        lock(&self.book).counts.get(operation).copied().unwrap_or(0)
    }

    /// What becomes of the next calls of a method, in this order.
    pub(super) fn spoil(&self, operation: &'static str, faults: impl IntoIterator<Item = Fault>) {
        let mut book = lock(&self.book);
        book.faults.entry(operation).or_default().extend(faults);
    }
}

impl Around for Calls {
    async fn around<T: Send>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let fault = {
            let mut book = lock(&self.book);
            *book.counts.entry(operation).or_default() += 1;
            let faults = book.faults.get_mut(operation);
            faults.and_then(VecDeque::pop_front)
        };
        match fault {
            None => call.await,
            Some(Fault::Before) => Err(StoreError::unavailable("the way there is cut")),
            Some(Fault::After) => {
                call.await?;
                Err(StoreError::unavailable("the way back is cut"))
            }
            Some(Fault::Data) => Err(StoreError::from(BadRow {
                what: operation.to_owned(),
                detail: "it says what cannot be kept".to_owned(),
            })),
            // Without a line on the screen.
            Some(Fault::Panic) => std::panic::resume_unwind(Box::new("the store has a bug")),
            Some(Fault::Silence) => std::future::pending().await,
            Some(Fault::Late(span)) => {
                let answer = call.await;
                self.clock.advance(span);
                answer
            }
        }
    }
}

/// A target that answers every attempt alike, or none until it is released.
#[derive(Clone)]
pub(super) struct Answering {
    orders: Arc<Mutex<Vec<WorkOrder>>>,
    answer: Arc<watch::Sender<Option<Report>>>,
}

impl Default for Answering {
    fn default() -> Self {
        Self {
            orders: Arc::default(),
            answer: Arc::new(watch::Sender::new(Some(Report::succeeded()))),
        }
    }
}

impl Answering {
    /// Also to those that wait.
    pub(super) fn answers(&self, report: Report) {
        self.answer.send_replace(Some(report));
    }

    pub(super) fn is_silent(&self) {
        self.answer.send_replace(None);
    }

    /// The runs that were delivered, in the order of their arrival.
    pub(super) fn runs(&self) -> Vec<RunId> {
        lock(&self.orders).iter().map(|order| order.run).collect()
    }

    pub(super) fn orders(&self) -> Vec<WorkOrder> {
        lock(&self.orders).clone()
    }

    /// What was sent with the last of them.
    pub(super) fn payload(&self) -> Option<bytes::Bytes> {
        let orders = lock(&self.orders);
        orders.last().and_then(|order| order.payload().cloned())
    }
}

#[async_trait]
impl Executor for Answering {
    async fn execute(&self, order: WorkOrder) -> Report {
        lock(&self.orders).push(order);
        let mut answers = self.answer.subscribe();
        let answer = answers.wait_for(Option::is_some).await.unwrap().clone();
        answer.unwrap()
    }
}
