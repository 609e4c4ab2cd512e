use gfn::{Error, Result};

use super::check_table;
use crate::NodeSet;

/// A table of observations of variables, of shape `[rows, variables]`. The table is either
/// [`ContinuousData`](crate::ContinuousData) or [`DiscreteData`](crate::DiscreteData). `L` is the type of
/// the labels of discrete values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Observations<T, L> {
    pub(super) names: Vec<String>,
    /// The values of all observations, row by row.
    pub(super) cells: Vec<T>,
    pub(super) labels: L,
    pub(super) interventions: Option<Vec<NodeSet>>,
}

impl<T: Copy, L: Clone> Observations<T, L> {
    /// Returns the data with interventions: for each row, the set of variables that an experiment fixed.
    /// The score of a variable ignores the rows in which the variable was fixed.
    ///
    /// # Errors
    /// [`Error::Shape`] unless each row has a set; [`Error::OutOfRange`] for a variable that doesn't exist.
    pub fn with_interventions(mut self, targets: Vec<NodeSet>) -> Result<Self> {
        let rows = self.n_rows();
        let n = self.n_variables();
        if targets.len() != rows {
            let remedy =
                "give one set of nodes for each row, and an empty set for rows without interventions";
            return Err(Error::shape("intervention targets", [rows as i64], [targets.len() as i64], remedy));
        }
        if let Some(node) = targets.iter().flat_map(NodeSet::iter).find(|&node| node >= n) {
            return Err(Error::out_of_range(node, n));
        }
        self.interventions = Some(targets);
        Ok(self)
    }

    /// Returns the set of variables that an experiment fixed in each row; `None` if the data has no
    /// interventions.
    #[must_use]
    pub fn interventions(&self) -> Option<&[NodeSet]> {
        self.interventions.as_deref()
    }

    /// Returns the names of the variables.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the number of variables.
    #[must_use]
    pub fn n_variables(&self) -> usize {
        self.names.len()
    }

    /// Returns the number of observations.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        self.cells.len() / self.names.len()
    }

    /// Returns the observation in the given row: one value per variable.
    ///
    /// # Panics
    /// If the row doesn't exist.
    #[must_use]
    pub fn row(&self, row: usize) -> &[T] {
        &self.cells[row * self.names.len()..(row + 1) * self.names.len()]
    }

    /// Returns the values of a variable in all rows.
    ///
    /// # Panics
    /// If the variable doesn't exist.
    #[must_use]
    pub fn column(&self, variable: usize) -> Vec<T> {
        (0..self.n_rows()).map(|row| self.row(row)[variable]).collect()
    }

    /// Returns a table that consists of the rows at these indices.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a row that doesn't exist; [`Error::Shape`] for an empty list of rows.
    pub fn select(&self, rows: &[usize]) -> Result<Self> {
        if let Some(&index) = rows.iter().find(|&&row| row >= self.n_rows()) {
            return Err(Error::out_of_range(index, self.n_rows()));
        }
        let cells: Vec<T> = rows.iter().flat_map(|&row| self.row(row)).copied().collect();
        check_table(&self.names, cells.len())?;
        let interventions =
            self.interventions.as_ref().map(|targets| rows.iter().map(|&row| targets[row]).collect());
        Ok(Self { names: self.names.clone(), cells, labels: self.labels.clone(), interventions })
    }
}
