//! The CPU time and memory of a process, read from /proc (Linux).

use std::fs;

use crate::Outcome;

const TICKS: f64 = 100.0; // USER_HZ, the same on every Linux this runs on

/// CPU seconds used and bytes resident.
#[derive(Clone, Copy, Default)]
pub struct Usage {
    pub cpu: f64,
    pub resident: u64,
}

impl Usage {
    /// The CPU used since `earlier`; the memory of now.
    pub fn since(&self, earlier: &Self) -> Self {
        Self { cpu: self.cpu - earlier.cpu, resident: self.resident }
    }
}

/// CPU seconds that everything on this machine has used, the kernel's own work included.
pub fn machine() -> Outcome<f64> {
    let stat = fs::read_to_string("/proc/stat")?;
    let fields = stat.lines().next().ok_or("an empty /proc/stat")?.split_whitespace().skip(1);
    let ticks: Vec<f64> = fields.map(str::parse).collect::<Result<_, _>>()?;
    let idle: f64 = ticks.iter().skip(3).take(2).sum(); // idle, and waiting for the disk
    Ok((ticks.iter().take(8).sum::<f64>() - idle) / TICKS)
}

/// The usage of these processes together, and of the first of them alone.
pub fn usage(pids: &[u32]) -> Outcome<(Usage, Usage)> {
    let each = pids.iter().map(|&pid| usage_of(pid)).collect::<Outcome<Vec<_>>>()?;
    let add =
        |sum: Usage, one: &Usage| Usage { cpu: sum.cpu + one.cpu, resident: sum.resident + one.resident };
    Ok((each.iter().fold(Usage::default(), add), each.first().copied().unwrap_or_default()))
}

pub fn usage_of(pid: u32) -> Outcome<Usage> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is the program's name in brackets and may hold spaces: count from behind it.
    let fields: Vec<&str> =
        stat.rsplit_once(')').ok_or("no name in /proc stat")?.1.split_whitespace().collect();
    let ticks: f64 = fields.get(11).ok_or("short /proc stat")?.parse::<f64>()? + fields[12].parse::<f64>()?;
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let resident =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("the process has ended")?;
    let kilobytes: u64 = resident.trim().trim_end_matches(" kB").parse()?;
    Ok(Usage { cpu: ticks / TICKS, resident: kilobytes * 1024 })
}
