//! What a server says about its JSON and its paths, in the words of the command line.

use std::borrow::Cow;

/// What the API says, and what a command line says for it.
const PHRASES: [(&str, &str); 8] = [
    (
        "send a key that is valid, as Authorization: Bearer punctual_…; an admin makes one with POST /v1/keys",
        "no valid key: set PUNCTUAL_KEY, or log in with punctual login URL; on the server's machine PUNCTUAL_DATA names its folder",
    ),
    ("write at=", "write --at "),
    ("or at=", "or --at "),
    (
        "read it again and send If-Match: ",
        "look at it again and say --if-match ",
    ),
    ("or send \"force\": true", "or say --force"),
    (
        "or PATCH /v1/jobs/key:… to change it",
        "or say --or-update to change it",
    ),
    (
        "make it with PUT /v1/calendars/",
        "make it with punctual calendar put ",
    ),
    (
        "replay another with POST /v1/runs/{id}/replay",
        "replay another with punctual run replay",
    ),
];

/// A problem's detail, as somebody at a terminal can act on it.
pub(crate) fn detail(text: &str) -> Cow<'_, str> {
    let mut said = Cow::Borrowed(text);
    for (api, ours) in PHRASES {
        if said.contains(api) {
            said = Cow::Owned(said.replace(api, ours));
        }
    }
    said
}

/// The flag that a field was made from. What is named by the command's own argument has none.
pub(crate) fn flag(field: &str) -> Option<String> {
    let below = |top: &str| {
        field
            .strip_prefix(top)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let name = match field {
        "id" | "name" | "value" | "Authorization" => return None,
        "schedule" => "cron, --every, --at or --in",
        "target" | "target.http" => "url",
        "catch_up.policy" => "catch-up",
        "catch_up.window" => "catch-up-window",
        "overlap.policy" => "overlap",
        "dates" => "date",
        "hosts" => "host",
        "queues" => "queue",
        _ if below("labels") => "label",
        "target.shell" | "target.shell.command" => "command",
        _ if below("target.shell.env") => "env",
        "target.shell.success" => "success-exit",
        "target.shell.retry" => "retry-exit",
        "target.shell.fail" => "fail-exit",
        "target.shell.dead" => "dead-exit",
        "target.python" | "target.python.source" => "script",
        "target.python.args" => "arg",
        _ if below("target.python.env") => "env",
        "target.python.success" => "success-exit",
        "target.python.retry" => "retry-exit",
        "target.python.fail" => "fail-exit",
        "target.python.dead" => "dead-exit",
        "target.http.tls.cert" => "target-cert",
        "target.http.tls.key" => "target-key",
        _ if below("target.http.tls") => "target-ca",
        _ if below("target.http.headers") => "header",
        _ if below("target.http.keep_headers") => "keep-header",
        _ if below("target.http.success.status") => "success-status",
        _ if below("target.http.success") => "success-json",
        _ if below("ranges") => "range",
        _ => {
            let own = [
                "schedule.",
                "target.http.",
                "target.shell.",
                "target.python.",
                "retry.",
                "quotas.",
            ];
            let name = own
                .iter()
                .find_map(|top| field.strip_prefix(top))
                .unwrap_or(field);
            return Some(format!("--{}", name.replace('_', "-").to_ascii_lowercase()));
        }
    };
    Some(format!("--{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_named_by_their_flags() {
        for (field, expected) in [
            ("schedule.cron", "--cron"),
            ("schedule.dst_gap", "--dst-gap"),
            ("schedule", "--cron, --every, --at or --in"),
            ("target", "--url"),
            ("target.http.headers.X-A", "--header"),
            ("target.http.output_max", "--output-max"),
            ("retry.attempts_max", "--attempts-max"),
            ("labels.team", "--label"),
            ("catch_up.window", "--catch-up-window"),
            ("start_within", "--start-within"),
            ("If-Match", "--if-match"),
            ("ranges.to", "--range"),
        ] {
            assert_eq!(flag(field).as_deref(), Some(expected));
        }
        assert_eq!(flag("id"), None);
    }
}
