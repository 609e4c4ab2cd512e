use gfn::{Error, Result};

use super::Fingerprint;
use crate::score::check_all;

/// Computes the internal diversity of a set of molecules: 1 minus the mean Tanimoto similarity of its
/// pairs. The diversity is 0 for copies of one molecule, and near 1 for molecules that have nothing in
/// common.
///
/// Pairs of a molecule with itself don't count. (MOSES counts these pairs, which multiplies the diversity
/// of n molecules by 1 - 1 / n.)
///
/// ```
/// use gfn_molecules::{Fingerprint, Molecule, internal_diversity};
/// let methane = Fingerprint::from_molecule(&Molecule::from_smiles("C")?);
/// let water = Fingerprint::from_molecule(&Molecule::from_smiles("O")?);
/// assert!((internal_diversity(&[methane.clone(), water, methane])? - 2.0 / 3.0).abs() < 1e-12);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Config`] for fewer than two fingerprints.
pub fn internal_diversity(fingerprints: &[Fingerprint]) -> Result<f64> {
    let n = fingerprints.len();
    if n < 2 {
        let setting = "the number of fingerprints to compare with each other";
        return Err(Error::config(setting, n, "at least two"));
    }
    let of = |(i, a): (usize, &Fingerprint)| fingerprints[i + 1..].iter().map(|b| a.tanimoto(b)).sum::<f64>();
    let total: f64 = fingerprints.iter().enumerate().map(of).sum();
    Ok(1.0 - total / (n * (n - 1) / 2) as f64)
}

/// Returns an error if a score is NaN, because molecules can't be ranked by NaN.
pub(crate) fn check_ranked(what: &'static str, scores: &[f64]) -> Result<()> {
    check_all(
        what,
        scores,
        |score| !score.is_nan(),
        "give numbers that aren't NaN, because molecules are ranked by them",
    )
}

/// Returns the indices of the best `k` molecules that differ from each other: the similarity of two
/// selected molecules is below `similarity`. The selection goes from the best molecule down, and the best
/// molecule is first. The list is shorter than `k` if not enough molecules qualify. If two scores are
/// equal, the molecule with the smaller index ranks higher.
///
/// ```
/// use gfn_molecules::{Fingerprint, Molecule, diverse_top_k};
/// let of =
///     |smiles: &str| Molecule::from_smiles(smiles).map(|molecule| Fingerprint::from_molecule(&molecule));
/// let fingerprints = [of("CCCCCO")?, of("CCCCCCO")?, of("c1ccncc1")?];
/// assert_eq!(diverse_top_k(&[1.0, 2.0, 0.5], &fingerprints, 2, 0.7)?, [1, 2]);
/// assert_eq!(diverse_top_k(&[1.0, 2.0, 0.5], &fingerprints, 2, 1.0)?, [1, 0]);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Shape`] unless each score has a fingerprint; [`Error::NonFinite`] for a score that is NaN;
/// [`Error::Config`] unless the similarity is above 0 and at most 1.
pub fn diverse_top_k(
    scores: &[f64],
    fingerprints: &[Fingerprint],
    k: usize,
    similarity: f64,
) -> Result<Vec<usize>> {
    let n = scores.len() as i64;
    let got = fingerprints.len() as i64;
    if n != got {
        return Err(Error::shape(
            "fingerprints of scored molecules",
            [n],
            [got],
            "give one fingerprint for each score",
        ));
    }
    check_ranked("the score of a molecule", scores)?;
    if !(similarity > 0.0 && similarity <= 1.0) {
        let setting = "the similarity from which on two molecules count as one";
        return Err(Error::config(setting, similarity, "above 0, and at most 1"));
    }
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&i, &j| scores[j].total_cmp(&scores[i]));
    let mut taken: Vec<usize> = Vec::new();
    for i in order {
        if taken.len() == k {
            break;
        }
        if taken.iter().all(|&j| fingerprints[i].tanimoto(&fingerprints[j]) < similarity) {
            taken.push(i);
        }
    }
    Ok(taken)
}

/// Returns the number of modes among molecules with a score of at least `least`. The molecules are visited
/// from the best to the worst. A molecule is a mode if its similarity to all previous modes is below
/// `similarity` (0.7 in Bengio et al. 2021).
///
/// ```
/// use gfn_molecules::{Fingerprint, Molecule, n_modes};
/// let of =
///     |smiles: &str| Molecule::from_smiles(smiles).map(|molecule| Fingerprint::from_molecule(&molecule));
/// let fingerprints = [of("CCCCCO")?, of("CCCCCCO")?, of("c1ccncc1")?];
/// assert_eq!(n_modes(&[1.0, 2.0, 0.5], &fingerprints, 0.5, 0.7)?, 2);
/// assert_eq!(n_modes(&[1.0, 2.0, 0.5], &fingerprints, 1.0, 0.7)?, 1);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// Errors of [`diverse_top_k`].
pub fn n_modes(scores: &[f64], fingerprints: &[Fingerprint], least: f64, similarity: f64) -> Result<usize> {
    // Molecules with scores below `least` are visited last, so they don't influence which better molecules
    // are modes.
    let taken = diverse_top_k(scores, fingerprints, scores.len(), similarity)?;
    Ok(taken.into_iter().filter(|&i| scores[i] >= least).count())
}
