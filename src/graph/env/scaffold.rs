//! The nodes of an initial graph, which are told apart or not, up to isomorphism.

use super::GraphEnv;
use crate::graph::symmetry::{Budget, FixedNodes};
use crate::graph::{Canonical, GraphState, with_canonizer};
use crate::{Result, Rng};

/// The treatment of the nodes of the initial graph (a scaffold), up to isomorphism.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scaffold {
    /// Each is one of its own: what grows on one atom of a benzene ring isn't what grows on another.
    ToldApart,
    /// Those that a symmetry of the initial graph takes to each other are alike: what grows on one atom of a
    /// benzene ring is what grows on any. Two graphs are one object if an isomorphism takes one to the other
    /// that is a symmetry of the initial graph on its nodes.
    Alike,
}

impl GraphEnv {
    /// The graph in canonical form: equal keys are one object.
    pub(crate) fn canonical(&self, graph: &GraphState) -> Canonical {
        let mut budget = Budget::UNLIMITED;
        self.canonical_within(graph, &mut budget)
    }

    /// The same, within the limit of the search.
    pub(crate) fn try_canonical(&self, graph: &GraphState) -> Result<Canonical> {
        let mut budget = Budget::LIMITED;
        let found = self.canonical_within(graph, &mut budget);
        budget.check(graph).map(|()| found)
    }

    /// The nodes that are told from later ones.
    fn held(&self) -> FixedNodes {
        if self.together { FixedNodes::AsSet(self.n_fixed()) } else { FixedNodes::InPlace(self.n_fixed()) }
    }

    /// Of the forms under all symmetries of the initial graph the one of least key.
    fn canonical_within(&self, graph: &GraphState, budget: &mut Budget) -> Canonical {
        with_canonizer(|canonizer| {
            let mut best = canonizer.find_form(graph, self.held(), budget);
            for (order, relabelled) in self.relabelled(graph) {
                if budget.is_exceeded {
                    break;
                }
                let other = canonizer.find_form(&relabelled, self.held(), budget);
                if other.key < best.key {
                    let order = other.order.iter().map(|&k| order[k as usize]).collect();
                    best = Canonical { order, ..other };
                }
            }
            best
        })
    }

    /// ln of the number of symmetries of the initial graph that the whole graph has, too. Times the
    /// symmetries that hold the initial nodes in place, it is |Aut| (orbits and stabilizers).
    pub(super) fn log_scaffold_symmetries(&self, graph: &GraphState) -> Result<f64> {
        with_canonizer(|canonizer| {
            if self.together {
                let all = canonizer.log_automorphisms_fixing(graph, self.held())?;
                // Without any there is none that holds nodes.
                if all == 0.0 {
                    return Ok(0.0);
                }
                return Ok(all - canonizer.log_automorphisms_fixing(graph, FixedNodes::InPlace(self.n_fixed()))?);
            }
            if self.symmetries.is_empty() {
                return Ok(0.0);
            }
            let (own, mut count) = (canonizer.try_find_form(graph, self.held())?.key, 1);
            for (_, relabelled) in self.relabelled(graph) {
                count += u32::from(canonizer.try_find_form(&relabelled, self.held())?.key == own);
            }
            Ok(f64::from(count).ln())
        })
    }

    /// The nodes of the initial graph that a graph has, in their own order, or where they are alike in that
    /// of a symmetry drawn at random.
    pub(super) fn scaffold_order(&self, graph: &GraphState, rng: &mut Rng) -> Vec<u32> {
        let n_fixed = self.n_fixed().min(graph.n_nodes());
        if let Some(all) = self.symmetries.get(graph.instance() as usize).filter(|all| !all.is_empty()) {
            let order = &all[rng.below(all.len())];
            if order.len() <= graph.n_nodes() {
                return order.clone();
            }
        }
        let mut order: Vec<u32> = (0..n_fixed as u32).collect();
        if self.together {
            (1..n_fixed).rev().for_each(|last| order.swap(last, rng.below(last + 1)));
        }
        order
    }

    /// The graph as each symmetry of its initial graph but the identity labels it, and the order of its
    /// nodes.
    fn relabelled(&self, graph: &GraphState) -> impl Iterator<Item = (Vec<u32>, GraphState)> {
        let symmetries = self.symmetries.get(graph.instance() as usize).map_or(&[][..], Vec::as_slice);
        // A graph that has lost nodes of the scaffold has no room for its symmetries.
        let fits = symmetries.iter().skip(1).filter(|symmetry| symmetry.len() <= graph.n_nodes());
        fits.map(|symmetry| {
            let mut order = symmetry.clone();
            order.extend(symmetry.len() as u32..graph.n_nodes() as u32);
            let relabelled = graph.induced(&order);
            (order, relabelled)
        })
    }
}
