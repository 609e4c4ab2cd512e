//! The problem of the tasks on Bayesian networks: data, a score of each node's parents, and known edges to
//! compare with.

use gfn_dags::{
    BayesianStructure, Bde, BdeConfig, Bge, BgeConfig, CachedScores, ContinuousData, DagReward, DiscreteData,
    GraphLaw, LinearGaussianBic, LocalScore, Sem, SemConfig, StructureConfig, StructurePrior, named_edges,
};

use crate::prelude::*;

/// The flags that define the problem.
#[derive(Args)]
pub(crate) struct ProblemArgs {
    /// Nodes of the simulated network
    #[arg(long, default_value_t = 5, conflicts_with = "data")]
    nodes: usize,
    /// Expected edges of the simulated network, drawn as an Erdos-Renyi graph
    #[arg(long, default_value_t = 5.0, conflicts_with = "data")]
    edges: f64,
    /// Observations instead of simulated ones: a CSV file with a header; numbers are standardised, for bge
    /// and bic
    #[arg(long)]
    data: Option<PathBuf>,
    /// Column of the data that names the variables which an experiment set in that row, with `;` between them
    #[arg(long, requires = "data")]
    interventions: Option<String>,
    /// Known edges, to compare with: a CSV file of causes and effects under a header
    #[arg(long, requires = "data")]
    truth: Option<PathBuf>,
    /// Take the logarithm of the data before they are standardised; for bge and bic
    #[arg(long, requires = "data")]
    log: bool,
    /// Score of a node's parents: bge and bic for numbers, bde for classes, which are words or at most twenty
    /// whole numbers (other numbers are cut into three)
    #[arg(long, value_enum, default_value = "bge")]
    pub(super) score: Score,
}

/// The scores of a node's parents.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(super) enum Score {
    /// Gaussian, with the parameters integrated out
    Bge,
    /// Linear Gaussian, by the Bayesian information criterion
    Bic,
    /// Discrete, with the parameters integrated out
    Bde,
}

/// A score of any kind, with a cache that the trainer and the exact posterior share.
pub(crate) type Scores = Arc<CachedScores<Box<dyn LocalScore>>>;

/// The variables, a score of graphs on them, and the known edges, if any.
pub(crate) struct Problem {
    pub(super) names: Vec<String>,
    pub(super) title: String,
    pub(super) truth: Option<Vec<(u32, u32)>>,
    scores: Scores,
}

/// The number of observations that are simulated.
const OBSERVATIONS: usize = 100;
/// The standard deviation of the simulated noise. Weights of edges are drawn from N(0, 1).
const NOISE: f64 = 0.1;
/// The largest number of nodes for which all scores are computed before training.
const MAX_SCORED_AHEAD: usize = 12;
/// The largest number of distinct whole numbers of a variable for which these numbers are treated as classes.
const MAX_CODES: usize = 20;
/// The number of intervals into which numbers are cut for the discrete score.
const LEVELS: usize = 3;

impl ProblemArgs {
    /// Returns a problem of simulated data with the default flags.
    pub(crate) fn simulated(nodes: usize, rng: &mut Rng) -> Result<Problem> {
        let (edges, score) = (5.0, Score::Bge);
        Self { nodes, edges, data: None, interventions: None, truth: None, log: false, score }.problem(rng)
    }

    pub(super) fn problem(&self, rng: &mut Rng) -> Result<Problem> {
        let Some(path) = &self.data else {
            // The simulation follows torchgfn and jax-dag-gflownet: linear Gaussian data of an Erdos-Renyi
            // graph.
            let truth = GraphLaw::ErdosRenyi { edges: self.edges }.draw(self.nodes, rng)?;
            let edges = truth.edges().collect();
            let data = Sem::draw(truth, SemConfig::Linear, NOISE, rng)?.sample(OBSERVATIONS, rng)?;
            return self.of_numbers(&data, Some(edges));
        };
        let column = self.interventions.as_deref();
        let numbers = match column {
            None => ContinuousData::read(path),
            Some(column) => ContinuousData::read_with_interventions(path, column),
        };
        if self.score == Score::Bde {
            let classes = match column {
                None => DiscreteData::read(path),
                Some(column) => DiscreteData::read_with_interventions(path, column),
            };
            match (classes, &numbers) {
                (Ok(classes), _) if are_classes(&classes) => {
                    let (names, rows) = (classes.names().to_vec(), classes.n_rows());
                    let truth = self.known_edges(&names)?;
                    return self.with_score(
                        names,
                        rows,
                        truth,
                        Box::new(Bde::new(classes, BdeConfig::default())?),
                    );
                }
                // The error of reading classes is returned for all files, of words and of numbers.
                (Err(error), Err(_)) => return Err(error),
                _ => {}
            }
        }
        let mut data = numbers?;
        if self.log {
            data = data.map(f64::ln)?;
        }
        let truth = self.known_edges(data.names())?;
        self.of_numbers(&data.standardised()?, truth)
    }

    fn of_numbers(&self, data: &ContinuousData, truth: Option<Vec<(u32, u32)>>) -> Result<Problem> {
        let score: Box<dyn LocalScore> = match self.score {
            Score::Bic => Box::new(LinearGaussianBic::new(data)?),
            Score::Bde => Box::new(Bde::new(data.discretised(LEVELS)?, BdeConfig::default())?),
            Score::Bge => Box::new(Bge::new(data, BgeConfig::default())?),
        };
        self.with_score(data.names().to_vec(), data.n_rows(), truth, score)
    }

    fn with_score(
        &self,
        names: Vec<String>,
        rows: usize,
        truth: Option<Vec<(u32, u32)>>,
        score: Box<dyn LocalScore>,
    ) -> Result<Problem> {
        let is_ahead = names.len() <= MAX_SCORED_AHEAD;
        let scores = if is_ahead { CachedScores::ahead(score, None)? } else { CachedScores::new(score) };
        let title = format!("{} variables, {rows} observations, score {}", names.len(), name_of(self.score));
        Ok(Problem { names, title, truth, scores: Arc::new(scores) })
    }

    fn known_edges(&self, names: &[String]) -> Result<Option<Vec<(u32, u32)>>> {
        let Some(path) = &self.truth else { return Ok(None) };
        let file = std::fs::File::open(path).map_err(|source| Error::io(path.clone(), source))?;
        named_edges(file, names).map(Some)
    }
}

impl Problem {
    /// Returns the environment of all acyclic graphs on the variables.
    pub(crate) fn env(&self) -> Result<GraphEnv> {
        Ok(BayesianStructure::new(StructureConfig::new(self.names.len()))?.into_env())
    }

    /// Returns the posterior of graphs as a reward. It is relative to the environment's initial graph.
    pub(crate) fn reward(&self, env: &GraphEnv) -> Result<DagReward<Scores>> {
        DagReward::new(self.scores.clone(), StructurePrior::Uniform)?.relative_to(&env.initial_graphs()[0])
    }
}

/// Returns `true` if each variable has words as values, or a few different whole numbers. A word in a column
/// of many different numbers is treated as a typing error.
fn are_classes(data: &DiscreteData) -> bool {
    (0..data.n_variables()).all(|variable| {
        let label = |row: usize| data.label(variable, usize::from(data.row(row)[variable]));
        let numbers =
            (0..data.n_rows()).filter_map(|row| label(row).parse::<f64>().ok().filter(|x| x.is_finite()));
        let is_coded = data.n_values()[variable] <= MAX_CODES && numbers.clone().all(|x| x.fract() == 0.0);
        is_coded || 2 * numbers.count() <= data.n_rows()
    })
}
