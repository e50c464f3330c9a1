//! Redirects: whether they are followed, what is sent then, and where to. Never to another origin: what is sent may hold
//! secrets that name this one.

use http::uri::{PathAndQuery, Scheme};
use http::{Method, Uri};

use crate::limits;
use crate::success::Success;
use crate::target::TargetError;

/// What becomes of an answer that names another place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Redirects {
    /// It is the answer.
    #[default]
    None,
    /// The request is sent there, if it is at the same scheme, host and port.
    SameOrigin,
}

/// Statuses that say where the request is to go instead.
const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];
/// Characters of another origin that an error shows.
const SHOWN_MAX: usize = 256;

impl Redirects {
    pub const ALL: [Self; 2] = [Self::None, Self::SameOrigin];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SameOrigin => "same_origin",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == text)
    }

    /// A rule that counts every redirect as success leaves none to follow.
    pub(crate) fn check(self, success: Option<&Success>) -> Result<(), TargetError> {
        let is_success = |status: &u16| success.is_some_and(|rule| rule.has_status(*status));
        match self {
            Self::SameOrigin if STATUSES.iter().all(is_success) => Err(TargetError {
                field: "http.redirects".to_owned(),
                detail: "every redirect counts as success by success.status, so none would be followed: leave one of them out"
                    .to_owned(),
            }),
            Self::SameOrigin | Self::None => Ok(()),
        }
    }
}

/// The method of the request that follows a redirect, as browsers have it; none for a status that is no redirect. Another
/// method than before goes without a body.
pub fn method_after(status: u16, method: &Method) -> Option<Method> {
    let turns = match status {
        301 | 302 => *method == Method::POST,
        303 => !matches!(*method, Method::GET | Method::HEAD),
        307 | 308 => false,
        _ => return None,
    };
    Some(if turns { Method::GET } else { method.clone() })
}

/// A redirect that is not followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotFollowed {
    #[error("it does not say where to")]
    NoLocation,
    #[error("where to cannot be read")]
    Unreadable,
    #[error("{0} is another origin: redirects are followed within the target's own only")]
    OtherOrigin(String),
    #[error("at most {} redirects are followed", limits::REDIRECTS_MAX)]
    TooMany,
}

/// The path and query, at the origin of `url`, that a `Location` names. `from` is the path that was called, which relative ones
/// are relative to (RFC 3986, section 5.2).
pub fn resolve(url: &Uri, from: &str, location: Option<&str>) -> Result<PathAndQuery, NotFollowed> {
    let location = location.ok_or(NotFollowed::NoLocation)?.trim();
    // What is behind a # is for whoever shows the answer.
    let location = location.split('#').next().unwrap_or_default();
    let scheme = url.scheme().unwrap_or(&Scheme::HTTP);
    let whole = match scheme_of(location) {
        Some(_) => Some(location.to_owned()),
        None if location.starts_with("//") => Some(format!("{scheme}:{location}")),
        None => None,
    };
    if let Some(whole) = whole {
        let there: Uri = whole.parse().map_err(|_| NotFollowed::Unreadable)?;
        if origin(&there) != origin(url) {
            return Err(NotFollowed::OtherOrigin(shown_origin(&there)));
        }
        let query = there.query().map(str::to_owned);
        return join(there.path(), query.as_deref());
    }
    let (path, query) = match location.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (location, None),
    };
    if path.is_empty() {
        return join(from, query);
    }
    if path.starts_with('/') {
        return join(path, query);
    }
    let folder = from.rfind('/').and_then(|at| from.get(..=at));
    join(&format!("{}{path}", folder.unwrap_or("/")), query)
}

/// What is before the first colon, if that is a scheme.
fn scheme_of(location: &str) -> Option<&str> {
    let (scheme, _) = location.split_once(':')?;
    let is_one = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && (scheme.bytes()).all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_one.then_some(scheme)
}

/// Scheme, host and port; equal where they are one origin.
fn origin(url: &Uri) -> (String, String, Option<u16>) {
    let lower = |text: Option<&str>| text.unwrap_or_default().to_ascii_lowercase();
    let scheme = lower(url.scheme_str());
    let usual = match scheme.as_str() {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    };
    let host = lower(url.host());
    (scheme, host, url.port_u16().or(usual))
}

/// As an error names it: without a user name and password, and not without end.
fn shown_origin(url: &Uri) -> String {
    let authority = url.authority().map_or("", |authority| authority.as_str());
    let host = authority.rsplit('@').next().unwrap_or_default();
    let origin = format!("{}://{host}", url.scheme_str().unwrap_or_default());
    origin.chars().take(SHOWN_MAX).collect()
}

fn join(path: &str, query: Option<&str>) -> Result<PathAndQuery, NotFollowed> {
    let mut text = without_dots(path);
    if let Some(query) = query {
        text.push('?');
        text.push_str(query);
    }
    if text.len() > limits::URL_MAX {
        return Err(NotFollowed::Unreadable);
    }
    text.parse().map_err(|_| NotFollowed::Unreadable)
}

/// A path without `.` and `..`, which never leave its root.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut is_folder = false;
    for part in path.strip_prefix('/').unwrap_or(path).split('/') {
        is_folder = matches!(part, "." | "..");
        match part {
            "." => {}
            ".." => {
                kept.pop();
            }
            part => kept.push(part),
        }
    }
    let mut text = format!("/{}", kept.join("/"));
    if is_folder && !text.ends_with('/') {
        text.push('/');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::success::Statuses;

    fn to(location: &str) -> Result<String, NotFollowed> {
        let url: Uri = "https://a.example/".parse().unwrap();
        resolve(&url, "/b/c/d", Some(location)).map(|path| path.to_string())
    }

    #[test]
    fn a_location_is_relative_to_what_was_called() {
        for (location, expected) in [
            ("/x", "/x"),
            ("/x?y=1#z", "/x?y=1"),
            ("x", "/b/c/x"),
            ("./x", "/b/c/x"),
            ("../x/", "/b/x/"),
            ("../../../../x", "/x"),
            ("..", "/b/"),
            ("?q=a:b", "/b/c/d?q=a:b"),
            ("", "/b/c/d"),
            ("#top", "/b/c/d"),
            ("/x/./y/../z", "/x/z"),
            ("/x?to=http://b.example/", "/x?to=http://b.example/"),
            ("https://a.example", "/"),
            ("https://A.EXAMPLE:443/x?y", "/x?y"),
            ("//a.example/x", "/x"),
            ("https://user:pass@a.example/x", "/x"),
        ] {
            assert_eq!(to(location).as_deref(), Ok(expected), "{location}");
        }
    }

    #[test]
    fn another_scheme_host_or_port_is_another_origin() {
        for (location, origin) in [
            ("http://a.example/x", "http://a.example"),
            ("https://a.example:444/x", "https://a.example:444"),
            ("https://b.example/x", "https://b.example"),
            ("//b.example/x", "https://b.example"),
            (
                "https://a.example.b.example/",
                "https://a.example.b.example",
            ),
            ("https://a.example@b.example/x", "https://b.example"),
            ("https://u:planted@b.example/x", "https://b.example"),
        ] {
            let expected = NotFollowed::OtherOrigin(origin.to_owned());
            assert_eq!(to(location), Err(expected), "{location}");
        }
        assert!(to(&format!("https://{}.b.example/", "b".repeat(200))).is_err());
    }

    #[test]
    fn what_cannot_be_read_is_not_followed() {
        for location in [
            "https://",
            "https://[/",
            "//",
            "/a b",
            "javascript:x",
            "/\u{1}",
        ] {
            assert!(to(location).is_err(), "{location}");
        }
        let long = format!("/{}", "x".repeat(limits::URL_MAX));
        assert_eq!(to(&long), Err(NotFollowed::Unreadable));
        let url: Uri = "http://a/".parse().unwrap();
        assert_eq!(resolve(&url, "/", None), Err(NotFollowed::NoLocation));
    }

    #[test]
    fn a_post_becomes_a_get_as_in_browsers() {
        let check = |status, method: Method, expected: Option<Method>| {
            assert_eq!(method_after(status, &method), expected, "{status} {method}");
        };
        for status in [301, 302, 303] {
            check(status, Method::POST, Some(Method::GET));
            check(status, Method::GET, Some(Method::GET));
            check(status, Method::HEAD, Some(Method::HEAD));
        }
        check(301, Method::PUT, Some(Method::PUT));
        check(303, Method::PUT, Some(Method::GET));
        for status in [307, 308] {
            check(status, Method::POST, Some(Method::POST));
        }
        for status in [200, 300, 304, 305, 306, 404] {
            check(status, Method::POST, None);
        }
    }

    #[test]
    fn redirects_that_all_count_as_success_cannot_be_followed() {
        let rule = |statuses: &[&str]| Success {
            status: Some(Statuses::new(statuses.iter().copied()).unwrap()),
            json: None,
        };
        let check =
            |redirects: Redirects, rule: Option<Success>| redirects.check(rule.as_ref()).is_ok();
        assert!(check(Redirects::SameOrigin, None));
        assert!(check(Redirects::SameOrigin, Some(rule(&["2xx", "303"]))));
        assert!(!check(Redirects::SameOrigin, Some(rule(&["2xx", "3xx"]))));
        assert!(check(Redirects::None, Some(rule(&["3xx"]))));
    }
}
