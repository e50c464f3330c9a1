//! What scripts do to get out of their sandboxes, to stay, and to take more than is theirs.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use executor::Executor;
use executor::shell::PythonExecutor;
use model::{Outcome, PythonTarget};

use super::python::{executor, order, script};
use super::{all_gone, processes_with, text};

/// What a script says that goes well.
async fn says(source: &str, args: &[String]) -> Option<String> {
    let executor = executor()?;
    let mut script = script(source);
    script.call(PythonTarget::INTERPRETER, args).unwrap();
    script.program.output_max = 60_000;
    let report = executor.execute(order(script, Some("{}"))).await;
    assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
    Some(text(&report))
}

/// Tries each line, and says what it got: nothing is to be got.
const TRIES: &str = "import os, sys, socket, ctypes\n\
    libc = ctypes.CDLL(None, use_errno=True)\n\
    def call(name, *args):\n    \
        if getattr(libc, name)(*args) == -1: raise OSError(ctypes.get_errno(), name)\n\
    def attempt(what):\n    \
        try: print('GOT', what, eval(what))\n    \
        except (OSError, ValueError) as error: print('no', what, error)\n\
    for line in sys.argv[1:]: attempt(line)\n\
    print('done')\n";

async fn gets_nothing(tries: &[&str]) {
    let args: Vec<String> = tries.iter().map(|it| (*it).to_owned()).collect();
    let Some(said) = says(TRIES, &args).await else {
        return;
    };
    assert!(said.ends_with("done\n") && !said.contains("GOT"), "{said}");
    assert_eq!(said.lines().count(), tries.len() + 1, "{said}");
}

#[tokio::test]
async fn no_file_of_the_host_is_there() {
    let own = format!(
        "open({:?})",
        concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")
    );
    let folder = format!("os.listdir({:?})", env!("CARGO_MANIFEST_DIR"));
    gets_nothing(&[
        &own,
        &folder,
        "open('/etc/passwd')",
        "open('/etc/shadow')",
        "os.listdir('/root')",
        "os.listdir('/var')",
        "os.listdir('/run')",
        "os.listdir('/sys')",
        "[it for it in os.listdir('/tmp') if 1/0]  or open('/tmp/none')",
        // By other ways to the same.
        "os.symlink('/etc/shadow', '/tmp/link') or open('/tmp/link')",
        "open('/proc/1/root/etc/shadow')",
        "open('/proc/self/root/../../../etc/shadow')",
        "open('/proc/self/cwd/../etc/shadow')",
        "open('/dev/vda')",
        "open('/dev/mem')",
        "open('/proc/kcore', 'rb')",
    ])
    .await;
}

#[tokio::test]
async fn nothing_can_be_written_but_what_goes_with_it() {
    gets_nothing(&[
        "open('/x', 'w')",
        "open('/usr/x', 'w')",
        "open('/usr/bin/python3', 'a')",
        "open('/job/x', 'w')",
        "open('/job/script', 'a')",
        "open('/job/payload', 'a')",
        "open('/dev/x', 'w')",
        "open('/etc/x', 'w')",
        "os.chmod('/job/script', 0o777)",
        "os.remove('/job/script')",
        "os.rename('/job', '/other')",
        "open('/proc/sys/kernel/core_pattern', 'w')",
        "open('/proc/sysrq-trigger', 'w')",
        "os.write(os.open('/proc/self/oom_score_adj', os.O_WRONLY), b'-1000')",
    ])
    .await;
}

#[tokio::test]
async fn nobody_else_is_seen_or_signalled() {
    let (me, parent) = (std::process::id(), std::os::unix::process::parent_id());
    let tries = [
        format!("os.kill({me}, 0)"),
        format!("os.kill({parent}, 9)"),
        format!("open('/proc/{me}/environ')"),
        "[it for it in os.listdir('/proc') if it.isdigit() and int(it) > 9] or open('/none')"
            .to_owned(),
        "os.setpriority(os.PRIO_PROCESS, 0, -5)".to_owned(),
    ];
    let tries: Vec<&str> = tries.iter().map(String::as_str).collect();
    gets_nothing(&tries).await;
}

#[tokio::test]
async fn there_is_no_network_and_no_way_to_the_node() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let connect = format!(
        "socket.create_connection(('127.0.0.1', {}), 2)",
        address.port()
    );
    gets_nothing(&[
        &connect,
        "socket.create_connection(('192.0.2.1', 80), 2)",
        "socket.create_connection(('::1', 80), 2)",
        "socket.getaddrinfo('example.com', 80)",
        "socket.socket(socket.AF_UNIX).connect('/run/systemd/notify')",
        "[it for it in socket.if_nameindex() if it[1] != 'lo'] or open('/none')",
        "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    ])
    .await;
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nobody came");
}

#[tokio::test]
async fn there_are_no_rights_to_be_had() {
    gets_nothing(&[
        "os.setuid(0)",
        "os.setgroups([0])",
        "call('unshare', 0x10000000)",
        "call('unshare', 0x00020000)",
        "call('mount', b'none', b'/home', b'tmpfs', 0, None)",
        "call('umount2', b'/job/script', 2)",
        "call('chroot', b'/tmp')",
        "os.mknod('/tmp/disk', 0o60666, os.makedev(254, 0))",
        "socket.sethostname('other')",
    ])
    .await;
    let status = says("print(open('/proc/self/status').read())", &[]).await;
    for part in ["CapEff:\t0000000000000000", "NoNewPrivs:\t1"] {
        assert!(
            status.as_ref().is_none_or(|it| it.contains(part)),
            "{status:?}"
        );
    }
}

#[tokio::test]
async fn memory_and_disk_are_bounded() {
    let source = "import os\n\
        try: bytearray(2 << 30)\n\
        except MemoryError: print('no memory')\n\
        for folder in ['/tmp', '/home', '/dev/shm']:\n    \
            size = 0\n    \
            try:\n        \
                for no in range(64):\n            \
                    with open(f'{folder}/{no}', 'wb') as file: size += file.write(bytes(1 << 20)); file.flush()\n    \
            except OSError as error: print(error.strerror, size <= 17 << 20)\n\
        print(os.popen('ulimit -c').read())\n";
    let Some(said) = says(source, &[]).await else {
        return;
    };
    let full = "No space left on device True\n".repeat(3);
    assert_eq!(said, format!("no memory\n{full}0\n\n"));
}

#[tokio::test]
async fn a_fork_bomb_gets_no_further_than_its_bound() {
    let Some(executor) = executor() else { return };
    let source = "import os, time\n\
        read, write = os.pipe()\n\
        end = time.time() + 2\n\
        while time.time() < end:\n    \
            try:\n        \
                if os.fork() == 0: os.write(write, b'.')\n    \
            except BlockingIOError: time.sleep(0.01)\n\
        if os.getpid() != 2: time.sleep(1000)\n\
        print(len(os.read(read, 1 << 16)), len([it for it in os.listdir('/proc') if it.isdigit()]))\n";
    let order = order(script(source), None);
    let run = order.run.to_string();
    let report = tokio::time::timeout(Duration::from_secs(60), executor.execute(order)).await;
    let said = text(&report.unwrap());
    let mut numbers = said.split_whitespace().map(|it| it.parse::<u32>().unwrap());
    let (forks, all) = (numbers.next().unwrap(), numbers.next().unwrap());
    // One of all is what holds the sandbox.
    assert!((30..=39).contains(&forks) && all <= 41, "{said}");
    all_gone(&run);
}

/// Processes that leave in every way there is.
const LEAVES: &str = "import os, signal, subprocess, sys, time\n\
    def leave():\n    \
        for sign in [signal.SIGTERM, signal.SIGHUP, signal.SIGINT]: signal.signal(sign, signal.SIG_IGN)\n    \
        time.sleep(1000)\n\
    for depth in range(3):\n    \
        if os.fork() == 0:\n        \
            os.setsid()\n        \
            if os.fork() == 0: leave()\n        \
            os._exit(0)\n\
    subprocess.Popen(['sleep', '1001'], start_new_session=True)\n\
    print('done', flush=True)\n";

#[tokio::test]
async fn nothing_that_a_script_started_outlives_it() {
    let Some(executor) = executor() else { return };
    let order = order(script(LEAVES), None);
    let run = order.run.to_string();
    let report = executor.execute(order).await;
    assert_eq!(
        (report.outcome, &*text(&report)),
        (Outcome::Succeeded, "done\n")
    );
    assert_eq!(processes_with(&run), Vec::<i32>::new());
}

/// What is left of it so many seconds after its delivery was dropped.
async fn left_after(executor: PythonExecutor, source: &str, secs: u64) -> Option<usize> {
    let order = order(script(source), None);
    let (run, progress) = (order.run.to_string(), Arc::clone(&order.progress));
    let delivery = tokio::spawn(async move { executor.execute(order).await });
    let pause = async |span| {
        let never = std::future::pending::<()>();
        tokio::time::timeout(span, never).await.unwrap_or_default();
    };
    for _ in 0..600 {
        let said = progress.unread().head;
        if !said.is_empty() {
            break;
        }
        pause(Duration::from_millis(50)).await;
    }
    assert!(processes_with(&run).len() > 2, "it is there");
    delivery.abort();
    pause(Duration::from_secs(secs)).await;
    let left = processes_with(&run).len();
    let gone = tokio::task::spawn_blocking(move || all_gone(&run));
    gone.await.unwrap();
    Some(left)
}

#[tokio::test]
async fn nothing_outlives_a_delivery_that_is_dropped() {
    let Some(executor) = executor() else { return };
    let stays = format!("{LEAVES}leave()\n");
    // It is deaf, and has its grace.
    let left = left_after(executor, &stays, 2).await;
    assert!(left > Some(2), "{left:?}");
}

#[tokio::test]
async fn a_script_that_ends_by_itself_needs_no_grace() {
    let Some(executor) = executor() else { return };
    let obeys = "import signal, sys, time\n\
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n\
        print('begun', flush=True)\n\
        time.sleep(1000)\n";
    assert_eq!(left_after(executor, obeys, 3).await, Some(0));
}

#[tokio::test]
async fn what_holds_a_sandbox_cannot_be_ended_from_inside() {
    let tries = "import os, signal\n\
        for sign in [signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP]: os.kill(1, sign)\n\
        print(os.getppid())\n";
    let Some(said) = says(tries, &[]).await else {
        return;
    };
    assert_eq!(said, "1\n");
}
