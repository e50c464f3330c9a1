//! From what a client says of a target to a target that holds.

use http::{HeaderName, HeaderValue};
use model::target::{HttpTarget, TargetError};
use model::{
    ExitCodes, ExitMap, PythonTarget, Redirects, ShellTarget, Success, Target, TlsSecrets, limits,
    mask, mask_env,
};

use super::Patch;
use super::draft::{
    ExitDraft, HttpDraft, PythonDraft, ShellDraft, SuccessDraft, TargetDraft, TlsDraft,
};
use super::fault::{Fault, FieldError};

impl TargetDraft {
    /// What stands, with what is said changed; a whole target if nothing of its kind stands. A value that is masked is that
    /// of the target before.
    pub(super) fn over(
        self,
        stands: Option<&Target>,
        before: Option<&Target>,
    ) -> Result<Target, FieldError> {
        match self {
            Self::Http(draft) => {
                let [stands, before] = [stands, before].map(|target| match target {
                    Some(Target::Http(http)) => Some(http),
                    Some(Target::Shell(_) | Target::Python(_)) | None => None,
                });
                draft.over(stands, before).map(Target::Http)
            }
            Self::Shell(draft) => draft.over(stands, before),
            Self::Python(draft) => draft.over(stands, before),
        }
    }
}

fn below(error: TargetError) -> FieldError {
    FieldError::invalid(format!("target.{}", error.field), error.detail)
}

impl ShellDraft {
    fn over(self, stands: Option<&Target>, before: Option<&Target>) -> Result<Target, FieldError> {
        let stands = match stands {
            Some(Target::Shell(shell)) => Some(shell),
            Some(Target::Http(_) | Target::Python(_)) | None => None,
        };
        let mut shell = match (stands, self.command) {
            (Some(stands), None) => stands.clone(),
            (Some(stands), Some(command)) => ShellTarget {
                command,
                ..stands.clone()
            },
            (None, Some(command)) => ShellTarget::new(command).map_err(below)?,
            (None, None) => {
                let detail = "command is missing: write [\"/usr/bin/pg_dump\", \"shop\"]";
                let field = "target.shell.command";
                return Err(FieldError::new(Fault::Missing, field, detail));
            }
        };
        self.dir.put_option(&mut shell.dir);
        self.exit.over(&mut shell.exit);
        self.output_max
            .put(&mut shell.output_max, limits::OUTPUT_DEFAULT);
        shell.env = lay_env(self.env, &Target::Shell(shell.clone()), before).map_err(below)?;
        shell.check().map_err(below)?;
        Ok(Target::Shell(shell))
    }
}

impl PythonDraft {
    fn over(self, stands: Option<&Target>, before: Option<&Target>) -> Result<Target, FieldError> {
        let stands = match stands {
            Some(Target::Python(python)) => Some(python),
            Some(Target::Http(_) | Target::Shell(_)) | None => None,
        };
        let mut python = match (stands, self.source) {
            (Some(stands), None) => stands.clone(),
            (Some(stands), Some(source)) => PythonTarget {
                source,
                ..stands.clone()
            },
            (None, Some(source)) => PythonTarget::new(&source).map_err(below)?,
            (None, None) => {
                let detail = "source is missing: write the script, such as print(\"done\")";
                let field = "target.python.source";
                return Err(FieldError::new(Fault::Missing, field, detail));
            }
        };
        let mut interpreter = python.interpreter().to_owned();
        let usual = PythonTarget::INTERPRETER.to_owned();
        self.interpreter.put(&mut interpreter, usual);
        let mut args = python.args().to_vec();
        self.args.put(&mut args, Vec::new());
        python.call(&interpreter, &args).map_err(below)?;
        let program = &mut python.program;
        self.exit.over(&mut program.exit);
        self.output_max
            .put(&mut program.output_max, limits::OUTPUT_DEFAULT);
        let env = lay_env(self.env, &Target::Python(python.clone()), before);
        python.program.env = env.map_err(below)?;
        python.check().map_err(below)?;
        Ok(Target::Python(python))
    }
}

impl ExitDraft {
    fn over(self, exit: &mut ExitMap) {
        let none = ExitCodes::default;
        self.success.put(&mut exit.success, none());
        self.retry.put(&mut exit.retry, none());
        self.fail.put(&mut exit.fail, none());
        self.dead.put(&mut exit.dead, none());
    }
}

/// The variables of what is started. Those that are not shown stay with what they were given for.
fn lay_env(
    draft: Patch<Vec<(String, Option<String>)>>,
    target: &Target,
    before: Option<&Target>,
) -> Result<Vec<(String, String)>, TargetError> {
    let mut laid = target.clone();
    let mut given = Vec::new();
    if let Some(program) = laid.program_mut() {
        match draft {
            Patch::Keep => {}
            Patch::Reset => program.env.clear(),
            Patch::Set(env) => {
                for (name, value) in env {
                    let unmask = |value| mask_env::unmask_env(&name, value, before, target);
                    let value = value.map(unmask).transpose()?;
                    program.set_env(&name, value)?;
                    given.push(name);
                }
            }
        }
    }
    if let Some(before) = before {
        mask_env::check_program(&laid, before, &given)?;
    }
    let env = laid.program().map(|program| program.env.clone());
    Ok(env.unwrap_or_default())
}

impl HttpDraft {
    fn over(
        mut self,
        stands: Option<&HttpTarget>,
        before: Option<&HttpTarget>,
    ) -> Result<HttpTarget, FieldError> {
        if let Some(url) = self.url.take() {
            self.url = Some(mask::unmask_address(url, before).map_err(below)?);
        }
        let (mut http, url) = match (stands, self.url) {
            (Some(http), url) => (http.clone(), url),
            (None, Some(url)) => (HttpTarget::at(url.0.clone()), Some(url)),
            (None, None) => {
                let detail = "url is missing: write https://example.com/hook";
                return Err(FieldError::new(Fault::Missing, "target.http.url", detail));
            }
        };
        if let Some(url) = url {
            (http.url, http.path) = url;
        }
        self.method
            .put(&mut http.method, HttpTarget::METHOD_DEFAULT);
        self.body.put_option(&mut http.body);
        self.output_max
            .put(&mut http.output_max, limits::OUTPUT_DEFAULT);
        self.keep_headers.put(&mut http.keep_headers, Vec::new());
        lay_success(self.success, &mut http.success);
        self.redirects.put(&mut http.redirects, Redirects::None);
        lay_tls(self.tls, &mut http.tls);
        lay_headers(self.headers, &mut http, before).map_err(below)?;
        http.check().map_err(below)?;
        Ok(http)
    }
}

/// Headers that are not shown stay with the origin that they were given for.
fn lay_headers(
    draft: Patch<Vec<(HeaderName, Option<HeaderValue>)>>,
    http: &mut HttpTarget,
    before: Option<&HttpTarget>,
) -> Result<(), TargetError> {
    let mut given = Vec::new();
    match draft {
        Patch::Keep => {}
        Patch::Reset => http.headers.clear(),
        Patch::Set(headers) => {
            for (name, value) in headers {
                let value = value.map(|value| mask::unmask_header(&name, value, before, &http.url));
                given.push(name.clone());
                http.set_header(name, value.transpose()?)?;
            }
        }
    }
    match before {
        Some(before) => mask::check_moved(http, before, &given),
        None => Ok(()),
    }
}

fn lay_success(draft: Patch<SuccessDraft>, success: &mut Option<Success>) {
    match draft {
        Patch::Keep => {}
        Patch::Reset => *success = None,
        Patch::Set(draft) => {
            let mut rule = success.take().unwrap_or_default();
            draft.status.put_option(&mut rule.status);
            draft.json.put_option(&mut rule.json);
            *success = Some(rule).filter(|rule| *rule != Success::default());
        }
    }
}

fn lay_tls(draft: Patch<TlsDraft>, tls: &mut Option<TlsSecrets>) {
    match draft {
        Patch::Keep => {}
        Patch::Reset => *tls = None,
        Patch::Set(draft) => {
            let mut names = tls.take().unwrap_or_default();
            draft.ca.put_option(&mut names.ca);
            draft.cert.put_option(&mut names.cert);
            draft.key.put_option(&mut names.key);
            *tls = Some(names).filter(|names| *names != TlsSecrets::default());
        }
    }
}
