//! Reading of atoms in brackets, including hydrogens that are written as atoms.

use super::{BondOrder, Element, Mark, NotRead, RawAtom, Reader, Result};
use crate::molecule::element::is_symbol;

impl Reader<'_> {
    /// Adds a hydrogen that is written as an atom to the hydrogen count of its neighbour `atom`. `up` is
    /// `Some(true)` if the hydrogen is above this neighbour, and `None` if the bond has no direction.
    pub(super) fn add_hydrogen(&mut self, atom: usize, up: Option<bool>) -> Result<()> {
        if !matches!(self.mark.take(), None | Some(Mark::Order(BondOrder::Single))) {
            return self.refuse(NotRead::HydrogenAtom);
        }
        let count = &mut self.atoms[atom].hydrogen_atoms;
        *count = count.saturating_add(1);
        self.marks.meet_hydrogen(atom, up);
        Ok(())
    }

    /// Reads a hydrogen atom. Its neighbour is the atom before it or, at the beginning of the text, the
    /// first atom after it.
    fn hydrogen(&mut self) -> Result<()> {
        self.at += 1;
        self.atom_map();
        if !self.take(b']') {
            return self.fail("`]` was expected after a hydrogen");
        }
        match self.last {
            Some(last) if matches!(self.peek(), None | Some(b')' | b'.')) => {
                let up = self.up.take();
                self.add_hydrogen(last, up)
            }
            None if !std::mem::replace(&mut self.starts_with_hydrogen, true) => Ok(()),
            _ => self.refuse(NotRead::HydrogenAtom),
        }
    }

    /// Skips the atom-map number of a bracket, if the bracket has one, and adds 1 to the count of skipped
    /// numbers.
    fn atom_map(&mut self) {
        if self.take(b':') && self.digit().is_some() {
            self.left_out.atom_maps += 1;
            while self.digit().is_some() {}
        }
    }

    pub(super) fn bracket(&mut self) -> Result<()> {
        self.at += 1;
        let rest = &self.text[self.at..];
        if let [b'H', b']' | b':', ..] = rest {
            return self.hydrogen();
        }
        if rest.first().is_some_and(u8::is_ascii_digit) {
            let is_unknown = rest.iter().find(|byte| !byte.is_ascii_digit()) == Some(&b'*');
            return self.refuse(if is_unknown { NotRead::UnknownAtom } else { NotRead::Isotope });
        }
        let (element, aromatic) = self.symbol()?;
        let counterclockwise = if self.take(b'@') { Some(!self.take(b'@')) } else { None };
        let hydrogens = if self.take(b'H') { self.digit().unwrap_or(1) } else { 0 };
        let charge = self.charge()?;
        self.atom_map();
        if !self.take(b']') {
            return self.fail(
                "`]` was expected: brackets may hold an element, @, H with its count, and a charge, in this \
                 order",
            );
        }
        self.atom(
            RawAtom { element, aromatic, charge, hydrogens: Some(hydrogens), hydrogen_atoms: 0 },
            counterclockwise,
        )
    }

    /// Reads the symbol of the element in a bracket. Returns the element, and a flag that is `true` if the
    /// symbol is in lower case.
    fn symbol(&mut self) -> Result<(Element, bool)> {
        let mut symbols = [2, 1].into_iter().filter_map(|len| self.smiles.get(self.at..self.at + len));
        let known =
            symbols.find(|text| *text == "*" || is_symbol(text) || Element::from_symbol(text).is_some());
        let Some(symbol) = known else { return self.fail("no element has this symbol") };
        if let Some(found) = Element::from_symbol(symbol) {
            self.at += symbol.len();
            return Ok(found);
        }
        self.refuse(match symbol {
            "*" => NotRead::UnknownAtom,
            "H" => NotRead::HydrogenAtom,
            _ => NotRead::Element,
        })
    }

    fn charge(&mut self) -> Result<i8> {
        let Some(sign @ (b'+' | b'-')) = self.peek() else { return Ok(0) };
        let mut size = 0i8;
        while self.take(sign) {
            size = size.saturating_add(1);
        }
        if size == 1 {
            size = self.digit().map_or(1, |digit| digit as i8);
        }
        if size > 9 {
            return self.fail("the charge is beyond 9");
        }
        Ok(if sign == b'+' { size } else { -size })
    }
}
