//! Molecules as files: a drawn sheet, and an SD file.

use std::path::Path;

use gfn::{Error, Result};
use gfn_molecules::{Molecule, MoleculeError};
use gfn_plot::PictureSheet;

/// The side of a drawn molecule.
const SIDE: f64 = 200.0;

/// A molecule, two lines to be written below it, and what the SD file says of it.
pub(crate) struct Entry<'a> {
    pub(crate) molecule: &'a Molecule,
    /// What the SD file calls it; its number if that is empty.
    pub(crate) title: String,
    pub(crate) caption: [String; 2],
    pub(crate) data: Vec<(&'a str, String)>,
}

impl Entry<'_> {
    /// The record of an SD file. A title that it has no room for is kept as a data item, in favour of the number.
    fn record(&self, number: usize) -> std::result::Result<String, MoleculeError> {
        let mut data: Vec<_> = self.data.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let number = number.to_string();
        if self.title.is_empty() {
            return self.molecule.sdf_record(&number, &data);
        }
        self.molecule.sdf_record(&self.title, &data).or_else(|_| {
            data.push(("name", &self.title));
            self.molecule.sdf_record(&number, &data)
        })
    }
}

/// Writes `molecules.sdf` with all that it can hold, and says how many it can't; writes `molecules.svg` and `molecules.png` with the first `shown`.
pub(crate) fn write_molecules(folder: &Path, title: &str, entries: &[Entry<'_>], shown: usize) -> Result<()> {
    let io = |path: &Path, source| Error::io(path, source);
    std::fs::create_dir_all(folder).map_err(|source| io(folder, source))?;
    let (mut sheet, mut sdf, mut left_out) = (PictureSheet::new(title, SIDE), String::new(), Vec::new());
    for (k, entry) in entries.iter().enumerate() {
        match entry.record(k + 1) {
            Ok(record) => sdf.push_str(&record),
            Err(error) => left_out.push(error),
        }
        if k < shown {
            sheet = sheet.cell(entry.molecule.drawing(SIDE, SIDE), entry.caption.clone());
        }
    }
    let path = folder.join("molecules.sdf");
    if let Some(first) = left_out.first() {
        eprintln!("{} of {} molecules aren't in {}: {first}", left_out.len(), entries.len(), path.display());
    }
    std::fs::write(&path, sdf).map_err(|source| io(&path, source))?;
    sheet.write(folder.join("molecules.svg"))?;
    sheet.write(folder.join("molecules.png"))
}
