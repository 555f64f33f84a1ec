//! CPU, memory and descriptors of this process, under the names that every Prometheus client uses.
//!
//! Read from /proc when somebody scrapes; where there is none the figures stay at zero.

use std::{fs, sync::atomic::AtomicU64};

use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};

use super::{Fraction, advance};

/// What is read of this process.
#[derive(Debug, Default)]
pub(super) struct Process {
    cpu: Counter<f64, AtomicU64>,
    resident: Gauge,
    descriptors: Gauge,
    threads: Gauge,
    started: Fraction,
}

impl Process {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("process_cpu_seconds", "CPU time used", self.cpu.clone());
        registry.register("process_resident_memory_bytes", "Memory in use", self.resident.clone());
        registry.register("process_open_fds", "Open file descriptors", self.descriptors.clone());
        registry.register("process_threads", "Threads", self.threads.clone());
        registry.register("process_start_time_seconds", "When this process started, Unix time", self.started.clone());
    }

    pub(super) fn read(&self) {
        if let Some(stat) = fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(Stat::parse) {
            advance(&self.cpu, stat.cpu_seconds);
            self.threads.set(stat.threads);
            if let Some(boot) = fs::read_to_string("/proc/stat").ok().as_deref().and_then(boot_time) {
                self.started.set(boot + stat.start_seconds);
            }
        }
        if let Some(bytes) = fs::read_to_string("/proc/self/status").ok().as_deref().and_then(resident) {
            self.resident.set(bytes);
        }
        if let Ok(descriptors) = fs::read_dir("/proc/self/fd") {
            self.descriptors.set(i64::try_from(descriptors.count()).unwrap_or(i64::MAX));
        }
    }
}

/// Ticks per second in /proc: fixed by the kernel's interface (`USER_HZ`) on every architecture that
/// Kubernetes runs on.
const TICKS: f64 = 100.0;

/// Of /proc/self/stat.
#[derive(Debug, PartialEq)]
struct Stat {
    cpu_seconds: f64,
    threads: i64,
    /// Since the machine was started.
    start_seconds: f64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The name of the program may hold spaces and parentheses.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = |index: usize| fields.get(index)?.parse::<f64>().ok();
        Some(Self {
            cpu_seconds: (ticks(11)? + ticks(12)?) / TICKS,
            threads: fields.get(17)?.parse().ok()?,
            start_seconds: ticks(19)? / TICKS,
        })
    }
}

fn boot_time(stat: &str) -> Option<f64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

fn resident(status: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<i64>().ok().map(|kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_read() {
        let stat = "42 (a) b) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 7 0 12345 1000 200";
        assert_eq!(Stat::parse(stat), Some(Stat { cpu_seconds: 3.0, threads: 7, start_seconds: 123.45 }));
        assert_eq!(Stat::parse("42"), None);
        assert_eq!(boot_time("cpu 1 2\nbtime 1700000000\n"), Some(1_700_000_000.0));
        assert_eq!(resident("Name:\tx\nVmRSS:\t    2048 kB\n"), Some(2_097_152));
    }

    #[test]
    fn this_process_has_memory_descriptors_and_threads() {
        let process = Process::default();
        process.read();
        assert!(process.resident.get() > 100_000 && process.descriptors.get() >= 3 && process.threads.get() >= 1);
        assert!(process.started.get() > 1_700_000_000.0);
    }
}
