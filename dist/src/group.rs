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
use crate::members::{Member, describe_ended};

/// A key-value store through which the processes of a group find each other.
#[derive(Debug)]
pub struct Store(StoreHandle);

impl Store {
    /// Starts a store that listens at an address, to which the other processes connect. A loopback address
    /// can be reached only from this machine.
    ///
    /// # Errors
    /// [`Error::Peer`] if this process can't listen at the address.
    pub fn serve(address: SocketAddr, timeout: Duration) -> Result<Self> {
        let refuse = |problem: String| {
            Error::peer(
                format!("the store at {address}"),
                problem,
                "choose a free port (MASTER_PORT) of this machine",
            )
        };
        let listener = TcpListener::bind(address).map_err(|error| refuse(error.to_string()))?;
        let port = listener.local_addr().map_or(address.port(), |bound| bound.port());
        // This process connects to its store, too. A process can't connect to an unspecified address such as
        // 0.0.0.0, and uses the loopback address instead.
        let ip = match address.ip() {
            IpAddr::V4(all) if all.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(all) if all.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let store = StoreHandle::tcp(&ip.to_string(), port, Some(listener.into_raw_fd()), timeout);
        store.map(Self).map_err(|error| refuse(first_line(&error)))
    }

    /// Connects to a store that another process serves.
    ///
    /// # Errors
    /// [`Error::Peer`] if there is no answer within the timeout.
    pub fn connect(host: &str, port: u16, timeout: Duration) -> Result<Self> {
        StoreHandle::tcp(host, port, None, timeout).map(Self).map_err(|error| {
            let remedy = "check MASTER_ADDR and MASTER_PORT, and check that the first process still runs";
            Error::peer(format!("the store at {host}:{port}"), first_line(&error), remedy)
        })
    }

    /// Opens a store that consists of a file, for a group of `size` processes that can all read and write the
    /// file. Each run needs a new file.
    ///
    /// # Errors
    /// [`Error::File`] if the file can't be used.
    pub fn file(path: &Path, size: usize) -> Result<Self> {
        let refuse =
            |problem: String| Error::file(path, problem, "give a file in a folder that can be written to");
        let name = path.to_str().ok_or_else(|| refuse("the name of the file isn't UTF-8".to_owned()))?;
        StoreHandle::file(name, to_i32(size)?).map(Self).map_err(|error| refuse(first_line(&error)))
    }

    /// Checks that this process belongs to the same run as the process that serves the store. The serving
    /// process writes the id of its run to the store, and every other process compares its own id with it.
    pub(crate) fn check_run(&self, serves: bool, run: &str) -> Result<()> {
        const KEY: &str = "gfn-run";
        let lost = |error: String| {
            Error::peer(
                "the store",
                first_line(&error),
                "check that the first process still runs and belongs to this run",
            )
        };
        if serves {
            return self.0.set(KEY, run).map_err(lost);
        }
        let theirs = self.0.get(KEY).map_err(lost)?;
        if theirs == run {
            return Ok(());
        }
        let problem = format!("the store belongs to run `{theirs}`, but this process belongs to run `{run}`");
        Err(Error::peer("the store", problem, "give each run a separate port (MASTER_PORT)"))
    }

    /// Returns a view of the store in which all keys get a prefix. Groups that use the same store need
    /// different prefixes.
    ///
    /// # Errors
    /// [`Error::Peer`] if the store can't be reached.
    pub fn under(&self, name: &str) -> Result<Self> {
        let gone = |error: String| {
            Error::peer("the store", first_line(&error), "check whether the first process still runs")
        };
        self.0.prefixed(name).map(Self).map_err(gone)
    }
}

/// The membership of this process in a group of processes. This type implements [`Group`] over TCP, by gloo.
///
/// A sum has the same bits on all ranks, and in every run with the same number of ranks. Tensors on a GPU are
/// copied to the host and back.
///
/// All operations fail after a process of the group has ended or stopped answering. Operations fail at once
/// if a process has ended, and after the timeout if a process doesn't answer. If this process was asked to
/// end ([`interrupted`](gfn::run::interrupted)), an operation waits for at most a tenth of the timeout, and
/// at most 15 seconds. A group can't be used any more after an operation has failed.
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
    /// The processes of the group, by rank.
    members: Vec<Member>,
    /// The number of gather operations that this group has made. A sum makes one, too, to compare the shapes
    /// of the tensors.
    n_operations: Cell<u64>,
    /// The number of bytes of a tensor that fit into the first message of a gather operation. It grows with
    /// the tensors that are gathered, and is equal on all ranks. A longer tensor needs a second message.
    payload: Cell<usize>,
}

/// The prefix that marks an address as the name of a network interface.
pub(crate) const INTERFACE: &str = "interface:";
/// The largest number of bytes of a tensor that the first message of a gather operation may carry. If a
/// tensor is longer, all ranks send a second message, with a length that they know from the first messages.
const MAX_FIRST_PAYLOAD: usize = 1 << 16;

impl ProcessGroup {
    /// Joins a group as member `rank` of `size` members, and waits until all of them have joined. `address`
    /// is the address at which other members reach this machine. The address may also be `interface:`
    /// followed by the name of the network interface with this address.
    ///
    /// # Errors
    /// [`Error::Config`] for a rank that isn't below the size; [`Error::Peer`] if not all members join within
    /// the timeout.
    pub fn new(store: &Store, rank: usize, size: usize, timeout: Duration, address: &str) -> Result<Self> {
        if rank >= size {
            return Err(Error::config(
                "the rank of a replica",
                format!("{rank} in a group of {size}"),
                "a number below the number of replicas",
            ));
        }
        let group = GroupHandle::new(&store.0, to_i32(rank)?, to_i32(size)?, timeout,
            address).map_err(|error| {
            let remedy = "check that all processes were started with the same number of processes, and that \
                they can reach each other";
            Error::peer(format!("a group of {size} replicas"), first_line(&error), remedy)
        })?;
        let mut joined = Self {
            group,
            rank,
            size,
            members: Vec::new(),
            n_operations: Cell::new(0),
            payload: Cell::new(64),
        };
        let rows = joined.gather_rows(&Member::this_process().to_bytes(), Member::BYTES)?;
        joined.members = rows.iter().map(|row| Member::from_bytes(row)).collect();
        Ok(joined)
    }

    /// Returns the error after an operation has failed. It names the processes of this machine that have
    /// ended or are stopped; if there are none, it has the message of gloo.
    fn peer_error(&self, message: &str) -> Error {
        let remedy = "a process has ended, was stopped or can't be reached: look for its error, and start \
            all of them again, from a checkpoint if there is one";
        let message = first_line(message);
        let problem = match describe_ended(&self.members) {
            // This message isn't gloo's, but says that this process was asked to end.
            Some(ended) if gfn::run::interrupted() => format!("{message}: {ended}"),
            Some(ended) => ended,
            None => message,
        };
        Error::peer(format!("a group of {} replicas", self.size), problem, remedy)
    }

    /// Checks that the tensors of all ranks have the same dtype and shape. gloo would crash or wait forever
    /// if they differed.
    fn check_same_shape(&self, operation: u64, tensor: &Tensor) -> Result<()> {
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

    /// Gathers the tensors of all ranks, of any lengths. Each rank's first message has the same length. A
    /// second message is sent only if a tensor doesn't fit into the first one, because sending a message
    /// takes long even if it is short.
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
        let own_id = [operation, self.n_operations.replace(self.n_operations.get() + 1)];
        let numbers = [own_id[0], own_id[1], host.kind() as u64, host.numel() as u64];
        let mut sent: Vec<u8> = numbers.into_iter().flat_map(u64::to_le_bytes).collect();
        sent.resize(HEADER + host.numel() * host.kind().elt_size_in_bytes(), 0);
        host.f_copy_data_u8(&mut sent[HEADER..], host.numel())?;
        let mut payload = self.payload.get();
        let mut rows = self.gather_rows(&sent, HEADER + payload)?;
        let header = |(other, row): (usize, &Vec<u8>)| {
            let header = read_header(own_id, self.rank, other, row)?;
            header.ok_or_else(|| self.peer_error("a replica sent a message that isn't a tensor"))
        };
        let headers = rows.iter().enumerate().map(header).collect::<Result<Vec<_>>>()?;
        let longest =
            headers.iter().map(|(kind, length)| kind.elt_size_in_bytes() * length).max().unwrap_or(0);
        if longest > payload {
            rows = self.gather_rows(&sent, HEADER + longest)?;
            payload = longest.next_power_of_two();
            if payload <= MAX_FIRST_PAYLOAD {
                self.payload.set(payload);
            }
        }
        let tensor = |(row, (kind, length)): (&Vec<u8>, (Kind, usize))| {
            let bytes = &row[HEADER..HEADER + kind.elt_size_in_bytes() * length];
            Ok(Tensor::f_from_data_size(bytes, &[length as i64], kind)?.to_device(mine.device()))
        };
        rows.iter().zip(headers).map(tensor).collect()
    }

    /// Gathers the first `length` bytes of each rank's message. A shorter message is filled up with zeros.
    fn gather_rows(&self, sent: &[u8], length: usize) -> Result<Vec<Vec<u8>>> {
        no_grad(|| {
            let mut row = sent[..sent.len().min(length)].to_vec();
            row.resize(length, 0);
            let mut all = Tensor::zeros([self.size as i64, length as i64], (Kind::Uint8, Device::Cpu));
            self.group
                .all_gather(&mut Tensor::from_slice(&row), &mut all)
                .map_err(|error| self.peer_error(&error))?;
            let mut bytes = vec![0; self.size * length];
            all.f_copy_data_u8(&mut bytes, self.size * length)?;
            Ok(bytes.chunks(length).map(<[u8]>::to_vec).collect())
        })
    }

    /// Runs an operation of gloo on a contiguous copy of a tensor in host memory, and copies the result back
    /// to the tensor.
    fn on_host(
        &self,
        tensor: &mut Tensor,
        work: impl FnOnce(&mut Tensor) -> std::result::Result<(), String>,
    ) -> Result<()> {
        no_grad(|| {
            let mut host = tensor.detach().to_device(Device::Cpu).contiguous();
            // A tensor that is already contiguous and in host memory is copied, too. Otherwise an operation
            // that fails could leave a part of its result in the caller's tensor.
            if host.data_ptr() == tensor.data_ptr() {
                host = host.copy();
            }
            work(&mut host).map_err(|error| self.peer_error(&error))?;
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
        self.check_same_shape(SUM, tensor)?;
        self.on_host(tensor, |host| self.group.all_reduce(host))
    }
}

fn to_i32(number: usize) -> Result<i32> {
    i32::try_from(number).map_err(|_| Error::config("the number of replicas", number, "less than 2^31"))
}

/// Returns the first line of an error message of c10d, without the file of the C++ code before it, and
/// without gloo's advice after it. A stack trace follows in the message.
fn first_line(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default().trim_end_matches("Exception raised from").trim();
    let line = match line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((place, rest)) if place.contains(".cc:") || place.contains(".cpp:") => rest,
        _ => line,
    };
    line.split(". This may be").next().unwrap_or_default().trim().to_owned()
}
