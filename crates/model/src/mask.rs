//! What is not shown: values of headers and query parameters that are secrets by their name or by their looks. In every
//! answer and every log they are `***`. Whoever writes `***` back means the value that stands, at the origin that it was
//! given for and at no other.

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
    "subscription-key",
    "subscription_key",
    "functions-key",
    "master-key",
    "master_key",
    "shared-key",
    "shared_key",
    "account-key",
    "account_key",
    "admin-key",
    "signing-key",
    "signing_key",
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
/// What stands between templates is no secret by itself if it is shorter: `Bearer-`, `v1:`.
const LITERAL_MIN: usize = 8;
/// How parts of a template begin and end.
const TAGS: [(&str, &str); 3] = [("{{", "}}"), ("{%", "%}"), ("{#", "#}")];

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
fn is_random(value: &str) -> bool {
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

/// The value of a command's variable as it may be shown.
pub fn shown_env(name: &str, value: &str) -> Cow<'static, str> {
    let is_hidden = is_secret_parameter(name) || is_random(value);
    if is_hidden && !value.is_empty() && !names_secrets_only(value) {
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
            || is_random(value)
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
        Some(stands)
            if path.contains(&format!("={MASK}")) && !stands.is_at_origin_of(&given.url) =>
        {
            Err(stays(stands, "http.url".to_owned()))
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
            values.extend(hidden_parts(sent.map_or(&*text, |(_, rest)| rest.trim())));
        }
    }
    let query = match &http.path {
        Some(path) => path.split_once('?').map(|(_, query)| query),
        None => http.url.query(),
    };
    let masked = parameters(query.unwrap_or_default());
    let masked = masked.filter(|(name, value)| is_masked(name, value));
    values.extend(masked.flat_map(|(_, value)| hidden_parts(value)));
    values
}

/// What of a value is sent as it stands: all of it, or what is between its templates.
pub(crate) fn hidden_parts(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    let tag = |text: &str| {
        let found = TAGS
            .iter()
            .filter_map(|(begin, end)| Some((text.find(begin)?, *end)));
        found.min()
    };
    while let Some((at, end)) = tag(rest) {
        let (before, from) = rest.split_at(at);
        found.push(before);
        rest = from.split_once(end).map_or("", |(_, after)| after);
    }
    if found.is_empty() {
        return vec![text.to_owned()];
    }
    found.push(rest);
    let found = found.into_iter().map(str::trim);
    let found = found.filter(|literal| literal.len() >= LITERAL_MIN);
    found.map(str::to_owned).collect()
}

/// What a masked header stands for: the value that is there already, if it stays at its origin. A header that is not masked
/// is what it says.
pub fn unmask_header(
    name: &HeaderName,
    value: HeaderValue,
    stands: Option<&HttpTarget>,
    url: &Uri,
) -> Result<HeaderValue, TargetError> {
    if value.as_bytes() != MASK.as_bytes() || !is_secret_header(name.as_str()) {
        return Ok(value);
    }
    let field = || format!("http.headers.{name}");
    let found = stands.and_then(|stands| {
        let mut headers = stands.headers.iter();
        let (_, kept) = headers.find(|(other, _)| other == name)?;
        Some((stands, kept.clone()))
    });
    match found {
        Some((stands, kept)) if stands.is_at_origin_of(url) => Ok(kept),
        Some((stands, _)) => Err(stays(stands, field())),
        None => Err(nothing_to_keep(field())),
    }
}

/// Refuses a target at another origin than before that still has a header whose value is not shown: it may only be kept by
/// whoever gives it again. `given` are those that are.
pub fn check_moved(
    http: &HttpTarget,
    before: &HttpTarget,
    given: &[HeaderName],
) -> Result<(), TargetError> {
    if before.is_at_origin_of(&http.url) {
        return Ok(());
    }
    let kept = http.headers.iter().find(|(name, value)| {
        let text = String::from_utf8_lossy(value.as_bytes());
        !given.contains(name) && shown_header(name.as_str(), &text) == MASK
    });
    match kept {
        Some((name, _)) => Err(stays(before, format!("http.headers.{name}"))),
        None => Ok(()),
    }
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
    let moved = stands.filter(|stands| !stands.is_at_origin_of(&url));
    let mut pairs = Vec::new();
    for pair in query.split('&') {
        let name = pair
            .strip_suffix(MASK)
            .and_then(|pair| pair.strip_suffix('='));
        let at = name.and_then(|name| stood.iter().position(|(other, _)| *other == name));
        if let (Some(stands), Some(_)) = (moved, at) {
            return Err(stays(stands, "http.url".to_owned()));
        }
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

fn stays(stands: &HttpTarget, field: String) -> TargetError {
    let scheme = stands.url.scheme_str().unwrap_or_default();
    let host = stands.url.host().unwrap_or_default();
    let detail = format!(
        "its value, which is not shown, was given for {scheme}://{host}:{} and goes to no other scheme, host or port by \
         itself: write it again, write {{{{ secret('name') }}}}, or take it away",
        stands.port()
    );
    TargetError { field, detail }
}

pub(crate) fn nothing_to_keep(field: String) -> TargetError {
    let detail = format!(
        "{MASK} stands for a value that is not shown, and there is none to keep: write the value, or {{{{ secret('name') }}}}"
    );
    TargetError { field, detail }
}

#[cfg(test)]
#[path = "mask_tests.rs"]
mod tests;
