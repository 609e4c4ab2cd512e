use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::directions::directions;
use super::marks::implicit_place;
use crate::molecule::aromaticity::has_ring_double;
use crate::molecule::valence::ValenceTable;
use crate::molecule::{BondOrder, Molecule, StereoElement, is_odd};

impl Molecule {
    /// Its canonical SMILES: the same text for the same molecule. Aromatic rings are in lower case; centres and double bonds that are
    /// marked have `@` and `/`.
    ///
    /// The text isn't RDKit's canonical SMILES, nor another program's: the order of the atoms is this
    /// library's own, and atoms with triple bonds are never aromatic (benzyne is for RDKit). To compare
    /// molecules with those of another program, read its SMILES by [`from_smiles`](Self::from_smiles) and
    /// compare [`key`](Self::key)s.
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
        Writer::new(self, &self.order(), true).write()
    }

    /// The canonical SMILES of this Kekule form, with single, double and triple bonds only: the same text for the same form.
    #[must_use]
    pub fn kekule_smiles(&self) -> String {
        Writer::new(self, &self.kekule_order(), false).write()
    }
}

struct Writer<'a> {
    molecule: &'a Molecule,
    aromatic: bool,
    table: ValenceTable,
    /// Places in the canonical order.
    rank: Vec<usize>,
    /// Ring bonds that are written as numbers, by the atom where they are met first and by the other one.
    opens: Vec<Vec<usize>>,
    closes: Vec<Vec<usize>>,
    children: Vec<Vec<usize>>,
    /// The number of a ring bond that is open.
    number: Vec<usize>,
    /// Directions of bonds.
    up: Vec<Option<bool>>,
    out: String,
}

impl<'a> Writer<'a> {
    fn new(molecule: &'a Molecule, order: &[u32], aromatic: bool) -> Self {
        let n = molecule.atoms().len();
        let mut rank = vec![0; n];
        for (place, &a) in order.iter().enumerate() {
            rank[a as usize] = place;
        }
        Self {
            molecule,
            aromatic,
            table: ValenceTable::default(),
            up: directions(molecule, &rank),
            rank,
            opens: vec![Vec::new(); n],
            closes: vec![Vec::new(); n],
            children: vec![Vec::new(); n],
            number: vec![0; molecule.bonds().len()],
            out: String::new(),
        }
    }

    /// The bonds of an atom, by the rank of what they lead to.
    fn sorted(&self, a: usize) -> Vec<usize> {
        let mut bonds = self.molecule.bonds_at(a).to_vec();
        bonds.sort_by_key(|&k| self.rank[self.molecule.bonds()[k].other(a)]);
        bonds
    }

    fn write(mut self) -> String {
        // An end of a chain, if there is one, makes fewer brackets.
        let start = (0..self.rank.len()).min_by_key(|&a| (self.molecule.bonds_at(a).len() > 1, self.rank[a]));
        let Some(start) = start else { return self.out };
        self.span(start);
        self.text(start);
        self.out
    }

    /// Walks depth first: which bonds make the tree, and which close rings.
    fn span(&mut self, start: usize) {
        let mut seen = vec![false; self.rank.len()];
        let mut done = vec![false; self.molecule.bonds().len()];
        seen[start] = true;
        let mut stack = vec![(start, self.sorted(start).into_iter())];
        while let Some((a, bonds)) = stack.last_mut() {
            let a = *a;
            let Some(k) = bonds.next() else {
                stack.pop();
                continue;
            };
            if std::mem::replace(&mut done[k], true) {
                continue;
            }
            let b = self.molecule.bonds()[k].other(a);
            if std::mem::replace(&mut seen[b], true) {
                // In depth-first order an edge that isn't of the tree leads back to an ancestor.
                self.opens[b].push(k);
                self.closes[a].push(k);
            } else {
                self.children[a].push(k);
                stack.push((b, self.sorted(b).into_iter()));
            }
        }
    }

    /// Writes the tree, iteratively: an atom, or a bracket.
    fn text(&mut self, start: usize) {
        enum Piece {
            Atom(usize),
            Bond(usize, usize),
            Text(&'static str),
        }
        // The smallest number that is free comes next.
        let (mut free, mut used) = (BinaryHeap::new(), 0);
        let mut stack = vec![Piece::Atom(start)];
        while let Some(piece) = stack.pop() {
            let a = match piece {
                Piece::Text(text) => {
                    self.out.push_str(text);
                    continue;
                }
                Piece::Bond(k, a) => {
                    self.bond(k, a);
                    continue;
                }
                Piece::Atom(a) => a,
            };
            self.atom(a, self.turn(a));
            for k in std::mem::take(&mut self.closes[a]) {
                let number = self.number[k];
                self.ring_number(number);
                free.push(Reverse(number));
            }
            for k in std::mem::take(&mut self.opens[a]) {
                let number = free.pop().map_or(used + 1, |Reverse(number)| number);
                used = used.max(number);
                self.number[k] = number;
                self.bond(k, a);
                self.ring_number(number);
            }
            let children = std::mem::take(&mut self.children[a]);
            for (i, &k) in children.iter().enumerate().rev() {
                let b = self.molecule.bonds()[k].other(a);
                let branch = i + 1 < children.len();
                stack.extend(branch.then_some(Piece::Text(")")));
                stack.push(Piece::Atom(b));
                stack.push(Piece::Bond(k, a));
                stack.extend(branch.then_some(Piece::Text("(")));
            }
        }
    }

    fn ring_number(&mut self, number: usize) {
        self.out += &match number {
            ..=9 => number.to_string(),
            10..=99 => format!("%{number}"),
            _ => format!("%({number})"),
        };
    }

    /// Writes a bond that leaves `a`.
    fn bond(&mut self, k: usize, a: usize) {
        let bond = self.molecule.bonds()[k];
        let lower = |a: usize| self.aromatic && self.molecule.atoms()[a].aromatic;
        let mark = match bond.order {
            BondOrder::Single if self.up[k] == Some(bond.a == a) => "/",
            BondOrder::Single if self.up[k].is_some() => "\\",
            _ if self.aromatic && bond.aromatic => "",
            BondOrder::Single if lower(bond.a) && lower(bond.b) => "-",
            BondOrder::Single => "",
            BondOrder::Double => "=",
            BondOrder::Triple => "#",
        };
        self.out.push_str(mark);
    }

    /// The turn of a centre, as its neighbours are written.
    fn turn(&self, a: usize) -> &'static str {
        let Some(positive) = self.molecule.sign(StereoElement::Centre(a)) else { return "" };
        let bonds = self.closes[a].iter().chain(&self.opens[a]).chain(&self.children[a]);
        let mut order: Vec<usize> = bonds.map(|&k| self.molecule.bonds()[k].other(a)).collect();
        let before = self.molecule.heavy_neighbours(a).into_iter().find(|b| !order.contains(b));
        let implicit = 4 - self.molecule.bonds_at(a).len();
        order.splice(0..0, before);
        order.iter_mut().for_each(|b| *b += 4);
        let closures = self.closes[a].len() + self.opens[a].len();
        let hydrogens = self.molecule.atoms()[a].hydrogens;
        let place = implicit_place(self.molecule, a, hydrogens, usize::from(before.is_some()), closures);
        order.splice(place..place, 0..implicit);
        if positive ^ is_odd(&order) { "@" } else { "@@" }
    }

    fn atom(&mut self, a: usize, turn: &str) {
        let atom = self.molecule.atoms()[a];
        let lower = if self.aromatic && atom.aromatic { atom.element.aromatic_symbol() } else { None };
        let symbol = lower.unwrap_or(atom.element.symbol());
        let plain = turn.is_empty()
            && atom.charge == 0
            && atom.element.in_organic_subset()
            && self.implied(a, lower.is_some()) == Some(atom.hydrogens);
        if plain {
            self.out.push_str(symbol);
            return;
        }
        self.out.push('[');
        self.out.push_str(symbol);
        self.out.push_str(turn);
        match atom.hydrogens {
            0 => {}
            1 => self.out.push('H'),
            more => {
                self.out.push('H');
                self.out.push_str(&more.to_string());
            }
        }
        if atom.charge != 0 {
            self.out.push(if atom.charge > 0 { '+' } else { '-' });
            if atom.charge.abs() > 1 {
                self.out.push_str(&atom.charge.unsigned_abs().to_string());
            }
        }
        self.out.push(']');
    }

    /// The hydrogens that a reader gives the atom without brackets; `None` if it would place the double bonds otherwise.
    fn implied(&self, a: usize, lower: bool) -> Option<u8> {
        let element = self.molecule.atoms()[a].element;
        if !lower {
            let bonds = self.molecule.bond_orders(a);
            return Some(self.table.filled(element, 0, bonds)? - bonds);
        }
        let sigma =
            self.molecule.neighbours(a).map(|(_, bond)| if bond.aromatic { 1 } else { bond.order.value() }).sum();
        let room = self.table.filled(element, 0, sigma)? - sigma;
        let double = has_ring_double(self.molecule, a);
        (double == (room > 0)).then(|| room.saturating_sub(1))
    }
}
