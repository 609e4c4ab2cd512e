//! Square lattices of spins with periodic boundaries.

use gfn::tensor::log_sum_exp;

/// Lists the bonds of a lattice of `side * side` spins. A bond is a pair of neighbouring spins, the lower
/// index first, and each pair occurs once.
pub(super) fn bonds(side: usize) -> Vec<(usize, usize)> {
    let mut bonds = Vec::with_capacity(2 * side * side);
    for row in 0..side {
        for column in 0..side {
            let here = side * row + column;
            let right = side * row + (column + 1) % side;
            let below = side * ((row + 1) % side) + column;
            bonds.extend([right, below].map(|there| (here.min(there), here.max(there))));
        }
    }
    bonds.sort_unstable();
    bonds.dedup();
    bonds
}

/// Computes log Z of a lattice with a side of at least 3, in which each bond adds `strength * s_a s_b` to log
/// R.
///
/// The computation goes row by row: `Z = trace(T^side)`, with `T(s, t) = exp(strength * (b(s) + b(s, t)))`
/// for neighbouring rows s and t. Here `b(s)` sums `s_a s_b` over the bonds within row s, and `b(s, t)` over
/// the bonds between the rows. T is a matrix of size `2^side`. The product of T with a vector is computed
/// spin by spin, and in logarithms: on a frustrated lattice plain numbers would underflow for the rows of
/// spins that contribute most to Z.
pub(super) fn log_z(side: usize, strength: f64) -> f64 {
    let n = 1usize << side;
    let spins = side as f64;
    // In a ring of n spins in which k pairs of neighbours differ, the products of neighbours add up to n - 2
    // k.
    let within = |s: usize| spins - 2.0 * f64::from((s ^ (s >> 1 | (s & 1) << (side - 1))).count_ones());
    let within: Vec<f64> = (0..n).map(|s| strength * within(s)).collect();
    let from_row = |first: usize| {
        let mut log_sums = vec![f64::NEG_INFINITY; n];
        log_sums[first] = 0.0;
        for _ in 0..side {
            for (sum, within) in log_sums.iter_mut().zip(&within) {
                *sum += within;
            }
            for spin in 0..side {
                add_bond(&mut log_sums, 1 << spin, strength);
            }
        }
        log_sums[first]
    };
    log_sum_exp((0..n).map(from_row).collect::<Vec<_>>())
}

/// Adds the bond between a spin of a row and the same spin of the next row. `log_sums` has an entry for each
/// setting of a row's spins; the bits of its index are the spins. The argument `spin` is a mask with one bit
/// set. Before the call, this bit of an index is the spin of the old row. Afterwards it is the spin of the
/// next row, and the old spin has been summed over.
fn add_bond(log_sums: &mut [f64], spin: usize, strength: f64) {
    for down in (0..log_sums.len()).filter(|s| s & spin == 0) {
        let a = log_sums[down];
        let b = log_sums[down | spin];
        log_sums[down] = log_sum_exp([a + strength, b - strength]);
        log_sums[down | spin] = log_sum_exp([a - strength, b + strength]);
    }
}
