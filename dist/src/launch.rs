use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use gfn::{Error, Result};

use crate::group::INTERFACE;
use crate::{ProcessGroup, Store};

/// The environment variables by which a launcher of several processes tells each of them its place.
///
/// | launcher | rank, count | where the first process is |
/// |---|---|---|
/// | torchrun, `gfn-dist local` | `RANK`, `WORLD_SIZE` | `MASTER_ADDR`, `MASTER_PORT` |
/// | Open MPI's mpirun | `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE` | the same, to be exported |
/// | MPICH's, Intel's (PMI) | `PMI_RANK`, `PMI_SIZE` | the same |
/// | Slurm's srun | `SLURM_PROCID`, `SLURM_STEP_NUM_TASKS` | the same |
///
/// Without `MASTER_ADDR` all processes are on this machine. Where the first one is on another, the address by which the others reach this process
/// is that of the way there, or what `GFN_ADDRESS` says; `GLOO_SOCKET_IFNAME` names the network interface instead, as for torch.distributed.
///
/// A run has an id, so that no process of another run becomes a member: `GFN_RUN_ID` (which `gfn-dist local` makes up), and what launchers call their
/// jobs, steps and attempts. Who has neither an id nor a port of its own (`MASTER_PORT`) is refused.
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
    /// This machine's own address, or `interface:NAME` for that of an interface (`GLOO_SOCKET_IFNAME`).
    pub address: String,
    /// `true` if the launcher itself serves the store, as torchrun does.
    pub launcher_serves: bool,
    /// The id of this start of the processes, which tells it from others that use the same store: one given for it, the launcher's job, step and attempt.
    pub run: String,
}

/// What tells runs apart whoever launched them: ids given for them, jobs, and the attempts of one. All that are there count.
const RUN: [&str; 5] =
    ["GFN_RUN_ID", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID", "SLURM_RESTART_COUNT"];

/// Rank and count by launcher, and what tells the launcher's own jobs or steps apart; the first pair that is there counts.
const LAUNCHERS: [(&str, &str, &[&str]); 4] = [
    ("RANK", "WORLD_SIZE", &[]),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", &["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"]),
    ("PMI_RANK", "PMI_SIZE", &[]),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", &["SLURM_STEP_ID"]),
];

/// torch.distributed's own default.
const PORT: u16 = 29500;

impl Launch {
    /// The place that this process's environment gives; `None` where no launcher has started it.
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
    /// As for [`from_env`](Self::from_env).
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>> {
        // A script that Slurm runs has a number, too, but is no step of several tasks.
        let alone = |rank: &str, size: &Option<String>| rank.starts_with("SLURM") && size.is_none();
        let of = |launcher: &(&'static str, &'static str, &'static [&'static str])| {
            let found = (variable(launcher.0)?, variable(launcher.1), *launcher);
            (!alone(launcher.0, &found.1)).then_some(found)
        };
        let Some((rank, size, (rank_name, size_name, jobs))) = LAUNCHERS.iter().find_map(of) else {
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
        let run = RUN.iter().chain(jobs).filter_map(|name| variable(name)).collect::<Vec<_>>().join("-");
        // A job of Slurm's alone doesn't tell apart what launchers without a number of their own start in it.
        let mut ids = RUN.iter().chain(jobs).filter(|name| variable(name).is_some());
        let told = ids.any(|name| jobs.contains(name) || !name.starts_with("SLURM"));
        if !told && size > 1 && variable("MASTER_PORT").is_none() {
            let expected =
                "an id of this run, the same for all of its processes, or a MASTER_PORT that no other run uses";
            return Err(Error::config("GFN_RUN_ID", "not set", expected));
        }
        let address = own_address(&variable, &host, port)?;
        let launcher_serves = variable("TORCHELASTIC_USE_AGENT_STORE").is_some_and(|said| said == "True");
        Ok(Some(Self { rank, size, host, port, address, launcher_serves, run }))
    }

    /// This process's end of the group of all.
    ///
    /// # Errors
    /// [`Error::Peer`] if not all processes come within the timeout, and where another run's process serves the store; [`Error::Config`] for a host that isn't known.
    pub fn connect(&self, timeout: Duration) -> Result<ProcessGroup> {
        let serves = self.rank == 0 && !self.launcher_serves;
        let store = if serves { self.serve(timeout)? } else { Store::connect(&self.host, self.port, timeout)? };
        if !self.launcher_serves {
            store.check_run(serves, &self.run)?;
        }
        ProcessGroup::new(&store.under(&format!("gfn/{}/", self.run))?, self.rank, self.size, timeout, &self.address)
    }

    /// The store, at all addresses of this machine if others are to reach it: MASTER_ADDR may be a name or an address that isn't the machine's own.
    fn serve(&self, timeout: Duration) -> Result<Store> {
        if is_loopback(&self.host) {
            return Store::serve(self.first()?, timeout);
        }
        // Not all machines have IPv6.
        let at = |all: IpAddr| Store::serve(SocketAddr::new(all, self.port), timeout);
        at(Ipv6Addr::UNSPECIFIED.into()).or_else(|_| at(Ipv4Addr::UNSPECIFIED.into()))
    }

    /// The address of the first machine's port, at which that machine can listen so that the others reach it.
    ///
    /// # Errors
    /// [`Error::Config`] for a host that isn't known, or by loopback addresses alone where it isn't one itself.
    fn first(&self) -> Result<SocketAddr> {
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

/// The address by which others reach this machine: what is said, or that of the way to the first process.
fn own_address(variable: &impl Fn(&str) -> Option<String>, host: &str, port: u16) -> Result<String> {
    let interface = variable("GLOO_SOCKET_IFNAME").filter(|_| !is_loopback(host) && variable("GFN_ADDRESS").is_none());
    if let Some(interface) = interface {
        return Ok(format!("{INTERFACE}{}", interface.split(',').next().unwrap_or_default()));
    }
    let Some(address) = variable("GFN_ADDRESS") else {
        if is_loopback(host) {
            return Ok(Ipv4Addr::LOCALHOST.to_string());
        }
        // Sends nothing: the system only looks up which of its addresses it would send from.
        let way = |any: &str| {
            let socket = UdpSocket::bind((any, 0)).and_then(|socket| socket.connect((host, port)).map(|()| socket));
            socket.and_then(|socket| socket.local_addr()).ok()
        };
        // A machine's own name stands for a loopback address on many systems: nobody else would reach that.
        let found = way("0.0.0.0").or_else(|| way("::")).map(|found| found.ip()).filter(|ip| !ip.is_loopback());
        return found.map(|address| address.to_string()).ok_or_else(|| {
            let expected =
                "this machine's own address, by which the others reach it: there is no way from here to MASTER_ADDR, or a loopback address \
                 that it stands for here";
            Error::config("GFN_ADDRESS", "not set", expected)
        });
    };
    if is_loopback(&address) && !is_loopback(host) {
        let expected = "an address by which other machines reach this one: MASTER_ADDR isn't a loopback address";
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
