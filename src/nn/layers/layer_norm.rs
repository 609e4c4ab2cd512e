//! The layer norm.

use tch::Tensor;

use crate::nn::Scope;

/// A layer norm (Ba et al., *Layer Normalization*, 2016). The layer normalises each row to mean 0 and
/// variance 1. An affine layer norm then applies a learned scale and shift.
#[derive(Debug)]
pub struct LayerNorm {
    pub(in crate::nn) width: i64,
    /// The weight and the bias; `None` if the norm isn't affine.
    pub(in crate::nn) affine: Option<(Tensor, Tensor)>,
}

impl LayerNorm {
    /// The number that is added to the variance before its square root is taken, as in PyTorch.
    pub(in crate::nn) const EPS: f64 = 1e-5;

    /// Builds a layer norm with a learned `weight` (initially 1) and `bias` (initially 0), both `[width]`.
    pub fn new(scope: &mut Scope<'_>, width: i64) -> Self {
        let affine = (scope.constant("weight", &[width], 1.0), scope.constant("bias", &[width], 0.0));
        Self { width, affine: Some(affine) }
    }

    /// Creates a layer norm without parameters.
    pub fn plain(width: i64) -> Self {
        Self { width, affine: None }
    }

    /// Normalises each row: `[rows, width]` to `[rows, width]`.
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let (weight, bias) = self.affine.as_ref().map(|(w, b)| (w, b)).unzip();
        x.layer_norm([self.width], weight, bias, Self::EPS, true)
    }
}
