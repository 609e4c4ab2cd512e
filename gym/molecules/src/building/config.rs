use gfn::graph::Scaffold;
use gfn::{Error, Result};

use crate::fragments::Fragment;
use crate::{BondOrder, Element, ValenceTable};

/// The settings of a [`MoleculeEnv`](super::MoleculeEnv).
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
    /// The elements of new atoms, in the order of their node classes. The default is C, N, O, F, P, S, Cl
    /// and Br.
    pub elements: Vec<Element>,
    /// The valences that atoms can have, by element and charge. The default is RDKit's table.
    pub table: ValenceTable,
    /// The charges that atoms can be set to, each listed once. The default is N+ and O-.
    pub charges: Vec<(Element, i8)>,
    /// The number of steps by which an atom's valence may be raised above the smallest valence that fits
    /// its bonds. Hydrogens fill the raised valence. For example, 1 allows `C[PH2]=O`, whose phosphorus has
    /// valence 5 instead of 3. The default is 0: atoms have the smallest valence that fits.
    pub extra_valences: u8,
    /// The highest order of a bond. Triple bonds are allowed by default.
    pub max_order: BondOrder,
    /// The largest number of heavy atoms of a molecule, including the atoms of a scaffold.
    pub max_atoms: usize,
    /// The largest number of independent rings of a molecule. `None`, the default, means that there is no
    /// limit.
    pub max_rings: Option<usize>,
    /// The largest size of a ring, in atoms. All rings of a molecule must be combinations of rings of at most
    /// this size; for example, naphthalene consists of rings of size 6. `None`, the default, means that there
    /// is no limit.
    pub max_ring_size: Option<usize>,
    /// `true` if states have marks of stereochemistry, so that each finished state is one stereoisomer. The
    /// default is `false`: a molecule represents all of its stereoisomers. Stereochemistry can't be combined
    /// with a scaffold.
    pub stereo: bool,
    /// `true` if training corrects for the symmetry of graphs, which is the default.
    pub corrects_symmetry: bool,
    /// The scaffold: the molecule that growth starts from, and its stems, to which new atoms can be
    /// attached. An atom is listed as a stem once for each attachment. With `None`, the default, growth
    /// starts from the empty graph. The scaffold's atoms and bonds stay, and no ring is closed through
    /// them.
    pub scaffold: Option<Fragment>,
    /// The treatment of the scaffold's atoms when objects are compared. By default, two atoms are equal if
    /// a symmetry of the scaffold exchanges them. The alternative is that all atoms are distinguishable.
    pub scaffold_atoms: Scaffold,
}

impl MoleculeConfig {
    /// Creates the default settings for at most `max_atoms` heavy atoms. They allow C, N, O, F, P, S, Cl and
    /// Br with their usual valences, N+ and O-, single to triple bonds, and any rings. States have no
    /// stereochemistry, and training corrects for symmetry.
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
            return refuse(
                "max_ring_size",
                format!("{:?}", self.max_ring_size),
                "at least 3 atoms, or no limit",
            );
        }
        let listed = |element: &Element| self.elements.iter().filter(|other| *other == element).count();
        if self.elements.is_empty() || self.elements.iter().any(|element| listed(element) > 1) {
            return refuse(
                "elements",
                format!("{:?}", self.elements),
                "one or more elements, each listed once",
            );
        }
        if let Some(element) =
            self.elements.iter().find(|element| self.table.valences(**element, 0).is_empty())
        {
            return refuse(
                "elements",
                format!("{element:?}"),
                "elements for which the valence table has a valence without a charge",
            );
        }
        if let Some(scaffold) = &self.scaffold {
            self.check_scaffold(scaffold)?;
            if self.stereo {
                return refuse(
                    "stereo",
                    "set together with a scaffold".into(),
                    "stereochemistry (`stereo`) or a scaffold, but not both",
                );
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
                    "charges other than 0, each listed once, of listed elements that have a valence for the \
                     charge",
                );
            }
        }
        Ok(())
    }
}
