use crate::molecule::Molecule;

/// The parts of a molecule that no single atom holds together: ring systems, and bonds that are in no ring.
///
/// Two parts share one atom at most, and atoms and parts together make a tree.
pub(super) struct Blocks {
    /// The atoms of each part.
    pub(super) atoms: Vec<Vec<usize>>,
    /// The parts of each atom.
    pub(super) of: Vec<Vec<usize>>,
}

impl Blocks {
    /// Hopcroft and Tarjan's depth-first search (1973).
    pub(super) fn new(molecule: &Molecule) -> Self {
        let n = molecule.atoms().len();
        let mut out = Self { atoms: Vec::new(), of: vec![Vec::new(); n] };
        // When an atom was met, from 1, and the earliest that its descendants have a bond to.
        let (mut met, mut low) = (vec![0usize; n], vec![0usize; n]);
        let mut clock = 1;
        (met[0], low[0]) = (1, 1);
        let mut waiting = vec![0];
        let mut stack = vec![(0, 0)];
        while let Some((a, k)) = stack.last_mut() {
            let a = *a;
            if let Some(&bond) = molecule.bonds_at(a).get(*k) {
                *k += 1;
                let b = molecule.bonds()[bond].other(a);
                if met[b] > 0 {
                    low[a] = low[a].min(met[b]);
                    continue;
                }
                clock += 1;
                (met[b], low[b]) = (clock, clock);
                waiting.push(b);
                stack.push((b, 0));
                continue;
            }
            stack.pop();
            let Some(&(parent, _)) = stack.last() else { break };
            low[parent] = low[parent].min(low[a]);
            if low[a] >= met[parent] {
                let first = waiting.iter().rposition(|&b| b == a).unwrap_or(0);
                let mut atoms = waiting.split_off(first);
                atoms.push(parent);
                atoms.iter().for_each(|&b| out.of[b].push(out.atoms.len()));
                out.atoms.push(atoms);
            }
        }
        out
    }
}
