//! Sums of the rewards of all graphs, computed by inclusion-exclusion over the graphs' sinks, which are nodes
//! without children. [`EdgeMarginals`](super::EdgeMarginals) has the formula.

use gfn::{Error, Result};

use super::wide::Wide;

/// The largest accepted deviation of the sum of a node's parent-set probabilities from 1.
const TOLERANCE: f64 = 1e-8;

/// The posterior distribution over the parent sets of each node.
pub(super) struct ParentPosteriors {
    /// The probability of each parent set, indexed by node and by the bits of the parents.
    pub(super) probs: Vec<f64>,
    /// The natural logarithm of the sum of the rewards of all graphs.
    pub(super) log_total: f64,
    /// The largest deviation from 1, over all nodes, of the sum of the probabilities of a node's parent sets.
    pub(super) deviation: f64,
}

impl ParentPosteriors {
    /// Sums the rewards of all graphs of `n` nodes. `families` holds a_j(P), the factor that node j
    /// contributes if P are its parents, indexed by node j and the bits of P.
    ///
    /// # Errors
    /// [`Error::Contract`] if cancellation lost too many digits.
    pub(super) fn sum(n: usize, families: &[Wide]) -> Result<Self> {
        let within = sums_within(n, families);
        let totals = totals(n, &within);
        let all = totals[totals.len() - 1];
        let derivatives = derivatives(n, &within, &totals);
        let probs: Vec<f64> = families.iter().zip(&derivatives).map(|(a, d)| (*a * *d).over(all)).collect();
        let mut deviation = 0f64;
        for of_node in probs.chunks_exact(1 << n) {
            let sum: f64 = of_node.iter().sum();
            deviation = of_node.iter().fold(deviation, |most, p| most.max(-p).max(p - 1.0));
            // Every graph has one parent set for each node, so the probabilities of a node's parent sets sum
            // to 1. This sum checks the whole computation.
            deviation = if sum.is_nan() { f64::INFINITY } else { deviation.max((sum - 1.0).abs()) };
        }
        if deviation > TOLERANCE {
            let got =
                format!("the sum is off by {deviation:e}, because too many digits were lost to cancellation");
            return Err(Error::contract("the posterior of each node's parent sets sums to 1", got));
        }
        Ok(Self { probs, log_total: all.ln(), deviation })
    }
}

/// Computes A_j(U), the sum of a_j(P) over all subsets P of U. The nodes of U are added one at a time.
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

/// Iterates over the subsets of a set of bits in ascending order. Each subset therefore comes after its own
/// proper subsets.
fn subsets(of: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(0usize), move |set| Some(set.wrapping_sub(of) & of).filter(|next| *next != 0))
}

/// Computes the product of A_j(U) (see [`sums_within`]) over the nodes j in T, for each set T of nodes
/// outside of U. The product is stored in `products[T]`. `used` is U.
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

/// Computes H(S), the sum of the rewards of all graphs on the nodes S, for all sets S.
fn totals(n: usize, within: &[Wide]) -> Vec<Wide> {
    let all = (1usize << n) - 1;
    let mut totals = vec![Wide::ZERO; 1 << n];
    let mut product = vec![Wide::ZERO; 1 << n];
    totals[0] = Wide::ONE;
    for used in 0..all {
        // Sets are numbers here: bit j is 1 if node j is in the set. A proper subset is therefore a smaller
        // number than the set. The loop has visited all proper subsets of `used`, so `totals[used]` is
        // complete.
        fill_products(n, within, used, &mut product);
        for sinks in subsets(all & !used).skip(1) {
            let term = totals[used] * product[sinks];
            totals[used | sinks] = totals[used | sinks] + signed(sinks, term);
        }
    }
    totals
}

/// Computes the derivative of H(all), the sum of the rewards of all graphs, by each a_j(P), the factor of
/// node j with parents P. The computation reverses the steps of [`totals`] first, and then those of
/// [`sums_within`].
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
        // The derivative by `product[sinks]` is complete only after all sets that contain `sinks` were
        // visited. Sets are therefore visited in descending order: `left` ascends, so its complement `sinks`
        // descends.
        for sinks in subsets(rest).map(|left| rest & !left).filter(|sinks| *sinks != 0) {
            let node = sinks.trailing_zeros() as usize;
            let others = sinks & (sinks - 1);
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
