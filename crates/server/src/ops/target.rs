//! Whether a target could be called at all: what this node may never call, or lacks a secret for, is refused when it is
//! written. A name is checked when it is called.

use model::target::HttpTarget;
use model::{Definition, PythonTarget, ShellTarget, Target, TenantId};

use super::error::OpError;
use super::fault::{Fault, FieldError};
use super::secrets;
use crate::api::Api;

pub(super) async fn check(api: &Api, tenant: TenantId, def: &Definition) -> Result<(), OpError> {
    match &def.target {
        Target::Http(http) => check_egress(api, http)?,
        Target::Shell(shell) => check_command(api, tenant, shell)?,
        Target::Python(python) => check_script(api, tenant, python)?,
    }
    secrets::check(api, tenant, def).await
}

/// Whoever runs it looks again, at what the path leads to then.
fn check_command(api: &Api, tenant: TenantId, shell: &ShellTarget) -> Result<(), FieldError> {
    let field = if api.commands.is_off() {
        "target.shell"
    } else {
        "target.shell.command"
    };
    let checked = api.commands.check(tenant, shell.program());
    checked.map_err(|refused| FieldError::new(Fault::Command, field, refused.to_string()))
}

/// The same of a script's interpreter, and whether there is a sandbox for it.
fn check_script(api: &Api, tenant: TenantId, python: &PythonTarget) -> Result<(), FieldError> {
    let refused = |field: &str, why: String| Err(FieldError::new(Fault::Command, field, why));
    let scripts = &api.scripts;
    if let Some(why) = &scripts.broken {
        let detail =
            format!("this node runs no scripts, because it has no sandbox for them: {why}");
        return refused("target.python", detail);
    }
    let field = if scripts.interpreters.is_off() {
        "target.python"
    } else {
        "target.python.interpreter"
    };
    match scripts.interpreters.check(tenant, python.interpreter()) {
        Ok(()) => Ok(()),
        Err(why) => refused(field, why.to_string()),
    }
}

fn check_egress(api: &Api, http: &HttpTarget) -> Result<(), FieldError> {
    let host = http.url.host().unwrap_or_default();
    let checked = api.egress.check_host(host, http.port());
    checked
        .map_err(|refused| FieldError::new(Fault::Egress, "target.http.url", refused.to_string()))
}
