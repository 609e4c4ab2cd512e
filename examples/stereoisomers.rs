//! Random stereoisomers: walks of uniform moves through molecules of up to so many atoms, as a CSV file of canonical SMILES:
//! `cargo run --release --example stereoisomers -- FILE NUMBER ATOMS`.

use std::fs::{File, create_dir_all};
use std::io::{BufWriter, Write};
use std::path::Path;

use gfn::policy::UniformPolicy;
use gfn::rollout::Sampler;
use gfn::{Error, Result, Rng};
use gfn_molecules::{MoleculeConfig, MoleculeEnv};

/// Walks that are drawn at once.
const BATCH: usize = 500;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let path = args.next().unwrap_or("out/stereoisomers.csv".into());
    let mut number = |otherwise| match args.next() {
        Some(text) => text.parse().map_err(|_| Error::config("a number of molecules or atoms", text, "a whole number")),
        None => Ok(otherwise),
    };
    let (n, max_atoms) = (number(1_000)?, number(10)?);
    let molecules = MoleculeEnv::new(MoleculeConfig { stereo: true, ..MoleculeConfig::new(max_atoms) })?;
    let env = molecules.env().clone();
    let mut rng = Rng::seeded(0);
    let failed = |source| Error::io(path.clone(), source);
    Path::new(&path).parent().map_or(Ok(()), create_dir_all).map_err(failed)?;
    let mut out = BufWriter::new(File::create(&path).map_err(failed)?);
    writeln!(out, "smiles").map_err(failed)?;
    let mut marks = 0;
    for first in (0..n).step_by(BATCH) {
        let walks = Sampler::new(&env, &UniformPolicy).forward(BATCH.min(n - first), &mut rng)?;
        for graph in walks.terminal_states().graphs() {
            let molecule = molecules.codec().molecule(graph)?;
            marks += molecule.marks().len();
            writeln!(out, "{}", molecule.smiles()).map_err(failed)?;
        }
    }
    out.flush().map_err(failed)?;
    println!("{n} molecules with {marks} marks of stereochemistry in {path}");
    Ok(())
}
