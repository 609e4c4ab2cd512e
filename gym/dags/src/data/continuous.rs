use gfn::{Error, Result};

use super::{DiscreteData, Observations, check_table, constant_column, numbered};

/// A table of observations of continuous variables, of shape `[rows, variables]`. All values are finite.
///
/// ```
/// use gfn_dags::ContinuousData;
/// let data = ContinuousData::from_csv("a,b\n1,2.5\n3,-1e1\n".as_bytes())?;
/// assert_eq!((data.n_rows(), data.names()), (2, ["a".to_string(), "b".to_string()].as_slice()));
/// assert_eq!(data.row(1), [3.0, -10.0]);
/// let message = ContinuousData::from_csv("a,b\n1,2\n3,\n".as_bytes()).unwrap_err().to_string();
/// assert!(message.contains("line 3") && message.contains("`b`"), "{message}");
/// # Ok::<(), gfn::Error>(())
/// ```
pub type ContinuousData = Observations<f64, ()>;

impl ContinuousData {
    /// Creates a table of observations from the names of the variables and the values, row by row.
    ///
    /// # Errors
    /// [`Error::Config`] for an empty list of variables, for more than 200 variables, and for a name that
    /// occurs twice; [`Error::Shape`] for a table without rows, and for rows of a wrong length;
    /// [`Error::NonFinite`] for a value that is NaN or infinite.
    pub fn new(names: Vec<String>, values: Vec<f64>) -> Result<Self> {
        check_table(&names, values.len())?;
        if let Some(k) = values.iter().position(|value| !value.is_finite()) {
            let remedy = "give finite values: leave out rows with missing values, or fill them in";
            return Err(Error::non_finite("an observation", k / names.len(), values[k], remedy));
        }
        Ok(Self { names, cells: values, labels: (), interventions: None })
    }

    /// Creates observations of variables that are named `x0`, `x1`, ...
    ///
    /// # Errors
    /// Errors of [`new`](Self::new).
    pub fn from_rows<const N: usize>(rows: &[[f64; N]]) -> Result<Self> {
        Self::new(numbered(N), rows.iter().flatten().copied().collect())
    }

    /// Returns an error if a variable has the same value in all given rows. Values are compared directly,
    /// because rounding in a sum of squares would hide that they are equal.
    pub(crate) fn check_varying(&self, rows: &[usize]) -> Result<()> {
        let is_constant = |i: &usize| rows.iter().all(|&row| self.row(row)[*i] == self.row(rows[0])[*i]);
        match (0..self.n_variables()).find(is_constant) {
            Some(i) if !rows.is_empty() => {
                Err(constant_column(&self.names[i], &self.row(rows[0])[i].to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Applies a function, such as the logarithm, to each value.
    ///
    /// # Errors
    /// [`Error::NonFinite`] if the function returns a number that isn't finite.
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Result<Self> {
        let out = Self::new(self.names.clone(), self.cells.iter().map(|&x| f(x)).collect())?;
        Ok(Self { interventions: self.interventions.clone(), ..out })
    }

    /// Shifts and scales each variable to mean 0 and variance 1 (with N - 1 degrees of freedom).
    ///
    /// # Errors
    /// [`Error::Config`] for fewer than two rows, and for a constant variable.
    pub fn standardised(&self) -> Result<Self> {
        self.standardised_like(self)
    }

    /// Shifts and scales each variable by the numbers that [`standardise`](Self::standardised) the variables
    /// of another table, such as the training data of this held-out data.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of variables; [`Error::Config`] if the other table has fewer than
    /// two rows or a constant variable.
    pub fn standardised_like(&self, reference: &Self) -> Result<Self> {
        let n = reference.n_variables();
        let rows = reference.n_rows();
        if self.n_variables() != n {
            let remedy = "give tables of the same variables";
            return Err(Error::shape(
                "a table to standardise",
                [n as i64],
                [self.n_variables() as i64],
                remedy,
            ));
        }
        if rows < 2 {
            let got = rows.to_string();
            return Err(Error::config("the number of observations", got, "at least two"));
        }
        reference.check_varying(&(0..rows).collect::<Vec<_>>())?;
        let mut out = self.clone();
        for variable in 0..n {
            let mut column = reference.column(variable);
            let scale = power_of_two(column.iter().fold(0.0, |most, x| x.abs().max(most)));
            for x in &mut column {
                *x /= scale;
            }
            let mean = column.iter().sum::<f64>() / rows as f64;
            let variance = column.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (rows as f64 - 1.0);
            for (row, x) in self.column(variable).into_iter().enumerate() {
                out.cells[row * n + variable] = (x / scale - mean) / variance.sqrt();
            }
        }
        Ok(out)
    }

    /// Replaces the values of each variable by `levels` levels with about equal numbers of observations.
    /// Scores of discrete data can then be used. Equal values get the same level.
    ///
    /// A variable with at most `levels` distinct values, such as a class code, keeps its values: each value
    /// becomes a level with the value as its label. For other variables, empty levels are dropped. A level is
    /// empty if so many values are equal that they would fill several levels.
    ///
    /// # Errors
    /// [`Error::Config`] for fewer than two levels, for more levels than observations, and for a variable
    /// all of whose values get the same level.
    pub fn discretised(&self, levels: usize) -> Result<DiscreteData> {
        let n = self.n_variables();
        let rows = self.n_rows();
        if !(2..=rows.min(usize::from(u16::MAX))).contains(&levels) {
            let expected = "at least 2 levels, and at most the number of observations";
            return Err(Error::config("levels", format!("{levels} for {rows} observations"), expected));
        }
        let mut cells = vec![0u16; rows * n];
        let mut labels: Vec<Vec<String>> = Vec::with_capacity(n);
        for variable in 0..n {
            let column = self.column(variable);
            let mut sorted = column.clone();
            sorted.sort_by(f64::total_cmp);
            let mut distinct = sorted.clone();
            distinct.dedup();
            // The level of a value follows from its first position among the sorted values, so equal values
            // get the same level.
            let level = |x: &f64| sorted.partition_point(|other| other < x) * levels / rows;
            let coded = distinct.len() <= levels;
            if !coded {
                distinct.dedup_by_key(|x| level(x));
            }
            if distinct.len() < 2 {
                return Err(Error::config(
                    "a variable",
                    format!(
                        "`{}`, all of whose values fall into one of {levels} levels",
                        self.names[variable]
                    ),
                    "variables with at least two levels: leave the variable out, or group its values \
                     yourself",
                ));
            }
            for (row, x) in column.iter().enumerate() {
                cells[row * n + variable] = (distinct.partition_point(|first| first <= x) - 1) as u16;
            }
            labels.push(
                (0..distinct.len())
                    .map(|k| if coded { distinct[k].to_string() } else { k.to_string() })
                    .collect(),
            );
        }
        let out = DiscreteData::labelled(self.names.clone(), labels, cells)?;
        Ok(DiscreteData { interventions: self.interventions.clone(), ..out })
    }
}

/// Returns the largest power of two that is at most `most`. Values up to `most` are below 2 after they are
/// divided by this power, so sums of their squares don't overflow. The division is exact.
fn power_of_two(most: f64) -> f64 {
    f64::from_bits(most.to_bits() & f64::INFINITY.to_bits()).max(f64::MIN_POSITIVE)
}
