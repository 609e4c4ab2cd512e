//! The correlation between two quantities of the same objects.

use super::empirical::mean_and_sd;
use crate::error::check_len;
use crate::{Error, Result};

/// The correlation between two quantities of the same objects, such as log p(x) and log R(x) of the objects
/// of a test set.
///
/// If a policy samples in proportion to the reward, log p(x) = log R(x) - log Z, so both coefficients are 1.
///
/// ```
/// use gfn::metrics::Correlation;
/// let c = Correlation::between(&[1.0, 2.0, 3.0, 4.0], &[1.0, 4.0, 9.0, 16.0])?;
/// assert!((c.pearson.unwrap_or(0.0) - 0.984_374).abs() < 1e-6);
/// assert_eq!(c.spearman, Some(1.0));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Correlation {
    /// Pearson's correlation r, from -1 to 1; `None` if one of the quantities is the same for all objects.
    pub pearson: Option<f64>,
    /// Spearman's rank correlation rho, which is Pearson's r of the ranks. Equal values share their mean
    /// rank. `None` if one of the quantities is the same for all objects.
    pub spearman: Option<f64>,
}

impl Correlation {
    /// Computes the correlation of two quantities. `x` and `y` have one value per object, in the same order.
    ///
    /// # Errors
    /// [`Error::Shape`] if the numbers of values differ; [`Error::Config`] for fewer than two objects;
    /// [`Error::NonFinite`] for a value that isn't finite (leave objects with a reward of 0 out of the test
    /// set).
    pub fn between(x: &[f64], y: &[f64]) -> Result<Self> {
        let remedy = "give two lists with one figure per object";
        check_len("the second of two figures to correlate", x.len(), y.len(), remedy)?;
        if x.len() < 2 {
            return Err(Error::config("the number of objects to correlate", x.len(), "at least two"));
        }
        if let Some(row) = (0..x.len()).find(|&row| !(x[row].is_finite() && y[row].is_finite())) {
            let figure = if x[row].is_finite() { y[row] } else { x[row] };
            let remedy = "give finite figures: leave out objects that have no reward or no probability";
            return Err(Error::non_finite("a figure to correlate", row, figure, remedy));
        }
        Ok(Self { pearson: pearson(x, y), spearman: pearson(&ranks(x), &ranks(y)) })
    }
}

fn pearson(x: &[f64], y: &[f64]) -> Option<f64> {
    let ((mean_x, sd_x), (mean_y, sd_y)) = (mean_and_sd(x), mean_and_sd(y));
    if x.iter().all(|v| *v == x[0]) || y.iter().all(|v| *v == y[0]) {
        return None;
    }
    let covariance: f64 =
        x.iter().zip(y).map(|(a, b)| (a - mean_x) * (b - mean_y)).sum::<f64>() / (x.len() - 1) as f64;
    // Rounding may give a correlation slightly outside of -1 to 1, so it is clamped.
    Some((covariance / (sd_x * sd_y)).clamp(-1.0, 1.0))
}

/// Returns the ranks of values, counted from 1. Equal values share their mean rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
    let mut out = vec![0.0; values.len()];
    let mut first = 0;
    for tied in order.chunk_by(|&i, &j| values[i] == values[j]) {
        let mean = first as f64 + (tied.len() + 1) as f64 / 2.0;
        for &i in tied {
            out[i] = mean;
        }
        first += tied.len();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_what_is_computed_by_hand() {
        // The means of the two lists are 3 and 4. The products of the differences from the means sum to 6,
        // and the squares of the differences sum to 10 in each list, so r = 6 / 10.
        let c = Correlation::between(&[1.0, 2.0, 3.0, 4.0, 5.0], &[3.0, 2.0, 5.0, 6.0, 4.0]).unwrap();
        let products = [-2.0 * -1.0, -1.0 * -2.0, 0.0, 2.0, 0.0].iter().sum::<f64>();
        assert!((c.pearson.unwrap() - products / (10f64 * 10.0).sqrt()).abs() < 1e-12);
        // The ranks of the second list are 2, 1, 4, 5, 3. These ranks differ from the ranks of the first list
        // by 1, 1, 1, 1, 2, so rho = 1 - 6 * 8 / (5 * 24).
        assert!((c.spearman.unwrap() - 0.6).abs() < 1e-12);
        assert_eq!(ranks(&[2.0, 1.0, 2.0, -0.0, 0.0]), [4.5, 3.0, 4.5, 1.5, 1.5]);
        let falling = Correlation::between(&[1.0, 2.0, 3.0], &[0.3, 0.2, 0.1]).unwrap();
        assert!((falling.pearson.unwrap() + 1.0).abs() < 1e-12);
        assert_eq!(Correlation::between(&[0.1; 3], &[1.0, 2.0, 3.0]).unwrap().pearson, None);
    }

    #[test]
    fn bad_input_is_refused() {
        assert!(matches!(Correlation::between(&[1.0], &[1.0, 2.0]), Err(Error::Shape { .. })));
        assert!(matches!(Correlation::between(&[1.0], &[1.0]), Err(Error::Config { .. })));
        let zero_reward = Correlation::between(&[1.0, 2.0], &[0.0, f64::NEG_INFINITY]);
        assert!(matches!(zero_reward, Err(Error::NonFinite { row: 1, .. })));
    }
}
