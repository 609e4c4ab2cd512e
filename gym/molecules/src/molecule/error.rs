use super::Element;

/// An error that tells why a text isn't a molecule. Atoms are counted from 0, in the order in which they are
/// written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MoleculeError {
    /// A text that is no SMILES, or has what isn't read.
    #[error("{smiles:?} at character {position}: {problem}")]
    Syntax {
        /// The text.
        smiles: String,
        /// The character at which reading stopped, from 0.
        position: usize,
        /// The mistake.
        problem: &'static str,
    },
    /// A text with something that a [`Molecule`](super::Molecule) has no place for.
    #[error("{smiles:?} at character {position} has {what}, which isn't read")]
    NotRead {
        /// The text.
        smiles: String,
        /// Its place in the text, from 0.
        position: usize,
        /// The thing found.
        what: NotRead,
    },
    /// More atoms than a molecule can have here.
    #[error("a molecule of more than {} atoms: give smaller ones", super::Molecule::MAX_ATOMS)]
    TooLarge,
    /// An atom with more bonds and hydrogens than it can have, or (brackets fix the hydrogens) with too few.
    #[error("atom {atom} ({}, charge {charge}) has valence {valence}, which isn't one of {allowed:?} or filled up to one", element.symbol())]
    Valence {
        /// The atom.
        atom: usize,
        /// Its element.
        element: Element,
        /// Its charge.
        charge: i8,
        /// Bond orders and hydrogens.
        valence: u8,
        /// The values that are accepted.
        allowed: Vec<u8>,
    },
    /// Aromatic atoms whose bonds can't be written as alternating single and double bonds.
    #[error(
        "the aromatic atoms {atoms:?} have no alternating single and double bonds: is a hydrogen missing, as in [nH]?"
    )]
    Kekulise {
        /// The atoms left without a partner.
        atoms: Vec<usize>,
    },
    /// An atom that is written as aromatic, outside of a ring.
    #[error("atom {atom} is written as aromatic, but is in no ring")]
    NotInRing {
        /// The atom.
        atom: usize,
    },
    /// A bond that is written as aromatic (`:`), outside of a ring.
    #[error("the bond between atoms {a} and {b} is written as aromatic, but is in no ring")]
    AromaticBond {
        /// An atom.
        a: usize,
        /// The other.
        b: usize,
    },
    /// A bond of an atom with itself, with an atom that there isn't, or a second one between two atoms.
    #[error(
        "the bond between atoms {a} and {b} is one of an atom with itself, a second one, or has an atom that there isn't"
    )]
    Bond {
        /// An atom.
        a: usize,
        /// The other.
        b: usize,
    },
    /// No atom, or atoms that no bonds join to the first.
    #[error("a molecule is one or more atoms joined by bonds; atom {atom} is missing or joined to nothing before it")]
    Disconnected {
        /// The first that isn't joined to atom 0.
        atom: usize,
    },
    /// Marks of stereochemistry that contradict each other, or are of what can't have any.
    #[error("a molecule can't have {problem}")]
    Stereo {
        /// The marks.
        problem: String,
    },
    /// A property that a molfile or an SD file has no room for.
    #[error("a molfile can't hold {problem}")]
    Molfile {
        /// The thing that it can't hold, and those that it can.
        problem: String,
    },
}

/// Things that a SMILES can say and a [`Molecule`](super::Molecule) can't hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotRead {
    /// Several parts without a bond between them (`.`), as of salts.
    #[error("several parts (`.`)")]
    Parts,
    /// An element beyond B C N O F Si P S Cl Se Br I: a metal, mostly.
    #[error("an element beyond B C N O F Si P S Cl Se Br I")]
    Element,
    /// An isotope.
    #[error("an isotope")]
    Isotope,
    /// A hydrogen that isn't joined to exactly one heavy atom, which could count it.
    #[error("a hydrogen without exactly one heavy neighbour")]
    HydrogenAtom,
    /// An atom that may be any (`*`), such as the place of an attachment (`[*:1]`, `[14*]`).
    #[error("an unknown atom (`*`)")]
    UnknownAtom,
    /// A quadruple bond (`$`).
    #[error("a quadruple bond (`$`)")]
    QuadrupleBond,
    /// A dative bond (`->`, `<-`).
    #[error("a dative bond")]
    DativeBond,
}

impl From<MoleculeError> for gfn::Error {
    fn from(error: MoleculeError) -> Self {
        let (got, expected) = match &error {
            MoleculeError::Molfile { problem } => (
                format!("not writable as a molfile, which can't hold {problem}"),
                "up to 999 atoms and bonds, a title of one line, and data of one line by plain names",
            ),
            _ => (
                format!("not valid ({error})"),
                "a SMILES or atoms and bonds of one molecule: connected, of closed shells within the valence table, of known elements \
                 without isotopes, with aromatic atoms and bonds in rings only",
            ),
        };
        Self::Config { setting: "the molecule", got, expected }
    }
}
