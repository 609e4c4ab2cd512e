use std::collections::BTreeMap;

use tch::Tensor;

use super::Quantity;
use crate::{Error, Result};

/// Tensors by quantity.
///
/// ```
/// use gfn::quantity::{Quantity, Values};
/// let values = Values::default().with(Quantity::LogFlow, tch::Tensor::from_slice(&[0.0, 1.0]));
/// assert_eq!(values.need(Quantity::LogFlow, "this example")?.size(), [2]);
/// let message = values.need(Quantity::LogZ, "this example").unwrap_err().to_string();
/// assert!(message.starts_with("this example needs a log Z estimator: give the policy one"));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Values(BTreeMap<Quantity, Tensor>);

impl Values {
    /// The same with one more, in place of any before it.
    #[must_use]
    pub fn with(mut self, quantity: Quantity, tensor: Tensor) -> Self {
        self.insert(quantity, tensor);
        self
    }

    /// Puts one in, in place of any before it.
    pub fn insert(&mut self, quantity: Quantity, tensor: Tensor) {
        self.0.insert(quantity, tensor);
    }

    /// What there is of a quantity.
    #[must_use]
    pub fn get(&self, quantity: Quantity) -> Option<&Tensor> {
        self.0.get(&quantity)
    }

    /// The same for an objective that can't do without.
    ///
    /// # Errors
    /// [`Error::Missing`], which names objective, quantity and what gives it.
    pub fn need(&self, quantity: Quantity, needed_by: &'static str) -> Result<&Tensor> {
        self.get(quantity).ok_or_else(|| quantity.missing(needed_by))
    }

    /// Takes one out.
    pub fn remove(&mut self, quantity: Quantity) -> Option<Tensor> {
        self.0.remove(&quantity)
    }

    /// Takes out what there must be: a flat list of `n` numbers.
    pub(crate) fn take_flat(&mut self, quantity: Quantity, n: usize, needed_by: &'static str) -> Result<Tensor> {
        flat(quantity, self.remove(quantity).ok_or_else(|| quantity.missing(needed_by))?, n)
    }

    /// All quantities with their tensors.
    pub fn iter(&self) -> impl Iterator<Item = (Quantity, &Tensor)> {
        self.0.iter().map(|(&quantity, tensor)| (quantity, tensor))
    }
}

impl FromIterator<(Quantity, Tensor)> for Values {
    fn from_iter<I: IntoIterator<Item = (Quantity, Tensor)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl IntoIterator for Values {
    type Item = (Quantity, Tensor);
    type IntoIter = std::collections::btree_map::IntoIter<Quantity, Tensor>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// What must be a flat list: a column would be broadcast against others without a word.
pub(crate) fn flat(quantity: Quantity, tensor: Tensor, n: usize) -> Result<Tensor> {
    match tensor.size()[..] == [n as i64] {
        true => Ok(tensor),
        false => Err(Error::shape(
            format!("{quantity}, as it was given,"),
            vec![n as i64],
            tensor.size(),
            "give one number for each in a flat list `[n]`; a column `[n, 1]` is made one by `squeeze_dim(-1)`",
        )),
    }
}
