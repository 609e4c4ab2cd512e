//! Scores of structures of Bayesian networks, and probabilities of their edges, for the Python module
//! `gfn_rs._structures`.

use gfn::env::Reward;
use gfn::graph::GraphStates;
use gfn::{Error, Result, Rng};
use gfn_dags::{
    AdjacencyFeatures, Bde, BdeConfig, Bge, BgeConfig, CachedScores, CellPrior, ContinuousData, DagReward,
    DiscreteData, EdgeComparison, EdgeMarginals, LinearGaussianBic, LocalScore, Marginals, NodeSet,
    OrderSamples, PairMatrix, StructurePrior, acyclic, cpdag, cpdags, held_out_log_likelihoods,
    log_model_average,
};
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;
use serde::Deserialize;

use crate::border::{Border, StructureBorder};
use crate::env::Env;
use crate::errors::Outcome;
use crate::inside::{Inside, prepare_threads};
use crate::kinds::{ByKind, GraphDetails, Space};
use crate::settings::Settings;
use crate::states::{Array, table};

/// The settings of a `StructureReward`: its data, its score and its prior.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StructureSpec {
    score: Score,
    /// The names of the variables.
    pub(crate) names: Vec<String>,
    /// The variables that an experiment fixed in each row, if there were experiments.
    interventions: Option<Vec<Vec<usize>>>,
    prior: StructurePrior,
}

/// A score of the structures of Bayesian networks, with its data and settings.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Score {
    Bge {
        values: Vec<f64>,
        standardise: bool,
        alpha_mu: f64,
        alpha_w: Option<f64>,
        nu: Option<Vec<f64>>,
        allow_few_observations: bool,
    },
    Bic {
        values: Vec<f64>,
        standardise: bool,
    },
    Bde {
        labels: Vec<Vec<String>>,
        cells: Vec<u16>,
        equivalent_sample_size: f64,
        level_probs: Option<Vec<Vec<f64>>>,
        allow_few_observations: bool,
    },
}

impl Score {
    fn build(self, names: Vec<String>, targets: Option<Vec<NodeSet>>) -> Result<Box<dyn LocalScore>> {
        let numbers = |values, standardise, targets: Option<Vec<NodeSet>>| {
            let data = ContinuousData::new(names.clone(), values)?;
            let data = if standardise { data.standardised()? } else { data };
            match targets {
                None => Ok(data),
                Some(targets) => data.with_interventions(targets),
            }
        };
        Ok(match self {
            Self::Bge { values, standardise, alpha_mu, alpha_w, nu, allow_few_observations } => {
                let config = BgeConfig { alpha_mu, alpha_w, nu, allow_few_observations };
                Box::new(Bge::new(&numbers(values, standardise, targets)?, config)?)
            }
            Self::Bic { values, standardise } => {
                Box::new(LinearGaussianBic::new(&numbers(values, standardise, targets)?)?)
            }
            Self::Bde { labels, cells, equivalent_sample_size, level_probs, allow_few_observations } => {
                let mut data = DiscreteData::labelled(names, labels, cells)?;
                if let Some(targets) = targets {
                    data = data.with_interventions(targets)?;
                }
                let cells = level_probs.map_or(CellPrior::Uniform, CellPrior::Marginals);
                let config = BdeConfig { equivalent_sample_size, cells, allow_few_observations };
                Box::new(Bde::new(data, config)?)
            }
        })
    }
}

/// The largest number of variables for which the score of each variable is computed in advance for all sets
/// of parents. With more variables there are too many sets.
const MAX_PRECOMPUTED: usize = 12;

/// The reward of a structure, relative to the structure without edges.
pub(crate) type StructureReward = DagReward<CachedScores<Box<dyn LocalScore>>>;

impl StructureSpec {
    /// Builds the reward. Only structures whose nodes have at most `max_parents` parents are scored in
    /// advance.
    pub(crate) fn reward(self, max_parents: Option<usize>) -> Result<StructureReward> {
        let n = self.names.len();
        let set_of = |nodes: Vec<usize>| nodes.into_iter().collect();
        let targets = self.interventions.map(|rows| rows.into_iter().map(set_of).collect());
        let score = self.score.build(self.names, targets)?;
        let scores = match n {
            ..=MAX_PRECOMPUTED => CachedScores::ahead(score, max_parents)?,
            _ => CachedScores::new(score),
        };
        DagReward::new(scores, self.prior)?.relative_to(&acyclic(n, &[])?)
    }
}

/// Reads adjacency matrices `[graphs, n, n]`.
fn read_graphs(n: usize, graphs: &Bound<'_, PyAny>) -> PyResult<GraphStates> {
    StructureBorder { n_nodes: n, features: AdjacencyFeatures::new(n) }.read(graphs, "graphs")
}

/// Converts a matrix to a numpy array `[from, to]`.
fn to_array<'py>(py: Python<'py>, pairs: &PairMatrix) -> PyResult<Bound<'py, PyAny>> {
    table(py, pairs.values().to_vec(), pairs.n_nodes())
}

/// Reads a numpy array `[from, to]`.
fn to_pairs(values: &PyReadonlyArray2<'_, f64>) -> PairMatrix {
    let values = values.as_array();
    let mut out = PairMatrix::zeros(values.nrows());
    for ((source, target), &value) in values.indexed_iter() {
        out.set(source, target, value);
    }
    out
}

/// The reward of a `gfn_rs.StructureReward`, which a call of the reward computes.
#[pyclass(frozen, module = "gfn_rs._gfn")]
pub(crate) struct StructureScores {
    reward: StructureReward,
    /// The names of the variables.
    names: Vec<String>,
}

#[pymethods]
impl StructureScores {
    #[new]
    fn new(py: Python<'_>, settings: Settings<StructureSpec>) -> Outcome<Self> {
        let _inside = Inside::enter(py)?;
        prepare_threads();
        let names = settings.0.names.clone();
        Ok(Self { reward: py.detach(|| settings.0.reward(None))?, names })
    }

    /// Returns log R of each graph.
    fn log_rewards(&self, py: Python<'_>, graphs: &Bound<'_, PyAny>) -> Outcome<Array<f64>> {
        let graphs = read_graphs(self.reward.score().n_nodes(), graphs)?;
        let _inside = Inside::enter(py)?;
        Ok(Array(py.detach(|| self.reward.log_reward(&graphs, None))?))
    }

    /// Returns the log-likelihood of held-out data under each graph, and the log-likelihood under the model
    /// average. The scores `everything` are of this object's data and the held-out data together.
    fn held_out(
        &self,
        py: Python<'_>,
        everything: &Self,
        graphs: &Bound<'_, PyAny>,
        weights: Option<Vec<f64>>,
        offset: f64,
    ) -> Outcome<(Array<f64>, f64)> {
        let graphs = read_graphs(self.reward.score().n_nodes(), graphs)?;
        let _inside = Inside::enter(py)?;
        let (values, average) = py.detach(|| {
            let mut values =
                held_out_log_likelihoods(&graphs, self.reward.score(), everything.reward.score())?;
            for value in &mut values {
                *value += offset;
            }
            let average = log_model_average(&graphs, weights.as_deref(), &values)?;
            Ok::<_, Error>((values, average))
        })?;
        Ok((Array(values), average))
    }

    /// Draws graphs from several Markov chains over orders of the variables. Returns the graphs, chain by
    /// chain, whether they are corrected for the number of orders that each graph fits, and the effective
    /// number of each chain's candidates.
    fn order_samples<'py>(
        &self,
        py: Python<'py>,
        env: &Env,
        chains: usize,
        samples: usize,
        thin: usize,
        seed: u64,
    ) -> PyResult<(Bound<'py, PyAny>, bool, Vec<f64>)> {
        let found = env.with_space(py, |space| match space {
            ByKind::Graphs(Space { details: GraphDetails::Structures(named), .. }) => {
                named.check_columns(&self.names)?;
                let rng = &mut Rng::seeded(seed);
                OrderSamples::draw(&named.structures, &self.reward, chains, samples, thin, rng)
            }
            _ => Err(Error::config("the environment", "of other objects", "a BayesianStructure")),
        })?;
        let n_nodes = self.names.len();
        let border = StructureBorder { n_nodes, features: AdjacencyFeatures::new(n_nodes) };
        Ok((border.show(py, &found.pooled())?, found.is_corrected, found.effective_samples))
    }

    /// Sums the probability of each edge over all structures of an environment. Returns these probabilities
    /// and log Z.
    fn edge_marginals<'py>(&self, py: Python<'py>, env: &Env) -> PyResult<(Bound<'py, PyAny>, f64)> {
        let found = env.with_space(py, |space| match space {
            ByKind::Graphs(Space { details: GraphDetails::Structures(named), .. }) => {
                named.check_columns(&self.names)?;
                EdgeMarginals::sum(&named.structures, &self.reward)
            }
            _ => Err(Error::config("the environment", "of other objects", "a BayesianStructure")),
        })?;
        Ok((to_array(py, &found.edge)?, found.log_z))
    }
}

/// The marginals of edges, paths and Markov blankets, and the expected number of edges.
type PyMarginals<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>, f64);

/// Returns the marginals of graphs with `n` nodes.
#[pyfunction]
pub(crate) fn structure_marginals<'py>(
    py: Python<'py>,
    n: usize,
    graphs: &Bound<'py, PyAny>,
    weights: Option<Vec<f64>>,
) -> Outcome<PyMarginals<'py>> {
    let graphs = read_graphs(n, graphs)?;
    let _inside = Inside::enter(py)?;
    let found = py.detach(|| Marginals::from_graphs(&graphs, weights.as_deref()))?;
    let matrix = |pairs| to_array(py, pairs);
    Ok((matrix(&found.edge)?, matrix(&found.path)?, matrix(&found.markov_blanket)?, found.expected_edges))
}

/// The expected structural Hamming distance and F1 score, the Brier score, and both areas, if these exist.
type PyComparison = (f64, f64, f64, Option<f64>, Option<f64>);

/// Compares graphs with `n` nodes with the edges of a known graph; with `classes` their CPDAGs with the CPDAG
/// of the known graph.
#[pyfunction]
pub(crate) fn compare_structures(
    py: Python<'_>,
    n: usize,
    graphs: &Bound<'_, PyAny>,
    weights: Option<Vec<f64>>,
    truth: Vec<(u32, u32)>,
    classes: bool,
) -> Outcome<PyComparison> {
    let graphs = read_graphs(n, graphs)?;
    let _inside = Inside::enter(py)?;
    let found = py.detach(|| {
        if !classes {
            return EdgeComparison::new(&graphs, weights.as_deref(), &truth);
        }
        let known: Vec<(u32, u32)> = cpdag(&acyclic(n, &truth)?)?.edges().collect();
        EdgeComparison::new(&cpdags(&graphs)?, weights.as_deref(), &known)
    })?;
    let areas = found.detection;
    let auroc = areas.map(|areas| areas.auroc);
    let auprc = areas.map(|areas| areas.auprc);
    Ok((found.expected_shd, found.expected_f1, found.brier, auroc, auprc))
}

/// Returns the areas under the ROC curve and under the precision-recall curve.
#[pyfunction]
pub(crate) fn detect_edges(edges: PyReadonlyArray2<'_, f64>, truth: Vec<(u32, u32)>) -> Outcome<(f64, f64)> {
    let found = to_pairs(&edges).detection(&truth)?;
    Ok((found.auroc, found.auprc))
}

/// Returns the lower and the upper ends of the intervals of shares of samples.
#[pyfunction]
pub(crate) fn edge_intervals<'py>(
    py: Python<'py>,
    edges: PyReadonlyArray2<'py, f64>,
    samples: usize,
) -> Outcome<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let (low, high) = to_pairs(&edges).intervals(samples)?;
    Ok((to_array(py, &low)?, to_array(py, &high)?))
}

/// Returns the lower and the upper ends of the intervals of edge probabilities from independent runs of
/// `samples` samples.
#[pyfunction]
pub(crate) fn edge_intervals_between<'py>(
    py: Python<'py>,
    runs: Vec<PyReadonlyArray2<'py, f64>>,
    samples: usize,
) -> Outcome<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let runs: Vec<PairMatrix> = runs.iter().map(to_pairs).collect();
    let (low, high) = PairMatrix::intervals_between(&runs, samples)?;
    Ok((to_array(py, &low)?, to_array(py, &high)?))
}

/// Returns the probable edges in the DOT language.
#[pyfunction]
pub(crate) fn edges_to_dot(
    edges: PyReadonlyArray2<'_, f64>,
    names: Vec<String>,
    threshold: f64,
) -> Outcome<String> {
    Ok(to_pairs(&edges).to_dot(&names, threshold)?)
}
