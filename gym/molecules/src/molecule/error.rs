use super::Element;

/// An error that tells why a text isn't a molecule. Atoms are counted from 0, in the order in which they are
/// written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MoleculeError {
    /// The text isn't a SMILES, or has something that the reader doesn't support.
    #[error("{smiles:?} at character {position}: {problem}")]
    Syntax {
        /// The text.
        smiles: String,
        /// The character at which reading stopped, from 0.
        position: usize,
        /// A description of the problem.
        problem: &'static str,
    },
    /// The text has something that a [`Molecule`](super::Molecule) can't hold.
    #[error("{smiles:?} at character {position} has {what}, which isn't read")]
    NotRead {
        /// The text.
        smiles: String,
        /// Its place in the text, from 0.
        position: usize,
        /// The feature that can't be read.
        what: NotRead,
    },
    /// The molecule has more than [`MAX_ATOMS`](super::Molecule::MAX_ATOMS) atoms.
    #[error("a molecule of more than {} atoms: give smaller ones", super::Molecule::MAX_ATOMS)]
    TooLarge,
    /// The bonds and hydrogens of an atom exceed its valences or, if brackets fix its hydrogens, match none.
    #[error("atom {atom} ({}, charge {charge}) has valence {valence}, which isn't one of {allowed:?} or filled up to one", element.symbol())]
    Valence {
        /// The atom.
        atom: usize,
        /// Its element.
        element: Element,
        /// Its charge.
        charge: i8,
        /// The sum of its bond orders and hydrogens.
        valence: u8,
        /// The valences that are accepted.
        allowed: Vec<u8>,
    },
    /// The bonds of aromatic atoms can't be written as alternating single and double bonds.
    #[error(
        "the aromatic atoms {atoms:?} have no alternating single and double bonds: is a hydrogen missing, as in [nH]?"
    )]
    Kekulise {
        /// The atoms left without a partner.
        atoms: Vec<usize>,
    },
    /// An atom is written as aromatic, but isn't in a ring.
    #[error("atom {atom} is written as aromatic, but is in no ring")]
    NotInRing {
        /// The atom.
        atom: usize,
    },
    /// A bond is written as aromatic (`:`), but isn't in a ring.
    #[error("the bond between atoms {a} and {b} is written as aromatic, but is in no ring")]
    AromaticBond {
        /// Its first atom.
        a: usize,
        /// Its second atom.
        b: usize,
    },
    /// A bond joins an atom with itself or with a missing atom, or is the second bond between two atoms.
    #[error(
        "the bond between atoms {a} and {b} is one of an atom with itself, a second one, or has an atom that there isn't"
    )]
    Bond {
        /// Its first atom.
        a: usize,
        /// Its second atom.
        b: usize,
    },
    /// There is no atom, or there are atoms that no bonds connect to the first.
    #[error("a molecule is one or more atoms joined by bonds; atom {atom} is missing or joined to nothing before it")]
    Disconnected {
        /// The first atom that isn't connected to atom 0.
        atom: usize,
    },
    /// The marks of stereochemistry contradict each other, or belong to something that can't have any.
    #[error("a molecule can't have {problem}")]
    Stereo {
        /// A description of the marks.
        problem: String,
    },
    /// The molecule has something that a molfile or an SD file can't hold.
    #[error("a molfile can't hold {problem}")]
    Molfile {
        /// A description of what it can't hold, and what it can.
        problem: String,
    },
}

/// A feature of SMILES that a [`Molecule`](super::Molecule) can't hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotRead {
    /// Several parts without a bond between them (`.`), as in salts.
    #[error("several parts (`.`)")]
    Parts,
    /// An element other than B C N O F Si P S Cl Se Br I, usually a metal.
    #[error("an element beyond B C N O F Si P S Cl Se Br I")]
    Element,
    /// An isotope.
    #[error("an isotope")]
    Isotope,
    /// A hydrogen that isn't joined to exactly one heavy atom, which could count it.
    #[error("a hydrogen without exactly one heavy neighbour")]
    HydrogenAtom,
    /// An atom of unknown element (`*`), such as an attachment point (`[*:1]`, `[14*]`).
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
    /// Returns what was expected instead.
    fn expected(&self) -> &'static str {
        match self {
            Self::TooLarge => "one of at most `Molecule::MAX_ATOMS` atoms",
            Self::Kekulise { .. } => "aromatic atoms that double bonds join in pairs",
            Self::Bond { .. } => "bonds between different atoms of it, one for each pair",
            Self::Stereo { .. } => "marks that agree, one for each element of `Molecule::stereo_elements`",
            _ => {
                "a SMILES or atoms and bonds of one molecule: connected, of closed shells within the valence table, \
                 of known elements without isotopes, with aromatic atoms and bonds in rings only"
            }
        }
    }
}

impl From<MoleculeError> for gfn::Error {
    fn from(error: MoleculeError) -> Self {
        let (got, expected) = match &error {
            MoleculeError::Molfile { problem } => (
                format!("not writable as a molfile, which can't hold {problem}"),
                "up to 999 atoms and bonds, a title of one line, and data of one line by plain names",
            ),
            error => (format!("not valid ({error})"), error.expected()),
        };
        Self::Config { setting: "the molecule", got, expected }
    }
}
