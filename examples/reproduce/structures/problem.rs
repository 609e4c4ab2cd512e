//! The problem that the tasks on Bayesian networks solve: data, a score of each node's parents, and known
//! edges with which results are compared.

use gfn_dags::{
    BayesianStructure, Bde, BdeConfig, Bge, BgeConfig, CachedScores, ContinuousData, DagReward, DiscreteData,
    GraphLaw, LinearGaussianBic, LocalScore, Sem, SemConfig, StructureConfig, StructurePrior, named_edges,
};

use crate::prelude::*;

/// The flags that define the data and the score.
#[derive(Args)]
pub(crate) struct ProblemArgs {
    /// Number of nodes of the simulated network
    #[arg(long, default_value_t = 5, conflicts_with = "data")]
    nodes: usize,
    /// Expected number of edges of the simulated network, which is an Erdos-Renyi graph
    #[arg(long, default_value_t = 5.0, conflicts_with = "data")]
    edges: f64,
    /// CSV file with a header and observations, which are used instead of simulated data. For the scores bge
    /// and bic the columns are standardised
    #[arg(long)]
    data: Option<PathBuf>,
    /// Name of the column of interventions. Each cell lists the variables that an experiment fixed in its
    /// row: names with `;` between them, or nothing
    #[arg(long, requires = "data")]
    interventions: Option<String>,
    /// CSV file with the known edges, with which learned edges are compared: a header, then a cause and an
    /// effect on each line
    #[arg(long, requires = "data")]
    truth: Option<PathBuf>,
    /// Take the logarithm of the data before they are standardised, for the scores bge and bic
    #[arg(long, requires = "data")]
    log: bool,
    /// Score of a node's parents: bge and bic for numbers, bde for classes. Classes are words, or at most
    /// twenty different whole numbers; other numbers are cut into three intervals
    #[arg(long, value_enum, default_value = "bge")]
    pub(super) score: Score,
}

/// The scores of a node's parents that `--score` accepts.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(super) enum Score {
    /// Posterior of a linear Gaussian model whose parameters are integrated out
    Bge,
    /// Bayesian information criterion of a linear Gaussian model
    Bic,
    /// Posterior of a model of discrete variables whose parameters are integrated out
    Bde,
}

/// Any score of a node's parents, with a cache. The trainer and the exact posterior share the cache.
pub(crate) type Scores = Arc<CachedScores<Box<dyn LocalScore>>>;

/// The names of the variables, the scores of their parents, and the known edges, if any.
pub(crate) struct Problem {
    pub(super) names: Vec<String>,
    pub(super) title: String,
    pub(super) truth: Option<Vec<(u32, u32)>>,
    scores: Scores,
}

/// The number of simulated observations.
const OBSERVATIONS: usize = 100;
/// The standard deviation of the noise in simulated data. The weights of edges are drawn from N(0, 1).
const NOISE: f64 = 0.1;
/// The largest number of nodes for which the scores of all sets of parents are computed before training.
const MAX_SCORED_AHEAD: usize = 12;
/// The largest number of different values with which a variable of whole numbers counts as discrete.
const MAX_CODES: usize = 20;
/// The number of intervals into which the numbers of a variable are cut for the score bde.
const LEVELS: usize = 3;

impl ProblemArgs {
    /// Simulates data for `nodes` variables, with the default values of all other flags. Returns the problem
    /// of these data.
    pub(crate) fn simulated(nodes: usize, rng: &mut Rng) -> Result<Problem> {
        let edges = 5.0;
        let score = Score::Bge;
        Self { nodes, edges, data: None, interventions: None, truth: None, log: false, score }.problem(rng)
    }

    pub(super) fn problem(&self, rng: &mut Rng) -> Result<Problem> {
        let Some(path) = &self.data else {
            // The data are simulated as in torchgfn and jax-dag-gflownet: a linear Gaussian model on an
            // Erdos-Renyi graph.
            let truth = GraphLaw::ErdosRenyi { edges: self.edges }.draw(self.nodes, rng)?;
            let edges = truth.edges().collect();
            let data = Sem::draw(truth, SemConfig::Linear, NOISE, rng)?.sample(OBSERVATIONS, rng)?;
            return self.problem_from_numbers(&data, Some(edges));
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
                    let names = classes.names().to_vec();
                    let rows = classes.n_rows();
                    let truth = self.known_edges(&names)?;
                    return self.with_score(
                        names,
                        rows,
                        truth,
                        Box::new(Bde::new(classes, BdeConfig::default())?),
                    );
                }
                // The file can be read neither as classes nor as numbers. The score bde needs classes, so
                // only the error about classes is returned.
                (Err(error), Err(_)) => return Err(error),
                _ => {}
            }
        }
        let mut data = numbers?;
        if self.log {
            data = data.map(f64::ln)?;
        }
        let truth = self.known_edges(data.names())?;
        self.problem_from_numbers(&data.standardised()?, truth)
    }

    fn problem_from_numbers(&self, data: &ContinuousData, truth: Option<Vec<(u32, u32)>>) -> Result<Problem> {
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
    /// Returns the environment of all acyclic graphs whose nodes are the variables.
    pub(crate) fn env(&self) -> Result<GraphEnv> {
        Ok(BayesianStructure::new(StructureConfig::new(self.names.len()))?.into_env())
    }

    /// Returns the reward of a graph: its posterior probability divided by that of the environment's initial
    /// graph.
    pub(crate) fn reward(&self, env: &GraphEnv) -> Result<DagReward<Scores>> {
        DagReward::new(self.scores.clone(), StructurePrior::Uniform)?.relative_to(&env.initial_graphs()[0])
    }
}

/// Returns `true` if all variables are discrete, with words or a few different whole numbers as values. A
/// word among many different numbers is treated as a typing error, so the variable isn't discrete.
fn are_classes(data: &DiscreteData) -> bool {
    (0..data.n_variables()).all(|variable| {
        let label = |row: usize| data.label(variable, usize::from(data.row(row)[variable]));
        let numbers =
            (0..data.n_rows()).filter_map(|row| label(row).parse::<f64>().ok().filter(|x| x.is_finite()));
        let is_coded = data.n_values()[variable] <= MAX_CODES && numbers.clone().all(|x| x.fract() == 0.0);
        is_coded || 2 * numbers.count() <= data.n_rows()
    })
}
