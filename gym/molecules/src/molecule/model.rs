use super::element::HYDROGEN;
use super::{Element, MoleculeError, StereoMark, ValenceTable, aromaticity};

/// The order of a bond in a Kekule form: the number of its electron pairs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum BondOrder {
    /// A single bond.
    Single = 1,
    /// A double bond.
    Double,
    /// A triple bond.
    Triple,
}

impl BondOrder {
    /// Returns 1, 2 or 3 for a single, double or triple bond.
    #[must_use]
    pub fn value(self) -> u8 {
        self as u8
    }

    /// Returns the bond order that is encoded by an edge attribute of a molecule's graph: 0 is a single
    /// bond, 1 is a double bond, 2 is a triple bond.
    pub(crate) fn from_attribute(attribute: u8) -> Self {
        match attribute {
            0 => Self::Single,
            1 => Self::Double,
            _ => Self::Triple,
        }
    }
}

/// The description of an atom that is passed to [`Molecule::new`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtomSpec {
    /// The element of the atom.
    pub element: Element,
    /// The formal charge of the atom.
    pub charge: i8,
    /// The number of the atom's hydrogens. `None` adds hydrogens up to the smallest valence that the atom's
    /// bonds allow.
    pub hydrogens: Option<u8>,
}

impl AtomSpec {
    /// Creates the specification of a neutral atom. Hydrogens are added up to the smallest valence that its
    /// bonds allow.
    #[must_use]
    pub fn from_element(element: Element) -> Self {
        Self { element, charge: 0, hydrogens: None }
    }
}

/// An atom of a molecule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Atom {
    /// The element of the atom.
    pub element: Element,
    /// The formal charge of the atom.
    pub charge: i8,
    /// The number of hydrogens bonded to the atom.
    pub hydrogens: u8,
    /// `true` if the atom is in an aromatic ring.
    pub aromatic: bool,
}

impl From<&Atom> for AtomSpec {
    fn from(&Atom { element, charge, hydrogens, .. }: &Atom) -> Self {
        Self { element, charge, hydrogens: Some(hydrogens) }
    }
}

/// A bond of a molecule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bond {
    /// The index of the bond's first atom.
    pub a: usize,
    /// The index of the bond's second atom.
    pub b: usize,
    /// The order of the bond in the molecule's current Kekule form.
    pub order: BondOrder,
    /// `true` if the bond is part of an aromatic ring.
    pub aromatic: bool,
    /// `true` if the bond is part of a ring.
    pub in_ring: bool,
}

impl Bond {
    /// Returns the atom at the other end of the bond; `atom` must be one of its two ends.
    #[must_use]
    pub fn other_end(&self, atom: usize) -> usize {
        self.a + self.b - atom
    }
}

/// A connected molecule with closed shells: heavy atoms with charges and hydrogens, bonds in one Kekule form,
/// flags of aromatic atoms and bonds, and [`marks`](Self::marks) of stereochemistry. Isotopes aren't
/// supported.
///
/// ```
/// use gfn_molecules::Molecule;
/// let phenol = Molecule::from_smiles("OC1=CC=CC=C1")?;
/// assert_eq!((phenol.formula().as_str(), phenol.n_rings()), ("C6H6O", 1));
/// assert!((phenol.weight() - 94.113).abs() < 1e-9);
/// assert_eq!(phenol.smiles(), Molecule::from_smiles("c1cccc(O)c1")?.smiles());
/// # Ok::<(), gfn_molecules::MoleculeError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Molecule {
    atoms: Vec<Atom>,
    bonds: Vec<Bond>,
    /// The indices of each atom's bonds.
    at: Vec<Vec<usize>>,
    /// The marks of stereochemistry, in the order of their stereo elements.
    pub(super) marks: Vec<StereoMark>,
}

impl Molecule {
    /// Creates a molecule without marks of stereochemistry from atoms and bonds. The function determines from
    /// these which bonds are in rings and which are aromatic.
    ///
    /// # Errors
    /// [`MoleculeError::Valence`] for the first atom whose valence isn't in the table;
    /// [`MoleculeError::Bond`] for a bond with an invalid end, and for a second bond between two atoms;
    /// [`MoleculeError::Disconnected`] if the atoms aren't connected or if there are no atoms;
    /// [`MoleculeError::TooLarge`] for more than [`MAX_ATOMS`](Self::MAX_ATOMS) atoms.
    pub fn new(
        table: &ValenceTable,
        atoms: &[AtomSpec],
        bonds: &[(usize, usize, BondOrder)],
    ) -> Result<Self, MoleculeError> {
        if atoms.len() > Self::MAX_ATOMS {
            return Err(MoleculeError::TooLarge);
        }
        let mut at = vec![Vec::new(); atoms.len()];
        let mut out: Vec<Bond> = Vec::with_capacity(bonds.len());
        for (k, &(a, b, order)) in bonds.iter().enumerate() {
            let twice = |bonds: &Vec<usize>| bonds.iter().any(|&k| out[k].other_end(a) == b);
            if a == b || a.max(b) >= atoms.len() || twice(&at[a]) {
                return Err(MoleculeError::Bond { a, b });
            }
            out.push(Bond { a, b, order, aromatic: false, in_ring: false });
            at[a].push(k);
            at[b].push(k);
        }
        let mut filled = Vec::with_capacity(atoms.len());
        for (i, &AtomSpec { element, charge, hydrogens }) in atoms.iter().enumerate() {
            let bonds = at[i].iter().fold(0u8, |sum, &k| sum.saturating_add(out[k].order.value()));
            let valence = bonds.saturating_add(hydrogens.unwrap_or(0));
            let full = table.fill(i, element, charge, valence, hydrogens.is_some())?;
            filled.push(Atom { element, charge, hydrogens: full - bonds, aromatic: false });
        }
        let mut molecule = Self { atoms: filled, bonds: out, at, marks: Vec::new() };
        molecule.check_connected()?;
        let in_ring = aromaticity::ring_bonds(atoms.len(), bonds.iter().map(|&(a, b, _)| (a, b)));
        for (bond, in_ring) in molecule.bonds.iter_mut().zip(in_ring) {
            bond.in_ring = in_ring;
        }
        for (k, _) in aromaticity::aromatic_bonds(&molecule) {
            let bond = &mut molecule.bonds[k];
            bond.aromatic = true;
            molecule.atoms[bond.a].aromatic = true;
            molecule.atoms[bond.b].aromatic = true;
        }
        Ok(molecule)
    }

    /// Returns the molecule that consists of the given atoms and of the bonds among them that `keeps`
    /// accepts. Hydrogens replace the atoms' other bonds.
    pub(crate) fn part(&self, atoms: &[usize], keeps: impl Fn(&Bond) -> bool) -> Result<Self, MoleculeError> {
        let mut place = vec![None; self.atoms.len()];
        for (k, &a) in atoms.iter().enumerate() {
            place[a] = Some(k);
        }
        let ends = |bond: &Bond| Some((place[bond.a]?, place[bond.b]?, bond.order)).filter(|_| keeps(bond));
        let mut table = ValenceTable::default();
        let mut specs = Vec::with_capacity(atoms.len());
        for &a in atoms {
            let Atom { element, charge, hydrogens, .. } = self.atoms[a];
            // The molecule may have been read with a table that has more valences than the default table.
            // The valence of each atom is therefore added to the table.
            let mut valences = table.valences(element, charge).to_vec();
            valences.push(self.valence(a));
            table = table.with(element, charge, &valences);
            let gone = self.neighbours(a).filter(|(_, bond)| ends(bond).is_none());
            let freed: u8 = gone.map(|(_, bond)| bond.order.value()).sum();
            specs.push(AtomSpec { element, charge, hydrogens: Some(hydrogens + freed) });
        }
        let bonds: Vec<_> = self.bonds.iter().filter_map(ends).collect();
        Self::new(&table, &specs, &bonds)
    }

    fn check_connected(&self) -> Result<(), MoleculeError> {
        let joined = if self.atoms.is_empty() { Vec::new() } else { self.reach(0, usize::MAX, |_| true) };
        if !joined.is_empty() && joined.len() == self.atoms.len() {
            return Ok(());
        }
        let atom = (0..self.atoms.len()).find(|a| !joined.contains(a)).unwrap_or(0);
        Err(MoleculeError::Disconnected { atom })
    }

    /// Returns the atoms that are at most `steps` bonds away from `start`, sorted by distance. The search
    /// follows only bonds for whose indices `crosses` returns `true`.
    pub(crate) fn reach(&self, start: usize, steps: usize, crosses: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut seen = vec![false; self.atoms.len()];
        seen[start] = true;
        let mut reached = vec![start];
        let mut first = 0;
        for _ in 0..steps {
            let layer = first..reached.len();
            if layer.is_empty() {
                break;
            }
            first = layer.end;
            for place in layer {
                let a = reached[place];
                for &k in self.at[a].iter().filter(|k| crosses(**k)) {
                    let b = self.bonds[k].other_end(a);
                    if !std::mem::replace(&mut seen[b], true) {
                        reached.push(b);
                    }
                }
            }
        }
        reached
    }

    /// Removes atoms that have fewer than two neighbours in the set `inside`, until the set has no such
    /// atom. Two atoms count as neighbours only if `links` accepts the bond between them.
    pub(crate) fn prune(&self, inside: &mut [bool], links: impl Fn(&Bond) -> bool) {
        let mut open: Vec<usize> = (0..inside.len()).collect();
        while let Some(a) = open.pop() {
            let linked = self.neighbours(a).filter(|(_, bond)| links(bond));
            let beside: Vec<usize> = linked.map(|(b, _)| b).filter(|&b| inside[b]).collect();
            if inside[a] && beside.len() < 2 {
                inside[a] = false;
                open.extend(beside);
            }
        }
    }

    /// Returns the heavy atoms of the molecule.
    #[must_use]
    pub fn atoms(&self) -> &[Atom] {
        &self.atoms
    }

    /// Returns the bonds between heavy atoms of the molecule.
    #[must_use]
    pub fn bonds(&self) -> &[Bond] {
        &self.bonds
    }

    pub(super) fn bonds_mut(&mut self) -> &mut [Bond] {
        &mut self.bonds
    }

    /// Iterates over the heavy neighbours of an atom, with the bonds to them.
    pub fn neighbours(&self, atom: usize) -> impl ExactSizeIterator<Item = (usize, &Bond)> {
        self.at[atom].iter().map(move |&k| (self.bonds[k].other_end(atom), &self.bonds[k]))
    }

    /// Returns the indices of an atom's bonds.
    pub(crate) fn bonds_at(&self, atom: usize) -> &[usize] {
        &self.at[atom]
    }

    /// Returns the sum of the orders of an atom's bonds, without bonds to hydrogens.
    #[must_use]
    pub fn bond_orders(&self, atom: usize) -> u8 {
        self.neighbours(atom).map(|(_, bond)| bond.order.value()).sum()
    }

    /// Returns the sum of the orders of an atom's bonds, including bonds to hydrogens.
    pub(crate) fn valence(&self, atom: usize) -> u8 {
        self.bond_orders(atom) + self.atoms[atom].hydrogens
    }

    /// Returns the number of an atom's neighbours, including hydrogens.
    pub(crate) fn degree(&self, atom: usize) -> u8 {
        self.at[atom].len() as u8 + self.atoms[atom].hydrogens
    }

    /// Returns `true` if an atom is in a ring.
    pub(crate) fn in_ring(&self, atom: usize) -> bool {
        self.neighbours(atom).any(|(_, bond)| bond.in_ring)
    }

    /// Returns the molecular formula in RDKit's format: carbon, hydrogen, the other elements in alphabetical
    /// order, then the charge. (Hill's order differs for molecules without carbon: there, hydrogen is sorted
    /// among the other elements.)
    #[must_use]
    pub fn formula(&self) -> String {
        let count = |element| self.atoms.iter().filter(|atom| atom.element == element).count();
        let mut parts: Vec<(&str, usize)> = Element::ALL.iter().map(|e| (e.symbol(), count(*e))).collect();
        parts.push(("H", self.n_hydrogens()));
        let organic = count(Element::C) > 0;
        parts.sort_by_key(|&(symbol, _)| match symbol {
            "C" if organic => (0, symbol),
            "H" => (1, symbol),
            _ => (2, symbol),
        });
        let text: String = parts.into_iter().map(|(symbol, count)| with_count(symbol, count)).collect();
        text + &signed(self.charge())
    }

    /// Returns the number of hydrogens in the molecule.
    #[must_use]
    pub fn n_hydrogens(&self) -> usize {
        self.atoms.iter().map(|atom| usize::from(atom.hydrogens)).sum()
    }

    /// Returns the total charge of the molecule.
    #[must_use]
    pub fn charge(&self) -> i32 {
        self.atoms.iter().map(|atom| i32::from(atom.charge)).sum()
    }

    /// Returns the molecular weight in g/mol, with natural abundances of isotopes.
    #[must_use]
    pub fn weight(&self) -> f64 {
        let heavy: f64 = self.atoms.iter().map(|atom| atom.element.weight()).sum();
        heavy + self.n_hydrogens() as f64 * HYDROGEN
    }

    /// Returns the type of each bond as RDKit defines it: the bond's order in the current Kekule form, or
    /// `None` for an aromatic bond. A chord inside aromatic rings (the central bond of azulene) isn't an
    /// aromatic bond.
    pub(crate) fn bond_kinds(&self) -> Vec<Option<BondOrder>> {
        let mut kinds: Vec<Option<BondOrder>> = self.bonds.iter().map(|bond| Some(bond.order)).collect();
        if self.bonds.iter().any(|bond| bond.aromatic) {
            for (k, is_chord) in aromaticity::aromatic_bonds(self) {
                kinds[k] = kinds[k].filter(|_| is_chord);
            }
        }
        kinds
    }

    /// Returns the number of independent rings: bonds minus atoms plus 1 (the cyclomatic number).
    ///
    /// RDKit's `GetSSSR` returns the same number of rings. RDKit's `CalcNumRings` also counts further rings
    /// of the same size in cages: 4 for adamantane, which has 3 independent rings, and 6 for cubane, which
    /// has 5.
    #[must_use]
    pub fn n_rings(&self) -> usize {
        self.bonds.len() + 1 - self.atoms.len()
    }
}

/// Returns a symbol followed by its count. The text is empty if the count is 0, and it is the symbol alone
/// if the count is 1.
pub(crate) fn with_count(symbol: &str, count: usize) -> String {
    match count {
        0 => String::new(),
        1 => symbol.to_owned(),
        _ => format!("{symbol}{count}"),
    }
}

/// Returns a charge in the notation of formulas and SMILES: the sign, followed by the absolute value unless
/// this is 1. The text is empty if the charge is 0.
pub(crate) fn signed(charge: i32) -> String {
    with_count(if charge > 0 { "+" } else { "-" }, charge.unsigned_abs() as usize)
}

/// Returns the bonds of a ring as pairs of consecutive atoms.
pub(crate) fn ring_edges(ring: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    ring.iter().copied().zip(ring.iter().copied().cycle().skip(1))
}

/// Returns the position of each atom in `order`, which lists all atoms.
pub(crate) fn ranks(order: &[u32]) -> Vec<usize> {
    let mut rank = vec![0; order.len()];
    for (place, &atom) in order.iter().enumerate() {
        rank[atom as usize] = place;
    }
    rank
}
