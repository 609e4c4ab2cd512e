//! The scores of each of several seeds that are trained in one batch.

use tch::{Kind, Tensor};

use super::Scores;
use crate::quantity::{Per, Quantity, Values};
use crate::tensor::to_host;
use crate::{Error, Result};

impl Scores {
    /// Splits the scores of a batch into the scores of each of `n_seeds` seeds. The condition of a trajectory
    /// is the index of its seed.
    ///
    /// # Errors
    /// [`Error::Config`] unless all seeds have the same number of trajectories, in the order of the seeds;
    /// [`Error::Missing`] for single transitions, and for quantities of states instead of trajectories.
    pub(crate) fn split_by_seed(&self, n_seeds: usize) -> Result<Vec<Self>> {
        let n = self.len() / n_seeds;
        let seeds = self.conditions.as_ref().map_or_else(Vec::new, to_host);
        let wrong = (0..self.len()).find(|&i| seeds.get(i) != Some(&((i / n.max(1)) as f64)));
        if wrong.is_some() || self.len() != n * n_seeds {
            let first = wrong.unwrap_or(0);
            let condition = seeds.get(first).copied().unwrap_or(f64::NAN);
            return Err(Error::config(
                "the conditions of a batch of several seeds",
                format!("{} for {n_seeds} seeds; trajectory {first} has {condition}", self.len()),
                "the same number of trajectories of each seed, in the order of the seeds: train without \
                 replay, given data, custom conditions and replicas",
            ));
        }
        (0..n_seeds).map(|seed| self.part(seed * n, n)).collect()
    }

    /// Returns the scores of the `n` trajectories from index `start` on.
    fn part(&self, start: usize, n: usize) -> Result<Self> {
        let first = self.offsets[start];
        let offsets: Vec<usize> =
            self.offsets[start..=start + n].iter().map(|offset| offset - first).collect();
        let n_rows = offsets[n];
        let inner_start = self.inner.partition_point(|&row| row < first);
        let inner: Vec<usize> =
            self.inner[inner_start..].iter().map(|row| row - first).take_while(|&row| row < n_rows).collect();
        let n_inner = inner.len();
        let cut = |quantity: Quantity, tensor: &Tensor| {
            let (start, n) = match quantity.per() {
                Per::Trajectory => (start, n),
                Per::Transition => (first, n_rows),
                Per::InnerTransition => (inner_start, n_inner),
                Per::BalancedState | Per::LegalAction => {
                    let missing = "quantities of trajectories or transitions";
                    let remedy = "train without flow matching and exact divergences, or train each seed with \
                        a policy of its own";
                    return Err(Error::missing("a policy of several seeds", missing, remedy));
                }
            };
            Ok((quantity, tensor.narrow(0, start as i64, n as i64)))
        };
        let empty = || Tensor::zeros([0], (Kind::Float, self.log_pf.device()));
        let mut part = Self::new(offsets, empty(), empty(), empty());
        part.inner = inner;
        for (quantity, tensor) in self.all() {
            let (quantity, tensor) = cut(quantity, tensor)?;
            part.set(quantity, tensor)?;
        }
        let old = self.old.as_ref().map(|old| old.iter().map(|(q, t)| cut(q, t)).collect::<Result<Values>>());
        part.old = old.transpose()?;
        part.conditions = self.conditions.as_ref().map(|c| c.narrow(0, start as i64, n as i64));
        part.instance = self.instance;
        part.distinct = (n_rows, n_rows);
        Ok(part)
    }
}
