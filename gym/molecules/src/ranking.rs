//! Rankings of the best molecules of a run, which can be written as a table, an SD file and a sheet of
//! pictures.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gfn::graph::CanonicalKey;
use gfn::{Error, Result};
use gfn_plot::PictureSheet;

use crate::similarity::check_ranked;
use crate::{Fingerprint, Molecule, MoleculeError, diverse_top_k};

/// The side length of the picture of a molecule, in canvas units.
const SIDE: f64 = 200.0;

/// A molecule of a [`Ranking`].
#[derive(Clone, PartialEq, Debug)]
pub struct Ranked {
    /// The ranked molecule.
    pub molecule: Molecule,
    /// The natural logarithm of the molecule's score.
    pub log_score: f64,
    /// The molecule's values in the columns that `Ranking::with_columns` added.
    pub values: Vec<f64>,
}

impl Ranked {
    /// Iterates over the log-score and the values in the columns that `Ranking::with_columns` added.
    fn numbers(&self) -> impl Iterator<Item = f64> {
        std::iter::once(self.log_score).chain(self.values.iter().copied())
    }
}

/// A ranking of distinct molecules, with the best first. The ranking holds the scores and the values of
/// further columns. A ranking can be reduced by score, diversity or scaffold, and written as a table (CSV),
/// an SD file and a sheet of pictures.
///
/// ```
/// use gfn_molecules::{Molecule, Ranking};
/// let molecules =
///     ["CCO", "c1ccccc1", "OCC", "Cc1ccccc1"].map(|smiles| Molecule::from_smiles(smiles).unwrap());
/// let sizes = |molecules: &[Molecule]| {
///     Ok(molecules.iter().map(|molecule| vec![molecule.atoms().len() as f64]).collect())
/// };
/// let ranking = Ranking::new(&molecules, &[0.0, 2.0, 0.0, 1.0])?.with_columns(&["atoms"], sizes)?;
/// // Ethanol was given twice. Benzene and toluene have the same scaffold, and benzene has the better score.
/// assert_eq!(ranking.entries().len(), 3);
/// let one_each = ranking.best_per_scaffold(1);
/// assert_eq!(one_each.csv(), "smiles,log_score,atoms\nc1ccccc1,2,6\nCCO,0,3\n");
/// let folder = std::env::temp_dir().join("gfn-doc-ranking");
/// one_each.write(&folder, "of each scaffold", 24)?;
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Ranking {
    columns: Vec<String>,
    entries: Vec<Ranked>,
}

impl Ranking {
    /// Ranks the distinct molecules by their log-scores, with the highest first. If a molecule is given
    /// several times, its first log-score is used. If two scores are equal, the molecule that was given
    /// first ranks higher.
    ///
    /// # Errors
    /// [`Error::Shape`] unless each molecule has one score; [`Error::NonFinite`] for a score that is NaN.
    pub fn new(molecules: &[Molecule], log_scores: &[f64]) -> Result<Self> {
        let n = molecules.len() as i64;
        let given = log_scores.len() as i64;
        if n != given {
            return Err(Error::shape(
                "log-scores of molecules",
                [n],
                [given],
                "give one log-score for each molecule",
            ));
        }
        check_ranked("the log-score of a molecule", log_scores)?;
        let mut seen: BTreeSet<CanonicalKey> = BTreeSet::new();
        let scored = molecules.iter().zip(log_scores).filter(|(molecule, _)| seen.insert(molecule.key()));
        let mut entries: Vec<Ranked> = Vec::new();
        for (molecule, &log_score) in scored {
            entries.push(Ranked { molecule: molecule.clone(), log_score, values: Vec::new() });
        }
        entries.sort_by(|a, b| b.log_score.total_cmp(&a.log_score));
        Ok(Self { columns: Vec::new(), entries })
    }

    /// Adds further columns, for example [`FactoredScore::properties`](crate::FactoredScore::properties). The
    /// function `values` returns for each molecule one number per added column.
    ///
    /// # Errors
    /// Errors of the function `values`; [`Error::Shape`] unless it returns one number per molecule and
    /// column.
    pub fn with_columns(
        mut self,
        columns: &[impl AsRef<str>],
        values: impl FnOnce(&[Molecule]) -> Result<Vec<Vec<f64>>>,
    ) -> Result<Self> {
        let molecules: Vec<Molecule> = self.entries.iter().map(|entry| entry.molecule.clone()).collect();
        let rows = values(&molecules)?;
        let narrow = rows.iter().map(Vec::len).find(|width| *width != columns.len());
        if rows.len() != molecules.len() || narrow.is_some() {
            let expected = [molecules.len() as i64, columns.len() as i64];
            let got = [rows.len() as i64, narrow.unwrap_or(columns.len()) as i64];
            return Err(Error::shape(
                "further columns of molecules",
                expected,
                got,
                "give one row for each molecule",
            ));
        }
        self.columns.extend(columns.iter().map(|column| column.as_ref().to_owned()));
        for (entry, row) in self.entries.iter_mut().zip(rows) {
            entry.values.extend(row);
        }
        Ok(self)
    }

    /// Returns the molecules with their scores, the best first.
    #[must_use]
    pub fn entries(&self) -> &[Ranked] {
        &self.entries
    }

    /// Returns the names of the columns that `with_columns` added.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Returns the best `k` molecules.
    #[must_use]
    pub fn best(&self, k: usize) -> Self {
        self.keeping(0..k.min(self.entries.len()))
    }

    /// Returns the best `k` molecules that differ from each other: the similarity of two selected molecules
    /// is below `similarity`. The selection goes from the best molecule down; see [`diverse_top_k`].
    ///
    /// # Errors
    /// [`Error::Config`] unless the similarity is above 0 and at most 1.
    pub fn diverse(&self, k: usize, similarity: f64) -> Result<Self> {
        let scores: Vec<f64> = self.entries.iter().map(|entry| entry.log_score).collect();
        let prints: Vec<_> =
            self.entries.iter().map(|entry| Fingerprint::from_molecule(&entry.molecule)).collect();
        Ok(self.keeping(diverse_top_k(&scores, &prints, k, similarity)?))
    }

    /// Returns the best `per_scaffold` molecules of each [scaffold](Molecule::scaffold). Molecules without
    /// rings have no scaffold; they form one group together.
    #[must_use]
    pub fn best_per_scaffold(&self, per_scaffold: usize) -> Self {
        let mut taken: BTreeMap<Option<CanonicalKey>, usize> = BTreeMap::new();
        let kept = (0..self.entries.len()).filter(|&i| {
            let count =
                taken.entry(self.entries[i].molecule.scaffold().map(|scaffold| scaffold.key())).or_default();
            *count += 1;
            *count <= per_scaffold
        });
        self.keeping(kept)
    }

    fn keeping(&self, kept: impl IntoIterator<Item = usize>) -> Self {
        let entries = kept.into_iter().map(|i| self.entries[i].clone()).collect();
        Self { columns: self.columns.clone(), entries }
    }

    /// Returns the ranking as CSV. The columns are the SMILES (which contain no commas), the log-scores and
    /// the further columns.
    #[must_use]
    pub fn csv(&self) -> String {
        let columns = self.columns.iter().map(String::as_str);
        let mut out = ["smiles", "log_score"].into_iter().chain(columns).collect::<Vec<_>>().join(",") + "\n";
        for entry in &self.entries {
            let numbers: String = entry.numbers().map(|value| format!(",{value}")).collect();
            out += &format!("{}{numbers}\n", entry.molecule.smiles());
        }
        out
    }

    /// Returns the ranking as an SD file. The data items of a molecule are its SMILES, its log-score and
    /// its values in the further columns. The title of a molecule is its rank, which begins at 1.
    ///
    /// # Errors
    /// [`MoleculeError::Molfile`] for the first molecule that can't be written; see [`Molecule::sdf_record`].
    pub fn sdf(&self) -> std::result::Result<String, MoleculeError> {
        self.entries.iter().enumerate().map(|(k, entry)| self.record(entry, k + 1)).collect()
    }

    fn record(&self, entry: &Ranked, number: usize) -> std::result::Result<String, MoleculeError> {
        let smiles = entry.molecule.smiles();
        let score = entry.log_score.to_string();
        let values: Vec<String> = entry.values.iter().map(ToString::to_string).collect();
        let mut data = vec![("smiles", smiles.as_str()), ("log_score", score.as_str())];
        data.extend(
            self.columns.iter().zip(&values).map(|(column, value)| (column.as_str(), value.as_str())),
        );
        entry.molecule.sdf_record(&number.to_string(), &data)
    }

    /// Returns a sheet with pictures of the first `shown` molecules. The SMILES and the log-score are below
    /// each picture.
    #[must_use]
    pub fn sheet(&self, title: &str, shown: usize) -> PictureSheet {
        self.entries.iter().take(shown).fold(PictureSheet::new(title, SIDE), |sheet, entry| {
            let caption = [entry.molecule.smiles(), format!("log score {:.2}", entry.log_score)];
            sheet.cell(entry.molecule.drawing(SIDE, SIDE), caption)
        })
    }

    /// Returns the first `shown` molecules as an HTML table for notebooks. The table has pictures, SMILES,
    /// log-scores and the further columns.
    ///
    /// # Errors
    /// [`Error::Draw`] for a picture that can't be drawn.
    pub fn html(&self, shown: usize) -> Result<String> {
        let mut out = String::from("<table><thead><tr><th></th><th>SMILES</th><th>log score</th>");
        for column in &self.columns {
            out.extend(["<th>", &escaped(column), "</th>"]);
        }
        out.push_str("</tr></thead><tbody>");
        for entry in self.entries.iter().take(shown) {
            let picture = entry.molecule.drawing(SIDE, SIDE).to_svg()?;
            let smiles = escaped(&entry.molecule.smiles());
            out += &format!("<tr><td>{picture}</td><td><code>{smiles}</code></td>");
            let numbers: String = entry.numbers().map(|value| format!("<td>{value:.4}</td>")).collect();
            out += &format!("{numbers}</tr>");
        }
        out.push_str("</tbody></table>");
        if self.entries.len() > shown {
            out += &format!("<p>the first {shown} of {}</p>", self.entries.len());
        }
        Ok(out)
    }

    /// Writes three files to a folder: `molecules.csv`, `molecules.sdf` (without molecules that can't be
    /// written as a molfile) and `molecules.svg` (the first `shown` molecules). If molecules are missing in
    /// the SD file, the function returns their number and the reason for the first of them; otherwise it
    /// returns `None`.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Draw`] for files that can't be written.
    pub fn write(
        &self,
        folder: impl AsRef<Path>,
        title: &str,
        shown: usize,
    ) -> Result<Option<(usize, MoleculeError)>> {
        let folder = folder.as_ref();
        let put =
            |path: &Path, text: String| std::fs::write(path, text).map_err(|source| Error::io(path, source));
        std::fs::create_dir_all(folder).map_err(|source| Error::io(folder, source))?;
        put(&folder.join("molecules.csv"), self.csv())?;
        let mut sdf = String::new();
        let mut left_out = None;
        for (k, entry) in self.entries.iter().enumerate() {
            match self.record(entry, k + 1) {
                Ok(record) => sdf.push_str(&record),
                Err(error) => left_out.get_or_insert((0, error)).0 += 1,
            }
        }
        put(&folder.join("molecules.sdf"), sdf)?;
        self.sheet(title, shown).write(folder.join("molecules.svg"))?;
        Ok(left_out)
    }
}

/// Escapes the characters `&`, `<` and `>` of a text for HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
