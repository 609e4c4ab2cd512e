use gfn::{Error, Result};
use libm::lgamma;

use super::scatter::{Scatter, family};
use super::{LocalScore, NodeSet, check_observations, check_positive, rows_of_nodes};
use crate::data::ContinuousData;

/// The normal-Wishart prior of a [`Bge`] score for `n` variables.
#[derive(Clone, PartialEq, Debug)]
pub struct BgeConfig {
    /// The parameter alpha_mu, the number of observations that the prior mean is equivalent to. It must be
    /// above 0, and is 1 by default.
    pub alpha_mu: f64,
    /// The parameter alpha_w, the degrees of freedom of the Wishart prior. It must be above `n + 1`;
    /// `None`, the default, means `n + 2`.
    pub alpha_w: Option<f64>,
    /// The parameter nu, the prior mean of each variable, in the units of the data. `None`, the default,
    /// means zeros.
    pub nu: Option<Vec<f64>>,
    /// `true` to allow fewer observations than variables; `false` by default. A row with an intervention on
    /// a node isn't an observation of this node. The prior is proper, so the score exists for few
    /// observations, but the prior then dominates it.
    pub allow_few_observations: bool,
}

impl Default for BgeConfig {
    /// Returns the usual prior: alpha_mu = 1, alpha_w = n + 2, nu = 0.
    fn default() -> Self {
        Self { alpha_mu: 1.0, alpha_w: None, nu: None, allow_few_observations: false }
    }
}

/// The BGe score: the marginal likelihood of linear Gaussian networks under a normal-Wishart prior.
///
/// The formula is that of Geiger and Heckerman (1994) as corrected by Kuipers, Moffa and Heckerman (2014).
/// The prior scale matrix is T = t I with t = alpha_mu (alpha_w - n - 1) / (alpha_mu + 1). For N
/// observations of n variables, a node with l parents has this score:
///
/// ```text
/// R = t I + S + (N alpha_mu / (N + alpha_mu)) (mean - nu)(mean - nu)^T
/// score(j | P) = 1/2 log(alpha_mu / (N + alpha_mu)) + log Gamma((N + alpha_w - n + l + 1) / 2)
///     - log Gamma((alpha_w - n + l + 1) / 2) - N/2 log pi + (alpha_w - n + 2 l + 1)/2 log t
///     + (N + alpha_w - n + l)/2 log |R[P]| - (N + alpha_w - n + l + 1)/2 log |R[P + j]|
/// ```
///
/// The default prior has mean 0 and the same scale for all variables, so the score depends on the units and
/// the origin of the data. Therefore, pass [`standardised`](ContinuousData::standardised) data, or a prior
/// mean in the units of the data.
///
/// A row with an intervention on a node doesn't show how the node depends on its parents. Such rows don't
/// count for the score of this node (Cooper and Yoo 1999), so each node has a separate R and N. torchgfn
/// and jax-dag-gflownet return scores relative to the empty graph; see
/// [`DagReward::relative_to`](crate::DagReward::relative_to).
///
/// ```
/// use gfn_dags::{Bge, BgeConfig, ContinuousData, LocalScore, NodeSet};
/// let rows = [[0.5, 1.0, -0.2], [-1.0, -0.5, 0.3], [0.2, 0.8, 1.1], [1.5, 0.1, -0.7], [-0.3, 0.6, 0.4]];
/// let bge = Bge::new(&ContinuousData::from_rows(&rows)?, BgeConfig::default())?;
/// assert!((bge.local_score(0, &NodeSet::EMPTY) + 8.425057830087097).abs() < 1e-12);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bge {
    n: usize,
    groups: Vec<RowStatistics>,
    group_of: Vec<usize>,
}

/// The statistics that the scores of a group of nodes need. A group consists of the nodes for which the same
/// rows of the data count.
#[derive(Clone, Debug)]
struct RowStatistics {
    r: Scatter,
    /// The number N + alpha_w - n, where N is the number of rows that count.
    degrees: f64,
    /// The terms of the score that don't contain determinants, indexed by the number of parents.
    terms: Vec<f64>,
}

impl Bge {
    /// Creates the score of a data set.
    ///
    /// # Errors
    /// [`Error::Config`] for an improper prior, for fewer observations than variables (see
    /// [`BgeConfig::allow_few_observations`]), for a variable that is constant over several rows, and for
    /// values whose squares overflow; [`Error::Shape`] for a prior mean of a wrong length.
    pub fn new(data: &ContinuousData, config: BgeConfig) -> Result<Self> {
        let n = data.n_variables();
        let (sets, group_of) = rows_of_nodes(n, data.n_rows(), data.interventions());
        check_observations(&sets, n, config.allow_few_observations)?;
        if data.n_rows() > 1 {
            data.check_varying(&(0..data.n_rows()).collect::<Vec<_>>())?;
        }
        let alpha_mu = config.alpha_mu;
        let alpha_w = config.alpha_w.unwrap_or(n as f64 + 2.0);
        check_positive("alpha_mu", alpha_mu)?;
        if !(alpha_w > n as f64 + 1.0 && alpha_w.is_finite()) {
            let got = format!("{alpha_w} for {n} variables");
            return Err(Error::config("alpha_w", got, "a number above the number of variables plus 1"));
        }
        let nu = config.nu.unwrap_or_else(|| vec![0.0; n]);
        if nu.len() != n {
            let remedy = "give one prior mean for each variable";
            return Err(Error::shape("the prior mean nu", [n as i64], [nu.len() as i64], remedy));
        }
        let groups = sets.iter().map(|rows| {
            let (mut r, mean) = Scatter::from_rows(n, rows.iter().map(|&row| data.row(row)))?;
            let count = rows.len() as f64;
            let t = alpha_mu * (alpha_w - n as f64 - 1.0) / (alpha_mu + 1.0);
            for i in 0..n {
                for j in 0..n {
                    let shift = count * alpha_mu / (count + alpha_mu) * (mean[i] - nu[i]) * (mean[j] - nu[j]);
                    r.values[i * n + j] += shift + if i == j { t } else { 0.0 };
                }
            }
            let a = alpha_w - n as f64;
            let term = |l: usize| {
                let l = l as f64;
                0.5 * (alpha_mu.ln() - (count + alpha_mu).ln()) + lgamma(0.5 * (count + a + l + 1.0))
                    - lgamma(0.5 * (a + l + 1.0))
                    - 0.5 * count * std::f64::consts::PI.ln()
                    + 0.5 * (a + 2.0 * l + 1.0) * t.ln()
            };
            Ok(RowStatistics { r, degrees: count + a, terms: (0..n).map(term).collect() })
        });
        Ok(Self { n, groups: groups.collect::<Result<_>>()?, group_of })
    }

    /// Returns the posterior scale matrix R in the formula of [`Bge`] for the score of this node, row by row.
    ///
    /// # Panics
    /// If the node doesn't exist.
    #[must_use]
    pub fn r(&self, node: usize) -> &[f64] {
        &self.groups[self.group_of[node]].r.values
    }
}

impl LocalScore for Bge {
    fn n_nodes(&self) -> usize {
        self.n
    }

    fn local_score(&self, node: usize, parents: &NodeSet) -> f64 {
        let group = &self.groups[self.group_of[node]];
        let family = family(node, parents);
        let l = family.len() - 1;
        let (log_det, schur) = group.r.log_det_and_schur(&family);
        let degrees = group.degrees + l as f64;
        // R[P + j] is the submatrix of R for the node j and its parents P. Its determinant is |R[P]| times
        // the Schur complement.
        group.terms[l] - 0.5 * log_det - 0.5 * (degrees + 1.0) * schur.ln()
    }
}
