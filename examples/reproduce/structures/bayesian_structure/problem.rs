//! The problem: data, a score of parents, and the edges that are known.

use std::sync::Arc;

use clap::ValueEnum;
use gfn::graph::GraphEnv;
use gfn::{Error, Result, Rng};
use gfn_dags::{
    Bde, BdeConfig, Bge, BgeConfig, CachedScores, ContinuousData, DagReward, DiscreteData, GraphLaw, LinearGaussianBic,
    LocalScore, Sem, SemConfig, StructurePrior, named_edges,
};

use super::Args;
use crate::flags::words;

/// Scores by name.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ScoreName {
    /// Gaussian, with the parameters integrated out
    Bge,
    /// Linear Gaussian, by the Bayesian information criterion
    Bic,
    /// Discrete, with the parameters integrated out
    Bde,
}

/// Scores that are remembered, of whatever kind, and shared between the trainer and the exact posterior.
pub(crate) type Scores = Arc<CachedScores<Box<dyn LocalScore>>>;

/// Variables, a score of graphs on them, and known edges.
pub(crate) struct Problem {
    pub(crate) names: Vec<String>,
    pub(crate) title: String,
    /// What checkpoints call it.
    pub(crate) description: String,
    pub(crate) truth: Option<Vec<(u32, u32)>>,
    scores: Scores,
}

/// Nodes up to which all scores are computed before training.
const AHEAD: usize = 12;
/// Whole numbers of a variable, up to which they are its classes.
const MAX_CODES: usize = 20;
/// Classes that numbers are cut into for the discrete score.
const LEVELS: usize = 3;

impl Problem {
    pub(crate) fn of(args: &Args, rng: &mut Rng) -> Result<Self> {
        let (data, truth) = match &args.data {
            None => simulated(args, rng)?,
            Some(path) => {
                let column = args.interventions.as_deref();
                let numbers = match column {
                    None => ContinuousData::read(path),
                    Some(column) => ContinuousData::read_with_interventions(path, column),
                };
                if args.score == ScoreName::Bde {
                    let classes = match column {
                        None => DiscreteData::read(path),
                        Some(column) => DiscreteData::read_with_interventions(path, column),
                    };
                    match (classes, &numbers) {
                        (Ok(classes), _) if are_classes(&classes) => return Self::of_classes(args, classes),
                        // What is wrong with the file, be it one of words or of numbers.
                        (Err(error), Err(_)) => return Err(error),
                        _ => {}
                    }
                }
                let mut data = numbers?;
                if args.log {
                    data = data.map(f64::ln)?;
                }
                let truth = known_edges(args, data.names())?;
                (data.standardised()?, truth)
            }
        };
        let score: Box<dyn LocalScore> = match args.score {
            ScoreName::Bge => Box::new(Bge::new(&data, BgeConfig::default())?),
            ScoreName::Bic => Box::new(LinearGaussianBic::new(&data)?),
            ScoreName::Bde => Box::new(Bde::new(data.discretised(LEVELS)?, BdeConfig::default())?),
        };
        Self::new(args, data.names().to_vec(), data.n_rows(), truth, score)
    }

    fn of_classes(args: &Args, data: DiscreteData) -> Result<Self> {
        let (names, rows) = (data.names().to_vec(), data.n_rows());
        let truth = known_edges(args, &names)?;
        Self::new(args, names, rows, truth, Box::new(Bde::new(data, BdeConfig::default())?))
    }

    fn new(
        args: &Args,
        names: Vec<String>,
        rows: usize,
        truth: Option<Vec<(u32, u32)>>,
        score: Box<dyn LocalScore>,
    ) -> Result<Self> {
        let scores =
            if names.len() <= AHEAD { CachedScores::ahead(score, args.max_parents)? } else { CachedScores::new(score) };
        let title = format!("{} variables, {rows} observations, score {}", names.len(), words(&args.score));
        let description = format!("{} variables, {rows} observations, {:?}", names.len(), args.score);
        Ok(Self { names, title, description, truth, scores: Arc::new(scores) })
    }

    /// The posterior over the graphs of an environment, relative to its initial one.
    pub(crate) fn reward(&self, env: &GraphEnv) -> Result<DagReward<Scores>> {
        DagReward::new(self.scores.clone(), StructurePrior::Uniform)?.relative_to(&env.initial_graphs()[0])
    }
}

/// `true` if each variable is one of words, or has a few labels whose numbers are whole. A word among numbers that vary is a slip.
fn are_classes(data: &DiscreteData) -> bool {
    (0..data.n_variables()).all(|variable| {
        let label = |row: usize| data.label(variable, usize::from(data.row(row)[variable]));
        let numbers = (0..data.n_rows()).filter_map(|row| label(row).parse::<f64>().ok().filter(|x| x.is_finite()));
        let coded = data.n_values()[variable] <= MAX_CODES && numbers.clone().all(|x| x.fract() == 0.0);
        let n_numbers = numbers.count();
        coded || 2 * n_numbers <= data.n_rows()
    })
}

/// Data, and the edges that are known.
type Known = (ContinuousData, Option<Vec<(u32, u32)>>);

/// Linear Gaussian data of an Erdos-Renyi graph, as torchgfn and jax-dag-gflownet simulate them.
fn simulated(args: &Args, rng: &mut Rng) -> Result<Known> {
    let truth = GraphLaw::ErdosRenyi { edges: args.edges }.draw(args.nodes, rng)?;
    let edges = truth.edges().collect();
    let data = Sem::draw(truth, SemConfig::Linear, args.noise, rng)?.sample(args.samples, rng)?;
    Ok((data, Some(edges)))
}

fn known_edges(args: &Args, names: &[String]) -> Result<Option<Vec<(u32, u32)>>> {
    let Some(path) = &args.truth else { return Ok(None) };
    let file = std::fs::File::open(path).map_err(|source| Error::io(path.clone(), source))?;
    named_edges(file, names).map(Some)
}
