use std::collections::BTreeMap;

use crate::molecule::aromaticity::ring_bonds;
use crate::molecule::kekule::kekulise;
use crate::molecule::{AtomSpec, BondOrder, Element, Molecule, MoleculeError, ValenceTable};

type Result<T> = std::result::Result<T, MoleculeError>;

impl Molecule {
    /// Reads a SMILES with the default valences: [`read`](Self::read).
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    pub fn from_smiles(smiles: &str) -> Result<Self> {
        Self::read(&ValenceTable::default(), smiles)
    }

    /// Reads a SMILES: the organic subset, brackets with charges and hydrogens, bond orders, branches, rings, and aromatic atoms
    /// (lower case), which get single and double bonds. Marks of stereochemistry and atom maps are read over. Isotopes, hydrogens
    /// as atoms, `*`, `$` and several components (`.`) are refused.
    ///
    /// ```
    /// use gfn_gym::molecule::Molecule;
    /// let pyrrole = Molecule::from_smiles("c1cc[nH]c1")?;
    /// assert_eq!(pyrrole.formula(), "C4H5N");
    /// let message = Molecule::from_smiles("CC(C)(C)(C)C").unwrap_err().to_string();
    /// assert!(message.starts_with("atom 1 (C, charge 0) has valence 5"));
    /// assert!(Molecule::from_smiles("c1cccn1").unwrap_err().to_string().contains("a hydrogen missing"));
    /// # Ok::<(), gfn_gym::molecule::MoleculeError>(())
    /// ```
    ///
    /// # Errors
    /// [`MoleculeError::Syntax`], [`Valence`](MoleculeError::Valence), [`NotInRing`](MoleculeError::NotInRing) and
    /// [`Kekulise`](MoleculeError::Kekulise), each with the place or the atom.
    pub fn read(table: &ValenceTable, smiles: &str) -> Result<Self> {
        let mut reader = Reader { text: smiles.as_bytes(), smiles, ..Reader::default() };
        reader.read()?;
        build(table, &reader.atoms, &reader.bonds)
    }
}

/// A bond as it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mark {
    Order(BondOrder),
    Aromatic,
}

#[derive(Clone, Copy, Debug)]
struct RawAtom {
    element: Element,
    aromatic: bool,
    charge: i8,
    /// What brackets fix.
    hydrogens: Option<u8>,
}

#[derive(Clone, Copy, Debug)]
struct RawBond {
    a: usize,
    b: usize,
    mark: Option<Mark>,
}

#[derive(Default)]
struct Reader<'a> {
    smiles: &'a str,
    text: &'a [u8],
    at: usize,
    atoms: Vec<RawAtom>,
    bonds: Vec<RawBond>,
    /// The atom that the next one is joined to.
    last: Option<usize>,
    /// The bond written before the next atom or ring number.
    mark: Option<Mark>,
    branches: Vec<usize>,
    rings: BTreeMap<u8, (usize, Option<Mark>)>,
}

impl Reader<'_> {
    fn fail<T>(&self, problem: &'static str) -> Result<T> {
        Err(MoleculeError::Syntax { smiles: self.smiles.into(), position: self.at, problem })
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
                b'-' | b'/' | b'\\' => self.bond(Mark::Order(BondOrder::Single))?,
                b'=' => self.bond(Mark::Order(BondOrder::Double))?,
                b'#' => self.bond(Mark::Order(BondOrder::Triple))?,
                b':' => self.bond(Mark::Aromatic)?,
                b'0'..=b'9' | b'%' => self.ring()?,
                b'[' => self.bracket()?,
                b'.' => return self.fail("several components: give one molecule"),
                b'$' | b'*' => return self.fail("quadruple bonds and unknown atoms aren't read"),
                _ => self.organic()?,
            }
        }
        if self.mark.is_some() {
            return self.fail("a bond leads nowhere");
        }
        if !self.branches.is_empty() {
            return self.fail("a branch isn't closed: `)` is missing");
        }
        if !self.rings.is_empty() {
            return self.fail("a ring isn't closed: its number comes once");
        }
        Ok(())
    }

    fn open(&mut self) -> Result<()> {
        let Some(last) = self.last else { return self.fail("a branch has no atom before it") };
        if self.mark.is_some() {
            return self.fail("a bond stands before a branch: write it inside");
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
            return self.fail("a bond leads nowhere");
        }
        let Some(branch) = self.branches.pop() else { return self.fail("`)` closes no branch") };
        self.last = Some(branch);
        self.at += 1;
        Ok(())
    }

    fn bond(&mut self, mark: Mark) -> Result<()> {
        if self.last.is_none() {
            return self.fail("a bond has no atom before it");
        }
        if self.mark.replace(mark).is_some() {
            return self.fail("two bonds in a row");
        }
        self.at += 1;
        Ok(())
    }

    fn ring(&mut self) -> Result<()> {
        let Some(last) = self.last else { return self.fail("a ring number has no atom before it") };
        let number = if self.take(b'%') {
            let (Some(tens), Some(ones)) = (self.digit(), self.digit()) else {
                return self.fail("`%` takes two digits");
            };
            tens * 10 + ones
        } else {
            self.digit().unwrap_or(0)
        };
        let mark = self.mark.take();
        match self.rings.remove(&number) {
            None => {
                self.rings.insert(number, (last, mark));
            }
            Some((_, opened)) if opened.is_some() && mark.is_some() && opened != mark => {
                return self.fail("the ends of a ring have different bonds");
            }
            Some((other, opened)) => self.bonds.push(RawBond { a: other, b: last, mark: opened.or(mark) }),
        }
        Ok(())
    }

    fn organic(&mut self) -> Result<()> {
        let rest = &self.text[self.at..];
        let symbol: &'static str = match rest {
            [b'C', b'l', ..] => "Cl",
            [b'B', b'r', ..] => "Br",
            [b'B', ..] => "B",
            [b'C', ..] => "C",
            [b'N', ..] => "N",
            [b'O', ..] => "O",
            [b'P', ..] => "P",
            [b'S', ..] => "S",
            [b'F', ..] => "F",
            [b'I', ..] => "I",
            [b'b', ..] => "b",
            [b'c', ..] => "c",
            [b'n', ..] => "n",
            [b'o', ..] => "o",
            [b'p', ..] => "p",
            [b's', ..] => "s",
            _ => return self.fail("no atom, bond, branch or ring is written like this"),
        };
        let Some((element, aromatic)) = Element::from_symbol(symbol) else { return self.fail("no such element") };
        self.at += symbol.len();
        self.atom(RawAtom { element, aromatic, charge: 0, hydrogens: None });
        Ok(())
    }

    fn atom(&mut self, atom: RawAtom) {
        let new = self.atoms.len();
        self.atoms.push(atom);
        if let Some(last) = self.last {
            self.bonds.push(RawBond { a: last, b: new, mark: self.mark.take() });
        }
        self.last = Some(new);
    }

    fn bracket(&mut self) -> Result<()> {
        self.at += 1;
        if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return self.fail("isotopes aren't read");
        }
        let symbol = [2, 1].into_iter().find_map(|len| {
            let text = self.smiles.get(self.at..self.at + len)?;
            Element::from_symbol(text).map(|found| (len, found))
        });
        let Some((len, (element, aromatic))) = symbol else {
            return self
                .fail("no element that is known (B C N O F Si P S Cl Se Br I; hydrogens are counts on their atoms)");
        };
        self.at += len;
        while self.take(b'@') {}
        let mut hydrogens = 0;
        if self.take(b'H') {
            hydrogens = self.digit().unwrap_or(1);
        }
        let charge = self.charge()?;
        if self.take(b':') && self.digit().is_some() {
            while self.digit().is_some() {}
        }
        if !self.take(b']') {
            return self
                .fail("`]` was expected: brackets hold an element, @, H and its count, a charge, in this order");
        }
        self.atom(RawAtom { element, aromatic, charge, hydrogens: Some(hydrogens) });
        Ok(())
    }

    fn charge(&mut self) -> Result<i8> {
        let sign = match self.peek() {
            Some(byte @ (b'+' | b'-')) => byte,
            _ => return Ok(0),
        };
        let mut size = 0i8;
        while self.take(sign) {
            size = size.saturating_add(1);
        }
        if size == 1 {
            size = self.digit().map_or(1, |digit| digit as i8);
        }
        if size > 9 {
            return self.fail("a charge beyond 9");
        }
        Ok(if sign == b'+' { size } else { -size })
    }
}

/// Gives the aromatic bonds their orders, and makes the molecule.
fn build(table: &ValenceTable, atoms: &[RawAtom], raw: &[RawBond]) -> Result<Molecule> {
    let in_ring = ring_bonds(atoms.len(), raw.iter().map(|bond| (bond.a, bond.b)));
    // A bond that isn't written is aromatic between aromatic atoms, in a ring.
    let is_aromatic: Vec<bool> = raw
        .iter()
        .zip(&in_ring)
        .map(|(bond, in_ring)| match bond.mark {
            Some(mark) => mark == Mark::Aromatic,
            None => *in_ring && atoms[bond.a].aromatic && atoms[bond.b].aromatic,
        })
        .collect();
    let order = |k: usize| match raw[k].mark {
        Some(Mark::Order(order)) => order,
        _ => BondOrder::Single,
    };
    let mut sigma = vec![0u8; atoms.len()];
    for (k, bond) in raw.iter().enumerate() {
        for a in [bond.a, bond.b] {
            sigma[a] = sigma[a].saturating_add(order(k).value());
        }
    }
    let mut needs = vec![false; atoms.len()];
    for (i, atom) in atoms.iter().enumerate() {
        let valence = sigma[i].saturating_add(atom.hydrogens.unwrap_or(0));
        let Some(full) = table.filled(atom.element, atom.charge, valence) else {
            let allowed = table.valences(atom.element, atom.charge).to_vec();
            let RawAtom { element, charge, .. } = *atom;
            return Err(MoleculeError::Valence { atom: i, element, charge, valence, allowed });
        };
        needs[i] = atom.aromatic && full > valence;
    }
    for (i, atom) in atoms.iter().enumerate() {
        let ringed = raw.iter().zip(&in_ring).any(|(bond, in_ring)| *in_ring && (bond.a == i || bond.b == i));
        if atom.aromatic && !ringed {
            return Err(MoleculeError::NotInRing { atom: i });
        }
    }
    let candidates: Vec<usize> = (0..raw.len()).filter(|&k| is_aromatic[k]).collect();
    let pairs: Vec<(usize, usize)> = candidates.iter().map(|&k| (raw[k].a, raw[k].b)).collect();
    let double = kekulise(&needs, &pairs).map_err(|atoms| MoleculeError::Kekulise { atoms })?;
    let mut orders: Vec<BondOrder> = (0..raw.len()).map(order).collect();
    for (&k, _) in candidates.iter().zip(&double).filter(|(_, double)| **double) {
        orders[k] = BondOrder::Double;
    }
    let specs: Vec<AtomSpec> = atoms
        .iter()
        .map(|atom| AtomSpec { element: atom.element, charge: atom.charge, hydrogens: atom.hydrogens })
        .collect();
    let bonds: Vec<_> = raw.iter().zip(orders).map(|(bond, order)| (bond.a, bond.b, order)).collect();
    Molecule::new(table, &specs, &bonds)
}
