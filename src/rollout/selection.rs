use std::ops::{Range, RangeFrom, RangeFull, RangeTo};

use crate::{Error, Result, Rng};

/// A selection of elements of a container: one, a range, a list (in its order, with repetitions), or a mask.
///
/// Everything that a container's [`select`](super::Container::select) accepts converts into it.
///
/// ```
/// use gfn::rollout::Selection;
/// assert_eq!(Selection::from(2).indices(5)?, [2]);
/// assert_eq!(Selection::from(3..).indices(5)?, [3, 4]);
/// assert_eq!(Selection::from(&[4, 0, 4]).indices(5)?, [4, 0, 4]);
/// assert_eq!(Selection::from(&[true, false, true]).indices(3)?, [0, 2]);
/// assert_eq!(
///     Selection::from(7).indices(5).unwrap_err().to_string(),
///     "index 7 is out of range for the 5 elements of a container: give indices below 5"
/// );
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selection<'a> {
    /// One element.
    One(usize),
    /// The elements from `start` up to `end`, or up to the last one.
    Range {
        /// The first index.
        start: usize,
        /// The index after the last; `None` for the container's length.
        end: Option<usize>,
    },
    /// The elements at these indices.
    List(&'a [usize]),
    /// The elements whose entry is true; one entry per element.
    Mask(&'a [bool]),
}

impl Selection<'_> {
    /// The indices into a container of `len` elements.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for an index that isn't below `len`, and for a range that ends beyond it or before it
    /// starts; [`Error::Shape`] for a mask of another length.
    pub fn indices(&self, len: usize) -> Result<Vec<usize>> {
        let below = |index: usize, limit: usize| match index < limit {
            true => Ok(()),
            false => Err(Error::out_of_range(index, len)),
        };
        match *self {
            Self::One(index) => below(index, len).map(|()| vec![index]),
            Self::Range { start, end } => {
                let end = end.unwrap_or(len);
                below(end, len.saturating_add(1))?;
                below(start, end.saturating_add(1))?;
                Ok((start..end).collect())
            }
            Self::List(list) => {
                list.iter().try_for_each(|&index| below(index, len))?;
                Ok(list.to_vec())
            }
            Self::Mask(mask) if mask.len() == len => Ok((0..len).filter(|&i| mask[i]).collect()),
            Self::Mask(mask) => Err(Error::shape(
                "the mask of a container",
                [len as i64],
                [mask.len() as i64],
                "give one entry per element",
            )),
        }
    }
}

impl From<usize> for Selection<'_> {
    fn from(index: usize) -> Self {
        Self::One(index)
    }
}

impl From<Range<usize>> for Selection<'_> {
    fn from(range: Range<usize>) -> Self {
        Self::Range { start: range.start, end: Some(range.end) }
    }
}

impl From<RangeFrom<usize>> for Selection<'_> {
    fn from(range: RangeFrom<usize>) -> Self {
        Self::Range { start: range.start, end: None }
    }
}

impl From<RangeTo<usize>> for Selection<'_> {
    fn from(range: RangeTo<usize>) -> Self {
        Self::Range { start: 0, end: Some(range.end) }
    }
}

impl From<RangeFull> for Selection<'_> {
    fn from(_: RangeFull) -> Self {
        Self::Range { start: 0, end: None }
    }
}

impl<'a> From<&'a [usize]> for Selection<'a> {
    fn from(list: &'a [usize]) -> Self {
        Self::List(list)
    }
}

impl<'a> From<&'a Vec<usize>> for Selection<'a> {
    fn from(list: &'a Vec<usize>) -> Self {
        Self::List(list)
    }
}

impl<'a, const N: usize> From<&'a [usize; N]> for Selection<'a> {
    fn from(list: &'a [usize; N]) -> Self {
        Self::List(list)
    }
}

impl<'a> From<&'a [bool]> for Selection<'a> {
    fn from(mask: &'a [bool]) -> Self {
        Self::Mask(mask)
    }
}

impl<'a> From<&'a Vec<bool>> for Selection<'a> {
    fn from(mask: &'a Vec<bool>) -> Self {
        Self::Mask(mask)
    }
}

impl<'a, const N: usize> From<&'a [bool; N]> for Selection<'a> {
    fn from(mask: &'a [bool; N]) -> Self {
        Self::Mask(mask)
    }
}

/// `n` different indices below `len`, in the order drawn; every ordered choice is equally likely.
pub(super) fn without_replacement(n: usize, len: usize, rng: &mut Rng) -> Result<Vec<usize>> {
    if n > len {
        return Err(Error::config(
            "the number of elements drawn without replacement",
            format!("{n} of {len}"),
            "at most as many as there are; draw with replacement for more",
        ));
    }
    // The first n steps of the Fisher-Yates shuffle.
    let mut indices: Vec<usize> = (0..len).collect();
    for i in 0..n {
        indices.swap(i, i + rng.below(len - i));
    }
    indices.truncate(n);
    Ok(indices)
}

/// `n` indices below `len`, each uniform and independent of the others.
pub(super) fn with_replacement(n: usize, len: usize, rng: &mut Rng) -> Result<Vec<usize>> {
    if len == 0 && n > 0 {
        return Err(Error::config(
            "the number of elements drawn",
            format!("{n} of an empty container"),
            "0, or a container that isn't empty",
        ));
    }
    Ok((0..n).map(|_| rng.below(len)).collect())
}
