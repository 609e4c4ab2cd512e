//! The molecules of a file of SMILES, one per line with a name behind it if there is one, as a drawn sheet and an SD file.

#[path = "cli/molecules/files.rs"]
#[allow(unreachable_pub, reason = "other examples use it too")]
mod molecules;

use std::path::PathBuf;

use gfn::{Error, Result};
use gfn_gym::molecule::Molecule;
use molecules::{Entry, write_molecules};

/// Molecules on the sheet; the SD file has them all.
const SHOWN: usize = 96;

fn main() -> Result<()> {
    let mut flags = std::env::args().skip(1).map(PathBuf::from);
    let (Some(path), Some(folder)) = (flags.next(), flags.next()) else {
        let (got, expected) = ("less".to_owned(), "a file of SMILES and a folder to write to");
        return Err(Error::Config { setting: "what was given", got, expected });
    };
    let text = std::fs::read_to_string(&path).map_err(|source| Error::Io { path: path.clone(), source })?;
    let mut read = Vec::new();
    for (k, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let (smiles, name) = line.trim().split_once([' ', '\t']).unwrap_or((line.trim(), ""));
        let expected = "a SMILES, and a name behind it if you like";
        let molecule = Molecule::from_smiles(smiles).map_err(|error| Error::Parse {
            line: k + 1,
            problem: error.to_string(),
            expected,
        })?;
        read.push((molecule, smiles, name));
    }
    let entries: Vec<_> = read
        .iter()
        .map(|(molecule, smiles, name)| Entry {
            molecule,
            title: (*name).to_owned(),
            caption: [(*name).to_owned(), (*smiles).to_owned()],
            data: vec![("smiles", (*smiles).to_owned())],
        })
        .collect();
    write_molecules(&folder, "", &entries, SHOWN)?;
    println!("{} molecules in {}", entries.len(), folder.display());
    Ok(())
}
