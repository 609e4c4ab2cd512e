//! How far figures of several seeds are spread.

use serde::Serialize;

/// The middle and the ends of some numbers.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// How many there are.
    pub(crate) n: usize,
}

impl Spread {
    /// Of the numbers that are finite; `None` if none is.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (n, (&min, &max)) = (values.len(), values.first().zip(values.last())?);
        // Of an even number, half-way between the two in the middle.
        Some(Self { median: f64::midpoint(values[(n - 1) / 2], values[n / 2]), min, max, n })
    }
}
