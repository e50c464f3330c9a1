//! Secrets: an attempt gets those that its headers name, or is not sent.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use executor::{Executor, WorkOrder};
use model::job::Definition;
use model::signing::Place;
use model::target::HttpTarget;
use model::{
    AttemptNo, HostPattern, Job, JobId, Outcome, Report, RetryHint, Run, RunId, Schedule, Sealed,
    Secret, SecretName, Slot, Target, TenantId, Timestamp, TlsSecrets,
};
use store::SecretStore;
use store::mem::MemStore;

use crate::clock::{Measure, SystemClock};
use crate::vault::{Hidden, KeyRing, MasterKey, MasterKeys, Signing, Vault, Way};

/// Remembers what it would have sent, and answers with it.
#[derive(Default)]
struct Echo(Mutex<Vec<String>>);

#[async_trait]
impl Executor for Echo {
    async fn execute(&self, order: WorkOrder) -> Report {
        let headers = order.headers.unwrap_or_default();
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let sent: Vec<_> = headers
            .iter()
            .map(|(_, value)| text(value.as_bytes()))
            .collect();
        let mut sent = sent.join("; ");
        if let Some(identity) = &order.identity {
            let key = identity.cert.as_ref().map(|(_, key)| key.as_str());
            sent.push_str(&format!("; {:?} {key:?}", identity.ca));
        }
        self.0.lock().unwrap().push(sent.clone());
        let mut report = Report::failed(format!("got {sent}"));
        report.output = Bytes::from(sent);
        report
    }
}

struct Desk {
    store: MemStore,
    vault: Vault,
    echo: Arc<Echo>,
}

fn keys(byte: u8) -> Option<Arc<MasterKeys>> {
    Some(Arc::new(MasterKeys::new(MasterKey::new([byte; 32]))))
}

impl Desk {
    fn new(keys: Option<Arc<MasterKeys>>) -> Self {
        let store = MemStore::new(Arc::new(SystemClock));
        Self {
            vault: Vault::new(Arc::new(KeyRing::new(keys)), Arc::new(store.clone())),
            store,
            echo: Arc::default(),
        }
    }

    async fn set(&self, name: &str, value: &str, version: u32) {
        let before = (version > 1).then(|| version - 1);
        let mut secret = Secret {
            tenant: TenantId::DEFAULT,
            name: SecretName::new(name).unwrap(),
            version,
            hosts: vec![HostPattern::new("*.example.com").unwrap()],
            note: None,
            created_at: Timestamp::from_millis(0),
            updated_at: Timestamp::from_millis(0),
            sealed: Sealed {
                master_key: String::new(),
                wrapped: Vec::new(),
                value: Vec::new(),
            },
        };
        secret.sealed = self.vault.seal(&secret, value).unwrap();
        self.store.put_secret(&secret, before).await.unwrap();
    }

    async fn deliver(&self, url: &str, header: &str) -> Report {
        let target = HttpTarget::new(url, None).unwrap();
        let target = target.header("authorization", header).unwrap();
        self.deliver_to(target.header("x-plain", "plain").unwrap())
            .await
    }

    async fn deliver_to(&self, target: HttpTarget) -> Report {
        let target = Target::Http(target);
        let now = Timestamp::from_millis(0);
        let schedule = Schedule::from(Slot(now));
        let id = JobId::new(now, [7; 10]);
        let job = Job::new(
            id,
            TenantId::DEFAULT,
            None,
            Definition::new(schedule, target),
            now,
        );
        let order = WorkOrder {
            run: RunId::from_bytes([1; 16]),
            attempt: AttemptNo(1),
            slot: None,
            job: Arc::new(job),
            payload: None,
            headers: None,
            env: None,
            trace: None,
            sent_at: now,
            signer: None,
            path: None,
            identity: None,
            proxy: None,
            callback: None,
            node: Arc::from("n"),
            progress: executor::Progress::new(Arc::new(Measure(Arc::new(SystemClock)))),
        };
        let run = Run::of_slot(&order.job, Slot(now));
        let hidden = Hidden::default();
        let echo = Arc::clone(&self.echo) as _;
        let report = self.vault.deliver(echo, order, &run, &hidden).await;
        hidden.take_out(report)
    }

    fn sent(&self) -> Vec<String> {
        std::mem::take(&mut *self.echo.0.lock().unwrap())
    }
}

/// A signing secret of the default tenant, written as the server does.
async fn sign_by(desk: &Desk, place: Place, text: &str, at: i64) {
    put(desk, SecretName::of_place(place), text, at).await;
}

async fn put(desk: &Desk, name: SecretName, text: &str, at: i64) {
    let mut secret = Secret {
        tenant: TenantId::DEFAULT,
        name,
        version: 1,
        hosts: Vec::new(),
        note: None,
        created_at: Timestamp::from_millis(at),
        updated_at: Timestamp::from_millis(at),
        sealed: Sealed {
            master_key: String::new(),
            wrapped: Vec::new(),
            value: Vec::new(),
        },
    };
    let sealing = Vault::new(
        Arc::new(KeyRing::new(keys(1))),
        Arc::new(desk.store.clone()),
    );
    secret.sealed = sealing.seal(&secret, text).unwrap();
    desk.store.put_secret(&secret, None).await.unwrap();
}

fn signing_known(desk: &Desk) -> Option<Signing> {
    let known = desk.vault.sending_known(TenantId::DEFAULT);
    known.map(|sending| sending.signing)
}

const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

#[tokio::test]
async fn what_signs_is_read_once_and_again_when_a_secret_has_changed() {
    let desk = Desk::new(keys(1));
    let (tenant, now) = (TenantId::DEFAULT, Timestamp::from_millis(0));
    assert!(matches!(
        desk.vault.sending(tenant).await.signing,
        Signing::Unsigned
    ));
    assert!(matches!(signing_known(&desk), Some(Signing::Unsigned)));
    let new = executor::sign::secret_of(&[7; 32]);
    sign_by(&desk, Place::Second, OLD, 1).await;
    sign_by(&desk, Place::First, &new, 2).await;
    assert!(
        matches!(signing_known(&desk), Some(Signing::Unsigned)),
        "not looked yet"
    );
    desk.vault.follow().await.unwrap();
    assert!(desk.vault.sending_known(tenant).is_none());
    let Signing::By(signer) = desk.vault.sending(tenant).await.signing else {
        panic!("it is not signed");
    };
    // The older one first, whatever its place.
    let both = executor::Signer::new([OLD, &new]).unwrap();
    assert_eq!(signer.sign("a", now, b"b"), both.sign("a", now, b"b"));
    let second = SecretName::of_place(Place::Second);
    let dropped = desk.store.drop_secret(tenant, &second);
    assert!(dropped.await.unwrap());
    desk.vault.follow().await.unwrap();
    let Signing::By(signer) = desk.vault.sending(tenant).await.signing else {
        panic!("it is not signed");
    };
    let alone = executor::Signer::new([new.as_str()]).unwrap();
    assert_eq!(signer.sign("a", now, b"b"), alone.sign("a", now, b"b"));
    let other = TenantId(uuid::Uuid::from_u128(7));
    assert!(matches!(
        desk.vault.sending(other).await.signing,
        Signing::Unsigned
    ));
}

#[tokio::test]
async fn a_node_that_cannot_open_what_signs_says_so_and_reads_it_once() {
    for (keys, why) in [
        (
            None,
            "the tenant has signing secrets, and this node has no master key",
        ),
        (keys(2), "which this node does not have"),
    ] {
        let desk = Desk::new(keys);
        sign_by(&desk, Place::First, OLD, 1).await;
        let Signing::Closed(said) = desk.vault.sending(TenantId::DEFAULT).await.signing else {
            panic!("it is open");
        };
        assert!(said.contains(why), "{said}");
        let known = signing_known(&desk);
        assert!(matches!(known, Some(Signing::Closed(_))));
    }
}

#[tokio::test]
async fn the_way_out_is_read_once_and_again_when_a_secret_has_changed() {
    let desk = Desk::new(keys(1));
    let tenant = TenantId::DEFAULT;
    let known = || desk.vault.sending_known(tenant).map(|sending| sending.way);
    let read = async || desk.vault.sending(tenant).await.way;
    assert!(matches!(read().await, Way::Direct));
    let name = SecretName::of_proxy();
    put(&desk, name.clone(), "http://ann:s3cret@proxy:3128", 1).await;
    assert!(matches!(known(), Some(Way::Direct)), "not read yet");
    desk.vault.follow().await.unwrap();
    assert!(known().is_none());
    let Way::Through(proxy) = read().await else {
        panic!("it goes past the proxy");
    };
    assert_eq!(proxy.credentials().as_deref(), Some("ann:s3cret"));
    assert!(matches!(known(), Some(Way::Through(_))));
    let other = TenantId(uuid::Uuid::from_u128(7));
    assert!(matches!(desk.vault.sending(other).await.way, Way::Direct));
    assert!(desk.store.drop_secret(tenant, &name).await.unwrap());
    desk.vault.follow().await.unwrap();
    assert!(matches!(read().await, Way::Direct));
}

#[tokio::test]
async fn a_node_that_cannot_open_the_proxy_has_no_way_out() {
    for (keys, text, why) in [
        (None, "http://ann:s3cret@p:1", "this node has no master key"),
        (
            keys(2),
            "http://ann:s3cret@p:1",
            "which this node does not have",
        ),
        (keys(1), "s3cret", "it begins with http://"),
    ] {
        let desk = Desk::new(keys);
        put(&desk, SecretName::of_proxy(), text, 1).await;
        let sending = desk.vault.sending(TenantId::DEFAULT).await;
        let Way::Closed(said) = sending.way else {
            panic!("it is open");
        };
        assert!(said.contains(why) && !said.contains("s3cret"), "{said}");
    }
}

const URL: &str = "http://a.example.com/";

#[tokio::test]
async fn a_secret_is_sent_and_taken_out_of_what_is_kept() {
    let desk = Desk::new(keys(1));
    desk.set("a", "planted-value", 1).await;
    let report = desk.deliver(URL, "Bearer {{ secret('a') }}").await;
    assert_eq!(desk.sent(), ["Bearer planted-value; plain"]);
    assert_eq!(report.error.as_deref(), Some("got Bearer ***; plain"));
    assert_eq!(&report.output[..], b"Bearer ***; plain");
}

#[tokio::test]
async fn certificates_come_from_secrets_and_nothing_is_sent_without_them() {
    let desk = Desk::new(keys(1));
    let name = |name: &str| SecretName::new(name).ok();
    let target = |url: &str| HttpTarget {
        tls: Some(TlsSecrets {
            ca: name("ca"),
            cert: name("cert"),
            key: name("key"),
        }),
        ..HttpTarget::new(url, None).unwrap()
    };
    desk.set("ca", "an-authority", 1).await;
    desk.set("cert", "a-certificate", 1).await;
    let report = desk.deliver_to(target(URL)).await;
    let error = report.error.unwrap();
    assert!(
        error.starts_with("not sent, tls.key: there is no secret key"),
        "{error}"
    );
    desk.set("key", "planted-key", 1).await;
    let report = desk.deliver_to(target(URL)).await;
    assert_eq!(
        desk.sent(),
        ["; Some(\"an-authority\") Some(\"planted-key\")"]
    );
    assert!(
        !report.error.unwrap().contains("planted"),
        "it is taken out"
    );
    let report = desk.deliver_to(target("http://elsewhere.org/")).await;
    assert_eq!(report.retry, RetryHint::Never);
    assert!(desk.sent().is_empty(), "nor to another host");
}

#[tokio::test]
async fn nothing_is_sent_without_every_secret() {
    let desk = Desk::new(keys(1));
    desk.set("a", "planted-value", 1).await;
    let check = async |url: &str, header: &str, part: &str, retry: RetryHint| {
        let report = desk.deliver(url, header).await;
        let error = report.error.unwrap();
        assert!(error.contains(part), "{error}");
        assert!(error.contains("authorization"), "{error}");
        assert!(!error.contains("planted"), "{error}");
        assert_eq!((report.outcome, report.retry), (Outcome::Failed, retry));
    };
    let (usual, never) = (RetryHint::Usual, RetryHint::Never);
    check(
        URL,
        "{{ secret('a') }}{{ secret('b') }}",
        "no secret b",
        usual,
    )
    .await;
    check(
        "http://a.evil.org/",
        "{{ secret('a') }}",
        "may not be sent to a.evil.org",
        never,
    )
    .await;
    check(URL, "{{ secret('a') ", "cannot be read", never).await;
    desk.set("lines", "planted\nvalue", 1).await;
    check(URL, "{{ secret('lines') }}", "a line's end", never).await;
    assert!(desk.sent().is_empty());
}

#[tokio::test]
async fn a_node_without_the_key_sends_nothing_and_says_why() {
    let with = Desk::new(keys(1));
    with.set("a", "planted-value", 1).await;
    for (keys, part) in [(None, "no master key"), (keys(2), "does not have")] {
        let without = Desk {
            vault: Vault::new(Arc::new(KeyRing::new(keys)), Arc::new(with.store.clone())),
            store: with.store.clone(),
            echo: Arc::default(),
        };
        let report = without.deliver(URL, "{{ secret('a') }}").await;
        assert!(report.error.unwrap().contains(part));
        assert_eq!(report.retry, RetryHint::Usual, "another node may have it");
        assert!(without.sent().is_empty());
    }
}

#[tokio::test]
async fn a_changed_secret_is_sent_once_the_node_has_followed() {
    let desk = Desk::new(keys(1));
    desk.set("a", "first-value", 1).await;
    let header = "{{ secret('a') }}";
    desk.deliver(URL, header).await;
    desk.set("a", "second-value", 2).await;
    desk.vault.follow().await.unwrap();
    desk.deliver(URL, header).await;
    let name = SecretName::new("a").unwrap();
    desk.store
        .drop_secret(TenantId::DEFAULT, &name)
        .await
        .unwrap();
    desk.vault.follow().await.unwrap();
    let report = desk.deliver(URL, header).await;
    assert!(report.error.unwrap().contains("no secret a"));
    assert_eq!(desk.sent(), ["first-value; plain", "second-value; plain"]);
}
