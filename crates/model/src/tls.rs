//! Whom an https target must be, and who we are to it, where a job says so: names of secrets that hold PEM.

use crate::secret::SecretName;
use crate::target::TargetError;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsSecrets {
    /// Certificates of authorities that are trusted beside the public ones.
    pub ca: Option<SecretName>,
    /// A certificate that says who we are, with those that it rests on.
    pub cert: Option<SecretName>,
    /// The private key of that certificate.
    pub key: Option<SecretName>,
}

impl TlsSecrets {
    /// Each that is named, with its field.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &SecretName)> {
        let all = [("ca", &self.ca), ("cert", &self.cert), ("key", &self.key)];
        all.into_iter()
            .filter_map(|(field, name)| Some((field, name.as_ref()?)))
    }

    pub(crate) fn check(&self, is_https: bool) -> Result<(), TargetError> {
        let refused = |field: &str, detail: &str| {
            Err(TargetError {
                field: format!("http.tls{field}"),
                detail: detail.to_owned(),
            })
        };
        match (&self.cert, &self.key) {
            (Some(_), None) => refused(".key", "a certificate needs its private key: name both"),
            (None, Some(_)) => refused(".cert", "a private key needs its certificate: name both"),
            (Some(_), Some(_)) | (None, None) if !is_https => {
                refused("", "TLS is for https: change the URL, or leave tls out")
            }
            (Some(_), Some(_)) | (None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_comes_with_its_key_and_over_https() {
        let name = || Some(SecretName::new("a").unwrap());
        let tls = |ca, cert, key| TlsSecrets { ca, cert, key };
        assert!(tls(name(), None, None).check(true).is_ok());
        assert!(tls(None, name(), name()).check(true).is_ok());
        let field = |tls: TlsSecrets, is_https| tls.check(is_https).unwrap_err().field;
        assert_eq!(field(tls(None, name(), None), true), "http.tls.key");
        assert_eq!(field(tls(None, None, name()), true), "http.tls.cert");
        assert_eq!(field(tls(name(), None, None), false), "http.tls");
        let names: Vec<_> = tls(name(), None, name()).named().map(|it| it.0).collect();
        assert_eq!(names, ["ca", "key"]);
    }
}
