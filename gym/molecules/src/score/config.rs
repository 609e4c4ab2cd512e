//! Scores that a configuration file defines as products of powers of properties.

use gfn::runtime::Threads;
use gfn::{Error, Result};
use serde::{Deserialize, Serialize};

use super::property::{Measure, Property, Subject};
use super::{MoleculeScore, Shape};
use crate::Molecule;

/// A factor of a score, which consists of a property, a shape that maps the property to a number of at
/// least 0, and an exponent.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
pub struct Factor {
    /// The property of molecules that the factor depends on.
    pub property: Property,
    /// The shape that maps the property to the factor; by default the factor is the property itself.
    #[serde(default)]
    pub shape: Shape,
    /// The exponent of the factor; 1 by default.
    #[serde(default = "default_power")]
    pub power: f64,
}

fn default_power() -> f64 {
    1.0
}

impl Factor {
    /// Creates a factor that is equal to the property.
    #[must_use]
    pub fn from_property(property: Property) -> Self {
        Self { property, shape: Shape::Value, power: default_power() }
    }
}

/// A score defined by a configuration, which is the product of the factors, or 1 if there are no factors.
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
/// Further properties are available with the feature `descriptors`:
///
/// ```toml
/// [[factors]]
/// property = "qed"
/// power = 4.0
///
/// # 1 is easy to make, 10 is hard.
/// [[factors]]
/// property = { synthetic_accessibility = { table = "fpscores.pkl.gz" } }
/// shape = { linear = { zero = 10.0, one = 1.0 } }
///
/// # The score is 0 if the molecule contains a substructure of the file.
/// [[factors]]
/// property = { substructures = { file = "wehi_pains.csv" } }
/// shape = { limit = { most = 0.0 } }
/// ```
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug, Default)]
#[serde(deny_unknown_fields)]
pub struct ScoreConfig {
    /// The factors of the product.
    pub factors: Vec<Factor>,
}

impl ScoreConfig {
    /// The names of predefined scores, which [`from_name`](Self::from_name) accepts.
    pub const NAMES: [&'static str; 5] = ["constant", "heteroatoms", "rings", "hydrogen_bonds", "drug_like"];

    /// Returns the predefined score with this name; `None` for an unknown name.
    ///
    /// - `constant`: 1 for every molecule
    /// - `heteroatoms`: 0.1 plus the share of heavy atoms that aren't carbon
    /// - `rings`: exp(number of rings)
    /// - `hydrogen_bonds`: exp(number of hydrogen-bond donors and acceptors)
    /// - `drug_like`: the product of two factors that are 1 within a window: a molecular weight of 100 to
    ///   300, and a polar surface area of 40 to 90
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let shaped = |property, shape| Factor { shape, ..Factor::from_property(property) };
        let exponential = |property| shaped(property, Shape::Exponential);
        let window = |property, least, most, width| shaped(property, Shape::Window { least, most, width });
        let factors = match name {
            "constant" => Vec::new(),
            "heteroatoms" => vec![shaped(Property::HeteroatomShare, Shape::Linear { zero: -0.1, one: 0.9 })],
            "rings" => vec![exponential(Property::Rings)],
            "hydrogen_bonds" => [Property::Donors, Property::Acceptors].map(exponential).to_vec(),
            "drug_like" => {
                vec![
                    window(Property::Weight, 100.0, 300.0, 50.0),
                    window(Property::PolarSurface, 40.0, 90.0, 20.0),
                ]
            }
            _ => return None,
        };
        Some(Self { factors })
    }

    /// Builds the score, and reads the files that the configuration names.
    ///
    /// # Errors
    /// [`Error::Config`] for an invalid shape or power, for a negative power of a factor that can be 0, for a
    /// reference molecule or a pattern that can't be parsed, and for a property that needs a disabled feature
    /// of this library; [`Error::Io`] and [`Error::File`] for files that can't be read.
    pub fn build(&self) -> Result<FactoredScore> {
        let built = |factor: &Factor| {
            let Factor { property, shape, power } = factor;
            shape.check()?;
            if !power.is_finite() {
                return Err(Error::config("the power of a factor", power, "a finite number"));
            }
            if *power < 0.0 && shape.has_zeros() {
                let expected = "0 or more for a `linear` shape and for a `limit` with `otherwise = 0`, whose \
                    factor can be 0: a negative power of 0 is infinite";
                return Err(Error::config("the power of a factor", power, expected));
            }
            Ok((factor.clone(), property.measure()?))
        };
        Ok(FactoredScore(self.factors.iter().map(built).collect::<Result<_>>()?))
    }
}

/// The score that a [`ScoreConfig`] defines. The score evaluates molecules on several threads. Its
/// clones share the functions and the network of its properties.
#[derive(Clone)]
pub struct FactoredScore(Vec<(Factor, Measure)>);

impl std::fmt::Debug for FactoredScore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("FactoredScore").field(&self.names()).finish()
    }
}

/// The smallest number of molecules per thread. A further thread is only started if each thread gets this
/// many.
const MIN_PER_THREAD: usize = 4;

impl FactoredScore {
    /// Returns the name of each factor's property. If a name occurs several times, its second and later
    /// occurrences are numbered: `substructures_2`.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let of = |k: usize| self.0[k].0.property.name();
        let name = |k: usize| match (0..k).filter(|before| of(*before) == of(k)).count() {
            0 => of(k).to_owned(),
            n => format!("{}_{}", of(k), n + 1),
        };
        (0..self.0.len()).map(name).collect()
    }

    /// Returns a row for each molecule. A row holds the value of each factor's property, before shapes and
    /// powers are applied.
    ///
    /// # Errors
    /// `PatternError::GivenUp`, as [`Error::Config`], if the search for a substructure takes too long.
    pub fn properties(&self, molecules: &[Molecule]) -> Result<Vec<Vec<f64>>> {
        let of = |molecule: &Molecule| {
            let subject = Subject::new(molecule);
            let value = |(_, measure): &(Factor, Measure)| match measure {
                Measure::Each(of) => of(&subject),
                Measure::All(_) => Ok(f64::NAN),
            };
            self.0.iter().map(value).collect()
        };
        let mut rows: Vec<Vec<f64>> = Threads::try_map(molecules, MIN_PER_THREAD, of)?;
        for (k, (_, measure)) in self.0.iter().enumerate() {
            if let Measure::All(proxy) = measure {
                for (row, value) in rows.iter_mut().zip(proxy.outputs(molecules)?) {
                    row[k] = value;
                }
            }
        }
        Ok(rows)
    }
}

impl MoleculeScore for FactoredScore {
    fn log_scores(&self, molecules: &[Molecule]) -> Result<Vec<f64>> {
        let of = |(row, values): (usize, &Vec<f64>)| {
            let mut sum = 0.0;
            for ((factor, _), &value) in self.0.iter().zip(values) {
                let name = factor.property.name();
                if !value.is_finite() || factor.shape == Shape::Value && value < 0.0 {
                    let remedy =
                        "give the property a finite value of 0 or more, or another shape, such as a window";
                    return Err(Error::non_finite(name, row, value, remedy));
                }
                // A factor with the power 0 is 1, even if its shape maps the property to 0.
                let log = if factor.power == 0.0 { 0.0 } else { factor.shape.log(value) * factor.power };
                sum += log;
                if log == f64::INFINITY || sum.is_nan() || sum == f64::INFINITY {
                    let remedy = "the factor raised to its power is infinite: use a smaller power, or, with \
                        a negative power, a shape that is never 0";
                    return Err(Error::non_finite(name, row, value, remedy));
                }
            }
            Ok(sum)
        };
        self.properties(molecules)?.iter().enumerate().map(of).collect()
    }
}
