//! What keys, the audit log and signatures cost those who do not need them.

use std::sync::Arc;

use executor::{Signer, sign};

use super::figures::Figures;
use super::http::{self, Audit, Credentials, Receiver};
use super::pairs::Pairs;
use super::rig::{self, Base};
use crate::failure::Failure;

/// Creates, and callbacks beside clients that read, of a server that wants a key and of one that does not.
pub(super) async fn keys(base: &Base) -> Result<Vec<Figures>, Failure> {
    let credentials = |key| {
        if key {
            Credentials::Key
        } else {
            Credentials::Nothing
        }
    };
    let pairs = |workload, unit| Pairs {
        workload,
        unit,
        with: "with a key",
        without: "without",
        least: 0.95,
    };
    let created = pairs("create with keys", "jobs")
        .measure(async |key| {
            http::created(base, credentials(key), Audit::Kept, http::CREATED).await
        })
        .await?;
    let receiver = Receiver::start()?;
    let called = pairs("http with keys", "callbacks")
        .measure(async |key| http::called(base, &receiver, None, Some(credentials(key))).await)
        .await?;
    Ok(vec![created, called])
}

/// Creates that are entered in the audit log, which is sealed meanwhile, and creates that are not.
pub(super) async fn audit(base: &Base) -> Result<Figures, Failure> {
    let audit = |kept| if kept { Audit::Kept } else { Audit::Left };
    Pairs {
        workload: "audit",
        unit: "jobs",
        with: "audited",
        without: "unaudited",
        least: 0.90,
    }
    .measure(async |kept| {
        http::created(base, Credentials::Nothing, audit(kept), http::AUDITED).await
    })
    .await
}

/// Callbacks that are signed, and callbacks that are not.
pub(super) async fn signing(base: &Base) -> Result<Figures, Failure> {
    let receiver = Receiver::start()?;
    let secret = sign::secret_of(&rand::random());
    let signer = Arc::new(Signer::new([secret.as_str()]).map_err(rig::failed)?);
    Pairs {
        workload: "signing",
        unit: "callbacks",
        with: "signed",
        without: "unsigned",
        least: 0.95,
    }
    .measure(async |signed| {
        let signer = signed.then(|| Arc::clone(&signer));
        http::called(base, &receiver, signer, None).await
    })
    .await
}
