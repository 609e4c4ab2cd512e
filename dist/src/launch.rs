use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use gfn::{Error, Result};

use crate::{Group, Store};

/// What the launcher of several processes says to each of them, by environment variables.
///
/// | launcher | rank, count | where the first process is |
/// |---|---|---|
/// | torchrun, `gfn-dist local` | `RANK`, `WORLD_SIZE` | `MASTER_ADDR`, `MASTER_PORT` |
/// | Open MPI's mpirun | `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE` | the same, to be exported |
/// | MPICH's, Intel's (PMI) | `PMI_RANK`, `PMI_SIZE` | the same |
/// | Slurm's srun | `SLURM_PROCID`, `SLURM_STEP_NUM_TASKS` | the same |
///
/// Without `MASTER_ADDR` all processes are on this machine. `GFN_ADDRESS` is this machine's own address where the first one is on another:
/// by it the others reach this process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Launch {
    /// The number of this process, from 0.
    pub rank: usize,
    /// The number of processes.
    pub size: usize,
    /// The machine that the first process is on.
    pub host: String,
    /// The port of the store there.
    pub port: u16,
    /// This machine's own address.
    pub address: String,
    /// Whether the launcher itself serves the store, as torchrun does.
    pub launcher_serves: bool,
    /// What tells this start of the processes from others that use the same store: the launcher's job and attempt.
    pub attempt: String,
}

/// What launchers call their jobs, and the attempts of one.
const ATTEMPTS: [&str; 4] =
    ["TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID", "SLURM_RESTART_COUNT"];

/// Rank and count by launcher; the first pair that is there counts.
const LAUNCHERS: [(&str, &str); 4] = [
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
];

/// torch.distributed's own default.
const PORT: u16 = 29500;

impl Launch {
    /// What this process's environment says; `None` where no launcher has started it.
    ///
    /// # Errors
    /// [`Error::Config`] for variables that are no numbers, or one without the other.
    pub fn from_env() -> Result<Option<Self>> {
        Self::read(|name| std::env::var(name).ok())
    }

    /// The same of any table of variables.
    ///
    /// ```
    /// use gfn_dist::Launch;
    /// let slurm = |name: &str| match name {
    ///     "SLURM_PROCID" => Some("3".to_owned()),
    ///     "SLURM_STEP_NUM_TASKS" => Some("8".to_owned()),
    ///     _ => None,
    /// };
    /// let launch = Launch::read(slurm)?.ok_or_else(|| gfn::Error::config("launch", "none", "one"))?;
    /// assert_eq!((launch.rank, launch.size, launch.host.as_str()), (3, 8, "127.0.0.1"));
    /// assert!(Launch::read(|_| None)?.is_none());
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`from_env`](Self::from_env).
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>> {
        // A script that Slurm runs has a number, too, but is no step of several tasks.
        let alone = |rank: &str, size: &Option<String>| rank.starts_with("SLURM") && size.is_none();
        let of = |(rank, size): &(&'static str, &'static str)| {
            let found = (variable(rank)?, variable(size), (*rank, *size));
            (!alone(rank, &found.1)).then_some(found)
        };
        let Some((rank, size, (rank_name, size_name))) = LAUNCHERS.iter().find_map(of) else {
            return Ok(None);
        };
        let size = size.ok_or_else(|| Error::config(size_name, "not set", "the number of processes, beside a rank"))?;
        let (rank, size) = (number::<usize>(rank_name, &rank)?, number::<usize>(size_name, &size)?);
        if rank >= size {
            return Err(Error::config(
                rank_name,
                format!("{rank} of {size}"),
                "a number below the number of processes",
            ));
        }
        let host = variable("MASTER_ADDR").unwrap_or_else(|| Ipv4Addr::LOCALHOST.to_string());
        let port = variable("MASTER_PORT").map_or(Ok(PORT), |port| number("MASTER_PORT", &port))?;
        let address = match (variable("GFN_ADDRESS"), is_loopback(&host)) {
            (Some(address), _) => address,
            (None, true) => Ipv4Addr::LOCALHOST.to_string(),
            (None, false) if rank == 0 => host.clone(),
            (None, false) => {
                let expected =
                    "this machine's own address, by which the others reach it: MASTER_ADDR is that of another machine";
                return Err(Error::config("GFN_ADDRESS", "not set", expected));
            }
        };
        let launcher_serves = variable("TORCHELASTIC_USE_AGENT_STORE").is_some_and(|said| said == "True");
        let attempt = ATTEMPTS.iter().filter_map(|name| variable(name)).collect::<Vec<_>>().join("-");
        Ok(Some(Self { rank, size, host, port, address, launcher_serves, attempt }))
    }

    /// This process's end of the group of all.
    ///
    /// # Errors
    /// [`Error::Peer`] if not all processes come within the timeout; [`Error::Config`] for a host that isn't known.
    pub fn connect(&self, timeout: Duration) -> Result<Group> {
        let store = match self.rank == 0 && !self.launcher_serves {
            true => Store::serve(self.first()?, timeout)?,
            false => Store::connect(&self.host, self.port, timeout)?,
        };
        Group::new(&store.under(&format!("gfn/{}/", self.attempt))?, (self.rank, self.size), timeout, &self.address)
    }

    /// The address of the first machine's port, at which that machine can listen so that the others reach it.
    ///
    /// # Errors
    /// [`Error::Config`] for a host that isn't known, or by loopback addresses alone where it isn't one itself.
    pub fn first(&self) -> Result<SocketAddr> {
        // Many systems have their own name stand for a loopback address, where nobody else could connect.
        let fits = |address: &SocketAddr| is_loopback(&self.host) || !address.ip().is_loopback();
        let mut found = (self.host.as_str(), self.port).to_socket_addrs().ok().into_iter().flatten().filter(fits);
        let none = || {
            Error::config(
                "MASTER_ADDR",
                &self.host,
                "an address, or a name that this machine can look up as one that others reach",
            )
        };
        found.next().ok_or_else(none)
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn number<T: std::str::FromStr>(name: &'static str, text: &str) -> Result<T> {
    text.parse().map_err(|_| Error::config(name, format!("`{text}`"), "a number"))
}
