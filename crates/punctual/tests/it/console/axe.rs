//! What keeps people out of a page, as axe-core finds it: too little contrast, controls without a name, lists that are none.

use std::path::PathBuf;

use serde_json::Value;

use super::driver::Browser;
use crate::support::skip;

pub struct Axe(String);

impl Axe {
    /// None where it is not installed, which is said.
    pub fn find() -> Option<Self> {
        let tools = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../tools");
        let script = tools.join("axe/node_modules/axe-core/axe.min.js");
        let text = std::fs::read_to_string(script).ok();
        if text.is_none() {
            skip("axe-core is not installed");
        }
        text.map(Self)
    }

    /// Nothing on the page that it calls serious or critical.
    #[track_caller]
    pub fn check(&self, browser: &Browser, name: &str) {
        browser.js(&self.0);
        let found = browser.js(
            "return axe.run(document, {resultTypes: ['violations']}).then(found => found.violations
                .filter(it => ['serious', 'critical'].includes(it.impact))
                .map(it => [it.id, it.nodes.map(node => [node.html.slice(0, 160), node.failureSummary])]))",
        );
        assert_eq!(found, Value::Array(Vec::new()), "{name}: {found:#}");
    }
}
