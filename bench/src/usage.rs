//! Processor time and memory of processes, as in `/proc` of Linux.

use std::time::Duration;

use anyhow::Context as _;

/// Clock ticks per second in `/proc`: the same on every Linux that this runs on.
const TICKS_PER_SECOND: u64 = 100;
/// Indexes of the fields of `/proc/PID/stat` after the name, counted from the state.
const PARENT: usize = 1;
const USER_TIME: usize = 11;
const SYSTEM_TIME: usize = 12;
const CHILDREN_USER_TIME: usize = 13;
const CHILDREN_SYSTEM_TIME: usize = 14;

/// Processor time of a process and its children, including ended ones.
pub(crate) fn processor_time(pid: u32) -> anyhow::Result<Duration> {
    let own = fields(pid).with_context(|| format!("no process {pid}"))?;
    let mut ticks = sum(
        &own,
        &[
            USER_TIME,
            SYSTEM_TIME,
            CHILDREN_USER_TIME,
            CHILDREN_SYSTEM_TIME,
        ],
    );
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(child) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // Processes may end meanwhile.
        if let Some(child) = fields(child)
            && child.get(PARENT) == Some(&u64::from(pid))
        {
            ticks += sum(&child, &[USER_TIME, SYSTEM_TIME]);
        }
    }
    Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

/// Resident memory of a process, in MB.
pub(crate) fn resident_megabytes(pid: u32) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    let kilobytes: u64 = kilobytes.context("no VmRSS")?.parse()?;
    Ok(kilobytes / 1024)
}

/// The fields after the name as numbers. The state and other texts count as 0.
fn fields(pid: u32) -> Option<Vec<u64>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    Some(
        rest.split_whitespace()
            .map(|field| field.parse().unwrap_or(0))
            .collect(),
    )
}

fn sum(fields: &[u64], wanted: &[usize]) -> u64 {
    wanted
        .iter()
        .filter_map(|field| fields.get(*field))
        .sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_shows_in_the_processor_time_and_memory_in_megabytes() {
        let pid = std::process::id();
        let before = processor_time(pid).unwrap();
        let mut sum = 0_u64;
        while processor_time(pid).unwrap() < before + Duration::from_millis(50) {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(sum > 0);
        assert!(resident_megabytes(pid).unwrap() > 0);
        assert!(processor_time(u32::MAX).is_err());
    }
}
