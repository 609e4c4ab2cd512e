//! Properties of molecules, which configuration files select by name.

use std::path::PathBuf;
use std::sync::Arc;

use gfn::{Error, Result};
use serde::{Deserialize, Serialize};

#[cfg(feature = "descriptors")]
use super::druglike::{AccessibilityTable, Patterns, Translations};
use super::seh::SehProxy;
use crate::{Fingerprint, Molecule};

#[cfg(not(feature = "descriptors"))]
type Translations = ();

/// A molecule whose properties are computed. The struct caches conversions of the molecule that several
/// descriptors need.
pub(crate) struct Subject<'a> {
    pub(crate) molecule: &'a Molecule,
    #[cfg_attr(
        not(feature = "descriptors"),
        expect(dead_code, reason = "descriptors alone need translations")
    )]
    pub(super) translations: Translations,
}

impl<'a> Subject<'a> {
    pub(crate) fn new(molecule: &'a Molecule) -> Self {
        Self { molecule, translations: Translations::default() }
    }
}

type OfEach = Arc<dyn Fn(&Subject<'_>) -> Result<f64> + Send + Sync>;

/// A function that computes a property of molecules: of each molecule on its own, or of all molecules
/// together.
#[derive(Clone)]
pub(super) enum Measure {
    Each(OfEach),
    /// A network, which computes the property of all molecules at once.
    All(Arc<SehProxy>),
}

/// A numerical property of a molecule. The variants from [`Qed`](Self::Qed) to
/// [`Substructures`](Self::Substructures) require the feature `descriptors`.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Property {
    /// The molecular weight, in g/mol: [`Molecule::weight`].
    Weight,
    /// The number of heavy atoms, that is, atoms other than hydrogen.
    HeavyAtoms,
    /// The share of heavy atoms that aren't carbon.
    HeteroatomShare,
    /// The number of atoms in aromatic rings.
    AromaticAtoms,
    /// The number of independent rings: [`Molecule::n_rings`]. RDKit counts further rings in cages such as
    /// cubane.
    Rings,
    /// The topological polar surface area, in square angstrom: [`Molecule::polar_surface`].
    PolarSurface,
    /// The number of hydrogen bond donors: [`Molecule::n_donors`].
    Donors,
    /// The number of hydrogen bond acceptors: [`Molecule::n_acceptors`].
    Acceptors,
    /// The Tanimoto similarity to a reference molecule, from 0 to 1: [`Fingerprint::tanimoto`].
    Similarity {
        /// The SMILES of the reference molecule.
        to: String,
    },
    /// The output of the published proxy of binding to soluble epoxide hydrolase (sEH): [`SehProxy`].
    /// Outputs are usually between -1 and 10, and higher outputs are better.
    Seh {
        /// The file of the proxy's weights.
        weights: PathBuf,
    },
    /// The quantitative estimate of drug-likeness, from 0 to 1: `Molecule::qed`.
    Qed,
    /// The decimal logarithm of the partition coefficient between octanol and water: `Molecule::log_p`.
    LogP,
    /// The molar refractivity of the molecule, in cm³/mol.
    MolarRefractivity,
    /// The number of rotatable bonds.
    RotatableBonds,
    /// The number of Lipinski's four rules that the molecule breaks: `Molecule::n_lipinski_violations`.
    LipinskiViolations,
    /// The synthetic accessibility, from 1 (easy) to 10 (hard): `Molecule::synthetic_accessibility`.
    SyntheticAccessibility {
        /// The file that the `AccessibilityTable` is read from.
        table: PathBuf,
    },
    /// The number of given substructures that the molecule contains. The substructures are given by a list,
    /// a file, or both. A substructure counts once, however often it occurs in the molecule. See
    /// `Patterns`.
    Substructures {
        /// The SMARTS of substructures. The list is empty by default.
        #[serde(default)]
        smarts: Vec<String>,
        /// A file of substructures, in the format of `Patterns::read`. No file is read by default.
        #[serde(default)]
        file: Option<PathBuf>,
    },
}

impl Property {
    /// Returns the property's name in configuration files.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Weight => "weight",
            Self::HeavyAtoms => "heavy_atoms",
            Self::HeteroatomShare => "heteroatom_share",
            Self::AromaticAtoms => "aromatic_atoms",
            Self::Rings => "rings",
            Self::PolarSurface => "polar_surface",
            Self::Donors => "donors",
            Self::Acceptors => "acceptors",
            Self::Similarity { .. } => "similarity",
            Self::Seh { .. } => "seh",
            Self::Qed => "qed",
            Self::LogP => "log_p",
            Self::MolarRefractivity => "molar_refractivity",
            Self::RotatableBonds => "rotatable_bonds",
            Self::LipinskiViolations => "lipinski_violations",
            Self::SyntheticAccessibility { .. } => "synthetic_accessibility",
            Self::Substructures { .. } => "substructures",
        }
    }

    pub(super) fn measure(&self) -> Result<Measure> {
        fn number(of: impl Fn(&Molecule) -> f64 + Send + Sync + 'static) -> Result<Measure> {
            Ok(Measure::Each(Arc::new(move |subject| Ok(of(subject.molecule)))))
        }
        match self {
            Self::Weight => number(Molecule::weight),
            Self::HeavyAtoms => number(|molecule| molecule.atoms().len() as f64),
            Self::HeteroatomShare => number(Molecule::heteroatom_share),
            Self::AromaticAtoms => number(|molecule| molecule.n_aromatic_atoms() as f64),
            Self::Rings => number(|molecule| molecule.n_rings() as f64),
            Self::PolarSurface => number(Molecule::polar_surface),
            Self::Donors => number(|molecule| molecule.n_donors() as f64),
            Self::Acceptors => number(|molecule| molecule.n_acceptors() as f64),
            Self::Similarity { to } => {
                let reference = Fingerprint::from_molecule(&Molecule::from_smiles(to)?);
                number(move |molecule| reference.tanimoto(&Fingerprint::from_molecule(molecule)))
            }
            Self::Seh { weights } => Ok(Measure::All(Arc::new(SehProxy::load(weights, tch::Device::Cpu)?))),
            _ => self.to_measure(),
        }
    }

    #[cfg(not(feature = "descriptors"))]
    fn to_measure(&self) -> Result<Measure> {
        let expected = "a property that the library was built with: build it with the feature `descriptors` \
            to get this property";
        Err(Error::config("the property of a score", self.name(), expected))
    }

    #[cfg(feature = "descriptors")]
    fn to_measure(&self) -> Result<Measure> {
        fn number(of: impl Fn(&Subject<'_>) -> f64 + Send + Sync + 'static) -> Result<Measure> {
            Ok(Measure::Each(Arc::new(move |subject| Ok(of(subject)))))
        }
        match self {
            Self::Qed => number(|subject| chematic_chem::qed(subject.plain())),
            Self::LogP => number(|subject| chematic_chem::logp_crippen(subject.plain())),
            Self::MolarRefractivity => number(|subject| chematic_chem::molar_refractivity(subject.plain())),
            Self::RotatableBonds => {
                number(|subject| chematic_chem::rotatable_bond_count(subject.plain()) as f64)
            }
            Self::LipinskiViolations => number(|subject| subject.n_lipinski_violations() as f64),
            Self::SyntheticAccessibility { table } => {
                let table = AccessibilityTable::read(table)?;
                number(move |subject| subject.synthetic_accessibility(&table))
            }
            Self::Substructures { smarts, file } => {
                let mut patterns = Patterns::new(smarts.iter().map(|smarts| (smarts, smarts)))?;
                patterns.extend(file.as_ref().map(Patterns::read).transpose()?);
                if patterns.is_empty() {
                    let expected = "a list of SMARTS, a file of SMARTS, or both";
                    return Err(Error::config("the substructures of a score", "none", expected));
                }
                Ok(Measure::Each(Arc::new(move |subject| Ok(patterns.matches(subject)?.len() as f64))))
            }
            // This arm isn't reached, because `measure` handles all other properties itself.
            _ => Err(Error::config(
                "the property of a score",
                self.name(),
                "a property that the library computes",
            )),
        }
    }
}
