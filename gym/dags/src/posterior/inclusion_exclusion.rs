use gfn::{Error, Result};

use super::PairMatrix;
use super::wide::Wide;
use crate::{BayesianStructure, DagReward, LocalScore, NodeSet, StructureConfig};

/// The most nodes for which marginals are summed: 3^14 is 4.8 million.
pub const MAX_SUMMED_NODES: usize = 14;

/// The largest term, up or down: beyond, neighbouring doubles are more than a tenth apart, and say nothing of an exponential.
const MAX_TERM: f64 = 1e15;

/// Largest accepted deviation of the sum of a node's parent-set probabilities from 1.
const TOLERANCE: f64 = 1e-8;

/// Exact edge marginals and log Z of up to 14 nodes, without listing graphs: inclusion-exclusion over sinks (Tian and He 2009).
///
/// With a_j(P) the exponential of a node's score and prior, and A_j(U) their sum over parent sets P within U, the graphs on the nodes S
/// sum up to
///
/// ```text
/// H(S) = sum over nonempty T within S of (-1)^(|T| + 1) H(S - T) prod over j in T of A_j(S - T)
/// ```
///
/// T being a set of sinks, of which each graph has some. H(all) has each a_j(P) as a factor of the graphs in which P are the parents of
/// j, so its derivative there gives their posterior: the recurrence is differentiated backwards. Time is 3^n both ways (the limit of
/// Tian and He's O(n 3^n)), memory n 2^n. Summing over orders of the nodes instead would weigh each graph by its number of orders.
///
/// *Cancellation.* No term is larger than H(S), as it sums up some of the graphs, but there are 2^|S| of them with both signs: errors can
/// grow like the number of ordered partitions, 2 * 10^14 for 14 nodes, too much for doubles. Sums are therefore made of numbers of 31 digits
/// and any exponent, and the posterior of each node's parent sets is checked to be a distribution.
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
    /// The probability of each edge.
    pub edge: PairMatrix,
    /// log Z, as of [`ExactPosterior::log_z`](super::ExactPosterior::log_z).
    pub log_z: f64,
    /// The largest deviation of a node's parent sets from a distribution: what cancellation and rounding left.
    pub deviation: f64,
}

impl EdgeMarginals {
    /// Sums over all graphs of an environment: those with the required edges, without the forbidden ones, and of no more parents than it
    /// allows.
    ///
    /// # Errors
    /// [`Error::Config`] for more than 14 nodes; [`Error::Shape`] for rewards of other nodes; [`Error::NonFinite`] for a score that isn't
    /// finite, [`Error::Config`] for one beyond 10^15; [`Error::Contract`] if too much was lost to cancellation.
    pub fn sum<S: LocalScore>(env: &BayesianStructure, reward: &DagReward<S>) -> Result<Self> {
        let n = env.n_nodes();
        if n > MAX_SUMMED_NODES {
            let expected = "at most 14 (time grows as 3^n); take marginals of samples beyond";
            return Err(Error::config("nodes of exact edge marginals", n, expected));
        }
        if reward.score().n_nodes() != n {
            let (got, remedy) = (reward.score().n_nodes(), "give scores of one variable for each node");
            return Err(Error::shape("local scores", [n as i64], [got as i64], remedy));
        }
        Self::of_families(n, &families(env, reward)?, reward.offset())
    }

    fn of_families(n: usize, families: &[Wide], offset: f64) -> Result<Self> {
        let within = sums_within(n, families);
        let totals = totals(n, &within);
        let all = totals[totals.len() - 1];
        let derivatives = derivatives(n, &within, &totals);
        let mut edge = PairMatrix::zeros(n);
        let mut deviation = 0f64;
        for node in 0..n {
            let mut sum = 0f64;
            for parents in 0..1usize << n {
                let posterior = (families[node << n | parents] * derivatives[node << n | parents]).over(all);
                deviation = deviation.max(-posterior).max(posterior - 1.0);
                sum += posterior;
                NodeSet::of_bits(parents as u64).iter().for_each(|parent| edge.add(parent, node, posterior));
            }
            // Every graph has one parent set for each node, so their probabilities sum to 1: a check of the whole computation.
            deviation = if sum.is_nan() { f64::INFINITY } else { deviation.max((sum - 1.0).abs()) };
        }
        if deviation > TOLERANCE {
            let got = format!("it is off by {deviation:e}: too much was lost to cancellation");
            return Err(Error::contract("the posterior of each node's parent sets sums to 1", got));
        }
        Ok(Self { edge, log_z: all.ln() - offset, deviation })
    }
}

/// a_j(P) by node and the bits of P; 0 where the environment doesn't permit the parents.
fn families<S: LocalScore>(env: &BayesianStructure, reward: &DagReward<S>) -> Result<Vec<Wide>> {
    let (n, config) = (env.n_nodes(), env.config());
    let mut out = vec![Wide::ZERO; n << n];
    for node in 0..n {
        let required = StructureConfig::sources(&config.required, node);
        let forbidden = StructureConfig::sources(&config.forbidden, node).with(node);
        for parents in (0..1 << n).map(NodeSet::of_bits) {
            let few = config.max_parents.is_none_or(|most| parents.len() <= most);
            if !few || parents.minus(forbidden) != parents || !required.minus(parents).is_empty() {
                continue;
            }
            let term = reward.term(node, &parents);
            if !term.is_finite() {
                let remedy = "give a finite score of each node under each permitted set of parents";
                return Err(Error::non_finite("a local score", node, term, remedy));
            }
            if term.abs() > MAX_TERM {
                return Err(Error::config("a local score", format!("{term:e}"), "a logarithm between -1e15 and 1e15"));
            }
            out[node << n | parents.bits() as usize] = Wide::exp(term);
        }
    }
    Ok(out)
}

/// A_j(U): sums over subsets, one element at a time.
fn sums_within(n: usize, families: &[Wide]) -> Vec<Wide> {
    let mut out = families.to_vec();
    for of_node in out.chunks_exact_mut(1 << n) {
        for bit in 0..n {
            for set in (0..1usize << n).filter(|set| set >> bit & 1 == 1) {
                of_node[set] = of_node[set] + of_node[set ^ 1 << bit];
            }
        }
    }
    out
}

/// The subsets of a set of bits, ascending from none: each after its own subsets.
fn subsets(of: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(0usize), move |set| Some(set.wrapping_sub(of) & of).filter(|next| *next != 0))
}

/// The product of A_j(U) over j in T, for each T outside of U, in `products` at T.
fn fill_products(n: usize, within: &[Wide], used: usize, products: &mut [Wide]) {
    products[0] = Wide::ONE;
    for sinks in subsets(((1 << n) - 1) & !used).skip(1) {
        let node = sinks.trailing_zeros() as usize;
        products[sinks] = products[sinks & (sinks - 1)] * within[node << n | used];
    }
}

fn signed(sinks: usize, value: Wide) -> Wide {
    if sinks.count_ones() % 2 == 1 { value } else { -value }
}

/// H(S) of all S.
fn totals(n: usize, within: &[Wide]) -> Vec<Wide> {
    let all = (1usize << n) - 1;
    let mut totals = vec![Wide::ZERO; 1 << n];
    let mut product = vec![Wide::ZERO; 1 << n];
    totals[0] = Wide::ONE;
    for used in 0..all {
        // The subsets of a set have smaller numbers, so they are done.
        fill_products(n, within, used, &mut product);
        for sinks in subsets(all & !used).skip(1) {
            let term = totals[used] * product[sinks];
            totals[used | sinks] = totals[used | sinks] + signed(sinks, term);
        }
    }
    totals
}

/// The derivative of H(all) by each a_j(P): backwards through [`totals`], then through [`sums_within`].
fn derivatives(n: usize, within: &[Wide], totals: &[Wide]) -> Vec<Wide> {
    let all = (1usize << n) - 1;
    let mut of_totals = vec![Wide::ZERO; 1 << n];
    let mut product = vec![Wide::ZERO; 1 << n];
    let mut of_product = vec![Wide::ZERO; 1 << n];
    let mut out = vec![Wide::ZERO; n << n];
    of_totals[all] = Wide::ONE;
    for used in (0..all).rev() {
        let rest = all & !used;
        fill_products(n, within, used, &mut product);
        for sinks in subsets(rest).skip(1) {
            let outer = signed(sinks, of_totals[used | sinks]);
            of_totals[used] = of_totals[used] + outer * product[sinks];
            of_product[sinks] = outer * totals[used];
        }
        // From the largest down: what they leave ascends.
        for sinks in subsets(rest).map(|left| rest & !left).filter(|sinks| *sinks != 0) {
            let (node, others) = (sinks.trailing_zeros() as usize, sinks & (sinks - 1));
            let cell = node << n | used;
            out[cell] = out[cell] + of_product[sinks] * product[others];
            if others != 0 {
                of_product[others] = of_product[others] + of_product[sinks] * within[cell];
            }
        }
    }
    for of_node in out.chunks_exact_mut(1 << n) {
        for bit in 0..n {
            for set in (0..1usize << n).filter(|set| set >> bit & 1 == 0) {
                of_node[set] = of_node[set] + of_node[set | 1 << bit];
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exponentials are above 0, and of so few nodes they lose too little for the check to see; a term below 0 makes it see.
    #[test]
    fn what_cancellation_leaves_is_checked() {
        // Of two nodes: a_0 of no parent and of node 1, a_1 of no parent and of node 0. H(all) = 1 + x + y.
        let (zero, one) = (Wide::ZERO, Wide::ONE);
        let sum = |x, y| EdgeMarginals::of_families(2, &[one, zero, y, zero, one, x, zero, zero], 0.0);
        let sound = sum(one, one).unwrap();
        assert!((sound.log_z - 3f64.ln()).abs() < 1e-15 && sound.deviation < 1e-15);
        // What is left of 1 + x - 1: a half, and nothing of 10^-40.
        for log_x in [-0.69, -92.0] {
            let error = sum(Wide::exp(log_x), -one).unwrap_err();
            assert!(matches!(error, Error::Contract { .. }), "{error}");
        }
    }
}
