use std::collections::BTreeSet;
use std::path::Path;

use gfn::graph::CanonicalKey;
use gfn::{Error, Result};

use crate::Molecule;
use crate::reading::{MoleculeReader, ReadReport};

/// Computes the share of distinct molecules, which is the number of distinct molecules divided by the
/// number of all molecules.
///
/// ```
/// use gfn_molecules::{Molecule, uniqueness};
/// let molecules = ["CCO", "OCC", "C"].map(|smiles| Molecule::from_smiles(smiles).unwrap());
/// assert_eq!(uniqueness(&molecules)?, 2.0 / 3.0);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Config`] if there are no molecules.
pub fn uniqueness(molecules: &[Molecule]) -> Result<f64> {
    check_some(molecules)?;
    let distinct: BTreeSet<CanonicalKey> = molecules.iter().map(Molecule::key).collect();
    Ok(distinct.len() as f64 / molecules.len() as f64)
}

fn check_some(molecules: &[Molecule]) -> Result<()> {
    if molecules.is_empty() {
        Err(Error::config("the list of molecules", "none", "at least one"))
    } else {
        Ok(())
    }
}

/// A set of known molecules, such as a training set. Molecules outside of the set are novel. The
/// stereoisomers of a molecule count as the same molecule.
///
/// ```
/// use gfn_molecules::{KnownMolecules, Molecule};
/// let of = |smiles: &str| Molecule::from_smiles(smiles);
/// let known: KnownMolecules = [of("CCO")?, of("C")?].iter().collect();
/// // Of the two different molecules, methanol is new.
/// assert_eq!(known.novelty(&[of("OCC")?, of("CO")?, of("CO")?])?, 0.5);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KnownMolecules(BTreeSet<CanonicalKey>);

/// Returns a key that is equal for all stereoisomers of a molecule.
fn flat_key(molecule: &Molecule) -> CanonicalKey {
    molecule.without_stereo().key()
}

impl<'a> FromIterator<&'a Molecule> for KnownMolecules {
    fn from_iter<I: IntoIterator<Item = &'a Molecule>>(molecules: I) -> Self {
        Self(molecules.into_iter().map(flat_key).collect())
    }
}

impl KnownMolecules {
    /// Reads the molecules of a SMILES file, a table or an SD file, as [`MoleculeReader`] does. A line that
    /// isn't a molecule is an error; [`read_some`](Self::read_some) skips such lines instead.
    ///
    /// # Errors
    /// [`Error::Io`] for a file that can't be read; [`Error::File`] for a file that isn't text or has no
    /// molecule, and for a line that isn't a molecule.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let (known, report) = Self::read_some(&path)?;
        report.first_skipped().map_or(Ok(known), |first| {
            let remedy = "give one SMILES per line, without salts, metals, isotopes and radicals, or skip \
                these lines with `read_some`";
            Err(Error::file(path.as_ref(), first, remedy))
        })
    }

    /// Reads the molecules of a file as [`read`](Self::read) does, but skips lines that aren't molecules.
    /// The returned report lists these lines.
    ///
    /// ```no_run
    /// use gfn_molecules::{KnownMolecules, NotRead, SkipReason};
    /// let (known, report) = KnownMolecules::read_some("first_5K.smi")?;
    /// println!("{} different molecules of {}", known.len(), report);
    /// if let Some(salts) = report.skipped.get(&SkipReason::NotRead(NotRead::Parts)) {
    ///     println!("the first salt: line {}, {}", salts.examples[0].line, salts.examples[0].smiles);
    /// }
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] for a file that can't be read; [`Error::File`] for a file that isn't text, or in which
    /// no line is a molecule.
    pub fn read_some(path: impl AsRef<Path>) -> Result<(Self, ReadReport)> {
        let mut reader = MoleculeReader::open(path)?;
        let known: BTreeSet<CanonicalKey> =
            reader.by_ref().map(|molecule| Ok(flat_key(&molecule?))).collect::<Result<_>>()?;
        Ok((Self(known), reader.report().clone()))
    }

    /// Returns the number of distinct molecules in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if the set has no molecules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `true` if a molecule is in the set.
    #[must_use]
    pub fn contains(&self, molecule: &Molecule) -> bool {
        self.0.contains(&flat_key(molecule))
    }

    /// Computes the novelty of molecules, which is the share of the distinct molecules that isn't in the
    /// set.
    ///
    /// # Errors
    /// [`Error::Config`] if there are no molecules.
    pub fn novelty(&self, molecules: &[Molecule]) -> Result<f64> {
        check_some(molecules)?;
        let distinct: BTreeSet<CanonicalKey> = molecules.iter().map(flat_key).collect();
        Ok(distinct.difference(&self.0).count() as f64 / distinct.len() as f64)
    }
}
