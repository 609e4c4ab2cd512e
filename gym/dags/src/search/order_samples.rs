use gfn::env::Rows;
use gfn::graph::GraphStates;
use gfn::{Error, Result, Rng};

use super::{OrderChain, order_weights};
use crate::{BayesianStructure, DagReward, LocalScore, Marginals, PairMatrix};

/// The number of graphs that a chain draws for each sample. Weights of graphs of 20 nodes differ so much that
/// few graphs count, so there must be many to choose from.
const CANDIDATES: usize = 10;

/// Graphs from independent Markov chains over orders of the nodes ([`OrderChain`]).
///
/// ```
/// use gfn::Rng;
/// use gfn_dags::*;
/// let rows = [[0.5, 1.0, -0.2], [-1.0, -0.5, 0.3], [0.2, 0.8, 1.1], [1.5, 0.1, -0.7], [-0.3, 0.6, 0.4]];
/// let bge = Bge::new(&ContinuousData::from_rows(&rows)?, BgeConfig::default())?;
/// let reward = DagReward::new(CachedScores::new(bge), StructurePrior::Uniform)?;
/// let env = BayesianStructure::new(StructureConfig::new(3))?;
/// let found = OrderSamples::draw(&env, &reward, 4, 1_000, 5, &mut Rng::seeded(0))?;
/// let (low, high) = found.intervals()?;
/// let exact = EdgeMarginals::sum(&env, &reward)?.edge;
/// assert!(found.is_corrected && low.get(0, 1) < exact.get(0, 1) && exact.get(0, 1) < high.get(0, 1));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct OrderSamples {
    /// The graphs of each chain.
    pub chains: Vec<GraphStates>,
    /// `true` if the graphs are samples of the posterior; `false` if a graph counts once for each order that
    /// it fits, because these orders are too many to count.
    pub is_corrected: bool,
    /// The effective number of each chain's candidates, ten per sample, after their weights: (sum w)^2 /
    /// sum w^2. If this number is far below the number of samples, the samples are copies of a few graphs,
    /// and longer chains are needed. Without correction this is the number of candidates.
    pub effective_samples: Vec<f64>,
}

impl OrderSamples {
    /// Draws `samples` graphs from each of several chains, with `thin` steps per sample. A quarter of as many
    /// steps comes first. Each chain draws ten graphs per sample. If the orders of all graphs can be counted,
    /// the samples are drawn among these graphs in proportion to their [`order_weights`], otherwise evenly.
    ///
    /// # Errors
    /// [`Error::Config`] for 0 chains or 0 samples; errors of [`OrderChain::new`].
    pub fn draw<S: LocalScore>(
        env: &BayesianStructure,
        reward: &DagReward<S>,
        chains: usize,
        samples: usize,
        thin: usize,
        rng: &mut Rng,
    ) -> Result<Self> {
        if chains == 0 || samples == 0 {
            let got = format!("{chains} chains of {samples} samples");
            return Err(Error::config("samples of chains over orders", got, "at least 1 of both"));
        }
        let mut chain = OrderChain::new(env, reward, rng)?;
        let mut graphs: Vec<GraphStates> = Vec::with_capacity(chains);
        for _ in 0..chains {
            chain.restart(rng);
            graphs.push(chain.sample(samples * CANDIDATES, thin.div_ceil(CANDIDATES), rng)?.into());
        }
        let weights = graphs.iter().map(order_weights).collect::<Result<Vec<_>>>()?;
        let weights: Option<Vec<Vec<f64>>> = weights.into_iter().collect();
        let even = vec![1.0; samples * CANDIDATES];
        let mut effective_samples = Vec::with_capacity(chains);
        for (chain, graphs) in graphs.iter_mut().enumerate() {
            let weights = weights.as_ref().map_or(&even, |weights| &weights[chain]);
            let squares: f64 = weights.iter().map(|weight| weight * weight).sum();
            effective_samples.push(weights.iter().sum::<f64>().powi(2) / squares);
            *graphs = graphs.select(&resample(weights, samples, rng));
        }
        Ok(Self { chains: graphs, is_corrected: weights.is_some(), effective_samples })
    }

    /// Returns the graphs of all chains.
    #[must_use]
    pub fn pooled(&self) -> GraphStates {
        let all = self.chains.iter().flat_map(|graphs| graphs.graphs().iter().cloned());
        all.collect::<Vec<_>>().into()
    }

    /// Computes a 95 % confidence interval of each edge probability from the differences between the chains
    /// ([`PairMatrix::intervals_between`]), at least as wide as that of the effective number of samples: the
    /// mean over the chains of [`effective_samples`](Self::effective_samples), each at most the number of
    /// samples. This number doesn't count the correlation of successive graphs; the differences between
    /// chains do. Returns the lower ends, then the upper ends.
    ///
    /// # Errors
    /// [`Error::Config`] for fewer than two chains.
    pub fn intervals(&self) -> Result<(PairMatrix, PairMatrix)> {
        let edges = |graphs: &GraphStates| Ok(Marginals::from_graphs(graphs, None)?.edge);
        let runs = self.chains.iter().map(edges).collect::<Result<Vec<_>>>()?;
        let each = self.chains[0].len() as f64;
        let effective: f64 = self.effective_samples.iter().map(|effective| effective.min(each)).sum();
        PairMatrix::intervals_between(&runs, (effective / runs.len() as f64).max(1.0) as usize)
    }
}

/// Draws `n` indices in proportion to the weights, by systematic resampling: evenly spaced points on the line
/// of all weights choose the indices.
fn resample(weights: &[f64], n: usize, rng: &mut Rng) -> Vec<usize> {
    let spacing = weights.iter().sum::<f64>() / n as f64;
    let mut point = spacing * rng.uniform();
    let mut sum = 0.0;
    let mut rows = Vec::with_capacity(n);
    for (row, weight) in weights.iter().enumerate() {
        sum += weight;
        while point < sum && rows.len() < n {
            rows.push(row);
            point += spacing;
        }
    }
    // Rounding may leave out the last point.
    rows.resize(n, weights.len() - 1);
    rows
}
