//! The promises of every executor, kept by that of scripts, and what scripts find.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use executor::conformance::Subject;
use executor::shell::{Commands, PythonConfig, PythonExecutor};
use executor::{Executor, WorkOrder};
use model::{AttemptNo, ExitCodes, JobId, Outcome, PythonTarget, Report, RetryHint, RunId, Target};

use super::{config, nobody, order_of, skip, text};

const BWRAP: &str = "/usr/bin/bwrap";
/// Starts sooner than python.
const SH: &str = "/usr/bin/sh";
const MIB: u64 = 1 << 20;

pub(super) fn python_config() -> Option<PythonConfig> {
    if !Path::new(BWRAP).exists() || !Path::new(PythonTarget::INTERPRETER).exists() {
        skip("there is no bubblewrap here, or no python3");
        return None;
    }
    let mut shell = config();
    shell.commands = Arc::new("/usr/bin/".parse::<Commands>().unwrap().of_scripts());
    shell.run_as = nobody();
    (shell.limits.processes_max, shell.limits.memory_max) = (64, 1 << 30);
    Some(PythonConfig {
        shell,
        bwrap: BWRAP.into(),
        disk_max: 16 * MIB,
        processes_max: 40,
    })
}

pub(super) fn executor() -> Option<PythonExecutor> {
    python_config().map(|config| PythonExecutor::new(config).unwrap())
}

pub(super) fn script(source: &str) -> PythonTarget {
    PythonTarget::new(source).unwrap()
}

pub(super) fn order(script: PythonTarget, payload: Option<&str>) -> WorkOrder {
    order_of(Target::Python(script), payload)
}

/// Keeps what scripts say: they have no other way to anybody.
struct Hearing {
    executor: PythonExecutor,
    heard: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Executor for Hearing {
    async fn execute(&self, order: WorkOrder) -> Report {
        let report = self.executor.execute(order).await;
        let said = text(&report);
        let lines = said.lines().filter(|line| line.starts_with("job_"));
        let mut heard = self.heard.lock().unwrap();
        heard.extend(lines.map(str::to_owned));
        report
    }
}

struct Scripts {
    executor: Option<Arc<Hearing>>,
    heard: Arc<Mutex<Vec<String>>>,
    /// Stands in the environment of its scripts.
    mark: String,
    begun: Mutex<BTreeSet<i32>>,
}

impl Scripts {
    fn new(executor: PythonExecutor) -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let last = LAST.fetch_add(1, Ordering::Relaxed);
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let hearing = Hearing {
            executor,
            heard: Arc::clone(&heard),
        };
        Self {
            executor: Some(Arc::new(hearing)),
            heard,
            mark: format!("MARK=hangs-{}-{last}-", std::process::id()),
            begun: Mutex::default(),
        }
    }

    /// Those that hang now.
    fn alive(&self) -> BTreeSet<i32> {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let read = |path: &Path, name: &str| fs::read(path.join(name)).unwrap_or_default();
        let hangs = |path: &Path| {
            let environ = read(path, "environ");
            let is_ours = environ
                .windows(self.mark.len())
                .any(|it| it == self.mark.as_bytes());
            is_ours && read(path, "cmdline").starts_with(b"sleep\0")
        };
        let pids = entries.filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            hangs(&entry.path()).then_some(pid)
        });
        pids.collect()
    }

    fn sh(&self, source: &str) -> WorkOrder {
        let mut script = script(source);
        script.call(SH, &[]).unwrap();
        let (_, mark) = self.mark.split_once('=').unwrap();
        script.program.env = vec![("MARK".to_owned(), mark.to_owned())];
        order(script, Some("{}"))
    }
}

async fn pause() {
    tokio::time::timeout(Duration::from_millis(50), std::future::pending::<()>())
        .await
        .unwrap_or_default();
}

impl Subject for Scripts {
    fn executor(&self) -> Arc<dyn Executor> {
        self.executor.clone().unwrap()
    }

    fn drop_executor(&mut self) {
        self.executor = None;
    }

    fn succeeding(&self) -> WorkOrder {
        self.sh("echo $PUNCTUAL_JOB $PUNCTUAL_RUN $PUNCTUAL_ATTEMPT")
    }

    fn failing(&self) -> WorkOrder {
        self.sh("echo no >&2; exit 1")
    }

    fn flooding(&self) -> (WorkOrder, usize) {
        let mut script = script("exec yes");
        script.call(SH, &[]).unwrap();
        script.program.output_max = 10_000;
        (order(script, None), 10_000)
    }

    fn hanging(&self) -> WorkOrder {
        self.sh("exec sleep 1000")
    }

    fn classified(&self) -> Vec<(WorkOrder, RetryHint)> {
        let mut dead = script("raise SystemExit(3)");
        dead.program.exit.dead = ExitCodes::new([3]);
        let mut again = script("raise SystemExit(75)");
        again.program.exit.retry = ExitCodes::new([75]);
        let mut absent = script("1");
        absent.call("/usr/bin/no-such-interpreter", &[]).unwrap();
        let mut forbidden = script("1");
        forbidden.call("/usr/sbin/anything", &[]).unwrap();
        vec![
            (order(script("raise SystemExit(3)"), None), RetryHint::Usual),
            (order(dead, None), RetryHint::Never),
            (order(again, None), RetryHint::Always),
            (order(absent, None), RetryHint::Never),
            (order(forbidden, None), RetryHint::Never),
        ]
    }

    async fn hostile(&self) -> Vec<WorkOrder> {
        let scripts = [
            "printf '\\377\\000\\033[31m'; exit 255",
            "exec >&- 2>&- <&- 3>&-; exit 1",
            "kill -9 $$",
            "kill -9 $PPID; exit 1",
            "kill -9 -1; exit 1",
            "kill -TERM 1; kill -9 1; exit 1",
            "sleep 1000 & exec sh -c 'kill -9 -1; kill -9 $$'",
            "echo '{\"result\": ' >&3",
            "yes >&3 & sleep 1; exit 0",
        ];
        let mut orders: Vec<WorkOrder> = scripts.map(|it| self.sh(it)).into();
        orders.push(order(script("this is no python"), None));
        orders.push(order(script("import ctypes; ctypes.string_at(0)"), None));
        orders
    }

    fn delivered(&self) -> Vec<(JobId, RunId, AttemptNo)> {
        let heard = self.heard.lock().unwrap();
        let learned = heard.iter().map(|line| {
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
        loop {
            let alive = self.alive();
            let begun = {
                let mut begun = self.begun.lock().unwrap();
                begun.extend(alive);
                begun.len()
            };
            if begun >= count {
                return;
            }
            pause().await;
        }
    }

    async fn ended(&self, count: usize) {
        let begun = self.begun.lock().unwrap().clone();
        while begun.difference(&self.alive()).count() < count {
            pause().await;
        }
    }

    async fn left_alone(&self) {
        while !self.alive().is_empty() {
            pause().await;
        }
    }
}

/// As `conformance_suite!`, where there can be sandboxes.
macro_rules! kept {
    ($($promise:ident)*) => {
        $(
            #[tokio::test]
            async fn $promise() {
                if let Some(executor) = executor() {
                    executor::conformance::$promise(Scripts::new(executor)).await;
                }
            }
        )*
    };
}
kept!(
    success_is_reported
    the_target_learns_whose_attempt_it_is
    a_failure_says_why_in_one_line
    a_failure_says_whether_trying_again_can_help
    no_more_output_is_kept_than_was_requested
    a_dropped_delivery_ends_at_its_target
    a_deadline_ends_a_delivery_wherever_it_is
    whatever_a_target_does_a_report_comes_of_it
    nothing_is_left_behind_when_it_goes
    those_that_hang_hold_up_no_others
);

#[tokio::test]
async fn a_script_gets_its_payload_its_ids_and_nothing_of_the_node() {
    let Some(executor) = executor() else { return };
    let mut script = script(
        "import os, sys\n\
         text = sys.stdin.read()\n\
         print(len(text), text == open(os.environ['PUNCTUAL_PAYLOAD']).read(), sys.argv[1:])\n\
         print(*sorted(os.environ))\n\
         print(os.environ['MINE'], os.getcwd(), os.environ['HOME'], os.listdir('.'), os.getuid(), os.getgid())\n\
         print(*os.listdir('/proc/self/fd'))\n",
    );
    script
        .call(
            PythonTarget::INTERPRETER,
            &["a b".to_owned(), "$(id)".to_owned()],
        )
        .unwrap();
    script
        .program
        .set_env("MINE", Some("mine".to_owned()))
        .unwrap();
    let large = "x".repeat(200_000);
    let report = executor.execute(order(script, Some(&large))).await;
    let said = text(&report);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "200000 True ['a b', '$(id)']", "{said}");
    assert_eq!(
        lines[1],
        "HOME LANG MINE PATH PUNCTUAL_ATTEMPT PUNCTUAL_JOB PUNCTUAL_NODE PUNCTUAL_PAYLOAD PUNCTUAL_RUN PUNCTUAL_SLOT \
         PUNCTUAL_TENANT PWD TMPDIR",
    );
    assert_eq!(lines[2], "mine /home /home [] 65534 65534");
    // The last is that of the listing itself.
    assert_eq!(lines[3], "0 1 2 3 4");
    let cost = report.cost.as_deref().unwrap();
    assert!(cost.cpu > Duration::ZERO, "{cost:?}");
}

#[tokio::test]
async fn a_result_is_kept_instead_of_the_output() {
    let Some(executor) = executor() else { return };
    let says = async |source: &str| executor.execute(order(script(source), None)).await;
    let report =
        says("import os\nprint('shown')\nos.write(3, b'{\"result\": {\"rows\": 7}}\\n')").await;
    assert_eq!(
        (report.outcome, &*text(&report)),
        (Outcome::Succeeded, "{\"rows\": 7}")
    );
    let report = says("import os\nprint('shown')\nos.write(3, b'{\"checkpoint\": 1}\\n')").await;
    let error = report.error.clone().unwrap();
    assert!(error.contains("file descriptor 3"), "{error}");
    assert_eq!(
        (report.outcome, &*text(&report)),
        (Outcome::Failed, "shown\n")
    );
    // What fails has no result.
    let report = says("import os\nos.write(3, b'{\"result\": 1}\\n')\nprint('why')\nexit(4)").await;
    assert_eq!((report.status, &*text(&report)), (Some(4), "why\n"));
}

#[tokio::test]
async fn where_no_sandbox_can_be_built_that_is_said() {
    let Some(config) = python_config() else {
        return;
    };
    for (bwrap, part) in [
        ("/usr/bin/no-such-bwrap", "install the package bubblewrap"),
        ("/usr/bin/false", "says nothing"),
        ("/usr/bin/cat", "unrecognized option"),
    ] {
        let config = PythonConfig {
            bwrap: bwrap.into(),
            ..config.clone()
        };
        let Err(why) = PythonExecutor::new(config) else {
            panic!("{bwrap} builds sandboxes");
        };
        assert!(why.contains(part), "{why}");
    }
}
