//! Communication between the replicas of a run, which train one policy together.
//!
//! A [`Group`] is the connection of one replica to the others. [`replicate`] creates a group of threads of
//! one process; the package `gfn-dist` creates groups of processes, on one machine or several. A trainer
//! accepts any group ([`Trainer::with_group`](crate::train::Trainer::with_group)). Each replica then samples
//! its share of every batch with its own random stream, and all replicas make the same update, computed from
//! the whole batch.

mod threads;

pub use threads::{Replica, replicate};

use tch::Tensor;

use crate::Result;

/// The connection of one member to a group of replicas. A group collects and sums the tensors of all members.
/// All members must call the same operations in the same order.
///
/// An operation fails with [`Error::Peer`](crate::Error::Peer) if a member has left, so that no member waits
/// for ever. If members call different operations, each member gets an
/// [`Error::Contract`](crate::Error::Contract) that names two of the operations, and the group can't be used
/// any more.
pub trait Group: Send + std::fmt::Debug {
    /// Returns the number of this member, counted from 0.
    fn rank(&self) -> usize;

    /// Returns the number of members of the group.
    fn size(&self) -> usize;

    /// Returns the flat tensors of all members, by rank. The tensors have the same dtype, but may have
    /// different lengths.
    ///
    /// # Errors
    /// [`Error::Peer`](crate::Error::Peer) if a member has left.
    fn join(&self, mine: &Tensor) -> Result<Vec<Tensor>>;

    /// Replaces the tensor of each member by the sum over all members. All tensors must have the same dtype
    /// and shape. The order of the summands is fixed, so the result is bitwise the same for all members and
    /// in every run.
    ///
    /// # Errors
    /// [`Error::Peer`](crate::Error::Peer) if a member has left; [`Error::Contract`](crate::Error::Contract)
    /// for tensors of different dtypes or shapes.
    fn sum(&self, tensor: &mut Tensor) -> Result<()>;
}

impl<G: Group + 'static> From<G> for Box<dyn Group> {
    fn from(group: G) -> Self {
        Box::new(group)
    }
}
