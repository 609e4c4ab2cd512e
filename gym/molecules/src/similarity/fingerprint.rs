use std::collections::BTreeSet;

use crate::Molecule;

/// The number of 64-bit words in a fingerprint.
const WORDS: usize = 32;

/// A circular fingerprint of 2,048 bits (Rogers and Hahn, *Extended-Connectivity Fingerprints*, 2010: ECFP4,
/// or Morgan fingerprints of radius 2). A bit is set for each environment: an atom alone, or with its
/// surroundings within one or two bonds.
///
/// The environments are those of [`Molecule::environments`]. The index of an environment's bit is the
/// environment's number modulo 2,048. The numbers are hashes of this library, so the bits differ from
/// RDKit's. Similarities equal those of RDKit's generator with `includeRedundantEnvironments`, unless
/// different environments share a bit. By default, RDKit leaves out an environment if another one covers the
/// same bonds, and RDKit's hashes decide which of them is left out. Similarities then differ from RDKit's,
/// for small molecules by 0.1 and more (ethane and propane: 0.125 here, 0.2 in RDKit). Thresholds from the
/// literature are therefore only a guide.
///
/// ```
/// use gfn_molecules::{Fingerprint, Molecule};
/// let of =
///     |smiles: &str| Molecule::from_smiles(smiles).map(|molecule| Fingerprint::from_molecule(&molecule));
/// let (toluene, phenol, hexane) = (of("Cc1ccccc1")?, of("Oc1ccccc1")?, of("CCCCCC")?);
/// assert_eq!(toluene.tanimoto(&of("c1cccc(C)c1")?), 1.0);
/// assert!(toluene.tanimoto(&phenol) > toluene.tanimoto(&hexane));
/// # Ok::<(), gfn_molecules::MoleculeError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fingerprint([u64; WORDS]);

impl Fingerprint {
    /// The number of bits in a fingerprint.
    pub const BITS: usize = 64 * WORDS;

    /// Computes the fingerprint of a molecule from each atom alone, and from its surroundings within one and
    /// two bonds.
    #[must_use]
    pub fn from_molecule(molecule: &Molecule) -> Self {
        Self::with_radius(molecule, 2)
    }

    /// Computes the fingerprint of a molecule from each atom alone, and from its surroundings within 1, 2,
    /// ... and `radius` bonds.
    #[must_use]
    pub fn with_radius(molecule: &Molecule, radius: usize) -> Self {
        let mut words = [0; WORDS];
        for number in molecule.environments(radius) {
            let bit = (number % Self::BITS as u64) as usize;
            words[bit / 64] |= 1 << (bit % 64);
        }
        Self(words)
    }

    /// Returns the number of bits of the fingerprint that are set.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Computes the Tanimoto (Jaccard) similarity of two fingerprints, from 0 to 1: the number of bits set in
    /// both, divided by the number of bits set in at least one of them.
    #[must_use]
    pub fn tanimoto(&self, other: &Self) -> f64 {
        let both: u32 = self.0.iter().zip(&other.0).map(|(a, b)| (a & b).count_ones()).sum();
        // The denominator is above 0: each atom alone sets a bit, so at least one bit is set.
        f64::from(both) / f64::from(self.count() + other.count() - both)
    }
}

impl Molecule {
    /// Returns the distinct numbers of the environments around the molecule's atoms, in ascending order.
    /// The environments of an atom are the atom alone, and its surroundings within 1, 2, ... and `radius`
    /// bonds.
    ///
    /// The number of an atom alone is a hash of its element, charge, hydrogens, number of heavy neighbours,
    /// and membership in a ring. Each further step combines the atom's previous number with the numbers of
    /// its neighbours and with the bonds to them. All aromatic bonds count as equal. Equal environments
    /// have equal numbers in all molecules and on all machines. The environments are those of RDKit's
    /// `GetMorganGenerator` with `includeRedundantEnvironments`. By default, RDKit leaves out an
    /// environment if another one covers the same bonds.
    ///
    /// ```
    /// use gfn_molecules::Molecule;
    /// // Ethane has two distinct environments: CH3 alone, and CH3 bonded to CH3.
    /// assert_eq!(Molecule::from_smiles("CC")?.environments(1).len(), 2);
    /// # Ok::<(), gfn_molecules::MoleculeError>(())
    /// ```
    #[must_use]
    pub fn environments(&self, radius: usize) -> Vec<u64> {
        let alone = |(a, atom): (usize, &crate::Atom)| {
            let number = u64::from(atom.element.number());
            let hydrogens = u64::from(atom.hydrogens);
            let beside = self.neighbours(a).len() as u64;
            let in_ring = u64::from(self.in_ring(a));
            mixed([number, u64::from(atom.charge as u8), hydrogens, beside, in_ring])
        };
        let mut numbers: Vec<u64> = self.atoms().iter().enumerate().map(alone).collect();
        let mut found: BTreeSet<u64> = numbers.iter().copied().collect();
        // A molecule without bonds is a single atom, which has no surroundings.
        let layers = if self.bonds().is_empty() { 0 } else { radius as u64 };
        for layer in 1..=layers {
            let around = |a: usize| {
                let kind = |bond: &crate::Bond| if bond.aromatic { 4 } else { u64::from(bond.order.value()) };
                let mut beside: Vec<_> =
                    self.neighbours(a).map(|(b, bond)| [kind(bond), numbers[b]]).collect();
                beside.sort_unstable();
                mixed([layer, numbers[a]].into_iter().chain(beside.into_iter().flatten()))
            };
            numbers = (0..numbers.len()).map(around).collect();
            found.extend(&numbers);
        }
        found.into_iter().collect()
    }
}

/// Hashes several numbers into one number. Each number is mixed in as in `SplitMix64`: if one input bit
/// changes, about half of the output bits change.
fn mixed(numbers: impl IntoIterator<Item = u64>) -> u64 {
    numbers.into_iter().fold(0, |hash: u64, number| {
        gfn::Rng::mix64((hash.rotate_left(23) ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15))
    })
}
