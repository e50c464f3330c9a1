//! What no server writes into its log, whatever a test does with it: secrets that tests plant, and the keys that it has in
//! files of its own. The first key is shown once, in a line that says so.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// In every secret that a test plants, as it is and in base64.
const MARKERS: [&str; 2] = ["planted", "cGxhbnRl"];
/// Of the line that shows the first key.
const SHOWN_ONCE: &str = "root key, shown this once";
/// Less than this is no key: a test may have put something else into its file.
const KEY_MIN: usize = 32;

/// What a server has to keep to itself. Its files may be replaced while it runs.
#[derive(Default)]
pub(super) struct Kept {
    root_key: PathBuf,
    master_keys: Vec<PathBuf>,
    root: BTreeSet<String>,
    master: BTreeSet<String>,
}

impl Kept {
    pub(super) fn of(folder: &Path, arguments: &[&str]) -> Self {
        let named = arguments.windows(2).filter_map(|pair| match pair {
            ["--master-key-file" | "--master-key-old-file", path] => Some(PathBuf::from(path)),
            _ => None,
        });
        let mut kept = Self {
            root_key: folder.join("root.key"),
            master_keys: [folder.join("master.key")]
                .into_iter()
                .chain(named)
                .collect(),
            ..Self::default()
        };
        kept.read();
        kept
    }

    /// What is in its files now.
    fn read(&mut self) {
        let words = |path: &Path| {
            let text = fs::read_to_string(path).unwrap_or_default();
            let words = text.split_whitespace().map(str::to_owned);
            words.collect::<Vec<_>>()
        };
        for key in words(&self.root_key) {
            let secret = key.rsplit('_').next().unwrap_or_default();
            if secret.len() >= KEY_MIN {
                self.root.insert(secret.to_owned());
            }
        }
        for key in self.master_keys.iter().flat_map(|path| words(path)) {
            if key.len() >= KEY_MIN {
                self.master.insert(key);
            }
        }
    }

    /// The lines that say what none may say.
    pub(super) fn found_in(&mut self, log: &str) -> Vec<String> {
        self.read();
        let mut shown = BTreeSet::new();
        let mut found = Vec::new();
        for line in log.lines() {
            let says = |words: &BTreeSet<String>| {
                let mut words = words.iter();
                words.find(|word| line.contains(word.as_str())).cloned()
            };
            let again = says(&self.root)
                .is_some_and(|key| !line.contains(SHOWN_ONCE) || !shown.insert(key));
            let is_planted = MARKERS.iter().any(|marker| line.contains(marker));
            if again || is_planted || says(&self.master).is_some() {
                found.push(line.to_owned());
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn what_may_stand_in_no_log_is_found_in_one() {
        let own = TempDir::new().unwrap();
        let (root, master, other) = ("a1".repeat(32), "b2".repeat(32), "c3".repeat(32));
        fs::write(own.path().join("root.key"), format!("punctual_x_{root}\n")).unwrap();
        fs::write(own.path().join("master.key"), &master).unwrap();
        let file = own.path().join("other");
        fs::write(&file, &other).unwrap();
        let arguments = [
            "--log",
            "trace",
            "--master-key-file",
            file.to_str().unwrap(),
        ];
        let mut kept = Kept::of(own.path(), &arguments);
        // What it began with counts although it was replaced.
        let newer = "d4".repeat(32);
        fs::write(&file, &newer).unwrap();
        let shown = format!("The root key, shown this once: punctual_x_{root}");
        let cases = [
            (format!("{shown}\nready\n"), 0),
            (format!("{shown}\n{shown}\n"), 1),
            (format!("GET /v1/jobs by punctual_x_{root}\n"), 1),
            (
                format!("ready\nthe key {master}\nand {other}\nand {newer}\n"),
                3,
            ),
            (
                "it sent Bearer planted-1\nand Basic cGxhbnRlZA==\n".to_owned(),
                2,
            ),
            ("nothing of that kind\n".to_owned(), 0),
        ];
        for (log, expected) in cases {
            let found = kept.found_in(&log);
            assert_eq!(found.len(), expected, "{found:?} in {log}");
        }
    }
}
