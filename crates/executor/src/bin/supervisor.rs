//! The supervisor and the starter of commands alone, for tests. `punctual` is both as well.

use std::env::args_os;
use std::process::ExitCode;

use executor::shell;

fn main() -> ExitCode {
    let mut arguments = args_os().skip(1);
    match arguments.next().as_deref().and_then(|it| it.to_str()) {
        Some(shell::SUPERVISE) => shell::supervise(),
        Some(shell::START) => shell::start(arguments),
        Some(_) | None => ExitCode::FAILURE,
    }
}
