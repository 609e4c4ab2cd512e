mod bracket;

use std::collections::BTreeMap;

use super::build::{Mark, RawAtom, RawBond, build, separate_charges};
use super::marks::RawMarks;
use crate::molecule::{BondOrder, Element, Molecule, MoleculeError, NotRead, ValenceTable};

type Result<T> = std::result::Result<T, MoleculeError>;

/// The counts of those features of a SMILES that the reader ignored. The reader ignores features that are
/// meaningless, or that a [`Molecule`] can't store.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LeftOut {
    /// The number of ignored marks of stereochemistry: `@` or `@@` at atoms, and `/` or `\` at bonds. A
    /// mark is ignored if it belongs to no stereo element (an atom with two methyls, a double bond in a
    /// ring of six) or is incomplete (a direction at only one end of a double bond).
    pub stereo: usize,
    /// The number of atom-map numbers, as in `[CH3:1]`.
    pub atom_maps: usize,
}

impl Molecule {
    /// The largest number of heavy atoms of a molecule. A molfile can store at most 999 atoms. The key of a
    /// molecule has a bit for each pair of atoms, so keys of larger molecules would be large, too.
    pub const MAX_ATOMS: usize = 1_000;

    /// Reads a SMILES with the default valences; see [`read`](Self::read).
    ///
    /// # Errors
    /// Errors of [`read`](Self::read).
    pub fn from_smiles(smiles: &str) -> Result<Self> {
        Self::read(&ValenceTable::default(), smiles)
    }

    /// Reads a SMILES: the organic subset, brackets with charges and hydrogens, bond orders, branches,
    /// rings, and aromatic atoms (lower case) and bonds (`:`). Single and double bonds are assigned to
    /// aromatic rings. Isotopes, `*`, `$`, dative bonds and several components (`.`) are errors.
    ///
    /// *Hydrogens.* A hydrogen that is written as an atom (`[H]C`) becomes part of the hydrogen count of
    /// its heavy neighbour, as in RDKit. The stereochemistry of this neighbour is kept. The numbering of
    /// atoms therefore skips hydrogens. A hydrogen that doesn't have exactly one heavy neighbour is an
    /// error (`[H][H]`, `[H+]`).
    ///
    /// *Nitrogen.* Neutral nitrogen with five bonds gets charges, as in RDKit, unless `table` has the
    /// valence 5: `CN(=O)=O` is read as `C[N+](=O)[O-]`, and `CN=N#N` as `CN=[N+]=[N-]`.
    ///
    /// *Stereochemistry.* `@` and `@@` at tetrahedral centres and `/` and `\` next to double bonds are read
    /// as [`marks`](Self::marks). Meaningless marks are ignored; [`read_noting`](Self::read_noting) counts
    /// them. [`without_stereo`](Self::without_stereo) maps all stereoisomers to one molecule.
    ///
    /// *Aromatic atoms.* Double bonds are placed so that rings become aromatic: in biphenylene,
    /// `c1ccc2c(c1)c1ccccc12`, no double bond joins the rings of six. If a ring of lower-case atoms can't
    /// be aromatic (`c1ccccccc1`), its double bonds get any placement that satisfies the valences. Several
    /// such placements may exist and may be different molecules. The text is then ambiguous, and the reader
    /// chooses a placement.
    ///
    /// The text is parsed in linear time.
    ///
    /// ```
    /// use gfn_molecules::Molecule;
    /// let pyrrole = Molecule::from_smiles("c1cc[nH]c1")?;
    /// assert_eq!(pyrrole.formula(), "C4H5N");
    /// let message = Molecule::from_smiles("CC(C)(C)(C)C").unwrap_err().to_string();
    /// assert!(message.starts_with("atom 1 (C, charge 0) has valence 5"));
    /// assert!(Molecule::from_smiles("c1cccn1").unwrap_err().to_string().contains("a hydrogen missing"));
    /// let explicit = Molecule::from_smiles("[H]C([H])([H])N(=O)=O")?;
    /// assert_eq!(explicit.key(), Molecule::from_smiles("C[N+](=O)[O-]")?.key());
    /// # Ok::<(), gfn_molecules::MoleculeError>(())
    /// ```
    ///
    /// # Errors
    /// Each error names the position in the text, or the atom:
    ///
    /// * [`MoleculeError::Syntax`]: the text isn't a valid SMILES.
    /// * [`NotRead`](MoleculeError::NotRead): the text has an unsupported feature, or an element that isn't
    ///   in [`Element::ALL`].
    /// * [`Valence`](MoleculeError::Valence): the valence of an atom isn't in `table`.
    /// * [`NotInRing`](MoleculeError::NotInRing), [`AromaticBond`](MoleculeError::AromaticBond): an aromatic
    ///   atom or bond isn't in a ring.
    /// * [`Kekulise`](MoleculeError::Kekulise): aromatic atoms have no alternating single and double bonds.
    /// * [`Bond`](MoleculeError::Bond): a ring number makes a second bond between two atoms, or a bond of an
    ///   atom with itself (`C11`).
    /// * [`Stereo`](MoleculeError::Stereo): directions of bonds contradict each other.
    /// * [`Disconnected`](MoleculeError::Disconnected): the text is empty.
    /// * [`TooLarge`](MoleculeError::TooLarge): the molecule has more than [`MAX_ATOMS`](Self::MAX_ATOMS)
    ///   heavy atoms.
    pub fn read(table: &ValenceTable, smiles: &str) -> Result<Self> {
        Ok(Self::read_noting(table, smiles)?.0)
    }

    /// Reads a SMILES as [`read`](Self::read) does, and also returns how many marks of stereochemistry and
    /// atom-map numbers were ignored.
    ///
    /// ```
    /// use gfn_molecules::{Molecule, ValenceTable};
    /// let (alanine, left_out) = Molecule::read_noting(&ValenceTable::default(), "C[C@H](N)C(=O)O")?;
    /// assert_eq!((alanine.marks().len(), left_out.stereo), (1, 0));
    /// let (propane, left_out) = Molecule::read_noting(&ValenceTable::default(), "C[C@H2]C")?;
    /// assert_eq!((propane.marks().len(), left_out.stereo), (0, 1));
    /// # Ok::<(), gfn_molecules::MoleculeError>(())
    /// ```
    ///
    /// # Errors
    /// Errors of [`read`](Self::read).
    pub fn read_noting(table: &ValenceTable, smiles: &str) -> Result<(Self, LeftOut)> {
        let mut reader = Reader { text: smiles.as_bytes(), smiles, ..Reader::default() };
        reader.read()?;
        separate_charges(table, &mut reader.atoms, &mut reader.bonds);
        let molecule = build(table, &reader.atoms, &reader.bonds)?;
        let (molecule, stereo) = reader.marks.set(molecule)?;
        Ok((molecule, LeftOut { stereo, ..reader.left_out }))
    }
}

/// The symbols of atoms that may be written without brackets. The reader tries them in this order, so
/// two-letter symbols come first.
const ORGANIC: [&str; 16] =
    ["Cl", "Br", "B", "C", "N", "O", "P", "S", "F", "I", "b", "c", "n", "o", "p", "s"];

/// A ring number that has occurred once. The ring is closed by the second occurrence of the number.
struct OpenRing {
    atom: usize,
    mark: Option<Mark>,
    up: Option<bool>,
    /// The position that the atom at the other end of the ring bond has among the neighbours of `atom`.
    place: usize,
}

#[derive(Default)]
struct Reader<'a> {
    smiles: &'a str,
    text: &'a [u8],
    at: usize,
    atoms: Vec<RawAtom>,
    bonds: Vec<RawBond>,
    /// The atom that the next atom in the text will be bonded to.
    last: Option<usize>,
    /// `true` if the text begins with a hydrogen that will be bonded to the first atom.
    starts_with_hydrogen: bool,
    /// The bond symbol that was read before the next atom or ring number.
    mark: Option<Mark>,
    branches: Vec<usize>,
    /// The direction that was read before the next atom or ring number: `true` for `/`, `false` for `\`.
    up: Option<bool>,
    rings: BTreeMap<u32, OpenRing>,
    marks: RawMarks,
    left_out: LeftOut,
}

impl Reader<'_> {
    fn fail<T>(&self, problem: &'static str) -> Result<T> {
        Err(MoleculeError::Syntax { smiles: self.smiles.into(), position: self.at, problem })
    }

    fn refuse<T>(&self, what: NotRead) -> Result<T> {
        Err(MoleculeError::NotRead { smiles: self.smiles.into(), position: self.at, what })
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn digit(&mut self) -> Option<u8> {
        let digit = self.peek().filter(u8::is_ascii_digit)?;
        self.at += 1;
        Some(digit - b'0')
    }

    fn read(&mut self) -> Result<()> {
        while let Some(byte) = self.peek() {
            match byte {
                b'(' => self.open()?,
                b')' => self.close()?,
                b'-' if self.text.get(self.at + 1) == Some(&b'>') => return self.refuse(NotRead::DativeBond),
                b'<' if self.text.get(self.at + 1) == Some(&b'-') => return self.refuse(NotRead::DativeBond),
                b'-' => self.bond(Mark::Order(BondOrder::Single))?,
                b'/' | b'\\' => {
                    self.bond(Mark::Order(BondOrder::Single))?;
                    self.up = Some(byte == b'/');
                }
                b'=' => self.bond(Mark::Order(BondOrder::Double))?,
                b'#' => self.bond(Mark::Order(BondOrder::Triple))?,
                b':' => self.bond(Mark::Aromatic)?,
                b'0'..=b'9' | b'%' => self.ring()?,
                b'[' => self.bracket()?,
                b'.' => return self.refuse(NotRead::Parts),
                b'$' => return self.refuse(NotRead::QuadrupleBond),
                b'*' => return self.refuse(NotRead::UnknownAtom),
                _ => self.organic()?,
            }
        }
        if self.mark.is_some() {
            return self.fail("a bond has no second atom");
        }
        if self.starts_with_hydrogen {
            return self.refuse(NotRead::HydrogenAtom);
        }
        if !self.branches.is_empty() {
            return self.fail("a branch isn't closed: `)` is missing");
        }
        if !self.rings.is_empty() {
            return self.fail("a ring isn't closed: its number occurs only once");
        }
        Ok(())
    }

    fn open(&mut self) -> Result<()> {
        let Some(last) = self.last else { return self.fail("a branch has no atom before it") };
        if self.mark.is_some() {
            return self.fail("a bond comes before a branch: write it inside of the branch");
        }
        self.at += 1;
        if self.peek() == Some(b')') {
            return self.fail("a branch is empty");
        }
        self.branches.push(last);
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        if self.mark.is_some() {
            return self.fail("a bond has no second atom");
        }
        let Some(branch) = self.branches.pop() else { return self.fail("a `)` has no `(` before it") };
        self.last = Some(branch);
        self.at += 1;
        Ok(())
    }

    fn bond(&mut self, mark: Mark) -> Result<()> {
        if self.last.is_none() && !self.starts_with_hydrogen {
            return self.fail("a bond has no atom before it");
        }
        if self.mark.replace(mark).is_some() {
            return self.fail("two bonds follow each other without an atom between them");
        }
        self.at += 1;
        Ok(())
    }

    fn ring(&mut self) -> Result<()> {
        let Some(last) = self.last else { return self.fail("a ring number has no atom before it") };
        let number =
            if self.take(b'%') { self.long_ring_number()? } else { u32::from(self.digit().unwrap_or(0)) };
        let mark = self.mark.take();
        let up = self.up.take();
        let Some(open) = self.rings.remove(&number) else {
            let place = self.marks.reserve(last);
            self.rings.insert(number, OpenRing { atom: last, mark, up, place });
            return Ok(());
        };
        if open.mark.is_some() && mark.is_some() && open.mark != mark {
            return self.fail("the ends of a ring have different bonds");
        }
        // The direction is reversed, so that it is given as seen from the atom where the ring was opened.
        let seen = up.map(|up| !up);
        if open.up.is_some() && seen.is_some() && open.up != seen {
            return self.fail("the ends of a ring have bonds in opposite directions");
        }
        self.marks.close(open.atom, open.place, last);
        self.marks.meet_by_number(last, open.atom);
        self.marks.direct(self.bonds.len(), open.up.or(seen));
        self.bonds.push(RawBond { a: open.atom, b: last, mark: open.mark.or(mark) });
        Ok(())
    }

    /// Reads the ring number after `%`: two digits, or up to five digits in parentheses.
    fn long_ring_number(&mut self) -> Result<u32> {
        let mut number = 0;
        let mut digits = 0;
        let bracketed = self.take(b'(');
        let most = if bracketed { 5 } else { 2 };
        while let Some(digit) = if digits < most { self.digit() } else { None } {
            (number, digits) = (10 * number + u32::from(digit), digits + 1);
        }
        let complete = if bracketed { digits > 0 && self.take(b')') } else { digits == 2 };
        if complete {
            Ok(number)
        } else {
            self.fail("`%` must be followed by two digits, or by up to five digits in parentheses")
        }
    }

    fn organic(&mut self) -> Result<()> {
        let rest = &self.text[self.at..];
        let symbol = ORGANIC.into_iter().find(|symbol| rest.starts_with(symbol.as_bytes()));
        let Some((symbol, (element, aromatic))) =
            symbol.and_then(|symbol| Some((symbol, Element::from_symbol(symbol)?)))
        else {
            return self.fail("no atom, bond, branch or ring is written like this");
        };
        self.at += symbol.len();
        self.atom(RawAtom { element, aromatic, charge: 0, hydrogens: None, hydrogen_atoms: 0 }, None)
    }

    fn atom(&mut self, atom: RawAtom, counterclockwise: Option<bool>) -> Result<()> {
        let new = self.atoms.len();
        if new == Molecule::MAX_ATOMS {
            return Err(MoleculeError::TooLarge);
        }
        self.atoms.push(atom);
        let has_before = self.last.is_some() || self.starts_with_hydrogen;
        self.marks.add(counterclockwise, has_before);
        if std::mem::take(&mut self.starts_with_hydrogen) {
            // The direction is reversed: if the bond goes up from the hydrogen to the atom, the hydrogen is
            // below the atom.
            let up = self.up.take().map(|up| !up);
            self.add_hydrogen(new, up)?;
        }
        if let Some(last) = self.last {
            self.marks.meet(last, new);
            self.marks.meet(new, last);
            self.marks.direct(self.bonds.len(), self.up.take());
            self.bonds.push(RawBond { a: last, b: new, mark: self.mark.take() });
        }
        self.last = Some(new);
        Ok(())
    }
}
