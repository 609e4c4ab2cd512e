//! The embedding layer, a table of learned vectors.

use tch::Tensor;

use crate::nn::Scope;

/// A table with one learned vector per class. Its parameter is `weight`, `[classes, width]`, whose initial
/// values are standard normal.
#[derive(Debug)]
pub struct Embedding {
    weight: Tensor,
}

impl Embedding {
    /// Builds a table for classes `0..classes`.
    pub fn new(scope: &mut Scope<'_>, classes: i64, width: i64) -> Self {
        Self { weight: scope.normal("weight", &[classes, width], 1.0) }
    }

    /// Returns the vector of each class in `classes` (i64): `[rows]` to `[rows, width]`.
    ///
    /// # Panics
    /// If a class isn't in the table (libtorch panics).
    pub fn forward(&self, classes: &Tensor) -> Tensor {
        Tensor::embedding(&self.weight, classes, -1, false, false)
    }

    /// The table of vectors, `[classes, width]`.
    pub fn weight(&self) -> &Tensor {
        &self.weight
    }
}
