//! Reading of records of SD files (V2000 molfiles with at most 999 atoms), which are translated into
//! SMILES.

use crate::molecule::{TextTree, signed, with_count};
use crate::{Element, ValenceTable};

/// The number that a molfile uses for the type of an aromatic bond.
const AROMATIC: u8 = 4;

/// An atom of a molfile.
#[derive(Clone, Default, Debug)]
struct BlockAtom {
    symbol: String,
    /// The isotope of the atom, or 0 for the natural mixture. An atom line gives the difference from the
    /// usual mass, and a line `M  ISO` gives the mass itself.
    isotope: i32,
    charge: i32,
    /// The number of the atom's unpaired electrons.
    unpaired: u8,
    /// The valence of the atom; `None` if the molfile doesn't give it.
    valence: Option<u8>,
}

#[derive(Clone, Copy, Debug)]
struct BlockBond {
    a: usize,
    b: usize,
    kind: u8,
}

/// The contents of a record of an SD file, collected line by line.
#[derive(Default, Debug)]
pub(super) struct SdRecord {
    line: usize,
    n_atoms: usize,
    n_bonds: usize,
    atoms: Vec<BlockAtom>,
    bonds: Vec<BlockBond>,
    /// The number of bonds that are drawn as wedges. The stereochemistry of wedges is ignored.
    pub(super) n_wedges: usize,
    /// `true` after the first line `M  CHG` or `M  RAD`. The charges and radicals in all atom lines are
    /// ignored then.
    charged: bool,
    /// `true` after the line `M  END`. All later lines are ignored.
    is_at_end: bool,
    /// The first line that can't be read, with a description of its problem.
    problem: Option<(String, &'static str)>,
}

impl SdRecord {
    /// Reads the next line of the record. Returns `false` if the line is `$$$$`, which ends the record.
    pub(super) fn take(&mut self, text: &str) -> bool {
        if text.starts_with("$$$$") {
            return false;
        }
        self.line += 1;
        if self.is_at_end || self.problem.is_some() || self.line <= 3 {
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
            return Err("the record has the format V3000: write it as V2000");
        }
        let counts = field(text, 0, 3).zip(field(text, 3, 3));
        let (atoms, bonds) = counts.ok_or("the numbers of atoms and bonds are missing")?;
        (self.n_atoms, self.n_bonds) = (atoms, bonds);
        Ok(())
    }

    fn atom(&mut self, text: &str) -> Result<(), &'static str> {
        let symbol = columns(text, 31, 3).trim().to_owned();
        let known =
            !symbol.is_empty() && symbol.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'*');
        if !known {
            return Err("an atom has no symbol, or the symbol of a query");
        }
        // The field holds a charge code. Code 4 is a radical. Any other code from 1 to 7 is the charge 4 -
        // code.
        let (charge, unpaired) = match field(text, 36, 3).unwrap_or(0u8) {
            0 => (0, 0),
            4 => (0, 1),
            code @ 1..=7 => (4 - i32::from(code), 0),
            _ => return Err("an atom has a charge code beyond 7"),
        };
        // The value 15 means a valence of 0, and the value 0 means that no valence is given.
        let valence = field(text, 48, 3).filter(|&valence: &u8| valence > 0).map(|valence| valence % 15);
        let isotope = field(text, 34, 2).unwrap_or(0);
        self.atoms.push(BlockAtom { symbol, isotope, charge, unpaired, valence });
        Ok(())
    }

    fn bond(&mut self, text: &str) -> Result<(), &'static str> {
        let ends = field(text, 0, 3).zip(field(text, 3, 3)).zip(field(text, 6, 3));
        let ((a, b), kind) = ends.ok_or("a bond lacks one of its two atoms or its type")?;
        let n = self.atoms.len();
        let (a, b): (usize, usize) = (a, b);
        if !(1..=n).contains(&a) || !(1..=n).contains(&b) || a == b {
            return Err("a bond names an atom that doesn't exist, or joins an atom with itself");
        }
        if !(1..=AROMATIC).contains(&kind) {
            return Err("a bond has a type other than single, double, triple and aromatic");
        }
        self.n_wedges += usize::from(kind == 1 && field(text, 9, 3).is_some_and(|wedge: u8| wedge > 0));
        self.bonds.push(BlockBond { a: a - 1, b: b - 1, kind });
        Ok(())
    }

    fn property(&mut self, text: &str) -> Result<(), &'static str> {
        let kind = columns(text, 0, 6);
        match kind {
            "M  END" => self.is_at_end = true,
            "M  CHG" | "M  RAD" | "M  ISO" => {
                if kind != "M  ISO" && !std::mem::replace(&mut self.charged, true) {
                    for atom in &mut self.atoms {
                        (atom.charge, atom.unpaired) = (0, 0);
                    }
                }
                let damaged = "a list of charges, radicals or isotopes is damaged";
                let count: usize = field(text, 6, 3).ok_or(damaged)?;
                for k in 0..count.min(8) {
                    let (atom, value): (usize, i32) =
                        field(text, 9 + 8 * k, 4).zip(field(text, 13 + 8 * k, 4)).ok_or(damaged)?;
                    let atom = atom.checked_sub(1).and_then(|a| self.atoms.get_mut(a)).ok_or(damaged)?;
                    match kind {
                        "M  CHG" => atom.charge = value,
                        // The value 2 means a doublet, which has one unpaired electron. The values 1 and 3
                        // mean two unpaired electrons.
                        "M  RAD" => atom.unpaired = [0, 2, 1, 2][value.clamp(0, 3) as usize],
                        _ => atom.isotope = value,
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns a SMILES of the record without stereochemistry. If the record is damaged, the function
    /// returns the damaged line and a description of the problem instead.
    pub(super) fn smiles(self) -> (String, Option<&'static str>) {
        if let Some((line, problem)) = self.problem {
            return (line, Some(problem));
        }
        if self.line < 4 || self.atoms.len() < self.n_atoms || self.bonds.len() < self.n_bonds {
            return (String::new(), Some("the record ends before all of its atoms and bonds"));
        }
        (write_smiles(&self.atoms, &self.bonds), None)
    }
}

/// Returns `count` bytes of a line, beginning at index `from`. The text is shorter if the line ends before.
fn columns(text: &str, from: usize, count: usize) -> &str {
    let from = from.min(text.len());
    text.get(from..(from + count).min(text.len())).unwrap_or_default()
}

fn field<T: std::str::FromStr>(text: &str, from: usize, count: usize) -> Option<T> {
    columns(text, from, count).trim().parse().ok()
}

/// A bond as seen from one of its atoms: the index of the bond, the atom at the other end, and the type of
/// the bond.
type Beside = (usize, usize, u8);

/// Returns the SMILES of a molecule that is given by its atoms and bonds.
fn write_smiles(atoms: &[BlockAtom], bonds: &[BlockBond]) -> String {
    let mut beside: Vec<Vec<Beside>> = vec![Vec::new(); atoms.len()];
    for (k, bond) in bonds.iter().enumerate() {
        beside[bond.a].push((k, bond.b, bond.kind));
        beside[bond.b].push((k, bond.a, bond.kind));
    }
    // The text of each molecule begins at the first of its atoms in this order. Hydrogens come last, because
    // in SMILES no branch may start at a hydrogen.
    let mut roots: Vec<usize> = (0..atoms.len()).collect();
    roots.sort_by_key(|&a| ["H", "D", "T"].contains(&atoms[a].symbol.as_str()));
    let steps = |a: usize| beside[a].iter().map(|&(k, b, _)| (k, b)).collect();
    let mark = |k: usize, _: usize| ["", "-", "=", "#", ":"][usize::from(bonds[k].kind)];
    TextTree::new(atoms.len(), bonds.len(), &roots, steps).write(|a| atoms[a].smiles(&beside[a]), mark)
}

impl BlockAtom {
    /// Returns the SMILES of this atom alone. `beside` lists the bonds of the atom, which determine its
    /// hydrogens.
    fn smiles(&self, beside: &[Beside]) -> String {
        let (symbol, isotope) = match self.symbol.as_str() {
            "D" => ("H", 2),
            "T" => ("H", 3),
            symbol => (symbol, self.isotope),
        };
        let element = Element::from_symbol(symbol).filter(|(_, lower)| !lower).map(|(element, _)| element);
        // The valence of the atom counts one of its aromatic bonds as double and the other aromatic bonds
        // as single.
        let orders = beside.iter().map(|&(.., kind)| if kind == AROMATIC { 1 } else { kind });
        let is_aromatic = beside.iter().any(|&(.., kind)| kind == AROMATIC);
        let bonds = orders.fold(u8::from(is_aromatic), u8::saturating_add);
        let charge = i8::try_from(self.charge).unwrap_or(i8::MAX);
        let table = ValenceTable::default();
        let full = element.and_then(|element| table.filled(element, charge, bonds)).map(|full| full - bonds);
        let count = match self.valence {
            Some(valence) => valence.saturating_sub(bonds),
            None => full.unwrap_or(0).saturating_sub(self.unpaired),
        };
        let plain = element.is_some_and(Element::in_organic_subset) && isotope == 0 && self.charge == 0;
        if plain && full == Some(count) || symbol == "*" {
            return symbol.to_owned();
        }
        let mass = match element {
            _ if isotope == 0 => String::new(),
            // Atom lines give the difference from the usual mass, which is always small. A larger value is
            // the mass itself.
            Some(element) if isotope < 5 => (element.weight().round() as i32 + isotope).abs().to_string(),
            _ => isotope.abs().to_string(),
        };
        let hydrogens = if symbol == "H" { String::new() } else { with_count("H", count.into()) };
        format!("[{mass}{symbol}{hydrogens}{}]", signed(self.charge))
    }
}
