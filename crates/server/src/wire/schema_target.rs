//! Where runs are to go, as the contract describes it.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

/// An address, or an object that says what kind it is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum TargetForm {
    Short(String),
    Full(Box<TargetRequest>),
}

/// Where runs go: one of them.
#[derive(Debug, Serialize, ToSchema)]
pub struct TargetRequest {
    /// A request over HTTP.
    pub http: Option<HttpRequest>,
    /// A command on the machine of the node that runs it, which the node must allow.
    pub shell: Option<ShellRequest>,
    /// A script, run in a sandbox on the machine of the node that executes it, which must have its interpreter.
    pub python: Option<PythonRequest>,
}

/// A script. Its sandbox has namespaces of its own, no network, a read-only system, and a home and a folder for temporary files
/// that are gone with it. What it writes to file descriptor 3, `{"result": …}` on a line of its own, is kept as its output.
#[derive(Debug, Serialize, ToSchema)]
pub struct PythonRequest {
    /// Its source, up to 64 KiB.
    pub source: String,
    /// What runs it, by its absolute path: `/usr/bin/python3` by default.
    pub interpreter: Option<String>,
    /// Its arguments, as they are.
    pub args: Option<Vec<String>>,
    /// Its environment, besides PATH, HOME and what begins with `PUNCTUAL_`. Values may be templates.
    pub env: Option<BTreeMap<String, String>>,
    /// Exit codes that are success, instead of 0.
    pub success: Option<Vec<u8>>,
    /// Exit codes after which it is tried again after the job's delays also beyond its `attempts_max`, 100 times at most.
    pub retry: Option<Vec<u8>>,
    /// Exit codes that are failures: the job's `retry` decides. So are all that are not named.
    pub fail: Option<Vec<u8>>,
    /// Exit codes after which trying again cannot help: the run is dead at once.
    pub dead: Option<Vec<u8>>,
    /// Bytes of its output that are kept, of its head and its end, or of its result: 4096 by default, 65536 at most.
    pub output_max: Option<u32>,
}

/// A command. It runs in a process group of its own, with an environment of its own, and nothing that it started outlives it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ShellRequest {
    /// The program, by its absolute path, and its arguments, as they are. No shell reads them.
    pub command: Vec<String>,
    /// The folder it starts in, by its absolute path; otherwise an empty one of its own, which is removed after it.
    pub dir: Option<String>,
    /// Its environment, besides PATH, HOME and what begins with `PUNCTUAL_`. Values may be templates.
    pub env: Option<BTreeMap<String, String>>,
    /// Exit codes that are success, instead of 0.
    pub success: Option<Vec<u8>>,
    /// Exit codes after which it is tried again after the job's delays also beyond its `attempts_max`, 100 times at most.
    pub retry: Option<Vec<u8>>,
    /// Exit codes that are failures: the job's `retry` decides. So are all that are not named.
    pub fail: Option<Vec<u8>>,
    /// Exit codes after which trying again cannot help: the run is dead at once.
    pub dead: Option<Vec<u8>>,
    /// Bytes of its output that are kept, of its head and its end: 4096 by default, 65536 at most.
    pub output_max: Option<u32>,
}

/// A request over HTTP.
#[derive(Debug, Serialize, ToSchema)]
pub struct HttpRequest {
    /// With `http://` or `https://`, and without a user name or password. Its path and query may be a template.
    pub url: String,
    /// GET, POST (the default), PUT, PATCH, DELETE or HEAD.
    pub method: Option<String>,
    /// Sent besides our own, which cannot be set.
    pub headers: Option<BTreeMap<String, String>>,
    /// A template for what is sent, instead of the payload as it is. Values are written as JSON.
    pub body: Option<String>,
    /// Bytes of the answer that are kept: 4096 by default, 65536 at most.
    pub output_max: Option<u32>,
    /// Headers of the answer that are kept with each attempt, up to 8; values whose name says secret are `***`.
    pub keep_headers: Option<Vec<String>>,
    /// What counts as success, instead of any status of 2xx.
    pub success: Option<SuccessRequest>,
    /// `same_origin`: redirects within the same scheme, host and port are followed, up to 5; `none`, the default: they are the answer.
    pub redirects: Option<String>,
    /// Certificates of its own, for an https URL.
    pub tls: Option<TlsRequest>,
}

/// Names of secrets that hold certificates in PEM, and may be sent to the host. In an edit, what is not mentioned stays.
#[derive(Debug, Serialize, ToSchema)]
pub struct TlsRequest {
    /// Authorities that are trusted beside the public ones.
    pub ca: Option<String>,
    /// The certificate that is shown to the target, with those that it rests on; comes with `key`.
    pub cert: Option<String>,
    /// Its private key.
    pub key: Option<String>,
}

/// What counts as success: all that is named. In an edit, what is not mentioned stays.
#[derive(Debug, Serialize, ToSchema)]
pub struct SuccessRequest {
    /// `404`, `"2xx"` or `"300-399"`, or a list of them; without it any 2xx.
    pub status: Option<StatusesForm>,
    /// What the answer must say. Of an answer 64 KiB are read for it.
    pub json: Option<JsonEqualsRequest>,
}

/// A status, a range of them, or a list of both.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum StatusesForm {
    One(u16),
    Range(String),
    Several(Vec<serde_json::Value>),
}

/// A place in an answer that is JSON, and the value that it must have.
#[derive(Debug, Serialize, ToSchema)]
pub struct JsonEqualsRequest {
    /// A JSON pointer, RFC 6901, such as `/ok`.
    pub pointer: String,
    /// Any JSON; numbers are compared as numbers.
    pub equals: serde_json::Value,
}

/// Another address, or an object with what is to change about the target.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum TargetPatchForm {
    Short(String),
    Full(Box<TargetPatch>),
}

/// What is to change about the target.
#[derive(Debug, Serialize, ToSchema)]
pub struct TargetPatch {
    /// A request over HTTP; what is not mentioned stays.
    pub http: Option<HttpPatch>,
    /// A command; what is not mentioned stays.
    pub shell: Option<ShellPatch>,
    /// A script; what is not mentioned stays.
    pub python: Option<PythonPatch>,
}

/// What is to change about a script.
#[derive(Debug, Serialize, ToSchema)]
pub struct PythonPatch {
    /// Another source.
    pub source: Option<String>,
    /// Another interpreter.
    pub interpreter: Option<String>,
    /// All of its arguments.
    pub args: Option<Vec<String>>,
    /// Merged by name; `null` takes a variable away.
    pub env: Option<BTreeMap<String, Option<String>>>,
    /// All exit codes that are success.
    pub success: Option<Vec<u8>>,
    /// All exit codes after which it is tried again also beyond `attempts_max`.
    pub retry: Option<Vec<u8>>,
    /// All exit codes that are named as failures.
    pub fail: Option<Vec<u8>>,
    /// All exit codes after which trying again cannot help.
    pub dead: Option<Vec<u8>>,
    /// Bytes of its output that are kept: 65536 at most.
    pub output_max: Option<u32>,
}

/// What is to change about a command.
#[derive(Debug, Serialize, ToSchema)]
pub struct ShellPatch {
    /// Another program and its arguments.
    pub command: Option<Vec<String>>,
    /// The folder it starts in.
    pub dir: Option<String>,
    /// Merged by name; `null` takes a variable away.
    pub env: Option<BTreeMap<String, Option<String>>>,
    /// All exit codes that are success.
    pub success: Option<Vec<u8>>,
    /// All exit codes after which it is tried again also beyond `attempts_max`.
    pub retry: Option<Vec<u8>>,
    /// All exit codes that are named as failures.
    pub fail: Option<Vec<u8>>,
    /// All exit codes after which trying again cannot help.
    pub dead: Option<Vec<u8>>,
    /// Bytes of its output that are kept: 65536 at most.
    pub output_max: Option<u32>,
}

/// What is to change about a request over HTTP.
#[derive(Debug, Serialize, ToSchema)]
pub struct HttpPatch {
    /// Another address.
    pub url: Option<String>,
    /// GET, POST, PUT, PATCH, DELETE or HEAD.
    pub method: Option<String>,
    /// Merged by name; `null` takes a header away.
    pub headers: Option<BTreeMap<String, Option<String>>>,
    /// A template for what is sent.
    pub body: Option<String>,
    /// Bytes of the answer that are kept: 65536 at most.
    pub output_max: Option<u32>,
    /// All headers of the answer that are to be kept.
    pub keep_headers: Option<Vec<String>>,
    /// What counts as success.
    pub success: Option<SuccessRequest>,
    /// `same_origin` or `none`.
    pub redirects: Option<String>,
    /// Certificates of its own.
    pub tls: Option<TlsRequest>,
}
