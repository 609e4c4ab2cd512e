//! The molecules of a file of SMILES, one per line with a name behind it if there is one, as a drawn sheet and an SD file.

use std::path::PathBuf;

use clap::Parser;
use gfn::{Error, Result};
use gfn_molecules::Molecule;

use super::outputs::{Drawn, write_molecules};

/// Molecules on the sheet; the SD file has them all.
const SHOWN: usize = 96;

/// Draw the molecules of a file of SMILES, as molecules.svg, molecules.png and molecules.sdf
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// File with a SMILES per line, and a name behind it if you like
    file: PathBuf,
    /// Folder to write to
    folder: PathBuf,
}

pub(crate) fn run(Args { file, folder }: &Args) -> Result<()> {
    let text = std::fs::read_to_string(file).map_err(|source| Error::io(file.clone(), source))?;
    let mut read = Vec::new();
    for (k, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let (smiles, name) = line.trim().split_once([' ', '\t']).unwrap_or((line.trim(), ""));
        let expected = "a SMILES, and a name behind it if you like";
        let molecule = Molecule::from_smiles(smiles).map_err(|error| Error::parse(k + 1, error, expected))?;
        read.push((molecule, smiles, name));
    }
    let entries: Vec<_> = read
        .iter()
        .map(|(molecule, smiles, name)| Drawn {
            molecule,
            title: (*name).to_owned(),
            caption: [(*name).to_owned(), (*smiles).to_owned()],
            data: vec![("smiles", (*smiles).to_owned())],
        })
        .collect();
    write_molecules(folder, "", &entries, SHOWN)?;
    println!("{} molecules in {}", entries.len(), folder.display());
    Ok(())
}
