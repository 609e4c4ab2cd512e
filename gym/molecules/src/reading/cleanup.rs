use crate::{LeftOut, Molecule, MoleculeError, ValenceTable};

/// The changes that are made to a SMILES of a data set before it is converted into a molecule. By default,
/// no changes are made, so salts and isotopes are errors, as in [`Molecule::read`].
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
    /// `true` if only the largest of several parts (`.`), such as those of a salt, is kept. This is the
    /// part with the most atoms, including hydrogens. If several parts have the most atoms, the heaviest of
    /// them is kept. If they are also equally heavy, the first in the alphabetical order of the canonical
    /// SMILES is kept. (RDKit's `LargestFragmentChooser` uses RDKit's canonical SMILES in the last case.)
    pub largest_part: bool,
    /// `true` if isotope labels are removed. Deuterium becomes a hydrogen, which is part of its neighbour's
    /// hydrogen count.
    pub without_isotopes: bool,
    /// `true` if charges that protons can neutralise are removed, as by RDKit's `Uncharger`. Acids and other
    /// anions gain a proton (nitrate and chlorate, too), and cations lose protons. For each cation that has
    /// no proton to lose, one anion keeps its charge, preferably the anion of an acid. If there are fewer
    /// anions than such cations, all anions gain a proton. Charges next to opposite charges stay (nitro
    /// groups, N-oxides).
    pub neutral: bool,
}

/// A molecule, and a record of the changes that were made to its SMILES.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cleaned {
    /// The molecule that results from the changed SMILES.
    pub molecule: Molecule,
    /// The counts of the stereo marks and of the atom-map numbers that were ignored.
    pub left_out: LeftOut,
    /// The number of parts of the SMILES that were removed.
    pub parts: usize,
    /// The number of isotope labels that were removed.
    pub isotopes: usize,
    /// The number of atoms whose charge was changed.
    pub charges: usize,
}

impl Cleanup {
    /// A cleanup that makes all three changes.
    pub const ALL: Self = Self { largest_part: true, without_isotopes: true, neutral: true };

    /// Makes these changes to a SMILES, and reads the result as a molecule.
    ///
    /// # Errors
    /// Errors of [`Molecule::read`]. If the text has several parts, the largest part is kept only if every
    /// other part can be read, is a single atom (a metal ion), or is a hydrogen molecule. Otherwise, a
    /// small part could replace a large part that can't be read.
    pub fn read(&self, smiles: &str) -> Result<Cleaned, MoleculeError> {
        let (without, isotopes) =
            if self.without_isotopes { without_isotopes(smiles) } else { (smiles.to_owned(), 0) };
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

/// Removes the isotope labels, which are the numbers at the beginning of brackets. Returns the new text and
/// the number of removed labels.
fn without_isotopes(smiles: &str) -> (String, usize) {
    let mut out = String::with_capacity(smiles.len());
    let mut count = 0;
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
    // This initial value is never returned: if no part of the text can be read, the error of a part replaces
    // it.
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
