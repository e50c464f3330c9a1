//! The unit file: whether systemd can read it, and how much of the machine it leaves to the service.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::support::{BINARY, program};

/// Of 10, as systemd counts it; most services have 9.
const EXPOSURE_MAX: f64 = 2.0;

#[test]
fn the_unit_is_one_that_systemd_reads_and_leaves_little_exposed() {
    let Some(analyze) = program("systemd-analyze") else {
        return;
    };
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/punctual.service");
    let unit = fs::read_to_string(unit).unwrap();
    // As it would be where the binary is installed.
    let installed = "/usr/local/bin/punctual";
    assert!(unit.contains(&format!("ExecStart={installed} serve ")));
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("punctual.service");
    fs::write(&path, unit.replace(installed, BINARY)).unwrap();
    let verified = Command::new(&analyze)
        .arg("verify")
        .arg(&path)
        .output()
        .unwrap();
    assert!(verified.status.success(), "{verified:?}");
    let said = String::from_utf8_lossy(&verified.stderr);
    let ours = said.lines().find(|line| line.contains("punctual.service"));
    assert_eq!(ours, None, "{said}");

    let security = Command::new(&analyze)
        .args(["security", "--offline=true", "--no-pager"])
        .arg(&path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&security.stdout);
    let exposure = said
        .split_once("Overall exposure level for punctual.service: ")
        .and_then(|(_, rest)| rest.split_whitespace().next())
        .and_then(|number| number.parse::<f64>().ok());
    let exposure = exposure.unwrap_or_else(|| panic!("{security:?}"));
    assert!(exposure <= EXPOSURE_MAX, "{exposure} of 10:\n{said}");
}
