use tch::{Device, Tensor};

use crate::tensor::select_rows;
use crate::{Error, Result};

/// The condition vectors of a batch of states or trajectories, `[n, C]`, one vector for each element of the
/// batch. The policy, log Z and the reward depend on these vectors.
#[derive(Debug)]
pub struct Conditions(pub Tensor);

impl Clone for Conditions {
    fn clone(&self) -> Self {
        Self(self.0.shallow_clone())
    }
}

impl Conditions {
    /// Creates the condition vectors of a batch of `n` states or trajectories.
    ///
    /// # Errors
    /// [`Error::Shape`] for a tensor that isn't `[n, C]`.
    pub(crate) fn checked(tensor: Tensor, n: usize) -> Result<Self> {
        let size = tensor.size();
        match size[..] {
            [rows, _] if rows == n as i64 => Ok(Self(tensor)),
            _ => Err(Error::shape(
                "conditions",
                [n as i64, size.get(1).copied().unwrap_or(1)],
                size,
                "give one condition vector per element, as a tensor `[n, C]`",
            )),
        }
    }

    /// Returns the condition vectors of the states or trajectories with the indices `rows`.
    pub(crate) fn pick(&self, rows: &[usize]) -> Self {
        Self(select_rows(&self.0, rows))
    }

    /// Returns a copy of the condition vectors on a device.
    pub(crate) fn to_device(&self, device: Device) -> Result<Self> {
        Ok(Self(self.0.f_to_device(device)?))
    }

    /// Joins the condition vectors of two batches, on the device of the first batch. Each argument is a pair:
    /// a batch's condition vectors, and its number of elements. Returns `None` if neither batch has condition
    /// vectors.
    pub(crate) fn join(mine: (Option<&Self>, usize), theirs: (Option<&Self>, usize)) -> Result<Option<Self>> {
        match (mine, theirs) {
            ((None, _), (None, _)) => Ok(None),
            ((Some(some), _), (None, 0)) | ((None, 0), (Some(some), _)) => Ok(Some(some.clone())),
            ((Some(mine), _), (Some(theirs), m)) => {
                let width = mine.0.size()[1];
                if theirs.0.size()[1] != width {
                    return Err(Error::shape(
                        "conditions of appended elements",
                        [m as i64, width],
                        theirs.0.size(),
                        "give both batches conditions of the same width",
                    ));
                }
                let theirs = theirs.0.f_to_device(mine.0.device())?;
                Ok(Some(Self(Tensor::f_cat(&[&mine.0, &theirs], 0)?)))
            }
            _ => Err(Error::missing(
                "appending",
                "conditions on both batches or on neither",
                "sample both batches with conditions, or both without",
            )),
        }
    }
}
