use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use gfn::{Error, Result};

use crate::group::INTERFACE;
use crate::{ProcessGroup, Store};

/// The rank of this process in a run, and the addresses that it needs to join the run. Rank and addresses are
/// read from the environment variables of a launcher.
///
/// | launcher | rank, number of processes | address of the first process |
/// |---|---|---|
/// | torchrun, `gfn-dist local` | `RANK`, `WORLD_SIZE` | `MASTER_ADDR`, `MASTER_PORT` |
/// | mpirun of Open MPI | `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE` | the same variables, which the user exports |
/// | mpirun of MPICH or Intel (PMI) | `PMI_RANK`, `PMI_SIZE` | the same variables, which the user sets |
/// | srun of Slurm | `SLURM_PROCID`, `SLURM_STEP_NUM_TASKS` | the same variables, which the user sets |
///
/// Without `MASTER_ADDR` all processes must be on this machine. If the first process is on another machine,
/// the other processes reach this process at `GFN_ADDRESS`. If `GFN_ADDRESS` isn't set, they use the address
/// from which this machine sends to `MASTER_ADDR`. As for torch.distributed, `GLOO_SOCKET_IFNAME` can name a
/// network interface instead of an address.
///
/// Each run needs a unique id or a unique port (`MASTER_PORT`), so that no process of another run joins it.
/// The id consists of `GFN_RUN_ID`, which `gfn-dist local` generates, and of the launcher's ids of jobs,
/// steps and attempts. A run without an id and without `MASTER_PORT` is an error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Launch {
    /// The rank of this process, which is 0 for the first process.
    pub rank: usize,
    /// The number of processes in the run.
    pub size: usize,
    /// The host name or address of the machine on which the first process runs.
    pub host: String,
    /// The port at which the store listens, on the machine of the first process.
    pub port: u16,
    /// The address at which other processes reach this process. The text is `interface:NAME` for the address
    /// of a network interface (`GLOO_SOCKET_IFNAME`).
    pub address: String,
    /// `true` if the launcher itself serves the store, as torchrun does; `false` if the first process serves
    /// it.
    pub launcher_serves: bool,
    /// The id of the run, which distinguishes the run from other runs that use the same store. The id
    /// consists of `GFN_RUN_ID` and the launcher's ids of job, step and attempt, if these variables are set.
    pub run: String,
}

/// The names of the variables that help to identify a run under any launcher. The id of a run consists of the
/// values of these variables and of the launcher's ids in `LAUNCHERS`, if they are set.
const RUN_IDS: [&str; 5] = [
    "GFN_RUN_ID",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_RESTART_COUNT",
    "SLURM_JOB_ID",
    "SLURM_RESTART_COUNT",
];

/// The names of each launcher's variables: the rank, the number of processes, and the ids of jobs or steps.
/// The launcher is the first entry of this list whose rank is set.
const LAUNCHERS: [(&str, &str, &[&str]); 4] = [
    ("RANK", "WORLD_SIZE", &[]),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", &["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"]),
    ("PMI_RANK", "PMI_SIZE", &[]),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", &["SLURM_STEP_ID"]),
];

/// The port that torch.distributed uses if `MASTER_PORT` isn't set.
const DEFAULT_PORT: u16 = 29500;

impl Launch {
    /// Reads the launch of this process from its environment variables. Returns `None` if no launcher started
    /// this process.
    ///
    /// # Errors
    /// [`Error::Config`] for variables that aren't numbers, for a rank without the number of processes, and
    /// for a run without an id and without `MASTER_PORT`.
    pub fn from_env() -> Result<Option<Self>> {
        Self::read(|name| std::env::var(name).ok())
    }

    /// Reads a launch from any table of variables, as [`from_env`](Self::from_env) does from the environment.
    ///
    /// ```
    /// use gfn_dist::Launch;
    /// let slurm = |name: &str| match name {
    ///     "SLURM_PROCID" => Some("3".to_owned()),
    ///     "SLURM_STEP_NUM_TASKS" => Some("8".to_owned()),
    ///     "SLURM_JOB_ID" => Some("4711".to_owned()),
    ///     "SLURM_STEP_ID" => Some("0".to_owned()),
    ///     _ => None,
    /// };
    /// let launch = Launch::read(slurm)?.ok_or_else(|| gfn::Error::config("launch", "none", "one"))?;
    /// assert_eq!((launch.rank, launch.size, launch.host.as_str()), (3, 8, "127.0.0.1"));
    /// assert!(Launch::read(|_| None)?.is_none());
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors of [`from_env`](Self::from_env).
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>> {
        // Slurm sets SLURM_PROCID for a batch script, too, but without the number of tasks. A batch script
        // isn't one of several tasks, so the variable is ignored then.
        let alone = |rank: &str, size: &Option<String>| rank.starts_with("SLURM") && size.is_none();
        let of = |launcher: &(&'static str, &'static str, &'static [&'static str])| {
            let found = (variable(launcher.0)?, variable(launcher.1), *launcher);
            (!alone(launcher.0, &found.1)).then_some(found)
        };
        let Some((rank, size, (rank_name, size_name, jobs))) = LAUNCHERS.iter().find_map(of) else {
            return Ok(None);
        };
        let size = size.ok_or_else(|| Error::config(size_name, "not set", "the number of all processes"))?;
        let rank = number::<usize>(rank_name, &rank)?;
        let size = number::<usize>(size_name, &size)?;
        if rank >= size {
            return Err(Error::config(
                rank_name,
                format!("{rank} of {size} processes"),
                "a number below the number of processes",
            ));
        }
        let host = variable("MASTER_ADDR").unwrap_or_else(|| Ipv4Addr::LOCALHOST.to_string());
        let port = variable("MASTER_PORT").map_or(Ok(DEFAULT_PORT), |port| number("MASTER_PORT", &port))?;
        let run = RUN_IDS.iter().chain(jobs).filter_map(|name| variable(name)).collect::<Vec<_>>().join("-");
        // The id of a Slurm job doesn't identify a run, because other launchers may start several runs in one
        // job.
        let mut ids = RUN_IDS.iter().chain(jobs).filter(|name| variable(name).is_some());
        let has_own_id = ids.any(|name| jobs.contains(name) || !name.starts_with("SLURM"));
        if !has_own_id && size > 1 && variable("MASTER_PORT").is_none() {
            let expected = "an id of this run, the same for all of its processes, or a MASTER_PORT that no \
                other run uses";
            return Err(Error::config("GFN_RUN_ID", "not set", expected));
        }
        let address = local_address(&variable, &host, port)?;
        let launcher_serves = variable("TORCHELASTIC_USE_AGENT_STORE").is_some_and(|said| said == "True");
        Ok(Some(Self { rank, size, host, port, address, launcher_serves, run }))
    }

    /// Connects this process to the group of all processes of the run.
    ///
    /// # Errors
    /// [`Error::Peer`] if not all processes connect within the timeout, or if a process of another run serves
    /// the store; [`Error::Config`] if the host is unknown.
    pub fn connect(&self, timeout: Duration) -> Result<ProcessGroup> {
        let serves = self.rank == 0 && !self.launcher_serves;
        let store =
            if serves { self.serve(timeout)? } else { Store::connect(&self.host, self.port, timeout)? };
        if !self.launcher_serves {
            store.check_run(serves, &self.run)?;
        }
        ProcessGroup::new(
            &store.under(&format!("gfn/{}/", self.run))?,
            self.rank,
            self.size,
            timeout,
            &self.address,
        )
    }

    /// Serves the store. If MASTER_ADDR is a loopback address, the store listens only at this address.
    /// Otherwise the store listens at all addresses of this machine, because MASTER_ADDR may be a name, or an
    /// address that isn't the machine's own.
    fn serve(&self, timeout: Duration) -> Result<Store> {
        if is_loopback(&self.host) {
            return Store::serve(self.first_address()?, timeout);
        }
        // The second attempt is for a machine without IPv6, which can listen only at its IPv4 addresses.
        let at = |all: IpAddr| Store::serve(SocketAddr::new(all, self.port), timeout);
        at(Ipv6Addr::UNSPECIFIED.into()).or_else(|_| at(Ipv4Addr::UNSPECIFIED.into()))
    }

    /// Resolves MASTER_ADDR to an address at which other processes can reach the first process.
    ///
    /// # Errors
    /// [`Error::Config`] for an unknown host, and for a host name that has only loopback addresses.
    fn first_address(&self) -> Result<SocketAddr> {
        // Many systems resolve their own host name to a loopback address, which other machines can't reach.
        // Such an address is used only if MASTER_ADDR itself is a loopback address.
        let fits = |address: &SocketAddr| is_loopback(&self.host) || !address.ip().is_loopback();
        let mut found =
            (self.host.as_str(), self.port).to_socket_addrs().ok().into_iter().flatten().filter(fits);
        let none = || {
            Error::config(
                "MASTER_ADDR",
                &self.host,
                "an address, or a name that this machine resolves to an address that other machines can \
                 reach",
            )
        };
        found.next().ok_or_else(none)
    }
}

/// Returns the address at which other processes reach this machine. The address is `GFN_ADDRESS` if this
/// variable is set. Otherwise it is the interface that `GLOO_SOCKET_IFNAME` names, or the local address from
/// which this machine would send to the first process.
fn local_address(variable: &impl Fn(&str) -> Option<String>, host: &str, port: u16) -> Result<String> {
    let interface =
        variable("GLOO_SOCKET_IFNAME").filter(|_| !is_loopback(host) && variable("GFN_ADDRESS").is_none());
    if let Some(interface) = interface {
        return Ok(format!("{INTERFACE}{}", interface.split(',').next().unwrap_or_default()));
    }
    let Some(address) = variable("GFN_ADDRESS") else {
        if is_loopback(host) {
            return Ok(Ipv4Addr::LOCALHOST.to_string());
        }
        // Connecting a UDP socket sends nothing. The call only determines the local address from which this
        // machine would send to the first process.
        let route = |any: &str| {
            let socket =
                UdpSocket::bind((any, 0)).and_then(|socket| socket.connect((host, port)).map(|()| socket));
            socket.and_then(|socket| socket.local_addr()).ok()
        };
        // A loopback address is ignored, because other machines can't reach it. Such an address is found if
        // MASTER_ADDR is this machine's name, and the system resolves this name to a loopback address.
        let found =
            route("0.0.0.0").or_else(|| route("::")).map(|found| found.ip()).filter(|ip| !ip.is_loopback());
        return found.map(|address| address.to_string()).ok_or_else(|| {
            let expected =
                "the address by which other machines reach this one, because this machine has no route to \
                 MASTER_ADDR, or resolves it to a loopback address";
            Error::config("GFN_ADDRESS", "not set", expected)
        });
    };
    if is_loopback(&address) && !is_loopback(host) {
        let expected =
            "an address by which other machines reach this one, because MASTER_ADDR isn't a loopback address";
        return Err(Error::config("GFN_ADDRESS", address, expected));
    }
    Ok(address)
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn number<T: std::str::FromStr>(name: &'static str, text: &str) -> Result<T> {
    text.parse().map_err(|_| Error::config(name, format!("`{text}`"), "a number"))
}
