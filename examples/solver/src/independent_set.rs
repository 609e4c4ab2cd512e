//! Local search for large independent sets, which are sets of nodes without edges between them. Each round
//! forces a node into the set, and then swaps one node for two nodes while possible.

use gfn::Rng;

use crate::Moves;
use crate::lists::{Lists, NodeList};

/// The number of nodes outside of the set that are drawn when a round forces a node into the set. The drawn
/// node that has been outside longest is inserted.
const N_CANDIDATES: usize = 4;

/// An independent set, with the *tightness* of each node: the number of its neighbours in the set. A node
/// outside of the set can be inserted if its tightness is 0. If its tightness is 1, it can replace its only
/// neighbour in the set. After Andrade, Resende and Werneck, *Fast local search for the maximum independent
/// set problem*, 2012.
#[derive(Clone, Debug)]
pub(crate) struct IndependentSet {
    near: Lists,
    members: NodeList,
    free: NodeList,
    tightness: Vec<u32>,
    /// The XOR of each node's neighbours in the set. If the tightness is 1, the XOR is the only such
    /// neighbour.
    blocker: Vec<u32>,
    /// The value of `clock` when each node last left the set.
    removed_at: Vec<u64>,
    clock: u64,
    /// The nodes that were inserted (`true`) or removed (`false`) in the current round, in order. The list is
    /// needed to undo the round.
    journal: Vec<(u32, bool)>,
    /// The members of the set that must be checked again: since the last check, it may have become possible
    /// to replace the member by two other nodes.
    candidates: Vec<u32>,
    /// The size of the largest set since the last start.
    best_size: usize,
}

impl IndependentSet {
    pub(crate) fn new(near: Lists) -> Self {
        let n = near.n_nodes();
        let mut free = NodeList::new(n);
        for a in 0..n as u32 {
            free.add(a);
        }
        Self {
            near,
            members: NodeList::new(n),
            free,
            tightness: vec![0; n],
            blocker: vec![0; n],
            removed_at: vec![0; n],
            clock: 0,
            journal: Vec::new(),
            candidates: Vec::new(),
            best_size: 0,
        }
    }

    fn insert(&mut self, a: u32) {
        let Self { near, free, tightness, blocker, .. } = self;
        near.each(a, |b| {
            let near_b = &mut tightness[b as usize];
            *near_b += 1;
            blocker[b as usize] ^= a;
            if *near_b == 1 {
                free.remove(b);
            }
        });
        free.remove(a);
        self.members.add(a);
        self.candidates.push(a);
        self.journal.push((a, true));
    }

    fn remove(&mut self, a: u32) {
        let Self { near, free, tightness, blocker, candidates, .. } = self;
        near.each(a, |b| {
            let near_b = &mut tightness[b as usize];
            *near_b -= 1;
            blocker[b as usize] ^= a;
            match *near_b {
                0 => free.add(b),
                1 => candidates.push(blocker[b as usize]),
                _ => {}
            }
        });
        free.add(a);
        self.members.remove(a);
        self.clock += 1;
        self.removed_at[a as usize] = self.clock;
        self.journal.push((a, false));
    }

    /// Inserts a node into the set, after removing its neighbours from the set.
    fn force_insert(&mut self, a: u32) {
        let mut out = Vec::new();
        let Self { near, members, tightness, blocker, .. } = &*self;
        match tightness[a as usize] {
            0 => {}
            1 => out.push(blocker[a as usize]),
            _ => near.each(a, |b| out.extend(members.has(b).then_some(b))),
        }
        for b in out.into_iter() {
            self.remove(b);
        }
        self.insert(a);
    }

    fn insert_free(&mut self, rng: &mut Rng) {
        while let Some(a) = self.free.draw(rng) {
            self.insert(a);
        }
    }

    /// Returns two nodes that can replace the member `a` of the set; `None` if there are no such nodes.
    fn replacement_pair(&self, a: u32, rng: &mut Rng) -> Option<[u32; 2]> {
        let mut tight = Vec::new();
        self.near.each(a, |b| tight.extend((self.tightness[b as usize] == 1).then_some(b)));
        if tight.len() < 2 {
            return None;
        }
        let turn = rng.below(tight.len());
        tight.rotate_left(turn);
        let pairs = tight.iter().enumerate().flat_map(|(k, &b)| tight[..k].iter().map(move |&c| [b, c]));
        pairs.into_iter().find(|&[b, c]| !self.near.are_neighbours(b, c))
    }

    /// Inserts all nodes that have no neighbour in the set. Then swaps one member of the set for two other
    /// nodes until no such swap is possible.
    fn swap_improve(&mut self, rng: &mut Rng) {
        self.insert_free(rng);
        while let Some(a) = self.candidates.pop() {
            let found = if self.members.has(a) { self.replacement_pair(a, rng) } else { None };
            if let Some([b, c]) = found {
                self.remove(a);
                self.insert(b);
                self.insert(c);
                self.insert_free(rng);
            }
        }
    }

    /// Draws `N_CANDIDATES` nodes that aren't in the set. Returns the drawn node that has been outside
    /// longest.
    fn oldest_outside(&self, rng: &mut Rng) -> u32 {
        let mut draw = || {
            loop {
                let a = rng.below(self.near.n_nodes()) as u32;
                if !self.members.has(a) {
                    return a;
                }
            }
        };
        let first = draw();
        (1..N_CANDIDATES).fold(first, |oldest, _| {
            let a = draw();
            if self.removed_at[a as usize] < self.removed_at[oldest as usize] { a } else { oldest }
        })
    }
}

impl Moves for IndependentSet {
    fn graph(&self) -> &gfn::graph::GraphState {
        self.near.graph()
    }

    fn start(&mut self, nodes: &[u32], rng: &mut Rng) {
        for a in self.members.nodes().to_vec().into_iter() {
            self.remove(a);
        }
        for &a in nodes {
            self.insert(a);
        }
        self.swap_improve(rng);
        self.best_size = self.members.len();
    }

    fn restart(&mut self, rng: &mut Rng) {
        self.start(&[], rng);
    }

    /// Forces a random node into the set, and then improves the set by swaps. With a small probability
    /// several nodes are forced into the set. If the set has become smaller, the round is usually undone.
    fn round(&mut self, rng: &mut Rng) -> bool {
        let before = self.members.len();
        if before == self.near.n_nodes() {
            return false;
        }
        self.journal.clear();
        let mut forced = 1;
        if rng.below(2 * before.max(1)) == 0 {
            while rng.below(2) == 0 {
                forced += 1;
            }
        }
        for _ in 0..forced {
            if self.members.len() < self.near.n_nodes() {
                let a = self.oldest_outside(rng);
                self.force_insert(a);
            }
        }
        self.swap_improve(rng);
        let after = self.members.len();
        self.best_size = self.best_size.max(after);
        if after < before && rng.below(1 + (before - after) * (self.best_size - after)) > 0 {
            for (a, came) in std::mem::take(&mut self.journal).into_iter().rev() {
                if came { self.remove(a) } else { self.insert(a) }
            }
            self.candidates.clear();
        }
        true
    }

    fn size(&self) -> usize {
        self.members.len()
    }

    fn solution(&self) -> Vec<u32> {
        self.members.nodes().to_vec()
    }
}
