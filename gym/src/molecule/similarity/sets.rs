use std::collections::BTreeSet;
use std::path::Path;

use gfn::graph::CanonicalKey;
use gfn::{Error, Result};

use crate::molecule::Molecule;

/// The share of different molecules among these.
///
/// ```
/// use gfn_gym::molecule::{Molecule, uniqueness};
/// let molecules = ["CCO", "OCC", "C"].map(|smiles| Molecule::from_smiles(smiles).unwrap());
/// assert_eq!(uniqueness(&molecules)?, 2.0 / 3.0);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Config`] for none.
pub fn uniqueness(molecules: &[Molecule]) -> Result<f64> {
    check_some(molecules)?;
    let distinct: BTreeSet<CanonicalKey> = molecules.iter().map(Molecule::key).collect();
    Ok(distinct.len() as f64 / molecules.len() as f64)
}

fn check_some(molecules: &[Molecule]) -> Result<()> {
    match molecules.is_empty() {
        false => Ok(()),
        true => {
            Err(Error::Config { setting: "molecules to be measured", got: "none".into(), expected: "at least one" })
        }
    }
}

/// Molecules that were known before, such as a training set: what isn't among them is novel.
///
/// ```
/// use gfn_gym::molecule::{KnownMolecules, Molecule};
/// let of = |smiles: &str| Molecule::from_smiles(smiles);
/// let known: KnownMolecules = [of("CCO")?, of("C")?].iter().collect();
/// // Of the two different molecules, methanol is new.
/// assert_eq!(known.novelty(&[of("OCC")?, of("CO")?, of("CO")?])?, 0.5);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KnownMolecules(BTreeSet<CanonicalKey>);

impl<'a> FromIterator<&'a Molecule> for KnownMolecules {
    fn from_iter<I: IntoIterator<Item = &'a Molecule>>(molecules: I) -> Self {
        Self(molecules.into_iter().map(Molecule::key).collect())
    }
}

impl KnownMolecules {
    /// Those of a file with a SMILES at the start of each line, up to a space, a tab or a comma; empty lines are passed over.
    ///
    /// # Errors
    /// [`Error::Io`] for a file that can't be read, [`Error::File`] for a line that is no molecule.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|source| Error::Io { path: path.into(), source })?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let key = |(i, line): (usize, &str)| {
            let smiles = line.trim().split([' ', '\t', ',']).next().unwrap_or_default();
            let molecule = Molecule::from_smiles(smiles).map_err(|error| Error::File {
                path: path.into(),
                problem: format!("line {}: {error}", i + 1),
                remedy: "give one SMILES per line, without isotopes, stereochemistry and radicals",
            })?;
            Ok(molecule.key())
        };
        Ok(Self(lines.map(key).collect::<Result<_>>()?))
    }

    /// How many different ones there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a molecule is one of them.
    #[must_use]
    pub fn contains(&self, molecule: &Molecule) -> bool {
        self.0.contains(&molecule.key())
    }

    /// The share of the different molecules among these that aren't known.
    ///
    /// # Errors
    /// [`Error::Config`] for none.
    pub fn novelty(&self, molecules: &[Molecule]) -> Result<f64> {
        check_some(molecules)?;
        let distinct: BTreeSet<CanonicalKey> = molecules.iter().map(Molecule::key).collect();
        Ok(distinct.difference(&self.0).count() as f64 / distinct.len() as f64)
    }
}
