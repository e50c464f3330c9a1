//! The secrets that a target's certificates are in, as they are stored.

use std::borrow::Cow;

use model::{SecretName, TlsSecrets};
use serde::{Deserialize, Serialize};

use super::DocError;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TlsDoc<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    ca: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    cert: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    key: Option<Cow<'a, str>>,
}

impl<'a> TlsDoc<'a> {
    pub(super) fn of(tls: &'a TlsSecrets) -> Self {
        let text = |name: &'a Option<SecretName>| Some(Cow::Borrowed(name.as_ref()?.as_str()));
        Self {
            ca: text(&tls.ca),
            cert: text(&tls.cert),
            key: text(&tls.key),
        }
    }

    pub(super) fn read(self) -> Result<TlsSecrets, DocError> {
        let name = |text: Option<Cow<'_, str>>| {
            let name = text.map(|text| SecretName::new(&text));
            name.transpose()
                .map_err(|error| DocError(error.to_string()))
        };
        Ok(TlsSecrets {
            ca: name(self.ca)?,
            cert: name(self.cert)?,
            key: name(self.key)?,
        })
    }
}
