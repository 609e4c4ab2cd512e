use super::directions::directions;
use super::marks::RawCentre;
use super::tree::TextTree;
use crate::molecule::aromaticity::has_ring_double;
use crate::molecule::{BondOrder, Molecule, StereoElement, ValenceTable, ranks, signed, with_count};

impl Molecule {
    /// Returns the canonical SMILES, which is the same text for equal molecules. Atoms of aromatic rings
    /// are in lower case. Marked centres have `@` or `@@`, and single bonds next to marked double bonds
    /// have `/` or `\`.
    ///
    /// The text differs from the canonical SMILES of RDKit and other programs. The order of the atoms is
    /// specific to this library, and atoms with triple bonds are never aromatic (in RDKit, benzyne is
    /// aromatic). To compare molecules with those of another program, read the SMILES of that program by
    /// [`from_smiles`](Self::from_smiles) and compare the [`key`](Self::key)s.
    ///
    /// ```
    /// use gfn_molecules::Molecule;
    /// let one = Molecule::from_smiles("C1=CC=CN1")?;
    /// let other = Molecule::from_smiles("[nH]1cccc1")?;
    /// assert_eq!(one.smiles(), other.smiles());
    /// assert_eq!(Molecule::from_smiles(&one.smiles())?.key(), one.key());
    /// # Ok::<(), gfn_molecules::MoleculeError>(())
    /// ```
    #[must_use]
    pub fn smiles(&self) -> String {
        Writer::new(self, &self.canonical().order, true).write()
    }

    /// Returns the canonical SMILES of the molecule's current Kekule form, which has only single, double
    /// and triple bonds. The text is the same for isomorphic Kekule forms.
    #[must_use]
    pub fn kekule_smiles(&self) -> String {
        Writer::new(self, &self.canonical_kekule().order, false).write()
    }
}

struct Writer<'a> {
    molecule: &'a Molecule,
    aromatic: bool,
    table: ValenceTable,
    /// The rank of each atom in the canonical order.
    rank: Vec<usize>,
    /// The direction of each bond: `true` if the bond's second atom is above its first atom; `None` if the
    /// text gives the bond no direction.
    up: Vec<Option<bool>>,
}

impl<'a> Writer<'a> {
    fn new(molecule: &'a Molecule, order: &[u32], aromatic: bool) -> Self {
        let rank = ranks(order);
        Self { molecule, aromatic, table: ValenceTable::default(), up: directions(molecule, &rank), rank }
    }

    fn write(&self) -> String {
        let molecule = self.molecule;
        // The text starts at an end of a chain, if the molecule has one, because this needs fewer
        // parentheses.
        let start = (0..self.rank.len()).min_by_key(|&a| (molecule.bonds_at(a).len() > 1, self.rank[a]));
        let steps = |a: usize| {
            let mut steps: Vec<(usize, usize)> =
                molecule.bonds_at(a).iter().map(|&k| (k, molecule.bonds()[k].other_end(a))).collect();
            steps.sort_by_key(|&(_, b)| self.rank[b]);
            steps
        };
        let tree = TextTree::new(self.rank.len(), molecule.bonds().len(), start.as_slice(), steps);
        tree.write(|a| self.atom(a, self.turn(a, &tree)), |k, a| self.bond(k, a))
    }

    /// Returns the symbol of the bond with index `k` in a text that goes from atom `a` to the bond's other
    /// end.
    fn bond(&self, k: usize, a: usize) -> &'static str {
        let bond = self.molecule.bonds()[k];
        let lower = |a: usize| self.aromatic && self.molecule.atoms()[a].aromatic;
        match bond.order {
            BondOrder::Single if self.up[k] == Some(bond.a == a) => "/",
            BondOrder::Single if self.up[k].is_some() => "\\",
            _ if self.aromatic && bond.aromatic => "",
            BondOrder::Single if lower(bond.a) && lower(bond.b) => "-",
            BondOrder::Single => "",
            BondOrder::Double => "=",
            BondOrder::Triple => "#",
        }
    }

    /// Returns `@` or `@@` for a marked centre, depending on the order of its neighbours in the text.
    /// Returns an empty text for an atom without a mark.
    fn turn(&self, a: usize, tree: &TextTree) -> &'static str {
        let Some(positive) = self.molecule.sign(StereoElement::Centre(a)) else { return "" };
        let steps = tree.closes[a].iter().chain(&tree.opens[a]).chain(&tree.children[a]);
        let mut around: Vec<usize> = steps.map(|(_, b)| *b).collect();
        let before = self.molecule.heavy_neighbours(a).into_iter().find(|b| !around.contains(b));
        around.splice(0..0, before);
        let closures = tree.closes[a].len() + tree.opens[a].len();
        let centre = RawCentre { around, has_before: before.is_some(), closures, ..RawCentre::default() };
        if positive ^ centre.is_odd(self.molecule, a) { "@" } else { "@@" }
    }

    fn atom(&self, a: usize, turn: &str) -> String {
        let atom = self.molecule.atoms()[a];
        let lower = if self.aromatic && atom.aromatic { atom.element.aromatic_symbol() } else { None };
        let symbol = lower.unwrap_or(atom.element.symbol());
        let plain = turn.is_empty()
            && atom.charge == 0
            && atom.element.in_organic_subset()
            && self.implied(a, lower.is_some()) == Some(atom.hydrogens);
        if plain {
            return symbol.to_owned();
        }
        let hydrogens = with_count("H", usize::from(atom.hydrogens));
        format!("[{symbol}{turn}{hydrogens}{}]", signed(atom.charge.into()))
    }

    /// Returns the number of hydrogens that a reader infers for the atom if the atom is written without
    /// brackets. Returns `None` if no usual valence of the element fits the bonds, or if a reader would place
    /// double bonds differently than in this molecule.
    fn implied(&self, a: usize, lower: bool) -> Option<u8> {
        let element = self.molecule.atoms()[a].element;
        if !lower {
            let bonds = self.molecule.bond_orders(a);
            return Some(self.table.filled(element, 0, bonds)? - bonds);
        }
        let sigma = self
            .molecule
            .neighbours(a)
            .map(|(_, bond)| if bond.aromatic { 1 } else { bond.order.value() })
            .sum();
        let room = self.table.filled(element, 0, sigma)? - sigma;
        let double = has_ring_double(self.molecule, a);
        (double == (room > 0)).then(|| room.saturating_sub(1))
    }
}
