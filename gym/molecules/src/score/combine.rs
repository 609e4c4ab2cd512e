use gfn::{Error, Result};

use super::{MoleculeScore, check_logs, checked_logs};
use crate::Molecule;

/// A score whose values are transformed by a function. [`MoleculeScore::to_the`] and
/// [`MoleculeScore::clamped`] create it.
#[derive(Clone, Copy, Debug)]
pub struct TransformedScore<S> {
    score: S,
    transform: Transform,
}

#[derive(Clone, Copy, Debug)]
enum Transform {
    Power(f64),
    /// Clamps a log-score between two numbers, which are the logarithms of the score's bounds.
    Clamp(f64, f64),
}

impl<S> TransformedScore<S> {
    pub(super) fn power(score: S, exponent: f64) -> Result<Self> {
        if !exponent.is_finite() {
            return Err(Error::config("the exponent", exponent, "a finite number"));
        }
        Ok(Self { score, transform: Transform::Power(exponent) })
    }

    pub(super) fn clamp(score: S, least: f64, most: f64) -> Result<Self> {
        if !(least >= 0.0 && least <= most && most > 0.0 && most.is_finite()) {
            let got = format!("{least} to {most}");
            return Err(Error::config(
                "the bounds of a score",
                got,
                "two bounds, from at least 0 to a finite number above 0, the smaller one first",
            ));
        }
        Ok(Self { score, transform: Transform::Clamp(least.ln(), most.ln()) })
    }
}

impl<S: MoleculeScore> MoleculeScore for TransformedScore<S> {
    fn log_scores(&self, molecules: &[Molecule]) -> Result<Vec<f64>> {
        let change = |log: f64| match self.transform {
            // A score to the power 0 is 1, even if the score is 0.
            Transform::Power(exponent) => {
                if exponent == 0.0 {
                    0.0
                } else {
                    log * exponent
                }
            }
            Transform::Clamp(least, most) => log.clamp(least, most),
        };
        let logs = checked_logs(&self.score, molecules)?;
        check_logs("the power of a score", logs.into_iter().map(change).collect())
    }
}

/// A product of scores. A product without factors is 1.
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
    /// Creates a product without factors.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the product with one more factor.
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
            for (sum, log) in out.iter_mut().zip(logs) {
                *sum += log;
            }
        }
        check_logs("the product of scores", out)
    }
}
