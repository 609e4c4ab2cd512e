//! Estimates of how easily a molecule can be synthesised.

use std::collections::BTreeMap;
use std::path::Path;

use gfn::{Error, Result};
use serde_pickle::Value;

use super::{Subject, morgan};
use crate::Molecule;
use crate::score::pickle::{is_gzipped, unpickled};

/// A table of the contributions of fragments (the surroundings of an atom) to synthetic accessibility. The
/// contributions are derived from the frequencies of the fragments in known molecules, and are read from
/// RDKit's `Contrib/SA_Score/fpscores.pkl.gz`, or from a text file.
///
/// ```no_run
/// use gfn_molecules::{AccessibilityTable, Molecule};
/// let table = AccessibilityTable::read("fpscores.pkl.gz")?;
/// let aspirin = Molecule::from_smiles("CC(=O)Oc1ccccc1C(=O)O")?;
/// assert!((aspirin.synthetic_accessibility(&table) - 1.580).abs() < 1e-3);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct AccessibilityTable(BTreeMap<u32, f64>);

/// The contribution to the accessibility score of a fragment that isn't in the table of contributions.
const UNKNOWN: f64 = -4.0;
/// The sum of contributions and penalties that corresponds to the score 10 (hard to synthesise).
const LEAST: f64 = -4.0;
/// The sum of contributions and penalties that corresponds to the score 1 (easy to synthesise).
const MOST: f64 = 2.5;
/// The size of the largest rings that don't count as macrocycles.
const MACROCYCLE: usize = 8;

impl AccessibilityTable {
    /// Reads a table from RDKit's gzipped pickle or from a text file. Each line of a text file has a
    /// contribution, followed by the identifiers of all fragments with this contribution, all separated by
    /// blanks.
    ///
    /// # Errors
    /// [`Error::Io`] for a file that can't be read; [`Error::File`] for a file in another format or without
    /// fragments.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|source| Error::io(path, source))?;
        let table = if is_gzipped(&bytes) { pickled(&bytes) } else { parse_text(&bytes) };
        let table = table.map_err(|problem| Error::file(path, problem, EXPECTED))?;
        if table.is_empty() {
            Err(Error::file(path, "the file has no fragments", EXPECTED))
        } else {
            Ok(Self(table))
        }
    }

    /// Returns the number of fragments in the table.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if the table has no fragments. A table that [`read`](Self::read) returned always has
    /// some.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The advice that error messages give for a file that isn't a table.
const EXPECTED: &str = "give the file `Contrib/SA_Score/fpscores.pkl.gz` of RDKit, or a text with a \
    contribution and its fragments on each line";

/// Reads RDKit's pickle. The pickle is a list of rows, and each row has a contribution followed by the
/// fragments with this contribution.
fn pickled(bytes: &[u8]) -> std::result::Result<BTreeMap<u32, f64>, String> {
    let Value::List(rows) = unpickled(bytes)? else { return Err("the pickle isn't a list".to_owned()) };
    let mut table = BTreeMap::new();
    for (k, row) in rows.iter().enumerate() {
        let wrong = || format!("row {k} of the pickle isn't a contribution and its fragments");
        let Value::List(row) = row else { return Err(wrong()) };
        let [Value::F64(contribution), fragments @ ..] = row.as_slice() else { return Err(wrong()) };
        if !contribution.is_finite() {
            return Err(wrong());
        }
        for fragment in fragments {
            let Value::I64(fragment) = fragment else { return Err(wrong()) };
            table.insert(u32::try_from(*fragment).map_err(|_| wrong())?, *contribution);
        }
    }
    Ok(table)
}

/// Reads a table of contributions from the contents of a text file.
fn parse_text(bytes: &[u8]) -> std::result::Result<BTreeMap<u32, f64>, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let mut table = BTreeMap::new();
    for (k, line) in text.lines().enumerate() {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else { continue };
        let contribution = first.parse().ok().filter(|value: &f64| value.is_finite());
        let fragments: Option<Vec<u32>> = words.map(|word| word.parse().ok()).collect();
        let (Some(contribution), Some(fragments)) = (contribution, fragments) else {
            return Err(format!("line {} isn't a contribution and its fragments: {line:.60}", k + 1));
        };
        table.extend(fragments.into_iter().map(|fragment| (fragment, contribution)));
    }
    Ok(table)
}

impl Subject<'_> {
    pub(crate) fn synthetic_accessibility(&self, table: &AccessibilityTable) -> f64 {
        let counts = morgan::environments(self, 2);
        let mut sum = 0.0;
        let mut total = 0.0;
        for (fragment, &count) in &counts {
            let contribution = table.0.get(fragment).copied().unwrap_or(UNKNOWN);
            sum += contribution * f64::from(count);
            total += f64::from(count);
        }
        let n = self.molecule.atoms().len() as f64;
        let log_of = |count: usize| (count as f64 + 1.0).log10();
        let plain = self.plain();
        let mut penalty = n.powf(1.005) - n;
        penalty += log_of(chematic_chem::num_stereocenters(plain));
        penalty += log_of(chematic_chem::num_spiro_atoms(plain))
            + log_of(chematic_chem::num_bridgehead_atoms(plain));
        let large = self.molecule.rings().iter().any(|ring| ring.len() > MACROCYCLE);
        penalty += log_of(usize::from(large));
        // Symmetrical molecules are easier to synthesise. In such molecules many atoms have the same
        // surroundings, so few different fragments are counted compared with the number of atoms.
        let different = counts.len() as f64;
        let symmetry = if n > different { (n / different).ln() / 2.0 } else { 0.0 };
        let raw = sum / total - penalty + symmetry;
        let score = 11.0 - (raw - LEAST + 1.0) / (MOST - LEAST) * 9.0;
        let score = if score > 8.0 { 8.0 + (score - 8.0).ln() } else { score };
        score.clamp(1.0, 10.0)
    }
}

impl Molecule {
    /// Computes the synthetic accessibility, from 1 (easy) to 10 (hard), by RDKit's formula (Ertl and
    /// Schuffenhauer, J. Cheminform. 1, 2009). The formula starts from the mean contribution of the
    /// molecule's fragments, subtracts penalties for size, stereocentres, spiro and bridgehead atoms and
    /// macrocycles, and adds a bonus for symmetry. The result is then scaled to the range from 1 to 10. This
    /// function requires the feature `descriptors`.
    ///
    /// Marks of stereochemistry are ignored: every atom that could be a stereocentre counts as one.
    #[must_use]
    pub fn synthetic_accessibility(&self, table: &AccessibilityTable) -> f64 {
        Subject::new(self).synthetic_accessibility(table)
    }
}
