//! The molecules of a file of SMILES, one per line with a name behind it if there is one, as a table, a drawn sheet and an SD file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Parser;
use gfn::{Error, Result};
use gfn_molecules::{Molecule, MoleculeScore, Ranking};

use super::outputs::{read_score, with_properties, write_ranking};
use crate::run::lines::print;

/// Molecules on the sheet; the SD file and the table have them all.
const SHOWN: usize = 96;

/// Draw the different molecules of a file of SMILES, as molecules.svg, .png, .sdf and .csv
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// File with a SMILES per line, and a name behind it if you like
    file: PathBuf,
    /// Folder to write to
    folder: PathBuf,
    /// TOML file of a score: the best molecule comes first, and the table has all properties
    #[arg(long)]
    score: Option<PathBuf>,
    /// Pass over lines that are no molecule, and say how many there were
    #[arg(long)]
    skip: bool,
}

pub(crate) fn run(Args { file, folder, score, skip }: &Args) -> Result<()> {
    let score = score.as_deref().map(read_score).transpose()?;
    let text = std::fs::read_to_string(file).map_err(|source| Error::io(file.clone(), source))?;
    let (mut molecules, mut names, mut skipped) = (Vec::new(), BTreeMap::new(), 0);
    for (k, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let (smiles, name) = line.trim().split_once([' ', '\t']).unwrap_or((line.trim(), ""));
        match Molecule::from_smiles(smiles) {
            Ok(molecule) => {
                names.entry(molecule.key()).or_insert(name);
                molecules.push(molecule);
            }
            Err(_) if *skip => skipped += 1,
            Err(error) => return Err(Error::parse(k + 1, error, "a SMILES, and a name behind it if you like")),
        }
    }
    let log_scores =
        score.as_ref().map_or_else(|| Ok(vec![0.0; molecules.len()]), |score| score.log_scores(&molecules))?;
    let ranking = with_properties(Ranking::new(&molecules, &log_scores)?, score.as_ref())?;
    let ranking = ranking.named(|molecule| names.get(&molecule.key()).copied().unwrap_or_default().to_owned());
    write_ranking(folder, "", &ranking, SHOWN)?;
    let n = ranking.entries().len();
    print(format_args!(
        "{n} different molecules of {} lines in {}, {skipped} skipped",
        molecules.len(),
        folder.display()
    ))?;
    Ok(())
}
