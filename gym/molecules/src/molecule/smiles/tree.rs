//! The text of a graph in the notation of SMILES. The atoms are written in depth-first order, with branches
//! in parentheses and a number for each bond that closes a ring.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// A bond index, and the atom that the bond leads to.
pub(crate) type Step = (usize, usize);

/// The spanning tree that a text follows. The bonds from each atom to its children are in the order in which
/// they are written.
pub(crate) struct TextTree {
    roots: Vec<usize>,
    /// The ring bonds from each atom to atoms that are written later. Their ring numbers are opened at this
    /// atom.
    pub(super) opens: Vec<Vec<Step>>,
    /// The ring bonds from each atom to atoms that were written before. Their ring numbers are closed at
    /// this atom.
    pub(super) closes: Vec<Vec<Step>>,
    pub(super) children: Vec<Vec<Step>>,
}

impl TextTree {
    /// Traverses the graph depth first, from each root that hasn't been visited before. `steps` returns the
    /// bonds of an atom, each with the atom that it leads to.
    pub(crate) fn new(
        n_atoms: usize,
        n_bonds: usize,
        roots: &[usize],
        steps: impl Fn(usize) -> Vec<Step>,
    ) -> Self {
        let empty = || vec![Vec::new(); n_atoms];
        let mut tree = Self { roots: Vec::new(), opens: empty(), closes: empty(), children: empty() };
        let mut seen = vec![false; n_atoms];
        let mut done = vec![false; n_bonds];
        for &root in roots {
            if std::mem::replace(&mut seen[root], true) {
                continue;
            }
            tree.roots.push(root);
            let mut stack = vec![(root, steps(root).into_iter())];
            while let Some((a, rest)) = stack.last_mut() {
                let a = *a;
                let Some((k, b)) = rest.next() else {
                    stack.pop();
                    continue;
                };
                if std::mem::replace(&mut done[k], true) {
                    continue;
                }
                if std::mem::replace(&mut seen[b], true) {
                    // A step to an atom that was visited before closes a ring. That atom is an ancestor in
                    // the tree, because the traversal is depth first.
                    tree.opens[b].push((k, a));
                    tree.closes[a].push((k, b));
                } else {
                    tree.children[a].push((k, b));
                    stack.push((b, steps(b).into_iter()));
                }
            }
        }
        tree
    }

    /// Writes the tree as text. `atom` returns the text of an atom. `bond` returns the text of a bond,
    /// given the atom after which it is written.
    pub(crate) fn write(
        &self,
        atom: impl Fn(usize) -> String,
        bond: impl Fn(usize, usize) -> &'static str,
    ) -> String {
        enum Piece {
            Atom(usize),
            Text(&'static str),
        }
        let mut out = String::new();
        // A ring gets the smallest number that no other open ring has.
        let mut free = BinaryHeap::new();
        let mut used = 0;
        let mut numbers = HashMap::new();
        let mut stack: Vec<Piece> = Vec::new();
        for root in self.roots.iter().rev() {
            stack.extend([Piece::Text("."), Piece::Atom(*root)]);
        }
        while let Some(piece) = stack.pop() {
            let a = match piece {
                Piece::Text(text) => {
                    out.push_str(text);
                    continue;
                }
                Piece::Atom(a) => a,
            };
            out += &atom(a);
            for (k, _) in &self.closes[a] {
                let number = numbers.remove(k).unwrap_or(0);
                out += &ring_number(number);
                free.push(Reverse(number));
            }
            for &(k, _) in &self.opens[a] {
                let number = free.pop().map_or(used + 1, |Reverse(number)| number);
                used = used.max(number);
                numbers.insert(k, number);
                out.push_str(bond(k, a));
                out += &ring_number(number);
            }
            for (i, &(k, b)) in self.children[a].iter().enumerate().rev() {
                let branch = i + 1 < self.children[a].len();
                stack.extend(branch.then_some(Piece::Text(")")));
                stack.extend([Piece::Atom(b), Piece::Text(bond(k, a))]);
                stack.extend(branch.then_some(Piece::Text("(")));
            }
        }
        out.pop();
        out
    }
}

fn ring_number(number: usize) -> String {
    match number {
        ..=9 => number.to_string(),
        10..=99 => format!("%{number}"),
        _ => format!("%({number})"),
    }
}
