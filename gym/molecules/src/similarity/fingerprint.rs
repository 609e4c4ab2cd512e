use std::collections::BTreeSet;

use crate::Molecule;

/// Words of 64 bits.
const WORDS: usize = 32;

/// A circular fingerprint of 2,048 bits: one for each environment of up to two bonds around an atom (Rogers
/// and Hahn, *Extended-Connectivity Fingerprints*, 2010: ECFP4, or Morgan's with radius 2).
///
/// An environment is what [`Molecule::environments`] says; its bit is its number modulo 2,048. The numbers
/// are our own hashes, so the bits aren't RDKit's; similarities are those of RDKit's generator with
/// `includeRedundantEnvironments`, but for environments that share a bit. By default RDKit leaves out
/// environments of the same bonds as another, which ones depends on its hashes: similarities then differ, of
/// small molecules by a tenth and more (ethane and propane 0.125 here, 0.2 there), so thresholds from the
/// literature are a guide only.
///
/// ```
/// use gfn_molecules::{Fingerprint, Molecule};
/// let of = |smiles: &str| Molecule::from_smiles(smiles).map(|molecule| Fingerprint::of(&molecule));
/// let (toluene, phenol, hexane) = (of("Cc1ccccc1")?, of("Oc1ccccc1")?, of("CCCCCC")?);
/// assert_eq!(toluene.tanimoto(&of("c1cccc(C)c1")?), 1.0);
/// assert!(toluene.tanimoto(&phenol) > toluene.tanimoto(&hexane));
/// # Ok::<(), gfn_molecules::MoleculeError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fingerprint([u64; WORDS]);

impl Fingerprint {
    /// The number of bits.
    pub const BITS: usize = 64 * WORDS;

    /// Computes the fingerprint of environments of up to two bonds.
    #[must_use]
    pub fn of(molecule: &Molecule) -> Self {
        Self::with_radius(molecule, 2)
    }

    /// Computes the fingerprint of environments of up to `radius` bonds.
    #[must_use]
    pub fn with_radius(molecule: &Molecule, radius: usize) -> Self {
        let mut words = [0; WORDS];
        for number in molecule.environments(radius) {
            let bit = (number % Self::BITS as u64) as usize;
            words[bit / 64] |= 1 << (bit % 64);
        }
        Self(words)
    }

    /// The number of bits that are set.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The Tanimoto (Jaccard) similarity, from 0 to 1: bits that both have, over bits that either has.
    #[must_use]
    pub fn tanimoto(&self, other: &Self) -> f64 {
        let both: u32 = self.0.iter().zip(&other.0).map(|(a, b)| (a & b).count_ones()).sum();
        // An atom is an environment: a molecule has one bit at least.
        f64::from(both) / f64::from(self.count() + other.count() - both)
    }
}

impl Molecule {
    /// Numbers of the environments around its atoms, in ascending order: of each atom by itself, and of what
    /// is within 1 to `radius` bonds.
    ///
    /// An atom by itself is its element, charge, hydrogens, heavy neighbours, and whether it is in a ring; a
    /// step further it is what it was with what its neighbours were and the bonds that lead there, aromatic
    /// ones being of one kind. Equal environments have equal numbers in all molecules and on all machines.
    /// These are RDKit's environments of `GetMorganGenerator` with `includeRedundantEnvironments`; without,
    /// RDKit leaves one out that covers the same bonds as another.
    ///
    /// ```
    /// use gfn_molecules::Molecule;
    /// // Ethane: CH3, and CH3 beside CH3.
    /// assert_eq!(Molecule::from_smiles("CC")?.environments(1).len(), 2);
    /// # Ok::<(), gfn_molecules::MoleculeError>(())
    /// ```
    #[must_use]
    pub fn environments(&self, radius: usize) -> Vec<u64> {
        let alone = |(a, atom): (usize, &crate::Atom)| {
            let (number, hydrogens) = (u64::from(atom.element.number()), u64::from(atom.hydrogens));
            let (beside, in_ring) = (self.neighbours(a).len() as u64, u64::from(self.in_ring(a)));
            mixed([number, u64::from(atom.charge as u8), hydrogens, beside, in_ring])
        };
        let mut numbers: Vec<u64> = self.atoms().iter().enumerate().map(alone).collect();
        let mut found: BTreeSet<u64> = numbers.iter().copied().collect();
        // A single atom has nothing around it.
        let layers = if self.bonds().is_empty() { 0 } else { radius as u64 };
        for layer in 1..=layers {
            let around = |a: usize| {
                let kind = |bond: &crate::Bond| if bond.aromatic { 4 } else { u64::from(bond.order.value()) };
                let mut beside: Vec<_> = self.neighbours(a).map(|(b, bond)| [kind(bond), numbers[b]]).collect();
                beside.sort_unstable();
                mixed([layer, numbers[a]].into_iter().chain(beside.into_iter().flatten()))
            };
            numbers = (0..numbers.len()).map(around).collect();
            found.extend(&numbers);
        }
        found.into_iter().collect()
    }
}

/// Hashes numbers into one: each is mixed in as in `SplitMix64`, so that changing one bit changes half of the
/// others.
fn mixed(numbers: impl IntoIterator<Item = u64>) -> u64 {
    numbers.into_iter().fold(0, |hash: u64, number| {
        gfn::Rng::mix64((hash.rotate_left(23) ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15))
    })
}
