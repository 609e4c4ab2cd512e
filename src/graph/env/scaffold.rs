//! Whether the nodes of an initial graph are told apart, up to isomorphism.

use std::convert::Infallible;

use super::{GraphEnv, GraphRules};
use crate::graph::symmetry::Held;
use crate::graph::{Canonical, Canonizer, GraphState, with_canonizer};
use crate::{Error, Result, Rng};

/// Most symmetries of an initial graph whose nodes are alike: each costs a canonical form per state.
const MAX_SYMMETRIES: usize = 1_000;
/// Steps after which the search for them gives up.
const MAX_STEPS: usize = 100_000_000;

/// Whether the nodes of the initial graph (a scaffold) are told apart, up to isomorphism.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scaffold {
    /// Each is one of its own: what grows on one atom of a benzene ring isn't what grows on another.
    ToldApart,
    /// Those that a symmetry of the initial graph takes to each other are alike: what grows on one atom of a benzene
    /// ring is what grows on any. Two graphs are one object if an isomorphism takes one to the other that is a symmetry
    /// of the initial graph on its nodes.
    Alike,
}

/// The symmetries of a graph, as orders of its nodes: `graph.induced(order)` is the graph itself. The identity is first.
pub(super) fn symmetries(graph: &GraphState) -> Result<Vec<Vec<u32>>> {
    let mut search = Search { graph, order: Vec::new(), found: Vec::new(), steps: 0 };
    search.extend()?;
    Ok(search.found)
}

struct Search<'a> {
    graph: &'a GraphState,
    /// The nodes that stand for the first ones.
    order: Vec<u32>,
    found: Vec<Vec<u32>>,
    steps: usize,
}

impl Search<'_> {
    fn extend(&mut self) -> Result<()> {
        let n = self.graph.n_nodes();
        self.steps += n * n;
        if self.found.len() > MAX_SYMMETRIES || self.steps > MAX_STEPS {
            let got = match self.found.len() > MAX_SYMMETRIES {
                true => format!("more than {MAX_SYMMETRIES}"),
                false => format!("{n} nodes, too many to find them all"),
            };
            let expected = "few symmetries where its nodes are alike (each costs a canonical form per state); tell them \
                            apart, or by classes of nodes";
            return Err(Error::config("symmetries of the initial graph", got, expected));
        }
        if self.order.len() == n {
            self.found.push(self.order.clone());
            return Ok(());
        }
        for b in 0..n as u32 {
            if !self.order.contains(&b) && self.fits(b) {
                self.order.push(b);
                self.extend()?;
                self.order.pop();
            }
        }
        Ok(())
    }

    /// Whether node `b` can stand for the next one, given those that stand for the ones before.
    fn fits(&self, b: u32) -> bool {
        let (graph, a) = (self.graph, self.order.len() as u32);
        graph.node(a) == graph.node(b)
            && self
                .order
                .iter()
                .zip(0..)
                .all(|(&d, c)| graph.edge(a, c) == graph.edge(b, d) && graph.edge(c, a) == graph.edge(d, b))
    }
}

impl<R: GraphRules> GraphEnv<R> {
    /// The graph in canonical form: equal keys are one object.
    pub(crate) fn canonical(&self, graph: &GraphState) -> Canonical {
        let find = |canonizer: &mut Canonizer, graph: &GraphState| Ok(canonizer.canonical_with(graph, self.held()));
        let Ok(found) = self.canonical_by::<Infallible>(graph, find);
        found
    }

    /// The same, within the limit of the search.
    pub(crate) fn try_canonical(&self, graph: &GraphState) -> Result<Canonical> {
        self.canonical_by(graph, |canonizer, graph| canonizer.try_canonical_with(graph, self.held()))
    }

    /// The nodes that are told from later ones.
    fn held(&self) -> Held {
        if self.together { Held::Together(self.n_fixed()) } else { Held::Each(self.n_fixed()) }
    }

    fn canonical_by<E>(
        &self,
        graph: &GraphState,
        find: impl Fn(&mut Canonizer, &GraphState) -> std::result::Result<Canonical, E>,
    ) -> std::result::Result<Canonical, E> {
        let mut best = with_canonizer(|canonizer| find(canonizer, graph))?;
        for (order, relabelled) in self.relabelled(graph) {
            let other = with_canonizer(|canonizer| find(canonizer, &relabelled))?;
            if other.key < best.key {
                let order = other.order.iter().map(|&k| order[k as usize]).collect();
                best = Canonical { order, ..other };
            }
        }
        Ok(best)
    }

    /// ln of the number of symmetries of the initial graph that the whole graph has, too. Times the symmetries that
    /// hold the initial nodes in place, it is |Aut| (orbits and stabilizers).
    pub(super) fn log_scaffold_symmetries(&self, graph: &GraphState) -> Result<f64> {
        if self.together {
            let log = |held| with_canonizer(|canonizer| canonizer.log_automorphisms_with(graph, held));
            let all = log(self.held())?;
            // Without any there is none that holds nodes.
            return Ok(if all == 0.0 { 0.0 } else { all - log(Held::Each(self.n_fixed()))? });
        }
        if self.symmetries.is_empty() {
            return Ok(0.0);
        }
        let find = |graph: &GraphState| with_canonizer(|canonizer| canonizer.try_canonical_with(graph, self.held()));
        let (own, mut count) = (find(graph)?.key, 1);
        for (_, relabelled) in self.relabelled(graph) {
            count += u32::from(find(&relabelled)?.key == own);
        }
        Ok(f64::from(count).ln())
    }

    /// The nodes of the initial graph that a graph has, in their own order, or where they are alike in that of a symmetry drawn at random.
    pub(super) fn scaffold_order(&self, graph: &GraphState, rng: &mut Rng) -> Vec<u32> {
        let n_fixed = self.n_fixed().min(graph.n_nodes());
        let symmetries = self.symmetries.get(graph.instance() as usize).filter(|all| !all.is_empty());
        if let Some(order) =
            symmetries.map(|all| &all[rng.below(all.len())]).filter(|order| order.len() <= graph.n_nodes())
        {
            return order.clone();
        }
        let mut order: Vec<u32> = (0..n_fixed as u32).collect();
        if self.together {
            (1..n_fixed).rev().for_each(|last| order.swap(last, rng.below(last + 1)));
        }
        order
    }

    /// The graph as each symmetry of its initial graph but the identity labels it, and the order of its nodes.
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
