use gfn::{Error, Result};

use super::scatter::{Scatter, family};
use super::{LocalScore, NodeSet, rows_of_nodes};
use crate::data::ContinuousData;

/// The smallest accepted ratio of a variable's residual variance, given other variables, to its variance. A
/// smaller ratio shows that the variable is a linear function of the others.
const COLLINEAR: f64 = 1e-12;

/// The Bayesian information criterion of linear Gaussian networks. The score of a node is the maximal
/// log-likelihood of its regression on its l parents, minus half of log N for each of its `l + 2`
/// parameters (l coefficients, intercept, variance). N is the number of observations.
///
/// The formula is `score(j | P) = -N/2 (log(2 pi RSS / N) + 1) - (l + 2)/2 log N`, where RSS is the
/// residual sum of squares. Rows with an intervention on a node don't count for the score of this node.
///
/// ```
/// use gfn_dags::{ContinuousData, LinearGaussianBic, LocalScore, NodeSet};
/// let data = ContinuousData::from_rows(&[[1.0, 2.1], [2.0, 3.9], [3.0, 6.2], [4.0, 7.9]])?;
/// let bic = LinearGaussianBic::new(&data)?;
/// assert!(bic.local_score(1, &NodeSet::EMPTY.with(0)) > bic.local_score(1, &NodeSet::EMPTY));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LinearGaussianBic {
    n: usize,
    groups: Vec<(Scatter, f64)>,
    group_of: Vec<usize>,
}

impl LinearGaussianBic {
    /// Creates the score of a data set.
    ///
    /// # Errors
    /// [`Error::Config`] unless every node has more observations than there are variables; for a variable
    /// that is constant or a linear function of other variables, because its likelihood is unbounded; and
    /// for values whose squares overflow.
    pub fn new(data: &ContinuousData) -> Result<Self> {
        let n = data.n_variables();
        let (sets, group_of) = rows_of_nodes(n, data.n_rows(), data.interventions());
        let mut groups = Vec::with_capacity(sets.len());
        for rows in &sets {
            if rows.len() <= n {
                return Err(Error::config(
                    "the number of observations",
                    format!("{} for {n} variables", rows.len()),
                    "more observations than variables, not counting those with an intervention on a node \
                     (otherwise a regression on all other variables fits exactly; BGe has a prior instead)",
                ));
            }
            data.check_varying(rows)?;
            groups.push((Scatter::from_rows(n, rows.iter().map(|&row| data.row(row)))?.0, rows.len() as f64));
        }
        // With interventions, different rows count for different nodes. All variables are checked in each set
        // of rows that count for a node, because a variable is also a parent in the regressions of other
        // nodes.
        for (scatter, _) in &groups {
            let collinear = |node: &usize| {
                let (_, rest) = scatter.log_det_and_schur(&(0..=*node).collect::<Vec<_>>());
                let own = scatter.values[node * n + node];
                rest.is_nan() || rest <= COLLINEAR * own
            };
            if let Some(node) = (0..n).find(collinear) {
                return Err(Error::config(
                    "a variable",
                    format!("`{}`, which is a linear function of variables before it", data.names()[node]),
                    "variables none of which is a linear function of others, not even in the rows without an \
                     intervention on it: leave the variable out",
                ));
            }
        }
        Ok(Self { n, groups, group_of })
    }
}

impl LocalScore for LinearGaussianBic {
    fn n_nodes(&self) -> usize {
        self.n
    }

    fn local_score(&self, node: usize, parents: &NodeSet) -> f64 {
        let (scatter, count) = &self.groups[self.group_of[node]];
        let family = family(node, parents);
        let (_, rss) = scatter.log_det_and_schur(&family);
        let n_parameters = family.len() as f64 + 1.0;
        -0.5 * count * ((std::f64::consts::TAU * rss / count).ln() + 1.0) - 0.5 * n_parameters * count.ln()
    }
}
