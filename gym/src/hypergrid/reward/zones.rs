use super::power;
use crate::hypergrid::HyperGrid;

/// Where a coordinate lies, by `a = |x / (height - 1) - 1/2|`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Zone {
    Inner,
    /// Beyond a threshold of the reward's own, which is below 0.3.
    Outer,
    /// Inside the outer zone: 0.3 < a < 0.4.
    Band,
}

/// The zones of all coordinates of a grid; a point lies in the lowest zone of its coordinates.
///
/// Thresholds are compared in integers: in floating point `0.3 < a` depends on rounding, and a grid of height 16 would have 9
/// modes in place of 4.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Zones {
    ndim: usize,
    of: Vec<Zone>,
}

impl Zones {
    /// The zones whose outer one is `a > twentieths / 20`.
    pub(super) fn new(grid: &HyperGrid, twentieths: u64) -> Self {
        let height = grid.height() as u64;
        Self { ndim: grid.ndim(), of: (0..height).map(|x| zone(x, height, twentieths)).collect() }
    }

    /// The zone of a point of the grid.
    pub(super) fn zone(&self, point: &[u16]) -> Zone {
        point.iter().map(|&x| self.of[usize::from(x)]).min().unwrap_or(Zone::Inner)
    }

    /// The number of points in this zone or a higher one.
    pub(super) fn n_at_least(&self, zone: Zone) -> u64 {
        power(self.of.iter().filter(|z| **z >= zone).count() as u64, self.ndim)
    }

    /// The sum over all points of a value by zone.
    pub(super) fn sum(&self, values: [f64; 3]) -> f64 {
        let [all, outer, band] = [Zone::Inner, Zone::Outer, Zone::Band].map(|zone| self.n_at_least(zone));
        values[0] * (all - outer) as f64 + values[1] * (outer - band) as f64 + values[2] * band as f64
    }
}

fn zone(x: u64, height: u64, twentieths: u64) -> Zone {
    // |2 x - top| is 2 top a, so that a > n/20 reads 10 |2 x - top| > n top.
    let top = height - 1;
    let distance = 10 * (2 * x).abs_diff(top);
    if distance > 6 * top && distance < 8 * top {
        Zone::Band
    } else if distance > twentieths * top {
        Zone::Outer
    } else {
        Zone::Inner
    }
}
