//! The reduction of a graph before the search for its symmetry: pendant trees and twins are removed, because
//! their symmetry can be computed without a search.
//!
//! A leaf is folded into its only neighbour, as in the algorithm of Aho, Hopcroft and Ullman for trees. Twins
//! are nodes whose exchange is an automorphism that moves no other node. Twins are merged into one node. The
//! node that absorbs others gets a new colour, which encodes the absorbed nodes. The number of automorphisms
//! of the graph is that of the remaining graph, times the factorials of the numbers of interchangeable parts
//! that were absorbed. Each round removes all leaves or all twins at once, and numbers the new colours in
//! sorted order, so that isomorphic graphs get the same colours.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use super::group_order::GroupOrder;
use super::signatures::ranked_edges;
use crate::graph::state::mix;
use crate::graph::{Attributes, Edge, GraphState, Node};

/// The limit at which the reduction ends. Another round of merging twins (nodes whose exchange is an
/// automorphism) follows only if the last round removed more than one in this number of nodes.
const MAX_NODES_PER_REMOVED: usize = 10;

/// The edges between a node and one neighbour. The class and attributes of an edge are stored as their rank
/// among the graph's distinct combinations, counted from 1; rank 0 means that there is no edge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Link {
    /// The label of the neighbour.
    to: u32,
    /// The rank of the class and attributes of the edge to the neighbour; 0 if there is no such edge.
    out: u32,
    /// The rank of the class and attributes of the edge from the neighbour; 0 if there is no such edge.
    back: u32,
}

impl Link {
    fn hash(self) -> u64 {
        mix(mix(u64::from(self.to) << 32 | u64::from(self.out)) ^ u64::from(self.back))
    }
}

/// A node that absorbs other nodes (leaves or twins), and a description of the absorbed nodes and of their
/// edges to this node.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Absorption {
    description: Vec<u32>,
    node: u32,
    absorbed: Vec<u32>,
}

/// A graph in sparse form, from which leaves and twins are removed.
pub(in crate::graph) struct Reduction {
    /// The colour of each node, initially its cell (a number for its class and attributes). A node that
    /// absorbs others gets a new colour. Two colours from the same round are equal if the nodes had equal
    /// colours before and absorbed equal nodes by equal edges.
    colour: Vec<u32>,
    n_colours: u32,
    /// The links of each remaining node, in ascending order of the neighbours' labels. A link holds the edges
    /// between the node and one neighbour, in both directions.
    links: Vec<Vec<Link>>,
    /// The flag of each node, which is `true` if the node hasn't been removed.
    is_remaining: Vec<bool>,
    /// The nodes (leaves or twins) that each node absorbed, in canonical order.
    absorbed: Vec<Vec<u32>>,
    /// The number of automorphisms that exchange only removed nodes, or removed nodes and the node that
    /// absorbed them.
    pub(in crate::graph) group_order: GroupOrder,
}

impl Reduction {
    /// Reduces a graph. `cells` has a number for the class and attributes of each node. `weights` holds the
    /// distinct combinations of class and attributes of the edges, sorted.
    pub(in crate::graph) fn new(graph: &GraphState, cells: Vec<u32>, weights: &[Edge]) -> Self {
        let n = graph.n_nodes();
        let mut out = Self {
            n_colours: n as u32,
            colour: cells,
            links: list_links(graph, weights),
            is_remaining: vec![true; n],
            absorbed: vec![Vec::new(); n],
            group_order: GroupOrder::ONE,
        };
        out.fold_leaves();
        loop {
            let before = out.remaining_nodes().count();
            let n_removed = out.merge_twins();
            out.fold_leaves();
            if n_removed * MAX_NODES_PER_REMOVED <= before {
                return out;
            }
        }
    }

    /// Returns the nodes that haven't been removed, ascending.
    fn remaining_nodes(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.is_remaining.len() as u32).filter(|&a| self.is_remaining[a as usize])
    }

    /// Folds nodes with one neighbour into that neighbour, round by round, until there are no such nodes.
    fn fold_leaves(&mut self) {
        let mut leaves: Vec<u32> = self.remaining_nodes().collect();
        loop {
            leaves.retain(|&a| self.links[a as usize].len() == 1);
            let mut folds: Vec<_> = leaves.iter().filter_map(|&leaf| self.find_fold(leaf)).collect();
            if folds.is_empty() {
                return;
            }
            // Equal leaves of one node are consecutive after sorting. The order among equal leaves doesn't
            // matter.
            folds.sort_unstable();
            let mut absorptions = Vec::new();
            for leaves_of_a in folds.chunk_by(|first, second| first.0 == second.0) {
                let a = leaves_of_a[0].0;
                for equal in leaves_of_a.chunk_by(|first, second| first.1 == second.1) {
                    self.group_order = self.group_order.times_factorial(equal.len());
                }
                let mut description = vec![self.colour[a as usize]];
                description.extend(leaves_of_a.iter().flat_map(|(_, attachment, _)| attachment));
                let absorbed = leaves_of_a.iter().map(|(_, _, leaf)| *leaf).collect();
                absorptions.push(Absorption { description, node: a, absorbed });
            }
            leaves = self.absorb(absorptions);
        }
    }

    /// Returns the neighbour into which a leaf folds (by which it is absorbed), three numbers that describe
    /// the leaf, and the leaf. The three numbers are the `out` and `back` of the leaf's only [`Link`], and
    /// the leaf's colour. Returns `None` if the node isn't a leaf, or is a leaf that doesn't fold.
    ///
    /// If two leaves are joined to each other, only one of them folds. If the two leaves are equal, neither
    /// folds, because they are twins and are merged later.
    fn find_fold(&self, leaf: u32) -> Option<(u32, [u32; 3], u32)> {
        let [Link { to, out, back }] = self.links[leaf as usize][..] else {
            return None;
        };
        let colour = |a: u32| self.colour[a as usize];
        let folds = self.links[to as usize].len() > 1 || (colour(leaf), out) < (colour(to), back);
        folds.then_some((to, [out, back, colour(leaf)], leaf))
    }

    /// Merges each set of twins (nodes whose exchange is an automorphism) into one node, and returns the
    /// number of nodes that were removed.
    fn merge_twins(&mut self) -> usize {
        let mut candidates: HashMap<(u32, u64), Vec<u32>> = HashMap::new();
        let mut merged: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for a in self.remaining_nodes() {
            let links = &self.links[a as usize];
            let around = links.iter().fold(0_u64, |sum, link| sum.wrapping_add(link.hash()));
            // Twins have the same neighbours except each other. Two twins that are joined get equal hashes
            // only if each hash also includes the node itself as a neighbour.
            let is_possible_twin = |link: &&Link| {
                link.out == link.back && self.colour[link.to as usize] == self.colour[a as usize]
            };
            let mut ranks: Vec<u32> = links.iter().filter(is_possible_twin).map(|link| link.out).collect();
            ranks.sort_unstable();
            ranks.dedup();
            let to_itself = ranks.into_iter().map(|rank| Link { to: a, out: rank, back: rank });
            let hashes = to_itself.map(|link| around.wrapping_add(link.hash()));
            for hash in std::iter::once(around).chain(hashes) {
                let earlier = candidates.entry((self.colour[a as usize], hash)).or_default();
                match earlier.iter().find(|&&b| self.are_twins(b, a)) {
                    Some(&first) => {
                        merged.entry(first).or_default().push(a);
                        break;
                    }
                    None => earlier.push(a),
                }
            }
        }
        let mut absorptions = Vec::with_capacity(merged.len());
        for (a, twins) in merged {
            self.group_order = self.group_order.times_factorial(1 + twins.len());
            let rank =
                self.links[a as usize].iter().find(|link| link.to == twins[0]).map_or(0, |link| link.out);
            let description = vec![self.colour[a as usize], rank, twins.len() as u32];
            absorptions.push(Absorption { description, node: a, absorbed: twins });
        }
        let n_removed = absorptions.iter().map(|absorption| absorption.absorbed.len()).sum();
        self.absorb(absorptions);
        n_removed
    }

    /// Returns `true` if the exchange of two nodes of one colour is an automorphism that moves no other node.
    fn are_twins(&self, a: u32, b: u32) -> bool {
        let links_except =
            |of: u32, except: u32| self.links[of as usize].iter().filter(move |link| link.to != except);
        let between = self.links[a as usize].iter().find(|link| link.to == b);
        between.is_none_or(|link| link.out == link.back) && links_except(a, b).eq(links_except(b, a))
    }

    /// Removes the nodes (leaves or twins) that other nodes absorb, and gives the absorbing nodes new
    /// colours, which are equal for equal descriptions of the absorbed nodes. Returns the absorbing nodes.
    fn absorb(&mut self, mut absorptions: Vec<Absorption>) -> Vec<u32> {
        let mut neighbours = Vec::new();
        for Absorption { node, absorbed, .. } in &absorptions {
            for &a in absorbed {
                self.is_remaining[a as usize] = false;
                neighbours.extend(self.links[a as usize].iter().map(|link| link.to));
            }
            self.absorbed[*node as usize].extend(absorbed);
        }
        neighbours.sort_unstable();
        neighbours.dedup();
        for a in neighbours {
            self.links[a as usize].retain(|link| self.is_remaining[link.to as usize]);
        }
        absorptions.sort_unstable();
        for equal in absorptions.chunk_by(|first, second| first.description == second.description) {
            for absorption in equal {
                self.colour[absorption.node as usize] = self.n_colours;
            }
            self.n_colours += 1;
        }
        absorptions.into_iter().map(|absorption| absorption.node).collect()
    }

    /// Returns each connected part of the remaining graph (without the removed leaves and twins) as a graph,
    /// with the labels that its nodes have in the whole graph. In these graphs a node's class and attributes
    /// encode its colour, with the same meaning in all parts.
    pub(in crate::graph) fn list_cores(
        &self,
        graph: &GraphState,
        weights: &[Edge],
    ) -> Vec<(GraphState, Vec<u32>)> {
        let mut colours: Vec<u32> = self.remaining_nodes().map(|a| self.colour[a as usize]).collect();
        colours.sort_unstable();
        colours.dedup();
        let weight = |&a: &u32| {
            weight_from_number(colours.partition_point(|colour| *colour < self.colour[a as usize]))
        };
        let mut places = vec![None; self.links.len()];
        let mut out = Vec::new();
        for start in self.remaining_nodes() {
            if places[start as usize].is_some() {
                continue;
            }
            let nodes = self.collect_part(start, &mut places);
            let mut core = GraphState::from_nodes(graph.kind(), nodes.iter().map(weight));
            for (a, link) in
                nodes.iter().flat_map(|&a| self.links[a as usize].iter().map(move |link| (a, link)))
            {
                let edge =
                    (link.out as usize).checked_sub(1).map(|k| weights.get(k).copied().unwrap_or_default());
                if let (Some(a), Some(b), Some(edge)) = (places[a as usize], places[link.to as usize], edge)
                    && (graph.is_directed() || a < b)
                {
                    core.insert_edge(a, b, edge);
                }
            }
            out.push((core, nodes));
        }
        out
    }

    /// Returns the remaining nodes that are connected to `start`, and stores in `places` the index of each of
    /// these nodes in the returned list.
    fn collect_part(&self, start: u32, places: &mut [Option<u32>]) -> Vec<u32> {
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

    /// Returns all nodes in canonical order: the first `fixed` nodes, then the remaining nodes in the order
    /// of `roots`, each followed by the nodes that it absorbed.
    pub(in crate::graph) fn order_from(
        &self,
        roots: impl DoubleEndedIterator<Item = u32>,
        fixed: usize,
    ) -> Vec<u32> {
        let n = self.links.len();
        let mut order: Vec<u32> = (0..fixed.min(n) as u32).collect();
        let mut stack: Vec<u32> = roots.rev().collect();
        while let Some(a) = stack.pop() {
            if a as usize >= fixed {
                order.push(a);
            }
            stack.extend(self.absorbed[a as usize].iter().rev());
        }
        order
    }
}

/// Returns the links (edges in both directions) of each node to its neighbours, in ascending order of the
/// neighbours' labels.
fn list_links(graph: &GraphState, weights: &[Edge]) -> Vec<Vec<Link>> {
    let mut out = vec![Vec::new(); graph.n_nodes()];
    for (a, b, rank) in ranked_edges(graph, weights) {
        let rank = 1 + rank as u32;
        let back = if graph.is_directed() { 0 } else { rank };
        out[a].push(Link { to: b as u32, out: rank, back });
        out[b].push(Link { to: a as u32, out: back, back: rank });
    }
    for links in &mut out {
        links.sort_unstable();
        // An edge and the edge in the opposite direction are merged into one link.
        links.dedup_by(|later, first| {
            let is_same = later.to == first.to;
            if is_same {
                first.out += later.out;
                first.back += later.back;
            }
            is_same
        });
    }
    out
}

/// Encodes a number as the class and attributes of a node.
fn weight_from_number(number: usize) -> Node {
    let mut attributes = Attributes::default();
    for k in 0..2 {
        attributes.set(k, (number >> (16 + 8 * k)) as u8);
    }
    Node { class: number as u16, attributes }
}
