//! People who log in to the console, as the command line keeps them.

use super::{fails, value};
use crate::support::Server;

const FIRST: &str = "correct horse battery";
const SECOND: &str = "another horse battery";

/// A command with what is written to it.
#[track_caller]
fn done(server: &Server, says: &str, line: &str) -> String {
    let output = server.bash(&format!("echo '{says}' | punctual {line}"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {error}");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(!printed.contains(says) && !error.contains(says));
    printed
}

/// Whether a name and a password open the console.
fn logs_in(server: &Server, password: &str) -> bool {
    let body = format!("name=ada&password={}", password.replace(' ', "+"));
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let http = server.http();
    let reply = http.send("POST", "/login", &form, body.as_bytes());
    assert!([303, 401].contains(&reply.status), "{}", reply.status);
    reply.status == 303
}

#[test]
fn a_user_is_made_given_another_password_listed_and_deleted() {
    let server = Server::start_with_keys();
    done(&server, FIRST, "user create ada --role operator");
    done(&server, FIRST, "user create bob --role reader");
    assert!(logs_in(&server, FIRST));
    let listed = value(&server.printed("user list --json"));
    let items = listed["items"].as_array().unwrap();
    let names = items.iter().map(|user| user["name"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["ada", "bob"]);
    let table = server.printed("user list");
    assert!(
        table.contains("ada") && table.contains("operator"),
        "{table}"
    );

    done(&server, SECOND, "user passwd ada");
    assert!(logs_in(&server, SECOND) && !logs_in(&server, FIRST));
    let short = server.bash("echo short | punctual user passwd ada");
    fails(&short, 1, &["password"]);
    assert!(logs_in(&server, SECOND), "it stays as it was");

    server.printed("user delete ada");
    assert!(!logs_in(&server, SECOND));
    let table = server.printed("user list");
    assert!(!table.contains("ada") && table.contains("bob"), "{table}");
    fails(&server.cli("user delete ada"), 1, &["ada"]);
}
