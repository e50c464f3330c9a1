//! Configuration as people meet it.

use std::fs;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::punctual;

#[track_caller]
fn is_one_line_of_code_2(output: &Output, parts: &[&str]) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    for part in parts {
        assert!(error.contains(part), "{error:?} does not say {part:?}");
    }
}

#[test]
fn print_shows_each_value_and_its_origin() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("punctual.toml");
    fs::write(&file, "grace = \"3s\"\n").unwrap();
    let path = file.to_str().unwrap();
    let output = punctual(["config", "print", "--json", "--config", path, "--running-max", "9"]);
    let config: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(config["grace"]["value"], "3s");
    assert_eq!(config["grace"]["from"], format!("{path}, line 1"));
    assert_eq!(config["running_max"]["from"], "--running-max");
    assert_eq!(config["listen"]["from"], "default");
    let table = punctual(["config", "print", "--config", path]);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.lines().next().unwrap().starts_with("SETTING"), "{table}");
    assert!(!table.contains('\u{1b}'), "no colours where nobody looks");
}

#[test]
fn a_bad_file_is_refused_with_its_line_and_key() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("punctual.toml");
    let path = file.to_str().unwrap();
    fs::write(&file, "# ours\nlsten = \"127.0.0.1:1\"\n").unwrap();
    let serve = || punctual(["serve", "--config", path]);
    is_one_line_of_code_2(&serve(), &[path, "line 2", "\"lsten\""]);
    fs::write(&file, "grace = \"soon\"\n").unwrap();
    is_one_line_of_code_2(&serve(), &[path, "line 1", "grace", "soon"]);
    fs::write(&file, "grace = \n").unwrap();
    is_one_line_of_code_2(&serve(), &[path, "line 1"]);
    fs::remove_file(&file).unwrap();
    is_one_line_of_code_2(&serve(), &[path, "cannot be read"]);
}
