//! Canonical SMILES of molecules: reads one SMILES a line, writes the canonical one, the one without stereochemistry, a text of the
//! molecule's key, and how many stereoisomers it stands for; or what is wrong. With a path, it writes an SD file, too.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufWriter, Write};

use gfn_molecules::Molecule;

fn main() -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut file = std::env::args().nth(1).map(File::create).transpose()?.map(BufWriter::new);
    for line in io::stdin().lines() {
        let line = line?;
        let smiles = line.split([' ', '\t', ',']).next().unwrap_or_default();
        match Molecule::from_smiles(smiles) {
            Ok(molecule) => {
                let mut hasher = DefaultHasher::new();
                molecule.key().hash(&mut hasher);
                let flat = molecule.without_stereo().smiles();
                if let Some(file) = &mut file {
                    match molecule.sdf_record("", &[("smiles", smiles)]) {
                        Ok(record) => write!(file, "{record}")?,
                        Err(error) => eprintln!("{smiles}: {error}"),
                    }
                }
                let isomers = molecule.n_stereoisomers().map_or("many".to_owned(), |isomers| isomers.to_string());
                writeln!(out, "{smiles}\t{}\t{flat}\t{:016x}\t{isomers}", molecule.smiles(), hasher.finish())?;
            }
            Err(error) => writeln!(out, "{smiles}\t\t{error}")?,
        }
    }
    file.as_mut().map_or(Ok(()), Write::flush)?;
    out.flush()
}
