use super::Selection;
use super::selection::{with_replacement, without_replacement};
use crate::{Result, Rng};

/// The operations behind [`Container`]. They are private, so that every index from outside is checked.
pub(crate) mod parts {
    use crate::Result;

    pub trait Parts: Sized {
        fn count(&self) -> usize;
        /// The elements at these indices, all of which are below `count`.
        fn pick(&self, indices: &[usize]) -> Self;
        fn join(&mut self, other: Self) -> Result<()>;
    }
}

/// A batch of elements that can be selected from, sampled from and joined: [`Trajectories`](super::Trajectories),
/// [`Walks`](super::Walks), [`Transitions`](super::Transitions) and [`StatesContainer`](super::StatesContainer).
///
/// ```
/// use gfn::{policy::UniformPolicy, rollout::{Container, Sampler}, testing::Chain, Rng};
/// let (env, mut rng) = (Chain::new(4), Rng::seeded(0));
/// let trajectories = Sampler::new(&env, &UniformPolicy).forward(8, &mut rng)?;
/// let mut some = trajectories.select(2..5)?;
/// some.extend([trajectories.select(7)?, trajectories.select(&[0, 0])?])?;
/// assert_eq!(some.len(), 6);
/// assert_eq!(trajectories.sample(3, &mut rng)?.len(), 3);
/// assert!(trajectories.sample(9, &mut rng).is_err());
/// # Ok::<(), gfn::Error>(())
/// ```
pub trait Container: parts::Parts {
    /// The selected elements: by index, range, list or mask (see [`Selection`]).
    ///
    /// # Errors
    /// Those of [`Selection::indices`].
    fn select<'a>(&self, selection: impl Into<Selection<'a>>) -> Result<Self> {
        Ok(self.pick(&selection.into().indices(self.count())?))
    }

    /// `n` different elements, uniformly, in a random order.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for more than there are.
    fn sample(&self, n: usize, rng: &mut Rng) -> Result<Self> {
        Ok(self.pick(&without_replacement(n, self.count(), rng)?))
    }

    /// `n` elements, drawn uniformly and independently: one may occur several times.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) from an empty container.
    fn sample_with_replacement(&self, n: usize, rng: &mut Rng) -> Result<Self> {
        Ok(self.pick(&with_replacement(n, self.count(), rng)?))
    }

    /// Appends the elements of other containers, one container after another.
    ///
    /// # Errors
    /// Those of the container's `append`. Containers before the failing one stay appended.
    fn extend(&mut self, others: impl IntoIterator<Item = Self>) -> Result<()> {
        others.into_iter().try_for_each(|other| self.join(other))
    }
}

impl<C: parts::Parts> Container for C {}

/// The recorded values of two batches, joined; `None` if one of them has elements but no recorded values.
pub(super) fn join_recorded<T: Clone>(
    mine: (Option<Vec<T>>, usize),
    theirs: (Option<Vec<T>>, usize),
) -> Option<Vec<T>> {
    match (mine, theirs) {
        ((Some(mut mine), _), (Some(theirs), _)) => {
            mine.extend(theirs);
            Some(mine)
        }
        ((Some(some), _), (None, 0)) | ((None, 0), (Some(some), _)) => Some(some),
        _ => None,
    }
}

/// The values at these rows.
pub(super) fn pick<T: Copy>(values: &[T], rows: &[usize]) -> Vec<T> {
    rows.iter().map(|&row| values[row]).collect()
}
