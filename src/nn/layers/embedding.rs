//! A table of learned vectors.

use tch::Tensor;

use crate::nn::Scope;

/// A table of one learned vector per class: parameter `weight`, `[classes, width]`, initially standard
/// normal.
#[derive(Debug)]
pub struct Embedding {
    weight: Tensor,
}

impl Embedding {
    /// A table for classes `0..classes`.
    pub fn new(scope: &mut Scope<'_>, classes: i64, width: i64) -> Self {
        Self { weight: scope.normal("weight", &[classes, width], 1.0) }
    }

    /// The vectors of i64 classes: `[rows]` to `[rows, width]`. A class outside the table panics in libtorch.
    pub fn forward(&self, classes: &Tensor) -> Tensor {
        Tensor::embedding(&self.weight, classes, -1, false, false)
    }

    /// The table, `[classes, width]`.
    pub fn weight(&self) -> &Tensor {
        &self.weight
    }
}
