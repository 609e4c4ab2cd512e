use super::Element;

/// The reason why a text or a list of atoms and bonds isn't a valid molecule, or why a molecule can't be
/// written. Indices of atoms begin at 0 and follow the order of the text or list.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MoleculeError {
    /// The text isn't a SMILES, or uses a feature that the reader doesn't support.
    #[error("{smiles:?} at character {position}: {problem}")]
    Syntax {
        /// The text that was given as a SMILES.
        smiles: String,
        /// The position at which reading stopped, as a byte offset that begins at 0.
        position: usize,
        /// A description of the problem.
        problem: &'static str,
    },
    /// The text has a feature that a [`Molecule`](super::Molecule) can't store.
    #[error("{smiles:?} at character {position} has {what}, which can't be read")]
    NotRead {
        /// The text that was given as a SMILES.
        smiles: String,
        /// The position of the feature in the text, as a byte offset that begins at 0.
        position: usize,
        /// The feature that a molecule can't store.
        what: NotRead,
    },
    /// The molecule has more than [`MAX_ATOMS`](super::Molecule::MAX_ATOMS) heavy atoms.
    #[error("the molecule has more than {} atoms: give smaller molecules", super::Molecule::MAX_ATOMS)]
    TooLarge,
    /// The bonds and hydrogens of an atom don't fit its valences. Their sum must be at most the largest of
    /// its valences. If the atom's hydrogens are given in brackets, the sum must be exactly one of its
    /// valences.
    #[error("atom {atom} ({}, charge {charge}) has valence {valence}, but the allowed valences are \
        {allowed:?}: correct its bonds or hydrogens", element.symbol())]
    Valence {
        /// The index of the atom.
        atom: usize,
        /// The element of the atom.
        element: Element,
        /// The charge of the atom.
        charge: i8,
        /// The sum of the atom's bond orders and hydrogens.
        valence: u8,
        /// The valences that the `ValenceTable` in use allows for this atom.
        allowed: Vec<u8>,
    },
    /// The aromatic bonds of the molecule can't be replaced by alternating single and double bonds.
    #[error(
        "the aromatic atoms {atoms:?} have no alternating single and double bonds: is a hydrogen missing, as \
         in [nH]?"
    )]
    Kekulise {
        /// The indices of the aromatic atoms that would need a double bond but can't have one.
        atoms: Vec<usize>,
    },
    /// An atom is written as aromatic, but it isn't in a ring.
    #[error("atom {atom} is written as aromatic, but is in no ring")]
    NotInRing {
        /// The index of the atom.
        atom: usize,
    },
    /// A bond is written as aromatic (`:`), but it isn't in a ring.
    #[error("the bond between atoms {a} and {b} is written as aromatic, but is in no ring")]
    AromaticBond {
        /// The index of the bond's first atom.
        a: usize,
        /// The index of the bond's second atom.
        b: usize,
    },
    /// A bond joins an atom with itself or with a missing atom, or is the second bond between two atoms.
    #[error(
        "the bond between atoms {a} and {b} joins an atom with itself, is the second bond between them, or \
         names an atom that doesn't exist"
    )]
    Bond {
        /// The index of the bond's first atom.
        a: usize,
        /// The index of the bond's second atom.
        b: usize,
    },
    /// The molecule has no atoms, or it has an atom that isn't connected to the first atom.
    #[error(
        "a molecule needs one or more atoms that bonds connect; atom {atom} is missing, or no bond connects \
         it to the atoms before it"
    )]
    Disconnected {
        /// The index of the first atom that isn't connected to atom 0.
        atom: usize,
    },
    /// The marks of stereochemistry contradict each other, or a mark belongs to an atom or bond that can't
    /// have a mark.
    #[error("a molecule can't have {problem}")]
    Stereo {
        /// A description of the invalid marks.
        problem: String,
    },
    /// The molecule, its title or its data can't be written to a molfile or an SD file.
    #[error("a molfile can't hold {problem}")]
    Molfile {
        /// A description of what the file can't store, and of what the file format allows.
        problem: String,
    },
}

/// A feature of SMILES that a [`Molecule`](super::Molecule) can't store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotRead {
    /// Several parts without a bond between them (`.`), as in salts.
    #[error("several parts (`.`)")]
    Parts,
    /// An element other than B C N O F Si P S Cl Se Br I, usually a metal.
    #[error("an element beyond B C N O F Si P S Cl Se Br I")]
    Element,
    /// An isotope of an element, such as `[13C]`.
    #[error("an isotope")]
    Isotope,
    /// A hydrogen atom that isn't bonded to exactly one heavy atom. A molecule stores hydrogens only as
    /// counts on heavy atoms.
    #[error("a hydrogen without exactly one heavy neighbour")]
    HydrogenAtom,
    /// An atom of unknown element (`*`), such as an attachment point in `[*:1]` or `[14*]`.
    #[error("an unknown atom (`*`)")]
    UnknownAtom,
    /// A quadruple bond (`$`).
    #[error("a quadruple bond (`$`)")]
    QuadrupleBond,
    /// A dative bond (`->`, `<-`).
    #[error("a dative bond")]
    DativeBond,
}

impl MoleculeError {
    /// Returns a description of the expected input, for error messages.
    fn expected(&self) -> &'static str {
        match self {
            Self::TooLarge => "a molecule of at most `Molecule::MAX_ATOMS` atoms",
            Self::Kekulise { .. } => "aromatic atoms that double bonds can join in pairs",
            Self::Bond { .. } => "bonds between different atoms of the molecule, at most one for each pair",
            Self::Stereo { .. } => {
                "marks that agree with each other, one for each element of `Molecule::stereo_elements`"
            }
            _ => {
                "a SMILES, or the atoms and bonds, of one connected molecule of known elements, with \
                 valences of the valence table, without radicals and isotopes, and with aromatic atoms and \
                 bonds only in rings"
            }
        }
    }
}

impl From<MoleculeError> for gfn::Error {
    fn from(error: MoleculeError) -> Self {
        let (got, expected) = match &error {
            MoleculeError::Molfile { problem } => (
                format!("not writable as a molfile, which can't hold {problem}"),
                "at most 999 atoms and 999 bonds, a title of one line, and data items of one line with plain \
                 names",
            ),
            error => (format!("not valid ({error})"), error.expected()),
        };
        Self::Config { setting: "the molecule", got, expected }
    }
}
