//! From what a client says of a target to a target that holds.

use http::{HeaderName, HeaderValue};
use model::target::{HttpTarget, TargetError};
use model::{
    ExitCodes, ExitMap, Redirects, ShellTarget, Success, Target, TlsSecrets, limits, mask,
};

use super::Patch;
use super::draft::{ExitDraft, HttpDraft, ShellDraft, SuccessDraft, TargetDraft, TlsDraft};
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
                    Some(Target::Shell(_)) | None => None,
                });
                draft.over(stands, before).map(Target::Http)
            }
            Self::Shell(draft) => {
                let [stands, before] = [stands, before].map(|target| match target {
                    Some(Target::Shell(shell)) => Some(shell),
                    Some(Target::Http(_)) | None => None,
                });
                draft.over(stands, before).map(Target::Shell)
            }
        }
    }
}

fn below(error: TargetError) -> FieldError {
    FieldError::invalid(format!("target.{}", error.field), error.detail)
}

impl ShellDraft {
    fn over(
        self,
        stands: Option<&ShellTarget>,
        before: Option<&ShellTarget>,
    ) -> Result<ShellTarget, FieldError> {
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
        lay_env(self.env, &mut shell, before).map_err(below)?;
        shell.check().map_err(below)?;
        Ok(shell)
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

/// Variables that are not shown stay with the program that they were given for.
fn lay_env(
    draft: Patch<Vec<(String, Option<String>)>>,
    shell: &mut ShellTarget,
    before: Option<&ShellTarget>,
) -> Result<(), TargetError> {
    let mut given = Vec::new();
    match draft {
        Patch::Keep => {}
        Patch::Reset => shell.env.clear(),
        Patch::Set(env) => {
            for (name, value) in env {
                let value =
                    value.map(|value| mask::unmask_env(&name, value, before, shell.program()));
                shell.set_env(&name, value.transpose()?)?;
                given.push(name);
            }
        }
    }
    match before {
        Some(before) => mask::check_program(shell, before, &given),
        None => Ok(()),
    }
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
