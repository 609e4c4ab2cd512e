//! RDKit's identifiers of circular environments (an atom with its surroundings up to some distance). Tables
//! that were made with RDKit use them as keys.

use std::collections::BTreeMap;

use super::Subject;

/// Combines a hash with a value as Boost's 32-bit `hash_combine` does.
fn combined(hash: u32, value: u32) -> u32 {
    hash ^ value.wrapping_add(0x9e37_79b9).wrapping_add(hash << 6).wrapping_add(hash >> 2)
}

fn hash(values: impl IntoIterator<Item = u32>) -> u32 {
    values.into_iter().fold(0, combined)
}

/// Counts the circular environments in a molecule: each atom alone, and with its surroundings within 1, 2,
/// ... and `radius` bonds. The keys of the result are the identifiers of RDKit's `GetMorganGenerator`. An
/// environment that covers the same bonds as an earlier environment is left out.
pub(super) fn environments(subject: &Subject<'_>, radius: usize) -> BTreeMap<u32, u32> {
    let molecule = subject.molecule;
    let n = molecule.atoms().len();
    let words = molecule.bonds().len().div_ceil(64);
    let alone = |a: usize| {
        let atom = molecule.atoms()[a];
        let [number, degree, hydrogens] =
            [atom.element.number(), molecule.degree(a), atom.hydrogens].map(u32::from);
        // RDKit also hashes the difference of the isotope's mass from the usual mass. It is 0 here, because
        // isotopes aren't supported.
        hash(
            [number, degree, hydrogens, atom.charge as u32, 0]
                .into_iter()
                .chain(molecule.in_ring(a).then_some(1)),
        )
    };
    // RDKit's number for a bond type is 12 for an aromatic bond, and the bond order for other bonds.
    let kind =
        |k: usize| if subject.is_aromatic(k) { 12 } else { u32::from(molecule.bonds()[k].order.value()) };
    let at = |a: usize| molecule.bonds_at(a).iter().map(move |&k| (k, molecule.bonds()[k].other_end(a)));
    let mut numbers: Vec<u32> = (0..n).map(alone).collect();
    // For each atom, the bonds in its surroundings, as bits in 64-bit words. The word with the highest bond
    // indices comes first, so that sorting gives RDKit's order.
    let mut covered = vec![vec![0u64; words]; n];
    let mut seen: Vec<Vec<u64>> = Vec::new();
    let mut done: Vec<bool> = (0..n).map(|a| molecule.bonds_at(a).is_empty()).collect();
    let mut counts = BTreeMap::new();
    for &number in numbers.iter() {
        *counts.entry(number).or_default() += 1;
    }
    for layer in 0..radius as u32 {
        let mut next = vec![0; n];
        let mut wider = covered.clone();
        let mut found = Vec::new();
        for a in (0..n).filter(|&a| !done[a]) {
            for (k, b) in at(a) {
                wider[a][words - 1 - k / 64] |= 1 << (k % 64);
                for (word, more) in wider[a].iter_mut().zip(&covered[b]) {
                    *word |= more;
                }
            }
            let mut beside: Vec<_> = at(a).map(|(k, b)| [kind(k), numbers[b]]).collect();
            beside.sort_unstable();
            next[a] = beside.into_iter().map(hash).fold(combined(layer, numbers[a]), combined);
            found.push((wider[a].clone(), next[a], a));
        }
        found.sort_unstable();
        for (bonds, number, a) in found {
            if seen.contains(&bonds) {
                done[a] = true;
            } else {
                *counts.entry(number).or_default() += 1;
                seen.push(bonds);
            }
        }
        (numbers, covered) = (next, wider);
    }
    counts
}
