//! Several replicas of a run that train as one: what they say to each other.
//!
//! A [`Group`] is one replica's end of a group. [`replicate`] makes the group of the threads of one process; package `gfn-dist` has
//! groups of processes, on one machine or many. A trainer takes either ([`Trainer::with_group`](crate::train::Trainer::with_group)): each
//! replica then draws its share of every batch by a random stream of its own, and all make the same update, that of the whole batch.

mod threads;

pub use threads::{Replica, replicate};

use tch::Tensor;

use crate::Result;

/// One member's end of a group of replicas: it joins what all members bring, and sums it. All members call the same operations in the
/// same order.
///
/// Either operation fails with [`Error::Peer`](crate::Error::Peer) once a member has left: nobody waits for what won't come. Where members
/// call different ones, all get an [`Error::Contract`](crate::Error::Contract) that names both, and the group is of no use any more.
pub trait Group: Send + std::fmt::Debug {
    /// The number of this member, from 0.
    fn rank(&self) -> usize;

    /// The number of members.
    fn size(&self) -> usize;

    /// The flat tensors of all members, by rank. They are of one kind, but may have different lengths.
    ///
    /// # Errors
    /// [`Error::Peer`](crate::Error::Peer) if a member has left.
    fn join(&self, mine: &Tensor) -> Result<Vec<Tensor>>;

    /// Puts the sum over all members into each one's tensor, all of one kind and shape. The order of the sum is fixed, so all members
    /// get the same bits, and get them again in another run.
    ///
    /// # Errors
    /// [`Error::Peer`](crate::Error::Peer) if a member has left; [`Error::Contract`](crate::Error::Contract) for tensors of different kinds or shapes.
    fn sum(&self, tensor: &mut Tensor) -> Result<()>;
}

impl<G: Group + 'static> From<G> for Box<dyn Group> {
    fn from(group: G) -> Self {
        Box::new(group)
    }
}
