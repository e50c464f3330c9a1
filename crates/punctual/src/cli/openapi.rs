//! `punctual openapi`: the contract, as the server serves it. `make api` commits what it prints.

use super::output;
use crate::failure::Failure;

pub(super) fn execute() -> Result<(), Failure> {
    output::json(server::openapi_json().as_ref())
}
