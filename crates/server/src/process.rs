//! What the process takes of its machine, as the kernel says it at each scrape, under the names that such figures have
//! everywhere. What cannot be read is left out.

use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// In `/proc` Linux counts in hundredths of a second, whatever its own clock does.
const TICKS: f64 = 100.0;

#[derive(Debug)]
pub(crate) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut write = |name: &str, help: &str, value: Option<&dyn EncodeMetric>| match value {
            Some(value) => {
                let of = encoder.encode_descriptor(name, help, None, value.metric_type())?;
                value.encode(of)
            }
            None => Ok(()),
        };
        let stat = read("self/stat").unwrap_or_default();
        let cpu = cpu_seconds(&stat).map(ConstCounter::new);
        let what = "Processor time of this process, in seconds";
        write("process_cpu_seconds", what, as_metric(&cpu))?;
        let status = read("self/status").unwrap_or_default();
        let memory = resident_bytes(&status).map(ConstGauge::new);
        let what = "Memory of this process that is in RAM, in bytes";
        write("process_resident_memory_bytes", what, as_metric(&memory))?;
        let began = read("stat").and_then(|machine| started_at(&stat, &machine));
        let began = began.map(ConstGauge::new);
        let what = "When this process was started, in seconds since the epoch";
        write("process_start_time_seconds", what, as_metric(&began))?;
        let files = fs::read_dir("/proc/self/fd").ok();
        let files = files.map(|files| ConstGauge::new(files.count() as i64));
        let what = "Files and connections that this process has open";
        write("process_open_fds", what, as_metric(&files))?;
        let most = read("self/limits").and_then(|limits| files_max(&limits));
        let most = most.map(ConstGauge::new);
        let what = "How many it may have open";
        write("process_max_fds", what, as_metric(&most))
    }
}

fn as_metric<M: EncodeMetric>(metric: &Option<M>) -> Option<&dyn EncodeMetric> {
    metric.as_ref().map(|metric| metric as &dyn EncodeMetric)
}

fn read(name: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/{name}")).ok()
}

/// A field of `/proc/self/stat`, by its number in proc(5). The second one, the program's name, may hold anything: what
/// follows is counted from its end.
fn field(stat: &str, number: usize) -> Option<f64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let text = after_name.split_whitespace().nth(number.checked_sub(3)?)?;
    text.parse().ok()
}

fn cpu_seconds(stat: &str) -> Option<f64> {
    Some((field(stat, 14)? + field(stat, 15)?) / TICKS)
}

fn started_at(stat: &str, machine: &str) -> Option<f64> {
    let booted = machine.lines().find_map(|line| line.strip_prefix("btime "));
    let booted: f64 = booted?.trim().parse().ok()?;
    Some(booted + field(stat, 22)? / TICKS)
}

fn resident_bytes(status: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line?.trim().strip_suffix(" kB")?;
    kibibytes.parse::<i64>().ok()?.checked_mul(1024)
}

/// The soft limit; none where there is none.
fn files_max(limits: &str) -> Option<i64> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    line?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_whatever_the_program_is_called() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 8 0 12345 1 2 3";
        assert_eq!(cpu_seconds(stat), Some(2.0));
        assert_eq!(started_at(stat, "cpu 1 2\nbtime 1000\n"), Some(1_123.45));
        assert_eq!(
            resident_bytes("VmPeak: 1 kB\nVmRSS:\t   2048 kB\n"),
            Some(2_097_152)
        );
        let limits =
            "Max cpu time  unlimited unlimited seconds\nMax open files   1024  4096 files\n";
        assert_eq!(files_max(limits), Some(1_024));
        assert_eq!(files_max("Max open files unlimited unlimited files"), None);
        assert_eq!(cpu_seconds("nonsense"), None);
    }
}
