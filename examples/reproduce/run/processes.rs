//! Processes that a launcher started, which train as one.

use std::time::Duration;

use gfn::{Error, Result};
use gfn_dist::Launch;

use super::members::as_member;
use crate::flags::Team;

pub(super) fn in_processes(team: &Team, work: impl Fn() -> Result<()>) -> Result<()> {
    let Some(launch) = Launch::from_env()? else {
        let expected = "a process that a launcher started: gfn-dist local -n 2 -- reproduce TASK --dist sync, or torchrun, srun, mpirun";
        return Err(Error::config("--dist", "given", expected));
    };
    let group = launch.connect(Duration::from_secs(team.dist_timeout))?;
    as_member(Box::new(group), &work)
}
