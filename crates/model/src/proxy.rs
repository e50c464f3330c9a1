//! The proxy of a tenant: what its callbacks go through. It is kept as a secret is, under a name that nobody can write, because
//! its URL may hold a password.

use std::fmt;

use http::Uri;

use crate::host;
use crate::limits;
use crate::mask::MASK;

const SCHEME: &str = "http://";
/// What an error shows of how one is written.
const EXAMPLE: &str = "http://user:password@proxy.example:3128";

/// A proxy that is called by `CONNECT`. Neither its `Debug` nor its `Display` shows the password.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Proxy {
    /// As it is resolved: a name or an address, IPv6 without its brackets.
    host: String,
    port: u16,
    user: Option<User>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct User {
    name: String,
    password: Option<String>,
}

/// A text that is no proxy. It never repeats the text, which may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    #[error("a proxy is written as {EXAMPLE}: {0}")]
    Unreadable(&'static str),
    #[error("the host of the proxy cannot be called: {0}")]
    Host(String),
    #[error(
        "{MASK} stands for a password that is not shown, and there is none to keep: write the password"
    )]
    Masked,
}

impl Proxy {
    pub fn parse(text: &str) -> Result<Self, ProxyError> {
        use ProxyError::Unreadable;
        if text.len() > limits::PROXY_MAX {
            return Err(Unreadable("this is too long"));
        }
        let rest = text.strip_prefix(SCHEME);
        let rest = rest.ok_or(Unreadable("it begins with http://, also for https targets"))?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '?', '#']) {
            return Err(Unreadable(
                "nothing follows its port, and other characters of a password are percent-encoded",
            ));
        }
        let (user, at) = match rest.rsplit_once('@') {
            Some((user, at)) => (Some(User::parse(user)?), at),
            None => (None, rest),
        };
        let uri: Uri = format!("{SCHEME}{at}/")
            .parse()
            .map_err(|_| Unreadable("its host cannot be read"))?;
        let named = uri.host().unwrap_or_default();
        host::check(named).map_err(ProxyError::Host)?;
        if named.len() > limits::HOST_MAX {
            return Err(Unreadable("its host is too long"));
        }
        let port = uri.port_u16().filter(|port| *port > 0);
        let port = port.ok_or(Unreadable("its port is missing"))?;
        let inner = named.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        Ok(Self {
            host: inner.unwrap_or(named).to_ascii_lowercase(),
            port,
            user,
        })
    }

    /// The same with the password of the one that stands, if [`MASK`] is written in its place and all else is the same.
    pub fn unmasked(self, stands: Option<&Self>) -> Result<Self, ProxyError> {
        if !self.is_masked() {
            return Ok(self);
        }
        let kept = stands.filter(|stands| stands.to_string() == self.to_string());
        kept.cloned().ok_or(ProxyError::Masked)
    }

    /// Whether [`MASK`] is written in place of its password.
    pub fn is_masked(&self) -> bool {
        let user = self.user.as_ref();
        user.is_some_and(|user| user.password.as_deref() == Some(MASK))
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Name and password, as `Basic` has them; none where it wants neither.
    pub fn credentials(&self) -> Option<String> {
        let user = self.user.as_ref()?;
        let password = user.password.as_deref().unwrap_or_default();
        Some(format!("{}:{password}", user.name))
    }

    /// What an error calls it: host and port.
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// The whole of it. It is for the vault, and for nobody to see.
    pub fn reveal(&self) -> String {
        self.written(encode)
    }

    fn written(&self, password: impl Fn(&str) -> String) -> String {
        let user = self.user.as_ref().map_or_else(String::new, |user| {
            let name = encode(&user.name);
            match &user.password {
                Some(given) => format!("{name}:{}@", password(given)),
                None => format!("{name}@"),
            }
        });
        format!("{SCHEME}{user}{}", self.address())
    }
}

/// Without the password.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written(|_| MASK.to_owned()))
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

impl User {
    fn parse(text: &str) -> Result<Self, ProxyError> {
        let (name, password) = match text.split_once(':') {
            Some((name, password)) => (name, Some(password)),
            None => (text, None),
        };
        let name = decode(name)?;
        // `Basic` has a colon after the name.
        if name.is_empty() || name.contains(':') {
            return Err(ProxyError::Unreadable(
                "a user has a name, and no colon in it",
            ));
        }
        let password = password.map(decode).transpose()?;
        Ok(Self { name, password })
    }
}

/// Characters that need no percent sign.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~*!".contains(&byte)
}

fn encode(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_plain(byte) {
            written.push(char::from(byte));
        } else {
            written.push_str(&format!("%{byte:02X}"));
        }
    }
    written
}

fn decode(text: &str) -> Result<String, ProxyError> {
    const WRONG: ProxyError = ProxyError::Unreadable(
        "its user and password are plain text, with other characters percent-encoded",
    );
    let mut bytes = text.bytes();
    let mut read = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            read.push(byte);
            continue;
        }
        let mut digit = || {
            let digit = bytes.next().and_then(|byte| char::from(byte).to_digit(16));
            digit.ok_or(WRONG)
        };
        let value = digit()? * 16 + digit()?;
        read.push(u8::try_from(value).map_err(|_| WRONG)?);
    }
    let read = String::from_utf8(read).map_err(|_| WRONG)?;
    if read.chars().any(char::is_control) {
        return Err(WRONG);
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_shown_without_its_password_and_kept_with_it() {
        for (text, shown, credentials) in [
            ("http://proxy:3128", "http://proxy:3128", None),
            (
                "http://Proxy.Example:3128/",
                "http://proxy.example:3128",
                None,
            ),
            ("http://[fd12::1]:80", "http://[fd12::1]:80", None),
            ("http://ann@p:1", "http://ann@p:1", Some("ann:")),
            ("http://ann:@p:1", "http://ann:***@p:1", Some("ann:")),
            (
                "http://ann:s3cret@p:1",
                "http://ann:***@p:1",
                Some("ann:s3cret"),
            ),
            (
                "http://a%40b:p%3A%2F%25%C3%A9:x@p:1",
                "http://a%40b:***@p:1",
                Some("a@b:p:/%é:x"),
            ),
            ("http://a:b@c@p:1", "http://a:***@p:1", Some("a:b@c")),
        ] {
            let proxy = Proxy::parse(text).unwrap();
            assert_eq!(proxy.to_string(), shown);
            assert_eq!(format!("{proxy:?}"), format!("Proxy({shown})"));
            assert_eq!(proxy.credentials().as_deref(), credentials);
            assert_eq!(Proxy::parse(&proxy.reveal()), Ok(proxy));
        }
    }

    #[test]
    fn what_is_no_proxy_is_refused_without_its_password() {
        let long = format!("http://a:{}@p:1", "s3cret".repeat(200));
        for text in [
            "",
            "proxy:3128",
            "https://s3cret@proxy:3128",
            "socks5://proxy:1080",
            "http://proxy",
            "http://proxy:0",
            "http://proxy:99999",
            "http://proxy:3128/path",
            "http://a:s3cret/b@proxy:3128",
            "http://a:s3cret#b@proxy:3128",
            "http://a:s3cret%zz@proxy:3128",
            "http://a:s3cret%0d%0a@proxy:3128",
            "http://a:s3cret%ff@proxy:3128",
            "http://:s3cret@proxy:3128",
            "http://a%3Ab:s3cret@proxy:3128",
            "http://127.1:3128",
            "http://a b:3128",
            "http://:3128",
            &long,
        ] {
            let error = Proxy::parse(text).unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{text}: {error}");
        }
    }

    #[test]
    fn whoever_writes_the_mask_back_means_the_password_that_stands() {
        let stands = Proxy::parse("http://a:s3cret@p:1").unwrap();
        let written = |text| Proxy::parse(text).unwrap();
        let again = written("http://a:***@p:1").unmasked(Some(&stands));
        assert_eq!(again, Ok(stands.clone()));
        let other = written("http://a:new@p:1");
        assert_eq!(other.clone().unmasked(Some(&stands)), Ok(other));
        for text in ["http://a:***@p:2", "http://b:***@p:1", "http://a:***@q:1"] {
            let refused = written(text).unmasked(Some(&stands));
            assert_eq!(refused, Err(ProxyError::Masked));
        }
        let none = written("http://a:***@p:1").unmasked(None);
        assert_eq!(none, Err(ProxyError::Masked));
    }
}
