use gfn::Rng;

use crate::hypergrid::HyperGrid;

/// A number in `[0, 1)` for each point, as good as random but always the same: two rounds of the mixing function of SplitMix64
/// over the point's key, with keys of the generator's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PointHash {
    keys: [u64; 2],
}

impl PointHash {
    pub(super) fn drawn(rng: &mut Rng) -> Self {
        let mut bits = || rng.below(1 << 32) as u64;
        Self { keys: [bits() << 32 | bits(), bits() << 32 | bits()] }
    }

    pub(super) fn uniform(&self, grid: &HyperGrid, point: &[u16]) -> f64 {
        let bits = Rng::mix64(Rng::mix64(grid.index(point) ^ self.keys[0]).wrapping_add(self.keys[1]));
        (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean, variance and correlation of neighbours within five standard errors of the uniform distribution's.
    #[test]
    fn looks_uniform_and_neighbours_are_unrelated() {
        let grid = HyperGrid::new(2, 256).unwrap();
        let hash = PointHash::drawn(&mut Rng::seeded(3));
        let n = f64::from(1 << 16);
        let values: Vec<f64> =
            (0..=255).flat_map(|x| (0..=255).map(move |y| [x, y])).map(|p| hash.uniform(&grid, &p) - 0.5).collect();
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| v * v).sum::<f64>() / n;
        let covariance = values.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / n;
        assert!(mean.abs() < 5.0 / (12.0 * n).sqrt(), "{mean}");
        assert!((variance - 1.0 / 12.0).abs() < 5.0 / (180.0 * n).sqrt(), "{variance}");
        assert!(covariance.abs() < 5.0 / (12.0 * n.sqrt()), "{covariance}");
    }
}
