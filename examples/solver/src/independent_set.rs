//! Independent sets, by swaps of one node for two and by forced insertions.

use gfn::Rng;

use crate::Moves;
use crate::lists::{Lists, NodeList};

/// Nodes among which that comes in which has been outside longest.
const DRAWN: usize = 4;

/// An independent set, and of each other node how many of it are its neighbours: its *tightness*. Free nodes have none of them,
/// and those of tightness 1 can take that one's place. After Andrade, Resende and Werneck, *Fast local search for the maximum
/// independent set problem*, 2012.
#[derive(Clone, Debug)]
pub(crate) struct IndependentSet {
    near: Lists,
    members: NodeList,
    free: NodeList,
    tightness: Vec<u32>,
    /// The XOR of a node's neighbours in the set: of a node of tightness 1, that neighbour.
    blocker: Vec<u32>,
    /// The step at which a node last went out.
    left: Vec<u64>,
    clock: u64,
    /// The nodes that came in (`true`) and went out since the last decision, to be taken back.
    journal: Vec<(u32, bool)>,
    /// Members that two others may now take the place of.
    candidates: Vec<u32>,
    /// The largest set so far.
    most: usize,
}

impl IndependentSet {
    pub(crate) fn new(near: Lists) -> Self {
        let n = near.n_nodes();
        let mut free = NodeList::new(n);
        (0..n as u32).for_each(|a| free.add(a));
        Self {
            near,
            members: NodeList::new(n),
            free,
            tightness: vec![0; n],
            blocker: vec![0; n],
            left: vec![0; n],
            clock: 0,
            journal: Vec::new(),
            candidates: Vec::new(),
            most: 0,
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
        self.left[a as usize] = self.clock;
        self.journal.push((a, false));
    }

    /// Inserts a node in the place of its neighbours.
    fn force(&mut self, a: u32) {
        let mut out = Vec::new();
        let Self { near, members, tightness, blocker, .. } = &*self;
        match tightness[a as usize] {
            0 => {}
            1 => out.push(blocker[a as usize]),
            _ => near.each(a, |b| out.extend(members.has(b).then_some(b))),
        }
        out.into_iter().for_each(|b| self.remove(b));
        self.insert(a);
    }

    fn fill(&mut self, rng: &mut Rng) {
        while let Some(a) = self.free.draw(rng) {
            self.insert(a);
        }
    }

    /// Two nodes that can take the place of this member.
    fn pair(&self, a: u32, rng: &mut Rng) -> Option<[u32; 2]> {
        let mut tight = Vec::new();
        self.near.each(a, |b| tight.extend((self.tightness[b as usize] == 1).then_some(b)));
        if tight.len() < 2 {
            return None;
        }
        let turn = rng.below(tight.len());
        tight.rotate_left(turn);
        let pairs = tight.iter().enumerate().flat_map(|(k, &b)| tight[..k].iter().map(move |&c| [b, c]));
        pairs.into_iter().find(|&[b, c]| !self.near.joined(b, c))
    }

    /// Swaps one for two as long as that can be done.
    fn climb(&mut self, rng: &mut Rng) {
        self.fill(rng);
        while let Some(a) = self.candidates.pop() {
            let found = if self.members.has(a) { self.pair(a, rng) } else { None };
            if let Some([b, c]) = found {
                self.remove(a);
                self.insert(b);
                self.insert(c);
                self.fill(rng);
            }
        }
    }

    /// A node outside: of some, the one that has been there longest.
    fn outside(&self, rng: &mut Rng) -> u32 {
        let mut draw = || {
            loop {
                let a = rng.below(self.near.n_nodes()) as u32;
                if !self.members.has(a) {
                    return a;
                }
            }
        };
        let first = draw();
        (1..DRAWN).fold(first, |oldest, _| {
            let a = draw();
            if self.left[a as usize] < self.left[oldest as usize] { a } else { oldest }
        })
    }
}

impl Moves for IndependentSet {
    fn graph(&self) -> &gfn::graph::GraphState {
        self.near.graph()
    }

    fn start(&mut self, nodes: &[u32], rng: &mut Rng) {
        self.members.nodes().to_vec().into_iter().for_each(|a| self.remove(a));
        nodes.iter().for_each(|&a| self.insert(a));
        self.climb(rng);
        self.most = self.members.len();
    }

    fn restart(&mut self, rng: &mut Rng) {
        self.start(&[], rng);
    }

    /// One node comes in, or with a small probability several; the set climbs, and what is worse is taken back but for some.
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
                let a = self.outside(rng);
                self.force(a);
            }
        }
        self.climb(rng);
        let after = self.members.len();
        self.most = self.most.max(after);
        if after < before && rng.below(1 + (before - after) * (self.most - after)) > 0 {
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
