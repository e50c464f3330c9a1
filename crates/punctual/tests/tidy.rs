//! What no compiler checks: which crate may use which, how long a file may be, and that nothing is left
//! lying about. Each test gathers every violation before it fails, so that one run shows them all.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a checkout that cannot be read is a failed test"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

// Who may use whom: our crates among themselves, and the world's by licence and version.

/// The arrows between our crates, written out: everything that a crate may use.
const MAY_USE: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("store", &["model"]),
    ("executor", &["model"]),
    ("engine", &["store", "executor", "model"]),
    ("server", &["engine", "store", "executor", "model"]),
    ("sim", &["engine", "store", "executor", "model"]),
    (
        "punctual",
        &["server", "engine", "store", "executor", "model"],
    ),
];

#[test]
fn crates_use_each_other_along_the_arrows_only() {
    let ours: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    let mut violations = Vec::new();
    for folder in names("crates") {
        let manifest: toml::Table = read(&format!("crates/{folder}/Cargo.toml"))
            .parse()
            .unwrap();
        let Some(may_use) = ours.get(folder.as_str()) else {
            violations.push(format!(
                "crates/{folder}: a new crate needs a decision record and an arrow here"
            ));
            continue;
        };
        if manifest["package"]["name"].as_str() != Some(&folder) {
            violations.push(format!(
                "crates/{folder}: the crate is named unlike its folder"
            ));
        }
        for used in dependencies(&manifest) {
            if ours.contains_key(used.as_str()) && !may_use.contains(&used.as_str()) {
                violations.push(format!("crates/{folder}: may not use {used}"));
            }
        }
    }
    none(&violations);
}

/// Every dependency of a manifest, of every kind and for every platform.
fn dependencies(manifest: &toml::Table) -> BTreeSet<String> {
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    let platforms = manifest.get("target").and_then(toml::Value::as_table);
    let tables = platforms
        .into_iter()
        .flatten()
        .filter_map(|(_, table)| table.as_table());
    let mut found = BTreeSet::new();
    for table in tables.chain([manifest]) {
        for kind in kinds {
            let Some(entries) = table.get(kind).and_then(toml::Value::as_table) else {
                continue;
            };
            for (name, entry) in entries {
                // A renamed dependency is the package that it renames.
                let package = entry.get("package").and_then(toml::Value::as_str);
                found.insert(package.unwrap_or(name).to_owned());
            }
        }
    }
    found
}

#[test]
fn cryptography_comes_from_ring_alone() {
    let lock = read("Cargo.lock");
    assert!(
        !lock.contains("aws-lc"),
        "Cargo.lock has aws-lc: find who asks with `cargo tree -i aws-lc-sys`"
    );
}

/// What a command of cargo prints about what we build on Linux.
fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .args(["--all-features", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn deny() -> toml::Table {
    read("deny.toml").parse().unwrap()
}

#[test]
fn licences_are_those_that_deny_toml_allows() {
    let deny = deny();
    let allowed = deny["licenses"]["allow"].as_array().unwrap();
    let allowed: Vec<&str> = allowed.iter().map(|name| name.as_str().unwrap()).collect();
    let platform = ["--filter-platform", "x86_64-unknown-linux-gnu"];
    let printed = cargo(&[&["metadata", "--format-version=1"][..], &platform[..]].concat());
    let metadata: Value = serde_json::from_str(&printed).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 100, "{} packages", packages.len());
    let refused = |package: &Value| {
        let licence = package["license"].as_str().unwrap_or("");
        (!is_allowed(licence, &allowed))
            .then(|| format!("{}: licence {licence:?}", package["name"]))
    };
    none(&packages.iter().filter_map(refused).collect::<Vec<_>>());
}

#[test]
fn one_version_of_everything_unless_deny_toml_says_why() {
    let deny = deny();
    let skips = deny["bans"]["skip"].as_array().unwrap();
    let mut skipped = BTreeSet::new();
    for skip in skips {
        let reason = skip
            .get("reason")
            .and_then(toml::Value::as_str)
            .unwrap_or("");
        assert!(!reason.is_empty(), "{skip}: an entry carries its reason");
        let (name, _) = skip["crate"]
            .as_str()
            .and_then(|name| name.split_once('@'))
            .unwrap();
        skipped.insert(name.to_owned());
    }
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    // What tests alone use may come in two versions: it costs the user nothing.
    let tree = [
        "tree", "-p", "punctual", "-e", "no-dev", "--prefix", "none", "--format", "{p}",
    ];
    for line in cargo(&tree).lines() {
        let mut words = line.split_whitespace().map(str::to_owned);
        if let (Some(name), Some(version)) = (words.next(), words.next()) {
            versions.entry(name).or_default().insert(version);
        }
    }
    assert!(versions.len() > 100, "{} packages", versions.len());
    let twice = |(name, versions): (&String, &BTreeSet<String>)| {
        (versions.len() > 1 && !skipped.contains(name)).then(|| format!("{name}: {versions:?}"))
    };
    none(&versions.iter().filter_map(twice).collect::<Vec<_>>());
}

/// Whether an SPDX expression can be satisfied by allowed licences. `/` is an old way to write OR.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let verdict = any_of(&mut rest, allowed);
    verdict && rest.is_empty()
}

fn any_of(rest: &mut &[&str], allowed: &[&str]) -> bool {
    let mut verdict = all_of(rest, allowed);
    while let ["OR", tail @ ..] = *rest {
        *rest = tail;
        verdict |= all_of(rest, allowed);
    }
    verdict
}

fn all_of(rest: &mut &[&str], allowed: &[&str]) -> bool {
    let mut verdict = one(rest, allowed);
    while let ["AND", tail @ ..] = *rest {
        *rest = tail;
        verdict &= one(rest, allowed);
    }
    verdict
}

fn one(rest: &mut &[&str], allowed: &[&str]) -> bool {
    match *rest {
        ["(", tail @ ..] => {
            *rest = tail;
            let verdict = any_of(rest, allowed);
            let [")", tail @ ..] = *rest else {
                return false;
            };
            *rest = tail;
            verdict
        }
        [name, "WITH", exception, tail @ ..] => {
            *rest = tail;
            allowed.contains(&format!("{name} WITH {exception}").as_str())
        }
        [name, tail @ ..] => {
            *rest = tail;
            allowed.contains(name)
        }
        [] => false,
    }
}

#[test]
fn licence_expressions_are_read_as_written() {
    let check = |expression, expected| {
        assert_eq!(
            is_allowed(expression, &["MIT", "ISC", "A WITH B"]),
            expected,
            "{expression}"
        );
    };
    check("MIT", true);
    check("GPL-3.0", false);
    check("GPL-3.0 OR MIT", true);
    check("GPL-3.0/MIT", true);
    check("GPL-3.0 AND MIT", false);
    check("(MIT OR GPL-3.0) AND ISC", true);
    check("A WITH B OR GPL-3.0", true);
    check("A", false);
    check("(MIT", false);
    check("", false);
}

// Sizes, leftovers, pairs.

/// A file longer than this is two files.
const LINES_MAX: usize = 500;

#[test]
fn no_source_file_is_too_long() {
    let sources: Vec<File> = files()
        .into_iter()
        .filter(|file| file.is_rust() && !file.is_test())
        .collect();
    none(&violations(&sources, |file| {
        // Short tests sit at the end of the file that they test; they do not count.
        let lines = file.product().lines().count();
        let long = lines > LINES_MAX;
        long.then(|| format!("{lines} lines, at most {LINES_MAX} are allowed"))
            .into_iter()
            .collect()
    }));
}

#[test]
fn nothing_is_left_for_later() {
    let marks = [
        concat!("FIX", "ME"),
        concat!("TO", "DO"),
        concat!("to", "do!("),
    ];
    none(&violations(&files(), |file| lines_with(file, &marks)));
}

#[test]
fn the_project_speaks_of_itself_alone() {
    let strangers = [
        concat!("crates", ".io"),
        concat!("pypi", ".org"),
        concat!("python", "hosted.org"),
        concat!("npm", "js.org"),
        concat!("npm", "js.com"),
        concat!("deb.", "debian.org"),
        concat!("security.", "debian.org"),
        concat!("../", "shared"),
    ];
    none(&violations(&files(), |file| lines_with(file, &strangers)));
}

/// Words that had several meanings here, or one that nobody else would guess, with what is said instead.
const RETIRED: &[(&[&str], &str)] = &[
    (
        &["tell", "tells", "told", "telling", "untold"],
        "record, announce, observe, read",
    ),
    (
        &["ask", "asks", "asked", "asking"],
        "mark, query, request, in_flight",
    ),
    (&["aim", "aims", "aimed"], "compute_next, reschedule"),
    (&["anew"], "again"),
    (&["barred"], "fenced"),
    (&["born", "bears"], "insert_run, inserted"),
    (
        &["quickly", "plainly", "closely", "slowly"],
        "fast_path, slow_path",
    ),
    (
        &["scene", "look", "looks", "looked", "looking"],
        "View, Effects; read, check, lookup",
    ),
    (&["seat", "seats"], "permit"),
    (&["pulse", "vitals"], "backlog, node_status"),
    (&["taking"], "claim_due"),
    (
        &["draw", "draws", "drawn", "judge", "judges", "judged"],
        "build, to_answer, decided",
    ),
];

/// The column of live runs that holds the mark is as old as the first migration, and so is its index.
const MARK_COLUMN: [&str; 3] = ["ask", "ask_was", "live_ask"];
/// What a library calls its own.
const NOT_OURS: [&str; 2] = ["ProgressDrawTarget", "with_draw_target"];

/// In code, in statements and in names of files.
#[test]
fn no_name_is_a_word_that_is_retired() {
    let has_names = |file: &File| {
        let is_released = file.path.contains("/migrations/");
        file.is_rust() || file.path.ends_with(".sql") && !is_released
    };
    let sources: Vec<File> = files().into_iter().filter(has_names).collect();
    none(&violations(&sources, |file| {
        let stem = Path::new(&file.path).file_stem().unwrap();
        let stem = stem.to_string_lossy().into_owned();
        let mut found: Vec<String> = retired(&stem, &[])
            .map(|says| format!("its name: {says}"))
            .collect();
        let (code, kept) = if file.is_rust() {
            (code_of(&file.text), &NOT_OURS[..])
        } else {
            let lines = file.text.lines().map(|line| line.split("--").next());
            let lines: Vec<&str> = lines.map(Option::unwrap_or_default).collect();
            (lines.join("\n"), &MARK_COLUMN[..])
        };
        for (at, line) in code.lines().enumerate() {
            found.extend(retired(line, kept).map(|says| format!("line {}: {says}", at + 1)));
        }
        found
    }));
}

/// Nor in any text: a slot is skipped, and what is written over is decided again.
#[test]
fn no_text_says_a_phrase_that_is_retired() {
    let phrases = [
        concat!("passed", " over"),
        concat!("passes", " over"),
        concat!("passing", " over"),
        concat!("passed", "_over"),
        concat!("decided", " anew"),
    ];
    none(&violations(&files(), |file| lines_with(file, &phrases)));
}

/// Retired as names, and ordinary in a sentence: a page that somebody looks at, a chart that is drawn.
const ORDINARY: [&str; 8] = [
    "look", "looks", "looked", "looking", "taking", "draw", "draws", "drawn",
];
/// Ordinary English around words that are retired otherwise.
const ORDINARY_PHRASES: [&str; 5] = [
    "told apart",
    "ask for",
    "asks for",
    "asked for",
    "asking for",
];
/// Names in texts: the column of the mark, and the reason that a cancelled run had in a release before.
const NAMES_IN_TEXTS: [&str; 4] = [" l.ask,", " ask is not null", "live_ask", "`asked`"];

/// Comments, what is printed, papers and the contract say what is done: recorded, announced, queried, checked or done again.
#[test]
fn no_sentence_has_a_word_that_is_retired() {
    let has_sentences = |file: &File| {
        let is_released = file.path.contains("/migrations/");
        let is_paper = file.path.ends_with(".md") || file.path == "api/openapi.json";
        // This file names the words.
        let is_source = file.is_rust() && !file.path.ends_with("/tidy.rs");
        is_paper || is_source || file.path.ends_with(".sql") && !is_released
    };
    let sources: Vec<File> = files().into_iter().filter(has_sentences).collect();
    none(&violations(&sources, |file| {
        let sentences = if file.is_rust() {
            parts_of(&file.text).1
        } else if file.path.ends_with(".sql") {
            let lines = file.text.lines().map(|line| line.split_once("--"));
            let lines: Vec<&str> = lines.map(|line| line.map_or("", |it| it.1)).collect();
            lines.join("\n")
        } else {
            file.text.clone()
        };
        let lines = sentences.lines().enumerate();
        lines
            .flat_map(|(at, line)| said(line).map(move |says| format!("line {}: {says}", at + 1)))
            .collect()
    }));
}

/// What is to be said instead of the retired words of a line of prose.
fn said(line: &str) -> impl Iterator<Item = String> {
    let mut line = line.to_lowercase();
    for kept in ORDINARY_PHRASES.iter().chain(&NAMES_IN_TEXTS) {
        line = line.replace(kept, "");
    }
    retired(&line, &ORDINARY).collect::<Vec<_>>().into_iter()
}

#[test]
fn retired_words_are_found_within_sentences() {
    let check = |line, expected: usize| assert_eq!(said(line).count(), expected, "{line}");
    check("It is told twice, and judged anew.", 3);
    check(
        "Days are told apart; runs that were asked for, asked again.",
        1,
    );
    check("Asks the store.", 1);
    check("A clock that a node looks at is drawn.", 0);
    check("SELECT l.id, l.ask, l.state", 0);
}

/// Rust without its comments and without what stands between quotation marks, line by line as it was.
fn code_of(text: &str) -> String {
    parts_of(text).0
}

/// The code, and what is comment or stands between quotation marks; each line by line as it was.
fn parts_of(text: &str) -> (String, String) {
    let (mut code, mut sentences) = (String::new(), String::new());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let hashes = rest
            .strip_prefix('r')
            .map(|it| it.len() - it.trim_start_matches('#').len());
        let is_name = code.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let raw = hashes.filter(|count| !is_name && rest[1 + count..].starts_with('"'));
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(count) = raw {
            let close = format!("\"{}", "#".repeat(count));
            let begin = count + 2;
            let end = rest[begin..].find(&close);
            end.map_or(rest.len(), |end| begin + end + close.len())
        } else if first == '"' {
            quoted(rest)
        } else if rest.starts_with("'\"'") {
            3
        } else if rest.starts_with("'\\") {
            rest[3..].find('\'').map_or(rest.len(), |end| end + 4)
        } else {
            code.push(first);
            if first == '\n' {
                sentences.push(first);
            }
            rest = &rest[first.len_utf8()..];
            continue;
        };
        let (gone, after) = rest.split_at(skipped);
        code.extend(gone.chars().filter(|c| *c == '\n'));
        // What stood there parts names.
        code.push(' ');
        sentences.push_str(gone);
        sentences.push(' ');
        rest = after;
    }
    (code, sentences)
}

/// How long the string is that this begins with.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == '"' && !escaped {
            return at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    text.len()
}

#[test]
fn code_is_what_is_neither_comment_nor_string() {
    let check = |text, expected: &str| assert_eq!(code_of(text).replace(' ', ""), expected);
    check("a // told\nb", "a\nb");
    check("f(\"ask \\\" look\", b)", "f(,b)");
    check("\"one\n\\\ntold\" x", "\n\nx");
    check("r#\"ask \" look\"# + for\"a\"", "+for");
    check("['\"', '\\'', x, 'a']", "[,,x,'a']");
    check("/* look */ &'a str", "&'astr");
    let (_, sentences) = parts_of("a // told\nb(\"anew\")");
    assert_eq!(sentences, "// told \n\"anew\" ");
}

/// What is to be said instead of the retired words in these names, in `snake_case` or `CamelCase`, other than in those
/// that are kept.
fn retired(code: &str, kept: &[&str]) -> impl Iterator<Item = String> {
    let names = code.split(|c: char| !c.is_alphanumeric() && c != '_');
    let names: Vec<&str> = names.filter(|name| !kept.contains(name)).collect();
    let mut parts = String::new();
    for c in names.join(" ").chars() {
        if c.is_uppercase() && parts.ends_with(char::is_lowercase) {
            parts.push('_');
        }
        parts.push(c);
    }
    let words = parts.split(|c: char| !c.is_alphanumeric());
    let found = words.filter_map(|word| {
        let word = word.to_lowercase();
        let mut rules = RETIRED.iter();
        let (_, instead) = rules.find(|(all, _)| all.contains(&word.as_str()))?;
        Some(format!("{word}: say {instead}"))
    });
    found.collect::<Vec<_>>().into_iter()
}

#[test]
fn retired_words_are_found_within_names() {
    let check = |code, expected: &[&str]| {
        let found: Vec<String> = retired(code, &["ask", "live_ask"]).collect();
        let words = found.iter().filter_map(|says| says.split(':').next());
        assert_eq!(words.collect::<Vec<_>>(), expected, "{code}");
    };
    check("fn is_asked(LookAt)", &["asked", "look"]);
    check("LOOK_EVERY.tell()", &["look", "tell"]);
    check("lookup.task.took.seating", &[]);
    check("l.ask live_ask asked l.ask_all", &["asked", "ask"]);
}

/// The lines that hold one of `words`, by number.
fn lines_with(file: &File, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, line) in file.text.lines().enumerate() {
        for word in words.iter().filter(|word| line.contains(*word)) {
            found.push(format!("line {}: {word}", at + 1));
        }
    }
    found
}

/// The duties of a node, each with the files that are part of it.
const DUTIES: [&[&str]; 22] = [
    &["beats"],
    &["leases"],
    &["plan"],
    &["fire", "fired", "lead", "writes"],
    &["claim_due"],
    &["dispatch", "attempt", "payloads"],
    &["hand_over"],
    &["handed"],
    &["settle"],
    &["wake"],
    &["replays"],
    &["count_runs"],
    &["flush"],
    &["seal"],
    &["secrets"],
    &["marks"],
    &["watchdog", "backlog"],
    &["rules"],
    &["alerts"],
    &["retention"],
    &["hints"],
    &["stop"],
];

/// Duties meet in the store, on the board and in queues. A duty that uses another's file calls it, or will.
#[test]
fn no_duty_uses_another() {
    let mut violations = Vec::new();
    for duty in DUTIES {
        let others = DUTIES.iter().filter(|other| **other != duty);
        let others: Vec<&str> = others.flat_map(|other| other.iter().copied()).collect();
        for file in duty {
            let path = format!("crates/engine/src/{file}.rs");
            let text = read(&path);
            if text.contains("use crate::{") {
                violations.push(format!("{path}: imports from `crate` one by one, please"));
            }
            let used = text.split("crate::").skip(1);
            let used = used.map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_'));
            for used in used.filter_map(|mut words| words.next()) {
                if others.contains(&used) {
                    violations.push(format!("{path}: uses {used}"));
                }
            }
        }
    }
    none(&violations);
}

/// What a duty does to jobs and runs it does in batches: no loop over items, other than one over chunks, calls the store.
#[test]
fn no_duty_calls_the_store_for_each_item() {
    // A replay moves on by itself, over its own step, and few are under way at once.
    const ONE_BY_ONE: &str = "store.replays().move_replay(";
    let duties = DUTIES.iter().flat_map(|duty| duty.iter());
    let duties: Vec<File> = duties
        .map(|duty| {
            let path = format!("crates/engine/src/{duty}.rs");
            let text = read(&path);
            File { path, text }
        })
        .collect();
    none(&violations(&duties, |file| {
        let (mut found, mut within) = (Vec::new(), None);
        for (at, line) in file.product().lines().enumerate() {
            let line = line.split("//").next().unwrap_or_default();
            let depth = line.len() - line.trim_start().len();
            if line.trim_start().starts_with("for ") {
                let few = line.contains(".chunks(") || line.contains(" in 0..");
                within = within.or((!few).then_some(depth));
            } else if within.is_some_and(|outer| depth <= outer && line.trim() == "}") {
                within = None;
            } else if within.is_some() && line.contains("store.") && !line.contains(ONE_BY_ONE) {
                found.push(format!("line {}: a call for each item", at + 1));
            }
        }
        found
    }));
}

/// It speaks to a server as everyone does. `backup` opens a folder, and says so in its help.
#[test]
fn the_command_line_opens_no_store() {
    let mut commands = files();
    commands.retain(|file| {
        let is_command = file.path.starts_with("crates/punctual/src/cli/");
        is_command && !file.path.ends_with("/backup.rs")
    });
    assert!(commands.len() > 20, "they have moved");
    none(&violations(&commands, |file| {
        lines_with(file, &["store::", "executor::", "engine::Node"])
    }));
}

/// What leaves a node passes the egress guard, which is the one to resolve names and to connect.
#[test]
fn nothing_is_dialled_but_by_the_egress_guard() {
    const WAYS: [&str; 4] = [
        "TcpStream::connect",
        "TcpSocket::",
        "lookup_host",
        "to_socket_addrs",
    ];
    let is_of_node = |file: &&File| {
        ["executor", "engine", "server"]
            .iter()
            .any(|name| file.path.starts_with(&format!("crates/{name}/src/")))
            && !file.is_test()
            && !file.path.starts_with("crates/executor/src/egress/")
            || file.path.starts_with("crates/punctual/src/serve/") && !file.is_test()
    };
    let ours: Vec<File> = files()
        .into_iter()
        .filter(|file| is_of_node(&file))
        .collect();
    assert!(ours.len() > 100, "they have moved");
    none(&violations(&ours, |file| lines_with(file, &WAYS)));
}

/// What opens something is compared by what takes as long wherever it differs, and never by what stops at the first byte.
#[test]
fn what_lets_somebody_in_is_compared_in_constant_time() {
    const DOORS: [(&str, &str); 3] = [
        ("crates/server/src/access.rs", "is_same(&digest("),
        ("crates/server/src/ops/sessions.rs", "is_same(self.csrf("),
        ("crates/engine/src/tokens.rs", ".verify_slice("),
    ];
    const WORDS: [&str; 3] = ["digest", "csrf", ".code"];
    let is_door = |file: &File| {
        let path = file.path.as_str();
        let is_server = path.starts_with("crates/server/src/") && file.is_rust();
        is_server && !file.is_test() || DOORS.iter().any(|(door, _)| *door == path)
    };
    let doors: Vec<File> = files().into_iter().filter(is_door).collect();
    none(&violations(&doors, |file| {
        let code = code_of(file.product());
        let parts = code.split([';', '{', '}']);
        let compares = |part: &&str| part.contains("==") || part.contains("!=");
        let parts = parts.filter(compares);
        let secret = parts.filter(|part| WORDS.iter().any(|word| part.contains(word)));
        secret.map(|part| format!("{:?}", part.trim())).collect()
    }));
    for (path, way) in DOORS {
        assert!(code_of(&read(path)).contains(way), "{path}: not by {way}");
    }
    let same = read("crates/server/src/same.rs");
    assert!(same.contains("one.ct_eq(other)"), "{same}");
}

/// A queue is made with a bound that has a name, at the head of its file or in `model/src/limits.rs`.
#[test]
fn every_queue_has_a_bound_with_a_name() {
    const QUEUES: [&str; 3] = ["mpsc::channel", "sync_channel", "broadcast::channel"];
    const ENDLESS: [&str; 4] = ["unbounded_channel", "UnboundedSender", "crossbeam", "flume"];
    let product = product();
    let mut queues = 0;
    let mut wrong = violations(&product, |file| lines_with(file, &ENDLESS));
    wrong.extend(violations(&product, |file| {
        let mut found = Vec::new();
        for (at, line) in file.product().lines().enumerate() {
            let made = QUEUES.iter().find_map(|way| line.split_once(way));
            let Some((_, bound)) = made.and_then(|(_, rest)| rest.split_once('(')) else {
                continue;
            };
            queues += 1;
            let bound = bound.split(')').next().unwrap_or_default();
            // One is room for one answer.
            if !bound.ends_with("_MAX") && bound != "1" {
                let at = at + 1;
                found.push(format!(
                    "line {at}: a queue of {bound:?}: name its bound …_MAX"
                ));
            }
        }
        found
    }));
    assert!(queues > 5, "they have moved");
    none(&wrong);
}

/// An attempt ends by a settlement: one place moves its run on, and one duty sends what it decided to the store.
#[test]
fn an_attempt_ends_by_a_settlement_alone() {
    const WAYS: [(&str, &[&str]); 3] = [
        ("RunEvent::Settled", &["crates/model/src/view/settle.rs"]),
        ("E::Settled", &["crates/model/src/run.rs"]),
        // The second writes the history of a bench, as a node would.
        (
            "store.settle(",
            &[
                "crates/engine/src/settle.rs",
                "crates/punctual/src/bench/history.rs",
            ],
        ),
    ];
    let product = product();
    let mut wrong = Vec::new();
    for (way, places) in WAYS {
        let others: Vec<File> = product
            .iter()
            .filter(|file| !places.contains(&file.path.as_str()))
            .map(|file| File {
                path: file.path.clone(),
                text: file.product().to_owned(),
            })
            .collect();
        assert!(others.len() < product.len(), "{places:?} has moved");
        assert!(read(places[0]).contains(way), "{way} has moved");
        wrong.extend(violations(&others, |file| lines_with(file, &[way])));
    }
    none(&wrong);
}

/// Nodes send each other hints: one statement notifies, and what it may say is ids.
#[test]
fn nodes_send_each_other_hints_alone() {
    const IDS: [&str; 3] = ["TenantId", "JobId", "Shard"];
    const HINT: &str = "crates/store/src/postgres/sql/hint.sql";
    let mut others = files();
    others.retain(|file| {
        let is_statement = file.path.ends_with(".sql") && file.path != HINT;
        let is_product = file.is_rust() && file.path.contains("/src/") && !file.is_test();
        is_statement || is_product && !file.path.contains("/bench/")
    });
    assert!(read(HINT).contains("pg_notify("), "it has moved");
    let mut wrong = violations(&others, |file| {
        lines_with(file, &["pg_notify", "\"NOTIFY ", "format!(\"NOTIFY"])
    });
    let types = read("crates/store/src/types.rs");
    let (_, hints) = types.split_once("pub enum Hint {").unwrap();
    let (hints, _) = hints.split_once("\n}").unwrap();
    let hints = code_of(hints);
    let names = hints.split(|c: char| !c.is_alphanumeric());
    let held = hints.split('(').skip(1);
    let held = held.flat_map(|rest| rest.split(')').next().unwrap_or_default().split(", "));
    assert!(names.count() > 10, "they have moved");
    let others = held.filter(|name| !IDS.contains(name));
    wrong.extend(others.map(|name| format!("Hint holds {name}, which is no id")));
    none(&wrong);
}

/// Each executor runs the suite, with the promise that a deadline ends a delivery. `http` speaks both of its protocols.
#[test]
fn every_executor_passes_the_suite() {
    let sources: Vec<File> = files()
        .into_iter()
        .filter(|file| file.path.starts_with("crates/executor/") && file.is_rust())
        .collect();
    let kind = |file: &File| {
        let parts = file.path.split('/').nth(3);
        parts.unwrap_or_default().to_owned()
    };
    let with = |text: &str| -> BTreeSet<String> {
        let found = sources.iter().filter(|file| file.text.contains(text));
        found.map(kind).collect()
    };
    let executors = with("impl Executor for ");
    assert!(executors.len() > 1, "they have moved");
    let tested = with("conformance_suite!");
    none(&executors.difference(&tested).cloned().collect::<Vec<_>>());
}

/// What is in the audit log stays as it was written, until it goes with its segment.
#[test]
fn no_statement_changes_an_audit_entry() {
    let mut statements = files();
    statements.retain(|file| file.path.contains("/src/") && !file.is_test());
    none(&violations(&statements, |file| {
        lines_with(file, &["UPDATE audit ", "REPLACE INTO audit "])
    }));
}

/// Nobody outside of the board can hold its lock, so nobody waits or takes another while it is held.
#[test]
fn the_lock_of_the_board_stays_in_its_methods() {
    let mut board = files();
    board.retain(|file| file.path.starts_with("crates/engine/src/board/"));
    let guards = |file: &File| {
        let signatures = file.text.split("\n}").flat_map(|text| text.split("fn "));
        let heads = signatures.filter_map(|text| text.split('{').next());
        heads.filter(|head| head.contains("MutexGuard<")).count()
    };
    assert_eq!(board.iter().map(guards).sum::<usize>(), 1, "one gives it");
    let own = read("crates/engine/src/board/mod.rs");
    assert!(
        own.contains("\n    fn state(&self) -> MutexGuard<"),
        "to its own methods"
    );
    none(&violations(&board, |file| {
        lines_with(file, &["async fn ", ".await", "pub(crate) state:"])
    }));
}

/// What is said to be absent is kept so by a test that is there.
#[test]
fn every_invariant_names_the_tests_that_keep_it() {
    let text = read("ARCHITECTURE.md");
    let mut sources = String::new();
    for file in files().iter().filter(|file| file.is_rust()) {
        sources.push_str(&file.text);
    }
    let mut invariants = 0;
    let mut wrong = Vec::new();
    for paragraph in text
        .split("\n\n")
        .filter(|it| it.starts_with("**Invariant:**"))
    {
        invariants += 1;
        let keepers = paragraph.split_once("Kept by").map(|(_, names)| names);
        let keepers = keepers.unwrap_or_default().split('`').skip(1).step_by(2);
        let head: String = paragraph.chars().skip(15).take(50).collect();
        let mut named = 0;
        for keeper in keepers {
            named += 1;
            if !sources.contains(&format!("fn {keeper}(")) {
                wrong.push(format!("{head}…: there is no test {keeper}"));
            }
        }
        if named == 0 {
            wrong.push(format!("{head}…: nothing keeps it"));
        }
    }
    assert!(invariants > 20, "they have moved");
    none(&wrong);
}

/// A file that has moved is looked for in vain.
#[test]
fn every_file_that_the_papers_name_is_there() {
    let mut gone = Vec::new();
    for paper in ["docs/glossary.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = read(paper);
        let named = text.split('`').skip(1).step_by(2);
        for name in named.filter(|name| name.contains("/src/") && !name.contains(' ')) {
            let path = name.strip_prefix("crates/").unwrap_or(name);
            if !root().join("crates").join(path).exists() {
                gone.push(format!("{paper}: {name} is not there"));
            }
        }
    }
    none(&gone);
}

/// A row of the walk of a run: `| `fire` | `engine/src/fire.rs` | …`.
#[test]
fn every_function_of_the_walk_is_in_its_file() {
    let text = read("ARCHITECTURE.md");
    let mut steps = 0;
    let mut gone = Vec::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('`').collect();
        let ["| ", function, " | ", path, ..] = cells.as_slice() else {
            continue;
        };
        steps += 1;
        if !read(&format!("crates/{path}")).contains(&format!("fn {function}(")) {
            gone.push(format!(
                "ARCHITECTURE.md: {path} has no function {function}"
            ));
        }
    }
    assert_eq!(steps, 12, "the walk has moved");
    none(&gone);
}

#[test]
fn every_guide_is_in_the_index() {
    let index = read("docs/README.md");
    let guides = names("docs/guides").into_iter();
    let absent = guides.filter(|guide| !index.contains(&format!("(guides/{guide})")));
    let says = |guide: String| format!("docs/README.md: {guide} is not in it");
    none(&absent.map(says).collect::<Vec<_>>());
}

/// What else sleeps waits for a database server or for processes to end, and decides nothing.
#[test]
fn only_the_clock_sleeps() {
    const SLEEPERS: [&str; 7] = [
        "crates/engine/src/clock.rs",
        "crates/executor/src/shell/supervise.rs",
        "crates/sim/src/clock.rs",
        "crates/store/src/postgres/listen.rs",
        "crates/store/src/postgres/migrate.rs",
        "crates/store/src/postgres/pool.rs",
        // It starts servers for tests.
        "crates/store/src/postgres/server.rs",
    ];
    let mut others = product();
    others.retain(|file| !SLEEPERS.contains(&file.path.as_str()));
    none(&violations(&others, |file| {
        lines_with(file, &["clippy::disallowed_methods"])
    }));
}

/// What tests alone may do is in no binary that people run.
#[test]
fn the_product_has_no_flaws_on_purpose() {
    let with_flaws = names("crates").into_iter().filter(|folder| {
        let manifest = read(&format!("crates/{folder}/Cargo.toml"));
        manifest.contains("\"flaws\"") && folder != "sim"
    });
    none(&with_flaws.collect::<Vec<_>>());
}

#[test]
fn what_nobody_can_reach_is_not_public() {
    let open = names("crates").into_iter().filter(|folder| {
        let roots = ["lib", "main"].map(|name| format!("crates/{folder}/src/{name}.rs"));
        let roots = roots.iter().filter(|path| root().join(path).exists());
        !roots
            .map(|path| read(path))
            .any(|text| text.contains("#![deny(unreachable_pub)]"))
    });
    none(&open.collect::<Vec<_>>());
}

/// `model` has rules and nothing that reads, waits, rolls dice or writes JSON.
#[test]
fn the_model_depends_on_little() {
    let manifest: toml::Table = read("crates/model/Cargo.toml").parse().unwrap();
    let used = manifest["dependencies"].as_table().unwrap().keys();
    let allowed = ["bytes", "http", "jiff", "thiserror", "uuid"];
    let others = used.filter(|name| !allowed.contains(&name.as_str()));
    none(&others.cloned().collect::<Vec<_>>());
}

/// A page shows text through a template that escapes it; what does not is made of numbers and words of ours.
#[test]
fn templates_escape() {
    let mut templates = files();
    templates.retain(|file| file.path.contains("/templates/"));
    assert!(templates.len() > 5, "they have moved");
    for file in &mut templates {
        // The last is the text of another template.
        for safe in [
            "{{ cell.shapes|safe }}",
            "{{ chart.shapes|safe }}",
            "{{ main|safe }}",
        ] {
            file.text = file.text.replace(safe, "");
        }
    }
    none(&violations(&templates, |file| {
        lines_with(file, &["|safe", "| safe"])
    }));
}

#[test]
fn every_problem_has_its_page_and_every_page_its_problem() {
    let pages: BTreeSet<String> = names("docs/problems").into_iter().collect();
    let kinds = server::ProblemKind::ALL.iter();
    let expected: BTreeSet<String> = kinds.map(|kind| format!("{}.md", kind.name())).collect();
    let odd = pages.symmetric_difference(&expected);
    none(
        &odd.map(|page| {
            format!("docs/problems/{page}: a page without its problem, or the reverse")
        })
        .collect::<Vec<_>>(),
    );
}

#[test]
fn migrations_come_in_pairs_and_are_numbered_without_gaps() {
    let of = |store: &str| names(&format!("crates/store/src/{store}/migrations"));
    let sqlite = of("sqlite");
    let mut wrong = Vec::new();
    for (at, name) in sqlite.iter().enumerate() {
        let number = format!("{:04}_", at + 1);
        if !name.starts_with(&number) || !name.ends_with(".sql") {
            wrong.push(format!("sqlite/migrations/{name}: expected {number}….sql"));
        }
    }
    // PostgreSQL has its migrations from the day that it has a folder.
    if !names("crates/store/src/postgres").is_empty() {
        let sqlite: BTreeSet<_> = sqlite.into_iter().collect();
        let postgres: BTreeSet<_> = of("postgres").into_iter().collect();
        wrong.extend(
            sqlite
                .symmetric_difference(&postgres)
                .map(|name| format!("{name} has no pair")),
        );
    }
    none(&wrong);
}

#[test]
fn the_papers_are_there() {
    let root = names("");
    for name in [
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "Makefile",
        "README.md",
    ] {
        assert!(root.iter().any(|found| found == name), "{name} is missing");
    }
}

// How the checkout is read.

/// Fails with all of the violations, one to a line.
#[track_caller]
fn none(violations: &[String]) {
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

/// Files in which `wrong` finds something, with what it found.
fn violations<F>(files: &[File], mut wrong: F) -> Vec<String>
where
    F: FnMut(&File) -> Vec<String>,
{
    let of_file = |file: &File| {
        let path = file.path.clone();
        wrong(file)
            .into_iter()
            .map(move |what| format!("{path}: {what}"))
            .collect::<Vec<_>>()
    };
    files.iter().flat_map(of_file).collect()
}

struct File {
    /// From the root of the checkout.
    path: String,
    text: String,
}

impl File {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// What stands before the tests that it ends with.
    fn product(&self) -> &str {
        let mut parts = self.text.split("#[cfg(test)]\nmod tests {");
        parts.next().unwrap_or_default()
    }

    /// Whether it holds tests alone.
    fn is_test(&self) -> bool {
        self.path.ends_with("_tests.rs") || self.path.contains("/tests/")
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// What is in the binary: no tests, and nothing that only tests are built with.
fn product() -> Vec<File> {
    let mut product = files();
    product.retain(|file| {
        let is_source = file.is_rust() && file.path.contains("/src/") && !file.is_test();
        is_source && !file.path.contains("/conformance/")
    });
    product
}

/// Every text file that people write, in order. What tools write (`Cargo.lock`) is not among them, nor
/// is what is built.
fn files() -> Vec<File> {
    let root = root();
    let mut found = Vec::new();
    walk(&root, &root, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(
        found.len() > 50,
        "only {} files under {}",
        found.len(),
        root.display()
    );
    found
}

fn walk(root: &Path, folder: &Path, found: &mut Vec<File>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().unwrap().is_dir() {
            if !["target", ".git", "data"].contains(&name.as_str()) {
                walk(root, &path, found);
            }
            continue;
        }
        if name == "Cargo.lock" || name.starts_with("LICENSE") {
            continue;
        }
        // Not text, or gone since the folder was read: an editor's scratch file, an image.
        if let Ok(text) = fs::read_to_string(&path) {
            let path = path
                .strip_prefix(root)
                .unwrap()
                .to_string_lossy()
                .into_owned();
            found.push(File { path, text });
        }
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The names in a folder of the checkout; none if there is no such folder.
fn names(folder: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(root().join(folder)) else {
        return Vec::new();
    };
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
