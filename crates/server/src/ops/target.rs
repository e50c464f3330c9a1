//! Whether a target could be called at all: what this node may never call, or lacks a secret for, is refused when it is
//! written. A name is judged when it is called.

use model::{Definition, Target, TenantId};

use super::error::OpError;
use super::fault::{Fault, FieldError};
use super::secrets;
use crate::api::Api;

pub(super) async fn check(api: &Api, tenant: TenantId, def: &Definition) -> Result<(), OpError> {
    check_egress(api, def)?;
    secrets::check(api, tenant, def).await
}

fn check_egress(api: &Api, def: &Definition) -> Result<(), FieldError> {
    let Target::Http(http) = &def.target;
    let host = http.url.host().unwrap_or_default();
    let checked = api.egress.check_host(host, http.port());
    checked
        .map_err(|refused| FieldError::new(Fault::Egress, "target.http.url", refused.to_string()))
}
