//! The password in a store's address: whether there is one, how to add one, and how to show the address without it.

use crate::client::encode;

const MASK: &str = "***";

/// The address before its parameters, and the parameters.
fn split(address: &str) -> (&str, &str) {
    address.split_once('?').unwrap_or((address, ""))
}

/// Where the password stands before the host: after the user's colon, up to the last at sign.
fn of_user(base: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = base.split_once("://")?;
    let (user, host) = rest.rsplit_once('@')?;
    let (name, password) = user.split_once(':')?;
    let before = base.get(..scheme.len() + 3 + name.len() + 1)?;
    let after = base.get(base.len() - host.len() - 1..)?;
    Some((before, password, after))
}

/// Whether the address holds a password, or says which file does.
pub(super) fn has_password(address: &str) -> bool {
    let (base, query) = split(address);
    let is_one = |pair: &str| pair.starts_with("password=") || pair.starts_with("passfile=");
    of_user(base).is_some() || query.split('&').any(is_one)
}

pub(super) fn with_password(address: &str, password: &str) -> String {
    let mark = if address.contains('?') { '&' } else { '?' };
    format!("{address}{mark}password={}", encode(password))
}

/// The address as people may see it.
pub(super) fn masked(address: &str) -> String {
    let (base, query) = split(address);
    let mut shown = match of_user(base) {
        Some((before, _, after)) => format!("{before}{MASK}{after}"),
        None => base.to_owned(),
    };
    for (at, pair) in query.split('&').filter(|pair| !pair.is_empty()).enumerate() {
        shown.push(if at == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some(("password", _)) => shown.push_str(&format!("password={MASK}")),
            Some(_) | None => shown.push_str(pair),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_password_is_hidden() {
        for (address, shown) in [
            (
                "postgres://ann@db:5432/jobs?sslmode=require",
                "postgres://ann@db:5432/jobs?sslmode=require",
            ),
            (
                "postgres://ann:s3cret@db/jobs",
                "postgres://ann:***@db/jobs",
            ),
            (
                "postgres://ann:s3@cret:x@one,two/jobs",
                "postgres://ann:***@one,two/jobs",
            ),
            (
                "postgres://ann@/jobs?host=/run&password=s3cret",
                "postgres://ann@/jobs?host=/run&password=***",
            ),
            ("postgres://db/jobs", "postgres://db/jobs"),
        ] {
            assert_eq!(masked(address), shown);
        }
    }

    #[test]
    fn a_password_is_added_to_an_address_that_has_none() {
        assert!(has_password("postgres://a:b@c/d") && has_password("postgres://a@c/d?passfile=/x"));
        assert!(has_password("postgres://a@c/d?x=y&password=b"));
        assert!(!has_password("postgres://a@c/d?sslmode=require"));
        assert_eq!(
            with_password("postgres://a@c/d", "p&w d"),
            "postgres://a@c/d?password=p%26w%20d"
        );
        assert_eq!(
            with_password("postgres://a@c/d?x=y", "p"),
            "postgres://a@c/d?x=y&password=p"
        );
    }
}
