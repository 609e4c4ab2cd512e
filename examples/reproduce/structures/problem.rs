//! The problem that the tasks on Bayesian networks solve: data, a score of each node's parents, and known
//! edges with which results are compared.

use gfn_dags::{
    BayesianStructure, Bde, BdeConfig, Bge, BgeConfig, CachedScores, ContinuousData, DagReward, DiscreteData,
    GraphLaw, LinearGaussianBic, LocalScore, PairMatrix, Sem, SemConfig, StructureConfig, StructurePrior,
    held_out_log_likelihoods, log_model_average, most_probable, named_edges,
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
    /// Number of simulated observations
    #[arg(long, default_value_t = 100, conflicts_with = "data")]
    rows: usize,
    /// Number of observations that are set aside, and whose likelihood is reported: further simulated ones,
    /// or random rows of the file
    #[arg(long, default_value_t = 0)]
    held_out: usize,
    /// Largest number of parents of a node; no limit by default
    #[arg(long)]
    pub(super) max_parents: Option<usize>,
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
    /// CSV file with the edge probabilities that you expect: a header, then a cause, an effect and a
    /// probability on each line. The report compares them with what the data say; they have no influence on
    /// it
    #[arg(long, requires = "data")]
    belief: Option<PathBuf>,
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
    /// The edge probabilities that the user expected.
    pub(super) belief: Option<PairMatrix>,
    max_parents: Option<usize>,
    /// `true` if experiments fixed variables in some rows.
    pub(super) has_interventions: bool,
    scores: Scores,
    /// The number of observations that were set aside, and the score of all observations.
    held_out: Option<(usize, Box<dyn LocalScore>)>,
}

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
        let args = Self {
            nodes,
            edges: 5.0,
            rows: 100,
            held_out: 0,
            max_parents: None,
            data: None,
            interventions: None,
            truth: None,
            belief: None,
            log: false,
            score: Score::Bge,
        };
        args.problem(rng)
    }

    pub(super) fn problem(&self, rng: &mut Rng) -> Result<Problem> {
        let (table, truth) = match &self.data {
            Some(path) => {
                let table = self.read(path)?;
                let truth = self.known_edges(table.names())?;
                (table, truth)
            }
            None => {
                // The data are simulated as in torchgfn and jax-dag-gflownet: a linear Gaussian model on an
                // Erdos-Renyi graph.
                let truth = GraphLaw::ErdosRenyi { edges: self.edges }.draw(self.nodes, rng)?;
                let edges = truth.edges().collect();
                let model = Sem::draw(truth, SemConfig::Linear, NOISE, rng)?;
                (Table::Numbers(model.sample(self.rows + self.held_out, rng)?), Some(edges))
            }
        };
        let table = match table {
            Table::Numbers(data) if self.score == Score::Bde => Table::Classes(data.discretised(LEVELS)?),
            table => table,
        };
        let n = table.names().len();
        let mut rows: Vec<usize> = (0..table.n_rows()).collect();
        if self.held_out > 0 && self.data.is_some() {
            for i in (1..rows.len()).rev() {
                rows.swap(i, rng.below(i + 1));
            }
        }
        let Some(n_rows) = table.n_rows().checked_sub(self.held_out).filter(|rows| *rows > 0) else {
            let expected = "fewer rows than the file has, so that some are left to learn from";
            return Err(Error::config("--held-out", self.held_out, expected));
        };
        let training = table.select(&rows[..n_rows])?;
        let is_file = self.data.is_some();
        let score = training.score(self.score, is_file.then_some(&training))?;
        let held_out = match self.held_out {
            0 => None,
            rows => Some((rows, table.score(self.score, is_file.then_some(&training))?)),
        };
        let is_ahead = n <= MAX_SCORED_AHEAD;
        let scores =
            if is_ahead { CachedScores::ahead(score, self.max_parents)? } else { CachedScores::new(score) };
        let title = format!("{n} variables, {n_rows} observations, score {}", name_of(self.score));
        let names = table.names().to_vec();
        let belief = self.belief.as_deref().map(|path| read_belief(path, &names)).transpose()?;
        let max_parents = self.max_parents;
        let has_interventions = self.interventions.is_some();
        let scores = Arc::new(scores);
        Ok(Problem { names, title, truth, belief, max_parents, has_interventions, scores, held_out })
    }

    /// Reads the file of observations: as classes for the score bde if all variables are discrete, otherwise
    /// as numbers.
    fn read(&self, path: &Path) -> Result<Table> {
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
                (Ok(classes), _) if are_classes(&classes) => return Ok(Table::Classes(classes)),
                // The file can be read neither as classes nor as numbers. The score bde needs classes, so
                // only the error about classes is returned.
                (Err(error), Err(_)) => return Err(error),
                _ => {}
            }
        }
        let data = numbers?;
        Ok(Table::Numbers(if self.log { data.map(f64::ln)? } else { data }))
    }

    fn known_edges(&self, names: &[String]) -> Result<Option<Vec<(u32, u32)>>> {
        let Some(path) = &self.truth else { return Ok(None) };
        let file = std::fs::File::open(path).map_err(|source| Error::io(path.clone(), source))?;
        named_edges(file, names).map(Some)
    }
}

/// Observations of numbers or of classes.
enum Table {
    Numbers(ContinuousData),
    Classes(DiscreteData),
}

impl Table {
    fn names(&self) -> &[String] {
        match self {
            Self::Numbers(data) => data.names(),
            Self::Classes(data) => data.names(),
        }
    }

    fn n_rows(&self) -> usize {
        match self {
            Self::Numbers(data) => data.n_rows(),
            Self::Classes(data) => data.n_rows(),
        }
    }

    fn select(&self, rows: &[usize]) -> Result<Self> {
        Ok(match self {
            Self::Numbers(data) => Self::Numbers(data.select(rows)?),
            Self::Classes(data) => Self::Classes(data.select(rows)?),
        })
    }

    /// Returns the score of the observations. If `training` is given, numbers are standardised as these
    /// observations are.
    fn score(&self, score: Score, training: Option<&Self>) -> Result<Box<dyn LocalScore>> {
        let data = match self {
            Self::Classes(data) => return Ok(Box::new(Bde::new(data.clone(), BdeConfig::default())?)),
            Self::Numbers(data) => data,
        };
        let data = match training {
            Some(Self::Numbers(training)) => data.standardised_like(training)?,
            _ => data.clone(),
        };
        Ok(match score {
            Score::Bic => Box::new(LinearGaussianBic::new(&data)?),
            _ => Box::new(Bge::new(&data, BgeConfig::default())?),
        })
    }
}

impl Problem {
    /// Returns the environment of all acyclic graphs whose nodes are the variables.
    pub(crate) fn structures(&self) -> Result<BayesianStructure> {
        let config =
            StructureConfig { max_parents: self.max_parents, ..StructureConfig::new(self.names.len()) };
        BayesianStructure::new(config)
    }

    /// Returns the reward of a graph: its posterior probability divided by that of the environment's initial
    /// graph.
    pub(crate) fn reward(&self, env: &GraphEnv) -> Result<DagReward<Scores>> {
        DagReward::new(self.scores.clone(), StructurePrior::Uniform)?.relative_to(&env.initial_graphs()[0])
    }

    /// Returns the number of local scores that are cached, which is the number that were computed unless the
    /// cache is full.
    pub(super) fn n_scored(&self) -> usize {
        self.scores.len()
    }

    /// Returns a sentence about the data and the prior, for the page of the report.
    pub(super) fn provenance(&self) -> String {
        let rows = self.held_out.as_ref().map_or(0, |(rows, _)| *rows);
        let limit =
            self.max_parents.map_or(String::new(), |most| format!(" with at most {most} parents of a node"));
        format!("Prior: all acyclic graphs{limit} are equally probable. Observations set aside: {rows}.")
    }

    /// Returns the log-likelihood of an observation that was set aside, under the average of weighted graphs:
    /// the mean over these observations. Returns `None` if no observations were set aside.
    pub(super) fn held_out(&self, states: &GraphStates, weights: Option<&[f64]>) -> Result<Option<f64>> {
        let Some((rows, all)) = &self.held_out else { return Ok(None) };
        let top = most_probable(states, weights, usize::MAX)?;
        let (distinct, weights): (Vec<usize>, Vec<f64>) = top.into_iter().unzip();
        let states = states.select(&distinct);
        let values = held_out_log_likelihoods(&states, &*self.scores, all)?;
        Ok(Some(log_model_average(&states, Some(&weights), &values)? / *rows as f64))
    }
}

/// Reads the edge probabilities that the user expects. Edges that aren't listed have the probability 0.
fn read_belief(path: &Path, names: &[String]) -> Result<PairMatrix> {
    let wrong = |problem: String| {
        let remedy = "give a header, then a cause, an effect and a probability from 0 to 1 on each line";
        Error::file(path, problem, remedy)
    };
    let mut out = PairMatrix::zeros(names.len());
    let mut table = csv::Reader::from_path(path).map_err(|error| wrong(error.to_string()))?;
    for line in table.records() {
        let line = line.map_err(|error| wrong(error.to_string()))?;
        let node = |column: usize| {
            let name = line.get(column).unwrap_or_default().trim();
            let found = names.iter().position(|other| other == name);
            found.ok_or_else(|| wrong(format!("`{name}` isn't one of the variables {}", names.join(", "))))
        };
        let a = node(0)?;
        let b = node(1)?;
        let p = line.get(2).unwrap_or_default().trim();
        match p.parse::<f64>() {
            Ok(value) if (0.0..=1.0).contains(&value) && a != b => out.set(a, b, value),
            _ => return Err(wrong(format!("the edge {} -> {} with `{p}`", names[a], names[b]))),
        }
    }
    Ok(out)
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
