//! Whatever is wrong with a key, the same work is done before the answer.

use std::sync::Arc;
use std::time::Duration;

use engine::{Clock, SystemClock};
use model::{Role, TenantId};
use store::AccessStore;
use store::mem::MemStore;

use super::{Access, Minted};

/// Calls that are timed as one.
const CALLS: u32 = 50;
/// How often each is timed. Of all the times the least counts: whatever else the machine does only adds to them.
const ROUNDS: usize = 60;

fn timed(access: &Access, text: Option<&str>) -> Duration {
    let now = Clock::now(&SystemClock);
    let begun = SystemClock.uptime();
    for _ in 0..CALLS {
        assert_eq!(access.caller(std::hint::black_box(text), now), None);
    }
    SystemClock.uptime().saturating_sub(begun)
}

#[tokio::test]
async fn how_long_a_refusal_takes_does_not_say_what_is_wrong() {
    let now = Clock::now(&SystemClock);
    let store = MemStore::new(Arc::new(SystemClock));
    let mut keys = [(); 3].map(|()| Minted::new(TenantId::DEFAULT, Role::Root, now));
    keys[1].key.expires_at = Some(now);
    keys[2].key.revoked_at = Some(now);
    for minted in &keys {
        store.create_key(&minted.key).await.unwrap();
    }
    let [good, expired, revoked] = keys.map(|minted| minted.text);
    let access = Access::by_keys(Arc::new(store)).await.unwrap();
    assert!(access.caller(Some(&good), now).is_some());
    let unknown = Minted::new(TenantId::DEFAULT, Role::Root, now).text;
    let turned = |text: &str, at: usize| {
        let mut bytes = text.as_bytes().to_vec();
        bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
        String::from_utf8(bytes).unwrap()
    };
    let secret_at = good.rfind('_').unwrap() + 1;
    let wrong = [
        ("its first digit", turned(&good, secret_at)),
        ("its last digit", turned(&good, good.len() - 1)),
        ("its end", good[..good.len() - 1].to_owned()),
        ("too long", format!("{good}0")),
        ("unknown", unknown),
        ("expired", expired),
        ("revoked", revoked),
        ("no key", "hello".to_owned()),
    ];
    let mut least = [Duration::MAX; 8];
    for _ in 0..ROUNDS {
        for ((_, text), least) in wrong.iter().zip(&mut least) {
            *least = (*least).min(timed(&access, Some(text)));
        }
    }
    let (quick, slow) = (least.iter().min().unwrap(), least.iter().max().unwrap());
    // An answer without the digest takes a tenth of the time.
    let names: Vec<_> = wrong.iter().map(|(name, _)| *name).zip(least).collect();
    assert!(*slow < *quick * 4, "{names:?}");
}
