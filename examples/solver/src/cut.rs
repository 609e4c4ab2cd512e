//! Local search for large cuts. A cut divides the nodes of a graph into two sides, and its size is the number
//! of edges between the sides. Each round moves one node to the other side.

use gfn::Rng;
use gfn::graph::GraphState;

use crate::Moves;
use crate::lists::Lists;

/// A cut of a graph, with the gain of each node: the change of the cut's size if the node changed sides. Each
/// round moves the node with the largest gain, even if the gain is negative. A node that was moved recently
/// is moved again only if this makes the cut larger than the best cut. This is tabu search by single flips,
/// as in Kochenberger et al., *Solving large scale max cut problems via tabu search*, 2013.
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    near: Lists,
    sides: Vec<bool>,
    gains: Vec<i64>,
    /// The last round in which each node is blocked, because it was moved recently.
    blocked_until: Vec<u64>,
    round: u64,
    size: i64,
    best_size: i64,
}

impl Cut {
    pub(crate) fn new(near: Lists) -> Self {
        let n = near.n_nodes();
        let mut gains = vec![0; n];
        for a in 0..n as u32 {
            near.each(a, |_| gains[a as usize] += 1);
        }
        Self {
            near,
            sides: vec![false; n],
            gains,
            blocked_until: vec![0; n],
            round: 0,
            size: 0,
            best_size: 0,
        }
    }

    fn flip(&mut self, a: u32) {
        let Self { near, sides, gains, .. } = self;
        let to = !sides[a as usize];
        sides[a as usize] = to;
        self.size += gains[a as usize];
        gains[a as usize] *= -1;
        near.each(a, |b| gains[b as usize] += if sides[b as usize] == to { 2 } else { -2 });
    }
}

impl Moves for Cut {
    fn graph(&self) -> &GraphState {
        self.near.graph()
    }

    fn start(&mut self, nodes: &[u32], _: &mut Rng) {
        for a in self.solution().into_iter() {
            self.flip(a);
        }
        for &a in nodes {
            self.flip(a);
        }
        self.best_size = self.size;
        self.blocked_until.fill(0);
    }

    fn restart(&mut self, rng: &mut Rng) {
        let nodes: Vec<u32> = (0..self.sides.len() as u32).filter(|_| rng.below(2) == 0).collect();
        self.start(&nodes, rng);
    }

    fn round(&mut self, rng: &mut Rng) -> bool {
        self.round += 1;
        let mut best = 0;
        let mut gain = i64::MIN;
        let mut n_equal = 0;
        for (a, (&gain_of_a, &blocked_until)) in (0..).zip(self.gains.iter().zip(&self.blocked_until)) {
            if gain_of_a < gain || blocked_until >= self.round && self.size + gain_of_a <= self.best_size {
                continue;
            }
            // Reservoir sampling chooses uniformly among the nodes with the largest gain.
            n_equal = if gain_of_a > gain { 1 } else { n_equal + 1 };
            if n_equal == 1 || rng.below(n_equal) == 0 {
                (best, gain) = (a, gain_of_a);
            }
        }
        if gain > i64::MIN {
            self.flip(best);
            let n = self.sides.len();
            let blocked_until = (n / 100 + 1 + rng.below(10)).min(n / 3);
            self.blocked_until[best as usize] = self.round + blocked_until as u64;
            self.best_size = self.best_size.max(self.size);
        }
        true
    }

    fn size(&self) -> usize {
        self.size as usize
    }

    fn solution(&self) -> Vec<u32> {
        (0..).zip(&self.sides).filter(|(_, side)| **side).map(|(a, _)| a).collect()
    }
}
