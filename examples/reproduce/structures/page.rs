//! The page that reports a distribution over structures: edge probabilities beside prior beliefs, the
//! consensus graph, and the most probable graphs.

use gfn::graph::{Edge, GraphKind};
use gfn_dags::PairMatrix;
use gfn_plot::{Cell, Page, Table};

use super::findings::Findings;
use super::methods::{Origin, remark};
use crate::prelude::*;

/// The smallest probability of an edge in the table.
const MIN_LISTED: f64 = 0.05;
/// The smallest probability that two variables have an edge, in either direction, in the consensus graph.
const PROBABLE: f64 = 0.5;
/// The smallest share of the more probable direction for which the consensus graph directs an edge.
const MIN_DIRECTED: f64 = 2.0 / 3.0;

impl Findings<'_> {
    /// Builds the page. `graphs` shows the most probable graphs, unless they have too many nodes.
    pub(super) fn page(&self, graphs: Option<&PictureSheet>) -> Result<Page> {
        let belief = self.problem.belief.as_ref();
        let mut page = Page::new(format!("Structures: {}", self.problem.title))
            .text(&self.problem.provenance())
            .heading("Edge probabilities")
            .text(&self.explain_table(belief.is_some()))
            .table(&self.edge_table(belief)?);
        if let Some(orders) = &self.orders {
            page = page.text(&remark(orders));
        }
        let consensus = self.consensus();
        page = match self.origin {
            Origin::BestGraph => page.heading("Best graph"),
            _ => page.heading("Consensus graph").text(
                "An edge is drawn if two variables have an edge, in either direction, with a probability of \
                 at least 0.5. It has an arrow at both ends if neither direction has two thirds of this \
                 probability: observational data alone often leave the direction open.",
            ),
        };
        page = match graphs {
            Some(_) => page.picture(&self.drawing().draw(&consensus).to_svg()?),
            None => {
                page.text("There are too many variables for a picture; the file edges.dot has the edges.")
            }
        };
        let heading = match self.origin {
            Origin::Exact => "Most probable structures",
            Origin::PolicySamples | Origin::Chains(_) => "Most frequent structures",
            Origin::BestGraph => return Ok(page),
        };
        if let Some(sheet) = graphs {
            page = page.heading(heading).picture(&sheet.to_svg()?);
        }
        Ok(page)
    }

    fn explain_table(&self, has_belief: bool) -> String {
        let interval = match self.origin {
            Origin::Exact => "The probabilities are those of the policy itself, without samples.",
            Origin::PolicySamples => {
                "The interval (95 %) covers the noise of sampling graphs from the policy, not what the \
                 policy has left to learn: compare with the exact probabilities, if there are any."
            }
            Origin::Chains(_) => "The interval (95 %) is that of the mean of independent Markov chains.",
            Origin::BestGraph => {
                "The column probability is 1 for the edges of the best graph that greedy search found. It \
                 says nothing about other graphs, so there are no intervals."
            }
        };
        let belief = if has_belief { "The belief is the one given by --belief." } else { "" };
        format!("Edges with a probability of at least {MIN_LISTED}. {interval} {belief}")
    }

    /// Returns the table of edges, the most probable first. An edge that the user believed in is listed in
    /// any case.
    fn edge_table(&self, belief: Option<&PairMatrix>) -> Result<Table> {
        let names = &self.problem.names;
        let n = names.len();
        let learned = &self.learned.edge;
        let intervals = self.intervals()?;
        let mut pairs: Vec<(usize, usize)> =
            (0..n).flat_map(|a| (0..n).map(move |b| (a, b))).filter(|(a, b)| a != b).collect();
        let listed = |matrix: &PairMatrix, (a, b): (usize, usize)| matrix.get(a, b) >= MIN_LISTED;
        pairs.retain(|&pair| {
            listed(learned, pair)
                || self.exact_edges.as_ref().is_some_and(|exact| listed(exact, pair))
                || belief.is_some_and(|belief| listed(belief, pair))
        });
        pairs.sort_by(|x, y| learned.get(y.0, y.1).total_cmp(&learned.get(x.0, x.1)));
        let mut header = vec!["from", "to", "probability", "interval", "exact"];
        header.extend(belief.map(|_| "belief"));
        let mut table = Table::new(header);
        let number = |p: f64| Cell::Number(format!("{p:.3}"));
        for (a, b) in pairs {
            let interval = intervals
                .as_ref()
                .map(|(low, high)| Cell::Number(format!("{:.3} to {:.3}", low.get(a, b), high.get(a, b))));
            let exact = self.exact_edges.as_ref().map(|exact| number(exact.get(a, b)));
            let mut row = vec![names[a].as_str().into(), names[b].as_str().into(), number(learned.get(a, b))];
            row.extend([interval.unwrap_or(Cell::Missing), exact.unwrap_or(Cell::Missing)]);
            row.extend(belief.map(|belief| number(belief.get(a, b))));
            table.push(row);
        }
        Ok(table)
    }

    /// Returns the consensus graph. An edge without a clear direction is two edges, one in each direction.
    fn consensus(&self) -> GraphState {
        let n = self.problem.names.len();
        let edges = &self.learned.edge;
        let mut out = GraphState::with_nodes(GraphKind::Directed, n);
        for (a, b) in (0..n).flat_map(|a| (0..n).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            let p = edges.get(a, b);
            let both = p + edges.get(b, a);
            if both >= PROBABLE && p > (1.0 - MIN_DIRECTED) * both {
                // The pairs are distinct, so no edge is added twice.
                let added = out.add_edge(a as u32, b as u32, Edge::default());
                debug_assert!(added.is_ok());
            }
        }
        out
    }
}
