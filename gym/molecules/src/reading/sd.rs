//! Records of SD files: V2000 molfiles, of 999 atoms at most, as SMILES that say the same.

use std::fmt::Write;

use crate::{Element, ValenceTable};

/// The bond type of an aromatic bond.
const AROMATIC: u8 = 4;

/// An atom as a molfile has it.
#[derive(Clone, Default, Debug)]
struct BlockAtom {
    symbol: String,
    /// Mass less the usual one, or, of `M  ISO`, the mass itself; 0 for the natural mixture.
    isotope: i32,
    charge: i32,
    /// Unpaired electrons.
    unpaired: u8,
    /// Its valence, where the molfile says so.
    valence: Option<u8>,
}

#[derive(Clone, Copy, Debug)]
struct BlockBond {
    a: usize,
    b: usize,
    kind: u8,
}

/// A record in the making.
#[derive(Default, Debug)]
pub(super) struct SdRecord {
    line: usize,
    n_atoms: usize,
    n_bonds: usize,
    atoms: Vec<BlockAtom>,
    bonds: Vec<BlockBond>,
    /// The number of bonds that are drawn as wedges: stereochemistry that isn't read.
    pub(super) n_wedges: usize,
    /// `true` once a line `M  CHG` or `M  RAD` has replaced the charges of the atoms' own lines.
    charged: bool,
    /// `true` behind `M  END`.
    ended: bool,
    /// The first line that isn't read, and the problem.
    problem: Option<(String, &'static str)>,
}

impl SdRecord {
    /// Takes a line; `false` for the last one, `$$$$`.
    pub(super) fn take(&mut self, text: &str) -> bool {
        if text.starts_with("$$$$") {
            return false;
        }
        self.line += 1;
        if self.ended || self.problem.is_some() || self.line <= 3 {
            return true;
        }
        let taken = if self.line == 4 {
            self.counts(text)
        } else if self.atoms.len() < self.n_atoms {
            self.atom(text)
        } else if self.bonds.len() < self.n_bonds {
            self.bond(text)
        } else {
            self.property(text)
        };
        if let Err(problem) = taken {
            self.problem = Some((text.chars().take(80).collect(), problem));
        }
        true
    }

    fn counts(&mut self, text: &str) -> Result<(), &'static str> {
        if text.contains("V3000") {
            return Err("a record of the format V3000: write it as V2000");
        }
        let counts = field(text, 0, 3).zip(field(text, 3, 3));
        let (atoms, bonds) = counts.ok_or("the numbers of atoms and bonds are missing")?;
        (self.n_atoms, self.n_bonds) = (atoms, bonds);
        Ok(())
    }

    fn atom(&mut self, text: &str) -> Result<(), &'static str> {
        let symbol = columns(text, 31, 3).trim().to_owned();
        let known = !symbol.is_empty() && symbol.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'*');
        if !known {
            return Err("an atom of no symbol, or one of a query");
        }
        // A code of the charge; 4 is a radical.
        let (charge, unpaired) = match field(text, 36, 3).unwrap_or(0u8) {
            0 => (0, 0),
            4 => (0, 1),
            code @ 1..=7 => (4 - i32::from(code), 0),
            _ => return Err("an atom with a charge code beyond 7"),
        };
        // 15 stands for none.
        let valence = field(text, 48, 3).filter(|&valence: &u8| valence > 0).map(|valence| valence % 15);
        let isotope = field(text, 34, 2).unwrap_or(0);
        self.atoms.push(BlockAtom { symbol, isotope, charge, unpaired, valence });
        Ok(())
    }

    fn bond(&mut self, text: &str) -> Result<(), &'static str> {
        let ends = field(text, 0, 3).zip(field(text, 3, 3)).zip(field(text, 6, 3));
        let ((a, b), kind) = ends.ok_or("a bond without its two atoms and its type")?;
        let n = self.atoms.len();
        let (a, b): (usize, usize) = (a, b);
        if !(1..=n).contains(&a) || !(1..=n).contains(&b) || a == b {
            return Err("a bond with an atom that there isn't, or of an atom with itself");
        }
        if !(1..=AROMATIC).contains(&kind) {
            return Err("a bond of a type beyond single, double, triple and aromatic");
        }
        self.n_wedges += usize::from(kind == 1 && field(text, 9, 3).is_some_and(|wedge: u8| wedge > 0));
        self.bonds.push(BlockBond { a: a - 1, b: b - 1, kind });
        Ok(())
    }

    fn property(&mut self, text: &str) -> Result<(), &'static str> {
        let kind = columns(text, 0, 6);
        match kind {
            "M  END" => self.ended = true,
            "M  CHG" | "M  RAD" | "M  ISO" => {
                if kind != "M  ISO" && !std::mem::replace(&mut self.charged, true) {
                    self.atoms.iter_mut().for_each(|atom| (atom.charge, atom.unpaired) = (0, 0));
                }
                let damaged = "a list of charges, radicals or isotopes that is damaged";
                let count: usize = field(text, 6, 3).ok_or(damaged)?;
                for k in 0..count.min(8) {
                    let (atom, value): (usize, i32) =
                        field(text, 9 + 8 * k, 4).zip(field(text, 13 + 8 * k, 4)).ok_or(damaged)?;
                    let atom = atom.checked_sub(1).and_then(|a| self.atoms.get_mut(a)).ok_or(damaged)?;
                    match kind {
                        "M  CHG" => atom.charge = value,
                        // 2 is a doublet, 1 and 3 have two unpaired electrons.
                        "M  RAD" => atom.unpaired = [0, 2, 1, 2][value.clamp(0, 3) as usize],
                        _ => atom.isotope = value,
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A SMILES that says the same, without stereochemistry; the line that isn't read, and why, for a damaged record.
    pub(super) fn smiles(mut self) -> Result<String, (String, &'static str)> {
        if let Some(problem) = self.problem.take() {
            return Err(problem);
        }
        if self.line < 4 || self.atoms.len() < self.n_atoms || self.bonds.len() < self.n_bonds {
            return Err((String::new(), "a record that ends before its atoms and bonds do"));
        }
        Ok(BlockWriter::new(self.atoms, &self.bonds).write())
    }
}

/// So many characters of a line from a place on.
fn columns(text: &str, from: usize, count: usize) -> &str {
    let from = from.min(text.len());
    text.get(from..(from + count).min(text.len())).unwrap_or_default()
}

fn field<T: std::str::FromStr>(text: &str, from: usize, count: usize) -> Option<T> {
    columns(text, from, count).trim().parse().ok()
}

/// Writes atoms and bonds as SMILES: depth first, with a number for each bond that closes a ring.
struct BlockWriter {
    atoms: Vec<BlockAtom>,
    /// The bonds of each atom: the other one, the type, and the number of the bond.
    beside: Vec<Vec<(usize, u8, usize)>>,
    written: Vec<bool>,
    /// For each bond, `true` if it closes no ring.
    is_branch: Vec<bool>,
    out: String,
}

impl BlockWriter {
    fn new(atoms: Vec<BlockAtom>, bonds: &[BlockBond]) -> Self {
        let n = atoms.len();
        let mut beside = vec![Vec::new(); n];
        for (k, bond) in bonds.iter().enumerate() {
            beside[bond.a].push((bond.b, bond.kind, k));
            beside[bond.b].push((bond.a, bond.kind, k));
        }
        Self { atoms, beside, written: vec![false; n], is_branch: vec![false; bonds.len()], out: String::new() }
    }

    fn write(mut self) -> String {
        // A hydrogen isn't the root of what it is joined to: nothing branches off it.
        let mut roots: Vec<usize> = (0..self.atoms.len()).collect();
        roots.sort_by_key(|&a| ["H", "D", "T"].contains(&self.atoms[a].symbol.as_str()));
        for root in roots {
            if !self.written[root] {
                if !self.out.is_empty() {
                    self.out.push('.');
                }
                self.part(root);
            }
        }
        self.out
    }

    /// Writes the atoms that bonds join to this one: each in a branch of the atom that it is met from, whose
    /// ring numbers and branches come in the order of its bonds.
    fn part(&mut self, root: usize) {
        self.atom(root);
        let mut open = vec![(root, 0)];
        while let Some((a, next)) = open.pop() {
            let Some(&(b, kind, bond)) = self.beside[a].get(next) else {
                if !open.is_empty() {
                    self.out.push(')');
                }
                continue;
            };
            open.push((a, next + 1));
            if self.is_branch[bond] {
                continue;
            }
            let mark = ["", "-", "=", "#", ":"][usize::from(kind).min(4)];
            if self.written[b] {
                // Nothing can go wrong when a text is written to.
                let _ = write!(self.out, "{mark}%({bond})");
            } else {
                self.is_branch[bond] = true;
                let _ = write!(self.out, "({mark}");
                self.atom(b);
                open.push((b, 0));
            }
        }
    }

    fn atom(&mut self, a: usize) {
        self.written[a] = true;
        let BlockAtom { symbol, isotope, charge, unpaired, valence } = &self.atoms[a];
        let (symbol, isotope) = match symbol.as_str() {
            "D" => ("H", 2),
            "T" => ("H", 3),
            symbol => (symbol, *isotope),
        };
        let element = Element::from_symbol(symbol).filter(|(_, lower)| !lower).map(|(element, _)| element);
        // Of two aromatic bonds one stands for a double one, unless the atom has no room for it.
        let aromatic = self.beside[a].iter().filter(|bond| bond.1 == AROMATIC).count();
        let orders = self.beside[a].iter().map(|bond| if bond.1 == AROMATIC { 1 } else { bond.1 });
        let bonds = orders.fold(0, u8::saturating_add);
        let filled = |bonds: u8| {
            let table = ValenceTable::default();
            let charge = i8::try_from(*charge).unwrap_or(i8::MAX);
            element
                .and_then(|element| table.valences(element, charge).iter().copied().find(|&valence| valence >= bonds))
        };
        let pi = u8::from(aromatic > 0);
        let implied = filled(bonds + pi).map_or(0, |valence| valence - bonds - pi);
        let count = match valence {
            Some(valence) => valence.saturating_sub(bonds + pi),
            None => implied.saturating_sub(*unpaired),
        };
        let plain = element.is_some_and(Element::in_organic_subset)
            && isotope == 0
            && *charge == 0
            && filled(bonds + pi).map(|valence| valence - bonds - pi) == Some(count);
        if plain || symbol == "*" {
            self.out.push_str(symbol);
            return;
        }
        self.out.push('[');
        if isotope != 0 {
            // From the atom's line a difference of masses, which are no more than named here.
            let usual = element.map_or(0, |element| element.weight().round() as i32);
            let _ =
                write!(self.out, "{}", if isotope < 5 && element.is_some() { usual + isotope } else { isotope }.abs());
        }
        self.out.push_str(symbol);
        if count > 0 && symbol != "H" {
            let _ = write!(self.out, "H{count}");
        }
        if *charge != 0 {
            let _ = write!(self.out, "{charge:+}");
        }
        self.out.push(']');
    }
}
