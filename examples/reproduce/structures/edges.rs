//! Exact edge probabilities, and the table that compares them with learned edge probabilities.

use std::fmt;

use gfn_dags::{BayesianStructure, DagReward, EdgeMarginals, LocalScore, PairMatrix};

use super::methods::Origin;
use crate::prelude::*;

/// Computes the posterior probability of each edge as a sum over all graphs. Prints a remark and returns
/// `None` for more than `up_to` variables, and if cancellation makes the sum too inaccurate.
pub(super) fn exact_edges<S: LocalScore>(
    env: &BayesianStructure,
    reward: &DagReward<S>,
    up_to: usize,
) -> Result<Option<EdgeMarginals>> {
    let n = env.n_nodes();
    if n > up_to {
        tell(format_args!(
            "Exact edge probabilities aren't summed: {n} variables, and --exact-up-to is {up_to}."
        ));
        return Ok(None);
    }
    match EdgeMarginals::sum(env, reward) {
        Err(error @ Error::Contract { .. }) => {
            tell(format_args!("Exact edge probabilities are unknown: {error}"));
            Ok(None)
        }
        summed => summed.map(Some),
    }
}

/// A table of the learned and exact probabilities of edges, with remarks about their accuracy.
pub(super) struct EdgeTable<'a> {
    pub(super) names: &'a [String],
    pub(super) origin: &'a Origin,
    /// The number of graphs of which the learned probabilities are shares.
    pub(super) n_graphs: usize,
    /// The learned probability of each edge.
    pub(super) learned: &'a PairMatrix,
    /// The posterior probability of each edge; `None` if it is unknown.
    pub(super) exact: Option<&'a PairMatrix>,
}

/// The smallest probability in the printed table. An edge is listed if its learned or its exact probability
/// is at least this number.
const LEAST: f64 = 0.05;
/// The largest root mean squared difference between learned and exact edge probabilities at which the learned
/// probabilities count as reliable.
const CONVERGED: f64 = 0.03;

impl fmt::Display for EdgeTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.names.len();
        let exact = |k: usize| self.exact.map(|exact| exact.values()[k]);
        let larger = |k: usize| self.learned.values()[k].max(exact(k).unwrap_or(0.0));
        let mut shown: Vec<usize> = (0..n * n).filter(|&k| k / n != k % n && larger(k) >= LEAST).collect();
        shown.sort_by(|&a, &b| larger(b).total_cmp(&larger(a)));
        writeln!(f, "learned  exact  edge")?;
        for k in shown {
            let exact = exact(k).map_or("-".to_owned(), |p| format!("{p:.2}"));
            let edge = format!("{} -> {}", self.names[k / n], self.names[k % n]);
            writeln!(f, "{:7.2}  {exact:>5}  {edge}", self.learned.values()[k])?;
        }
        writeln!(f, "\nEdges below {LEAST} aren't listed.")?;
        match self.origin {
            Origin::Exact => {
                writeln!(f, "Learned is the probability that the policy builds a graph with the edge.")?;
            }
            Origin::PolicySamples => writeln!(
                f,
                "Learned is the share of {} sampled graphs: a standard error of at most {:.3} from \
                 sampling,\nand what training has left to learn.",
                self.n_graphs,
                0.5 / (self.n_graphs as f64).sqrt()
            )?,
            Origin::Chains(chains) => {
                writeln!(f, "Learned is the share of {} graphs of {chains} Markov chains.", self.n_graphs)?;
            }
            Origin::BestGraph => {
                return write!(f, "Learned is 1 for the edges of the best graph, and no probability.");
            }
        }
        match self.exact.and_then(|exact| self.learned.rmse(exact).ok()) {
            Some(error) => {
                let much = if error > CONVERGED {
                    ", which is much: believe exact, or give more --steps"
                } else {
                    ""
                };
                write!(f, "Learned is off from exact by {error:.3} (root mean square of all pairs){much}.")
            }
            None => write!(
                f,
                "The exact probabilities are unknown. Repeat with another --seed and more --steps, and \
                 believe what stays."
            ),
        }
    }
}
