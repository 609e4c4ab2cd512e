//! A table of learned vectors.

use tch::Tensor;

use crate::nn::Scope;

/// A table of one learned vector per class. Its parameter is `weight`, `[classes, width]`, initially standard
/// normal.
#[derive(Debug)]
pub struct Embedding {
    weight: Tensor,
}

impl Embedding {
    /// Builds a table for classes `0..classes`.
    pub fn new(scope: &mut Scope<'_>, classes: i64, width: i64) -> Self {
        Self { weight: scope.normal("weight", &[classes, width], 1.0) }
    }

    /// Returns the vectors of classes (i64): `[rows]` to `[rows, width]`.
    ///
    /// # Panics
    /// If a class isn't in the table (libtorch).
    pub fn forward(&self, classes: &Tensor) -> Tensor {
        Tensor::embedding(&self.weight, classes, -1, false, false)
    }

    /// The table, `[classes, width]`.
    pub fn weight(&self) -> &Tensor {
        &self.weight
    }
}
