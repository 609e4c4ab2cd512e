use gfn::graph::GraphState;
use gfn::{Error, Result, Rng};

use super::{ContinuousData, ancestral_rows, numbered, targets};
use crate::Ancestry;

/// A mechanism: the function that computes a variable's mean from the values of its parents. The model adds
/// noise to this mean.
#[derive(Clone, PartialEq, Debug)]
pub enum Mechanism {
    /// A weighted sum of the parents' values. The parents are in ascending order.
    Linear {
        /// The weight of each parent.
        weights: Vec<f64>,
    },
    /// A network with one hidden layer of tanh units: `out . tanh(W x + b)`.
    Mlp {
        /// The weights W. Each hidden unit has a row, with one weight for each parent.
        hidden: Vec<Vec<f64>>,
        /// The biases b, one for each hidden unit.
        biases: Vec<f64>,
        /// The output weights, one for each hidden unit.
        out: Vec<f64>,
    },
}

impl Mechanism {
    fn mean(&self, parents: &[f64]) -> f64 {
        let dot =
            |weights: &[f64], values: &[f64]| weights.iter().zip(values).map(|(w, x)| w * x).sum::<f64>();
        match self {
            Self::Linear { weights } => dot(weights, parents),
            Self::Mlp { hidden, biases, out } => {
                let units =
                    hidden.iter().zip(biases).map(|(weights, bias)| (dot(weights, parents) + bias).tanh());
                units.zip(out).map(|(unit, weight)| unit * weight).sum()
            }
        }
    }

    fn n_parents(&self) -> Option<usize> {
        match self {
            Self::Linear { weights } => Some(weights.len()),
            // Each row of W has a weight for each parent, so the number of parents is the length `first` of
            // the first row.
            Self::Mlp { hidden, biases, out }
                if hidden.len() == biases.len() && biases.len() == out.len() =>
            {
                let first = hidden.first().map_or(0, Vec::len);
                hidden.iter().all(|row| row.len() == first).then_some(first)
            }
            Self::Mlp { .. } => None,
        }
    }
}

/// The distribution that the mechanisms of a [`Sem`] are sampled from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum SemConfig {
    /// Linear mechanisms with weights from N(0, 1) and no intercept, as in torchgfn and jax-dag-gflownet.
    Linear,
    /// Linear mechanisms whose weights have a random sign and an absolute value that is uniform between two
    /// bounds. Every edge then has a visible effect.
    LinearAwayFromZero {
        /// The smallest absolute value of a weight.
        low: f64,
        /// The largest absolute value of a weight.
        high: f64,
    },
    /// Random networks with one hidden layer of tanh units. Weights and biases are drawn from N(0, 1), and
    /// the output is divided by the square root of the number of units.
    Mlp {
        /// The number of hidden units.
        hidden: usize,
    },
}

/// A structural equation model: an acyclic graph, a mechanism for each node, and additive Gaussian noise.
///
/// ```
/// use gfn::Rng;
/// use gfn_dags::{GraphLaw, Sem, SemConfig};
/// let mut rng = Rng::seeded(0);
/// let dag = GraphLaw::ErdosRenyi { edges: 5.0 }.draw(5, &mut rng)?;
/// let data = Sem::draw(dag, SemConfig::Linear, 0.1, &mut rng)?.sample(100, &mut rng)?;
/// assert_eq!((data.n_rows(), data.n_variables()), (100, 5));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Sem {
    dag: GraphState,
    ancestry: Ancestry,
    mechanisms: Vec<Mechanism>,
    noise_std: f64,
}

impl Sem {
    /// Creates a model from an acyclic graph and a mechanism for each node. `noise_std` is the standard
    /// deviation of the noise.
    ///
    /// # Errors
    /// [`Error::Shape`] unless each node has a mechanism with a weight for each of the node's parents;
    /// [`Error::Config`] if `noise_std` is below 0 or not finite; errors of [`Ancestry::from_graph`].
    pub fn new(dag: GraphState, mechanisms: Vec<Mechanism>, noise_std: f64) -> Result<Self> {
        if !(noise_std >= 0.0 && noise_std.is_finite()) {
            return Err(Error::config("noise_std", noise_std, "a number of at least 0"));
        }
        let n = dag.n_nodes();
        let ancestry = Ancestry::from_graph(&dag)?;
        let fits = |node: usize| mechanisms[node].n_parents() == Some(ancestry.parents(node).len());
        if mechanisms.len() != n || !(0..n).all(fits) {
            let remedy = "give a mechanism for each node, with one weight for each of its parents";
            let expected = [n as i64];
            let got = [mechanisms.len() as i64];
            return Err(Error::shape("mechanisms of a structural equation model", expected, got, remedy));
        }
        Ok(Self { dag, ancestry, mechanisms, noise_std })
    }

    /// Creates a model with random mechanisms, which are sampled from the distribution `config`.
    ///
    /// # Errors
    /// Errors of [`new`](Self::new); [`Error::Config`] unless `0 <= low <= high`, and for networks without
    /// hidden units.
    pub fn draw(dag: GraphState, config: SemConfig, noise_std: f64, rng: &mut Rng) -> Result<Self> {
        if let SemConfig::LinearAwayFromZero { low, high } = config
            && !(0.0 <= low && low <= high && high.is_finite())
        {
            let got = format!("{low} to {high}");
            return Err(Error::config(
                "weights",
                got,
                "a range of sizes of at least 0, the lower size first",
            ));
        }
        if let SemConfig::Mlp { hidden: 0 } = config {
            return Err(Error::config("hidden", 0, "at least one hidden unit"));
        }
        let mechanism = |node: usize| {
            let l = dag.in_degree(node as u32);
            let mut normals = |count: usize| (0..count).map(|_| rng.normal()).collect::<Vec<f64>>();
            match config {
                SemConfig::Linear => Mechanism::Linear { weights: normals(l) },
                SemConfig::LinearAwayFromZero { low, high } => {
                    let mut weight = || {
                        let size = low + (high - low) * rng.uniform();
                        if rng.uniform() < 0.5 { -size } else { size }
                    };
                    Mechanism::Linear { weights: (0..l).map(|_| weight()).collect() }
                }
                SemConfig::Mlp { hidden } => Mechanism::Mlp {
                    hidden: (0..hidden).map(|_| normals(l)).collect(),
                    biases: normals(hidden),
                    out: normals(hidden).iter().map(|weight| weight / (hidden as f64).sqrt()).collect(),
                },
            }
        };
        let mechanisms = (0..dag.n_nodes()).map(mechanism).collect();
        Self::new(dag, mechanisms, noise_std)
    }

    /// Returns the graph of the model.
    #[must_use]
    pub fn dag(&self) -> &GraphState {
        &self.dag
    }

    /// Returns the mechanism of each node.
    #[must_use]
    pub fn mechanisms(&self) -> &[Mechanism] {
        &self.mechanisms
    }

    /// Samples `rows` observations. Parents are sampled before their children.
    ///
    /// # Errors
    /// Errors of [`ContinuousData::new`], for example for 0 rows.
    pub fn sample(&self, rows: usize, rng: &mut Rng) -> Result<ContinuousData> {
        self.draw_rows(rows, &[], rng)
    }

    /// Samples `rows` observations in which some nodes are fixed. Each entry of `set` is a node and the
    /// value that it is fixed to. The returned data records these interventions.
    ///
    /// # Errors
    /// Errors of [`sample`](Self::sample); [`Error::OutOfRange`] for a node that doesn't exist.
    pub fn sample_do(&self, rows: usize, set: &[(usize, f64)], rng: &mut Rng) -> Result<ContinuousData> {
        let targets = targets(set, self.dag.n_nodes())?;
        self.draw_rows(rows, set, rng)?.with_interventions(vec![targets; rows])
    }

    fn draw_rows(&self, rows: usize, set: &[(usize, f64)], rng: &mut Rng) -> Result<ContinuousData> {
        let n = self.dag.n_nodes();
        let parents: Vec<Vec<usize>> =
            (0..n).map(|node| self.ancestry.parents(node).iter().collect()).collect();
        let mut known = Vec::with_capacity(n);
        let values = ancestral_rows(&self.ancestry, rows, set, |node, row| {
            known.clear();
            known.extend(parents[node].iter().map(|&parent| row[parent]));
            self.mechanisms[node].mean(&known) + self.noise_std * rng.normal()
        });
        ContinuousData::new(numbered(n), values)
    }
}
