use crate::{LeftOut, Molecule, MoleculeError, ValenceTable};

/// The changes that are made to a text of a data set before it is read as a molecule. None by default: then
/// salts and isotopes are refused, as by [`Molecule::read`].
///
/// ```
/// use gfn_molecules::Cleanup;
/// let cleaned = Cleanup::ALL.read("[Na+].[13CH3]C(=O)[O-]")?;
/// assert_eq!(cleaned.molecule.formula(), "C2H4O2");
/// assert_eq!((cleaned.parts, cleaned.isotopes, cleaned.charges), (1, 1, 1));
/// assert!(Cleanup::default().read("[Na+].CC(=O)[O-]").is_err());
/// # Ok::<(), gfn_molecules::MoleculeError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Cleanup {
    /// `true` if of several parts (`.`), such as those of a salt, the largest is kept: that of most atoms
    /// with hydrogens, then of most weight, then of the first canonical SMILES. (RDKit's
    /// `LargestFragmentChooser` breaks the last tie by its own canonical SMILES.)
    pub largest_part: bool,
    /// `true` if an isotope is read as its element. Deuterium becomes a hydrogen, which is counted on its
    /// neighbour.
    pub without_isotopes: bool,
    /// `true` if charges that are a matter of protons are taken away, as RDKit's `Uncharger` does: acids and
    /// other anions get their proton (nitrate and chlorate, too), cations lose theirs. As many anions stay as
    /// there are cations without a proton, those of acids rather than others (all get one where there are
    /// fewer). Charges beside opposite ones stay (nitro groups, N-oxides).
    pub neutral: bool,
}

/// A molecule, and what was changed to get it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cleaned {
    /// The molecule.
    pub molecule: Molecule,
    /// Things that it has no place for.
    pub left_out: LeftOut,
    /// The number of other parts.
    pub parts: usize,
    /// The number of isotopes that were read as their elements.
    pub isotopes: usize,
    /// The number of atoms whose charge was changed.
    pub charges: usize,
}

impl Cleanup {
    /// All of these changes.
    pub const ALL: Self = Self { largest_part: true, without_isotopes: true, neutral: true };

    /// Reads a SMILES with these changes.
    ///
    /// # Errors
    /// Those of [`Molecule::read`]. Of several parts the largest is kept only if all others are molecules or
    /// single atoms (metal ions), or hydrogen: a large part that isn't read must not make way for a small
    /// one.
    pub fn read(&self, smiles: &str) -> Result<Cleaned, MoleculeError> {
        let (without, isotopes) = if self.without_isotopes { without_isotopes(smiles) } else { (smiles.to_owned(), 0) };
        let table = ValenceTable::default();
        let (mut molecule, left_out) = match Molecule::read_noting(&table, &without) {
            Err(_) if self.largest_part && without.contains('.') => largest(&table, &without)?,
            other => other?,
        };
        let charges = if self.neutral { molecule.neutralise()? } else { 0 };
        let parts = if self.largest_part { without.matches('.').count() } else { 0 };
        Ok(Cleaned { molecule, left_out, parts, isotopes, charges })
    }
}

/// The text without the numbers that stand first in brackets, and how many these were.
fn without_isotopes(smiles: &str) -> (String, usize) {
    let (mut out, mut count) = (String::with_capacity(smiles.len()), 0);
    let mut pieces = smiles.split('[');
    out.extend(pieces.next());
    for piece in pieces {
        let rest = piece.trim_start_matches(|c: char| c.is_ascii_digit());
        count += usize::from(rest.len() < piece.len());
        out.push('[');
        out.push_str(rest);
    }
    (out, count)
}

fn largest(table: &ValenceTable, smiles: &str) -> Result<(Molecule, LeftOut), MoleculeError> {
    let mut best: Option<(Molecule, LeftOut)> = None;
    // A text has a part at least: another error takes the place of this one.
    let mut refused = MoleculeError::Disconnected { atom: 0 };
    for part in smiles.split('.') {
        match Molecule::read_noting(table, part) {
            Ok(read) if best.as_ref().is_none_or(|best| is_larger(&read.0, &best.0)) => best = Some(read),
            Ok(_) => {}
            Err(error) if is_single_atom(part) => refused = error,
            Err(error) => return Err(error),
        }
    }
    best.ok_or(refused)
}

fn is_single_atom(part: &str) -> bool {
    part == "[H][H]" || (part.starts_with('[') && part.find(']') == part.len().checked_sub(1))
}

fn is_larger(one: &Molecule, other: &Molecule) -> bool {
    let atoms = |molecule: &Molecule| molecule.atoms().len() + molecule.n_hydrogens();
    let by_size = atoms(one).cmp(&atoms(other)).then(one.weight().total_cmp(&other.weight()));
    by_size.then_with(|| other.smiles().cmp(&one.smiles())).is_gt()
}
