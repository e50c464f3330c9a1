//! The promises of every executor, kept by that of commands.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use executor::conformance::Subject;
use executor::shell::ShellExecutor;
use executor::{Executor, WorkOrder};
use model::{AttemptNo, ExitCodes, JobId, RetryHint, RunId, ShellTarget};
use tempfile::TempDir;

use super::{executor, order, script};

struct Shell {
    executor: Option<Arc<ShellExecutor>>,
    folder: TempDir,
}

impl Shell {
    fn new() -> Self {
        Self {
            executor: Some(Arc::new(executor())),
            folder: TempDir::new().unwrap(),
        }
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Hanging processes that have begun, and are still there.
    fn alive(&self) -> usize {
        let pids = self.lines("begun");
        let stat = |pid: &String| fs::read_to_string(format!("/proc/{pid}/stat"));
        // A zombie has ended.
        let lives = |pid: &&String| stat(pid).is_ok_and(|stat| !stat.contains(") Z "));
        pids.iter().filter(lives).count()
    }

    fn in_folder(&self, text: &str) -> WorkOrder {
        let mut target = script(text);
        target.dir = Some(self.folder.path().display().to_string());
        order(target, Some("{}"))
    }
}

async fn pause() {
    tokio::time::timeout(Duration::from_millis(20), std::future::pending::<()>())
        .await
        .unwrap_or_default();
}

impl Subject for Shell {
    fn executor(&self) -> Arc<dyn Executor> {
        self.executor.clone().unwrap()
    }

    fn drop_executor(&mut self) {
        self.executor = None;
    }

    fn succeeding(&self) -> WorkOrder {
        self.in_folder("echo $PUNCTUAL_JOB $PUNCTUAL_RUN $PUNCTUAL_ATTEMPT >> delivered")
    }

    fn failing(&self) -> WorkOrder {
        self.in_folder("echo no >&2; exit 1")
    }

    fn flooding(&self) -> (WorkOrder, usize) {
        let mut target = ShellTarget::new(["/usr/bin/yes"]).unwrap();
        target.output_max = 10_000;
        (order(target, None), 10_000)
    }

    fn hanging(&self) -> WorkOrder {
        self.in_folder("echo $$ >> begun; exec sleep 1000")
    }

    fn classified(&self) -> Vec<(WorkOrder, RetryHint)> {
        let mut dead = script("exit 3");
        dead.exit.dead = ExitCodes::new([3]);
        let mut again = script("exit 75");
        again.exit.retry = ExitCodes::new([75]);
        let mut failed = script("exit 4");
        failed.exit.fail = ExitCodes::new([4]);
        let absent = ShellTarget::new(["/bin/no-such-program"]).unwrap();
        let forbidden = ShellTarget::new(["/sbin/anything"]).unwrap();
        vec![
            (order(script("exit 3"), None), RetryHint::Usual),
            (order(dead, None), RetryHint::Never),
            (order(again, None), RetryHint::Always),
            (order(failed, None), RetryHint::Usual),
            (order(absent, None), RetryHint::Never),
            (order(forbidden, None), RetryHint::Never),
        ]
    }

    async fn hostile(&self) -> Vec<WorkOrder> {
        let scripts = [
            "printf '\\377\\000\\033[31m'; exit 255",
            "exec >&- 2>&- <&-; exit 1",
            "kill -9 $$",
            "kill -SEGV $$",
            "kill -9 $PPID; sleep 1000",
            "cd /; kill -TERM -$$; sleep 1000",
            "rm -rf \"$HOME\"; exit 1",
        ];
        let mut orders: Vec<WorkOrder> = scripts.map(|it| order(script(it), Some("x"))).into();
        let mut nowhere = script("true");
        nowhere.dir = Some("/no/such/folder".to_owned());
        orders.push(order(nowhere, None));
        // No program, and no script either.
        orders.push(order(
            ShellTarget::new(["/bin/sh", "/dev/null/x"]).unwrap(),
            None,
        ));
        orders
    }

    fn delivered(&self) -> Vec<(JobId, RunId, AttemptNo)> {
        let lines = self.lines("delivered").into_iter();
        let learned = lines.map(|line| {
            let mut words = line.split(' ');
            let mut word = || words.next().unwrap();
            (
                word().parse().unwrap(),
                word().parse().unwrap(),
                AttemptNo(word().parse().unwrap()),
            )
        });
        learned.collect()
    }

    async fn begun(&self, count: usize) {
        while self.lines("begun").len() < count {
            pause().await;
        }
    }

    async fn ended(&self, count: usize) {
        while self.lines("begun").len() - self.alive() < count {
            pause().await;
        }
    }

    async fn left_alone(&self) {
        while self.alive() > 0 {
            pause().await;
        }
    }
}

executor::conformance_suite!(async || Shell::new());
