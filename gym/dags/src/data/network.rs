use gfn::graph::GraphState;
use gfn::{Error, Result, Rng};

use super::random_dag::pick;
use super::{DiscreteData, ancestral_rows, numbered, targets};
use crate::Ancestry;

/// A Bayesian network of discrete variables: an acyclic graph, and a probability table for each node.
///
/// The table of a node has a row for each configuration of its parents and a column for each of its values.
/// The parents are in ascending order, and the value of the last parent changes fastest from row to row.
///
/// ```
/// use gfn::Rng;
/// use gfn_dags::{DiscreteNetwork, GraphLaw};
/// let mut rng = Rng::seeded(0);
/// let dag = GraphLaw::ScaleFree { edges_per_node: 1 }.draw(4, &mut rng)?;
/// let network = DiscreteNetwork::draw(dag, 3, &mut rng)?;
/// assert_eq!(network.sample(50, &mut rng)?.n_values(), [3; 4]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct DiscreteNetwork {
    names: Vec<String>,
    labels: Vec<Vec<String>>,
    dag: GraphState,
    ancestry: Ancestry,
    tables: Vec<Vec<f64>>,
}

/// The largest number of probabilities in all tables of a network together. This many numbers take 128 MB.
pub(super) const MAX_ENTRIES: usize = 1 << 24;

impl DiscreteNetwork {
    /// Creates a network from an acyclic graph, the names of the variables, the labels of their values, and
    /// their probability tables.
    ///
    /// # Errors
    /// [`Error::Shape`] unless each node has a name, labels and a table of the right size;
    /// [`Error::Config`] for a variable with fewer than 2 values, for more than 16 million entries in all
    /// tables, and for a row of a table that isn't a distribution; errors of [`Ancestry::from_graph`].
    pub fn new(
        names: Vec<String>,
        labels: Vec<Vec<String>>,
        dag: GraphState,
        tables: Vec<Vec<f64>>,
    ) -> Result<Self> {
        let n = dag.n_nodes();
        let ancestry = Ancestry::from_graph(&dag)?;
        let given = [names.len(), labels.len(), tables.len()];
        if given != [n; 3] {
            let remedy = "give a name, a list of values and a table for each node";
            let expected = [n as i64; 3];
            let got = given.map(|len| len as i64);
            return Err(Error::shape("names, values and tables of a network", expected, got, remedy));
        }
        for ((node, table), n_rows) in tables.iter().enumerate().zip(n_configurations(&ancestry, &labels)?) {
            let values = labels[node].len();
            if values < 2 {
                let got = format!("`{}` with {values} values", names[node]);
                return Err(Error::config("a variable", got, "at least 2 values"));
            }
            if table.len() != n_rows * values {
                return Err(Error::shape(
                    format!("the table of `{}`", names[node]),
                    [n_rows as i64, values as i64],
                    [table.len() as i64],
                    "give one row for each configuration of the parents, with one probability for each value",
                ));
            }
            let is_distribution =
                |row: &[f64]| row.iter().all(|p| *p >= 0.0) && (row.iter().sum::<f64>() - 1.0).abs() < 1e-3;
            if let Some(row) = table.chunks_exact(values).position(|row| !is_distribution(row)) {
                let got =
                    format!("{:?}, row {row} of `{}`", &table[row * values..(row + 1) * values], names[node]);
                let expected = "probabilities of at least 0 that sum to 1 (to within 0.001)";
                return Err(Error::config("a row of a table", got, expected));
            }
        }
        Ok(Self { names, labels, dag, ancestry, tables })
    }

    /// Creates a random network with the given graph, in which each variable has `values` values. The rows
    /// of the tables are sampled uniformly from all distributions.
    ///
    /// # Errors
    /// Errors of [`new`](Self::new).
    pub fn draw(dag: GraphState, values: usize, rng: &mut Rng) -> Result<Self> {
        let n = dag.n_nodes();
        let labels: Vec<Vec<String>> = vec![(0..values).map(|k| k.to_string()).collect(); n];
        let mut tables = Vec::with_capacity(n);
        for n_rows in n_configurations(&Ancestry::from_graph(&dag)?, &labels)? {
            let mut table = Vec::new();
            for _ in 0..n_rows {
                // Exponential random numbers divided by their sum are uniform over all distributions (a flat
                // Dirichlet distribution).
                let draws: Vec<f64> = (0..values).map(|_| -(1.0 - rng.uniform()).ln()).collect();
                let sum: f64 = draws.iter().sum();
                table.extend(draws.iter().map(|x| x / sum));
            }
            tables.push(table);
        }
        Self::new(numbered(n), labels, dag, tables)
    }

    /// Returns the graph of the network.
    #[must_use]
    pub fn dag(&self) -> &GraphState {
        &self.dag
    }

    /// Returns the names of the variables.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the labels of each variable's values.
    #[must_use]
    pub fn labels(&self) -> &[Vec<String>] {
        &self.labels
    }

    /// Returns the probabilities of a node's values. The probabilities depend on the values of the node's
    /// parents in `observation`, which holds the values of all variables.
    ///
    /// # Panics
    /// If the network has no such node, or if the observation has fewer values than the network has
    /// variables.
    #[must_use]
    pub fn probs(&self, node: usize, observation: &[u16]) -> &[f64] {
        let code =
            |code: usize, parent: usize| code * self.labels[parent].len() + usize::from(observation[parent]);
        let row = self.ancestry.parents(node).iter().fold(0, code);
        let values = self.labels[node].len();
        &self.tables[node][row * values..(row + 1) * values]
    }

    /// Computes the log-probability of an observation.
    ///
    /// # Panics
    /// If the observation has fewer values than the network has variables.
    #[must_use]
    pub fn log_prob(&self, observation: &[u16]) -> f64 {
        (0..self.names.len())
            .map(|node| self.probs(node, observation)[usize::from(observation[node])].ln())
            .sum()
    }

    /// Samples `rows` observations. Parents are sampled before their children.
    ///
    /// # Errors
    /// Errors of [`DiscreteData::new`], for example for 0 rows.
    pub fn sample(&self, rows: usize, rng: &mut Rng) -> Result<DiscreteData> {
        self.draw_rows(rows, &[], rng)
    }

    /// Samples `rows` observations in which some nodes are fixed. Each entry of `set` is a node and the
    /// value that it is fixed to. The returned data records these interventions.
    ///
    /// # Errors
    /// Errors of [`sample`](Self::sample); [`Error::OutOfRange`] for a node or a value that doesn't exist.
    pub fn sample_do(&self, rows: usize, set: &[(usize, u16)], rng: &mut Rng) -> Result<DiscreteData> {
        let targets = targets(set, self.names.len())?;
        for &(node, value) in set {
            let index = usize::from(value);
            let len = self.labels[node].len();
            if index >= len {
                return Err(Error::out_of_range(index, len));
            }
        }
        self.draw_rows(rows, set, rng)?.with_interventions(vec![targets; rows])
    }

    fn draw_rows(&self, rows: usize, set: &[(usize, u16)], rng: &mut Rng) -> Result<DiscreteData> {
        let cells =
            ancestral_rows(&self.ancestry, rows, set, |node, row| pick(self.probs(node, row), rng) as u16);
        DiscreteData::labelled(self.names.clone(), self.labels.clone(), cells)
    }
}

/// Returns the number of configurations of each node's parents. Returns an error if all tables together
/// would have more than [`MAX_ENTRIES`] entries.
fn n_configurations(ancestry: &Ancestry, labels: &[Vec<String>]) -> Result<Vec<usize>> {
    let mut left = MAX_ENTRIES;
    let mut out = Vec::with_capacity(labels.len());
    for (node, own) in labels.iter().enumerate() {
        let parents = ancestry.parents(node);
        let rows = parents.iter().try_fold(1usize, |rows, parent| rows.checked_mul(labels[parent].len()));
        let entries = rows.and_then(|rows| rows.checked_mul(own.len())).filter(|entries| *entries <= left);
        let (Some(rows), Some(entries)) = (rows, entries) else {
            let got = format!(
                "more than {MAX_ENTRIES} entries together, including the table of node {node} with {} \
                 parents",
                parents.len()
            );
            let expected = "at most 16,777,216 entries in all tables: use fewer parents or values";
            return Err(Error::config("tables of probabilities", got, expected));
        };
        left -= entries;
        out.push(rows);
    }
    Ok(out)
}
