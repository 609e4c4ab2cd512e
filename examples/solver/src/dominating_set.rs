//! Dominating sets, by removals and insertions under weights of the nodes that are hard to dominate.

use gfn::Rng;
use gfn::graph::GraphState;

use crate::Moves;
use crate::lists::{Lists, NodeList};

/// Members that are looked at where there are many, for one to go.
const LOOKED_AT: usize = 50;

/// A set with one node less than the best, which is to dominate all again: a node goes that is missed least, and one comes that
/// dominates some node without a dominator; nodes without one gain weight. After Gao, Weise and Li, *An efficient local search
/// heuristic with row weighting for the unicost set covering problem*, 2015, where a node's neighbours and itself are a row.
#[derive(Clone, Debug)]
pub(crate) struct DominatingSet {
    near: Lists,
    members: NodeList,
    /// The nodes without a dominator.
    open: NodeList,
    /// Dominators of each node, and their XOR: the only one, where it is one.
    dominators: Vec<u32>,
    dominator: Vec<u32>,
    weights: Vec<u64>,
    /// The weight of the nodes that a member alone dominates; of another node, of the open ones that it would dominate.
    scores: Vec<u64>,
    /// The step at which a node last came or went.
    moved: Vec<u64>,
    clock: u64,
}

impl DominatingSet {
    pub(crate) fn new(near: Lists) -> Self {
        let n = near.n_nodes();
        let mut open = NodeList::new(n);
        (0..n as u32).for_each(|a| open.add(a));
        let mut scores = vec![1; n];
        (0..n as u32).for_each(|a| near.each(a, |_| scores[a as usize] += 1));
        Self {
            near,
            members: NodeList::new(n),
            open,
            dominators: vec![0; n],
            dominator: vec![0; n],
            weights: vec![1; n],
            scores,
            moved: vec![0; n],
            clock: 0,
        }
    }

    /// A node comes, or goes if it is there.
    fn turn(&mut self, a: u32) {
        let comes = !self.members.has(a);
        let mut near = vec![a];
        self.near.each(a, |b| near.push(b));
        for b in near {
            let (row, weight) = (b as usize, self.weights[b as usize]);
            let before = self.dominators[row];
            self.dominators[row] = if comes { before + 1 } else { before - 1 };
            // The only one, before it is two or after it was two.
            let other = if comes { self.dominator[row] } else { self.dominator[row] ^ a } as usize;
            self.dominator[row] ^= a;
            match (before, comes) {
                (0, true) => {
                    self.open.remove(b);
                    self.each_but(b, a, |score| *score -= weight);
                }
                (1, false) => {
                    self.open.add(b);
                    self.each_but(b, a, |score| *score += weight);
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
        self.moved[a as usize] = self.clock;
    }

    /// Changes the scores of all that can dominate a node, but for one of them.
    fn each_but(&mut self, b: u32, but: u32, mut change: impl FnMut(&mut u64)) {
        let Self { near, scores, .. } = self;
        let mut one = |c: u32| {
            if c != but {
                change(&mut scores[c as usize]);
            }
        };
        one(b);
        near.each(b, one);
    }

    /// The member that is missed least, the one of several that came first; never the one that came last.
    fn least(&self, rng: &mut Rng) -> Option<u32> {
        let members = self.members.nodes();
        let key = |a: &u32| (self.scores[*a as usize], self.moved[*a as usize]);
        let old = |a: &u32| self.moved[*a as usize] < self.clock || members.len() == 1;
        if members.len() <= LOOKED_AT {
            return members.iter().copied().filter(old).min_by_key(key);
        }
        (0..LOOKED_AT).map(|_| members[rng.below(members.len())]).filter(old).min_by_key(key)
    }

    /// Dominates a node that isn't, by what dominates most; of several, by the one that has been outside longest.
    fn dominate(&mut self, since: u64, rng: &mut Rng) {
        let Some(b) = self.open.draw(rng) else { return };
        let key = |c: u32| {
            let (score, moved) = (self.scores[c as usize], self.moved[c as usize]);
            // What went in this round comes back only if nothing else can.
            (moved <= since, score, std::cmp::Reverse(moved))
        };
        let (mut best, mut best_key) = (b, key(b));
        self.near.each(b, |c| {
            let of_c = key(c);
            if of_c > best_key {
                (best, best_key) = (c, of_c);
            }
        });
        self.turn(best);
    }

    /// Takes out what isn't needed.
    fn prune(&mut self, rng: &mut Rng) {
        let mut members = self.members.nodes().to_vec();
        while !members.is_empty() {
            let a = members.swap_remove(rng.below(members.len()));
            if self.scores[a as usize] == 0 {
                self.turn(a);
            }
        }
    }
}

impl Moves for DominatingSet {
    fn graph(&self) -> &GraphState {
        self.near.graph()
    }

    fn start(&mut self, nodes: &[u32], rng: &mut Rng) {
        self.members.nodes().to_vec().into_iter().for_each(|a| self.turn(a));
        nodes.iter().for_each(|&a| self.turn(a));
        self.prune(rng);
    }

    fn restart(&mut self, rng: &mut Rng) {
        let near = self.near.clone();
        *self = Self::new(near);
        while let Some(b) = self.open.draw(rng) {
            let mut by = vec![b];
            self.near.each(b, |c| by.push(c));
            self.turn(by[rng.below(by.len())]);
        }
        self.prune(rng);
    }

    /// A swap; `true` once all are dominated.
    fn round(&mut self, rng: &mut Rng) -> bool {
        if self.open.len() == 0 {
            if self.members.len() < 2 {
                return false;
            }
            self.least(rng).into_iter().for_each(|a| self.turn(a));
        }
        let since = self.clock;
        self.least(rng).into_iter().for_each(|a| self.turn(a));
        self.dominate(since, rng);
        for k in 0..self.open.len() {
            let b = self.open.nodes()[k];
            self.weights[b as usize] += 1;
            self.each_but(b, u32::MAX, |score| *score += 1);
        }
        if self.open.len() == 0 {
            self.prune(rng);
        }
        self.open.len() == 0
    }

    fn size(&self) -> usize {
        self.members.len()
    }

    fn solution(&self) -> Vec<u32> {
        self.members.nodes().to_vec()
    }
}
