//! Hints between nodes: `LISTEN` and `NOTIFY` on a connection of their own. What is to be sent is gathered, each hint
//! once, and sent as one text every few milliseconds at most; what is heard is gathered until someone reads it. Nobody
//! waits for any of it, and nothing fails because of it: while there is no connection there are no hints, and when it
//! is back those who listen learn that some were lost.

use std::future::poll_fn;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_postgres::{AsyncMessage, Client};

use super::dial::{Connected, Dialer, why};
use super::fault::Done;
use super::hints::Gathered;
use super::pool::settings;
use crate::{Hint, StoreError};

/// The shortest time between two texts.
const FLUSH_EVERY: Duration = Duration::from_millis(4);
/// What setting a new connection up may take.
const SET_UP_MAX: Duration = Duration::from_secs(5);
const PAUSE_FIRST: Duration = Duration::from_millis(20);
/// The longest pause between two tries to connect.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// What sends and hears hints. Its connection is made when it is first used.
pub(super) struct Listener {
    shared: Arc<Shared>,
    /// Where its task lives: callers may have a runtime of their own, which ends before we do.
    home: Handle,
    task: OnceLock<JoinHandle<()>>,
}

struct Shared {
    dialer: Arc<Dialer>,
    outgoing: Mutex<Gathered>,
    announced: Notify,
    to_hear: Mutex<Gathered>,
    heard: Notify,
}

impl Listener {
    /// To be called where its task may live.
    pub(super) fn new(dialer: &Arc<Dialer>) -> Self {
        let shared = Shared {
            dialer: Arc::clone(dialer),
            outgoing: Mutex::default(),
            announced: Notify::new(),
            to_hear: Mutex::default(),
            heard: Notify::new(),
        };
        Self {
            shared: Arc::new(shared),
            home: Handle::current(),
            task: OnceLock::new(),
        }
    }

    pub(super) fn announce(&self, hints: &[Hint]) {
        if hints.is_empty() {
            return;
        }
        self.start();
        let mut outgoing = lock(&self.shared.outgoing);
        hints.iter().for_each(|hint| outgoing.add(*hint));
        drop(outgoing);
        self.shared.announced.notify_one();
    }

    /// Waits until there is something to hear.
    pub(super) async fn hear(&self) -> Vec<Hint> {
        self.start();
        loop {
            let hints = lock(&self.shared.to_hear).drain();
            if !hints.is_empty() {
                return hints;
            }
            self.shared.heard.notified().await;
        }
    }

    fn start(&self) {
        self.task.get_or_init(|| {
            let shared = Arc::clone(&self.shared);
            self.home.spawn(async move { shared.keep_up().await })
        });
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }
}

fn lock(gathered: &Mutex<Gathered>) -> MutexGuard<'_, Gathered> {
    gathered.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Connects, again and again, with a pause that grows while it fails.
    #[expect(clippy::disallowed_methods, reason = "nothing is decided by this wait")]
    async fn keep_up(&self) {
        let (mut failures, mut lost) = (0_u32, false);
        loop {
            // It counts as one until it succeeds.
            failures = failures.saturating_add(1);
            let error = self.converse(&mut failures, &mut lost).await;
            match failures {
                0 => tracing::debug!(error, "hints between nodes were cut off"),
                1 => tracing::warn!(error, "no hints between nodes: they poll less often"),
                _ => {}
            }
            lost = true;
            let pause = PAUSE_FIRST.saturating_mul(1 << failures.min(10));
            tokio::time::sleep(pause.min(PAUSE_MAX)).await;
        }
    }

    /// One connection, as long as it lasts.
    async fn converse(&self, failures: &mut u32, lost: &mut bool) -> String {
        let Connected {
            client,
            mut connection,
            ..
        } = match self.dialer.connect().await {
            Ok(connected) => connected,
            Err(error) => return why(&error),
        };
        let me = AtomicI32::new(0);
        let talk = async {
            let set_up = tokio::time::timeout(SET_UP_MAX, self.set_up(&client, &me));
            set_up.await.map_err(StoreError::unavailable)??;
            *failures = 0;
            if std::mem::take(lost) {
                self.heard([Hint::Lost]);
            }
            self.keep_announcing(&client).await
        };
        tokio::pin!(talk);
        loop {
            let message = poll_fn(|context| connection.poll_message(context));
            tokio::select! {
                biased;
                message = message => match message {
                    Some(Ok(AsyncMessage::Notification(said))) => {
                        if said.process_id() != me.load(Ordering::Relaxed) {
                            self.heard_text(said.payload());
                        }
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return why(&StoreError::unavailable(error)),
                    None => return "the connection was closed".to_owned(),
                },
                Err(fault) = &mut talk => return why(&fault.into()),
            }
        }
    }

    async fn set_up(&self, client: &Client, me: &AtomicI32) -> Done<()> {
        let schema = self.dialer.schema();
        client.batch_execute(&settings(schema)).await?;
        let pid = client.query_one(include_str!("sql/listen_as.sql"), &[]);
        me.store(pid.await?.try_get(0)?, Ordering::Relaxed);
        let listen = include_str!("sql/listen.sql").replace("{schema}", schema);
        Ok(client.batch_execute(&listen).await?)
    }

    /// Sends the hints that are gathered; ends with the connection.
    #[expect(clippy::disallowed_methods, reason = "nothing is decided by this wait")]
    async fn keep_announcing(&self, client: &Client) -> Done<()> {
        let notify = client.prepare(include_str!("sql/hint.sql")).await?;
        let channel = self.dialer.schema();
        loop {
            let text = lock(&self.outgoing).write();
            if text.is_empty() {
                self.announced.notified().await;
                continue;
            }
            if let Err(error) = client.execute(&notify, &[&channel, &text]).await {
                // Sent again when there is a connection.
                lock(&self.outgoing).read(&text);
                return Err(error.into());
            }
            tokio::time::sleep(FLUSH_EVERY).await;
        }
    }

    fn heard_text(&self, text: &str) {
        let mut to_hear = lock(&self.to_hear);
        to_hear.read(text);
        let any = !to_hear.is_empty();
        drop(to_hear);
        if any {
            self.heard.notify_one();
        }
    }

    fn heard(&self, hints: impl IntoIterator<Item = Hint>) {
        let mut to_hear = lock(&self.to_hear);
        hints.into_iter().for_each(|hint| to_hear.add(hint));
        drop(to_hear);
        self.heard.notify_one();
    }
}
