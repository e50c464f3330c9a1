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
fn what_is_not_shown_of_a_template_is_what_stands_in_it() {
    let check = |path: &str, header: &str, expected: &[&str]| {
        let target = HttpTarget {
            path: Some(path.to_owned()),
            ..target("http://a/")
        };
        let target = target.header("authorization", header).unwrap();
        assert_eq!(hidden(&target), expected, "{path} {header}");
    };
    let named = "Bearer {{ secret('a') }}";
    check("/{{ slot }}?token=planted-1&a=b", named, &["planted-1"]);
    check("/?token={{ secret('a') }}&key={{ job.key }}", named, &[]);
    check(
        "/?sig=planted-1{{ slot }}v1{# x #}planted-2",
        named,
        &["planted-1", "planted-2"],
    );
    check("/a", "Bearer planted-1 {{ slot }}", &["planted-1"]);
    check(
        "/a?token",
        "Basic {% if x %}planted-1{% endif %}",
        &["planted-1"],
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
        "Ocp-Apim-Subscription-Key",
        "x-functions-key",
        "x-master-key",
    ] {
        assert_eq!(shown_header(name, "abc"), MASK, "{name}");
    }
    for name in [
        "content-type",
        "accept",
        "x-request-id",
        "x-team",
        "author",
        "x-partition-key",
    ] {
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
fn parameters_are_masked_by_name_and_by_shape() {
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
    let at: Uri = "http://A:80/b".parse().unwrap();
    let kept = unmask_header(&name, masked(), Some(&stands), &at).unwrap();
    assert_eq!(kept, "Bearer abc");
    let other = HeaderValue::from_static("Bearer def");
    assert_eq!(
        unmask_header(&name, other.clone(), Some(&stands), &at),
        Ok(other)
    );
    for nothing in [None, Some(&target("http://a/"))] {
        let refused = unmask_header(&name, masked(), nothing, &at).unwrap_err();
        assert_eq!(refused.field, "http.headers.authorization");
        assert!(refused.detail.contains("secret('name')"), "{refused}");
    }
    let plain: HeaderName = "x-team".parse().unwrap();
    assert_eq!(unmask_header(&plain, masked(), None, &at).unwrap(), MASK);
}

#[test]
fn what_is_not_shown_stays_with_its_origin() {
    let stands = target("https://a/?token=abc");
    let stands = stands.header("authorization", "Bearer abc").unwrap();
    let stands = stands.header("cookie", "{{ secret('a') }}").unwrap();
    let name: HeaderName = "authorization".parse().unwrap();
    for url in ["http://a/", "https://b/", "https://a:444/", "https://a.b/"] {
        let url: Uri = url.parse().unwrap();
        let masked = HeaderValue::from_static(MASK);
        let refused = unmask_header(&name, masked, Some(&stands), &url).unwrap_err();
        assert_eq!(refused.field, "http.headers.authorization");
        assert!(refused.detail.contains("https://a:443"), "{refused}");
        let masked = format!("{url}?token=***").parse().unwrap();
        let refused = unmask_url(masked, Some(&stands)).unwrap_err();
        assert_eq!(refused.field, "http.url");
        let mut moved = stands.clone();
        moved.url = url;
        let refused = check_moved(&moved, &stands, &[]).unwrap_err();
        assert_eq!(refused.field, "http.headers.authorization");
        assert_eq!(
            check_moved(&moved, &stands, std::slice::from_ref(&name)),
            Ok(())
        );
    }
    let mut same = stands.clone();
    same.url = "https://A:443/other".parse().unwrap();
    assert_eq!(check_moved(&same, &stands, &[]), Ok(()));
}

#[test]
fn masked_parameters_that_are_written_back_keep_their_values() {
    let stands = target("http://a/b?token=abc&x=1&token=def");
    let unmask = |url: &str| {
        let url = unmask_url(url.parse().unwrap(), Some(&stands));
        url.map(|url| url.to_string())
    };
    assert_eq!(
        unmask("http://a/d?x=2&token=***"),
        Ok("http://a/d?x=2&token=abc".to_owned())
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
