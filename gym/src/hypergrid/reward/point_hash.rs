use gfn::Rng;

/// A hash that gives a pseudo-random number in `[0, 1)` for each point's key. The hash has two parameters,
/// `keys`, which are drawn from a generator, so that the same seed gives the same numbers. The hash consists
/// of two rounds of the mixing function of SplitMix64.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PointHash {
    keys: [u64; 2],
}

impl PointHash {
    pub(super) fn random(rng: &mut Rng) -> Self {
        let mut bits = || rng.below(1 << 32) as u64;
        Self { keys: [bits() << 32 | bits(), bits() << 32 | bits()] }
    }

    pub(super) fn uniform(&self, key: u64) -> f64 {
        let bits = Rng::mix64(Rng::mix64(key ^ self.keys[0]).wrapping_add(self.keys[1]));
        (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}
