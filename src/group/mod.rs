//! Communication between replicas of a run that train as one.
//!
//! A [`Group`] is the connection of one replica to the others. [`replicate`] creates a group of threads of one
//! process; the package `gfn-dist` has groups of processes, on one machine or several. A trainer accepts both
//! ([`Trainer::with_group`](crate::train::Trainer::with_group)). Each replica then samples its share of every batch
//! with its own random stream, and all replicas make the same update, the update of the whole batch.

mod threads;

pub use threads::{Replica, replicate};

use tch::Tensor;

use crate::Result;

/// The connection of a member of a group of replicas, which joins and sums the tensors of all members. All members
/// call the same operations in the same order.
///
/// An operation fails with [`Error::Peer`](crate::Error::Peer) if a member has left, so that no member waits for
/// ever. If members call different operations, all get an [`Error::Contract`](crate::Error::Contract) that names both
/// operations, and the group can't be used any more.
pub trait Group: Send + std::fmt::Debug {
    /// The number of this member, from 0.
    fn rank(&self) -> usize;

    /// The number of members.
    fn size(&self) -> usize;

    /// Returns the flat tensors of all members, by rank. They have the same kind, but may have different lengths.
    ///
    /// # Errors
    /// [`Error::Peer`](crate::Error::Peer) if a member has left.
    fn join(&self, mine: &Tensor) -> Result<Vec<Tensor>>;

    /// Replaces the tensor of each member by the sum over all members. All tensors have the same kind and shape. The
    /// order of the sum is fixed, so all members get the same bits, in every run.
    ///
    /// # Errors
    /// [`Error::Peer`](crate::Error::Peer) if a member has left; [`Error::Contract`](crate::Error::Contract) for
    /// tensors of different kinds or shapes.
    fn sum(&self, tensor: &mut Tensor) -> Result<()>;
}

impl<G: Group + 'static> From<G> for Box<dyn Group> {
    fn from(group: G) -> Self {
        Box::new(group)
    }
}
