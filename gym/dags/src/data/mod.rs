//! Observations of variables, which are read from files or simulated.

mod bif;
mod continuous;
mod csv;
mod discrete;
mod network;
mod observations;
mod random_dag;
mod sem;

pub use continuous::ContinuousData;
pub use csv::{FromTable, TextTable, named_edges};
pub use discrete::{DiscreteData, Labels};
use gfn::{Error, Result};
pub use network::DiscreteNetwork;
pub use observations::Observations;
pub use random_dag::GraphLaw;
pub use sem::{Mechanism, Sem, SemConfig};

use crate::env::check_size;
use crate::{Ancestry, NodeSet};

/// Returns the number of rows of a table. Returns an error unless each row has one cell per name, there is
/// at least one row, and no name occurs twice.
fn check_table(names: &[String], cells: usize) -> Result<usize> {
    let n = check_size(names.len())?;
    if cells == 0 || !cells.is_multiple_of(n) {
        let remedy = "give at least one row, and one cell for each variable in each row";
        return Err(Error::shape(
            "the observations",
            [(cells / n).max(1) as i64, n as i64],
            [cells as i64],
            remedy,
        ));
    }
    match (0..n).find(|&i| names[..i].contains(&names[i])) {
        None => Ok(cells / n),
        Some(i) => {
            let got = format!("`{}` for two variables", names[i]);
            Err(Error::config("the name of a variable", got, "a different name for each variable"))
        }
    }
}

/// Returns the error for a variable that has the same value in all rows of a table.
fn constant_column(name: &str, value: &str) -> Error {
    Error::config(
        "a variable",
        format!("`{name}`, which is {value} in every row"),
        "a variable that varies: leave the column out",
    )
}

/// Returns default names for `n` variables: `x0`, `x1`, ...
fn numbered(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("x{i}")).collect()
}

/// Samples rows of a table, with the values of parents before those of their children. The nodes in `set`
/// get the values given there. `draw` samples the value of a node, given the node and the values of the row
/// that have been sampled.
fn ancestral_rows<T: Copy + Default>(
    ancestry: &Ancestry,
    rows: usize,
    set: &[(usize, T)],
    mut draw: impl FnMut(usize, &[T]) -> T,
) -> Vec<T> {
    let n = ancestry.n_nodes();
    let order = ancestry.topological_order();
    let mut cells = vec![T::default(); rows * n];
    for row in cells.chunks_exact_mut(n) {
        for &node in &order {
            // A value is also sampled for a node in `set`, and then replaced, so that a row consumes the same
            // random numbers for every `set`. The values of other nodes therefore depend on `set` only
            // through their parents.
            let value = draw(node, row);
            row[node] = set.iter().find(|(target, _)| *target == node).map_or(value, |(_, value)| *value);
        }
    }
    cells
}

/// Returns the nodes in `set`. Returns an error if one of these nodes doesn't exist.
fn targets<T>(set: &[(usize, T)], n: usize) -> Result<NodeSet> {
    let node =
        |(node, _): &(usize, T)| if *node < n { Ok(*node) } else { Err(Error::out_of_range(*node, n)) };
    set.iter().map(node).collect()
}
