//! The report on a distribution over structures: learned by a policy, or sampled by another method.

use gfn_dags::{EdgeComparison, Marginals, OrderSamples, PairMatrix, acyclic, cpdag, cpdags, most_probable};

use super::edges::EdgeTable;
use super::methods::{FoundGraphs, Origin};
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
    pub(super) origin: Origin,
    /// The Markov chains over orders from which the graphs come, or from whose graphs the policy learned;
    /// `None` without such chains.
    pub(super) orders: Option<OrderSamples>,
}

impl<'a> Findings<'a> {
    /// Builds the findings from all graphs and the policy's exact probabilities. `orders` are the
    /// Markov chains over orders from whose graphs the policy learned, if there are any.
    pub(super) fn from_exact(
        problem: &'a Problem,
        exact: &Exact<GraphEnv>,
        orders: Option<OrderSamples>,
    ) -> Result<Self> {
        let states = exact.graph.states().clone();
        let probs = Some(exact.probs.clone());
        let target = Marginals::from_graphs(&states, Some(&exact.target.probs))?;
        let edges = (target.edge.clone(), exact.target.log_z);
        let found = FoundGraphs { graphs: states, origin: Origin::Exact, orders };
        Ok(Self { exact: Some(target), ..Self::new(problem, found, probs, Some(edges))? })
    }

    /// Builds the findings from graphs. If `probs` is given, these are all graphs, and `probs` their
    /// probabilities. `exact_edges` holds the exact edge probabilities and log Z, if these are known.
    pub(super) fn new(
        problem: &'a Problem,
        found: FoundGraphs,
        probs: Option<Vec<f64>>,
        exact_edges: Option<(PairMatrix, f64)>,
    ) -> Result<Self> {
        let (exact_edges, log_z_true) = exact_edges.unzip();
        let FoundGraphs { graphs: states, origin, orders } = found;
        let learned = Marginals::from_graphs(&states, probs.as_deref())?;
        let top = most_probable(&states, probs.as_deref(), SHOWN)?;
        let exact = None;
        Ok(Self { problem, learned, exact_edges, exact, log_z_true, top, states, probs, origin, orders })
    }

    /// Returns the lower and the upper ends of the intervals of edge probabilities; `None` if these aren't
    /// shares of samples.
    pub(super) fn intervals(&self) -> Result<Option<(PairMatrix, PairMatrix)>> {
        let n_chains = match self.origin {
            Origin::Exact | Origin::BestGraph => return Ok(None),
            Origin::PolicySamples => return self.learned.edge.intervals(self.states.len()).map(Some),
            Origin::Chains(n_chains) => n_chains,
        };
        if let Some(orders) = &self.orders {
            return orders.intervals().map(Some);
        }
        let each = self.states.len() / n_chains;
        let of_chain = |chain: usize| {
            let rows: Vec<usize> = (chain * each..(chain + 1) * each).collect();
            Ok(Marginals::from_graphs(&self.states.select(&rows), None)?.edge)
        };
        let runs = (0..n_chains).map(of_chain).collect::<Result<Vec<_>>>()?;
        PairMatrix::intervals_between(&runs, each).map(Some)
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
            "true_edges": self.problem.truth.as_ref().map(Vec::len),
            "is_corrected": self.orders.as_ref().map(|orders| orders.is_corrected),
            "chain_effective_samples": self.orders.as_ref().map(|orders| &orders.effective_samples),
            "held_out_log_likelihood": self.problem.held_out(&self.states, self.probs.as_deref())? }));
        self.compare(report)?;
        report.panels.extend(self.panels());
        Ok(())
    }

    /// Adds distances from the known edges to the report, for graphs and for their CPDAGs. A consensus
    /// network with a cycle has no CPDAG, and with interventions the classes are finer than CPDAGs, so the
    /// latter distances are null.
    fn compare(&self, report: &mut Report) -> Result<()> {
        let n = self.problem.names.len();
        let weights = self.probs.as_deref();
        let truth = self.problem.truth.as_ref().filter(|truth| !truth.is_empty());
        let class = truth.filter(|_| !self.problem.has_interventions);
        let class = class.and_then(|truth| cpdag(&acyclic(n, truth).ok()?).ok());
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
        let mut panels = vec![map(&format!("edges, {}", self.origin_text()), &self.learned.edge)];
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
    /// ends of the interval for the noise of sampling. `is_corrected` is that of [`OrderSamples`], the same
    /// on each line. Unknown values are empty.
    fn write_edges(&self, path: &Path) -> Result<()> {
        let wrong = |error: csv::Error| Error::file(path, error, "give a path of a file that can be written");
        let learned = &self.learned.edge;
        let (low, high) = self.intervals()?.unzip();
        let columns = [Some(learned.clone()), low, high, self.exact_edges.clone()];
        let mut table = csv::Writer::from_path(path).map_err(wrong)?;
        table
            .write_record(["from", "to", "learned", "low", "high", "exact", "is_corrected"])
            .map_err(wrong)?;
        let is_corrected = self.orders.as_ref().map(|orders| orders.is_corrected.to_string());
        let is_corrected = is_corrected.unwrap_or_default();
        let names = &self.problem.names;
        for (a, from) in names.iter().enumerate() {
            for (b, to) in names.iter().enumerate().filter(|(b, _)| *b != a) {
                let number = |column: &Option<PairMatrix>| column.as_ref().map(|p| p.get(a, b).to_string());
                let mut line = vec![from.clone(), to.clone()];
                line.extend(columns.iter().map(|column| number(column).unwrap_or_default()));
                line.push(is_corrected.clone());
                table.write_record(line).map_err(wrong)?;
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
        let title = match self.origin {
            Origin::Exact => "most probable graphs",
            Origin::PolicySamples | Origin::Chains(_) => "most frequent graphs",
            Origin::BestGraph => "best graph",
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

    /// Returns the name of the learned probabilities in titles: `learned` if they are those of the policy
    /// itself, otherwise the graphs of which they are shares.
    fn origin_text(&self) -> String {
        match self.origin {
            Origin::Exact => "learned".into(),
            Origin::PolicySamples | Origin::Chains(_) => format!("shares of {} samples", self.states.len()),
            Origin::BestGraph => "best graph".into(),
        }
    }

    /// Returns the text for a graph's probability. If probabilities are shares of samples, the text tells how
    /// many of the samples are this graph.
    fn probability(&self, p: f64) -> String {
        match self.origin {
            Origin::Exact => format!("p = {p:.4}"),
            Origin::BestGraph => "best graph".into(),
            Origin::PolicySamples | Origin::Chains(_) => {
                format!("{:.0} of {} samples", p * self.states.len() as f64, self.states.len())
            }
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
        let table = EdgeTable {
            names,
            origin: &self.origin,
            n_graphs: self.states.len(),
            learned: &self.learned.edge,
            exact: self.exact_edges.as_ref(),
        };
        tell(format_args!("\n{table}"));
    }
}
