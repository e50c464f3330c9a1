//! Prints the contract: `cargo run -p server --example openapi > api/openapi.json`.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    std::io::stdout()
        .lock()
        .write_all(server::openapi_json().as_bytes())
}
