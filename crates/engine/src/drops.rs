//! Segments of the audit log that were dropped: what vouches for them, and how it is found.

use hmac::Mac;
use model::hex::to_hex;
use store::{Action, AuditEntry, AuditRange, AuditStore, DroppedSeals, Seal, StoreError};

use crate::chain::{Code, keyed};
use crate::vault::{MasterKey, MasterKeys};

const LABEL: &str = "audit drop v1";
/// Entries read at once.
const READ_MAX: usize = 1_000;

/// What an entry says of segments that are dropped, with its code. None if there are none.
pub(crate) fn sign(key: &MasterKey, seals: &[Seal]) -> Option<DroppedSeals> {
    let said = DroppedSeals::of(seals, key.id())?;
    let code = to_hex(&code(key, &said));
    Some(DroppedSeals { code, ..said })
}

fn code(key: &MasterKey, said: &DroppedSeals) -> Code {
    let mut mac = keyed(key, LABEL);
    mac.update(&said.header());
    mac.finalize().into_bytes().into()
}

/// What was found, and whether its code could be checked: its key may not be given.
pub(crate) struct Found {
    pub said: DroppedSeals,
    pub is_checked: bool,
}

/// The newest that is wanted and whose code is not wrong. One that can be checked comes before one that cannot.
pub(crate) async fn find(
    store: &dyn AuditStore,
    keys: &MasterKeys,
    wanted: impl Fn(&DroppedSeals) -> bool,
) -> Result<Option<Found>, StoreError> {
    let mut unchecked = None;
    let mut range = AuditRange {
        newest_first: true,
        limit: READ_MAX,
        ..AuditRange::ALL
    };
    loop {
        let read = store.list_audit(&range).await?;
        for said in read.iter().filter_map(parse).filter(&wanted) {
            match keys.get(&said.key) {
                Some(key) if to_hex(&code(key, &said)) == said.code => {
                    let is_checked = true;
                    return Ok(Some(Found { said, is_checked }));
                }
                Some(_) => {}
                None => unchecked = unchecked.or(Some(said)),
            }
        }
        match read.last() {
            Some(entry) => range.before = entry.seq,
            None => break,
        }
    }
    let is_checked = false;
    Ok(unchecked.map(|said| Found { said, is_checked }))
}

fn parse(entry: &AuditEntry) -> Option<DroppedSeals> {
    let is_drop = entry.action == Action::AuditDrop.as_str();
    DroppedSeals::parse(entry.before.as_deref().filter(|_| is_drop)?)
}
