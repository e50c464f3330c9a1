//! The guide to commands, as it stands.

use nix::unistd::Uid;
use tempfile::TempDir;

use super::{block, run};
use crate::support::{Server, program, skip};

#[test]
fn the_first_command_of_the_guide_runs() {
    let folder = TempDir::new().unwrap();
    let mut arguments = vec!["--shell-allow", "/bin/"];
    if Uid::effective().is_root() {
        arguments.extend(["--shell-user", "root"]);
    }
    let server = Server::start_in(folder.path(), &arguments);
    let script = block("docs/guides/scripts.md", "## A first command", "sh");
    let output = run(&script, &server);
    let said = String::from_utf8_lossy(&output.stdout);
    for part in ["dumping shop", "22\n", "cost processor", "succeeded"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let script = block("docs/guides/scripts.md", "## Watch it", "sh");
    let output = run(&script, &server);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "dumping shop\n22\n");
    let target = block("docs/guides/scripts.md", "## A first command", "json");
    let target: serde_json::Value = serde_json::from_str(&target).unwrap();
    assert!(target["shell"]["command"].is_array());
}

#[test]
fn the_first_script_of_the_guide_runs() {
    if program("bwrap").is_none() {
        return skip("there is no bubblewrap");
    }
    let folder = TempDir::new().unwrap();
    let mut arguments = vec!["--python-allow", "/usr/bin/"];
    if Uid::effective().is_root() {
        arguments.extend(["--python-user", "nobody"]);
    }
    let server = Server::start_in(folder.path(), &arguments);
    let script = block("docs/guides/scripts.md", "### A first script", "sh");
    let output = run(&script, &server);
    let said = String::from_utf8_lossy(&output.stdout);
    for part in ["{\"total\": 42}", "cost processor", "succeeded"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let target = block("docs/guides/scripts.md", "### A first script", "json");
    let target: serde_json::Value = serde_json::from_str(&target).unwrap();
    assert!(target["python"]["source"].is_string());
}
