//! Cuts, by one node at a time that changes sides.

use gfn::Rng;
use gfn::graph::GraphState;

use crate::Moves;
use crate::lists::Lists;

/// Two sides, and of each node how many more edges were cut if it changed sides. A round is a change of the node that gains most
/// among those which haven't changed lately, whatever it costs: tabu search by single flips, as in Kochenberger et al., *Solving
/// large scale max cut problems via tabu search*, 2013.
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    near: Lists,
    sides: Vec<bool>,
    gains: Vec<i64>,
    /// The round up to which a node stays.
    stays: Vec<u64>,
    round: u64,
    size: i64,
    most: i64,
}

impl Cut {
    pub(crate) fn new(near: Lists) -> Self {
        let n = near.n_nodes();
        let mut gains = vec![0; n];
        (0..n as u32).for_each(|a| near.each(a, |_| gains[a as usize] += 1));
        Self { near, sides: vec![false; n], gains, stays: vec![0; n], round: 0, size: 0, most: 0 }
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
        self.solution().into_iter().for_each(|a| self.flip(a));
        nodes.iter().for_each(|&a| self.flip(a));
        self.most = self.size;
        self.stays.fill(0);
    }

    fn restart(&mut self, rng: &mut Rng) {
        let nodes: Vec<u32> = (0..self.sides.len() as u32).filter(|_| rng.below(2) == 0).collect();
        self.start(&nodes, rng);
    }

    fn round(&mut self, rng: &mut Rng) -> bool {
        self.round += 1;
        let (mut best, mut gain, mut alike) = (0, i64::MIN, 0);
        for (a, (&of_a, &stays)) in (0..).zip(self.gains.iter().zip(&self.stays)) {
            if of_a < gain || stays >= self.round && self.size + of_a <= self.most {
                continue;
            }
            // Each of those that gain as much is drawn with the same probability.
            alike = if of_a > gain { 1 } else { alike + 1 };
            if alike == 1 || rng.below(alike) == 0 {
                (best, gain) = (a, of_a);
            }
        }
        if gain > i64::MIN {
            self.flip(best);
            let n = self.sides.len();
            let stays = (n / 100 + 1 + rng.below(10)).min(n / 3);
            self.stays[best as usize] = self.round + stays as u64;
            self.most = self.most.max(self.size);
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
