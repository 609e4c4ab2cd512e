//! Scores that a file can say: products of powers of properties.

use std::path::PathBuf;

use gfn::{Error, Result};
use gfn_gym::rewards;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::MoleculeScore;
#[cfg(feature = "descriptors")]
use super::druglike::{AccessibilityTable, Patterns, Subject};
use crate::{Fingerprint, Molecule};

/// A molecule that is asked for its properties.
#[cfg(not(feature = "descriptors"))]
struct Subject<'a> {
    molecule: &'a Molecule,
}

#[cfg(not(feature = "descriptors"))]
impl<'a> Subject<'a> {
    fn of(molecule: &'a Molecule) -> Self {
        Self { molecule }
    }
}

/// A number that a molecule has. Those from [`Qed`](Self::Qed) to [`Substructures`](Self::Substructures) need the feature `descriptors`.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Property {
    /// Its weight, in g/mol: [`Molecule::weight`].
    Weight,
    /// The number of its heavy atoms.
    HeavyAtoms,
    /// The share of heavy atoms that aren't carbon.
    HeteroatomShare,
    /// The number of atoms in aromatic rings.
    AromaticAtoms,
    /// The number of independent rings.
    Rings,
    /// The topological polar surface area, in square angstrom: [`Molecule::polar_surface`].
    PolarSurface,
    /// The number of donors of hydrogen bonds.
    Donors,
    /// The number of acceptors of hydrogen bonds.
    Acceptors,
    /// The Tanimoto similarity to a reference, from 0 to 1: [`Fingerprint::tanimoto`].
    Similarity {
        /// The SMILES of the reference.
        to: String,
    },
    /// The quantitative estimate of drug-likeness, from 0 to 1: `Molecule::qed`.
    Qed,
    /// The logarithm of the partition coefficient between octanol and water: `Molecule::log_p`.
    LogP,
    /// The molar refractivity, in cm³/mol.
    MolarRefractivity,
    /// The number of bonds that turn freely.
    RotatableBonds,
    /// The number of Lipinski's four rules that it breaks: `Molecule::n_lipinski_violations`.
    LipinskiViolations,
    /// The synthetic accessibility, from 1 (easy) to 10 (hard): `Molecule::synthetic_accessibility`.
    SyntheticAccessibility {
        /// The file of an `AccessibilityTable`.
        table: PathBuf,
    },
    /// The number of different substructures found in it, of a list and a file: `Patterns`.
    Substructures {
        /// Their SMARTS.
        #[serde(default)]
        smarts: Vec<String>,
        /// A file that `Patterns::read` reads.
        #[serde(default)]
        file: Option<PathBuf>,
    },
}

impl Property {
    /// Its name, as a file has it.
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
            Self::Qed => "qed",
            Self::LogP => "log_p",
            Self::MolarRefractivity => "molar_refractivity",
            Self::RotatableBonds => "rotatable_bonds",
            Self::LipinskiViolations => "lipinski_violations",
            Self::SyntheticAccessibility { .. } => "synthetic_accessibility",
            Self::Substructures { .. } => "substructures",
        }
    }

    fn measure(&self) -> Result<Measure> {
        fn number(of: impl Fn(&Molecule) -> f64 + Send + Sync + 'static) -> Result<Measure> {
            Ok(Box::new(move |subject| Ok(of(subject.molecule))))
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
                let reference = Fingerprint::of(&Molecule::from_smiles(to)?);
                number(move |molecule| reference.tanimoto(&Fingerprint::of(molecule)))
            }
            _ => self.described(),
        }
    }

    #[cfg(not(feature = "descriptors"))]
    fn described(&self) -> Result<Measure> {
        let expected = "one of those that the library was built with: this one needs its feature `descriptors`";
        Err(Error::config("the property of a score", self.name(), expected))
    }

    #[cfg(feature = "descriptors")]
    fn described(&self) -> Result<Measure> {
        Ok(match self {
            Self::Qed => Box::new(|subject| Ok(subject.qed())),
            Self::LogP => Box::new(|subject| Ok(subject.log_p())),
            Self::MolarRefractivity => Box::new(|subject| Ok(subject.molar_refractivity())),
            Self::RotatableBonds => Box::new(|subject| Ok(subject.n_rotatable_bonds() as f64)),
            Self::SyntheticAccessibility { table } => {
                let table = AccessibilityTable::read(table)?;
                Box::new(move |subject| Ok(subject.synthetic_accessibility(&table)))
            }
            Self::Substructures { smarts, file } => {
                let mut patterns = Patterns::new(smarts.iter().map(|smarts| (smarts, smarts)))?;
                patterns.extend(file.as_ref().map(Patterns::read).transpose()?);
                if patterns.is_empty() {
                    return Err(Error::config(
                        "the substructures of a score",
                        "none",
                        "SMARTS, a file of them, or both",
                    ));
                }
                Box::new(move |subject| Ok(patterns.found(subject)?.len() as f64))
            }
            Self::LipinskiViolations => Box::new(|subject| Ok(subject.n_lipinski_violations() as f64)),
            // All others are read off without it.
            _ => return Err(Error::config("the property of a score", self.name(), "one that is computed")),
        })
    }
}

/// The way from a property to a factor of a score, which is 0 or more.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Debug, Default)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Shape {
    /// The property itself, which must be 0 or more.
    #[default]
    Value,
    /// Its exponential.
    Exponential,
    /// 1 from `least` to `most`, and outside falling by `exp(-distance / width)`: [`LogWindow`](crate::LogWindow).
    Window {
        /// The lower end.
        least: f64,
        /// The upper end.
        most: f64,
        /// The distance over which it falls to 1 / e, above 0.
        width: f64,
    },
    /// A straight line, 0 at one value of the property and 1 at another, and never below 0.
    Linear {
        /// The value that gives 0.
        zero: f64,
        /// The value that gives 1.
        one: f64,
    },
    /// 1 from `least` to `most`, ends included, and `otherwise` outside: a filter. With 0, what doesn't pass has no reward; with more, it has less.
    Limit {
        /// The lower end; none by default.
        #[serde(default)]
        least: Option<f64>,
        /// The upper end; none by default.
        #[serde(default)]
        most: Option<f64>,
        /// The factor outside, 0 by default.
        #[serde(default)]
        otherwise: f64,
    },
}

impl Shape {
    fn checked(self) -> Result<Self> {
        let refuse = |expected| Err(Error::config("the shape of a factor", format!("{self:?}"), expected));
        match self {
            Self::Value | Self::Exponential => Ok(self),
            Self::Window { least, most, width } => {
                rewards::positive("the width of a window's flanks", width)?;
                if least <= most && (most - least).is_finite() {
                    Ok(self)
                } else {
                    refuse("finite ends, the smaller one first")
                }
            }
            Self::Linear { zero, one } if zero != one && (one - zero).is_finite() => Ok(self),
            Self::Linear { .. } => refuse("two finite numbers that differ"),
            Self::Limit { least, most, otherwise } => {
                let (low, high) = (least.unwrap_or(f64::NEG_INFINITY), most.unwrap_or(f64::INFINITY));
                let some = least.is_some() || most.is_some();
                if some && low <= high && otherwise >= 0.0 && otherwise.is_finite() {
                    Ok(self)
                } else {
                    refuse("`least`, `most` or both, the smaller one first, and a finite `otherwise` of 0 or more")
                }
            }
        }
    }

    /// The logarithm of the factor.
    fn log(self, value: f64) -> f64 {
        match self {
            Self::Value => value.ln(),
            Self::Exponential => value,
            // As in `LogWindow`.
            Self::Window { least, most, width } => 0.0 - (value - value.clamp(least, most)).abs() / width,
            Self::Linear { zero, one } => ((value - zero) / (one - zero)).max(0.0).ln(),
            Self::Limit { least, most, otherwise } => {
                let inside = least.is_none_or(|least| value >= least) && most.is_none_or(|most| value <= most);
                if inside { 0.0 } else { otherwise.ln() }
            }
        }
    }
}

/// A factor of a score: a property, the shape that makes a number of 0 or more of it, and a power.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
pub struct Factor {
    /// The property.
    pub property: Property,
    /// The shape; the property's own value by default.
    #[serde(default)]
    pub shape: Shape,
    /// The exponent; 1 by default.
    #[serde(default = "one")]
    pub power: f64,
}

fn one() -> f64 {
    1.0
}

impl Factor {
    /// A property's own value.
    #[must_use]
    pub fn of(property: Property) -> Self {
        Self { property, shape: Shape::Value, power: one() }
    }
}

/// A score as a file says it: the product of its factors; of none, 1.
///
/// ```
/// use gfn_molecules::{Molecule, MoleculeScore, ScoreConfig};
/// let config: ScoreConfig = toml::from_str(r#"
///     [[factors]]
///     property = "weight"
///     shape = { window = { least = 100.0, most = 300.0, width = 50.0 } }
///
///     [[factors]]
///     property = { similarity = { to = "Cc1ccccc1O" } }
///     power = 2.0
///
///     [[factors]]
///     property = "rings"
///     shape = { limit = { most = 2.0 } }
/// "#).unwrap();
/// let score = config.build()?;
/// assert_eq!(score.names(), ["weight", "similarity", "rings"]);
/// let cresol = [Molecule::from_smiles("Cc1ccccc1O")?];
/// assert_eq!(score.log_scores(&cresol)?, [0.0]);
/// assert_eq!(score.properties(&cresol)?[0][1..], [1.0, 1.0]);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// With the feature `descriptors` a file may say more:
///
/// ```toml
/// [[factors]]
/// property = "qed"
/// power = 4.0
///
/// # 1 is easy to make, 10 is hard.
/// [[factors]]
/// property = { synthetic_accessibility = { table = "sa_table.txt" } }
/// shape = { linear = { zero = 10.0, one = 1.0 } }
///
/// # No reward for what has an alert of a file.
/// [[factors]]
/// property = { substructures = { file = "wehi_pains.csv" } }
/// shape = { limit = { most = 0.0 } }
/// ```
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug, Default)]
#[serde(deny_unknown_fields)]
pub struct ScoreConfig {
    /// Its factors.
    pub factors: Vec<Factor>,
}

impl ScoreConfig {
    /// The names of [`named`](Self::named).
    pub const NAMES: [&'static str; 5] = ["constant", "heteroatoms", "rings", "hydrogen_bonds", "drug_like"];

    /// A score by its name: every molecule alike; 0.1 and the share of atoms that aren't carbon; exp(rings); exp(donors + acceptors); or a
    /// weight of 100 to 300 and a polar surface of 40 to 90. `None` for another name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let shaped = |property, shape| Factor { shape, ..Factor::of(property) };
        let exponential = |property| shaped(property, Shape::Exponential);
        let window = |property, least, most, width| shaped(property, Shape::Window { least, most, width });
        let factors = match name {
            "constant" => Vec::new(),
            "heteroatoms" => vec![shaped(Property::HeteroatomShare, Shape::Linear { zero: -0.1, one: 0.9 })],
            "rings" => vec![exponential(Property::Rings)],
            "hydrogen_bonds" => [Property::Donors, Property::Acceptors].map(exponential).to_vec(),
            "drug_like" => {
                vec![window(Property::Weight, 100.0, 300.0, 50.0), window(Property::PolarSurface, 40.0, 90.0, 20.0)]
            }
            _ => return None,
        };
        Some(Self { factors })
    }

    /// The score; files that it names are read.
    ///
    /// # Errors
    /// [`Error::Config`] for a shape or a power without sense, for a reference or a pattern that isn't read, and for a property that the library was
    /// built without; [`Error::Io`] and [`Error::File`] for files.
    pub fn build(&self) -> Result<FactoredScore> {
        let built = |factor: &Factor| {
            let Factor { property, shape, power } = factor;
            if !power.is_finite() {
                return Err(Error::config("the power of a factor", power, "a finite number"));
            }
            Ok(Built { name: property.name(), measure: property.measure()?, shape: shape.checked()?, power: *power })
        };
        Ok(FactoredScore(self.factors.iter().map(built).collect::<Result<_>>()?))
    }
}

type Measure = Box<dyn Fn(&Subject<'_>) -> Result<f64> + Send + Sync>;

struct Built {
    name: &'static str,
    measure: Measure,
    shape: Shape,
    power: f64,
}

/// The score of a [`ScoreConfig`]: molecules are shared among threads.
pub struct FactoredScore(Vec<Built>);

impl std::fmt::Debug for FactoredScore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("FactoredScore").field(&self.names()).finish()
    }
}

/// Fewer molecules than that stay on one thread.
const MIN_PER_THREAD: usize = 4;

impl FactoredScore {
    /// The names of its properties, in the order of the factors; the second one of a name has a number: `substructures_2`.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let before = |k: usize| self.0[..k].iter().filter(|factor| factor.name == self.0[k].name).count();
        let name = |k: usize| match before(k) {
            0 => self.0[k].name.to_owned(),
            n => format!("{}_{}", self.0[k].name, n + 1),
        };
        (0..self.0.len()).map(name).collect()
    }

    /// The properties of each molecule, by factor: the numbers that shapes and powers are applied to.
    ///
    /// # Errors
    /// `PatternError::GivenUp`, as [`Error::Config`], for a substructure that is searched for too long.
    pub fn properties(&self, molecules: &[Molecule]) -> Result<Vec<Vec<f64>>> {
        let of = |molecule: &Molecule| {
            let subject = Subject::of(molecule);
            self.0.iter().map(|factor| (factor.measure)(&subject)).collect()
        };
        molecules.par_iter().with_min_len(MIN_PER_THREAD).map(of).collect()
    }
}

impl MoleculeScore for FactoredScore {
    fn log_scores(&self, molecules: &[Molecule]) -> Result<Vec<f64>> {
        let of = |(row, values): (usize, &Vec<f64>)| {
            let mut sum = 0.0;
            for (factor, &value) in self.0.iter().zip(values) {
                if !value.is_finite() || factor.shape == Shape::Value && value < 0.0 {
                    let remedy = "give the property another shape, such as a window: as it is, it must be 0 or more";
                    return Err(Error::non_finite(factor.name, row, value, remedy));
                }
                // Anything to the power 0 is 1, 0 too.
                if factor.power != 0.0 {
                    sum += factor.shape.log(value) * factor.power;
                }
            }
            Ok(sum)
        };
        self.properties(molecules)?.iter().enumerate().map(of).collect()
    }
}
