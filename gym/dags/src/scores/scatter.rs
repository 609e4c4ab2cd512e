//! Determinants of submatrices of a symmetric matrix.

use gfn::{Error, Result};
use smallvec::SmallVec;

use super::NodeSet;

/// The largest size of a submatrix for which the factorisation is stored on the stack.
const SMALL: usize = 12;

/// A symmetric positive definite matrix, such as a scatter matrix.
#[derive(Clone, Debug)]
pub(super) struct Scatter {
    pub(super) n: usize,
    pub(super) values: Vec<f64>,
}

impl Scatter {
    /// Computes the mean of some rows of data and their scatter matrix. An entry of the scatter matrix is the
    /// sum, over the rows, of the product of two variables' deviations from their means.
    ///
    /// # Errors
    /// [`Error::Config`] if a sum overflows.
    pub(super) fn from_rows<'a>(
        n: usize,
        rows: impl ExactSizeIterator<Item = &'a [f64]> + Clone,
    ) -> Result<(Self, Vec<f64>)> {
        let mut mean = vec![0.0; n];
        let count = rows.len().max(1) as f64;
        for row in rows.clone() {
            for (mean, x) in mean.iter_mut().zip(row) {
                *mean += x / count;
            }
        }
        let mut values = vec![0.0; n * n];
        let mut deviation = vec![0.0; n];
        for row in rows {
            for ((d, x), mean) in deviation.iter_mut().zip(row).zip(&mean) {
                *d = x - mean;
            }
            for i in 0..n {
                for j in 0..=i {
                    values[i * n + j] += deviation[i] * deviation[j];
                }
            }
        }
        if values.iter().chain(&mean).any(|value| !value.is_finite()) {
            let expected = "values whose squares are finite: standardise the data";
            return Err(Error::config(
                "observations",
                "too large: their squares are beyond the largest number",
                expected,
            ));
        }
        let mut out = Self { n, values };
        out.mirror();
        Ok((out, mean))
    }

    fn mirror(&mut self) {
        for i in 0..self.n {
            for j in 0..i {
                self.values[j * self.n + i] = self.values[i * self.n + j];
            }
        }
    }

    /// Returns two numbers for the submatrix of this matrix M at the indices `part`. Let P be `part` without
    /// its last index. The first number is log |M[P, P]|. The second is the Schur complement of the last
    /// index, which is |M[part, part]| / |M[P, P]|.
    ///
    /// The method is Cholesky's. If the matrix isn't positive definite, the results are NaN or the Schur
    /// complement isn't positive.
    pub(super) fn log_det_and_schur(&self, part: &[usize]) -> (f64, f64) {
        let m = part.len();
        if m <= SMALL {
            self.factorise(part, &mut [0.0; SMALL * SMALL])
        } else {
            self.factorise(part, &mut vec![0.0; m * m])
        }
    }

    fn factorise(&self, part: &[usize], lower: &mut [f64]) -> (f64, f64) {
        let m = part.len();
        let mut log_det = 0.0;
        for i in 0..m {
            for j in 0..=i {
                let row_i = &lower[i * m..i * m + j];
                let row_j = &lower[j * m..j * m + j];
                let products: f64 = row_i.iter().zip(row_j).map(|(a, b)| a * b).sum();
                let rest = self.values[part[i] * self.n + part[j]] - products;
                if i != j {
                    lower[i * m + j] = rest / lower[j * m + j];
                } else if i + 1 == m {
                    return (log_det, rest);
                } else {
                    log_det += rest.ln();
                    lower[i * m + i] = rest.sqrt();
                }
            }
        }
        (log_det, f64::NAN)
    }
}

/// Returns the parents of a node, followed by the node itself.
pub(super) fn family(node: usize, parents: &NodeSet) -> SmallVec<[usize; SMALL]> {
    parents.iter().chain([node]).collect()
}
