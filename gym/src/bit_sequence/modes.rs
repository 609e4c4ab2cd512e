//! Modes that consist of motifs (short sequences of bits), and test sets of sequences near modes.

use std::collections::HashSet;

use gfn::{Error, Result, Rng};

/// The five motifs of 8 bits from which the modes of Malkin et al. (2022) are built: 00000000, 11111111,
/// 11110000, 00001111, 00111100.
#[must_use]
pub fn standard_motifs() -> Vec<Vec<bool>> {
    let motifs = [0b0000_0000u8, 0b1111_1111, 0b1111_0000, 0b0000_1111, 0b0011_1100];
    motifs.iter().map(|motif| (0..8).rev().map(|place| motif >> place & 1 == 1).collect()).collect()
}

/// Returns `n_modes` distinct sequences of `seq_size` bits, each a concatenation of motifs (short sequences
/// of bits) that are drawn uniformly.
///
/// Equal states of `rng` give equal modes. The modes differ from torchgfn's, because torchgfn uses another
/// random number generator.
///
/// ```
/// use gfn::Rng;
/// use gfn_gym::bit_sequence::{motif_tilings, standard_motifs};
/// let modes = motif_tilings(120, 60, &standard_motifs(), &mut Rng::seeded(0))?;
/// assert!(modes.len() == 60 && modes.iter().all(|mode| mode.len() == 120));
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Config`] unless the motifs are distinct and of one width that divides `seq_size`, and unless the
/// motifs have at least `n_modes` concatenations of this length.
pub fn motif_tilings(
    seq_size: usize,
    n_modes: usize,
    motifs: &[Vec<bool>],
    rng: &mut Rng,
) -> Result<Vec<Vec<bool>>> {
    let width = motifs.first().map_or(0, Vec::len);
    let distinct: HashSet<&Vec<bool>> = motifs.iter().collect();
    if width == 0 || distinct.len() < motifs.len() || motifs.iter().any(|motif| motif.len() != width) {
        return Err(Error::config(
            "the motifs",
            format!("{} motifs, the first of {width} bits", motifs.len()),
            "different motifs of the same width, at least 1 bit",
        ));
    }
    if seq_size == 0 || !seq_size.is_multiple_of(width) {
        return Err(Error::config(
            "seq_size",
            format!("{seq_size} bits for motifs of {width} bits"),
            "a positive multiple of the motifs' width",
        ));
    }
    let n_tiles = seq_size / width;
    let possible = u32::try_from(n_tiles).ok().and_then(|n| motifs.len().checked_pow(n));
    if n_modes == 0 || possible.is_some_and(|possible| n_modes > possible) {
        return Err(Error::config(
            "n_modes",
            format!("{n_modes} modes, each a row of {n_tiles} out of {} motifs", motifs.len()),
            "at least 1 mode, and at most the number of different rows of motifs",
        ));
    }
    let mut known = HashSet::new();
    let mut modes = Vec::with_capacity(n_modes);
    while modes.len() < n_modes {
        let tiles: Vec<usize> = (0..n_tiles).map(|_| rng.below(motifs.len())).collect();
        if known.insert(tiles.clone()) {
            modes.push(tiles.into_iter().flat_map(|tile| motifs[tile].iter().copied()).collect());
        }
    }
    Ok(modes)
}

/// Builds a test set of `k` copies of each mode. In each copy a random subset of the bits is flipped. The
/// size of the subset is uniform from 0 to the number of bits minus 1, as in torchgfn's `create_test_set`.
///
/// All copies of the first mode come first, then those of the next mode. Use the set to compute the
/// correlation of log p(x) and log R(x).
#[must_use]
pub fn noisy_modes(modes: &[Vec<bool>], k: usize, rng: &mut Rng) -> Vec<Vec<bool>> {
    let mut out = Vec::with_capacity(modes.len() * k);
    for mode in modes.iter().filter(|mode| !mode.is_empty()) {
        for _ in 0..k {
            let mut bits = mode.clone();
            let mut places: Vec<usize> = (0..bits.len()).collect();
            // A partial shuffle moves a random subset of the positions to the front of `places`.
            for i in 0..rng.below(bits.len()) {
                places.swap(i, i + rng.below(bits.len() - i));
                bits[places[i]] = !bits[places[i]];
            }
            out.push(bits);
        }
    }
    out
}
