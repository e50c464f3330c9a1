//! What commands do to stay, to see and to take more than is theirs.

use std::sync::Arc;
use std::time::Duration;

use executor::Executor;
use executor::shell::ShellExecutor;
use model::{Outcome, ShellTarget};
use nix::unistd::Uid;

use super::{all_gone, config, executor, nobody, order, processes_with, script, skip, text};

/// Processes that leave in every way there is: into the background, into a session of their own, deaf to every signal that can
/// be ignored, with a parent that is gone.
const LEAVES: &str = "sleep 1001 & \
    setsid sleep 1002 & \
    (setsid sh -c 'trap \"\" TERM HUP INT; (sleep 1003 & sleep 1004 &) ; sleep 1005' &) ; \
    nohup sh -c 'sleep 1006 & sleep 1007' >/dev/null 2>&1 & \
    sleep 0.3; ";

#[tokio::test]
async fn nothing_that_a_command_started_outlives_it() {
    let order = order(script(&format!("{LEAVES} echo done")), None);
    let run = order.run.to_string();
    let report = executor().execute(order).await;
    assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
    assert_eq!(
        text(&report),
        "done\n",
        "output of others is not waited for"
    );
    assert_eq!(processes_with(&run), Vec::<i32>::new());
}

#[tokio::test]
async fn nothing_outlives_a_delivery_that_is_dropped() {
    let order = order(
        script(&format!("{LEAVES} trap '' TERM; sleep 1000; sleep 1000")),
        None,
    );
    let (run, executor) = (order.run.to_string(), Arc::new(executor()));
    let delivery = tokio::spawn(async move { executor.execute(order).await });
    let deadline = tokio::time::timeout(Duration::from_secs(3), std::future::pending::<()>());
    deadline.await.unwrap_err();
    assert!(processes_with(&run).len() > 5, "they are there");
    delivery.abort();
    // They get SIGTERM, and five seconds to end by it.
    let gone = tokio::task::spawn_blocking(move || all_gone(&run));
    gone.await.unwrap();
}

#[tokio::test]
async fn a_fork_bomb_is_ended_and_says_so() {
    let Some(nobody) = nobody() else {
        return skip("only root can start commands as somebody else");
    };
    let mut config = config();
    config.run_as = Some(nobody);
    (config.limits.processes_max, config.running_max) = (40, 1);
    let executor = ShellExecutor::new(config).unwrap();
    let order = order(script("b() { b | b & }; b; b; sleep 1000"), None);
    let run = order.run.to_string();
    let report = tokio::time::timeout(Duration::from_secs(30), executor.execute(order)).await;
    let report = report.unwrap();
    assert_eq!(report.outcome, Outcome::Failed);
    let error = report.error.unwrap();
    assert!(error.contains("more than 40 processes"), "{error}");
    assert_eq!(processes_with(&run), Vec::<i32>::new());
}

#[tokio::test]
async fn memory_and_files_are_bounded() {
    let mut config = config();
    (config.limits.memory_max, config.limits.file_max) = (256 << 20, 1 << 20);
    let executor = ShellExecutor::new(config).unwrap();
    let script =
        script("head -c 2000000 /dev/zero > large; stat -c %s large; ulimit -v; ulimit -c");
    let report = executor.execute(order(script, None)).await;
    let said = text(&report);
    assert!(said.contains("1048576\n262144\n0\n"), "{said}");
}

#[tokio::test]
async fn a_command_gets_its_payload_its_ids_and_nothing_of_the_node() {
    let large = "x".repeat(1_000_000);
    let mut target = script(
        "wc -c; wc -c < \"$PUNCTUAL_PAYLOAD\"; env | cut -d= -f1 | sort | tr '\\n' ' '; echo; echo \"$MINE\"; \
         pwd; echo \"$HOME\"; ls -A; ls /proc/self/fd | tr '\\n' ' '; echo; echo $PUNCTUAL_SLOT; tty",
    );
    target.set_env("MINE", Some("a b".to_owned())).unwrap();
    let report = executor().execute(order(target, Some(&large))).await;
    let said = text(&report);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..2], ["1000000", "1000000"], "{said}");
    assert_eq!(
        lines[2].trim(),
        "HOME LANG MINE PATH PUNCTUAL_ATTEMPT PUNCTUAL_JOB PUNCTUAL_NODE PUNCTUAL_PAYLOAD PUNCTUAL_RUN PUNCTUAL_SLOT \
         PUNCTUAL_TENANT PWD TMPDIR",
    );
    assert_eq!(lines[3], "a b");
    assert_eq!(lines[4], lines[5], "it starts in a folder of its own");
    assert_eq!(lines[6], "payload");
    // The last is that of the listing itself.
    assert_eq!(lines[7].trim(), "0 1 2 3");
    assert_eq!(lines[8], "2026-12-24T19:00:00.000Z");
    assert_eq!(lines[9], "not a tty");
    assert!(
        !std::path::Path::new(lines[4]).exists(),
        "and it is removed"
    );
    let cost = report.cost.unwrap();
    assert!(
        cost.memory_max > 100_000 && cost.cpu > Duration::ZERO,
        "{cost:?}"
    );
}

#[tokio::test]
async fn what_a_command_and_its_children_move_is_counted() {
    if std::fs::read_to_string("/proc/self/io").is_err() {
        return skip("this kernel counts no reads and writes (CONFIG_TASK_IO_ACCOUNTING)");
    }
    let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let at = |text: &str| {
        let mut target = script(text);
        target.dir = Some(folder.path().display().to_string());
        order(target, None)
    };
    let write = at("(dd if=/dev/zero of=file bs=64k count=48 conv=fsync 2>/dev/null)");
    let wrote = executor().execute(write).await.cost.unwrap().io.unwrap();
    assert!((3 << 20..8 << 20).contains(&wrote.written), "{wrote:?}");
    // Past what the kernel still has in memory.
    let read = at("sh -c 'dd if=file of=/dev/null bs=64k iflag=direct 2>/dev/null; true'");
    let read = executor().execute(read).await.cost.unwrap().io.unwrap();
    assert!((3 << 20..8 << 20).contains(&read.read), "{read:?}");
    assert!(read.written < 1 << 20, "{read:?}");
}

#[tokio::test]
async fn a_payload_that_nobody_reads_holds_up_nothing() {
    let order = order(
        ShellTarget::new(["/bin/true"]).unwrap(),
        Some(&"x".repeat(1_000_000)),
    );
    let report = executor().execute(order).await;
    assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
    assert_eq!(report.status, Some(0));
}

#[tokio::test]
async fn a_command_of_another_user_has_no_rights_of_the_node() {
    let Some(nobody) = nobody() else {
        return skip("only root can start commands as somebody else");
    };
    let mut config = config();
    config.run_as = Some(nobody);
    let executor = ShellExecutor::new(config).unwrap();
    let script = script(
        "id -u; id -G; kill -9 $PPID 2>/dev/null && echo killed; cat /proc/$PPID/environ 2>/dev/null && echo read; \
         grep NoNewPrivs /proc/self/status; cat; touch mine && echo written",
    );
    let report = executor.execute(order(script, Some("the payload"))).await;
    let (user, group) = (nobody.user, nobody.group);
    let expected = format!("{user}\n{group}\nNoNewPrivs:\t1\nthe payloadwritten\n");
    assert_eq!(text(&report), expected);
    assert!(Uid::effective().is_root());
}

#[tokio::test]
async fn arguments_are_read_by_no_shell() {
    let odd = ["$(id)", "`id`", "; id", "a b", "--", "-n", "*", "\"'\\", ""];
    let command = ["/usr/bin/printf", "%s|"].iter().chain(&odd);
    let target = ShellTarget::new(command.copied()).unwrap();
    let report = executor().execute(order(target, None)).await;
    assert_eq!(text(&report), format!("{}|", odd.join("|")));
}

#[tokio::test]
async fn how_a_command_ended_is_said() {
    for (text, error) in [
        ("exit 7", "it exited with code 7"),
        ("kill -9 $$", "it was ended by signal 9 (SIGKILL)"),
    ] {
        let report = executor().execute(order(script(text), None)).await;
        assert_eq!(report.error.as_deref(), Some(error));
    }
}
