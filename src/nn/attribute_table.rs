//! Learned vectors for the attributes of nodes or edges.

use tch::Tensor;

use super::Scope;

/// A vector for each value of each attribute, unset included.
#[derive(Debug)]
pub(crate) struct AttributeTable {
    /// Attribute by attribute, `[values, D]`.
    pub(crate) vectors: Tensor,
    /// Where each attribute's values start.
    pub(crate) starts: Vec<i64>,
}

impl AttributeTable {
    /// A table for attributes with so many values each beside unset; none without attributes.
    pub(crate) fn new(scope: &mut Scope<'_>, sizes: &[u8], width: i64) -> Option<Self> {
        let mut starts = Vec::with_capacity(sizes.len());
        let mut values = 0;
        for &n in sizes {
            starts.push(values);
            values += i64::from(n) + 1;
        }
        (values > 0).then(|| Self { vectors: scope.normal("attribute", &[values, width], 1.0), starts })
    }

    /// The sum of the vectors of each row's values, `[R, K]` to `[R, D]`.
    pub(crate) fn forward(&self, values: &Tensor) -> Tensor {
        let (k, width) = (self.starts.len() as i64, self.vectors.size()[1]);
        let entries = values + Tensor::from_slice(&self.starts).to_device(values.device());
        let each = self.vectors.index_select(0, &entries.view(-1)).view([-1, k, width]);
        each.sum_dim_intlist(1, false, self.vectors.kind())
    }
}
