//! Findings: edges, paths and Markov blankets of the learned distribution, compared with what is known.

use gfn_dags::{EdgeMarginals, Marginals, PairMatrix, expected_shd, most_probable};

use super::problem::Problem;
use crate::plot::PictureSheet;
use crate::prelude::*;

/// Graphs that are drawn.
const SHOWN: usize = 8;
/// Widest sheets that stay readable.
const MOST_DRAWN_NODES: usize = 30;

/// The learned distribution: graphs, and the probability of each unless they are samples.
pub(super) struct Findings<'a> {
    problem: &'a Problem,
    states: GraphStates,
    probs: Option<Vec<f64>>,
    learned: Marginals,
    exact_edges: Option<PairMatrix>,
    /// The exact ones, where all graphs are listed.
    exact: Option<Marginals>,
    top: Vec<(usize, f64)>,
    log_z_true: Option<f64>,
}

impl<'a> Findings<'a> {
    /// Takes all graphs with their probabilities.
    pub(super) fn listed(problem: &'a Problem, exact: &Exact<GraphEnv>) -> Result<Self> {
        let (states, probs) = (exact.graph.states().clone(), exact.probs.clone());
        let of_target = Marginals::of(&states, Some(&exact.target.probs))?;
        Ok(Self {
            problem,
            learned: Marginals::of(&states, Some(&probs))?,
            exact_edges: Some(of_target.edge.clone()),
            exact: Some(of_target),
            top: most_probable(&states, Some(&probs), SHOWN)?,
            log_z_true: Some(exact.target.log_z),
            states,
            probs: Some(probs),
        })
    }

    /// Takes samples, with the exact edges if these are known.
    pub(super) fn sampled(problem: &'a Problem, summed: Option<EdgeMarginals>, states: GraphStates) -> Result<Self> {
        Ok(Self {
            problem,
            learned: Marginals::of(&states, None)?,
            log_z_true: summed.as_ref().map(|summed| summed.log_z),
            exact_edges: summed.map(|summed| summed.edge),
            exact: None,
            top: most_probable(&states, None, SHOWN)?,
            states,
            probs: None,
        })
    }

    /// Reports figures of edges, paths and blankets: those that can't be known are null.
    pub(super) fn report(&self, report: &mut Report) -> Result<()> {
        let (learned, exact) = (&self.learned, self.exact.as_ref());
        for (name, learned, exact) in [
            ("edge", &learned.edge, self.exact_edges.as_ref()),
            ("path", &learned.path, exact.map(|exact| &exact.path)),
            ("markov_blanket", &learned.markov_blanket, exact.map(|exact| &exact.markov_blanket)),
        ] {
            let pearson = exact.map(|exact| learned.pearson(exact)).transpose()?.flatten();
            report.set(&format!("{name}_pearson"), pearson);
            report.set(&format!("{name}_rmse"), exact.map(|exact| learned.rmse(exact)).transpose()?);
        }
        let truth = self.problem.truth.as_ref().filter(|truth| !truth.is_empty());
        let found = truth.map(|truth| learned.edge.detection(truth)).transpose()?;
        let best = truth.zip(self.exact_edges.as_ref()).map(|(truth, edges)| edges.detection(truth)).transpose()?;
        let shd = truth.map(|truth| expected_shd(&self.states, self.probs.as_deref(), truth)).transpose()?;
        report.extend(json!({ "expected_edges": learned.expected_edges, "expected_shd": shd,
            "true_edges": self.problem.truth.as_ref().map(Vec::len), "log_z_true": self.log_z_true,
            "auroc": found.map(|found| found.auroc), "auprc": found.map(|found| found.auprc),
            "auroc_exact": best.map(|best| best.auroc), "auprc_exact": best.map(|best| best.auprc) }));
        report.panels.extend(self.panels());
        Ok(())
    }

    /// Returns edge marginals as heat maps, and learned against exact ones.
    fn panels(&self) -> Vec<Panel> {
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
        panels
    }

    /// Writes the edge marginals as a table, and draws the most probable graphs.
    pub(super) fn write(&self, common: &Common) -> Result<()> {
        common.write("edge_marginals.csv", |path| self.learned.edge.write_csv(path, &self.problem.names))?;
        if self.problem.names.len() > MOST_DRAWN_NODES {
            return Ok(());
        }
        let rows: Vec<usize> = self.top.iter().map(|(row, _)| *row).collect();
        let graphs = self.states.select(&rows);
        let labels = NodeLabels::Names(self.problem.names.clone());
        let drawing = GraphDrawing { layout: Layout::Circle, labels, side: 260.0 };
        let title = match self.probs {
            Some(_) => "most probable graphs",
            None => "most frequent graphs",
        };
        let mut sheet = PictureSheet::new(title, drawing.side);
        for (graph, &(_, p)) in graphs.into_graphs().into_iter().zip(&self.top) {
            let edges = format!("{} edges", graph.n_edges());
            sheet = sheet.cell(drawing.draw(&graph), [self.probability(p), edges]);
        }
        common.draw("graphs", |path| sheet.write(path))
    }

    /// Returns the origin of the learned figures.
    fn origin(&self) -> String {
        match &self.probs {
            Some(_) => "learned".into(),
            None => format!("shares of {} samples", self.states.len()),
        }
    }

    /// Returns the probability of a graph, or its number of samples.
    fn probability(&self, p: f64) -> String {
        match &self.probs {
            Some(_) => format!("p = {p:.4}"),
            None => format!("{:.0} of {} samples", p * self.states.len() as f64, self.states.len()),
        }
    }

    /// Prints the edge marginals, the exact ones beside them where they are known, and the most probable
    /// graphs, for people.
    pub(super) fn print(&self) {
        let names = &self.problem.names;
        tell(format_args!("{}", table_of_edges(&format!("P(edge), {}", self.origin()), names, &self.learned.edge)));
        if let Some(exact) = &self.exact_edges {
            tell(format_args!("{}", table_of_edges("P(edge), exact", names, exact)));
        }
        for &(row, p) in &self.top {
            let edge = |(a, b): (u32, u32)| format!("{} -> {}", names[a as usize], names[b as usize]);
            let edges: Vec<String> = self.states.graphs()[row].edges().map(edge).collect();
            tell(format_args!("{}: {}", self.probability(p), edges.join(", ")));
        }
    }
}

/// Returns a table with a row for each source and a column for each target.
fn table_of_edges(title: &str, names: &[String], edges: &PairMatrix) -> String {
    let mut rows = vec![[title.to_owned()].into_iter().chain(names.iter().cloned()).collect()];
    for (a, name) in names.iter().enumerate() {
        let cell = |b: usize| if a == b { "-".to_owned() } else { format!("{:.4}", edges.get(a, b)) };
        rows.push([name.clone()].into_iter().chain((0..names.len()).map(cell)).collect());
    }
    table(&rows)
}
