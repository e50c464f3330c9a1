//! What is not shown: values of headers and query parameters that are secrets by their name or by their looks. In every
//! answer and every log they are `***`. Whoever writes `***` back means the value that stands.

use std::borrow::Cow;

use http::{HeaderName, HeaderValue, Uri};

use crate::target::{HttpTarget, TargetError};

/// What stands for a value that is not shown.
pub const MASK: &str = "***";

/// Headers that hold a secret whatever it looks like.
const HEADERS: &[&str] = &[
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "x-amz-security-token",
    "x-auth",
    "x-key",
];
/// Parts of names, of headers and parameters, that say secret.
const PARTS: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "api-key",
    "api_key",
    "apikey",
    "access-key",
    "access_key",
    "accesskey",
    "private-key",
    "private_key",
    "auth-key",
    "auth_key",
    "authkey",
    "signature",
    "credential",
    "session",
    "jwt",
];
/// Parameters that hold one by the whole of their name.
const PARAMETERS: &[&str] = &["auth", "authorization", "pass", "pwd", "sig", "hmac"];
/// How keys of well-known services begin.
const PREFIXES: &[&str] = &[
    "eyJ",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "sk-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "SG.",
    "punctual_",
    "whsec_",
];
/// Words that say how a secret is sent, and are none.
const SCHEMES: &[&str] = &["bearer", "basic", "token", "apikey", "digest"];
/// A value with letters and digits that is this long is nobody's word.
const RANDOM_MIN: usize = 32;

fn says_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    PARTS.iter().any(|part| name.contains(part))
}

/// Whether a header of this name holds a secret.
pub fn is_secret_header(name: &str) -> bool {
    let is_one = |known: &&str| known.eq_ignore_ascii_case(name);
    HEADERS.iter().any(is_one) || says_secret(name)
}

/// Whether a parameter of this name holds a secret.
fn is_secret_parameter(name: &str) -> bool {
    let is_one = |known: &&str| known.eq_ignore_ascii_case(name);
    PARAMETERS.iter().any(is_one) || says_secret(name)
}

/// Whether a value is a secret by its looks.
fn looks_random(value: &str) -> bool {
    if PREFIXES.iter().any(|prefix| value.starts_with(prefix)) {
        return value.len() >= 16;
    }
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_+/=.%~".contains(&byte);
    let has = |is: fn(&u8) -> bool| value.as_bytes().iter().any(is);
    value.len() >= RANDOM_MIN
        && value.bytes().all(is_part)
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
        && !is_id(value)
}

/// A UUID, or a moment, is a name and no secret.
fn is_id(value: &str) -> bool {
    let is_moment = value.len() <= 35 && value.contains('T') && value.starts_with("20");
    uuid::Uuid::try_parse(value).is_ok() || is_moment
}

/// A header's value as it may be shown.
pub fn shown_header(name: &str, value: &str) -> Cow<'static, str> {
    if is_secret_header(name) && !names_secrets_only(value) {
        Cow::Borrowed(MASK)
    } else {
        Cow::Owned(value.to_owned())
    }
}

/// A header of an answer as it may be kept.
pub fn shown_answer_header<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    if is_secret_header(name) {
        Cow::Borrowed(MASK)
    } else {
        Cow::Borrowed(value)
    }
}

/// Whether a value names secrets and holds none: nothing but `{{ secret('name') }}`, and how it is sent.
pub fn names_secrets_only(value: &str) -> bool {
    let mut rest = value;
    let mut named = false;
    loop {
        let (before, after) = match rest.split_once("{{") {
            Some((before, after)) => (before, Some(after)),
            None => (rest, None),
        };
        let mut words = before.split_ascii_whitespace();
        if !words.all(|word| {
            SCHEMES
                .iter()
                .any(|scheme| scheme.eq_ignore_ascii_case(word))
        }) {
            return false;
        }
        let Some((inside, after)) = after.and_then(|after| after.split_once("}}")) else {
            return named && after.is_none();
        };
        if !is_call(inside.trim()) {
            return false;
        }
        named = true;
        rest = after;
    }
}

/// `secret('name')`, and nothing else.
fn is_call(text: &str) -> bool {
    let inside = text
        .strip_prefix("secret")
        .map(str::trim_start)
        .and_then(|text| text.strip_prefix('('))
        .and_then(|text| text.strip_suffix(')'))
        .map(str::trim);
    let quoted = |quote: char| {
        let name = inside?.strip_prefix(quote)?.strip_suffix(quote)?;
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        name.bytes().all(is_part).then_some(())
    };
    quoted('\'').or_else(|| quoted('"')).is_some()
}

fn is_masked(name: &str, value: &str) -> bool {
    !value.is_empty()
        && (is_secret_parameter(name)
            || looks_random(value)
            || name.eq_ignore_ascii_case("key") && value.len() >= 16)
}

/// An address as it may be shown.
pub fn shown_url(url: &Uri) -> String {
    let text = url.to_string();
    let (text, who) = match text.split_once("://") {
        Some((scheme, rest)) => {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            match rest.get(..end).and_then(|authority| authority.rfind('@')) {
                Some(at) => {
                    let rest = rest.get(at..).unwrap_or_default();
                    (format!("{scheme}://{MASK}{rest}"), true)
                }
                None => (text, false),
            }
        }
        None => (text, false),
    };
    let Some((before, query)) = text.split_once('?') else {
        return text;
    };
    if !who && !parameters(query).any(|(name, value)| is_masked(name, value)) {
        return text;
    }
    let shown: Vec<String> = query.split('&').map(shown_parameter).collect();
    format!("{before}?{}", shown.join("&"))
}

/// The address of a target as it may be shown, its template included.
pub fn shown_address(target: &HttpTarget) -> String {
    match &target.path {
        None => shown_url(&target.url),
        Some(path) => {
            let origin = target.url.to_string();
            format!("{}{}", origin.trim_end_matches('/'), shown_path(path))
        }
    }
}

/// The template of a path as it may be shown.
pub fn shown_path(path: &str) -> String {
    let Some((before, query)) = path.split_once('?') else {
        return path.to_owned();
    };
    let shown = query.split('&').map(|pair| match pair.split_once('=') {
        Some((_, value)) if names_secrets_only(value) => pair.to_owned(),
        Some(_) | None => shown_parameter(pair),
    });
    format!("{before}?{}", shown.collect::<Vec<_>>().join("&"))
}

/// What a masked address stands for. One that is a template is kept as a whole.
pub fn unmask_address(
    (url, path): (Uri, Option<String>),
    stands: Option<&HttpTarget>,
) -> Result<(Uri, Option<String>), TargetError> {
    let Some(path) = path else {
        return Ok((unmask_url(url, stands)?, None));
    };
    let given = HttpTarget {
        path: Some(path.clone()),
        ..HttpTarget::at(url.clone())
    };
    match stands {
        Some(stands) if shown_address(stands) == shown_address(&given) && path.contains(MASK) => {
            Ok((stands.url.clone(), stands.path.clone()))
        }
        Some(_) | None if path.contains(&format!("={MASK}")) => {
            Err(nothing_to_keep("http.url".to_owned()))
        }
        Some(_) | None => Ok((url, Some(path))),
    }
}

fn parameters(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query.split('&').filter_map(|pair| pair.split_once('='))
}

fn shown_parameter(pair: &str) -> String {
    match pair.split_once('=') {
        Some((name, value)) if is_masked(name, value) => format!("{name}={MASK}"),
        Some(_) | None => pair.to_owned(),
    }
}

/// The values of a target that are not shown: whatever comes back of them is to be taken out. Without the word that says how
/// a header's is sent.
pub fn hidden(http: &HttpTarget) -> Vec<String> {
    let mut values = Vec::new();
    for (name, value) in &http.headers {
        let text = String::from_utf8_lossy(value.as_bytes());
        if shown_header(name.as_str(), &text) == MASK {
            let is_scheme = |word: &str| SCHEMES.iter().any(|it| it.eq_ignore_ascii_case(word));
            let sent = text.split_once(' ').filter(|(word, _)| is_scheme(word));
            values.push(sent.map_or(&*text, |(_, rest)| rest.trim()).to_owned());
        }
    }
    let masked = parameters(http.url.query().unwrap_or_default());
    let masked = masked.filter(|(name, value)| is_masked(name, value));
    values.extend(masked.map(|(_, value)| value.to_owned()));
    values
}

/// What a masked header stands for: the value that is there already. A header that is not masked is what it says.
pub fn unmask_header(
    name: &HeaderName,
    value: HeaderValue,
    stands: Option<&HttpTarget>,
) -> Result<HeaderValue, TargetError> {
    if value.as_bytes() != MASK.as_bytes() || !is_secret_header(name.as_str()) {
        return Ok(value);
    }
    let headers = stands.map(|stands| stands.headers.as_slice());
    let mut found = headers.unwrap_or_default().iter();
    let found = found.find(|(other, _)| other == name);
    let kept = found.map(|(_, value)| value.clone());
    kept.ok_or_else(|| nothing_to_keep(format!("http.headers.{name}")))
}

/// The same for the parameters of an address, each by its name.
pub fn unmask_url(url: Uri, stands: Option<&HttpTarget>) -> Result<Uri, TargetError> {
    let query = url.query().unwrap_or_default();
    if !parameters(query).any(|(_, value)| value == MASK) {
        return Ok(url);
    }
    let stood = stands.and_then(|stands| stands.url.query());
    let mut stood: Vec<(&str, &str)> = parameters(stood.unwrap_or_default())
        .filter(|(name, value)| is_masked(name, value))
        .collect();
    let mut pairs = Vec::new();
    for pair in query.split('&') {
        let name = pair
            .strip_suffix(MASK)
            .and_then(|pair| pair.strip_suffix('='));
        let at = name.and_then(|name| stood.iter().position(|(other, _)| *other == name));
        match (name, at) {
            (Some(_), Some(at)) => {
                let (name, value) = stood.remove(at);
                pairs.push(format!("{name}={value}"));
            }
            (Some(name), None) if is_secret_parameter(name) => {
                return Err(nothing_to_keep("http.url".to_owned()));
            }
            (_, None) | (None, Some(_)) => pairs.push(pair.to_owned()),
        }
    }
    let text = url.to_string();
    let before = text
        .split_once('?')
        .map_or(text.as_str(), |(before, _)| before);
    crate::target::check_url(&format!("{before}?{}", pairs.join("&")))
}

fn nothing_to_keep(field: String) -> TargetError {
    let detail = format!(
        "{MASK} stands for a value that is not shown, and there is none to keep: write the value, or {{{{ secret('name') }}}}"
    );
    TargetError { field, detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        shown_url(&url.parse().unwrap())
    }

    #[test]
    fn what_is_not_shown_is_known_by_its_value() {
        let target = HttpTarget::new("http://a/?token=planted-1&team=a", None).unwrap();
        let target = target.header("authorization", "Bearer planted-2").unwrap();
        let target = target.header("x-api-key", "planted-3").unwrap();
        let target = target.header("cookie", "id=planted-4").unwrap();
        let target = target.header("x-token", "{{ secret('a') }}").unwrap();
        let target = target.header("x-team", "shown").unwrap();
        assert_eq!(
            hidden(&target),
            ["planted-2", "planted-3", "id=planted-4", "planted-1"]
        );
    }

    #[test]
    fn headers_are_masked_by_their_names() {
        for name in [
            "Authorization",
            "proxy-authorization",
            "cookie",
            "x-api-key",
            "X-Auth-Token",
            "x-hub-signature-256",
            "client-secret",
            "x-apikey",
            "db-password",
            "x-session-id",
        ] {
            assert_eq!(shown_header(name, "abc"), MASK, "{name}");
        }
        for name in ["content-type", "accept", "x-request-id", "x-team", "author"] {
            assert_eq!(shown_header(name, "abc"), "abc", "{name}");
        }
    }

    #[test]
    fn a_value_that_only_names_secrets_is_shown() {
        for value in [
            "{{ secret('a') }}",
            "{{secret(\"a-b.c_1\")}}",
            "Bearer {{ secret('a') }}",
            "basic {{ secret('a') }}{{ secret('b') }}",
        ] {
            assert_eq!(shown_header("authorization", value), value);
        }
        for value in [
            "",
            "Bearer abc",
            "Bearer",
            "{{ 'abc' }}",
            "{{ secret('a') }} abc",
            "abc {{ secret('a') }}",
            "{{ secret('a') ~ 'abc' }}",
            "{{ secret('a'",
            "{{ secret('it''s') }}",
            "{{ secret(a) }}",
            "abc }}",
        ] {
            assert_eq!(shown_header("authorization", value), MASK, "{value}");
        }
    }

    #[test]
    fn parameters_are_masked_by_name_and_by_looks() {
        assert_eq!(
            shown("http://a/b?x=1&token=abc&y=2"),
            "http://a/b?x=1&token=***&y=2"
        );
        assert_eq!(
            shown("http://a/?X-Amz-Signature=1&sig=2"),
            "http://a/?X-Amz-Signature=***&sig=***"
        );
        assert_eq!(shown("http://a/?k=ghp_0123456789abcdef"), "http://a/?k=***");
        assert_eq!(
            shown("http://a/?k=0123456789abcdef0123456789abcdef0"),
            "http://a/?k=***"
        );
        assert_eq!(shown("http://a/?key=AbCdEfGhIjKlMnOp"), "http://a/?key=***");
        for plain in [
            "http://a/",
            "http://a/b?key=nightly",
            "http://a/?id=550e8400-e29b-41d4-a716-446655440000",
            "http://a/?from=2026-03-29T01:00:00.000Z&to=b",
            "http://a/?token&design=1",
            "http://a/?token=",
        ] {
            assert_eq!(shown(plain), plain);
        }
        assert_eq!(shown("http://ann:s3cret@a/b?c=d"), "http://***@a/b?c=d");
    }

    fn target(url: &str) -> HttpTarget {
        HttpTarget::new(url, None).unwrap()
    }

    #[test]
    fn a_masked_header_that_is_written_back_keeps_its_value() {
        let stands = target("http://a/")
            .header("Authorization", "Bearer abc")
            .unwrap();
        let name: HeaderName = "authorization".parse().unwrap();
        let masked = || HeaderValue::from_static(MASK);
        let kept = unmask_header(&name, masked(), Some(&stands)).unwrap();
        assert_eq!(kept, "Bearer abc");
        let other = HeaderValue::from_static("Bearer def");
        assert_eq!(
            unmask_header(&name, other.clone(), Some(&stands)),
            Ok(other)
        );
        for nothing in [None, Some(&target("http://a/"))] {
            let refused = unmask_header(&name, masked(), nothing).unwrap_err();
            assert_eq!(refused.field, "http.headers.authorization");
            assert!(refused.detail.contains("secret('name')"), "{refused}");
        }
        let plain: HeaderName = "x-team".parse().unwrap();
        assert_eq!(unmask_header(&plain, masked(), None).unwrap(), MASK);
    }

    #[test]
    fn masked_parameters_that_are_written_back_keep_their_values() {
        let stands = target("http://a/b?token=abc&x=1&token=def");
        let unmask = |url: &str| {
            let url = unmask_url(url.parse().unwrap(), Some(&stands));
            url.map(|url| url.to_string())
        };
        assert_eq!(
            unmask("http://c/d?x=2&token=***"),
            Ok("http://c/d?x=2&token=abc".to_owned())
        );
        assert_eq!(unmask(&shown_url(&stands.url)), Ok(stands.url.to_string()));
        assert_eq!(unmask("http://a/?x=***"), Ok("http://a/?x=***".to_owned()));
        assert_eq!(
            unmask("http://a/?secret=***").unwrap_err().field,
            "http.url"
        );
        let none = unmask_url("http://a/?token=***".parse().unwrap(), None);
        assert!(none.unwrap_err().detail.contains("none to keep"));
    }
}
