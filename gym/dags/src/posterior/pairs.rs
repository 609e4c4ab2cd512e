use std::path::Path;

use gfn::metrics::Correlation;
use gfn::{Error, Result};

/// A matrix with a number for each ordered pair of nodes, such as the probability of an edge between them.
///
/// ```
/// use gfn_dags::PairMatrix;
/// let mut scores = PairMatrix::zeros(3);
/// scores.set(0, 1, 0.9);
/// scores.set(1, 2, 0.4);
/// scores.set(2, 1, 0.5);
/// let found = scores.detection(&[(0, 1), (1, 2)])?;
/// // The pair (2, 1) isn't an edge, but has a higher number than the edge (1, 2).
/// assert!((found.auroc - 7.0 / 8.0).abs() < 1e-12);
/// assert!((found.auprc - (1.0 + 2.0 / 3.0) / 2.0).abs() < 1e-12);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct PairMatrix {
    n: usize,
    values: Vec<f64>,
}

/// The areas under two curves, which measure how well the entries of a [`PairMatrix`] separate the edges of a
/// known graph from other pairs of nodes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Detection {
    /// The area under the receiver operating characteristic. This area is the probability that the matrix
    /// entry of a random edge is larger than that of a random pair that isn't an edge. Equal entries count
    /// half.
    pub auroc: f64,
    /// The area under the precision-recall curve (average precision). Pairs whose entries in the matrix are
    /// equal are one step of the curve.
    pub auprc: f64,
}

impl PairMatrix {
    /// Creates a matrix of zeros for `n` nodes.
    #[must_use]
    pub fn zeros(n: usize) -> Self {
        Self { n, values: vec![0.0; n * n] }
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.n
    }

    /// Returns the matrix entry for a pair of nodes.
    ///
    /// # Panics
    /// If one of the nodes doesn't exist.
    #[must_use]
    pub fn get(&self, source: usize, target: usize) -> f64 {
        assert!(source.max(target) < self.n, "pair ({source}, {target}) of {} nodes", self.n);
        self.values[source * self.n + target]
    }

    /// Sets the matrix entry for a pair of nodes.
    ///
    /// # Panics
    /// If one of the nodes doesn't exist.
    pub fn set(&mut self, source: usize, target: usize, value: f64) {
        assert!(source.max(target) < self.n, "pair ({source}, {target}) of {} nodes", self.n);
        self.values[source * self.n + target] = value;
    }

    pub(super) fn add(&mut self, source: usize, target: usize, value: f64) {
        self.values[source * self.n + target] += value;
    }

    /// Returns all entries of the matrix, row by row. Each source has a row.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Returns the entries for pairs of different nodes, row by row.
    #[must_use]
    pub fn off_diagonal(&self) -> Vec<f64> {
        self.off_diagonal_places().map(|k| self.values[k]).collect()
    }

    fn off_diagonal_places(&self) -> impl Iterator<Item = usize> + use<> {
        let n = self.n;
        (0..n * n).filter(move |k| k / n != k % n)
    }

    fn check(&self, n: usize) -> Result<()> {
        let expected = vec![self.n as i64; 2];
        let got = vec![n as i64; 2];
        let other = || {
            Error::shape(
                "pairs of nodes to compare",
                expected,
                got,
                "compare numbers for pairs of the same nodes",
            )
        };
        if self.n == n { Ok(()) } else { Err(other()) }
    }

    /// Computes the root mean squared difference of two matrices over pairs of different nodes.
    ///
    /// # Errors
    /// [`Error::Shape`] for matrices of different sizes.
    pub fn rmse(&self, other: &Self) -> Result<f64> {
        self.check(other.n)?;
        let mine = self.off_diagonal();
        let others = other.off_diagonal();
        let squares: f64 = mine.iter().zip(&others).map(|(a, b)| (a - b).powi(2)).sum();
        Ok((squares / mine.len().max(1) as f64).sqrt())
    }

    /// Computes Pearson's correlation of two matrices over pairs of different nodes. Returns `None` if one
    /// of the matrices is constant over these pairs.
    ///
    /// # Errors
    /// [`Error::Shape`] for matrices of different sizes; errors of [`Correlation::between`].
    pub fn pearson(&self, other: &Self) -> Result<Option<f64>> {
        self.check(other.n)?;
        Ok(Correlation::between(&self.off_diagonal(), &other.off_diagonal())?.pearson)
    }

    /// Computes the Brier score of the entries as probabilities of edges: the mean over ordered pairs of
    /// different nodes of the squared difference from 1 for known edges, and from 0 for other pairs.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for an edge with an unknown node.
    pub fn brier(&self, truth: &[(u32, u32)]) -> Result<f64> {
        let values = edge_set(self.n, truth)?.into_iter().map(|edge| f64::from(u8::from(edge))).collect();
        Ok(self.rmse(&Self { n: self.n, values })?.powi(2))
    }

    /// Measures how well the entries separate known edges from other ordered pairs of nodes. The known
    /// edges may form a cycle, as in a consensus network (Sachs et al. 2005).
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for an edge with an unknown node; [`Error::Config`] if no pair or every pair
    /// is an edge; [`Error::NonFinite`] for an entry that isn't finite.
    pub fn detection(&self, truth: &[(u32, u32)]) -> Result<Detection> {
        let known = edge_set(self.n, truth)?;
        let mut pairs: Vec<(f64, bool)> =
            self.off_diagonal_places().map(|k| (self.values[k], known[k])).collect();
        if let Some(row) = pairs.iter().position(|(value, _)| !value.is_finite()) {
            let value = pairs[row].0;
            return Err(Error::non_finite(
                "the number of a pair",
                row,
                value,
                "give a number that isn't NaN for each pair",
            ));
        }
        let positives = pairs.iter().filter(|(_, edge)| *edge).count();
        if positives == 0 || positives == pairs.len() {
            let expected = "at least one pair with an edge, and at least one pair without";
            return Err(Error::config(
                "the known edges",
                format!("{positives} of {} pairs", pairs.len()),
                expected,
            ));
        }
        let negatives = (pairs.len() - positives) as f64;
        let positives = positives as f64;
        pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut hits = 0.0;
        let mut misses = 0.0;
        let mut auroc = 0.0;
        let mut auprc = 0.0;
        for tied in pairs.chunk_by(|a, b| a.0 == b.0) {
            let here = tied.iter().filter(|(_, edge)| *edge).count() as f64;
            let others = tied.len() as f64 - here;
            auroc += here * (negatives - misses - others + others / 2.0);
            hits += here;
            misses += others;
            auprc += here * hits / (hits + misses);
        }
        Ok(Detection { auroc: auroc / (positives * negatives), auprc: auprc / positives })
    }

    /// Computes a 95 % confidence interval of each entry by Wilson's method. Each entry must be a share of
    /// `samples` independent samples, for example of graphs of a policy. Returns the lower ends, then the
    /// upper ends.
    ///
    /// The intervals cover the noise of sampling only. If the policy differs from the posterior, the
    /// posterior's probability can be far outside: compare with [`EdgeMarginals`](crate::EdgeMarginals).
    ///
    /// ```
    /// use gfn_dags::PairMatrix;
    /// let mut shares = PairMatrix::zeros(2);
    /// shares.set(0, 1, 0.5);
    /// let (low, high) = shares.intervals(100)?;
    /// assert!((low.get(0, 1) - 0.4038).abs() < 1e-4 && (high.get(0, 1) - 0.5962).abs() < 1e-4);
    /// assert!(low.get(1, 0) == 0.0 && high.get(1, 0) > 0.03);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] for 0 samples, and for an entry that isn't between 0 and 1.
    pub fn intervals(&self, samples: usize) -> Result<(Self, Self)> {
        // The 97.5 % quantile of the normal distribution.
        const Z: f64 = 1.959_963_984_540_054;
        if samples == 0 {
            return Err(Error::config("the number of samples of edge probabilities", 0, "at least 1"));
        }
        // Sums of weights may exceed 1 by rounding.
        if let Some(value) = self.values.iter().find(|value| !(0.0..=1.0 + 1e-9).contains(*value)) {
            let expected = "shares of samples, from 0 to 1";
            return Err(Error::config("an edge probability", value, expected));
        }
        let n = samples as f64;
        let end = |p: f64, sign: f64| {
            let p = p.min(1.0);
            let centre = p + Z * Z / (2.0 * n);
            let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
            let end = (centre + sign * half) / (1.0 + Z * Z / n);
            // Rounding must not exclude the share itself, if it is 0 or 1.
            if sign > 0.0 { end.max(p).min(1.0) } else { end.min(p).max(0.0) }
        };
        let ends = |sign: f64| {
            let mut out = Self::zeros(self.n);
            for k in self.off_diagonal_places() {
                out.values[k] = end(self.values[k], sign);
            }
            out
        };
        Ok((ends(-1.0), ends(1.0)))
    }

    /// Computes a 95 % confidence interval of each entry from independent runs, such as Markov chains or
    /// policies with different seeds: the mean over the runs plus and minus the t quantile times the standard
    /// error, cut at 0 and 1. Each entry of a run is a share of `samples` samples; give the effective
    /// number of weighted or correlated samples. An interval contains that of all samples together
    /// ([`intervals`](Self::intervals)), so it has a width even if all runs agree. Returns the lower ends,
    /// then the upper ends.
    ///
    /// The intervals cover what differs between the runs. They don't cover an error that all runs share.
    ///
    /// ```
    /// use gfn_dags::PairMatrix;
    /// let mut runs = [PairMatrix::zeros(2), PairMatrix::zeros(2)];
    /// runs[0].set(0, 1, 0.50);
    /// runs[1].set(0, 1, 0.52);
    /// let (low, high) = PairMatrix::intervals_between(&runs, 100)?;
    /// // With two runs the t quantile is 12.706, and the standard error is 0.01.
    /// assert!((low.get(0, 1) - 0.38294).abs() < 1e-4 && (high.get(0, 1) - 0.63706).abs() < 1e-4);
    /// // Both runs lack the other edge in all of 200 samples: z^2 / (200 + z^2) with z = 1.96.
    /// assert!(low.get(1, 0) == 0.0 && (high.get(1, 0) - 0.018845).abs() < 1e-6);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] for fewer than two runs; [`Error::Shape`] for matrices of different sizes; errors of
    /// [`intervals`](Self::intervals).
    pub fn intervals_between(runs: &[Self], samples: usize) -> Result<(Self, Self)> {
        // The 97.5 % quantiles of the t distribution with 1 to 10 degrees of freedom. The last is used for
        // more degrees of freedom, too, which makes intervals a little too wide.
        const T: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
        if runs.len() < 2 {
            return Err(Error::config("the number of runs of an interval", runs.len(), "at least 2"));
        }
        let count = runs.len() as f64;
        let t = T[(runs.len() - 2).min(T.len() - 1)];
        let mut mean = Self::zeros(runs[0].n);
        for run in runs {
            runs[0].check(run.n)?;
        }
        for (k, mean) in mean.values.iter_mut().enumerate() {
            *mean = runs.iter().map(|run| run.values[k]).sum::<f64>() / count;
        }
        let (mut low, mut high) = mean.intervals(samples * runs.len())?;
        for k in mean.off_diagonal_places() {
            let mean = mean.values[k];
            let squares = runs.iter().map(|run| (run.values[k] - mean).powi(2)).sum::<f64>();
            let half = t * (squares / (count - 1.0) / count).sqrt();
            low.values[k] = (mean - half).max(0.0).min(low.values[k]);
            high.values[k] = (mean + half).min(1.0).max(high.values[k]);
        }
        Ok((low, high))
    }

    /// Returns the edges whose probability is at least `threshold` as a directed graph in the DOT language of
    /// Graphviz. The label of an edge is its probability, and more probable edges have thicker lines.
    ///
    /// ```
    /// use gfn_dags::PairMatrix;
    /// let mut edges = PairMatrix::zeros(2);
    /// edges.set(0, 1, 0.75);
    /// edges.set(1, 0, 0.25);
    /// let dot = edges.to_dot(&["raf".into(), "mek".into()], 0.5)?;
    /// assert!(dot.contains(r#""raf" -> "mek" [label="0.75", penwidth=3.00];"#) && !dot.contains("0.25"));
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] unless each node has a name; [`Error::Config`] for a threshold that isn't above 0 and
    /// at most 1.
    pub fn to_dot(&self, names: &[String], threshold: f64) -> Result<String> {
        self.check(names.len())?;
        if !(threshold > 0.0 && threshold <= 1.0) {
            return Err(Error::config(
                "the threshold of edges",
                threshold,
                "a probability above 0 and at most 1",
            ));
        }
        let quoted = |name: &String| format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""));
        let mut lines: Vec<String> = names.iter().map(|name| format!("  {};", quoted(name))).collect();
        for k in self.off_diagonal_places().filter(|&k| self.values[k] >= threshold) {
            let edge = format!("{} -> {}", quoted(&names[k / self.n]), quoted(&names[k % self.n]));
            let p = self.values[k];
            lines.push(format!("  {edge} [label=\"{p:.2}\", penwidth={:.2}];", 4.0 * p));
        }
        Ok(format!("digraph {{\n{}\n}}\n", lines.join("\n")))
    }

    /// Returns the matrix as CSV. The header has the names of the targets. Each further line belongs to a
    /// source and begins with the source's name.
    ///
    /// # Errors
    /// [`Error::Shape`] unless each node has a name.
    pub fn to_csv(&self, names: &[String]) -> Result<String> {
        self.check(names.len())?;
        let plain = |name: &str| !name.contains([',', '"', '\n', '\r']);
        let quoted = |name: &String| match name.replace('"', "\"\"") {
            name if plain(&name) => name,
            name => format!("\"{name}\""),
        };
        let line = |first: String, rest: Vec<String>| [vec![first], rest].concat().join(",") + "\n";
        let header = line("source".into(), names.iter().map(quoted).collect());
        let rows = names.iter().zip(self.values.chunks_exact(self.n.max(1)));
        let rows = rows.map(|(name, row)| line(quoted(name), row.iter().map(f64::to_string).collect()));
        Ok(std::iter::once(header).chain(rows).collect())
    }

    /// Writes the matrix to a CSV file, in the format of [`to_csv`](Self::to_csv).
    ///
    /// # Errors
    /// Errors of [`to_csv`](Self::to_csv); [`Error::Io`] if the file can't be written.
    pub fn write_csv(&self, path: impl AsRef<Path>, names: &[String]) -> Result<()> {
        let path = path.as_ref();
        std::fs::write(path, self.to_csv(names)?).map_err(|source| Error::io(path, source))
    }
}

/// Returns one flag per ordered pair of nodes, row by row: `true` if the pair is one of the edges.
pub(super) fn edge_set(n: usize, edges: &[(u32, u32)]) -> Result<Vec<bool>> {
    let mut out = vec![false; n * n];
    for &(a, b) in edges {
        let a = a as usize;
        let b = b as usize;
        if a.max(b) >= n {
            return Err(Error::out_of_range(a.max(b), n));
        }
        out[a * n + b] = true;
    }
    Ok(out)
}
