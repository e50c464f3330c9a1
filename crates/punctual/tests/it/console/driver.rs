//! A real browser, driven over the WebDriver protocol: chromedriver on a free port, chromium without a window. What is needed of the
//! protocol is a handful of JSON requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{pause, program, wait_for};

/// How WebDriver names an element in its answers.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// How long the driver may take for one command: the first starts the browser.
const PATIENCE: Duration = Duration::from_secs(60);

/// The driver's end. It keeps connections open, so an answer ends where its length says.
struct Wire {
    address: String,
}

impl Wire {
    fn send(&self, method: &str, path: &str, body: &[u8]) -> Option<(u16, Value)> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let (host, length) = (&self.address, body.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(&[head.as_bytes(), body].concat()).ok()?;
        let mut answer = BufReader::new(stream);
        let mut line = String::new();
        answer.read_line(&mut line).ok()?;
        let status = line.split(' ').nth(1)?.parse().ok()?;
        let mut length = 0;
        loop {
            line.clear();
            answer.read_line(&mut line).ok()?;
            match line.trim().split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().ok()?;
                }
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        answer.read_exact(&mut body).ok()?;
        Some((status, serde_json::from_slice(&body).ok()?))
    }

    #[track_caller]
    fn ok(&self, method: &str, path: &str, body: &[u8]) -> Value {
        let answer = self.send(method, path, body);
        let (status, mut answer) = answer.unwrap_or_else(|| panic!("{path}: no answer"));
        assert_eq!(status, 200, "{path}: {answer}");
        answer["value"].take()
    }
}

pub struct Browser {
    wire: Wire,
    session: String,
    driver: Child,
    _profile: TempDir,
}

impl Browser {
    /// None where there is no browser, which is said.
    pub fn start() -> Option<Self> {
        program("chromium")?;
        let driver = program("chromedriver")?;
        let profile = TempDir::new().unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let driver = Command::new(driver)
            .arg(format!("--port={port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let wire = Wire {
            address: format!("127.0.0.1:{port}"),
        };
        wait_for("chromedriver", || wire.send("GET", "/status", b""));
        let data = format!("--user-data-dir={}", profile.path().display());
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--no-first-run",
            // A name that is not this machine's, as one in a company's network.
            "--host-resolver-rules=MAP punctual.test 127.0.0.1",
            &data,
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let answer = wire.ok("POST", "/session", wanted.to_string().as_bytes());
        let session = answer["sessionId"].as_str();
        let session = session
            .unwrap_or_else(|| panic!("no session: {answer}"))
            .to_owned();
        Some(Self {
            wire,
            session,
            driver,
            _profile: profile,
        })
    }

    #[track_caller]
    fn call(&self, path: &str, body: &Value) -> Value {
        let path = format!("/session/{}{path}", self.session);
        self.wire.ok("POST", &path, body.to_string().as_bytes())
    }

    fn devtools(&self, command: &str, params: Value) {
        let body = json!({"cmd": command, "params": params});
        self.call("/goog/cdp/execute", &body);
    }

    pub fn go(&self, url: &str) {
        self.call("/url", &json!({"url": url}));
    }

    /// As wide as this, in this colour scheme.
    pub fn resize(&self, width: u32, height: u32, scheme: &str) {
        let feature = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.devtools("Emulation.setEmulatedMedia", json!({"features": feature}));
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", size);
    }

    /// What a script answers.
    #[track_caller]
    pub fn js(&self, script: &str) -> Value {
        self.call("/execute/sync", &json!({"script": script, "args": []}))
    }

    #[track_caller]
    pub fn text(&self) -> String {
        self.js("return document.body.innerText")
            .as_str()
            .unwrap()
            .to_owned()
    }

    pub fn path(&self) -> String {
        self.js("return location.pathname")
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Waits until the page says something.
    #[track_caller]
    pub fn wait_text(&self, text: &str) {
        for _ in 0..300 {
            if self.text().contains(text) {
                return;
            }
            pause(Duration::from_millis(50));
        }
        panic!(
            "{:?} does not appear at {}:\n{}",
            text,
            self.path(),
            self.text()
        );
    }

    #[track_caller]
    pub fn click(&self, selector: &str) {
        let found = self.call(
            "/element",
            &json!({"using": "css selector", "value": selector}),
        );
        let id = found[ELEMENT].as_str().unwrap();
        self.call(&format!("/element/{id}/click"), &json!({}));
    }

    /// Types at whatever has the focus. `\u{e004}` is Tab, `\u{e006}` is Enter.
    pub fn keys(&self, text: &str) {
        let mut actions = Vec::new();
        for letter in text.chars() {
            for kind in ["keyDown", "keyUp"] {
                actions.push(json!({"type": kind, "value": letter.to_string()}));
            }
        }
        let source = json!({"type": "key", "id": "keyboard", "actions": actions});
        self.call("/actions", &json!({"actions": [source]}));
    }

    /// Presses a key while Control is held.
    pub fn control(&self, key: &str) {
        let press = |kind: &str, value: &str| json!({"type": kind, "value": value});
        let actions = [
            press("keyDown", "\u{e009}"),
            press("keyDown", key),
            press("keyUp", key),
            press("keyUp", "\u{e009}"),
        ];
        let source = json!({"type": "key", "id": "keyboard", "actions": actions});
        self.call("/actions", &json!({"actions": [source]}));
    }

    /// The name of the field that has the focus.
    pub fn focused(&self) -> String {
        let name = self.js("const it = document.activeElement; return it.name || it.textContent.trim() || it.tagName");
        name.as_str().unwrap_or_default().to_owned()
    }

    /// Moves the focus by Tab until it is on this field.
    #[track_caller]
    pub fn tab_to(&self, name: &str) {
        for _ in 0..80 {
            if self.focused() == name {
                return;
            }
            self.keys("\u{e004}");
        }
        panic!("Tab does not reach {name}: it is on {}", self.focused());
    }

    /// What the browser complained about: policies that were broken, scripts that failed.
    pub fn complaints(&self) -> Vec<String> {
        let lines = self.call("/se/log", &json!({"type": "browser"}));
        let lines = lines.as_array().cloned().unwrap_or_default();
        let of_pages = lines.iter().filter(|line| line["level"] == "SEVERE");
        of_pages.map(|line| line["message"].to_string()).collect()
    }

    pub fn screenshot(&self, to: &PathBuf) {
        let path = format!("/session/{}/screenshot", self.session);
        let answer = self.wire.ok("GET", &path, b"");
        let bytes = STANDARD.decode(answer.as_str().unwrap()).unwrap();
        std::fs::write(to, bytes).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let path = format!("/session/{}", self.session);
        let _closed = self.wire.send("DELETE", &path, b"");
        let _gone = self.driver.kill();
        let _ended = self.driver.wait();
    }
}
