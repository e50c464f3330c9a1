//! A small client for the server's own API: one connection per call, HTTP/1.1, no redirects. What goes
//! wrong becomes a [`Failure`]: no answer is code 3, a problem document code 1 with its detail and field.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::failure::{Failure, chain};

const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// Longer than the server itself waits for anything.
const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// A page of a thousand jobs with their payloads fits.
const ANSWER_MAX: usize = 512 * 1024 * 1024;

#[derive(Debug, Clone)]
pub struct Client {
    host: String,
    port: u16,
    /// Host and port as they stand in the URL.
    authority: String,
    /// The path before `/v1`; empty unless the server sits behind a proxy.
    base: String,
}

/// One request.
#[derive(Debug, Clone)]
pub struct Call {
    pub method: Method,
    /// With its query.
    pub path: String,
    pub headers: Vec<(HeaderName, String)>,
    pub body: Option<Bytes>,
}

impl Call {
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: Vec::new(),
            body: None,
        }
    }

    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path)
    }

    pub fn json(mut self, body: impl Into<Bytes>) -> Self {
        self.body = Some(body.into());
        self.header(CONTENT_TYPE, "application/json")
    }

    pub fn header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// One answer, read to its end.
struct Answer {
    status: StatusCode,
    body: Bytes,
}

/// What a server says when it refuses.
#[derive(Debug, Default, Deserialize)]
struct Problem {
    title: Option<String>,
    detail: Option<String>,
    field: Option<String>,
}

impl Client {
    pub fn new(url: &str) -> Result<Self, Failure> {
        let refused = |why: &str| {
            Failure::usage(format!(
                "{url:?} is not a server: {why}, as in http://127.0.0.1:7710"
            ))
        };
        let uri: Uri = url.parse().map_err(|_| refused("write a URL"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(refused("https is not spoken here yet; use http")),
            Some(_) | None => return Err(refused("write a URL with http://")),
        }
        if uri.query().is_some() {
            return Err(refused("a URL without a query"));
        }
        let authority = uri.authority().ok_or_else(|| refused("write a host"))?;
        if authority.as_str().contains('@') {
            return Err(refused("a URL without a user name"));
        }
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        Ok(Self {
            host,
            port: authority.port_u16().unwrap_or(80),
            authority: authority.as_str().to_owned(),
            base: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    /// The answer's body, if the server did what it was asked.
    pub async fn send(&self, call: Call) -> Result<Bytes, Failure> {
        self.answer(call).await?.taken()
    }

    /// The same, for what may not be there: none if the server has no such thing.
    pub async fn find(&self, call: Call) -> Result<Option<Bytes>, Failure> {
        let answer = self.answer(call).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        answer.taken().map(Some)
    }

    async fn answer(&self, call: Call) -> Result<Answer, Failure> {
        let mut request = self.request(
            &call.method,
            &call.path,
            Full::new(call.body.unwrap_or_default()),
        )?;
        for (name, value) in call.headers {
            let value = HeaderValue::try_from(value)
                .map_err(|_| Failure::usage(format!("{name} cannot be sent as a header")))?;
            request.headers_mut().append(name, value);
        }
        let talk = async { self.whole(self.exchange(request).await?).await };
        timeout(ANSWER_WAIT, talk)
            .await
            .map_err(|_| self.silent("took too long to answer"))?
    }

    /// Sends a body as it comes, and hands out the answer as it comes.
    pub async fn stream<B>(
        &self,
        path: &str,
        kind: &str,
        body: B,
    ) -> Result<Response<Incoming>, Failure>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut request = self.request(&Method::POST, path, body)?;
        let kind =
            HeaderValue::try_from(kind).map_err(|error| Failure::usage(error.to_string()))?;
        request.headers_mut().insert(CONTENT_TYPE, kind);
        let answer = self.exchange(request).await?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        match self.whole(answer).await?.taken() {
            Ok(_) => Err(Failure::refused("the server did not take the batch")),
            Err(failure) => Err(failure),
        }
    }

    /// The answer broke off.
    pub fn silent(&self, why: &str) -> Failure {
        Failure::unreachable(format!("the server at {} {why}", self.authority))
    }

    fn request<B>(&self, method: &Method, path: &str, body: B) -> Result<Request<B>, Failure> {
        Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(HOST, &self.authority)
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, concat!("punctual/", env!("CARGO_PKG_VERSION")))
            .body(body)
            .map_err(|error| Failure::usage(error.to_string()))
    }

    async fn exchange<B>(&self, request: Request<B>) -> Result<Response<Incoming>, Failure>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let absent = |why: String| {
            Failure::unreachable(format!(
                "no server answers at {}: {why}; start one with `punctual serve`",
                self.authority
            ))
        };
        let stream = timeout(
            CONNECT_WAIT,
            TcpStream::connect((self.host.as_str(), self.port)),
        )
        .await
        .map_err(|_| absent("it took too long".to_owned()))?
        .map_err(|error| absent(error.to_string()))?;
        let broken = |error: hyper::Error| self.silent(&format!("broke off: {}", chain(&error)));
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(broken)?;
        // The connection works for as long as the answer is read; its errors are the answer's.
        tokio::spawn(connection);
        sender.send_request(request).await.map_err(broken)
    }

    /// Reads an answer to its end.
    async fn whole(&self, answer: Response<Incoming>) -> Result<Answer, Failure> {
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_MAX).collect().await;
        let body = body
            .map_err(|error| self.silent(&format!("broke off: {error}")))?
            .to_bytes();
        Ok(Answer { status, body })
    }
}

impl Answer {
    /// Its body; a refusal becomes a failure.
    fn taken(self) -> Result<Bytes, Failure> {
        if self.status.is_success() {
            Ok(self.body)
        } else {
            Err(refusal(self.status, &self.body))
        }
    }
}

/// A problem document in one line: its detail, and the field in brackets.
fn refusal(status: StatusCode, body: &[u8]) -> Failure {
    let problem: Problem = serde_json::from_slice(body).unwrap_or_default();
    let text = problem
        .detail
        .or(problem.title)
        .unwrap_or_else(|| format!("the server answered {status}"));
    Failure::refused(match problem.field {
        Some(field) => format!("{text} ({field})"),
        None => text,
    })
}

/// A text as one segment of a path, or one value of a query.
pub fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// A path and what is asked of it.
pub fn with_query(path: &str, parts: &[(&str, String)]) -> String {
    let parts: Vec<String> = parts
        .iter()
        .map(|(name, value)| format!("{name}={}", encode(value)))
        .collect();
    let mark = if parts.is_empty() { "" } else { "?" };
    format!("{path}{mark}{}", parts.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Code;

    #[test]
    fn only_urls_that_can_be_called_are_servers() {
        let client = Client::new("http://[::1]:99/behind/").unwrap();
        assert_eq!(
            (client.host.as_str(), client.port, client.base.as_str()),
            ("::1", 99, "/behind")
        );
        assert_eq!(Client::new("http://localhost").unwrap().port, 80);
        for url in [
            "",
            "localhost:7710",
            "https://a",
            "ftp://a",
            "http://a?b",
            "http://u@a",
            "http://",
        ] {
            assert_eq!(Client::new(url).unwrap_err().code, Code::Usage, "{url}");
        }
    }

    #[test]
    fn refusals_say_the_detail_and_the_field() {
        let check = |body: &str, expected: &str| {
            assert_eq!(
                refusal(StatusCode::BAD_REQUEST, body.as_bytes()).text,
                expected
            );
        };
        check(
            r#"{"detail": "minute 75", "field": "schedule.cron"}"#,
            "minute 75 (schedule.cron)",
        );
        check(r#"{"title": "No such job"}"#, "No such job");
        check("<html>", "the server answered 400 Bad Request");
    }

    #[test]
    fn keys_with_slashes_are_one_segment() {
        assert_eq!(encode("a/b c%ü"), "a%2Fb%20c%25%C3%BC");
        let at = ("at", "2027-01-01T00:00+01:00".to_owned());
        assert_eq!(
            with_query("/x", &[at]),
            "/x?at=2027-01-01T00%3A00%2B01%3A00"
        );
        assert_eq!(with_query("/x", &[]), "/x");
    }
}
