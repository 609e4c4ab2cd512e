//! One of several replicas by itself, to time what each of so many would do.

use gfn::Result;
use gfn::group::Group;
use gfn::tch::{Tensor, no_grad};
use rustix::time::{ClockId, clock_gettime};

/// The end of a group in which all others say what this one says: it does the work of one member, and waits for nobody.
#[derive(Debug)]
pub(super) struct Rehearsal(pub(super) usize);

impl Group for Rehearsal {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        self.0
    }

    fn join(&self, mine: &Tensor) -> Result<Vec<Tensor>> {
        let mine = mine.detach().copy();
        Ok((0..self.0).map(|_| mine.shallow_clone()).collect())
    }

    /// As threads do it: a sum of this member's part over all, and the parts of all as one.
    fn sum(&self, tensor: &mut Tensor) -> Result<()> {
        no_grad(|| {
            let (flat, n, size) = (tensor.detach().reshape([-1]), tensor.numel(), self.0);
            let part = |k: usize| flat.narrow(0, (k * n / size) as i64, ((k + 1) * n / size - k * n / size) as i64);
            let mut sum = part(0).copy();
            for _ in 1..size {
                sum += part(0);
            }
            let parts: Vec<Tensor> = std::iter::once(sum).chain((1..size).map(part)).collect();
            tensor.copy_(&Tensor::cat(&parts, 0).reshape(tensor.size()));
            Ok(())
        })
    }
}

/// Milliseconds that a processor has worked on this thread: other programs take no part of them.
pub(crate) fn worked_ms() -> f64 {
    let worked = clock_gettime(ClockId::ThreadCPUTime);
    1e3 * worked.tv_sec as f64 + worked.tv_nsec as f64 / 1e6
}
