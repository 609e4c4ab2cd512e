//! Safe wrappers of the C functions in the C++ code of this package. This module has all of the package's
//! unsafe code.
#![allow(unsafe_code, reason = "c10d can be reached through C functions only")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::NonNull;
use std::time::Duration;

use tch::Tensor;
use torch_sys::C_tensor;

type Message = *mut *mut c_char;

/// The longest time that a process waits for other processes after it was asked to end. A tenth of the
/// group's timeout is used if that is shorter. Slurm and Kubernetes kill a process 30 seconds after they ask
/// it to end. The process must also write a checkpoint in these 30 seconds, so it can't spend all of them on
/// waiting.
const PATIENCE: Duration = Duration::from_secs(15);

unsafe extern "C" {
    fn gfn_dist_store_tcp(
        host: *const c_char,
        port: u16,
        listener: c_int,
        timeout_ms: i64,
        error: Message,
    ) -> *mut c_void;
    fn gfn_dist_store_file(path: *const c_char, size: c_int, error: Message) -> *mut c_void;
    fn gfn_dist_store_prefix(store: *mut c_void, prefix: *const c_char, error: Message) -> *mut c_void;
    fn gfn_dist_store_free(store: *mut c_void);
    fn gfn_dist_store_set(store: *mut c_void, key: *const c_char, value: *const c_char, error: Message);
    fn gfn_dist_store_get(store: *mut c_void, key: *const c_char, error: Message) -> *mut c_char;
    fn gfn_dist_group(
        store: *mut c_void,
        rank: c_int,
        size: c_int,
        timeout_ms: i64,
        address: *const c_char,
        patience_ms: i64,
        interrupted: extern "C" fn() -> bool,
        error: Message,
    ) -> *mut c_void;
    fn gfn_dist_group_free(group: *mut c_void);
    fn gfn_dist_all_reduce(group: *mut c_void, tensor: *mut C_tensor, error: Message) -> bool;
    fn gfn_dist_all_gather(
        group: *mut c_void,
        mine: *mut C_tensor,
        all: *mut C_tensor,
        error: Message,
    ) -> bool;
}

/// The result of a c10d call. The error is the message of c10d.
pub(crate) type Reply<T> = Result<T, String>;

/// Calls a C function of this package. If the function sets an error message, returns the message as an
/// error.
fn call<T>(function: impl FnOnce(Message) -> T) -> Reply<T> {
    let mut message: *mut c_char = std::ptr::null_mut();
    let returned = function(&raw mut message);
    if message.is_null() {
        return Ok(returned);
    }
    Err(take_string(message))
}

/// Copies a string that a C function allocated, and frees the original.
fn take_string(string: *mut c_char) -> String {
    // SAFETY: the string was allocated by `strdup`, and the C++ code keeps no pointer to it.
    unsafe {
        let text = CStr::from_ptr(string).to_string_lossy().into_owned();
        libc::free(string.cast());
        text
    }
}

/// Returns `true` if this process was asked to end. c10d then waits for other processes for at most
/// `PATIENCE`.
extern "C" fn interrupted() -> bool {
    gfn::run::interrupted()
}

fn non_null<T>(pointer: *mut T) -> Reply<NonNull<T>> {
    NonNull::new(pointer).ok_or_else(|| "c10d returned nothing, and no error message".to_owned())
}

fn text(text: &str) -> Reply<CString> {
    CString::new(text).map_err(|error| error.to_string())
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A key-value store of c10d, through which processes find each other.
#[derive(Debug)]
pub(crate) struct StoreHandle(NonNull<c_void>);

// SAFETY: a store of c10d is reference counted and locks itself, so any thread may use it.
unsafe impl Send for StoreHandle {}

impl StoreHandle {
    pub(crate) fn tcp(host: &str, port: u16, listener: Option<c_int>, timeout: Duration) -> Reply<Self> {
        let host = text(host)?;
        // SAFETY: the string of the host outlives the call, and the C function takes ownership of the socket.
        let store = call(|error| unsafe {
            gfn_dist_store_tcp(host.as_ptr(), port, listener.unwrap_or(-1), milliseconds(timeout), error)
        });
        store.and_then(non_null).map(Self)
    }

    pub(crate) fn file(path: &str, size: c_int) -> Reply<Self> {
        let path = text(path)?;
        // SAFETY: the string of the path outlives the call.
        call(|error| unsafe { gfn_dist_store_file(path.as_ptr(), size, error) }).and_then(non_null).map(Self)
    }

    pub(crate) fn prefixed(&self, prefix: &str) -> Reply<Self> {
        let prefix = text(prefix)?;
        // SAFETY: the store lives as long as `self`; the new store holds its own reference to it.
        call(|error| unsafe { gfn_dist_store_prefix(self.0.as_ptr(), prefix.as_ptr(), error) })
            .and_then(non_null)
            .map(Self)
    }

    pub(crate) fn set(&self, key: &str, value: &str) -> Reply<()> {
        let key = text(key)?;
        let value = text(value)?;
        // SAFETY: all arguments outlive the call.
        call(|error| unsafe { gfn_dist_store_set(self.0.as_ptr(), key.as_ptr(), value.as_ptr(), error) })
    }

    /// Waits until a process has set this key, and returns its value.
    pub(crate) fn get(&self, key: &str) -> Reply<String> {
        let key = text(key)?;
        // SAFETY: both arguments outlive the call.
        let value = call(|error| unsafe { gfn_dist_store_get(self.0.as_ptr(), key.as_ptr(), error) });
        value.and_then(non_null).map(|string| take_string(string.as_ptr()))
    }
}

impl Drop for StoreHandle {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a C function of this package, and there is no other copy of it.
        unsafe { gfn_dist_store_free(self.0.as_ptr()) }
    }
}

/// A process group of c10d whose processes communicate by gloo.
#[derive(Debug)]
pub(crate) struct GroupHandle(NonNull<c_void>);

// SAFETY: any thread may use a process group of c10d if only one thread uses it at a time. The type isn't
// `Sync`, so threads can't share it.
unsafe impl Send for GroupHandle {}

impl GroupHandle {
    pub(crate) fn new(
        store: &StoreHandle,
        rank: c_int,
        size: c_int,
        timeout: Duration,
        address: &str,
    ) -> Reply<Self> {
        let address = text(address)?;
        let patience = milliseconds(PATIENCE.min(timeout / 10));
        let timeout = milliseconds(timeout);
        // SAFETY: store and address outlive the call, and the group holds its own reference to the store.
        let group = call(|error| unsafe {
            gfn_dist_group(
                store.0.as_ptr(),
                rank,
                size,
                timeout,
                address.as_ptr(),
                patience,
                interrupted,
                error,
            )
        });
        group.and_then(non_null).map(Self)
    }

    pub(crate) fn all_reduce(&self, tensor: &mut Tensor) -> Reply<()> {
        // SAFETY: group and tensor are alive, and the call returns only after the operation stopped using the
        // tensor.
        call(|error| unsafe { gfn_dist_all_reduce(self.0.as_ptr(), tensor.as_mut_ptr(), error) }).map(drop)
    }

    pub(crate) fn all_gather(&self, mine: &mut Tensor, all: &mut Tensor) -> Reply<()> {
        // SAFETY: the group and both tensors are alive, and the call returns only after the operation stopped
        // using them.
        call(|error| unsafe {
            gfn_dist_all_gather(self.0.as_ptr(), mine.as_mut_ptr(), all.as_mut_ptr(), error)
        })
        .map(drop)
    }
}

impl Drop for GroupHandle {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a C function of this package, and there is no other copy of it.
        unsafe { gfn_dist_group_free(self.0.as_ptr()) }
    }
}
