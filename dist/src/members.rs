//! The processes of a group, and which of them have ended or were stopped.

use std::fs;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::time::Duration;

/// A process of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Member {
    /// A hash that is equal for two processes if each can see the other's process id; 0 if the machine is
    /// unknown.
    machine: u64,
    pid: u32,
}

/// The number of times that the processes are looked at after an operation has failed. The system closes the
/// connections of a killed process shortly before the process has ended.
const MAX_LOOKS: usize = 10;
/// The time between two looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

impl Member {
    /// The number of bytes of a member in a message.
    pub(crate) const BYTES: usize = 12;

    /// Returns this process. Processes in different containers of one machine don't see each other, so the
    /// namespace of process ids is a part of the hash. If either can't be read, no process counts as one of
    /// this machine.
    pub(crate) fn this_process() -> Self {
        let boot = fs::read("/proc/sys/kernel/random/boot_id");
        let namespace = fs::read_link("/proc/self/ns/pid");
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let machine = boot.and_then(|boot| Ok(hasher.hash_one((boot, namespace?)))).unwrap_or(0);
        Self { machine, pid: std::process::id() }
    }

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        [self.machine.to_le_bytes().as_slice(), &self.pid.to_le_bytes()].concat()
    }

    /// Reads a member from its bytes. Missing bytes count as 0.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let at = |k: usize| bytes.get(k).copied().unwrap_or_default();
        Self {
            machine: u64::from_le_bytes(std::array::from_fn(at)),
            pid: u32::from_le_bytes(std::array::from_fn(|k| at(8 + k))),
        }
    }

    /// Returns a description of the process's end or stop; `None` if the process runs.
    fn describe_end(self) -> Option<&'static str> {
        // The state is the first word after the name, which is in parentheses and may contain blanks.
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        match stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next()) {
            None | Some("Z" | "X") => Some("has ended"),
            Some("T" | "t") => Some("is stopped"),
            Some(_) => None,
        }
    }
}

/// Names the members on this machine that have ended or are stopped: "process 2 (pid 4711) has ended".
/// Returns `None` if there are none, and on systems without `/proc`.
pub(crate) fn describe_ended(members: &[Member]) -> Option<String> {
    let this = Member::this_process();
    this.describe_end().is_none().then_some(())?;
    for _ in 0..MAX_LOOKS {
        let mut ended = Vec::new();
        let is_near = |member: &Member| this.machine != 0 && member.machine == this.machine;
        for (rank, member) in members.iter().enumerate().filter(|(_, member)| is_near(member)) {
            if let Some(end) = member.describe_end() {
                ended.push(format!("process {rank} (pid {}) {end}", member.pid));
            }
        }
        if !ended.is_empty() {
            return Some(ended.join(", "));
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    None
}
