use std::net::TcpListener;

use tempfile::TempDir;

use super::{block, run};
use crate::support::{KEYS, Receiver, Server, wait_for};

#[test]
fn the_drill_of_the_guide_restores_a_backup_and_calls_nobody() {
    let folder = TempDir::new().unwrap();
    let server = Server::start_in(folder.path(), &["--node", "source", KEYS]);
    let receiver = Receiver::start();
    let url = receiver.url("/");
    server.printed(&format!(
        "job create --key drilled --cron @daily --url {url}"
    ));
    server.printed("job run drilled");
    wait_for("the run", || (receiver.count() == 1).then_some(()));
    // Due every second, on the copy as well.
    server.printed(&format!("job create --key busy --every 1s --url {url}"));
    let own = TempDir::new().unwrap();
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let script = block("docs/guides/backup.md", "## The drill", "sh")
        .replace("/tmp", own.path().to_str().unwrap())
        .replace("/var/lib/punctual", server.folder().to_str().unwrap())
        .replace("127.0.0.1:7799", &format!("127.0.0.1:{port}"));
    let shown = run(&script, &server);
    let (shown, log) = (
        String::from_utf8_lossy(&shown.stdout),
        String::from_utf8_lossy(&shown.stderr),
    );
    assert!(
        shown.contains("drilled") && shown.contains("busy"),
        "{shown}"
    );
    assert!(shown.contains("succeeded"), "{shown}");
    assert!(log.contains("held: nothing fires here"), "{log}");
    for delivery in receiver.deliveries() {
        assert_eq!(
            delivery.header("punctual-node"),
            "source",
            "the copy called"
        );
    }
    assert!(
        !own.path().join("drill").exists(),
        "the copy is thrown away"
    );
}
