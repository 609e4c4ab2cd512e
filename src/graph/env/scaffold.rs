//! The nodes of an initial graph (a scaffold), which may or may not be distinguished from each other up to
//! isomorphism.

use serde::{Deserialize, Serialize};

use super::GraphEnv;
use crate::graph::symmetry::{Budget, FixedNodes};
use crate::graph::{Canonical, GraphState, Semantics, with_canonizer};
use crate::{Result, Rng};

/// The treatment of the nodes of the initial graph (a scaffold) in environments up to isomorphism.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Scaffold {
    /// All nodes of the initial graph are distinguished. For example, a group at one atom of a benzene ring
    /// and the same group at another atom are different objects.
    ToldApart,
    /// Nodes that a symmetry of the initial graph maps to each other aren't distinguished. For example, a
    /// group at any atom of a benzene ring is the same object. Two graphs are the same object if an
    /// isomorphism between them restricts to a symmetry of the initial graph.
    Alike,
}

impl GraphEnv {
    /// Returns the class of each node label. A network can't distinguish labels of the same class. Up to
    /// isomorphism, all nodes after those of the initial graph share the last class, and the list is empty if
    /// the initial graph has no nodes.
    pub(crate) fn label_classes(&self) -> Vec<u32> {
        let fixed = self.n_fixed() as u32;
        let max_nodes = self.schema.max_nodes;
        match (self.actions.semantics(), self.fixed_nodes) {
            (Semantics::Labelled, _) => (0..max_nodes as u32).collect(),
            (Semantics::UpToIsomorphism, _) if fixed == 0 => Vec::new(),
            (Semantics::UpToIsomorphism, FixedNodes::AsSet(_)) => {
                (0..=fixed).map(|a| u32::from(a == fixed)).take(max_nodes).collect()
            }
            (Semantics::UpToIsomorphism, _) if self.scaffold_symmetries.is_empty() => {
                (0..=fixed).take(max_nodes).collect()
            }
            // The class of a label is the smallest label to which a symmetry maps it.
            (Semantics::UpToIsomorphism, _) => {
                let labels = |a: u32| self.scaffold_symmetries.iter().map(move |order| order[a as usize]);
                (0..fixed).filter_map(|a| labels(a).min()).chain([fixed]).collect()
            }
        }
    }

    /// Returns ln |Aut| of a graph, which training uses to correct for symmetry if states are graphs up to
    /// isomorphism.
    ///
    /// The result is [`GraphRules::log_automorphisms`](crate::graph::GraphRules::log_automorphisms) with the
    /// nodes of the initial graph fixed. If these nodes are [alike](Scaffold::Alike), the logarithm of the
    /// number of symmetries of the initial graph that extend to the whole graph is added.
    ///
    /// # Errors
    /// Returns the errors of the rules and, if nodes are interchangeable by symmetries, those of
    /// [`Canonizer::try_canonical`](crate::graph::Canonizer::try_canonical).
    pub fn log_automorphisms(&self, graph: &GraphState) -> Result<f64> {
        Ok(self.rules.log_automorphisms(graph, self.n_fixed())? + self.log_scaffold_symmetries(graph)?)
    }

    /// The number of nodes of the initial graph, which are the first nodes of each graph.
    pub(crate) fn n_fixed(&self) -> usize {
        self.initial[0].n_nodes()
    }

    /// Finds the canonical form of a graph. Graphs whose canonical forms have equal keys are the same object.
    pub(crate) fn canonical(&self, graph: &GraphState) -> Canonical {
        let mut budget = Budget::UNLIMITED;
        self.canonical_within(graph, &mut budget)
    }

    /// Finds the canonical form as [`canonical`](Self::canonical) does, but limits the work of the search.
    pub(crate) fn try_canonical(&self, graph: &GraphState) -> Result<Canonical> {
        Budget::limit(graph, |budget| self.canonical_within(graph, budget))
    }

    /// Finds the canonical form of a graph under each symmetry of the initial graph, and returns the form
    /// with the smallest key.
    fn canonical_within(&self, graph: &GraphState, budget: &mut Budget) -> Canonical {
        with_canonizer(|canonizer| {
            let mut best = canonizer.find_form(graph, self.fixed_nodes, budget);
            for (order, relabelled) in self.relabel_by_symmetries(graph) {
                if budget.is_exceeded {
                    break;
                }
                let other = canonizer.find_form(&relabelled, self.fixed_nodes, budget);
                if other.key < best.key {
                    let order = other.order.iter().map(|&k| order[k as usize]).collect();
                    best = Canonical { order, ..other };
                }
            }
            best
        })
    }

    /// Returns the logarithm of the number of symmetries of the initial graph that extend to the whole graph.
    /// |Aut| is this number times the number of automorphisms that fix the nodes of the initial graph
    /// (orbit-stabilizer theorem).
    pub(super) fn log_scaffold_symmetries(&self, graph: &GraphState) -> Result<f64> {
        with_canonizer(|canonizer| {
            if let FixedNodes::AsSet(n_fixed) = self.fixed_nodes {
                let log_all = canonizer.log_automorphisms_fixing(graph, self.fixed_nodes)?;
                // A graph whose only automorphism is the identity needs no second search.
                if log_all == 0.0 {
                    return Ok(0.0);
                }
                return Ok(log_all - canonizer.log_automorphisms_fixing(graph, FixedNodes::InPlace(n_fixed))?);
            }
            if self.scaffold_symmetries.is_empty() {
                return Ok(0.0);
            }
            let key = canonizer.try_find_form(graph, self.fixed_nodes)?.key;
            let mut count = 1;
            for (_, relabelled) in self.relabel_by_symmetries(graph) {
                count += u32::from(canonizer.try_find_form(&relabelled, self.fixed_nodes)?.key == key);
            }
            Ok(f64::from(count).ln())
        })
    }

    /// Returns the nodes of the initial graph that `graph` still has, in an order in which they may be
    /// relabelled. The order is ascending if these nodes are distinguished, random if all of them are
    /// interchangeable, and otherwise given by a random symmetry of the initial graph (ascending if the graph
    /// has lost some of these nodes).
    pub(super) fn scaffold_order(&self, graph: &GraphState, rng: &mut Rng) -> Vec<u32> {
        let n_fixed = self.n_fixed().min(graph.n_nodes());
        let symmetries = &self.scaffold_symmetries;
        if !symmetries.is_empty() {
            let order = &symmetries[rng.below(symmetries.len())];
            if order.len() <= graph.n_nodes() {
                return order.clone();
            }
        }
        let mut order: Vec<u32> = (0..n_fixed as u32).collect();
        if matches!(self.fixed_nodes, FixedNodes::AsSet(_)) {
            for last in (1..n_fixed).rev() {
                order.swap(last, rng.below(last + 1));
            }
        }
        order
    }

    /// Returns, for each symmetry of the initial graph except the identity, the graph relabelled by the
    /// symmetry, and the order of nodes that relabels it.
    fn relabel_by_symmetries(&self, graph: &GraphState) -> impl Iterator<Item = (Vec<u32>, GraphState)> {
        // A graph that has lost nodes of the initial graph may have fewer nodes than a symmetry permutes, so
        // such a symmetry is skipped.
        let fitting =
            self.scaffold_symmetries.iter().skip(1).filter(|symmetry| symmetry.len() <= graph.n_nodes());
        fitting.map(|symmetry| {
            let mut order = symmetry.clone();
            order.extend(symmetry.len() as u32..graph.n_nodes() as u32);
            let relabelled = graph.induced(&order);
            (order, relabelled)
        })
    }
}
