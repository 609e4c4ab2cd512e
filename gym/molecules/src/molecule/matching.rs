//! Matchings: which atoms share a double bond. Leaves of a ring system have no choice and come first, then what is left greedily;
//! augmenting paths through odd rings (Edmonds 1965, "Paths, trees, and flowers") mend what that missed.

use std::collections::VecDeque;

const NONE: usize = usize::MAX;

/// A matching of `n` nodes that grows to a maximum one, by more and more edges.
pub(super) struct Matching {
    mate: Vec<usize>,
    beside: Vec<Vec<usize>>,
    search: Search,
}

/// What a search for an augmenting path keeps, cleared by `touched`.
struct Search {
    side: Vec<Side>,
    /// Where a node was reached from.
    from: Vec<usize>,
    /// Towards the base of the odd ring that a node is in.
    base: Vec<usize>,
    /// When a node was met last on the way to the root.
    met: Vec<usize>,
    clock: usize,
    touched: Vec<usize>,
    open: VecDeque<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Unseen,
    /// At an even distance of the root.
    Even,
    Odd,
}

impl Matching {
    /// Nobody is matched.
    pub(super) fn new(n: usize) -> Self {
        let search = Search {
            side: vec![Side::Unseen; n],
            from: vec![NONE; n],
            base: (0..n).collect(),
            met: vec![0; n],
            clock: 0,
            touched: Vec::new(),
            open: VecDeque::new(),
        };
        Self { mate: vec![NONE; n], beside: vec![Vec::new(); n], search }
    }

    /// The partner of a node.
    pub(super) fn mate(&self, a: usize) -> Option<usize> {
        Some(self.mate[a]).filter(|&b| b != NONE)
    }

    /// Adds edges and makes the matching a maximum one again. Who had a partner has one still, though it may be another.
    pub(super) fn grow(&mut self, edges: impl Iterator<Item = (usize, usize)>) {
        for (a, b) in edges.filter(|(a, b)| a != b) {
            self.beside[a].push(b);
            self.beside[b].push(a);
        }
        self.pair_greedily();
        for root in 0..self.mate.len() {
            if self.mate[root] == NONE && !self.beside[root].is_empty() {
                self.augment(root);
            }
        }
    }

    /// Pairs whoever has one free neighbour only, and when there is none the next node, until none has a free neighbour.
    fn pair_greedily(&mut self) {
        let n = self.mate.len();
        let free = |mate: &[usize], a: usize| mate[a] == NONE;
        let mut choices: Vec<usize> =
            (0..n).map(|a| self.beside[a].iter().filter(|&&b| free(&self.mate, b)).count()).collect();
        let mut forced: Vec<usize> = (0..n).filter(|&a| choices[a] == 1).collect();
        let mut next = 0;
        loop {
            let a = match forced.pop() {
                Some(a) => a,
                None if next == n => return,
                None => {
                    next += 1;
                    next - 1
                }
            };
            let partners = self.beside[a].iter().copied().filter(|&b| free(&self.mate, b));
            let Some(b) = partners.min_by_key(|&b| choices[b]).filter(|_| free(&self.mate, a)) else { continue };
            (self.mate[a], self.mate[b]) = (b, a);
            for &c in self.beside[a].iter().chain(&self.beside[b]) {
                choices[c] -= 1;
                if choices[c] == 1 {
                    forced.push(c);
                }
            }
        }
    }

    /// Looks for an alternating path from an unmatched node to another, and swaps along it.
    fn augment(&mut self, root: usize) {
        self.search.reach(root, NONE, Side::Even);
        while let Some(a) = self.search.open.pop_front() {
            for k in 0..self.beside[a].len() {
                let b = self.beside[a][k];
                if self.search.base(a) == self.search.base(b) || self.search.side[b] == Side::Odd {
                    continue;
                }
                if self.search.side[b] == Side::Even {
                    let top = self.search.meeting(a, b, &self.mate);
                    self.search.contract(a, b, top, &self.mate);
                    self.search.contract(b, a, top, &self.mate);
                    continue;
                }
                self.search.reach(b, a, Side::Odd);
                if self.mate[b] != NONE {
                    self.search.reach(self.mate[b], NONE, Side::Even);
                    continue;
                }
                let mut end = b;
                while end != NONE {
                    let before = self.search.from[end];
                    let next = std::mem::replace(&mut self.mate[before], end);
                    self.mate[end] = before;
                    end = next;
                }
                return self.search.clear();
            }
        }
        self.search.clear();
    }
}

impl Search {
    fn reach(&mut self, a: usize, from: usize, side: Side) {
        (self.side[a], self.from[a]) = (side, from);
        self.touched.push(a);
        if side == Side::Even {
            self.open.push_back(a);
        }
    }

    fn clear(&mut self) {
        for a in self.touched.drain(..) {
            (self.side[a], self.from[a], self.base[a]) = (Side::Unseen, NONE, a);
        }
        self.open.clear();
    }

    fn base(&mut self, a: usize) -> usize {
        let mut top = a;
        while self.base[top] != top {
            top = self.base[top];
        }
        let mut a = a;
        while self.base[a] != top {
            a = std::mem::replace(&mut self.base[a], top);
        }
        top
    }

    /// Where the ways of two nodes to the root meet.
    fn meeting(&mut self, a: usize, b: usize, mate: &[usize]) -> usize {
        self.clock += 1;
        let (mut a, mut b) = (self.base(a), self.base(b));
        loop {
            if self.met[a] == self.clock {
                return a;
            }
            self.met[a] = self.clock;
            let up = mate[a];
            a = if up == NONE { NONE } else { self.base(self.from[up]) };
            if a == NONE || b != NONE {
                std::mem::swap(&mut a, &mut b);
            }
        }
    }

    /// Makes one node of half an odd ring: from `a`, which has an edge to `b`, up to `top`.
    fn contract(&mut self, a: usize, b: usize, top: usize, mate: &[usize]) {
        let (mut a, mut b) = (a, b);
        while self.base(a) != top {
            self.from[a] = b;
            b = mate[a];
            if self.side[b] == Side::Odd {
                self.side[b] = Side::Even;
                self.open.push_back(b);
            }
            for node in [a, b] {
                if self.base[node] == node {
                    self.base[node] = top;
                }
            }
            a = self.from[b];
        }
    }
}

#[cfg(test)]
mod tests {
    use gfn::Rng;
    use petgraph::algo::maximum_matching;
    use petgraph::graph::UnGraph;

    use super::*;

    #[test]
    fn matchings_are_as_large_as_those_of_petgraph() {
        let mut rng = Rng::seeded(3);
        for case in 0..3000 {
            let n = 2 + rng.below(14);
            let edges: Vec<(usize, usize)> =
                (0..rng.below(2 * n)).map(|_| (rng.below(n), rng.below(n))).filter(|(a, b)| a != b).collect();
            let mut matching = Matching::new(n);
            // In two parts: whoever is matched by the first stays so.
            let (few, more) = edges.split_at(edges.len() / 2);
            matching.grow(few.iter().copied());
            let matched: Vec<usize> = (0..n).filter(|&a| matching.mate(a).is_some()).collect();
            matching.grow(more.iter().copied());
            assert!(matched.iter().all(|&a| matching.mate(a).is_some()), "case {case}");
            let mut pairs = 0;
            for a in 0..n {
                let Some(b) = matching.mate(a) else { continue };
                assert!(matching.mate(b) == Some(a) && edges.iter().any(|&e| e == (a, b) || e == (b, a)));
                pairs += 1;
            }
            let mut graph = UnGraph::<(), (), u32>::from_edges(edges.iter().map(|&(a, b)| (a as u32, b as u32)));
            while graph.node_count() < n {
                graph.add_node(());
            }
            assert_eq!(pairs, 2 * maximum_matching(&graph).len(), "case {case}: {edges:?}");
        }
    }
}
