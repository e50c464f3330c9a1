//! Where a job's runs go, as we answer it.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};
use model::{Redirects, Target as ModelTarget, mask};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// Where work goes.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct Target {
    /// A request over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpTarget>,
    /// A command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<ShellTarget>,
    /// A script in a sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub python: Option<PythonTarget>,
}

/// A script, run in a sandbox on the machine of the node that executes it.
#[derive(Debug, Serialize, ToSchema)]
pub struct PythonTarget {
    /// Its source.
    #[schema(example = "print(\"done\")")]
    pub source: String,
    /// What runs it.
    #[schema(example = "/usr/bin/python3")]
    pub interpreter: String,
    /// Its arguments.
    #[schema(example = json!(["--days", "7"]))]
    pub args: Vec<String>,
    /// Its environment besides our own variables. Values that are secret by their name or their looks are `***`; written back
    /// so, they stay as they are.
    pub env: BTreeMap<String, String>,
    /// Exit codes that are success; 0 where it is not said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub success: Vec<u8>,
    /// Exit codes after which it is tried again also beyond `attempts_max`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retry: Vec<u8>,
    /// Exit codes that are failures, as are all that are not named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fail: Vec<u8>,
    /// Exit codes after which the run is dead at once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dead: Vec<u8>,
    /// Bytes of its output, or of its result, that are kept.
    #[schema(example = 4096)]
    pub output_max: usize,
}

/// A command on the machine of the node that runs it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ShellTarget {
    /// The program, by its absolute path, and its arguments. No shell reads them.
    #[schema(example = json!(["/usr/bin/pg_dump", "--file=/srv/dumps/shop.sql", "shop"]))]
    pub command: Vec<String>,
    /// The folder it starts in; an empty one of its own where it is not said.
    #[schema(example = "/srv/reports")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    /// Its environment besides our own variables. Values that are secret by their name or their looks are `***`; written back
    /// so, they stay as they are.
    pub env: BTreeMap<String, String>,
    /// Exit codes that are success; 0 where it is not said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub success: Vec<u8>,
    /// Exit codes after which it is tried again also beyond `attempts_max`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retry: Vec<u8>,
    /// Exit codes that are failures, as are all that are not named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fail: Vec<u8>,
    /// Exit codes after which the run is dead at once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dead: Vec<u8>,
    /// Bytes of its output that are kept.
    pub output_max: usize,
}

/// A request over HTTP.
#[derive(Debug, Serialize, ToSchema)]
pub struct HttpTarget {
    /// The address. Parameters that look like secrets are `***`.
    pub url: String,
    /// The method.
    pub method: String,
    /// Sent besides our own. Values whose name says that they are secret are `***`; written back so, they stay as they are.
    pub headers: BTreeMap<String, String>,
    /// A template for what is sent; the payload as it is where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Bytes of the answer that are kept.
    pub output_max: usize,
    /// Headers of the answer that are kept with each attempt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keep_headers: Vec<String>,
    /// What counts as success; any status of 2xx where it is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success: Option<Success>,
    /// Which redirects are followed; none where it is not said.
    #[schema(example = "same_origin")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirects: Option<&'static str>,
    /// Certificates of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsNames>,
}

/// Names of secrets that hold certificates in PEM.
#[derive(Debug, Serialize, ToSchema)]
pub struct TlsNames {
    /// Authorities that are trusted beside the public ones.
    #[schema(example = "our-ca")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
    /// The certificate that is shown to the target, with those that it rests on.
    #[schema(example = "our-cert")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert: Option<String>,
    /// Its private key.
    #[schema(example = "our-key")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// What counts as success: all that is named.
#[derive(Debug, Serialize, ToSchema)]
pub struct Success {
    /// Statuses, `2xx` for a hundred of them, or a range.
    #[schema(example = json!(["2xx", "404"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Vec<String>>,
    /// What the answer must say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<JsonEquals>,
}

/// A place in an answer that is JSON, and the value that it must have.
#[derive(Debug, Serialize, ToSchema)]
pub struct JsonEquals {
    /// A JSON pointer, RFC 6901.
    #[schema(example = "/ok")]
    pub pointer: String,
    /// Any JSON.
    #[schema(value_type = serde_json::Value)]
    pub equals: Option<Box<RawValue>>,
}

impl Target {
    pub(super) fn of(target: &ModelTarget) -> Self {
        match target {
            ModelTarget::Http(http) => Self {
                http: Some(HttpTarget::of(http)),
                ..Self::default()
            },
            ModelTarget::Shell(shell) => Self {
                shell: Some(ShellTarget::of(shell)),
                ..Self::default()
            },
            ModelTarget::Python(python) => Self {
                python: Some(PythonTarget::of(python)),
                ..Self::default()
            },
        }
    }
}

impl PythonTarget {
    fn of(python: &model::PythonTarget) -> Self {
        let ShellTarget {
            command: _,
            dir: _,
            env,
            success,
            retry,
            fail,
            dead,
            output_max,
        } = ShellTarget::of(&python.program);
        Self {
            source: python.source.clone(),
            interpreter: python.interpreter().to_owned(),
            args: python.args().to_vec(),
            env,
            success,
            retry,
            fail,
            dead,
            output_max,
        }
    }
}

/// The program of a command and its arguments, or a script's interpreter and first line, for people; empty for other targets.
pub(crate) fn command_line(target: &Target) -> String {
    if let Some(shell) = &target.shell {
        return shell.command.join(" ");
    }
    let python = target.python.as_ref();
    python.map_or_else(String::new, |python| {
        let first = python.source.lines().find(|line| !line.trim().is_empty());
        format!("{} {}", python.interpreter, first.unwrap_or_default())
    })
}

impl ShellTarget {
    fn of(shell: &model::ShellTarget) -> Self {
        let shown = |(name, value): &(String, String)| {
            let value = mask::shown_env(name, value).into_owned();
            (name.clone(), value)
        };
        Self {
            command: shell.command.clone(),
            dir: shell.dir.clone(),
            env: shell.env.iter().map(shown).collect(),
            success: shell.exit.success.iter().collect(),
            retry: shell.exit.retry.iter().collect(),
            fail: shell.exit.fail.iter().collect(),
            dead: shell.exit.dead.iter().collect(),
            output_max: shell.output_max,
        }
    }
}

impl HttpTarget {
    fn of(http: &model::target::HttpTarget) -> Self {
        let shown = |(name, value): &(HeaderName, HeaderValue)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            let value = mask::shown_header(name.as_str(), &value);
            (name.to_string(), value.into_owned())
        };
        Self {
            url: mask::shown_address(http),
            method: http.method.to_string(),
            headers: http.headers.iter().map(shown).collect(),
            body: http.body.clone(),
            output_max: http.output_max,
            keep_headers: http.keep_headers.iter().map(ToString::to_string).collect(),
            success: http.success.as_ref().map(Success::of),
            redirects: match http.redirects {
                Redirects::None => None,
                Redirects::SameOrigin => Some(http.redirects.as_str()),
            },
            tls: http.tls.as_ref().map(|tls| TlsNames {
                ca: tls.ca.as_ref().map(ToString::to_string),
                cert: tls.cert.as_ref().map(ToString::to_string),
                key: tls.key.as_ref().map(ToString::to_string),
            }),
        }
    }
}

impl Success {
    fn of(rule: &model::Success) -> Self {
        let status = rule.status.as_ref();
        Self {
            status: status.map(|it| it.ranges().iter().map(ToString::to_string).collect()),
            json: rule.json.as_ref().map(|json| JsonEquals {
                pointer: json.pointer.clone(),
                equals: RawValue::from_string(json.equals.clone()).ok(),
            }),
        }
    }
}
