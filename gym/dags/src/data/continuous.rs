use gfn::{Error, Result};

use super::{DiscreteData, Observations, check_table, constant_column, numbered};

/// Observations of continuous variables: `[rows, variables]`, finite, in f64.
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
    /// Observations, row by row.
    ///
    /// # Errors
    /// [`Error::Config`] for no variable, more than 200, or a name that comes twice; [`Error::Shape`] for no row, and for rows of
    /// another length; [`Error::NonFinite`] for a cell that is NaN or infinite.
    pub fn new(names: Vec<String>, values: Vec<f64>) -> Result<Self> {
        check_table(&names, values.len())?;
        if let Some(k) = values.iter().position(|value| !value.is_finite()) {
            let remedy = "leave out rows with missing values, or fill them in";
            return Err(Error::non_finite("an observation", k / names.len(), values[k], remedy));
        }
        Ok(Self { names, cells: values, labels: (), interventions: None })
    }

    /// Observations of variables `x0`, `x1`, ...
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn from_rows<const N: usize>(rows: &[[f64; N]]) -> Result<Self> {
        Self::new(numbered(N), rows.iter().flatten().copied().collect())
    }

    /// Refuses a variable that has one value in all of these rows. Values are compared, as a sum of squares would hide a constant behind
    /// round-off.
    pub(crate) fn check_varying(&self, rows: &[usize]) -> Result<()> {
        let is_constant = |i: &usize| rows.iter().all(|&row| self.row(row)[*i] == self.row(rows[0])[*i]);
        match (0..self.n_variables()).find(is_constant) {
            Some(i) if !rows.is_empty() => Err(constant_column(&self.names[i], &self.row(rows[0])[i].to_string())),
            _ => Ok(()),
        }
    }

    /// Each value by a function, such as the logarithm of intensities.
    ///
    /// # Errors
    /// [`Error::NonFinite`] where the function doesn't give a finite number.
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Result<Self> {
        let out = Self::new(self.names.clone(), self.cells.iter().map(|&x| f(x)).collect())?;
        Ok(Self { interventions: self.interventions.clone(), ..out })
    }

    /// Each variable with mean 0 and variance 1 (of N - 1 degrees of freedom).
    ///
    /// # Errors
    /// [`Error::Config`] for fewer than two rows, and for a variable that is constant.
    pub fn standardised(&self) -> Result<Self> {
        let (n, rows) = (self.n_variables(), self.n_rows());
        if rows < 2 {
            let got = rows.to_string();
            return Err(Error::config("the number of observations", got, "at least two"));
        }
        self.check_varying(&(0..rows).collect::<Vec<_>>())?;
        let mut out = self.clone();
        for variable in 0..n {
            let mut column = self.column(variable);
            let scale = power_of_two(column.iter().fold(0.0, |most, x| x.abs().max(most)));
            column.iter_mut().for_each(|x| *x /= scale);
            let mean = column.iter().sum::<f64>() / rows as f64;
            let variance = column.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (rows as f64 - 1.0);
            for (row, x) in column.iter().enumerate() {
                out.cells[row * n + variable] = (x - mean) / variance.sqrt();
            }
        }
        Ok(out)
    }

    /// Each variable cut into `levels` of about as many observations each, for scores of discrete data; equal values stay together.
    ///
    /// A variable of no more than `levels` values, such as a code of classes, keeps them: each is a level, and labels it. Levels that
    /// nothing falls into (many equal values can fill several) aren't counted.
    ///
    /// # Errors
    /// [`Error::Config`] for fewer than two levels, or more than observations, and for a variable that all falls into one level.
    pub fn discretised(&self, levels: usize) -> Result<DiscreteData> {
        let (n, rows) = (self.n_variables(), self.n_rows());
        if !(2..=rows.min(usize::from(u16::MAX))).contains(&levels) {
            let expected = "at least 2 levels, and no more than there are observations";
            return Err(Error::config("levels", format!("{levels} of {rows} observations"), expected));
        }
        let mut cells = vec![0u16; rows * n];
        let mut labels: Vec<Vec<String>> = Vec::with_capacity(n);
        for variable in 0..n {
            let column = self.column(variable);
            let mut sorted = column.clone();
            sorted.sort_by(f64::total_cmp);
            let mut distinct = sorted.clone();
            distinct.dedup();
            // Level by level: where it begins among the values.
            let level = |x: &f64| sorted.partition_point(|other| other < x) * levels / rows;
            let coded = distinct.len() <= levels;
            if !coded {
                distinct.dedup_by_key(|x| level(x));
            }
            if distinct.len() < 2 {
                return Err(Error::config(
                    "a variable",
                    format!("`{}`, all in one of {levels} levels", self.names[variable]),
                    "variables of which no value fills all levels: leave it out, or say which values go together",
                ));
            }
            for (row, x) in column.iter().enumerate() {
                cells[row * n + variable] = (distinct.partition_point(|first| first <= x) - 1) as u16;
            }
            labels.push(
                (0..distinct.len()).map(|k| if coded { distinct[k].to_string() } else { k.to_string() }).collect(),
            );
        }
        let out = DiscreteData::labelled(self.names.clone(), labels, cells)?;
        Ok(DiscreteData { interventions: self.interventions.clone(), ..out })
    }
}

/// The power of two just below a number: what is divided by it is at most 2, so that squares and sums of rows don't overflow, and no
/// digit of it changes.
fn power_of_two(most: f64) -> f64 {
    f64::from_bits(most.to_bits() & f64::INFINITY.to_bits()).max(f64::MIN_POSITIVE)
}
