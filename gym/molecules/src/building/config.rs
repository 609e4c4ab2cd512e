use gfn::graph::Scaffold;
use gfn::{Error, Result};

use crate::fragments::Fragment;
use crate::{BondOrder, Element, ValenceTable};

/// The limits of a [`MoleculeEnv`](super::MoleculeEnv).
///
/// ```
/// use gfn_molecules::{Element, MoleculeConfig, MoleculeEnv};
/// let config = MoleculeConfig {
///     elements: vec![Element::C, Element::N, Element::O],
///     charges: Vec::new(),
///     max_rings: Some(2),
///     max_ring_size: Some(7),
///     ..MoleculeConfig::new(12)
/// };
/// let molecules = MoleculeEnv::new(config)?;
/// let none = MoleculeConfig { elements: Vec::new(), ..MoleculeConfig::new(12) };
/// assert!(MoleculeEnv::new(none).unwrap_err().to_string().starts_with("elements is []"));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MoleculeConfig {
    /// Elements of new atoms, in the order of their classes.
    pub elements: Vec<Element>,
    /// Valences by element and charge.
    pub table: ValenceTable,
    /// Charges that atoms can be given, once.
    pub charges: Vec<(Element, i8)>,
    /// The number of valences above the smallest one that an atom may be set to, the rest being hydrogens: 1
    /// allows the two hydrogens of `C[PH2]=O`, say. 0 for atoms that are filled up to the smallest valence
    /// only.
    pub extra_valences: u8,
    /// The highest order of bonds.
    pub max_order: BondOrder,
    /// The most heavy atoms.
    pub max_atoms: usize,
    /// The most independent rings; `None` for no limit.
    pub max_rings: Option<usize>,
    /// The most atoms of a ring in a smallest set of rings; `None` for no limit.
    pub max_ring_size: Option<usize>,
    /// `true` if states have signs of stereochemistry, each finished one being one stereoisomer. `false`: a
    /// molecule stands for all of its stereoisomers.
    pub stereo: bool,
    /// `true` if training corrects for symmetry.
    pub corrects_symmetry: bool,
    /// The molecule that growth starts from, with the atoms that something may be attached to, each as often
    /// as it is a stem; `None` for the empty one. Its atoms and bonds stay, and no ring is closed over them.
    pub scaffold: Option<Fragment>,
    /// The treatment of its atoms: alike, if a symmetry of it takes one to the other, or each told apart.
    pub scaffold_atoms: Scaffold,
}

impl MoleculeConfig {
    /// C, N, O, F, P, S, Cl and Br with the usual valences, N+ and O-, bonds up to triple ones, any rings, at
    /// most `max_atoms` heavy atoms, no stereochemistry; training corrects for symmetry.
    #[must_use]
    pub fn new(max_atoms: usize) -> Self {
        use Element::{Br, C, Cl, F, N, O, P, S};
        Self {
            elements: vec![C, N, O, F, P, S, Cl, Br],
            table: ValenceTable::default(),
            charges: vec![(N, 1), (O, -1)],
            extra_valences: 0,
            max_order: BondOrder::Triple,
            max_atoms,
            max_rings: None,
            max_ring_size: None,
            stereo: false,
            corrects_symmetry: true,
            scaffold: None,
            scaffold_atoms: Scaffold::Alike,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let refuse = |setting, got: String, expected| Err(Error::config(setting, got, expected));
        if self.max_atoms == 0 {
            return refuse("max_atoms", "0".into(), "at least 1 atom");
        }
        if self.max_ring_size.is_some_and(|size| size < 3) {
            return refuse("max_ring_size", format!("{:?}", self.max_ring_size), "at least 3 atoms, or no limit");
        }
        let listed = |element: &Element| self.elements.iter().filter(|other| *other == element).count();
        if self.elements.is_empty() || self.elements.iter().any(|element| listed(element) > 1) {
            return refuse("elements", format!("{:?}", self.elements), "one or more elements, each once");
        }
        if let Some(element) = self.elements.iter().find(|element| self.table.valences(**element, 0).is_empty()) {
            return refuse("elements", format!("{element:?}"), "elements that the valence table has without a charge");
        }
        if let Some(scaffold) = &self.scaffold {
            self.check_scaffold(scaffold)?;
            if self.stereo {
                return refuse("stereo", "with a scaffold".into(), "signs of stereochemistry, or a scaffold");
            }
        }
        for &(element, charge) in &self.charges {
            let twice = self.charges.iter().filter(|other| **other == (element, charge)).count() > 1;
            let known = listed(&element) == 1 && !self.table.valences(element, charge).is_empty();
            if charge == 0 || twice || !known {
                let got = format!("{element:?} with charge {charge}");
                return refuse(
                    "charges",
                    got,
                    "charges other than 0, each once, of listed elements with valences for them",
                );
            }
        }
        Ok(())
    }
}
