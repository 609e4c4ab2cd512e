//! Local search for small dominating sets. A node dominates itself and its neighbours, and a dominating set
//! dominates all nodes of a graph. Each round removes and inserts a node, and increases the weights of nodes
//! that are hard to dominate.

use gfn::Rng;
use gfn::graph::GraphState;

use crate::Moves;
use crate::lists::{Lists, NodeList};

/// The largest number of members of the set that are compared when one of them is chosen for removal. If the
/// set is larger, this number of members is drawn at random.
const MAX_CANDIDATES: usize = 50;

/// A set with one node less than the best dominating set. The search tries to make this set dominating. Each
/// round removes the member whose removal leaves nodes of the smallest total weight undominated, and inserts
/// a node that dominates an undominated node. Then the weights of undominated nodes increase.
///
/// After Gao, Weise and Li, *An efficient local search heuristic with row weighting for the unicost set
/// covering problem*, 2015. What the paper calls a row is here a node that must be dominated.
#[derive(Clone, Debug)]
pub(crate) struct DominatingSet {
    near: Lists,
    members: NodeList,
    /// The nodes that no member of the set dominates.
    undominated: NodeList,
    /// The count, for each node, of the members of the set that dominate it.
    dominators: Vec<u32>,
    /// The XOR of the indices of the members of the set that dominate each node. If there is only one such
    /// member, the XOR is its index.
    dominator: Vec<u32>,
    weights: Vec<u64>,
    /// The score of each node. For a member of the set, the score is the total weight of the nodes that only
    /// this member dominates. For any other node, the score is the total weight of the undominated nodes that
    /// the node would dominate.
    scores: Vec<u64>,
    /// The value of `clock` when each node was last inserted or removed. The clock counts insertions and
    /// removals.
    last_moved: Vec<u64>,
    clock: u64,
}

impl DominatingSet {
    pub(crate) fn new(near: Lists) -> Self {
        let n = near.n_nodes();
        let mut undominated = NodeList::new(n);
        for a in 0..n as u32 {
            undominated.add(a);
        }
        let mut scores = vec![1; n];
        for a in 0..n as u32 {
            near.each(a, |_| scores[a as usize] += 1);
        }
        Self {
            near,
            members: NodeList::new(n),
            undominated,
            dominators: vec![0; n],
            dominator: vec![0; n],
            weights: vec![1; n],
            scores,
            last_moved: vec![0; n],
            clock: 0,
        }
    }

    /// Inserts a node into the set, or removes it if it is a member.
    fn toggle(&mut self, a: u32) {
        let comes = !self.members.has(a);
        let mut near = vec![a];
        self.near.each(a, |b| near.push(b));
        for b in near {
            let row = b as usize;
            let weight = self.weights[b as usize];
            let before = self.dominators[row];
            self.dominators[row] = if comes { before + 1 } else { before - 1 };
            // If exactly one member other than `a` dominates node `b`, `other` is this member.
            let other = if comes { self.dominator[row] } else { self.dominator[row] ^ a } as usize;
            self.dominator[row] ^= a;
            match (before, comes) {
                (0, true) => {
                    self.undominated.remove(b);
                    self.change_scores(b, a, |score| *score -= weight);
                }
                (1, false) => {
                    self.undominated.add(b);
                    self.change_scores(b, a, |score| *score += weight);
                }
                (1, true) => self.scores[other] -= weight,
                (2, false) => self.scores[other] += weight,
                _ => {}
            }
        }
        if comes {
            self.members.add(a)
        } else {
            self.members.remove(a)
        }
        self.clock += 1;
        self.last_moved[a as usize] = self.clock;
    }

    /// Changes the scores of node `b` and its neighbours, which are all nodes that can dominate `b`. The
    /// score of `but`, the node that is inserted or removed, isn't changed.
    fn change_scores(&mut self, b: u32, but: u32, mut change: impl FnMut(&mut u64)) {
        let Self { near, scores, .. } = self;
        let mut one = |c: u32| {
            if c != but {
                change(&mut scores[c as usize]);
            }
        };
        one(b);
        near.each(b, one);
    }

    /// Returns the member of the set with the smallest score: its removal leaves nodes of the smallest total
    /// weight undominated. Among members of equal score, returns the member that was moved longest ago. The
    /// member that was inserted last isn't returned, unless it is the only member.
    fn cheapest_member(&self, rng: &mut Rng) -> Option<u32> {
        let members = self.members.nodes();
        let key = |a: &u32| (self.scores[*a as usize], self.last_moved[*a as usize]);
        let old = |a: &u32| self.last_moved[*a as usize] < self.clock || members.len() == 1;
        if members.len() <= MAX_CANDIDATES {
            return members.iter().copied().filter(old).min_by_key(key);
        }
        (0..MAX_CANDIDATES).map(|_| members[rng.below(members.len())]).filter(old).min_by_key(key)
    }

    /// Draws an undominated node. Among the nodes that can dominate this node, inserts the node with the
    /// highest score. Among nodes of equal score, inserts the node that has been outside of the set longest.
    /// `since` is the value of `clock` at the start of the round.
    fn dominate(&mut self, since: u64, rng: &mut Rng) {
        let Some(b) = self.undominated.draw(rng) else { return };
        let key = |c: u32| {
            let score = self.scores[c as usize];
            let last_moved = self.last_moved[c as usize];
            // The first entry of the key ensures that a node removed in this round is inserted again only if
            // there is no other candidate.
            (last_moved <= since, score, std::cmp::Reverse(last_moved))
        };
        let mut best = b;
        let mut best_key = key(b);
        self.near.each(b, |c| {
            let of_c = key(c);
            if of_c > best_key {
                (best, best_key) = (c, of_c);
            }
        });
        self.toggle(best);
    }

    /// Removes members while the set stays dominating without them, in random order.
    fn prune(&mut self, rng: &mut Rng) {
        let mut members = self.members.nodes().to_vec();
        while !members.is_empty() {
            let a = members.swap_remove(rng.below(members.len()));
            if self.scores[a as usize] == 0 {
                self.toggle(a);
            }
        }
    }
}

impl Moves for DominatingSet {
    fn graph(&self) -> &GraphState {
        self.near.graph()
    }

    fn start(&mut self, nodes: &[u32], rng: &mut Rng) {
        for a in self.members.nodes().to_vec().into_iter() {
            self.toggle(a);
        }
        for &a in nodes {
            self.toggle(a);
        }
        self.prune(rng);
    }

    fn restart(&mut self, rng: &mut Rng) {
        let near = self.near.clone();
        *self = Self::new(near);
        while let Some(b) = self.undominated.draw(rng) {
            let mut by = vec![b];
            self.near.each(b, |c| by.push(c));
            self.toggle(by[rng.below(by.len())]);
        }
        self.prune(rng);
    }

    /// Removes a member of the set, and inserts another node. If the set already dominates all nodes, removes
    /// a second member. Returns `true` if the set dominates all nodes after the round.
    fn round(&mut self, rng: &mut Rng) -> bool {
        if self.undominated.len() == 0 {
            if self.members.len() < 2 {
                return false;
            }
            for a in self.cheapest_member(rng).into_iter() {
                self.toggle(a);
            }
        }
        let since = self.clock;
        for a in self.cheapest_member(rng).into_iter() {
            self.toggle(a);
        }
        self.dominate(since, rng);
        for k in 0..self.undominated.len() {
            let b = self.undominated.nodes()[k];
            self.weights[b as usize] += 1;
            self.change_scores(b, u32::MAX, |score| *score += 1);
        }
        if self.undominated.len() == 0 {
            self.prune(rng);
        }
        self.undominated.len() == 0
    }

    fn size(&self) -> usize {
        self.members.len()
    }

    fn solution(&self) -> Vec<u32> {
        self.members.nodes().to_vec()
    }
}
