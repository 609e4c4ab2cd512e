use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::IntoRawFd;
use std::path::Path;
use std::time::Duration;

use gfn::group::Group;
use gfn::{Error, Result};
use tch::{Device, Kind, Tensor, no_grad};

use crate::ffi::{GroupHandle, StoreHandle};
use crate::header::{HEADER, JOIN, KINDS, SUM, read_header};

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
        // This process reaches it, too, in whatever way.
        let ip = match address.ip() {
            IpAddr::V4(all) if all.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(all) if all.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let store = StoreHandle::tcp(&ip.to_string(), port, Some(listener.into_raw_fd()), timeout);
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

    /// Makes sure that the process that serves the store is of this run: it says so, and the others compare.
    pub(crate) fn check_run(&self, serves: bool, run: &str) -> Result<()> {
        const KEY: &str = "gfn-run";
        let lost = |said: String| {
            Error::peer(
                "the store",
                first_line(&said),
                "check whether the first process still runs, and is one of this run's",
            )
        };
        if serves {
            return self.0.set(KEY, run).map_err(lost);
        }
        let theirs = self.0.get(KEY).map_err(lost)?;
        if theirs == run {
            return Ok(());
        }
        let problem = format!("it is that of run `{theirs}`, this process is of run `{run}`");
        Err(Error::peer("the store", problem, "give each run a port of its own (MASTER_PORT)"))
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

/// One process's end of a group: [`Group`] over TCP (gloo).
///
/// Sums come out the same on all ranks, and again in another run with as many ranks. Tensors on a GPU go through the host.
///
/// A group in which a process has ended or stopped answering is of no use any more: operations fail, at once for one that has ended, after
/// the timeout for one that is stopped, and sooner where this process was asked to end ([`interrupted`](gfn::run::interrupted)): after a tenth of the timeout, 15 seconds
/// at most.
///
/// ```
/// use gfn::group::Group;
/// use gfn_dist::{ProcessGroup, Store};
/// use std::time::Duration;
/// let timeout = Duration::from_secs(10);
/// let store = Store::serve("127.0.0.1:0".parse().unwrap(), timeout)?;
/// let group = ProcessGroup::new(&store, 0, 1, timeout, "127.0.0.1")?;
/// let mut tensor = tch::Tensor::from_slice(&[1.0f32, 2.0]);
/// group.sum(&mut tensor)?;
/// assert_eq!(tensor.double_value(&[1]), 2.0);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct ProcessGroup {
    group: GroupHandle,
    rank: usize,
    size: usize,
    /// Operations so far.
    number: Cell<u64>,
    /// Bytes that each sends at first, known to all: what fits needs one message.
    room: Cell<usize>,
}

/// In front of the name of a network interface, in place of an address.
pub(crate) const INTERFACE: &str = "interface:";
/// What is sent at once at most; of more, the sizes are told first.
const MOST_AT_ONCE: usize = 1 << 16;

impl ProcessGroup {
    /// Member `rank` of `size`, once all have come. `address` is this machine's own, by which the others reach it, or `interface:` and the name
    /// of the network interface that has it.
    ///
    /// # Errors
    /// [`Error::Config`] for a rank that isn't below the size; [`Error::Peer`] if not all come within the timeout.
    pub fn new(store: &Store, rank: usize, size: usize, timeout: Duration, address: &str) -> Result<Self> {
        if rank >= size {
            return Err(Error::config(
                "the rank of a replica",
                format!("{rank} of {size}"),
                "a number below their count",
            ));
        }
        let group = GroupHandle::new(&store.0, small(rank)?, small(size)?, timeout, address).map_err(|said| {
            let remedy = "check that all processes were started, with the same count, and that they reach each other";
            Error::peer(format!("a group of {size} replicas"), first_line(&said), remedy)
        })?;
        Ok(Self { group, rank, size, number: Cell::new(0), room: Cell::new(64) })
    }

    fn broken(&self, said: &str) -> Error {
        let remedy = "a process has ended, was stopped or can't be reached: look for its error, and start all of them again, from a \
                      checkpoint if there is one";
        Error::peer(format!("a group of {} replicas", self.size), first_line(said), remedy)
    }

    /// `true` if all bring tensors of one kind and shape. gloo would crash on a difference, or wait for what doesn't come.
    fn check_alike(&self, operation: u64, tensor: &Tensor) -> Result<()> {
        let form: Vec<i64> = [tensor.kind() as i64].into_iter().chain(tensor.size()).collect();
        let all = self.gather(operation, &Tensor::from_slice(&form))?;
        let forms = all.iter().map(Vec::<i64>::try_from).collect::<std::result::Result<Vec<_>, _>>()?;
        match forms.into_iter().find(|other| *other != form) {
            None => Ok(()),
            Some(other) => {
                let remedy = "replicas must train the same model with the same settings";
                Err(Error::shape("kind and shape of a tensor of all replicas", form, other, remedy))
            }
        }
    }

    /// The tensors that all bring to an operation. By one message where all fit into it, as most do: a message costs more than its bytes.
    fn gather(&self, operation: u64, mine: &Tensor) -> Result<Vec<Tensor>> {
        if !KINDS.contains(&mine.kind()) {
            let expected = "a tensor of floating-point numbers, integers or truth values";
            return Err(Error::config(
                "the kind of a tensor for other replicas",
                format!("{:?}", mine.kind()),
                expected,
            ));
        }
        let host = mine.detach().to_device(Device::Cpu).contiguous();
        let place = [operation, self.number.replace(self.number.get() + 1)];
        let numbers = [place[0], place[1], host.kind() as u64, host.numel() as u64];
        let mut sent: Vec<u8> = numbers.into_iter().flat_map(u64::to_le_bytes).collect();
        sent.resize(HEADER + host.numel() * host.kind().elt_size_in_bytes(), 0);
        host.f_copy_data_u8(&mut sent[HEADER..], host.numel())?;
        let mut room = self.room.get();
        let mut rows = self.gather_rows(&sent, HEADER + room)?;
        let header = |(other, row): (usize, &Vec<u8>)| {
            let header = read_header(place, self.rank, other, row)?;
            header.ok_or_else(|| self.broken("a message that isn't a tensor"))
        };
        let headers = rows.iter().enumerate().map(header).collect::<Result<Vec<_>>>()?;
        let longest = headers.iter().map(|(kind, length)| kind.elt_size_in_bytes() * length).max().unwrap_or(0);
        if longest > room {
            rows = self.gather_rows(&sent, HEADER + longest)?;
            room = longest.next_power_of_two();
            if room <= MOST_AT_ONCE {
                self.room.set(room);
            }
        }
        let tensor = |(row, (kind, length)): (&Vec<u8>, (Kind, usize))| {
            let bytes = &row[HEADER..HEADER + kind.elt_size_in_bytes() * length];
            Ok(Tensor::f_from_data_size(bytes, &[length as i64], kind)?.to_device(mine.device()))
        };
        rows.iter().zip(headers).map(tensor).collect()
    }

    /// The first `length` bytes of what all send.
    fn gather_rows(&self, sent: &[u8], length: usize) -> Result<Vec<Vec<u8>>> {
        no_grad(|| {
            let mut row = sent[..sent.len().min(length)].to_vec();
            row.resize(length, 0);
            let mut all = Tensor::zeros([self.size as i64, length as i64], (Kind::Uint8, Device::Cpu));
            self.group.all_gather(&mut Tensor::from_slice(&row), &mut all).map_err(|said| self.broken(&said))?;
            let mut bytes = vec![0; self.size * length];
            all.f_copy_data_u8(&mut bytes, self.size * length)?;
            Ok(bytes.chunks(length).map(<[u8]>::to_vec).collect())
        })
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

impl Group for ProcessGroup {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn join(&self, mine: &Tensor) -> Result<Vec<Tensor>> {
        self.gather(JOIN, mine)
    }

    fn sum(&self, tensor: &mut Tensor) -> Result<()> {
        self.check_alike(SUM, tensor)?;
        self.on_host(tensor, |host| self.group.all_reduce(host))
    }
}

fn small(number: usize) -> Result<i32> {
    i32::try_from(number).map_err(|_| Error::config("the number of replicas", number, "less than 2^31"))
}

/// c10d's messages go on with a stack trace.
fn first_line(said: &str) -> String {
    said.lines().next().unwrap_or_default().trim_end_matches("Exception raised from").trim().to_owned()
}
