//! What the learned distribution says of edges, paths and Markov blankets, and how that compares with what is known.

use gfn::env::Rows;
use gfn::graph::{GraphEnv, GraphStates};
use gfn::{Error, Result};
use gfn_dags::{
    BayesianStructure, DagReward, EdgeMarginals, MAX_SUMMED_NODES, Marginals, PairMatrix, expected_shd, most_probable,
};
use gfn_plot::{Cell, Table};
use gfn_plot::{GraphSheet, Layout, NodeLabels, Panel};
use serde_json::{Value, json};

use super::problem::{Problem, Scores};
use crate::cli::{Common, Exact, draw_sheet};

/// Graphs that are drawn.
const SHOWN: usize = 8;
/// Widest sheets that stay readable.
const MOST_DRAWN_NODES: usize = 30;

/// The learned distribution: graphs, and the probability of each unless they are samples.
pub(crate) struct Findings<'a> {
    problem: &'a Problem,
    states: GraphStates,
    probs: Option<Vec<f64>>,
    learned: Marginals,
    exact_edges: Option<PairMatrix>,
    /// The exact ones, where all graphs are listed.
    exact: Option<Marginals>,
    top: Vec<(usize, f64)>,
    objects: Option<Panel>,
    pub(crate) log_z_true: Option<f64>,
}

/// The exact edges, where there aren't too many nodes to sum over.
pub(crate) fn exact_edges(env: &BayesianStructure, reward: &DagReward<Scores>) -> Result<Option<EdgeMarginals>> {
    if env.n_nodes() > MAX_SUMMED_NODES {
        return Ok(None);
    }
    match EdgeMarginals::sum(env, reward) {
        // Too much is lost to cancellation: there is nothing exact to compare with.
        Err(Error::Contract { .. }) => Ok(None),
        summed => summed.map(Some),
    }
}

impl<'a> Findings<'a> {
    /// Of all graphs with their probabilities.
    pub(crate) fn listed(
        problem: &'a Problem,
        exact: &Exact<GraphEnv<BayesianStructure>>,
        probs: Vec<f64>,
    ) -> Result<Self> {
        let states = exact.graph.states().clone();
        let of_target = Marginals::of(&states, Some(&exact.target.probs))?;
        Ok(Self {
            problem,
            learned: Marginals::of(&states, Some(&probs))?,
            exact_edges: Some(of_target.edge.clone()),
            exact: Some(of_target),
            top: most_probable(&states, Some(&probs), SHOWN)?,
            objects: Some(exact.panel("graphs", &probs)),
            log_z_true: Some(exact.target.log_z),
            states,
            probs: Some(probs),
        })
    }

    /// Of samples, with the exact edges where these are known.
    pub(crate) fn sampled(problem: &'a Problem, summed: Option<EdgeMarginals>, states: GraphStates) -> Result<Self> {
        Ok(Self {
            problem,
            learned: Marginals::of(&states, None)?,
            log_z_true: summed.as_ref().map(|summed| summed.log_z),
            exact_edges: summed.map(|summed| summed.edge),
            exact: None,
            top: most_probable(&states, None, SHOWN)?,
            objects: None,
            states,
            probs: None,
        })
    }

    /// The task's own keys: those that can't be known are null.
    pub(crate) fn figures(&self) -> Result<Vec<(&'static str, Value)>> {
        let compare = |learned: &PairMatrix, exact: Option<&PairMatrix>| -> Result<(Option<f64>, Option<f64>)> {
            let Some(exact) = exact else { return Ok((None, None)) };
            Ok((learned.pearson(exact)?, Some(learned.rmse(exact)?)))
        };
        let (learned, exact) = (&self.learned, self.exact.as_ref());
        let edge = compare(&learned.edge, self.exact_edges.as_ref())?;
        let path = compare(&learned.path, exact.map(|exact| &exact.path))?;
        let blanket = compare(&learned.markov_blanket, exact.map(|exact| &exact.markov_blanket))?;
        let truth = self.problem.truth.as_ref().filter(|truth| !truth.is_empty());
        let found = truth.map(|truth| learned.edge.detection(truth)).transpose()?;
        let best = truth.zip(self.exact_edges.as_ref()).map(|(truth, edges)| edges.detection(truth)).transpose()?;
        let shd = truth.map(|truth| expected_shd(&self.states, self.probs.as_deref(), truth)).transpose()?;
        Ok(vec![
            ("edge_pearson", json!(edge.0)),
            ("edge_rmse", json!(edge.1)),
            ("path_pearson", json!(path.0)),
            ("path_rmse", json!(path.1)),
            ("markov_blanket_pearson", json!(blanket.0)),
            ("markov_blanket_rmse", json!(blanket.1)),
            ("expected_edges", json!(learned.expected_edges)),
            ("true_edges", json!(self.problem.truth.as_ref().map(Vec::len))),
            ("expected_shd", json!(shd)),
            ("auroc", json!(found.map(|found| found.auroc))),
            ("auprc", json!(found.map(|found| found.auprc))),
            ("auroc_exact", json!(best.map(|best| best.auroc))),
            ("auprc_exact", json!(best.map(|best| best.auprc))),
        ])
    }

    /// Edge marginals as heat maps, and learned against exact ones.
    pub(crate) fn panels(&self) -> Vec<Panel> {
        let n = self.problem.names.len();
        // Rows from the top, as a matrix is written: sources down, targets to the right.
        let names = &self.problem.names;
        let map = |title: &str, edges: &PairMatrix| {
            Panel::heat_map(title, n, edges.values().chunks(n).rev().flatten().copied(), 1.0)
                .labels("to", "from")
                .colour_label("probability")
                .names(names.iter().rev().cloned(), names.iter().cloned())
        };
        let mut panels = vec![map(&format!("edges, {}", self.origin()), &self.learned.edge)];
        let mut against = |title: &str, exact: &PairMatrix, learned: &PairMatrix| {
            panels.push(Panel::learned_against_target(
                title,
                exact.off_diagonal().into_iter().zip(learned.off_diagonal()),
            ));
        };
        if let Some(exact) = &self.exact_edges {
            against("marginals of edges", exact, &self.learned.edge);
        }
        if let Some(exact) = &self.exact {
            against("marginals of paths", &exact.path, &self.learned.path);
            against("marginals of Markov blankets", &exact.markov_blanket, &self.learned.markov_blanket);
        }
        panels.extend(self.exact_edges.as_ref().map(|exact| map("edges, exact", exact)));
        panels.extend(self.objects.clone());
        panels
    }

    /// Writes the edge marginals as a table, and draws the most probable graphs.
    pub(crate) fn write(&self, common: &Common) -> Result<()> {
        if let Some(path) = common.picture("edge_marginals.csv") {
            self.learned.edge.write_csv(path, &self.problem.names)?;
        }
        if self.problem.names.len() > MOST_DRAWN_NODES {
            return Ok(());
        }
        let rows: Vec<usize> = self.top.iter().map(|(row, _)| *row).collect();
        let graphs = self.states.select(&rows);
        let names = NodeLabels::Names(self.problem.names.clone());
        let title = match self.probs {
            Some(_) => "most probable graphs",
            None => "most frequent graphs",
        };
        let mut sheet = GraphSheet::new(title).layout(Layout::Circle).labels(names).cell_size(260.0);
        for (graph, &(_, p)) in graphs.into_graphs().into_iter().zip(&self.top) {
            let edges = format!("{} edges", graph.n_edges());
            sheet = sheet.cell(graph, [self.probability(p), edges]);
        }
        draw_sheet(common, &sheet)
    }

    /// What the learned figures are.
    fn origin(&self) -> String {
        match &self.probs {
            Some(_) => "learned".into(),
            None => format!("shares of {} samples", self.states.len()),
        }
    }

    /// The probability of a graph, or how many samples it is.
    fn probability(&self, p: f64) -> String {
        match &self.probs {
            Some(_) => format!("p = {p:.4}"),
            None => format!("{:.0} of {} samples", p * self.states.len() as f64, self.states.len()),
        }
    }

    /// Prints the edge marginals, the exact ones beside them where they are known, and the most probable graphs, for people.
    pub(crate) fn print(&self) {
        let names = &self.problem.names;
        eprintln!("{}", table_of_edges(&format!("P(edge), {}", self.origin()), names, &self.learned.edge));
        if let Some(exact) = &self.exact_edges {
            eprintln!("{}", table_of_edges("P(edge), exact", names, exact));
        }
        let mut graphs = Table::new(["probability", "edges"]);
        for &(row, p) in &self.top {
            let edge = |(a, b): (u32, u32)| format!("{} -> {}", names[a as usize], names[b as usize]);
            let edges: Vec<String> = self.states.graphs()[row].edges().map(edge).collect();
            graphs.push([self.probability(p).into(), edges.join(", ").into()]);
        }
        eprintln!("{graphs}");
    }
}

/// A row for each source, a column for each target.
fn table_of_edges(title: &str, names: &[String], edges: &PairMatrix) -> Table {
    let mut table = Table::new(std::iter::once(title).chain(names.iter().map(String::as_str)));
    for (a, name) in names.iter().enumerate() {
        let cell = |b: usize| if a == b { Cell::Missing } else { Cell::Number(edges.get(a, b)) };
        table.push(std::iter::once(name.as_str().into()).chain((0..names.len()).map(cell)));
    }
    table
}
