use crate::{BondOrder, Molecule};

impl Molecule {
    /// Returns the Bemis-Murcko scaffold of the molecule (Bemis and Murcko 1996, with RDKit's exocyclic
    /// double bonds). The scaffold consists of rings, linkers, and atoms with a double bond to a ring or
    /// linker. Hydrogens replace all other atoms. Returns `None` for a molecule without a ring.
    ///
    /// ```
    /// use gfn_molecules::Molecule;
    /// let scaffold = |smiles: &str| Molecule::from_smiles(smiles).map(|m| m.scaffold().map(|s| s.smiles()));
    /// assert_eq!(scaffold("CC(=O)c1ccccc1O")?, Some(Molecule::from_smiles("c1ccccc1")?.smiles()));
    /// assert_eq!(scaffold("CC1CCCC1=O")?, Some(Molecule::from_smiles("O=C1CCCC1")?.smiles()));
    /// assert_eq!(scaffold("CCO")?, None);
    /// # Ok::<(), gfn_molecules::MoleculeError>(())
    /// ```
    #[must_use]
    pub fn scaffold(&self) -> Option<Self> {
        let n = self.atoms().len();
        // Ends of chains are removed repeatedly, so that only rings and linkers remain.
        let mut core = vec![true; n];
        self.prune(&mut core, |_| true);
        let doubly =
            |a: usize| self.neighbours(a).any(|(b, bond)| core[b] && bond.order == BondOrder::Double);
        let kept: Vec<usize> = (0..n).filter(|&a| core[a] || doubly(a)).collect();
        // If the molecule has no ring, no atom remains. Creating a molecule without atoms is an error,
        // which becomes `None`.
        self.part(&kept, |_| true).ok()
    }
}
