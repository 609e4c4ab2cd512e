//! Scores of molecules: functions, descriptors, external programs, networks, and combinations of these.

mod combine;
mod config;
mod descriptors;
#[cfg(feature = "descriptors")]
mod druglike;
mod external;
mod pickle;
mod property;
mod proxy;
mod reward;
mod seh;
mod shape;

pub use combine::{Product, TransformedScore};
pub use config::{Factor, FactoredScore, ScoreConfig};
#[cfg(feature = "descriptors")]
pub use druglike::{AccessibilityTable, PatternError, Patterns};
pub use external::{ExternalScorer, ScorerError};
pub use property::Property;
pub use proxy::{ProxyOutput, TorchScriptProxy};
pub use reward::{GraphReader, MoleculeReward};
pub use seh::SehProxy;
pub use shape::Shape;

use std::sync::Arc;

use gfn::{Error, Result};

use super::Molecule;

/// A score of molecules, which is returned as its natural logarithm. A reward is a score, or a product of
/// powers of scores.
///
/// A closure `Fn(&Molecule) -> f64` is a score. The closure must return 0 or more, and the logarithm of 0
/// is minus infinity.
///
/// ```
/// use gfn_molecules::{Molecule, MoleculeScore};
/// let rings = |molecule: &Molecule| molecule.n_rings() as f64;
/// let naphthalene = Molecule::from_smiles("c1ccc2ccccc2c1")?;
/// assert_eq!(rings.log_scores(&[naphthalene])?, [2f64.ln()]);
/// # Ok::<(), gfn::Error>(())
/// ```
pub trait MoleculeScore: Send + Sync {
    /// Returns the natural logarithm of the score of each molecule. The logarithm is finite, or minus
    /// infinity for a score of 0. It is never plus infinity or NaN.
    ///
    /// # Errors
    /// [`Error::NonFinite`] for a molecule whose logarithm would be plus infinity or NaN; other errors that
    /// the implementation defines.
    fn log_scores(&self, molecules: &[Molecule]) -> Result<Vec<f64>>;

    /// Raises the score to the power `exponent` (a reward exponent, or inverse temperature) by multiplying
    /// its logarithm.
    ///
    /// # Errors
    /// [`Error::Config`] unless the exponent is finite.
    fn to_the(self, exponent: f64) -> Result<TransformedScore<Self>>
    where
        Self: Sized,
    {
        TransformedScore::power(self, exponent)
    }

    /// Clamps the score to the range from `least` to `most`.
    ///
    /// # Errors
    /// [`Error::Config`] unless `0 <= least <= most` and `most` is finite and above 0.
    fn clamped(self, least: f64, most: f64) -> Result<TransformedScore<Self>>
    where
        Self: Sized,
    {
        TransformedScore::clamp(self, least, most)
    }
}

impl<F: Fn(&Molecule) -> f64 + Send + Sync> MoleculeScore for F {
    fn log_scores(&self, molecules: &[Molecule]) -> Result<Vec<f64>> {
        let scores: Vec<f64> = molecules.iter().map(self).collect();
        logs(&scores)
    }
}

impl MoleculeScore for Box<dyn MoleculeScore> {
    fn log_scores(&self, molecules: &[Molecule]) -> Result<Vec<f64>> {
        self.as_ref().log_scores(molecules)
    }
}

/// Shared scores are scores, too. An [`ExternalScorer`], for example, can be used by a reward and called
/// directly at the same time.
///
/// ```
/// use std::sync::Arc;
/// use gfn_molecules::{ExternalScorer, Molecule, MoleculeCodec, MoleculeReward, MoleculeScore};
/// fn reward_of(codec: &MoleculeCodec, scorer: &Arc<ExternalScorer>) -> MoleculeReward<Arc<ExternalScorer>> {
///     MoleculeReward::new(codec, Arc::clone(scorer))
/// }
/// let shared: Arc<dyn MoleculeScore> = Arc::new(|molecule: &Molecule| molecule.n_rings() as f64);
/// assert_eq!(shared.clone().log_scores(&[Molecule::from_smiles("C1CC1")?])?, [0.0]);
/// # Ok::<(), gfn::Error>(())
/// ```
impl<S: MoleculeScore + ?Sized> MoleculeScore for Arc<S> {
    fn log_scores(&self, molecules: &[Molecule]) -> Result<Vec<f64>> {
        self.as_ref().log_scores(molecules)
    }
}

/// Returns an error for the first number that `sound` doesn't accept. The error calls the numbers `what`.
pub(crate) fn check_all(
    what: &'static str,
    numbers: &[f64],
    sound: impl Fn(f64) -> bool,
    remedy: &'static str,
) -> Result<()> {
    match numbers.iter().position(|number| !sound(*number)) {
        None => Ok(()),
        Some(row) => Err(Error::non_finite(what, row, numbers[row], remedy)),
    }
}

/// Returns an error if a logarithm is plus infinity or NaN. The error calls the score `what`.
fn check_logs(what: &'static str, logs: Vec<f64>) -> Result<Vec<f64>> {
    let remedy = "the logarithm of a score must be a finite number, or minus infinity for a score of 0: \
                  keep scores finite, and above 0 before a negative power";
    check_all(what, &logs, |log| log < f64::INFINITY, remedy)?;
    Ok(logs)
}

/// Computes the logarithms of a score. Returns an error unless the score has one logarithm for each
/// molecule, and none is plus infinity or NaN.
fn checked_logs(score: &impl MoleculeScore, molecules: &[Molecule]) -> Result<Vec<f64>> {
    let logs = score.log_scores(molecules)?;
    let n = molecules.len() as i64;
    let got = logs.len() as i64;
    if n != got {
        return Err(Error::shape(
            "the list that a score returned",
            [n],
            [got],
            "let the score return one logarithm per molecule",
        ));
    }
    check_logs("the logarithm of a score", logs)
}

/// Returns the natural logarithms of scores. Returns an error for a score that is negative, infinite or NaN.
fn logs(scores: &[f64]) -> Result<Vec<f64>> {
    let remedy = "give a finite score of 0 or more: shift the score, or take its exponential";
    check_all("the score of a molecule", scores, |score| score >= 0.0 && score.is_finite(), remedy)?;
    Ok(scores.iter().map(|score| score.ln()).collect())
}
