//! The number of automorphisms of a graph. The number is stored exactly if it fits into `u64`, and always as
//! a logarithm.

/// The order of an automorphism group, |Aut|.
#[derive(Clone, Copy)]
pub(in crate::graph) struct GroupOrder {
    /// The exact order; `None` if it doesn't fit into `u64`.
    pub(in crate::graph) exact: Option<u64>,
    /// The natural logarithm of the order, computed as a sum of logarithms of factors.
    pub(super) log: f64,
}

impl GroupOrder {
    /// The order of the automorphism group of a graph without symmetry.
    pub(in crate::graph) const ONE: Self = Self { exact: Some(1), log: 0.0 };

    /// Returns the product of two orders.
    pub(in crate::graph) fn times(self, other: Self) -> Self {
        let product = |exact: u64| other.exact.and_then(|other| exact.checked_mul(other));
        Self { exact: self.exact.and_then(product), log: self.log + other.log }
    }

    /// Returns this order times `n!`.
    pub(in crate::graph) fn times_factorial(self, n: usize) -> Self {
        (2..=n as u64).fold(self, |order, k| order.times(Self { exact: Some(k), log: (k as f64).ln() }))
    }

    /// Returns the natural logarithm of the order, computed from the exact order if it is known.
    pub(in crate::graph) fn log(self) -> f64 {
        self.exact.map_or(self.log, |order| (order as f64).ln())
    }
}
