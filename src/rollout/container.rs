use tch::{Device, Tensor};

use crate::condition::Conditions;
use crate::{Error, Result, Rng};

/// The operations on which the methods of [`Container`] are based. The operations are private because they
/// don't check indices.
pub(crate) mod parts {
    use crate::condition::Conditions;

    /// A container, or a view of some of its elements, such as trajectories or transitions.
    pub trait Parts: Sized {
        /// Returns the number of elements.
        fn count(&self) -> usize;
        /// Returns the elements at these indices, each of which must be below `count`.
        fn pick(&self, indices: &[usize]) -> Self;
    }

    /// A container that owns its elements.
    pub trait Owned: Parts {
        /// Appends the elements of `other`, but not their conditions.
        fn join(&mut self, other: Self);
        /// Returns the conditions, for changes in place.
        fn vectors(&mut self) -> &mut Option<Conditions>;
    }
}

/// A batch of elements from which elements can be selected and sampled. [`Trajectories`](super::Trajectories)
/// and [`Walks`](super::Walks) can also be appended to each other. [`Transitions`](super::Transitions) and
/// [`StatesContainer`](super::StatesContainer) are views of trajectories, so nothing can be appended to them.
///
/// ```
/// use gfn::{policy::UniformPolicy, rollout::{Container, Sampler}, examples::Chain, Rng};
/// let (env, mut rng) = (Chain::new(4), Rng::seeded(0));
/// let trajectories = Sampler::new(&env, &UniformPolicy).forward(8, &mut rng)?;
/// let mut some = trajectories.select(2..5)?;
/// some.extend([trajectories.select([7])?, trajectories.select([0, 0])?])?;
/// assert_eq!(some.len(), 6);
/// assert_eq!(trajectories.sample(3, &mut rng)?.len(), 3);
/// assert!(trajectories.sample(9, &mut rng).is_err());
/// # Ok::<(), gfn::Error>(())
/// ```
pub trait Container: parts::Parts {
    /// Returns the elements at these indices, in this order. An index may occur several times. `indices` may
    /// be a range, a list or a filtered iterator.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for an index that isn't below the number of elements.
    fn select(&self, indices: impl IntoIterator<Item = usize>) -> Result<Self> {
        let len = self.count();
        let below = |index| if index < len { Ok(index) } else { Err(Error::out_of_range(index, len)) };
        Ok(self.pick(&indices.into_iter().map(below).collect::<Result<Vec<_>>>()?))
    }

    /// Returns `n` different elements, drawn uniformly without replacement, in random order. The time is
    /// linear in the number of elements.
    ///
    /// # Errors
    /// [`Error::Config`] if `n` is larger than the number of elements.
    fn sample(&self, n: usize, rng: &mut Rng) -> Result<Self> {
        let len = self.count();
        if n > len {
            return Err(Error::config(
                "the number of elements drawn without replacement",
                format!("{n} of {len}"),
                "at most the number of elements; draw with replacement to get more",
            ));
        }
        // The first n steps of the Fisher-Yates shuffle put a random sample of n indices at the front.
        let mut indices: Vec<usize> = (0..len).collect();
        for i in 0..n {
            indices.swap(i, i + rng.below(len - i));
        }
        Ok(self.pick(&indices[..n]))
    }

    /// Returns `n` elements, drawn uniformly with replacement.
    ///
    /// # Errors
    /// [`Error::Config`] if the container is empty and `n` isn't 0.
    fn sample_with_replacement(&self, n: usize, rng: &mut Rng) -> Result<Self> {
        let len = self.count();
        if len == 0 && n > 0 {
            let got = format!("{n} of an empty container");
            return Err(Error::config(
                "the number of elements drawn",
                got,
                "0, or a container that isn't empty",
            ));
        }
        Ok(self.pick(&(0..n).map(|_| rng.below(len)).collect::<Vec<_>>()))
    }

    /// Appends the elements of another container. Recorded log-rewards are kept only if both containers have
    /// them.
    ///
    /// # Errors
    /// [`Error::Missing`] if only one of the containers has conditions; [`Error::Shape`] if the conditions
    /// have different widths. If it fails, nothing is appended.
    fn append(&mut self, mut other: Self) -> Result<()>
    where
        Self: parts::Owned,
    {
        let n = self.count();
        let n_other = other.count();
        let added = other.vectors().take();
        let joined = Conditions::join((self.vectors().as_ref(), n), (added.as_ref(), n_other))?;
        self.join(other);
        *self.vectors() = joined;
        Ok(())
    }

    /// Appends the elements of other containers, one container after another.
    ///
    /// # Errors
    /// The errors of [`append`](Self::append). If a container can't be appended, the containers before it
    /// stay appended.
    fn extend(&mut self, others: impl IntoIterator<Item = Self>) -> Result<()>
    where
        Self: parts::Owned,
    {
        others.into_iter().try_for_each(|other| self.append(other))
    }

    /// Sets a condition vector for each element, `[n, C]`, and replaces earlier conditions.
    ///
    /// # Errors
    /// [`Error::Shape`] unless the tensor is `[n, C]`, where n is the number of elements.
    fn with_conditions(mut self, conditions: Tensor) -> Result<Self>
    where
        Self: parts::Owned,
    {
        *self.vectors() = Some(Conditions::checked(conditions, self.count())?);
        Ok(self)
    }

    /// Moves the conditions to a device. The conditions are the only tensor of a container; states and
    /// actions always stay on the host.
    ///
    /// # Errors
    /// [`Error::Torch`] if the device can't be used.
    fn to_device(mut self, device: Device) -> Result<Self>
    where
        Self: parts::Owned,
    {
        if let Some(conditions) = self.vectors() {
            *conditions = conditions.to_device(device)?;
        }
        Ok(self)
    }
}

impl<C: parts::Parts> Container for C {}

/// Returns the values at the indices `rows`.
pub(super) fn pick<T: Copy>(values: &[T], rows: &[usize]) -> Vec<T> {
    rows.iter().map(|&row| values[row]).collect()
}
