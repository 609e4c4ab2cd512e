//! The report on a distribution over structures: learned by a policy, or sampled by another method.

use gfn_dags::{EdgeComparison, Marginals, PairMatrix, acyclic, cpdag, cpdags, most_probable};

use super::edges::EdgeTable;
use super::problem::Problem;
use crate::prelude::*;

/// The number of graphs in the drawn picture.
const SHOWN: usize = 8;
/// The largest number of nodes for which graphs are drawn. Larger graphs are unreadable.
const MOST_DRAWN_NODES: usize = 30;
/// The smallest probability of an edge in the graph in the DOT language.
const PROBABLE: f64 = 0.5;

/// The learned distribution of graphs. The distribution is given by all graphs with their probabilities, or
/// by samples.
pub(super) struct Findings<'a> {
    pub(super) problem: &'a Problem,
    pub(super) states: GraphStates,
    pub(super) probs: Option<Vec<f64>>,
    pub(super) learned: Marginals,
    pub(super) exact_edges: Option<PairMatrix>,
    /// The exact probabilities of edges, paths and Markov blankets; `None` unless all graphs are listed.
    exact: Option<Marginals>,
    pub(super) top: Vec<(usize, f64)>,
    log_z_true: Option<f64>,
    /// The number of equal blocks of `states` that come from different Markov chains. With 1, the samples are
    /// independent.
    pub(super) chains: usize,
}

impl<'a> Findings<'a> {
    /// Builds the findings from all graphs and the policy's exact probabilities.
    pub(super) fn from_exact(problem: &'a Problem, exact: &Exact<GraphEnv>) -> Result<Self> {
        let states = exact.graph.states().clone();
        let probs = Some(exact.probs.clone());
        let target = Marginals::from_graphs(&states, Some(&exact.target.probs))?;
        let edges = (target.edge.clone(), exact.target.log_z);
        Ok(Self { exact: Some(target), ..Self::new(problem, states, probs, Some(edges))? })
    }

    /// Builds the findings from graphs. If `probs` is given, `states` are all graphs, and `probs` their
    /// probabilities. Otherwise `states` are samples. `exact_edges` holds the exact edge probabilities and
    /// log Z, if these are known.
    pub(super) fn new(
        problem: &'a Problem,
        states: GraphStates,
        probs: Option<Vec<f64>>,
        exact_edges: Option<(PairMatrix, f64)>,
    ) -> Result<Self> {
        let (exact_edges, log_z_true) = exact_edges.unzip();
        let learned = Marginals::from_graphs(&states, probs.as_deref())?;
        let top = most_probable(&states, probs.as_deref(), SHOWN)?;
        Ok(Self { problem, learned, exact_edges, exact: None, log_z_true, top, states, probs, chains: 1 })
    }

    /// Sets the number of Markov chains that the samples come from, in equal blocks.
    pub(super) fn with_chains(self, chains: usize) -> Self {
        Self { chains, ..self }
    }

    /// Returns the lower and the upper ends of the intervals of edge probabilities; `None` if these are known
    /// without samples.
    pub(super) fn intervals(&self) -> Result<Option<(PairMatrix, PairMatrix)>> {
        if self.probs.is_some() || self.states.len() == 1 {
            return Ok(None);
        }
        if self.chains == 1 {
            return self.learned.edge.intervals(self.states.len()).map(Some);
        }
        let each = self.states.len() / self.chains;
        let of_chain = |chain: usize| {
            let rows: Vec<usize> = (chain * each..(chain + 1) * each).collect();
            Ok(Marginals::from_graphs(&self.states.select(&rows), None)?.edge)
        };
        let runs = (0..self.chains).map(of_chain).collect::<Result<Vec<_>>>()?;
        PairMatrix::intervals_between(&runs).map(Some)
    }

    /// Adds entries about edges, paths and Markov blankets to the report. An entry is null if its value is
    /// unknown.
    pub(super) fn report(&self, report: &mut Report) -> Result<()> {
        let learned = &self.learned;
        let exact = self.exact.as_ref();
        for (name, learned, exact) in [
            ("edge", &learned.edge, self.exact_edges.as_ref()),
            ("path", &learned.path, exact.map(|exact| &exact.path)),
            ("markov_blanket", &learned.markov_blanket, exact.map(|exact| &exact.markov_blanket)),
        ] {
            let pearson = exact.map(|exact| learned.pearson(exact)).transpose()?.flatten();
            report.set(&format!("{name}_pearson"), pearson);
            report.set(&format!("{name}_rmse"), exact.map(|exact| learned.rmse(exact)).transpose()?);
        }
        report.extend(json!({ "expected_edges": learned.expected_edges, "log_z_true": self.log_z_true,
            "true_edges": self.problem.truth.as_ref().map(Vec::len), "local_scores": self.problem.n_scores(),
            "held_out_log_likelihood": self.problem.held_out(&self.states, self.probs.as_deref())? }));
        self.compare(report)?;
        report.panels.extend(self.panels());
        Ok(())
    }

    /// Adds distances from the known edges to the report, for graphs and for their CPDAGs. A consensus
    /// network with a cycle has no CPDAG, so the latter distances are null.
    fn compare(&self, report: &mut Report) -> Result<()> {
        let n = self.problem.names.len();
        let weights = self.probs.as_deref();
        let truth = self.problem.truth.as_ref().filter(|truth| !truth.is_empty());
        let class = truth.and_then(|truth| cpdag(&acyclic(n, truth).ok()?).ok());
        let class: Option<Vec<(u32, u32)>> = class.map(|class| class.edges().collect());
        let dags = truth.map(|truth| EdgeComparison::new(&self.states, weights, truth)).transpose()?;
        let classes = match &class {
            Some(class) => Some(EdgeComparison::new(&cpdags(&self.states)?, weights, class)?),
            None => None,
        };
        for (level, found) in [("", &dags), ("cpdag_", &classes)] {
            let areas = found.as_ref().and_then(|found| found.detection);
            let found = found.as_ref();
            for (name, value) in [
                ("expected_shd", found.map(|found| found.expected_shd)),
                ("expected_f1", found.map(|found| found.expected_f1)),
                ("brier", found.map(|found| found.brier)),
                ("auroc", areas.map(|areas| areas.auroc)),
                ("auprc", areas.map(|areas| areas.auprc)),
            ] {
                report.set(&format!("{level}{name}"), value);
            }
        }
        let best = truth.zip(self.exact_edges.as_ref()).map(|(truth, edges)| edges.detection(truth));
        let best = best.transpose()?;
        report.set("auroc_exact", best.map(|best| best.auroc));
        report.set("auprc_exact", best.map(|best| best.auprc));
        Ok(())
    }

    /// Returns the panels of the report: heat maps of edge probabilities, and plots of learned against exact
    /// probabilities of edges, paths and Markov blankets.
    fn panels(&self) -> Vec<Panel> {
        let n = self.problem.names.len();
        // A heat map begins with its lowest row. The rows are reversed, so that the map looks like a matrix:
        // sources run from top to bottom, and targets from left to right.
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

    /// Writes the edge probabilities as CSV, with a line for each pair of variables. `low` and `high` are the
    /// ends of the interval for the noise of sampling. Unknown numbers are empty.
    fn write_edges(&self, path: &Path) -> Result<()> {
        let wrong = |error: csv::Error| Error::file(path, error, "give a path of a file that can be written");
        let learned = &self.learned.edge;
        let (low, high) = self.intervals()?.unzip();
        let columns = [Some(learned.clone()), low, high, self.exact_edges.clone()];
        let mut table = csv::Writer::from_path(path).map_err(wrong)?;
        table.write_record(["from", "to", "learned", "low", "high", "exact"]).map_err(wrong)?;
        let names = &self.problem.names;
        for (a, from) in names.iter().enumerate() {
            for (b, to) in names.iter().enumerate().filter(|(b, _)| *b != a) {
                let number = |column: &Option<PairMatrix>| column.as_ref().map(|p| p.get(a, b).to_string());
                let numbers = columns.iter().map(|column| number(column).unwrap_or_default());
                table.write_record([from, to].into_iter().cloned().chain(numbers)).map_err(wrong)?;
            }
        }
        table.flush().map_err(|source| Error::io(path, source))
    }

    /// Writes the edge probabilities to a CSV file, draws the most probable graphs, and writes a page with
    /// all of it.
    pub(super) fn write(&self, common: &Common) -> Result<()> {
        let names = &self.problem.names;
        common.write("edge_marginals.csv", |path| self.write_edges(path))?;
        let dot = self.learned.edge.to_dot(names, PROBABLE)?;
        common.write("edges.dot", |path| {
            std::fs::write(path, &dot).map_err(|source| Error::io(path, source))
        })?;
        let sheet = self.sheet();
        if let Some(sheet) = &sheet {
            common.draw("graphs", |path| sheet.write(path))?;
        }
        common.write("report.html", |path| self.page(sheet.as_ref())?.write(path))
    }

    /// Draws the most probable graphs; `None` for graphs of too many nodes.
    fn sheet(&self) -> Option<PictureSheet> {
        if self.problem.names.len() > MOST_DRAWN_NODES {
            return None;
        }
        let rows: Vec<usize> = self.top.iter().map(|(row, _)| *row).collect();
        let graphs = self.states.select(&rows);
        let drawing = self.drawing();
        let title = match self.probs {
            Some(_) => "most probable graphs",
            None => "most frequent graphs",
        };
        let mut sheet = PictureSheet::new(title, drawing.side);
        for (graph, &(_, p)) in graphs.into_graphs().into_iter().zip(&self.top) {
            let edges = format!("{} edges", graph.n_edges());
            sheet = sheet.cell(drawing.draw(&graph), [self.probability(p), edges]);
        }
        Some(sheet)
    }

    pub(super) fn drawing(&self) -> GraphDrawing {
        let labels = NodeLabels::Names(self.problem.names.clone());
        GraphDrawing { layout: Layout::Circle, labels, side: 260.0 }
    }

    /// Returns the name of the learned probabilities in titles: `learned` if they are exact, otherwise a text
    /// with the number of samples of which they are shares.
    fn origin(&self) -> String {
        match &self.probs {
            Some(_) => "learned".into(),
            None => format!("shares of {} samples", self.states.len()),
        }
    }

    /// Returns the text for a graph's probability. If probabilities are shares of samples, the text tells how
    /// many of the samples are this graph.
    fn probability(&self, p: f64) -> String {
        match &self.probs {
            Some(_) => format!("p = {p:.4}"),
            None => format!("{:.0} of {} samples", p * self.states.len() as f64, self.states.len()),
        }
    }

    /// Prints a table of edge probabilities, and the most probable graphs.
    pub(super) fn print(&self) {
        let names = &self.problem.names;
        for &(row, p) in &self.top {
            let edge = |(a, b): (u32, u32)| format!("{} -> {}", names[a as usize], names[b as usize]);
            let edges: Vec<String> = self.states.graphs()[row].edges().map(edge).collect();
            tell(format_args!("{}: {}", self.probability(p), edges.join(", ")));
        }
        let samples = self.probs.is_none().then(|| self.states.len());
        let table =
            EdgeTable { names, samples, learned: &self.learned.edge, exact: self.exact_edges.as_ref() };
        tell(format_args!("\n{table}"));
    }
}
