//! What a script says on file descriptor 3: at most one line of JSON, its result.

use std::fs::{self, File};
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::thread::JoinHandle;

use bytes::Bytes;
use model::limits;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::unistd::close;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Where a script says it.
const DESCRIPTOR: i32 = 3;

/// The supervisor's end: it keeps what is said, up to a limit, until nobody can say more.
pub(super) struct Listener(JoinHandle<Vec<u8>>);

impl Listener {
    pub(super) fn hear(reader: PipeReader) -> io::Result<Self> {
        let hear = move || {
            let mut said = Vec::new();
            // One byte more says that it was too much; the rest is for nobody.
            let mut reader = reader.take(limits::RESULT_MAX as u64 + 1);
            let _broken = reader.read_to_end(&mut said);
            let _rest = io::copy(&mut reader.into_inner(), &mut io::sink());
            said
        };
        std::thread::Builder::new().spawn(hear).map(Self)
    }

    /// Once all who could say anything have ended.
    pub(super) fn heard(self) -> Vec<u8> {
        self.0.join().unwrap_or_default()
    }
}

/// A pipe whose one end a starter gets, by the number that is answered.
pub(super) fn pipe() -> io::Result<(PipeReader, PipeWriter, i32)> {
    let (reader, writer) = io::pipe()?;
    fcntl(&writer, FcntlArg::F_SETFD(FdFlag::empty()))?;
    let number = writer.as_raw_fd();
    Ok((reader, writer, number))
}

/// The starter's side: of all that is open only its first three and this one stay, and this one as number 3.
pub(super) fn keep_only(said: Option<i32>) -> io::Result<()> {
    let open = fs::read_dir("/proc/self/fd")?.flatten();
    let open: Vec<i32> = open
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    for file in open {
        if file > 2 && Some(file) != said {
            // That of the listing itself is closed already.
            let _closed = close(file);
        }
    }
    let Some(said) = said.filter(|said| *said != DESCRIPTOR) else {
        return Ok(());
    };
    // The lowest number that is free.
    let file = File::options()
        .write(true)
        .open(format!("/proc/self/fd/{said}"))?;
    close(said)?;
    if file.as_raw_fd() != DESCRIPTOR {
        return Err(io::Error::other("file descriptor 3 is taken"));
    }
    fcntl(&file, FcntlArg::F_SETFD(FdFlag::empty()))?;
    // It stays open for what this process becomes.
    let _kept = file.into_raw_fd();
    Ok(())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Said<'a> {
    #[serde(borrow)]
    result: &'a RawValue,
}

/// The result that is in what was said, if anything was.
pub(super) fn result(said: &[u8], output_max: usize) -> Result<Option<Bytes>, String> {
    let wrong = |why: &str| Err(format!("what it wrote to file descriptor 3 {why}"));
    if said.is_empty() {
        return Ok(None);
    }
    if said.len() > limits::RESULT_MAX {
        return wrong(&format!("is longer than {} bytes", limits::RESULT_MAX));
    }
    let Ok(Said { result }) = serde_json::from_slice(said) else {
        return wrong("is not one line such as {\"result\": 42}");
    };
    let result = result.get();
    if result.len() > output_max {
        return wrong(&format!(
            "has a result of {} bytes, and output_max is {output_max}",
            result.len()
        ));
    }
    Ok(Some(Bytes::from(result.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_one_line_of_json() {
        let read = |text: &str| result(text.as_bytes(), 10);
        assert_eq!(read(""), Ok(None));
        let found = read("{\"result\": [1, 2]}\n").unwrap().unwrap();
        assert_eq!(&found[..], b"[1, 2]");
        for (text, part) in [
            ("{\"result\": 1} {\"result\": 2}", "one line"),
            ("{\"checkpoint\": 1}", "one line"),
            ("{\"result\": 1, \"more\": 2}", "one line"),
            ("7", "one line"),
            ("{\"result\": \"0123456789\"}", "output_max is 10"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        let long = vec![b' '; limits::RESULT_MAX + 1];
        assert!(result(&long, 10).unwrap_err().contains("longer"));
    }
}
