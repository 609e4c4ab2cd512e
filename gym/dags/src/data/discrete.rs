use gfn::{Error, Result};

use super::{Observations, check_table, numbered};

/// A table of observations of discrete variables, of shape `[rows, variables]`. The values of each variable
/// are numbered from 0.
///
/// ```
/// use gfn_dags::DiscreteData;
/// let data = DiscreteData::from_csv("rain,grass\nno,dry\nyes,wet\nno,dry\n".as_bytes())?;
/// assert_eq!((data.row(1), data.label(1, 1)), ([1u16, 1].as_slice(), "wet"));
/// # Ok::<(), gfn::Error>(())
/// ```
pub type DiscreteData = Observations<u16, Labels>;

/// The number of values of each variable, and their labels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Labels {
    n_values: Vec<usize>,
    of_values: Vec<Vec<String>>,
}

impl DiscreteData {
    /// Creates a table of observations from the names of the variables and the values, row by row. `n_values`
    /// holds the number of values of each variable.
    ///
    /// # Errors
    /// [`Error::Config`] for an empty list of variables, for more than 200 variables, for a name that
    /// occurs twice, and for a variable with fewer than 2 or more than 65,534 values; [`Error::Shape`] for
    /// a table without rows, and for rows of a wrong length; [`Error::OutOfRange`] for a value that the
    /// variable doesn't have.
    pub fn new(names: Vec<String>, n_values: Vec<usize>, cells: Vec<u16>) -> Result<Self> {
        let labels = n_values
            .iter()
            .map(|&values| (0..values.min(usize::from(u16::MAX))).map(|k| k.to_string()).collect());
        Self::labelled(names, labels.collect(), cells)
    }

    /// Creates a table of observations in which the values of each variable have labels.
    ///
    /// # Errors
    /// Errors of [`new`](Self::new).
    pub fn labelled(names: Vec<String>, labels: Vec<Vec<String>>, cells: Vec<u16>) -> Result<Self> {
        check_table(&names, cells.len())?;
        let n = names.len();
        if labels.len() != n {
            let remedy = "give the list of values of each variable";
            return Err(Error::shape("the values of variables", [n as i64], [labels.len() as i64], remedy));
        }
        let n_values: Vec<usize> = labels.iter().map(Vec::len).collect();
        if let Some(i) = n_values.iter().position(|values| !(2..usize::from(u16::MAX)).contains(values)) {
            let expected = "a variable of 2 to 65,534 values: leave the variable out";
            return Err(Error::config(
                "a variable",
                format!("`{}` with {} values", names[i], n_values[i]),
                expected,
            ));
        }
        let outside = (0..cells.len()).find(|&k| usize::from(cells[k]) >= n_values[k % n]);
        match outside {
            None => {
                Ok(Self { names, cells, labels: Labels { n_values, of_values: labels }, interventions: None })
            }
            Some(k) => Err(Error::out_of_range(usize::from(cells[k]), n_values[k % n])),
        }
    }

    /// Creates observations of variables that are named `x0`, `x1`, ... A variable has the values from 0 to
    /// the largest value that occurs.
    ///
    /// # Errors
    /// Errors of [`new`](Self::new).
    pub fn from_rows<const N: usize>(rows: &[[u16; N]]) -> Result<Self> {
        let n_values = |i: usize| rows.iter().map(|row| usize::from(row[i]) + 1).max().unwrap_or(0);
        Self::new(numbered(N), (0..N).map(n_values).collect(), rows.iter().flatten().copied().collect())
    }

    /// Returns the number of values of each variable.
    #[must_use]
    pub fn n_values(&self) -> &[usize] {
        &self.labels.n_values
    }

    /// Returns the label of a value. If no labels were given, this is the value's number.
    ///
    /// # Panics
    /// If the variable or the value doesn't exist.
    #[must_use]
    pub fn label(&self, variable: usize, value: usize) -> &str {
        &self.labels.of_values[variable][value]
    }
}
