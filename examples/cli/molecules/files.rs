//! Molecules as files: a drawn sheet, and an SD file.

use std::path::Path;

use gfn::report::PictureSheet;
use gfn::{Error, Result};
use gfn_gym::molecule::Molecule;

/// The side of a drawn molecule.
const SIDE: f64 = 200.0;

/// A molecule, two lines to be written below it, and what the SD file says of it.
pub struct Entry<'a> {
    pub molecule: &'a Molecule,
    pub caption: [String; 2],
    pub data: Vec<(&'a str, String)>,
}

/// Writes `molecules.sdf` with all of them, and `molecules.svg` and `molecules.png` with the first `shown`.
pub fn write_molecules(folder: &Path, title: &str, entries: &[Entry<'_>], shown: usize) -> Result<()> {
    let io = |path: &Path, source| Error::Io { path: path.to_owned(), source };
    std::fs::create_dir_all(folder).map_err(|source| io(folder, source))?;
    let (mut sheet, mut sdf) = (PictureSheet::new(title, SIDE), String::new());
    for (k, entry) in entries.iter().enumerate() {
        let data: Vec<_> = entry.data.iter().map(|(name, value)| (*name, value.as_str())).collect();
        sdf.push_str(&entry.molecule.sdf_record(&(k + 1).to_string(), &data)?);
        if k < shown {
            sheet = sheet.cell(entry.molecule.drawing(SIDE, SIDE), entry.caption.clone());
        }
    }
    let path = folder.join("molecules.sdf");
    std::fs::write(&path, sdf).map_err(|source| io(&path, source))?;
    sheet.write(folder.join("molecules.svg"))?;
    sheet.write(folder.join("molecules.png"))
}
