use std::collections::HashMap;

use gfn::{Error, Result};
use libm::lgamma;

use super::{LocalScore, NodeSet, check_observations, check_positive, rows_of_nodes};
use crate::data::DiscreteData;

/// The largest number of configurations of a node's parents for which an array has an entry for each
/// configuration. If there are more configurations, a map is used, which holds only those that occur in the
/// data.
const MAX_TABLE: usize = 1 << 12;

/// The distribution of a [`Bde`] score's prior observations over the cells of a node's probability table. A
/// cell belongs to a value of the node and a configuration of its parents.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum CellPrior {
    /// Every cell gets the same number of prior observations. The score is then called BDeu.
    #[default]
    Uniform,
    /// Every cell gets prior observations in proportion to its probability in a network without edges. The
    /// field has the probabilities of the values of each variable in this network. The score is then called
    /// BDe.
    Marginals(Vec<Vec<f64>>),
}

/// The Dirichlet prior of a [`Bde`] score.
#[derive(Clone, PartialEq, Debug)]
pub struct BdeConfig {
    /// The number of observations that the prior is equivalent to. It must be above 0, and is 1 by default.
    pub equivalent_sample_size: f64,
    /// The distribution of the prior observations over the cells of a node's probability table.
    pub cells: CellPrior,
    /// `true` to allow fewer observations than variables; `false` by default. A row with an intervention on
    /// a node isn't an observation of this node.
    pub allow_few_observations: bool,
}

impl Default for BdeConfig {
    /// Returns the prior that is equivalent to one observation, spread evenly over the cells.
    fn default() -> Self {
        Self { equivalent_sample_size: 1.0, cells: CellPrior::Uniform, allow_few_observations: false }
    }
}

/// The BDe score: the marginal likelihood of discrete networks under Dirichlet priors derived from one
/// equivalent sample (Heckerman, Geiger and Chickering 1995).
///
/// N_ck is the number of observations in which the node has value k and its parents have configuration c,
/// and a_ck is the prior count for the same cell. N_c and a_c are the sums of N_ck and a_ck over k:
///
/// ```text
/// score(j | P) = sum_c [ log Gamma(a_c) - log Gamma(a_c + N_c)
///                        + sum_k ( log Gamma(a_ck + N_ck) - log Gamma(a_ck) ) ]
/// ```
///
/// BDeu has `a_ck = s / (q r)` for an equivalent sample of size s, if the node has r values and its parents
/// have q configurations. Rows with an intervention on a node don't count for the score of this node
/// (Cooper and Yoo 1999).
///
/// ```
/// use gfn_dags::{Bde, BdeConfig, DiscreteData, LocalScore, NodeSet};
/// let data = DiscreteData::from_rows(&[[0, 0], [1, 1], [1, 1], [0, 0], [1, 0]])?;
/// let bde = Bde::new(data, BdeConfig::default())?;
/// let (a, b) = (NodeSet::EMPTY.with(0), NodeSet::EMPTY.with(1));
/// // The graphs 0 -> 1 and 1 -> 0 are Markov equivalent, so they have the same score.
/// let first = bde.local_score(0, &NodeSet::EMPTY) + bde.local_score(1, &a);
/// let second = bde.local_score(1, &NodeSet::EMPTY) + bde.local_score(0, &b);
/// assert!((first - second).abs() < 1e-12);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bde {
    data: DiscreteData,
    sample_size: f64,
    cells: CellPrior,
    sets: Vec<Vec<usize>>,
    set_of: Vec<usize>,
}

impl Bde {
    /// Creates the score of a data set.
    ///
    /// # Errors
    /// [`Error::Config`] for a size of the equivalent sample that isn't above 0, for marginals that don't
    /// fit the variables' values, and for fewer observations than variables (see
    /// [`BdeConfig::allow_few_observations`]).
    pub fn new(data: DiscreteData, config: BdeConfig) -> Result<Self> {
        let n = data.n_variables();
        let (sets, set_of) = rows_of_nodes(n, data.n_rows(), data.interventions());
        check_observations(&sets, n, config.allow_few_observations)?;
        let sample_size = config.equivalent_sample_size;
        check_positive("equivalent_sample_size", sample_size)?;
        if let CellPrior::Marginals(marginals) = &config.cells {
            let fits = |(probs, &values): (&Vec<f64>, &usize)| {
                probs.len() == values
                    && probs.iter().all(|p| *p > 0.0)
                    && (probs.iter().sum::<f64>() - 1.0).abs() < 1e-9
            };
            if marginals.len() != n || !marginals.iter().zip(data.n_values()).all(fits) {
                let got = format!("{marginals:?} for variables of {:?} values", data.n_values());
                let expected =
                    "for each variable, a positive probability of each of its values, with the sum 1";
                return Err(Error::config("the marginals of a BDe prior", got, expected));
            }
        }
        Ok(Self { data, sample_size, cells: config.cells, sets, set_of })
    }

    /// Counts the values of a node for each configuration of its parents that occurs in the data. Returns
    /// the counts of each configuration, together with the index of a row that has this configuration.
    fn counts(&self, node: usize, parents: &[usize]) -> Vec<(usize, Vec<f64>)> {
        let values = self.data.n_values();
        let n_configurations = parents.iter().try_fold(1usize, |q, &parent| q.checked_mul(values[parent]));
        let small = n_configurations.filter(|&q| q <= MAX_TABLE);
        let mut place_of = vec![usize::MAX; small.unwrap_or(0)];
        let mut places: HashMap<Vec<u16>, usize> = HashMap::new();
        let mut out: Vec<(usize, Vec<f64>)> = Vec::new();
        for &row in &self.sets[self.set_of[node]] {
            let cells = self.data.row(row);
            let next = out.len();
            let place = if small.is_some() {
                let code = parents
                    .iter()
                    .fold(0, |code, &parent| code * values[parent] + usize::from(cells[parent]));
                if place_of[code] == usize::MAX {
                    place_of[code] = next;
                }
                place_of[code]
            } else {
                *places.entry(parents.iter().map(|&parent| cells[parent]).collect()).or_insert(next)
            };
            if place == next {
                out.push((row, vec![0.0; values[node]]));
            }
            out[place].1[usize::from(cells[node])] += 1.0;
        }
        out
    }
}

impl LocalScore for Bde {
    fn n_nodes(&self) -> usize {
        self.data.n_variables()
    }

    fn local_score(&self, node: usize, parents: &NodeSet) -> f64 {
        let parents: Vec<usize> = parents.iter().collect();
        let values = self.data.n_values();
        let r = values[node];
        // Configurations of the parents that don't occur in the data contribute 0 to the score, so they are
        // left out.
        let of_configuration = |(row, counts): &(usize, Vec<f64>)| {
            let cells = self.data.row(*row);
            let share: f64 = parents
                .iter()
                .map(|&parent| match &self.cells {
                    CellPrior::Uniform => 1.0 / values[parent] as f64,
                    CellPrior::Marginals(marginals) => marginals[parent][usize::from(cells[parent])],
                })
                .product();
            let prior = self.sample_size * share;
            let cell = |(k, &count): (usize, &f64)| {
                let a = match &self.cells {
                    CellPrior::Uniform => prior / r as f64,
                    CellPrior::Marginals(marginals) => prior * marginals[node][k],
                };
                if count > 0.0 { lgamma(a + count) - lgamma(a) } else { 0.0 }
            };
            let total: f64 = counts.iter().sum();
            lgamma(prior) - lgamma(prior + total) + counts.iter().enumerate().map(cell).sum::<f64>()
        };
        self.counts(node, &parents).iter().map(of_configuration).sum()
    }
}
