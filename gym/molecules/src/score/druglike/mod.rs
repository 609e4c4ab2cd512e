//! Descriptors of drug-likeness and searches for substructures, whose results are those of RDKit. The crate
//! chematic computes most of them.

mod accessibility;
mod morgan;
mod patterns;
mod subject;

pub use accessibility::AccessibilityTable;
pub use patterns::{PatternError, Patterns};
pub(crate) use subject::Translations;

use super::property::Subject;
use crate::Molecule;

impl Subject<'_> {
    pub(crate) fn n_lipinski_violations(&self) -> usize {
        let molecule = self.molecule;
        let beyond = [
            molecule.weight() > 500.0,
            chematic_chem::logp_crippen(self.plain()) > 5.0,
            molecule.n_donors() > 5,
            molecule.n_acceptors() > 10,
        ];
        beyond.into_iter().filter(|beyond| *beyond).count()
    }
}

/// Descriptors of molecules that require the feature `descriptors`.
impl Molecule {
    /// Computes the quantitative estimate of drug-likeness (QED), from 0 to 1, with the authors' mean weights
    /// (Bickerton et al., "Quantifying the chemical beauty of drugs", Nature Chemistry 4, 2012).
    ///
    /// ```
    /// use gfn_molecules::Molecule;
    /// let aspirin = Molecule::from_smiles("CC(=O)Oc1ccccc1C(=O)O")?;
    /// assert!((aspirin.qed() - 0.5501).abs() < 1e-4);
    /// # Ok::<(), gfn_molecules::MoleculeError>(())
    /// ```
    #[must_use]
    pub fn qed(&self) -> f64 {
        chematic_chem::qed(Subject::new(self).plain())
    }

    /// Computes log P, the decimal logarithm of the partition coefficient between octanol and water. The
    /// value is a sum of contributions of the atoms (Wildman and Crippen, J. Chem. Inf. Comput. Sci. 39,
    /// 1999).
    ///
    /// ```
    /// use gfn_molecules::Molecule;
    /// assert!((Molecule::from_smiles("c1ccccc1")?.log_p() - 1.6866).abs() < 1e-9);
    /// # Ok::<(), gfn_molecules::MoleculeError>(())
    /// ```
    #[must_use]
    pub fn log_p(&self) -> f64 {
        chematic_chem::logp_crippen(Subject::new(self).plain())
    }

    /// Returns the number of Lipinski's four rules that the molecule breaks. The rules allow a weight of at
    /// most 500, a log P of at most 5, at most 5 hydrogen bond donors and at most 10 acceptors (Lipinski et
    /// al., Adv. Drug Deliv. Rev. 23, 1997). Donors and acceptors are counted by
    /// [`n_donors`](Self::n_donors) and [`n_acceptors`](Self::n_acceptors).
    #[must_use]
    pub fn n_lipinski_violations(&self) -> usize {
        Subject::new(self).n_lipinski_violations()
    }
}
