//! Redirects: which are followed, with what, and how far.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use model::target::HttpTarget;
use model::{Outcome, Redirects, Report, RetryHint, limits};

use super::HttpExecutor;
use super::receiver::{OK, Receiver, Step, deliver, executor, order, post, say, soon};
use crate::egress::{Dialer, Egress, Resolve};
use crate::sign::{Signer, seconds};
use crate::{Executor, WorkOrder};

fn following(url: &str) -> HttpTarget {
    HttpTarget {
        redirects: Redirects::SameOrigin,
        ..post(url)
    }
}

fn redirect(status: u16, location: &str) -> Vec<Step> {
    say(format!(
        "HTTP/1.1 {status} Moved\r\nlocation: {location}\r\ncontent-length: 4\r\n\r\ngone"
    ))
}

/// Redirects the first request there, and welcomes what comes then.
async fn once(status: u16, location: &'static str) -> Receiver {
    Receiver::scripted(move |no| {
        if no == 0 {
            redirect(status, location)
        } else {
            say(OK)
        }
    })
    .await
}

fn note(report: &Report) -> Option<&str> {
    report.exchange.as_ref()?.note.as_deref()
}

#[tokio::test]
async fn a_redirect_within_the_origin_is_followed_over_the_same_connection() {
    for (status, line) in [
        (307, "POST /b/x?y=1 HTTP/1.1"),
        (308, "POST /b/x?y=1 HTTP/1.1"),
        (301, "GET /b/x?y=1 HTTP/1.1"),
        (302, "GET /b/x?y=1 HTTP/1.1"),
        (303, "GET /b/x?y=1 HTTP/1.1"),
    ] {
        let receiver = once(status, "x?y=1#z").await;
        let target = following(&receiver.url("/b/a")).header("x-a", "1").unwrap();
        let report = soon(executor().execute(order(target, Some(r#"{"n": 1}"#)))).await;
        assert_eq!(
            (report.outcome, report.status),
            (Outcome::Succeeded, Some(200))
        );
        assert_eq!(report.output, "ok");
        assert_eq!(note(&report), Some("the answer came after 1 redirect"));
        let [first, second] = &receiver.seen()[..] else {
            panic!("{status}: {:?}", receiver.seen());
        };
        assert_eq!(
            (first.line.as_str(), second.line.as_str()),
            ("POST /b/a HTTP/1.1", line)
        );
        for name in [
            "host",
            "x-a",
            "punctual-run",
            "punctual-attempt",
            "traceparent",
        ] {
            assert_eq!(first.header(name), second.header(name), "{status} {name}");
        }
        let has_body = status >= 307;
        assert_eq!(second.body, if has_body { &first.body[..] } else { b"" });
        assert_eq!(
            second.header("content-type").is_some(),
            has_body,
            "{status}"
        );
        assert_eq!(receiver.accepted(), 1, "one connection serves both");
    }
}

#[tokio::test]
async fn a_method_other_than_post_stays_what_it_is() {
    let receiver = once(302, "/x").await;
    let target = HttpTarget {
        method: hyper::Method::PUT,
        ..following(&receiver.url("/"))
    };
    assert_eq!(deliver(target).await.outcome, Outcome::Succeeded);
    let second = &receiver.seen()[1];
    assert_eq!(
        (second.line.as_str(), &second.body[..]),
        ("PUT /x HTTP/1.1", &b"{}"[..])
    );
}

#[tokio::test]
async fn a_request_that_loses_its_body_is_signed_again() {
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let signer = Arc::new(Signer::new([secret]).unwrap());
    for (status, body) in [(307, "{}"), (303, "")] {
        let receiver = once(status, "/x").await;
        let signed = WorkOrder {
            signer: Some(signer.clone()),
            ..order(following(&receiver.url("/")), Some("{}"))
        };
        let (run, at) = (signed.run.to_string(), signed.sent_at);
        assert_eq!(
            soon(executor().execute(signed)).await.outcome,
            Outcome::Succeeded
        );
        let expected = signer.sign(&run, at, body.as_bytes());
        let second = &receiver.seen()[1];
        assert_eq!(
            second.header("webhook-signature"),
            Some(expected.as_str()),
            "{status}"
        );
        assert_eq!(
            second.header("webhook-timestamp"),
            Some(seconds(at).to_string().as_str())
        );
    }
}

#[tokio::test]
async fn a_redirect_to_another_origin_is_named_and_not_followed() {
    let other = Receiver::playing(say(OK)).await;
    let there = format!("http://user:planted@{}/x?token=planted", other.address);
    let receiver = Receiver::playing(redirect(307, &there)).await;
    let report = deliver(following(&receiver.url("/"))).await;
    assert_eq!(
        report.error.as_deref(),
        Some(
            format!(
                "the target answered 307 Temporary Redirect, a redirect that is not followed: http://{} is another origin: \
                 redirects are followed within the target's own only",
                other.address
            )
            .as_str()
        )
    );
    assert_eq!(
        (report.outcome, report.status),
        (Outcome::Failed, Some(307))
    );
    assert_eq!(
        (report.retry, &report.output[..]),
        (RetryHint::Never, &b"gone"[..])
    );
    assert_eq!(other.accepted(), 0);
}

#[tokio::test]
async fn redirects_without_end_are_followed_only_so_far() {
    let receiver = Receiver::playing(redirect(308, "/again")).await;
    let report = deliver(following(&receiver.url("/"))).await;
    let error = report.error.as_deref().unwrap();
    assert!(
        error.ends_with("at most 5 redirects are followed"),
        "{error}"
    );
    assert_eq!((report.status, report.retry), (Some(308), RetryHint::Never));
    assert_eq!(receiver.seen().len(), 1 + limits::REDIRECTS_MAX);
    assert_eq!(note(&report), Some("the answer came after 5 redirects"));
}

#[tokio::test]
async fn a_redirect_that_names_no_place_is_a_failure() {
    let head = "HTTP/1.1 302 Found\r\ncontent-length: 0\r\n";
    for (location, why) in [
        ("", "it does not say where to"),
        ("location: /a b\r\n", "where to cannot be read"),
        ("location: /\u{e4}\r\n", "where to cannot be read"),
    ] {
        let receiver = Receiver::playing(say(format!("{head}{location}\r\n"))).await;
        let report = deliver(following(&receiver.url("/"))).await;
        let error = report.error.unwrap();
        assert!(error.ends_with(why), "{location}: {error}");
        assert_eq!(receiver.seen().len(), 1);
    }
    // No redirect at all, whatever it names.
    let other = "HTTP/1.1 304 Not Modified\r\nlocation: /x\r\n\r\n";
    let receiver = Receiver::playing(say(other)).await;
    assert_eq!(
        deliver(following(&receiver.url("/"))).await.status,
        Some(304)
    );
    assert_eq!(receiver.seen().len(), 1);
}

#[tokio::test]
async fn a_redirect_that_counts_as_success_is_the_answer() {
    let receiver = Receiver::playing(redirect(303, "/x")).await;
    let statuses = model::success::Statuses::new(["303"]).unwrap();
    let target = HttpTarget {
        success: Some(model::Success {
            status: Some(statuses),
            json: None,
        }),
        ..following(&receiver.url("/"))
    };
    let report = deliver(target).await;
    assert_eq!(
        (report.outcome, report.status),
        (Outcome::Succeeded, Some(303))
    );
    assert_eq!(receiver.seen().len(), 1);
}

/// The time of an attempt is over all its requests: whoever drops it ends the one that is under way.
#[tokio::test]
async fn dropping_a_delivery_after_a_redirect_closes_the_connection() {
    let receiver = Receiver::scripted(|no| {
        if no < 2 {
            redirect(307, "/next")
        } else {
            vec![Step::Hang]
        }
    })
    .await;
    let executor = executor();
    let delivery = executor.execute(order(following(&receiver.url("/")), Some("{}")));
    let late = tokio::time::timeout(Duration::from_millis(500), delivery).await;
    assert!(late.is_err(), "{late:?}");
    assert_eq!(receiver.seen().len(), 3);
    receiver.ended(receiver.accepted()).await;
}

/// An answer that is too long to be read to its end costs its connection, and no more.
#[tokio::test]
async fn a_redirect_with_a_long_body_is_followed_over_another_connection() {
    let receiver = Receiver::scripted(|no| {
        if no > 0 {
            return say(OK);
        }
        let head = "HTTP/1.1 307 Moved\r\nlocation: /x\r\nconnection: close\r\n\r\n";
        vec![Step::Say(head.into()), Step::Flood(vec![b'x'; 4096])]
    })
    .await;
    assert_eq!(
        deliver(following(&receiver.url("/"))).await.outcome,
        Outcome::Succeeded
    );
    assert_eq!(receiver.accepted(), 2);
}

/// A name that leads to 127.0.0.1 at first, and elsewhere from the second look-up on.
#[derive(Default)]
struct Rebinding(AtomicUsize);

#[async_trait]
impl Resolve for Rebinding {
    async fn lookup(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        let first = self.0.fetch_add(1, Ordering::SeqCst) == 0;
        let address = if first { "127.0.0.1" } else { "127.0.0.2" };
        Ok(vec![address.parse().map_err(io::Error::other)?])
    }
}

#[tokio::test]
async fn a_redirect_that_needs_another_connection_passes_the_egress_guard_again() {
    let away =
        "HTTP/1.1 307 Moved\r\nlocation: /x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let receiver = Receiver::playing(vec![Step::Say(away.into()), Step::Close]).await;
    let egress = Egress::new("127.0.0.1".parse().unwrap(), "any".parse().unwrap());
    let names = Arc::new(Rebinding::default());
    let dialer = Dialer::resolving(Arc::new(egress), names.clone());
    let executor = HttpExecutor::new(Arc::new(dialer)).unwrap();
    let url = format!("http://rebind.example:{}/", receiver.address.port());
    let report = soon(executor.execute(order(following(&url), Some("{}")))).await;
    assert_eq!(names.0.load(Ordering::SeqCst), 2, "{report:?}");
    assert_eq!(receiver.seen().len(), 1, "{report:?}");
    let error = report.error.unwrap_or_default();
    assert!(error.contains("which this node may not call"), "{error}");
}
