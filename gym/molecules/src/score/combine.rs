use gfn::{Error, Result};

use super::{MoleculeScore, check_logs, checked_logs};
use crate::Molecule;

/// A score to a power: [`MoleculeScore::to_the`].
#[derive(Clone, Copy, Debug)]
pub struct Power<S> {
    score: S,
    exponent: f64,
}

impl<S> Power<S> {
    pub(super) fn new(score: S, exponent: f64) -> Result<Self> {
        if exponent.is_finite() {
            Ok(Self { score, exponent })
        } else {
            Err(Error::config("the exponent", exponent, "a finite number"))
        }
    }
}

impl<S: MoleculeScore> MoleculeScore for Power<S> {
    fn log_scores(&self, molecules: &[Molecule]) -> Result<Vec<f64>> {
        let logs = checked_logs(&self.score, molecules)?;
        // Anything to the power 0 is 1, including 0.
        let powers = logs.into_iter().map(|log| if self.exponent == 0.0 { 0.0 } else { log * self.exponent });
        check_logs("the power of a score", powers.collect())
    }
}

/// A score between bounds: [`MoleculeScore::clamped`].
#[derive(Clone, Copy, Debug)]
pub struct Clamped<S> {
    score: S,
    log_least: f64,
    log_most: f64,
}

impl<S> Clamped<S> {
    pub(super) fn new(score: S, least: f64, most: f64) -> Result<Self> {
        if least >= 0.0 && least <= most && most > 0.0 && most.is_finite() {
            Ok(Self { score, log_least: least.ln(), log_most: most.ln() })
        } else {
            Err(Error::config(
                "the bounds of a score",
                format!("{least} to {most}"),
                "0 or more to a finite number above 0",
            ))
        }
    }
}

impl<S: MoleculeScore> MoleculeScore for Clamped<S> {
    fn log_scores(&self, molecules: &[Molecule]) -> Result<Vec<f64>> {
        let logs = checked_logs(&self.score, molecules)?;
        Ok(logs.into_iter().map(|log| log.clamp(self.log_least, self.log_most)).collect())
    }
}

/// The product of scores; of none, 1.
///
/// ```
/// use gfn_molecules::{Molecule, MoleculeScore, Product};
/// let atoms = |molecule: &Molecule| molecule.atoms().len() as f64;
/// let rings = |molecule: &Molecule| molecule.n_rings() as f64;
/// let both = Product::new().times(atoms.to_the(2.0)?).times(rings.clamped(0.5, 3.0)?);
/// let benzene = [Molecule::from_smiles("c1ccccc1")?];
/// assert!((both.log_scores(&benzene)?[0] - 36f64.ln()).abs() < 1e-12);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Default)]
pub struct Product(Vec<Box<dyn MoleculeScore>>);

impl std::fmt::Debug for Product {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Product").field("factors", &self.0.len()).finish()
    }
}

impl Product {
    /// A product without factors.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with a factor more.
    #[must_use]
    pub fn times(mut self, score: impl MoleculeScore + 'static) -> Self {
        self.0.push(Box::new(score));
        self
    }
}

impl MoleculeScore for Product {
    fn log_scores(&self, molecules: &[Molecule]) -> Result<Vec<f64>> {
        let mut out = vec![0.0; molecules.len()];
        for factor in &self.0 {
            let logs = checked_logs(factor, molecules)?;
            out.iter_mut().zip(logs).for_each(|(sum, log)| *sum += log);
        }
        check_logs("the product of scores", out)
    }
}
