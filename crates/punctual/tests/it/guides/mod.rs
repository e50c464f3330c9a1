//! What the papers say is what happens: their commands and programs are run as they stand there.

mod callbacks;
mod deploy;
mod docs;
mod drill;
mod readme;
mod receivers;
mod scripts;
mod signatures;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{BINARY, Server};

/// The address that the papers use.
const ADDRESS: &str = "127.0.0.1:7710";

/// The first block of code in this language below a heading.
#[track_caller]
fn block(paper: &str, heading: &str, language: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(paper);
    let text = fs::read_to_string(&path).unwrap();
    let (_, below) = text
        .split_once(&format!("\n{heading}\n"))
        .unwrap_or_else(|| panic!("{paper} has no {heading}"));
    let (_, begun) = below
        .split_once(&format!("\n```{language}\n"))
        .unwrap_or_else(|| panic!("{paper} has no {language} below {heading}"));
    begun.split_once("\n```").unwrap().0.to_owned()
}

/// Runs a script against a server: `punctual` is the binary under test, and the first thing that fails ends it.
#[track_caller]
fn run(script: &str, server: &Server) -> Output {
    let folder = PathBuf::from(BINARY).parent().unwrap().to_owned();
    let path = std::env::var("PATH").unwrap_or_default();
    let script = script.replace(ADDRESS, &server.address);
    // Whatever it has started ends with it.
    let script = format!("trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}");
    let output = Command::new("bash")
        .args(["-euc", &script])
        .env("PATH", format!("{}:{path}", folder.display()))
        .env("PUNCTUAL_SERVER", server.url())
        .env("PUNCTUAL_DATA", server.folder())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{error}");
    output
}
