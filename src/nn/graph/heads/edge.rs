//! Logits of edges, from the edge's own features, its ends and their pair features; and of candidates, which an edge may join.

use std::borrow::Cow;

use super::pairs::FEATURES_SCALE;
use crate::graph::{GraphArrays, GraphKind, GraphSchema};
use crate::nn::graph::engine::Engine;
use crate::nn::graph::features::EdgeFeatures;
use crate::nn::{Linear, Scope};

/// `W relu(U h_a + V h_b + t(edge) + P f_ab)` for each edge from `a` to `b`, where `t` is the vector of its class and
/// attributes and `f` are pair features. Undirected edges, whose ends are interchangeable, have `V = U`.
///
/// Of candidates the same without `t`.
///
/// The ends alone aren't enough: in a ring whose edges alternate between two classes all nodes look alike, but the
/// edges differ.
#[derive(Debug)]
pub(crate) struct EdgeHead {
    rows: Rows,
    first: Linear,
    /// `None` if edges have no direction.
    second: Option<Linear>,
    /// `None` if all edges are alike.
    edges: Option<EdgeFeatures>,
    /// `None` without pair features. Those of an undirected pair are symmetric.
    pairs: Option<Linear>,
    output: Linear,
}

/// What there is a row of logits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rows {
    /// Each edge.
    Edges,
    /// Each candidate.
    Candidates,
}

impl Rows {
    /// The nodes of each row, numbered through the batch.
    fn ends(self, arrays: &GraphArrays) -> Cow<'_, [(u32, u32)]> {
        match self {
            Self::Edges => Cow::Borrowed(&arrays.edges),
            Self::Candidates => {
                let node = |g: usize, label: usize| (arrays.node_ptr[g] + label) as u32;
                Cow::Owned(arrays.all_candidates().map(|(g, a, b)| (node(g, a), node(g, b))).collect())
            }
        }
    }

    /// The place of each row among all ordered pairs of nodes.
    fn places(self, arrays: &GraphArrays) -> Vec<usize> {
        match self {
            Self::Edges => arrays.edge_pairs().collect(),
            Self::Candidates => candidate_places(arrays).collect(),
        }
    }
}

/// The place of each candidate among all ordered pairs of nodes of all graphs.
pub(in crate::nn) fn candidate_places(arrays: &GraphArrays) -> impl Iterator<Item = usize> + '_ {
    arrays.all_candidates().map(|(g, a, b)| {
        let n = arrays.node_ptr[g + 1] - arrays.node_ptr[g];
        arrays.pair_ptr[g] + a * n + b
    })
}

impl EdgeHead {
    pub(crate) fn new(
        scope: &mut Scope<'_>,
        schema: &GraphSchema,
        rows: Rows,
        width: i64,
        columns: i64,
        n_features: i64,
    ) -> Self {
        let directed = schema.kind == GraphKind::Directed;
        let pairs = |scope: &mut Scope<'_>| {
            let layer = Linear::without_bias(&mut scope.sub("pairs"), n_features, width);
            layer.scale(FEATURES_SCALE);
            layer
        };
        let tells_apart = matches!(rows, Rows::Edges) && schema.tells_edges_apart();
        Self {
            rows,
            first: Linear::new(&mut scope.sub("first"), width, width),
            second: directed.then(|| Linear::without_bias(&mut scope.sub("second"), width, width)),
            edges: tells_apart.then(|| EdgeFeatures::new(&mut scope.sub("edges"), schema, width)),
            pairs: (n_features > 0).then(|| pairs(scope)),
            output: Linear::new(&mut scope.sub("output"), width, columns),
        }
    }

    /// Multiplies all logits by a factor; called before training.
    pub(crate) fn scale(&self, factor: f64) {
        self.output.scale(factor);
    }

    /// The logits of every row, `[rows, columns]`, given pair features of `[sum of n * n, features]`.
    pub(crate) fn forward<E: Engine>(&self, engine: &E, nodes: &E::Rows, pairs: Option<&E::Rows>) -> E::Rows {
        let arrays = engine.arrays();
        let ends = self.rows.ends(arrays);
        let at = |rows: &E::Rows, nodes: Vec<i64>| engine.gather(rows, Some(&engine.index(nodes)));
        let first = engine.linear(&self.first, nodes);
        let second = self.second.as_ref().map(|layer| engine.linear(layer, nodes));
        let seconds = at(second.as_ref().unwrap_or(&first), ends.iter().map(|pair| i64::from(pair.1)).collect());
        let firsts = at(&first, ends.iter().map(|pair| i64::from(pair.0)).collect());
        let mut hidden = engine.add(firsts, &seconds);
        if let Some(edges) = &self.edges {
            hidden = engine.add(hidden, &edges.forward(engine, 1));
        }
        if let (Some(layer), Some(pairs)) = (&self.pairs, pairs) {
            let places = self.rows.places(arrays).into_iter().map(|place| place as i64);
            hidden = engine.add(hidden, &engine.linear(layer, &at(pairs, places.collect())));
        }
        engine.linear(&self.output, &engine.relu(hidden))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Edge, GraphState};
    use crate::nn::graph::heads::pair_features;

    /// 0 -> 1 -> 2 and two candidates, of which a walk of two edges goes along the first and none along the second.
    #[test]
    fn candidates_are_found_in_their_own_direction() {
        let mut graph = GraphState::with_nodes(GraphKind::Directed, 3);
        graph.add_edge(0, 1, Edge::default()).unwrap();
        graph.add_edge(1, 2, Edge::default()).unwrap();
        let graph = graph.with_candidates([(0, 2), (2, 0)]).unwrap();
        let arrays = GraphArrays::of(&[GraphState::with_nodes(GraphKind::Directed, 2), graph]);
        let places: Vec<usize> = candidate_places(&arrays).collect();
        assert_eq!(places, [4 + 2, 4 + 6]);
        let features = pair_features(&arrays, 1);
        let walks = places.iter().map(|place| features[2 * place + 1]);
        assert_eq!(walks.collect::<Vec<_>>(), [2f64.ln(), 0.0]);
    }
}
