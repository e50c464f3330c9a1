//! `Retry-After`: seconds, or a date. A date is read against the answer's own `Date`: the target's
//! clock is compared with itself, and no clock of ours is needed.

use std::time::Duration;

use hyper::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};
use model::RetryHint;

/// Longer waits are no plan but a mistake; what is shorter is still capped by the job's policy.
const WAIT_MAX: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

pub(super) fn hint(headers: &HeaderMap) -> RetryHint {
    wait(headers)
        .filter(|wait| *wait <= WAIT_MAX)
        .map_or(RetryHint::Usual, RetryHint::After)
}

fn wait(headers: &HeaderMap) -> Option<Duration> {
    let header = text(headers, RETRY_AFTER)?;
    if header.bytes().all(|byte| byte.is_ascii_digit()) {
        return header.parse().ok().map(Duration::from_secs);
    }
    let until = httpdate::parse_http_date(header).ok()?;
    let now = httpdate::parse_http_date(text(headers, DATE)?).ok()?;
    until.duration_since(now).ok()
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use RetryHint::{After, Usual};

    const NOW: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    fn check(header: &str, date: Option<&str>, expected: RetryHint) {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, header.parse().unwrap());
        if let Some(date) = date {
            headers.insert(DATE, date.parse().unwrap());
        }
        assert_eq!(hint(&headers), expected, "{header:?} at {date:?}");
    }

    #[test]
    fn seconds_are_waited() {
        check("0", None, After(Duration::ZERO));
        check(" 120 ", None, After(Duration::from_secs(120)));
        check("315360000", None, After(Duration::from_secs(315_360_000)));
    }

    #[test]
    fn a_date_is_read_against_the_targets_own_clock() {
        let minute = After(Duration::from_secs(60));
        check("Sun, 06 Nov 1994 08:50:37 GMT", Some(NOW), minute);
        check("Sunday, 06-Nov-94 08:50:37 GMT", Some(NOW), minute);
        check("Sun Nov  6 08:50:37 1994", Some(NOW), minute);
        check("Sun, 06 Nov 1994 08:50:37 GMT", None, Usual);
        check("Sun, 06 Nov 1994 08:50:37 GMT", Some("today"), Usual);
        check("Sun, 06 Nov 1994 08:48:37 GMT", Some(NOW), Usual);
    }

    #[test]
    fn nonsense_is_ignored() {
        for header in [
            "",
            "-1",
            "+5",
            "3.5",
            "soon",
            "5 s",
            "1e3",
            "99999999999999999999999",
            "18446744073709551615",
        ] {
            check(header, Some(NOW), Usual);
        }
        assert_eq!(hint(&HeaderMap::new()), Usual);
    }
}
