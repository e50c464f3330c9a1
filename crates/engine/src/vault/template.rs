//! Templates: `Bearer {{ secret('name') }}`, `/reports/{{ slot|date('%Y-%m-%d') }}`. There is one template language, and it
//! knows a job, a run, its payload and secrets. What a rendering may take is bounded in steps, in bytes and by what it can
//! say at all (`scan`); it can read nothing else.
//!
//! Values are written as their place has it: as JSON in a body, percent-encoded in a path, as they are in a header.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use http::uri::PathAndQuery;
use minijinja::{Environment, Error, ErrorKind, Output, UndefinedBehavior, Value};
use model::schedule::Zone;
use model::{SecretName, Target, Timestamp, limits};

use super::facts::Facts;
use super::meter::Meter;
use super::scan::{Flaw, Scan, scan};

/// What a text that is a template holds.
const MARKS: [&[u8]; 2] = [b"{{", b"{%"];
/// Steps of one rendering, and how deep it may nest.
const FUEL: u64 = 10_000;
const FUEL_MIN: u64 = 1_000;
/// Bytes that all steps of a rendering may copy or search together, where loops do so. Where values are long there are fewer steps.
const COPIED_MAX: usize = 40 * 1024 * 1024;
const DEPTH_MAX: usize = 10;

/// A template that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TemplateError(pub String);

impl From<Flaw> for TemplateError {
    fn from(Flaw { line, why }: Flaw) -> Self {
        Self(format!("line {line}: {why}"))
    }
}

/// Where a template stands, and so how values are written into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Header,
    Path,
    Body,
    /// A variable of a command.
    Env,
}

impl Place {
    /// Bytes that may come of it.
    fn bytes_max(self) -> usize {
        match self {
            Self::Header | Self::Path | Self::Env => limits::RENDERED_LINE_MAX,
            Self::Body => limits::PAYLOAD_MAX,
        }
    }
}

/// Whether a value has to be rendered before it is sent.
pub fn is_template(value: &[u8]) -> bool {
    value.windows(2).any(|at| MARKS.contains(&at))
}

/// Whether anything of a target has to be, or it has certificates in secrets.
pub fn is_in(target: &Target) -> bool {
    match target {
        Target::Http(http) => {
            http.tls.is_some() || http.path.is_some() || http.body.is_some() || {
                let mut headers = http.headers.iter();
                headers.any(|(_, value)| is_template(value.as_bytes()))
            }
        }
        Target::Shell(_) | Target::Python(_) => {
            let mut env = target.program().into_iter().flat_map(|it| &it.env);
            env.any(|(_, value)| is_template(value.as_bytes()))
        }
    }
}

/// The templates of a target, each with its field below it.
pub fn all_of(target: &Target) -> Vec<(String, Place, String)> {
    let http = match target {
        Target::Http(http) => http,
        Target::Shell(_) | Target::Python(_) => {
            let env = target.program().into_iter().flat_map(|it| &it.env);
            let env = env.filter(|(_, value)| is_template(value.as_bytes()));
            let field = |name: &str| format!("{}.env.{name}", target.kind());
            return env
                .map(|(name, value)| (field(name), Place::Env, value.clone()))
                .collect();
        }
    };
    let headers = http.headers.iter();
    let headers = headers.filter(|(_, value)| is_template(value.as_bytes()));
    let headers = headers.map(|(name, value)| {
        let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (format!("http.headers.{name}"), Place::Header, text)
    });
    let path = http.path.iter();
    let path = path.map(|path| ("http.url".to_owned(), Place::Path, path.clone()));
    let body = http.body.iter();
    let body = body.map(|body| ("http.body".to_owned(), Place::Body, body.clone()));
    headers.chain(path).chain(body).collect()
}

/// Reads a template, and names the secrets that it uses.
pub fn check(text: &str, place: Place) -> Result<BTreeSet<SecretName>, TemplateError> {
    let meter = Meter::new();
    let environment = environment(place, BTreeMap::new(), &meter);
    let template = environment.template_from_str(text);
    let template = template.map_err(|error| why(&error))?;
    let scan = scan(text)?;
    let mut names: Vec<String> = template.undeclared_variables(true).into_iter().collect();
    names.sort();
    for name in names {
        check_name(&name, &scan)?;
    }
    // What it comes to for a job of its own kind says whether its dates can be written. A payload may be anything.
    if !scan.mentions("payload") && scan.secrets.is_empty() {
        let rendered = render_in(
            ((environment, 0), &meter),
            &scan,
            (text, place),
            &Facts::sample(),
        );
        match rendered {
            Err(error) if error.kind() != ErrorKind::UndefinedError => return Err(why(&error)),
            Ok(path) if place == Place::Path && PathAndQuery::try_from(&*path).is_err() => {
                let why = "what comes of it cannot stand in an address: blanks are %20";
                return Err(TemplateError(why.to_owned()));
            }
            Ok(_) | Err(_) => {}
        }
    }
    Ok(scan.secrets)
}

/// Whether a name with its fields, `job.labels.team`, is one that templates know.
fn check_name(name: &str, scan: &Scan) -> Result<(), TemplateError> {
    let mut parts = name.split('.');
    let top = parts.next().unwrap_or_default();
    let known: &[&str] = match top {
        "job" => &["id", "key", "labels", "version"],
        "run" => &["id", "attempt", "slot", "due_at", "kind"],
        "slot" | "attempt" | "payload" | "secret" => return Ok(()),
        _ => {
            let why = format!(
                "unknown variable {top}: a template knows job, run, slot, attempt, payload and secret('name')"
            );
            let line = scan.line_of(top);
            return Err(Flaw { line, why }.into());
        }
    };
    match parts.next() {
        Some(field) if !known.contains(&field) => {
            let why = format!("{top} has no {field}: it has {}", known.join(", "));
            let line = scan.line_of(top);
            Err(Flaw { line, why }.into())
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether a template reads the payload.
pub fn reads_payload(text: &str) -> bool {
    scan(text).is_ok_and(|scan| scan.mentions("payload"))
}

/// The secrets that a template that was checked uses.
pub fn secrets_in(text: &str) -> Result<BTreeSet<SecretName>, TemplateError> {
    Ok(scan(text)?.secrets)
}

/// Fills in a template.
pub fn render(
    text: &str,
    place: Place,
    facts: &Facts<'_>,
    secrets: BTreeMap<SecretName, String>,
) -> Result<String, TemplateError> {
    let scan = scan(text)?;
    if scan.mentions("payload") && facts.payload_bytes() > limits::TEMPLATE_PAYLOAD_MAX {
        return Err(TemplateError(format!(
            "the payload is longer than the {} bytes that a template may read",
            limits::TEMPLATE_PAYLOAD_MAX
        )));
    }
    let meter = Meter::new();
    let secret_max = secrets.values().map(String::len).max();
    let environment = environment(place, secrets, &meter);
    let within = (environment, secret_max.unwrap_or(0));
    render_in((within, &meter), &scan, (text, place), facts).map_err(|error| why(&error))
}

fn render_in(
    ((mut environment, secret_max), meter): ((Environment<'_>, usize), &Arc<Meter>),
    scan: &Scan,
    (text, place): (&str, Place),
    facts: &Facts<'_>,
) -> Result<String, Error> {
    let (facts, fact_max) = facts.to_value(meter);
    let longest = fact_max.max(secret_max).max(scan.text_max);
    environment.set_fuel(Some(fuel(scan, longest)));
    let template = environment.template_from_str(text)?;
    let mut bounded = Bounded {
        bytes: Vec::new(),
        bytes_max: place.bytes_max(),
    };
    template.render_captured_to(facts, &mut bounded)?;
    meter.check()?;
    String::from_utf8(bounded.bytes)
        .map_err(|_| Error::new(ErrorKind::BadSerialization, "it is not text"))
}

/// How many steps a rendering may take whose longest text is so long.
fn fuel(scan: &Scan, longest: usize) -> u64 {
    if !scan.copies_in_loops {
        return FUEL;
    }
    let steps = COPIED_MAX.checked_div(longest).unwrap_or(usize::MAX);
    (steps as u64).clamp(FUEL_MIN, FUEL)
}

/// Takes no more than its bound.
struct Bounded {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.bytes_max {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn environment(
    place: Place,
    secrets: BTreeMap<SecretName, String>,
    meter: &Arc<Meter>,
) -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_recursion_limit(DEPTH_MAX);
    let of = Arc::clone(meter);
    environment.set_formatter(move |out, _, value| write_value(place, &of, out, value));
    let of = Arc::clone(meter);
    environment.add_function("secret", move |name: String| -> Result<String, Error> {
        let known = SecretName::new(&name).ok();
        let found = known.and_then(|name| secrets.get(&name));
        of.copy(found.map_or("", String::as_str), limits::PAYLOAD_MAX)
    });
    let of = Arc::clone(meter);
    environment.add_filter("safe", move |value: &Value| {
        let plain = plain(value, &of, limits::PAYLOAD_MAX);
        plain.map(Value::from_safe_string)
    });
    let of = Arc::clone(meter);
    environment.add_filter("tojson", move |value: &Value| {
        of.json(value, limits::PAYLOAD_MAX)
    });
    environment.add_filter("default", |value: &Value, other: Value| {
        if value.is_undefined() {
            other
        } else {
            value.clone()
        }
    });
    environment.add_filter("date", date);
    environment
}

/// A moment in words: `slot|date('%Y-%m-%d', 'Europe/Berlin')`, in UTC if no zone is named.
fn date(moment: &str, format: &str, zone: Option<&str>) -> Result<String, Error> {
    let refused = |why: String| Error::new(ErrorKind::InvalidOperation, why);
    let moment = Timestamp::parse(moment)
        .map_err(|_| refused("date is for moments, such as slot or run.due_at".to_owned()))?;
    if format.len() > limits::DATE_FORMAT_MAX {
        let most = limits::DATE_FORMAT_MAX;
        return Err(refused(format!("a date's form has at most {most} bytes")));
    }
    let zone = Zone::get(zone.unwrap_or("UTC")).map_err(|error| refused(error.to_string()))?;
    zone.format(moment, format).map_err(refused)
}

/// As its place has it.
fn write_value(
    place: Place,
    meter: &Meter,
    out: &mut Output<'_>,
    value: &Value,
) -> Result<(), Error> {
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    let bytes_max = place.bytes_max();
    let text = match place {
        Place::Header | Place::Env => plain(value, meter, bytes_max)?,
        Place::Path | Place::Body if value.is_safe() => plain(value, meter, bytes_max)?,
        Place::Path => percent(&plain(value, meter, bytes_max)?),
        Place::Body => meter.json(value, bytes_max)?,
    };
    out.write_str(&text).map_err(Error::from)
}

/// A text as it is, nothing for null, and anything else as JSON.
fn plain(value: &Value, meter: &Meter, bytes_max: usize) -> Result<String, Error> {
    match value.as_str() {
        Some(text) => meter.copy(text, bytes_max),
        None if value.is_none() => Ok(String::new()),
        None => meter.json(value, bytes_max),
    }
}

/// Everything but what RFC 3986 leaves unreserved.
fn percent(text: &str) -> String {
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

/// What is wrong, without anything that was filled in.
fn why(error: &Error) -> TemplateError {
    let (kind, detail) = (error.kind(), error.detail().unwrap_or_default());
    let line = error.line().unwrap_or(1);
    let what = if kind == ErrorKind::SyntaxError {
        format!("the template cannot be read: {detail}")
    } else if kind == ErrorKind::UndefinedError {
        "a value that the template uses is not there".to_owned()
    } else if kind == ErrorKind::OutOfFuel {
        "the template does too much".to_owned()
    } else if kind == ErrorKind::WriteFailure {
        "more comes of the template than may be sent".to_owned()
    } else if kind == ErrorKind::InvalidOperation {
        detail.to_owned()
    } else {
        "the template cannot be rendered".to_owned()
    };
    TemplateError(format!("line {line}: {what}"))
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
