use gfn::{Error, Result};

use super::PairMatrix;
use super::sinks::ParentPosteriors;
use super::wide::Wide;
use crate::{BayesianStructure, DagReward, LocalScore, NodeSet};

/// The largest number of nodes for which [`EdgeMarginals`] are computed. The time grows as 3^n, and 3^20 is
/// 3.5 billion.
pub const MAX_SUMMED_NODES: usize = 20;

/// The largest absolute value of a node's term of the log-reward. Neighbouring doubles of this size differ by
/// more than a tenth, so the exponential of a larger term has no correct digit.
const MAX_TERM: f64 = 1e15;

/// The exact edge marginals and log Z of graphs with up to 20 nodes, computed without enumeration, by
/// inclusion-exclusion over sinks (Tian and He 2009).
///
/// Let a_j(P) be the factor that node j contributes to the reward if P are its parents. Let A_j(U) be the sum
/// of a_j(P) over the sets P within U. The sum H(S) of the rewards of all graphs on the nodes S is
///
/// ```text
/// H(S) = sum over nonempty T within S of (-1)^(|T| + 1) H(S - T) prod over j in T of A_j(S - T)
/// ```
///
/// T ranges over nonempty sets of sinks. Every graph has at least one sink. In H(all), a_j(P) is a factor of
/// the reward of each graph in which P are the parents of j, so the derivative of H(all) by a_j(P) gives the
/// posterior of P. The recurrence is therefore differentiated backwards. Both passes take time proportional
/// to 3^n, which is within Tian and He's bound O(n 3^n), and memory is n 2^n. A sum over orders of the nodes
/// isn't used, because it would weight each graph by the number of its topological orders.
///
/// *Cancellation.* Each term of this formula is itself a sum over some of the graphs, so no term is larger
/// than H(S). But there are 2^|S| terms of both signs. Errors can grow like the number of ordered partitions,
/// 3 * 10^21 for 20 nodes, which is too much for doubles. Sums therefore use numbers with 31 digits and any
/// exponent. In the end, the posterior of each node's parent sets is checked to be a distribution.
///
/// ```
/// use gfn_dags::*;
/// let rows = [[0.5, 1.0, -0.2], [-1.0, -0.5, 0.3], [0.2, 0.8, 1.1], [1.5, 0.1, -0.7], [-0.3, 0.6, 0.4]];
/// let bge = Bge::new(&ContinuousData::from_rows(&rows)?, BgeConfig::default())?;
/// let reward = DagReward::new(bge, StructurePrior::Uniform)?;
/// let env = BayesianStructure::new(StructureConfig::new(3))?;
/// let exact = EdgeMarginals::sum(&env, &reward)?;
/// assert!((exact.edge.get(0, 1) - 0.24671926705221917).abs() < 1e-10);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct EdgeMarginals {
    /// The posterior probability of each edge.
    pub edge: PairMatrix,
    /// The natural logarithm of Z, defined as in [`ExactPosterior::log_z`](super::ExactPosterior::log_z).
    pub log_z: f64,
    /// The largest deviation from 1 of the sum of a node's parent-set probabilities. It measures the error
    /// due to cancellation and rounding.
    pub deviation: f64,
}

impl EdgeMarginals {
    /// Computes the probability of each edge, and log Z, over all graphs of an environment. These are the
    /// graphs that have all required edges and no forbidden edge, and whose nodes have at most the allowed
    /// number of parents.
    ///
    /// # Errors
    /// [`Error::Config`] for more than 20 nodes; [`Error::Shape`] if the reward has another number of
    /// nodes; [`Error::NonFinite`] for a score that isn't finite, and [`Error::Config`] for a score whose
    /// absolute value exceeds 10^15; [`Error::Contract`] if cancellation lost too many digits.
    pub fn sum<S: LocalScore>(env: &BayesianStructure, reward: &DagReward<S>) -> Result<Self> {
        let n = env.n_nodes();
        if n > MAX_SUMMED_NODES {
            let expected = "at most 20, because time grows as 3^n; estimate marginals of more nodes from \
                samples";
            return Err(Error::config("nodes of exact edge marginals", n, expected));
        }
        env.check_scores(reward.score())?;
        let sums = ParentPosteriors::sum(n, &families(env, reward)?)?;
        let mut edge = PairMatrix::zeros(n);
        for (k, posterior) in sums.probs.iter().enumerate() {
            let node = k >> n;
            let parents = k & ((1 << n) - 1);
            for parent in NodeSet::from_bits(parents as u64).iter() {
                edge.add(parent, node, *posterior);
            }
        }
        Ok(Self { edge, log_z: sums.log_total - reward.offset(), deviation: sums.deviation })
    }
}

/// Returns a_j(P), the factor that node j contributes if P are its parents, indexed by node j and the bits of
/// P. The entry is 0 if the environment doesn't allow P as the parents of j.
fn families<S: LocalScore>(env: &BayesianStructure, reward: &DagReward<S>) -> Result<Vec<Wide>> {
    let n = env.n_nodes();
    let mut out = vec![Wide::ZERO; n << n];
    for node in 0..n {
        for parents in env.config().parent_sets(node) {
            let term = reward.term(node, &parents);
            if !term.is_finite() {
                let remedy = "give a finite score of each node under each permitted set of parents";
                return Err(Error::non_finite("a local score", node, term, remedy));
            }
            if term.abs() > MAX_TERM {
                return Err(Error::config(
                    "a local score",
                    format!("{term:e}"),
                    "a logarithm between -1e15 and 1e15",
                ));
            }
            out[node << n | parents.bits() as usize] = Wide::exp(term);
        }
    }
    Ok(out)
}
