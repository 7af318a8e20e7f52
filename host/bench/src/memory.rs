//! The resident memory of the process that serves.

use std::fs;
use std::time::Duration;

use crate::error::BenchError;

/// How often memory is looked at.
pub(crate) const INTERVAL: Duration = Duration::from_millis(200);

/// Resident bytes at an instant of a phase.
pub(crate) type Sample = (Duration, u64);

/// Fails when the process cannot be watched: better at once than after an hour of load.
pub(crate) fn check(pid: u32) -> Result<(), BenchError> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))
        .map_err(|error| BenchError::Process { pid, cause: error.to_string() })?;
    let cause = || BenchError::Process { pid, cause: "it has no resident memory".into() };
    resident(&status).map(|_| ()).ok_or_else(cause)
}

/// Resident bytes now; none when the process is gone.
pub(crate) fn read(pid: u32) -> Option<u64> {
    resident(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_in_the_status_file() {
        assert_eq!(
            resident("Name:\tx\nVmHWM:\t  900 kB\nVmRSS:\t  812 kB\nRssAnon:\t 1 kB\n"),
            Some(812 * 1024)
        );
        assert_eq!(resident("Name:\tkthreadd\n"), None);
        assert!(read(std::process::id()).is_some());
        assert!(check(u32::MAX).unwrap_err().to_string().contains("cannot be watched"));
    }
}
