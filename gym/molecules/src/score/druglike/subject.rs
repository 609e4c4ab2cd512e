//! Conversion of molecules into molecules of the crate chematic.

use std::cell::OnceCell;

use chematic_core::{
    Atom, AtomIdx, BondIdx, BondOrder as Order, Element, Molecule as Other, MoleculeBuilder,
};
use chematic_smarts::perceived::with_perceived_target;

use crate::score::property::Subject;
use crate::{BondOrder, Molecule};

/// A molecule as chematic's type, in two versions: with hydrogens as counts, and with hydrogens as atoms.
/// Each version is created when it is first needed. The version is then kept, because chematic caches results
/// in it.
#[derive(Default)]
pub(crate) struct Translations {
    plain: OnceCell<Other>,
    with_hydrogens: OnceCell<Other>,
}

impl Subject<'_> {
    /// Returns the version of the molecule in which only heavy atoms are atoms, and hydrogens are counts on
    /// them.
    pub(crate) fn plain(&self) -> &Other {
        self.translations.plain.get_or_init(|| translated(self.molecule, false))
    }

    /// Returns `true` if the bond with this index is aromatic in RDKit's model.
    pub(super) fn is_aromatic(&self, bond: usize) -> bool {
        self.plain().bond(BondIdx(bond as u32)).order == Order::Aromatic
    }

    /// Returns the version of the molecule in which each hydrogen is an atom.
    pub(crate) fn with_hydrogens(&self) -> &Other {
        self.translations.with_hydrogens.get_or_init(|| translated(self.molecule, true))
    }
}

/// Converts a molecule into chematic's type. Atoms and bonds keep their order. If `hydrogens` is `true`,
/// hydrogens become atoms and come last. chematic computes aromaticity, and treats a bond that two rings
/// share as RDKit does. This treatment differs from the model of this library if neither ring is aromatic
/// alone, as in azulene.
fn translated(molecule: &Molecule, hydrogens: bool) -> Other {
    let mut out = MoleculeBuilder::with_capacity(molecule.atoms().len(), molecule.bonds().len());
    let index = |a: usize| AtomIdx(a as u32);
    for atom in molecule.atoms() {
        // chematic knows every element of this library, so the fallback isn't used.
        let element = Element::from_atomic_number(atom.element.number()).unwrap_or(Element::C);
        let count = if hydrogens { 0 } else { atom.hydrogens };
        out.add_atom(Atom { charge: atom.charge, hydrogen_count: Some(count), ..Atom::new(element) });
    }
    for bond in molecule.bonds() {
        let order = match bond.order {
            BondOrder::Single => Order::Single,
            BondOrder::Double => Order::Double,
            BondOrder::Triple => Order::Triple,
        };
        // Adding the bond can't fail, because its atoms exist and two atoms have at most one bond.
        let _ = out.add_bond(index(bond.a), index(bond.b), order);
    }
    if hydrogens {
        for (a, atom) in molecule.atoms().iter().enumerate() {
            for _ in 0..atom.hydrogens {
                let hydrogen = out.add_atom(Atom { hydrogen_count: Some(0), ..Atom::new(Element::H) });
                let _ = out.add_bond(index(a), hydrogen, Order::Single);
            }
        }
    }
    with_perceived_target(&out.build(), Other::clone)
}
