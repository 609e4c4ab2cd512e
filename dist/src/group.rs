use std::net::{SocketAddr, TcpListener};
use std::os::fd::IntoRawFd;
use std::path::Path;
use std::time::Duration;

use gfn::collective::Collective;
use gfn::{Error, Result};
use tch::{Device, Tensor, no_grad};

use crate::ffi::{GroupHandle, StoreHandle};

/// Where the processes of a group find each other.
#[derive(Debug)]
pub struct Store(StoreHandle);

impl Store {
    /// A store that this process serves at an address, the one that the others are told. Nobody else can reach a loopback address.
    ///
    /// # Errors
    /// [`Error::Peer`] where the address can't be listened at.
    pub fn serve(address: SocketAddr, timeout: Duration) -> Result<Self> {
        let refuse = |problem: String| {
            Error::peer(format!("the store at {address}"), problem, "choose a free port (MASTER_PORT) of this machine")
        };
        let listener = TcpListener::bind(address).map_err(|error| refuse(error.to_string()))?;
        let port = listener.local_addr().map_or(address.port(), |bound| bound.port());
        let store = StoreHandle::tcp(&address.ip().to_string(), port, Some(listener.into_raw_fd()), timeout);
        store.map(Self).map_err(|said| refuse(first_line(&said)))
    }

    /// The store that another process serves.
    ///
    /// # Errors
    /// [`Error::Peer`] where nobody answers in time.
    pub fn connect(host: &str, port: u16, timeout: Duration) -> Result<Self> {
        StoreHandle::tcp(host, port, None, timeout).map(Self).map_err(|said| {
            let remedy = "check MASTER_ADDR and MASTER_PORT, and whether the first process still runs";
            Error::peer(format!("the store at {host}:{port}"), first_line(&said), remedy)
        })
    }

    /// A file that all processes of one machine see, for a group of `size`; a new one for each run.
    ///
    /// # Errors
    /// [`Error::File`] where it can't be used.
    pub fn file(path: &Path, size: usize) -> Result<Self> {
        let refuse = |problem: String| Error::file(path, problem, "give a file in a folder that can be written to");
        let name = path.to_str().ok_or_else(|| refuse("its name isn't UTF-8".to_owned()))?;
        StoreHandle::file(name, small(size)?).map(Self).map_err(|said| refuse(first_line(&said)))
    }

    /// The part of it under a name: groups that use one store must not share names.
    ///
    /// # Errors
    /// [`Error::Peer`] where the store is gone.
    pub fn under(&self, name: &str) -> Result<Self> {
        let gone =
            |said: String| Error::peer("the store", first_line(&said), "check whether the first process still runs");
        self.0.prefixed(name).map(Self).map_err(gone)
    }
}

/// One process's end of a group: [`Collective`] over TCP (gloo).
///
/// Sums come out the same on all ranks, and again in another run with as many ranks. Tensors on a GPU go through the host.
///
/// A group in which a process has ended or stopped answering is of no use any more: operations fail, at once for one that has ended, after
/// the timeout for one that is stopped.
///
/// ```
/// use gfn::collective::Collective;
/// use gfn_dist::{Group, Store};
/// use std::time::Duration;
/// let timeout = Duration::from_secs(10);
/// let store = Store::serve("127.0.0.1:0".parse().unwrap(), timeout)?;
/// let group = Group::new(&store, (0, 1), timeout, "127.0.0.1")?;
/// let mut tensor = tch::Tensor::from_slice(&[1.0f32, 2.0]);
/// group.all_reduce(&mut tensor)?;
/// assert_eq!(tensor.double_value(&[1]), 2.0);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct Group {
    group: GroupHandle,
    rank: usize,
    size: usize,
}

impl Group {
    /// Member `rank` of `size`, once all have come. `address` is this machine's own, by which the others reach it.
    ///
    /// # Errors
    /// [`Error::Config`] for a rank that isn't below the size; [`Error::Peer`] if not all come within the timeout.
    pub fn new(store: &Store, (rank, size): (usize, usize), timeout: Duration, address: &str) -> Result<Self> {
        if rank >= size {
            return Err(Error::config(
                "the rank of a replica",
                format!("{rank} of {size}"),
                "a number below their count",
            ));
        }
        let group = GroupHandle::new(&store.0, (small(rank)?, small(size)?), timeout, address).map_err(|said| {
            let remedy = "check that all processes were started, with the same count, and that they reach each other";
            Error::peer(format!("a group of {size} replicas"), first_line(&said), remedy)
        })?;
        Ok(Self { group, rank, size })
    }

    fn broken(&self, said: &str) -> Error {
        let remedy = "a process has ended, was stopped or can't be reached: look for its error, and start all of them again, from a \
                      checkpoint if there is one";
        Error::peer(format!("a group of {} replicas", self.size), first_line(said), remedy)
    }

    /// Whether all bring tensors of one kind and shape. gloo would crash on a difference, or wait for what doesn't come.
    fn check_alike(&self, tensor: &Tensor) -> Result<()> {
        let form: Vec<i64> = [tensor.kind() as i64].into_iter().chain(tensor.size()).collect();
        let all = self.all_gather(&Tensor::from_slice(&form))?;
        let forms = all.iter().map(Vec::<i64>::try_from).collect::<std::result::Result<Vec<_>, _>>()?;
        match forms.into_iter().find(|other| *other != form) {
            None => Ok(()),
            Some(other) => {
                let remedy = "replicas must train the same model with the same settings";
                Err(Error::shape("kind and shape of a tensor of all replicas", form, other, remedy))
            }
        }
    }

    /// Works on a copy on the host, of one block, and puts what comes out back.
    fn on_host(
        &self,
        tensor: &mut Tensor,
        work: impl FnOnce(&mut Tensor) -> std::result::Result<(), String>,
    ) -> Result<()> {
        no_grad(|| {
            let mut host = tensor.detach().to_device(Device::Cpu).contiguous();
            // On the host already: c10d would write into the caller's tensor, half of it if it fails.
            if host.data_ptr() == tensor.data_ptr() {
                host = host.copy();
            }
            work(&mut host).map_err(|said| self.broken(&said))?;
            tensor.copy_(&host);
            Ok(())
        })
    }
}

impl Collective for Group {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    /// Lengths first, then rows of the longest.
    fn all_gather(&self, mine: &Tensor) -> Result<Vec<Tensor>> {
        no_grad(|| {
            let gather = |mine: &mut Tensor| -> Result<Tensor> {
                let mut all = Tensor::zeros([self.size as i64, mine.numel() as i64], (mine.kind(), Device::Cpu));
                self.group.all_gather(mine, &mut all).map_err(|said| self.broken(&said))?;
                Ok(all)
            };
            let lengths = gather(&mut Tensor::from_slice(&[mine.numel() as i64]))?;
            let lengths: Vec<i64> = (0..self.size as i64).map(|rank| lengths.int64_value(&[rank, 0])).collect();
            let longest = lengths.iter().copied().max().unwrap_or(0);
            let mut row = Tensor::zeros([longest], (mine.kind(), Device::Cpu));
            row.narrow(0, 0, mine.numel() as i64).copy_(&mine.detach().reshape([-1]));
            let all = gather(&mut row)?;
            let rows = (0..).zip(lengths);
            Ok(rows.map(|(rank, length)| all.get(rank).narrow(0, 0, length).to_device(mine.device())).collect())
        })
    }

    fn all_reduce(&self, tensor: &mut Tensor) -> Result<()> {
        self.check_alike(tensor)?;
        self.on_host(tensor, |host| self.group.all_reduce(host))
    }

    fn broadcast(&self, tensor: &mut Tensor, root: usize) -> Result<()> {
        if root >= self.size {
            return Err(Error::out_of_range(root, self.size));
        }
        self.check_alike(tensor)?;
        let root = small(root)?;
        self.on_host(tensor, |host| self.group.broadcast(host, root))
    }
}

fn small(number: usize) -> Result<i32> {
    i32::try_from(number).map_err(|_| Error::config("the number of replicas", number, "less than 2^31"))
}

/// c10d's messages go on with a stack trace.
fn first_line(said: &str) -> String {
    said.lines().next().unwrap_or_default().trim_end_matches("Exception raised from").trim().to_owned()
}
