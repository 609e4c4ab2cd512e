//! Learned vectors for the classes and attributes of nodes or edges.

use tch::Tensor;

use crate::graph::Attributes;
use crate::nn::Scope;
use crate::nn::host::floats;

/// A learned vector for each value of each attribute, unset included.
#[derive(Debug)]
pub(crate) struct AttributeTable {
    /// The vectors, attribute by attribute, `[values, D]`.
    pub(crate) vectors: Tensor,
    /// The index of each attribute's first vector.
    pub(crate) starts: Vec<i64>,
}

impl AttributeTable {
    /// A table for attributes with the given numbers of values, each with unset besides; `None` without attributes.
    pub(crate) fn new(scope: &mut Scope<'_>, sizes: &[u8], width: i64) -> Option<Self> {
        let mut starts = Vec::with_capacity(sizes.len());
        let mut values = 0;
        for &n in sizes {
            starts.push(values);
            values += i64::from(n) + 1;
        }
        (values > 0).then(|| Self { vectors: scope.normal("attribute", &[values, width], 1.0), starts })
    }

    /// The sum of the vectors of each row's attribute values, `[R, K]` to `[R, D]`.
    pub(crate) fn forward(&self, values: &Tensor) -> Tensor {
        let (k, width) = (self.starts.len() as i64, self.vectors.size()[1]);
        let entries = values + Tensor::from_slice(&self.starts).to_device(values.device());
        let each = self.vectors.index_select(0, &entries.view(-1)).view([-1, k, width]);
        each.sum_dim_intlist(1, false, self.vectors.kind())
    }
}

/// A copy of the vectors of classes and attributes on the host.
#[derive(Debug)]
pub(crate) struct HostKinds {
    pub(crate) width: usize,
    classes: Vec<f32>,
    /// Vectors of attributes, and the index of each attribute's first.
    attributes: Option<(Vec<f32>, Vec<i64>)>,
}

impl HostKinds {
    /// A copy of the vectors of classes, `[classes, D]`, and of those of attributes.
    pub(crate) fn new(classes: &Tensor, attributes: Option<&AttributeTable>) -> Self {
        Self {
            width: classes.size()[1] as usize,
            classes: floats(classes),
            attributes: attributes.map(|table| (floats(&table.vectors), table.starts.clone())),
        }
    }

    /// Adds the vectors of a class and of attributes to a row.
    pub(crate) fn add(&self, class: u16, attributes: &Attributes, row: &mut [f32]) {
        add_entry(&self.classes, usize::from(class), row);
        if let Some((table, starts)) = &self.attributes {
            let values = attributes.values().iter();
            values.zip(starts).for_each(|(&value, &start)| add_entry(table, start as usize + usize::from(value), row));
        }
    }
}

/// Adds an entry of a table to a row of its width.
pub(crate) fn add_entry(table: &[f32], entry: usize, row: &mut [f32]) {
    let values = &table[entry * row.len()..][..row.len()];
    row.iter_mut().zip(values).for_each(|(x, value)| *x += value);
}
