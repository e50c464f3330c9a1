//! The papers that the server shows: the guides as they are committed, within the binary, and the API made from the
//! contract. They are readable offline, without a script.
//!
//! In reading order: here (which pages there are), `render` (from Markdown to HTML), `reference` (the API as Markdown).

mod reference;
mod render;

use std::sync::OnceLock;

pub(crate) use render::{document, plain};

/// How all pages look.
pub(crate) const STYLE: &str = include_str!("style.css");
/// Where the API is described.
pub(crate) const API: &str = "/docs/api";

/// One paper.
#[derive(Debug)]
pub(crate) struct Page {
    /// Its file, from the root of the repository.
    file: &'static str,
    /// Where it is shown.
    pub(crate) at: &'static str,
    /// What the list of pages calls it.
    pub(crate) name: &'static str,
    markdown: &'static str,
}

macro_rules! pages {
    ($($at:literal, $name:literal, $file:literal;)*) => {
        &[$(Page {
            file: $file,
            at: $at,
            name: $name,
            markdown: include_str!(concat!("../../../../", $file)),
        }),*]
    };
}

/// In the order of the list. A test fails when a guide is missing here.
pub(crate) const PAGES: &[Page] = pages! {
    "/docs", "Contents", "docs/README.md";
    "/docs/schedules", "Schedules", "docs/guides/schedules.md";
    "/docs/receivers", "Receivers", "docs/guides/receivers.md";
    "/docs/callbacks", "Work that reports later", "docs/guides/callbacks.md";
    "/docs/policies", "Policies", "docs/guides/policies.md";
    "/docs/dead-runs", "Dead runs", "docs/guides/dead-runs.md";
    "/docs/deploy", "Deploy", "docs/guides/deploy.md";
    "/docs/alerts", "Alerts", "docs/guides/alerts.md";
    "/docs/configuration", "Configuration", "docs/guides/configuration.md";
    "/docs/console", "Console", "docs/guides/console.md";
    "/docs/access", "Access", "docs/guides/access.md";
    "/docs/audit", "Audit", "docs/guides/audit.md";
    "/docs/overview", "Overview", "docs/guides/overview.md";
    "/docs/secrets", "Secrets", "docs/guides/secrets.md";
    "/docs/egress", "Egress", "docs/guides/egress.md";
    "/docs/scripts", "Commands", "docs/guides/scripts.md";
    "/docs/targets", "Targets", "docs/guides/targets.md";
    "/docs/templates", "Templates", "docs/guides/templates.md";
    "/docs/front-door", "Front door", "docs/guides/front-door.md";
    "/docs/security", "Security", "SECURITY.md";
    "/docs/cluster", "Cluster", "docs/guides/cluster.md";
    "/docs/monitoring", "Monitoring", "docs/guides/monitoring.md";
    "/docs/backup", "Backups", "docs/guides/backup.md";
    "/docs/upgrade", "Upgrades", "docs/guides/upgrade.md";
    "/docs/glossary", "Words", "docs/glossary.md";
    "/docs/benchmarks", "Benchmarks", "docs/benchmarks.md";
    "/docs/changelog", "Changelog", "CHANGELOG.md";
};

impl Page {
    pub(crate) fn at(path: &str) -> Option<&'static Self> {
        PAGES.iter().find(|page| page.at == path)
    }

    pub(crate) fn html(&self) -> String {
        let body = render::body(self.markdown, |link| shown_at(self.file, link));
        document(self.name, self.at, &body)
    }
}

/// The API as a page. It is the same as long as the process runs.
pub(crate) fn api() -> &'static str {
    static PAGE: OnceLock<String> = OnceLock::new();
    PAGE.get_or_init(|| {
        let contract = serde_json::from_str(&crate::openapi_json()).unwrap_or_default();
        document("API", API, &plain(&reference::markdown(&contract)))
    })
}

/// Where a relative link of a file leads on the server; nothing if the file that it names is not shown.
fn shown_at(file: &str, link: &str) -> Option<String> {
    let (path, fragment) = match link.split_once('#') {
        Some((path, fragment)) => (path, format!("#{fragment}")),
        None => (link, String::new()),
    };
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    let named = parts.join("/");
    let problem = named
        .strip_prefix("docs/problems/")
        .and_then(|name| name.strip_suffix(".md"));
    let at = match problem {
        Some(name) => format!("/problems/{name}"),
        None => PAGES.iter().find(|page| page.file == named)?.at.to_owned(),
    };
    Some(at + &fragment)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

    #[test]
    fn every_guide_is_shown() {
        let folder = std::fs::read_dir(Path::new(ROOT).join("docs/guides")).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            format!("docs/guides/{}", entry.unwrap().file_name().display())
        };
        let guides: BTreeSet<String> = folder.map(name).collect();
        let shown = PAGES.iter().map(|page| page.file.to_owned());
        let shown: BTreeSet<String> = shown
            .filter(|file| file.starts_with("docs/guides"))
            .collect();
        assert_eq!(guides, shown);
    }

    #[test]
    fn links_lead_to_the_same_paper_on_the_server() {
        let at = |link| shown_at("docs/guides/cluster.md", link);
        assert_eq!(at("backup.md").unwrap(), "/docs/backup");
        assert_eq!(at("backup.md#make-one").unwrap(), "/docs/backup#make-one");
        assert_eq!(at("../benchmarks.md").unwrap(), "/docs/benchmarks");
        assert_eq!(at("../../CHANGELOG.md").unwrap(), "/docs/changelog");
        assert_eq!(at("../problems/unwell.md").unwrap(), "/problems/unwell");
        assert_eq!(at("../decisions/0002-retry-after.md"), None);
        assert_eq!(at("../../../../etc/passwd"), None);
    }
}
