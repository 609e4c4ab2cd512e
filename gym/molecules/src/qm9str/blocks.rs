use gfn::{Error, Result};

use super::env::LENGTH;
use crate::{AtomSpec, BondOrder, Molecule, ValenceTable};

/// A building block of strings: a small molecule with two attachment atoms, which may be the same atom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// The SMILES of the molecule.
    pub smiles: &'static str,
    /// The index of the atom that is bonded to the block on the left.
    pub left: usize,
    /// The index of the atom that is bonded to the block on the right.
    pub right: usize,
}

const fn block(smiles: &'static str, left: usize, right: usize) -> Block {
    Block { smiles, left, right }
}

/// The eleven blocks of the task (`data/qm9str_blocks.json`). Strings refer to blocks by their indices in
/// this array.
pub const BLOCKS: [Block; 11] = [
    block("C", 0, 0),
    block("O", 0, 0),
    block("N", 0, 0),
    block("CF", 0, 0),
    block("C=O", 0, 0),
    block("C=C", 0, 1),
    block("C#C", 0, 1),
    block("c1ccccc1", 0, 3),
    block("C1CCCCC1", 0, 3),
    block("C1CCNC1", 0, 2),
    block("CCC", 0, 0),
];

/// Returns the molecule that a string of blocks represents. Each block is bonded to the block on its left
/// by a single bond.
///
/// ```
/// use gfn_molecules::qm9str::molecule;
/// assert_eq!(molecule(&[0, 1, 5])?.formula(), "C3H6O");
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Config`] for an empty string, for more than five blocks, and for an index that isn't that of a
/// block.
pub fn molecule(blocks: &[u16]) -> Result<Molecule> {
    let known: Option<Vec<Block>> = blocks.iter().map(|&id| BLOCKS.get(usize::from(id)).copied()).collect();
    let known = known.filter(|known| (1..=LENGTH).contains(&known.len())).ok_or_else(|| {
        Error::config("blocks", format!("{blocks:?}"), "one to five numbers, each below 11")
    })?;
    let mut atoms = Vec::new();
    let mut bonds = Vec::new();
    let mut stem = None;
    for Block { smiles, left, right } in known {
        let first = atoms.len();
        let part = Molecule::from_smiles(smiles)?;
        atoms.extend(part.atoms().iter().map(|atom| AtomSpec::from_element(atom.element)));
        bonds.extend(part.bonds().iter().map(|bond| (first + bond.a, first + bond.b, bond.order)));
        bonds.extend(stem.map(|stem| (stem, first + left, BondOrder::Single)));
        stem = Some(first + right);
    }
    Ok(Molecule::new(&ValenceTable::default(), &atoms, &bonds)?)
}
