//! Symmetry that needs no search: pendant trees and twins are taken off a graph before what is left of it is
//! searched.
//!
//! What hangs on a node by one link is folded into it (Aho, Hopcroft and Ullman's trees, leaves first), and
//! nodes that could change places with each other alone (twins) become one. Either way the node that stays
//! gets a new colour, which says what it took in: the automorphisms of the graph are those of what is left,
//! times the factorials of what is interchangeable. Each round takes all leaves or all twins at once and
//! numbers the new colours in sorted order, so that isomorphic graphs get the same.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use super::key::raw_edges;
use super::search::Order;
use crate::graph::{Attributes, Edge, GraphState, Node};

/// Twins are looked for again while a round takes off one node in so many: rounds then cost no more than a
/// few first ones.
const MIN_SHARE: usize = 10;

/// What joins a node to another one: the weights of the edges there and back, by rank from 1; 0 where there
/// is none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Link {
    to: u32,
    out: u32,
    back: u32,
}

impl Link {
    fn hash(self) -> u64 {
        mix(mix(u64::from(self.to) << 32 | u64::from(self.out)) ^ u64::from(self.back))
    }
}

/// A number that looks like no other's.
pub(super) fn mix(number: u64) -> u64 {
    let mixed = (number ^ number >> 32).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// A graph in sparse form, from which leaves and twins are taken.
pub(in crate::graph) struct Reduction {
    /// Equal for nodes of one cell that took in the same.
    colour: Vec<u32>,
    n_colours: u32,
    /// The neighbours of each node that is left, ascending.
    links: Vec<Vec<Link>>,
    is_left: Vec<bool>,
    /// What each node took in, in canonical order.
    taken: Vec<Vec<u32>>,
    /// The automorphisms that what was taken off has by itself.
    pub(in crate::graph) order: Order,
}

/// A part of what is left of a graph.
pub(in crate::graph) struct Core {
    /// The part by itself, with colours for the weights of nodes.
    pub(in crate::graph) graph: GraphState,
    /// What its nodes are called in the whole graph.
    pub(in crate::graph) nodes: Vec<u32>,
}

impl Reduction {
    /// Reduces a graph; `cells` number the nodes by weight, `weights` are the distinct weights of its edges,
    /// sorted.
    pub(in crate::graph) fn of(graph: &GraphState, cells: Vec<u32>, weights: &[Edge]) -> Self {
        let n = graph.n_nodes();
        let mut out = Self {
            n_colours: n as u32,
            colour: cells,
            links: links(graph, weights),
            is_left: vec![true; n],
            taken: vec![Vec::new(); n],
            order: Order::ONE,
        };
        out.fold_leaves();
        loop {
            let before = out.left().count();
            let n_taken = out.merge_twins();
            out.fold_leaves();
            if n_taken * MIN_SHARE <= before {
                return out;
            }
        }
    }

    /// The nodes that are left.
    fn left(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.is_left.len() as u32).filter(|&a| self.is_left[a as usize])
    }

    /// Folds nodes with one neighbour into it, round by round, until there are none.
    fn fold_leaves(&mut self) {
        let mut leaves: Vec<u32> = self.left().collect();
        loop {
            leaves.retain(|&a| self.links[a as usize].len() == 1);
            let mut folds: Vec<_> = leaves.iter().filter_map(|&leaf| self.fold(leaf)).collect();
            if folds.is_empty() {
                return;
            }
            // Leaves that hang on one node in the same way follow each other; which of them comes first makes
            // no difference.
            folds.sort_unstable();
            for (_, _, leaf) in &folds {
                self.is_left[*leaf as usize] = false;
            }
            let mut described = Vec::new();
            for hanging in folds.chunk_by(|one, other| one.0 == other.0) {
                let a = hanging[0].0;
                for same in hanging.chunk_by(|one, other| one.1 == other.1) {
                    self.order = self.order.permuting(same.len());
                }
                let mut description = vec![self.colour[a as usize]];
                description.extend(hanging.iter().flat_map(|(_, way, _)| way));
                described.push((description, a));
                self.taken[a as usize].extend(hanging.iter().map(|(_, _, leaf)| leaf));
                self.links[a as usize].retain(|link| self.is_left[link.to as usize]);
            }
            leaves = self.recolour(described);
        }
    }

    /// What a leaf folds into, and how it hangs there: the ranks of the edges and its colour.
    ///
    /// Of two leaves that hang on each other only one folds; where neither is first, they are twins.
    fn fold(&self, leaf: u32) -> Option<(u32, [u32; 3], u32)> {
        let [Link { to, out, back }] = self.links[leaf as usize][..] else {
            return None;
        };
        let colour = |a: u32| self.colour[a as usize];
        let folds = self.links[to as usize].len() > 1 || (colour(leaf), out) < (colour(to), back);
        folds.then_some((to, [out, back, colour(leaf)], leaf))
    }

    /// Makes one node of each set of twins; gives the number of nodes that this takes off.
    fn merge_twins(&mut self) -> usize {
        let mut seen: HashMap<(u32, u64), Vec<u32>> = HashMap::new();
        let mut merged: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for a in self.left() {
            let links = &self.links[a as usize];
            let around = links.iter().fold(0_u64, |sum, link| sum.wrapping_add(link.hash()));
            // Twins have the same neighbours but for each other: each is hashed as if it were its own
            // neighbour, too.
            let alike =
                |link: &&Link| link.out == link.back && self.colour[link.to as usize] == self.colour[a as usize];
            let mut ways: Vec<u32> = links.iter().filter(alike).map(|link| link.out).collect();
            ways.sort_unstable();
            ways.dedup();
            let with_itself = ways.into_iter().map(|way| Link { to: a, out: way, back: way });
            let hashes = with_itself.map(|link| around.wrapping_add(link.hash()));
            for hash in std::iter::once(around).chain(hashes) {
                let others = seen.entry((self.colour[a as usize], hash)).or_default();
                match others.iter().find(|&&other| self.are_twins(other, a)) {
                    Some(&first) => {
                        merged.entry(first).or_default().push(a);
                        break;
                    }
                    None => others.push(a),
                }
            }
        }
        let n_taken = merged.values().map(Vec::len).sum();
        self.take_twins(merged);
        n_taken
    }

    /// `true` if two nodes of one colour change places in an automorphism that moves nothing else.
    fn are_twins(&self, a: u32, b: u32) -> bool {
        let others = |of: u32, but: u32| self.links[of as usize].iter().filter(move |link| link.to != but);
        let between = self.links[a as usize].iter().find(|link| link.to == b);
        between.is_none_or(|link| link.out == link.back) && others(a, b).eq(others(b, a))
    }

    /// Takes off all twins but the first of each set.
    fn take_twins(&mut self, merged: BTreeMap<u32, Vec<u32>>) {
        let mut described = Vec::with_capacity(merged.len());
        for (a, twins) in merged {
            self.order = self.order.permuting(1 + twins.len());
            let way = self.links[a as usize].iter().find(|link| link.to == twins[0]).map_or(0, |link| link.out);
            described.push((vec![self.colour[a as usize], way, twins.len() as u32], a));
            for &twin in &twins {
                self.is_left[twin as usize] = false;
            }
            self.taken[a as usize].extend(twins);
        }
        for links in &mut self.links {
            links.retain(|link| self.is_left[link.to as usize]);
        }
        self.recolour(described);
    }

    /// Gives nodes new colours by what is said of them; gives the nodes.
    fn recolour(&mut self, mut described: Vec<(Vec<u32>, u32)>) -> Vec<u32> {
        described.sort_unstable();
        for same in described.chunk_by(|one, other| one.0 == other.0) {
            for (_, a) in same {
                self.colour[*a as usize] = self.n_colours;
            }
            self.n_colours += 1;
        }
        described.into_iter().map(|(_, a)| a).collect()
    }

    /// The connected parts of what is left. Equal weights of nodes in any two of them mean equal colours.
    pub(in crate::graph) fn cores(&self, graph: &GraphState, weights: &[Edge]) -> Vec<Core> {
        let mut colours: Vec<u32> = self.left().map(|a| self.colour[a as usize]).collect();
        colours.sort_unstable();
        colours.dedup();
        let weight = |&a: &u32| weight_of(colours.partition_point(|colour| *colour < self.colour[a as usize]));
        let mut places = vec![None; self.links.len()];
        let mut out = Vec::new();
        for start in self.left() {
            if places[start as usize].is_some() {
                continue;
            }
            let nodes = self.part(start, &mut places);
            let mut core = GraphState::from_nodes(graph.kind(), nodes.iter().map(weight));
            for (a, link) in nodes.iter().flat_map(|&a| self.links[a as usize].iter().map(move |link| (a, link))) {
                let edge = (link.out as usize).checked_sub(1).map(|k| weights.get(k).copied().unwrap_or_default());
                if let (Some(a), Some(b), Some(edge)) = (places[a as usize], places[link.to as usize], edge)
                    && (graph.is_directed() || a < b)
                {
                    core.insert_edge(a, b, edge);
                }
            }
            out.push(Core { graph: core, nodes });
        }
        out
    }

    /// The nodes that links lead to from `start`, and in `places` the place of each among them.
    fn part(&self, start: u32, places: &mut [Option<u32>]) -> Vec<u32> {
        let mut nodes = vec![start];
        places[start as usize] = Some(0);
        let mut next = 0;
        while let Some(&a) = nodes.get(next) {
            for link in &self.links[a as usize] {
                if places[link.to as usize].is_none() {
                    places[link.to as usize] = Some(nodes.len() as u32);
                    nodes.push(link.to);
                }
            }
            next += 1;
        }
        nodes
    }

    /// All nodes, each followed by what it took in; `roots` are those that are left, and the first `fixed`
    /// nodes come first.
    pub(in crate::graph) fn order_from(&self, roots: impl DoubleEndedIterator<Item = u32>, fixed: usize) -> Vec<u32> {
        let n = self.links.len();
        let mut order: Vec<u32> = (0..fixed.min(n) as u32).collect();
        let mut stack: Vec<u32> = roots.rev().collect();
        while let Some(a) = stack.pop() {
            if a as usize >= fixed {
                order.push(a);
            }
            stack.extend(self.taken[a as usize].iter().rev());
        }
        order
    }
}

/// The neighbours of each node, ascending.
fn links(graph: &GraphState, weights: &[Edge]) -> Vec<Vec<Link>> {
    let mut out = vec![Vec::new(); graph.n_nodes()];
    for edge in raw_edges(graph) {
        let (a, b) = (edge.source().index(), edge.target().index());
        let rank = 1 + weights.partition_point(|weight| *weight < edge.weight) as u32;
        let back = if graph.is_directed() { 0 } else { rank };
        out[a].push(Link { to: b as u32, out: rank, back });
        out[b].push(Link { to: a as u32, out: back, back: rank });
    }
    for links in &mut out {
        links.sort_unstable();
        // An edge and its opposite are one link.
        links.dedup_by(|later, first| {
            let same = later.to == first.to;
            if same {
                (first.out, first.back) = (first.out + later.out, first.back + later.back);
            }
            same
        });
    }
    out
}

/// A number as the weight of a node.
fn weight_of(number: usize) -> Node {
    let mut attributes = Attributes::default();
    for k in 0..2 {
        attributes.set(k, (number >> (16 + 8 * k)) as u8);
    }
    Node { class: number as u16, attributes }
}
