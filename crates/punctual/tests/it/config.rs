//! Configuration as people meet it.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::cli::fails;
use crate::support::punctual;

#[test]
fn print_shows_each_value_and_its_origin() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("punctual.toml");
    fs::write(&file, "grace = \"3s\"\n").unwrap();
    let path = file.to_str().unwrap();
    let output = punctual(&format!(
        "config print --json --config {path} --running-max 9"
    ));
    let config: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(config["grace"]["value"], "3s");
    assert_eq!(config["grace"]["from"], format!("{path}, line 1"));
    assert_eq!(config["running_max"]["from"], "--running-max");
    assert_eq!(config["listen"]["from"], "default");
    assert_eq!(config["parts"]["value"], "api,schedule,execute");
    let table = punctual(&format!("config print --config {path}"));
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.starts_with("SETTING"), "{table}");
    assert!(!table.contains('\u{1b}'), "no colours where nobody looks");
}

#[test]
fn a_bad_file_is_refused_with_its_line_and_key() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("punctual.toml");
    let path = file.to_str().unwrap();
    let check = |text: &str, parts: &[&str]| {
        fs::write(&file, text).unwrap();
        fails(
            &punctual(&format!("serve --config {path}")),
            2,
            &[&[path], parts].concat(),
        );
    };
    check(
        "# ours\nlsten = \"127.0.0.1:1\"\n",
        &["line 2", "\"lsten\""],
    );
    check("grace = \"soon\"\n", &["line 1", "grace", "soon"]);
    check("grace = \n", &["line 1"]);
    check("parts = \"api,clock\"\n", &["line 1", "parts", "'clock'"]);
    check("parts = \"\"\n", &["line 1", "no part is named"]);
    fs::remove_file(&file).unwrap();
    fails(
        &punctual(&format!("serve --config {path}")),
        2,
        &[path, "cannot be read"],
    );
}
