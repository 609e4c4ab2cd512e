use gfn::Rng;
use tch::{Kind, Tensor};

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

    /// Returns the parameters of several hashes as a tensor, `[2, n_hashes]` (i64).
    pub(super) fn keys<'a>(hashes: impl Iterator<Item = &'a Self>) -> Tensor {
        let keys: Vec<i64> = hashes.flat_map(|hash| hash.keys.map(|key| key as i64)).collect();
        Tensor::from_slice(&keys).view([-1, 2]).transpose(0, 1).contiguous()
    }

    /// Returns the number of each key by each of these hashes, `[n, n_hashes]` (f64). `hashes` are the
    /// [`keys`](Self::keys) of the hashes, and `keys` is `[n]` (i64).
    pub(super) fn uniform_on_tensors(hashes: &Tensor, keys: &Tensor) -> Tensor {
        let mixed = mix(&keys.unsqueeze(1).bitwise_xor_tensor(&hashes.get(0)));
        let bits = mix(&(mixed + hashes.get(1)));
        shift_right(&bits, 11).to_kind(Kind::Double) * (1.0 / (1u64 << 53) as f64)
    }
}

/// Returns [`Rng::mix64`] of each number.
fn mix(bits: &Tensor) -> Tensor {
    let mixed = bits.bitwise_xor_tensor(&shift_right(bits, 30)) * 0xbf58_476d_1ce4_e5b9_u64 as i64;
    let mixed = mixed.bitwise_xor_tensor(&shift_right(&mixed, 27)) * 0x94d0_49bb_1331_11eb_u64 as i64;
    mixed.bitwise_xor_tensor(&shift_right(&mixed, 31))
}

/// Shifts the bits of each number (i64) to the right, and fills with zeros.
fn shift_right(bits: &Tensor, n: u32) -> Tensor {
    bits.bitwise_right_shift_tensor_scalar(i64::from(n)).bitwise_and((u64::MAX >> n) as i64)
}
