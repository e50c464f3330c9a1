//! A command that prints a key. It is started as it is written, word by word, without a shell; what it may take and what it
//! may print are bounded.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use model::schedule::format_span;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

const TIME_MAX: Duration = Duration::from_secs(10);
const BYTES_MAX: u64 = 4_096;

/// What the command printed, or why there is nothing, as the end of a sentence. What it printed is in no error.
pub(super) fn output(line: &str) -> Result<String, String> {
    output_within(line, TIME_MAX)
}

fn output_within(line: &str, time_max: Duration) -> Result<String, String> {
    let mut words = line.split_whitespace();
    let program = words.next().ok_or("names no program")?;
    // A group of its own, so that whatever it starts ends with it.
    let mut child = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("cannot be started ({error})"))?;
    let group = i32::try_from(child.id()).ok().map(Pid::from_raw);
    let (done, ended) = mpsc::sync_channel(1);
    let reading = thread::Builder::new().name("master-key".to_owned());
    reading
        .spawn(move || {
            let _gone = done.send(read(&mut child));
        })
        .map_err(|error| format!("cannot be waited for ({error})"))?;
    let Ok(read) = ended.recv_timeout(time_max) else {
        if let Some(group) = group {
            let _ended = killpg(group, Signal::SIGKILL);
        }
        return Err(format!("has not ended within {}", format_span(time_max)));
    };
    let (bytes, status) = read.map_err(|error| format!("cannot be read ({error})"))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(format!("printed more than {BYTES_MAX} bytes"));
    }
    if !status.success() {
        return Err(format!("failed ({status})"));
    }
    String::from_utf8(bytes).map_err(|_| "printed something that is not text".to_owned())
}

fn read(child: &mut Child) -> io::Result<(Vec<u8>, ExitStatus)> {
    let mut bytes = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    }
    Ok((bytes, child.wait()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_given_as_they_are_and_no_shell_reads_them() {
        assert_eq!(output("echo $HOME;  ls").unwrap(), "$HOME; ls\n");
        assert!(output("  ").unwrap_err().contains("no program"));
        assert!(output("false").unwrap_err().contains("failed"));
    }

    #[test]
    fn time_and_size_are_bounded() {
        let slow = output_within("sleep 600", Duration::from_millis(50));
        assert!(slow.unwrap_err().contains("has not ended within"));
        let much = output("seq 100000");
        assert!(much.unwrap_err().contains("printed more than 4096 bytes"));
    }
}
