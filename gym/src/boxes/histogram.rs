use gfn::env::{Reals, Rows};
use gfn::metrics::Distances;
use gfn::{Error, Result, Rng};

/// A histogram of points of the unit square, with a target probability for each of its cells.
///
/// The divergence of a finite sample is never 0. Compare the divergence with [`floor`](Self::floor), the
/// average divergence of an equal number of exact samples.
///
/// ```
/// use gfn::env::Reals;
/// use gfn_gym::boxes::GridHistogram;
/// let grid = GridHistogram::new(2, vec![0.25; 4])?;
/// assert_eq!(grid.counts(&Reals::from_rows([[0.1, 0.7], [1.0, 0.9]]))?, [0.0, 0.0, 1.0, 1.0]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GridHistogram {
    bins: usize,
    target: Vec<f64>,
    cumulative: Vec<f64>,
}

impl GridHistogram {
    /// Builds a histogram of `bins` by `bins` cells. `target` holds the probability of each cell; neighbours
    /// along the first axis are adjacent in it.
    ///
    /// # Errors
    /// [`Error::Shape`] if `bins` is 0, and unless there is one probability per cell.
    pub fn new(bins: usize, target: Vec<f64>) -> Result<Self> {
        if bins == 0 || target.len() != bins * bins {
            return Err(Error::shape(
                "the probabilities of the cells",
                [(bins * bins) as i64],
                [target.len() as i64],
                "give one probability for each of the bins * bins cells, and at least one bin",
            ));
        }
        let cumulative = target.iter().scan(0.0, |sum, p| {
            *sum += p;
            Some(*sum)
        });
        Ok(Self { bins, cumulative: cumulative.collect(), target })
    }

    /// Returns the target probability of each cell.
    #[must_use]
    pub fn target(&self) -> &[f64] {
        &self.target
    }

    /// Returns the number of these points in each cell. A point on a border between two cells belongs to the
    /// cell with the larger coordinates.
    ///
    /// # Errors
    /// [`Error::Contract`] for points that aren't in the square.
    pub fn counts(&self, points: &Reals) -> Result<Vec<f64>> {
        let mut counts = vec![0.0; self.target.len()];
        for (row, point) in points.rows().enumerate() {
            let (2, true) = (point.len(), point.iter().all(|x| (0.0..=1.0).contains(x))) else {
                let detail = format!("point {row} is {point:?}");
                return Err(Error::contract("points of a histogram lie in the square", detail));
            };
            let bin = |x: f64| ((x * self.bins as f64) as usize).min(self.bins - 1);
            counts[bin(point[1]) * self.bins + bin(point[0])] += 1.0;
        }
        Ok(counts)
    }

    /// Computes the Jensen-Shannon divergence (natural logarithm) between the histogram of these points and
    /// the target.
    ///
    /// # Errors
    /// The errors of [`counts`](Self::counts), and [`Error::Config`] if there is no point.
    pub fn jsd(&self, points: &Reals) -> Result<f64> {
        if points.is_empty() {
            return Err(Error::config("the points of a histogram", "none", "at least one point"));
        }
        self.jsd_of(&self.counts(points)?)
    }

    /// Computes the average Jensen-Shannon divergence between the histogram of `n` exact samples and the
    /// target. The average is taken over `repeats` draws of `n` samples.
    ///
    /// # Errors
    /// [`Error::Config`] if `n` or `repeats` is 0.
    pub fn floor(&self, n: usize, repeats: usize, rng: &mut Rng) -> Result<f64> {
        if n == 0 || repeats == 0 {
            let got = format!("{n} samples, {repeats} times");
            return Err(Error::config(
                "the noise floor",
                got,
                "at least one sample and at least one repetition",
            ));
        }
        let total = self.cumulative.last().copied().unwrap_or(1.0);
        let mut sum = 0.0;
        for _ in 0..repeats {
            let mut counts = vec![0.0; self.target.len()];
            for _ in 0..n {
                let u = rng.uniform() * total;
                let cell = self.cumulative.partition_point(|&c| c <= u);
                counts[cell.min(self.target.len() - 1)] += 1.0;
            }
            sum += self.jsd_of(&counts)?;
        }
        Ok(sum / repeats as f64)
    }

    fn jsd_of(&self, counts: &[f64]) -> Result<f64> {
        let n: f64 = counts.iter().sum();
        let shares: Vec<f64> = counts.iter().map(|count| count / n).collect();
        Ok(Distances::between(&shares, &self.target)?.jsd)
    }
}
