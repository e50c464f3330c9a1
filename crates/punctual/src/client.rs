//! A small client for the server's own API: one connection per call, HTTP/1.1 with or without TLS, no redirects.
//! What goes wrong becomes a [`Failure`]: no answer is code 3, a problem document code 1, in the words of the
//! command line.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body, Incoming};
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT,
};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::cli::words;
use crate::failure::{Failure, chain};
use crate::tls::{self, Trust};

const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// Longer than the server itself waits for anything.
const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// A page of a thousand jobs with their payloads fits.
const ANSWER_MAX: usize = 512 * 1024 * 1024;

#[derive(Clone)]
pub(crate) struct Client {
    /// None where the server is spoken to in the clear.
    tls: Option<TlsConnector>,
    host: String,
    port: u16,
    /// Host and port as they stand in the URL.
    authority: String,
    /// The path before `/v1`; empty unless the server sits behind a proxy.
    base: String,
    /// Sent with every request; marked so that nothing shows it.
    key: Option<HeaderValue>,
}

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub method: Method,
    /// With its query.
    pub path: String,
    pub headers: Vec<(HeaderName, String)>,
    pub body: Option<Bytes>,
    /// Its author wrote the JSON: a refusal names the field as it stands there, not a flag.
    of_file: bool,
}

/// What requests and answers travel on.
trait Link: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Link for T {}

impl Call {
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: Vec::new(),
            body: None,
            of_file: false,
        }
    }

    pub(crate) fn of_file(mut self, of_file: bool) -> Self {
        self.of_file = of_file;
        self
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path)
    }

    pub(crate) fn json(mut self, body: impl Into<Bytes>) -> Self {
        self.body = Some(body.into());
        self.header(CONTENT_TYPE, "application/json")
    }

    pub(crate) fn header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// One answer, read to its end.
struct Answer {
    status: StatusCode,
    body: Bytes,
    of_file: bool,
}

impl Client {
    /// A server by its address.
    pub(crate) fn new(url: &str, trust: &Trust) -> Result<Self, Failure> {
        let refused = |why: &str| {
            Failure::usage(format!(
                "{url:?} is not a server: {why}, as in http://127.0.0.1:7710"
            ))
        };
        let uri: Uri = url.parse().map_err(|_| refused("write a URL"))?;
        let tls = match uri.scheme_str() {
            Some("http") => None,
            Some("https") => Some(tls::connector(trust)?),
            Some(_) | None => return Err(refused("write a URL with http:// or https://")),
        };
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
        let port = if tls.is_some() { 443 } else { 80 };
        Ok(Self {
            tls,
            host,
            port: authority.port_u16().unwrap_or(port),
            authority: authority.as_str().to_owned(),
            base: uri.path().trim_end_matches('/').to_owned(),
            key: None,
        })
    }

    /// The key that opens the server.
    pub(crate) fn with_key(mut self, key: Option<String>) -> Result<Self, Failure> {
        let header = |key: String| {
            let mut value = HeaderValue::try_from(format!("Bearer {key}"))
                .map_err(|_| Failure::usage("the key holds what no key can hold"))?;
            value.set_sensitive(true);
            Ok(value)
        };
        self.key = key.map(header).transpose()?;
        Ok(self)
    }

    /// The answer's body, if the server did as requested.
    pub(crate) async fn send(&self, call: Call) -> Result<Bytes, Failure> {
        self.answer(call).await?.taken()
    }

    /// The same, for what may not be there: none if the server has no such thing.
    pub(crate) async fn find(&self, call: Call) -> Result<Option<Bytes>, Failure> {
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
        let of_file = call.of_file;
        let talk = async { self.whole(self.exchange(request).await?, of_file).await };
        timeout(ANSWER_WAIT, talk)
            .await
            .map_err(|_| self.silent("took too long to answer"))?
    }

    /// Sends a body as it comes, and hands out the answer as it comes.
    pub(crate) async fn stream<B>(
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
        match self.whole(answer, true).await?.taken() {
            Ok(_) => Err(Failure::refused("the server did not take the batch")),
            Err(failure) => Err(failure),
        }
    }

    /// Hands out an answer as it comes, however long it is.
    pub(crate) async fn download(&self, path: &str) -> Result<Response<Incoming>, Failure> {
        let request = self.request(&Method::GET, path, Full::new(Bytes::new()))?;
        let answer = self.exchange(request).await?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        match self.whole(answer, false).await?.taken() {
            Ok(_) => Err(Failure::refused(
                "the server did not send what was requested",
            )),
            Err(failure) => Err(failure),
        }
    }

    /// Where a path of the server is, for a browser.
    pub(crate) fn url(&self, path: &str) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}{}{path}", self.authority, self.base)
    }

    /// The answer broke off.
    pub(crate) fn silent(&self, why: &str) -> Failure {
        Failure::unreachable(format!("the server at {} {why}", self.authority))
    }

    fn request<B>(&self, method: &Method, path: &str, body: B) -> Result<Request<B>, Failure> {
        let mut request = Request::builder();
        if let (Some(key), Some(headers)) = (&self.key, request.headers_mut()) {
            headers.insert(AUTHORIZATION, key.clone());
        }
        request
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
        let stream = timeout(CONNECT_WAIT, self.secure(stream))
            .await
            .map_err(|_| absent("it took too long".to_owned()))??;
        let broken = |error: hyper::Error| self.silent(&format!("broke off: {}", chain(&error)));
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(broken)?;
        // The connection works for as long as the answer is read; its errors are the answer's.
        tokio::spawn(connection);
        sender.send_request(request).await.map_err(broken)
    }

    /// The link as it is, or TLS on it.
    async fn secure(&self, stream: TcpStream) -> Result<Box<dyn Link>, Failure> {
        let Some(tls) = &self.tls else {
            return Ok(Box::new(stream));
        };
        let name = ServerName::try_from(self.host.clone())
            .map_err(|_| Failure::usage(format!("{:?} is no name of a server", self.host)))?;
        let refused = |error: std::io::Error| {
            let fix = if tls::is_distrust(&error) {
                "--server-ca names an authority to trust"
            } else {
                "if it speaks no TLS, write http://"
            };
            let at = &self.authority;
            Failure::unreachable(format!("no TLS with {at}: {error}; {fix}"))
        };
        let stream = tls.connect(name, stream).await.map_err(refused)?;
        Ok(Box::new(stream))
    }

    /// Reads an answer to its end.
    async fn whole(&self, answer: Response<Incoming>, of_file: bool) -> Result<Answer, Failure> {
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_MAX).collect().await;
        let body = body
            .map_err(|error| self.silent(&format!("broke off: {error}")))?
            .to_bytes();
        Ok(Answer {
            status,
            body,
            of_file,
        })
    }
}

impl Answer {
    /// Its body; a refusal becomes a failure.
    fn taken(self) -> Result<Bytes, Failure> {
        if self.status.is_success() {
            Ok(self.body)
        } else {
            Err(refusal(self.status, &self.body, self.of_file))
        }
    }
}

/// A problem document in one line: its detail, and in brackets the flag or the field of the file.
fn refusal(status: StatusCode, body: &[u8], of_file: bool) -> Failure {
    let problem: Option<Value> = serde_json::from_slice(body).ok().filter(Value::is_object);
    let Some(problem) = problem else {
        return Failure::refused(format!("the server answered {status}"));
    };
    let failure = Failure::refused(
        refusal_text(&problem, of_file).unwrap_or_else(|| format!("the server answered {status}")),
    );
    Failure {
        problem: Some(problem),
        ..failure
    }
}

/// A problem in the words of the command line.
pub(crate) fn refusal_text(problem: &Value, of_file: bool) -> Option<String> {
    let said = problem["detail"].as_str().or(problem["title"].as_str())?;
    let text = words::detail(said);
    let field = match problem["field"].as_str() {
        Some(field) if of_file => Some(field.to_owned()),
        Some(field) => words::flag(field),
        None => None,
    };
    Some(match field {
        Some(field) => format!("{text} ({field})"),
        None => text.into_owned(),
    })
}

/// A text as one segment of a path, or one value of a query.
pub(crate) fn encode(text: &str) -> String {
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

/// A path and its parameters.
pub(crate) fn with_query(path: &str, parts: &[(&str, String)]) -> String {
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
        let new = |url: &str| Client::new(url, &Trust::default());
        let client = new("http://[::1]:99/behind/").unwrap();
        assert_eq!(
            (client.host.as_str(), client.port, client.base.as_str()),
            ("::1", 99, "/behind")
        );
        assert_eq!(new("http://localhost").unwrap().port, 80);
        let secure = new("https://localhost").unwrap();
        assert!(secure.port == 443 && secure.tls.is_some());
        for url in [
            "",
            "localhost:7710",
            "ftp://a",
            "http://a?b",
            "http://u@a",
            "http://",
        ] {
            let code = new(url)
                .map(|_| Code::Fine)
                .unwrap_or_else(|failure| failure.code);
            assert_eq!(code, Code::Usage, "{url}");
        }
    }

    #[test]
    fn refusals_say_the_detail_and_the_flag_or_the_field_of_a_file() {
        let check = |body: &str, of_file: bool, expected: &str| {
            let failure = refusal(StatusCode::BAD_REQUEST, body.as_bytes(), of_file);
            assert_eq!(failure.text, expected);
        };
        let body = r#"{"detail": "minute 75", "field": "schedule.cron"}"#;
        check(body, false, "minute 75 (--cron)");
        check(body, true, "minute 75 (schedule.cron)");
        check(r#"{"title": "No such job"}"#, false, "No such job");
        check("<html>", false, "the server answered 400 Bad Request");
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
