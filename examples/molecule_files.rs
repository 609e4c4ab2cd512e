//! Files of molecules, SMILES or SD: `cargo run --release --example molecule_files -- FILE...` says of each what was read, what was skipped
//! and why, and which pieces its molecules fall into when rings are cut from what is between them.

use std::error::Error;

use gfn_molecules::fragments::Vocabulary;
use gfn_plot::Table;

fn main() -> Result<(), Box<dyn Error>> {
    let mut paths: Vec<String> = std::env::args().skip(1).collect();
    if paths.is_empty() {
        paths.push("examples/data/molecules.smi".into());
    }
    for path in paths {
        let vocabulary = Vocabulary::read(&path)?;
        let mut table = Table::new(["fragment and its stems", "occurrences"]);
        for counted in vocabulary.fragments().iter().take(10) {
            table.push([counted.fragment.to_string().into(), counted.count.into()]);
        }
        println!("{path}: {}\n{} pieces:\n{table}", vocabulary.report(), vocabulary.fragments().len());
        for skipped in vocabulary.report().skipped.values().flat_map(|skipped| &skipped.examples) {
            println!("line {}: {}", skipped.line, skipped.error);
        }
    }
    Ok(())
}
