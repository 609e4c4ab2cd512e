//! Distances between two sets of points: exact optimal transport, and maximum mean discrepancy.

use gfn::env::{Reals, Rows};
use gfn::{Error, Result};

/// Computes the 2-Wasserstein distance between two sets with the same number of points. Each point of one
/// set is paired with a point of the other set, such that the mean squared distance of the pairs is
/// minimal. The result is the square root of this mean.
///
/// The exact result is computed by the Hungarian method with potentials, which takes about `n^3` steps and
/// `8 n^2` bytes; 1,000 points take about a second. The distance between two samples of the same
/// distribution isn't 0. Compute such a distance, too, to judge the result by it.
///
/// ```
/// use gfn::env::Reals;
/// use gfn_extras::transport::wasserstein2;
/// let (a, b) = (Reals::from_rows([[0.0], [1.0]]), Reals::from_rows([[1.5], [0.5]]));
/// assert!((wasserstein2(&a, &b)? - 0.5).abs() < 1e-12);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Shape`] for sets of different sizes or dimensions, and for empty sets; [`Error::NonFinite`] for
/// a coordinate that isn't finite.
pub fn wasserstein2(a: &Reals, b: &Reals) -> Result<f64> {
    wasserstein2_watched(a, b, &mut || Ok(()))
}

/// Computes [`wasserstein2`], and calls `watch` once for every point of the first set. If `watch` returns an
/// error, the computation stops with this error, so that a user can cancel it.
///
/// # Errors
/// Errors of [`wasserstein2`] and of `watch`.
pub fn wasserstein2_watched(a: &Reals, b: &Reals, watch: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
    let n = a.len();
    if n == 0 || (n, a.width()) != (b.len(), b.width()) {
        return Err(Error::shape(
            "two sets of points to be paired",
            [n.max(1) as i64, a.width() as i64],
            [b.len() as i64, b.width() as i64],
            "give two sets of the same size and dimension",
        ));
    }
    let (a, b, unit) = in_units(a, b)?;
    let cost: Vec<f64> = a.rows().flat_map(|x| b.rows().map(|y| squared(x, y))).collect();
    let pairs = cheapest_matching(&cost, n, watch)?;
    let total: f64 = pairs.iter().enumerate().map(|(i, &j)| cost[i * n + j]).sum();
    Ok((total / n as f64).sqrt() * unit)
}

/// Computes the cheapest perfect matching of `n` rows with `n` columns. Returns the column that each row is
/// matched with. `costs` has the cost of every pair, row by row. The method (shortest augmenting paths;
/// Jonker and Volgenant 1987) takes about `n^3` steps. `watch` is called once for every row. If `watch`
/// returns an error, the search stops with this error.
///
/// ```
/// let costs = [1.0, 2.0, 0.0, 5.0];
/// assert_eq!(gfn_extras::transport::cheapest_matching(&costs, 2, &mut || Ok(()))?, [1, 0]);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Shape`] unless there are `n * n` costs; errors of `watch`.
pub fn cheapest_matching(
    costs: &[f64],
    n: usize,
    watch: &mut dyn FnMut() -> Result<()>,
) -> Result<Vec<usize>> {
    if costs.len() != n * n {
        let remedy = "give a cost for each pair of a row and a column";
        return Err(Error::shape("costs of a matching", [(n * n) as i64], [costs.len() as i64], remedy));
    }
    // Column `n` is an artificial column. Each new row is assigned to it first, and the search for a path to
    // a free column starts there.
    let none = n;
    let mut row_potential = vec![0.0; n];
    let mut column_potential = vec![0.0; n + 1];
    let mut row_of = vec![usize::MAX; n + 1];
    let mut shortest = vec![0.0; n];
    let mut from = vec![none; n];
    let mut done = vec![false; n + 1];
    for start in 0..n {
        watch()?;
        row_of[none] = start;
        let mut column = none;
        shortest.fill(f64::INFINITY);
        done.fill(false);
        while row_of[column] != usize::MAX {
            done[column] = true;
            let row = row_of[column];
            let mut step = f64::INFINITY;
            let mut next = none;
            let of_row = &costs[row * n..(row + 1) * n];
            for j in 0..n {
                if done[j] {
                    continue;
                }
                let reduced = of_row[j] - row_potential[row] - column_potential[j];
                if reduced < shortest[j] {
                    shortest[j] = reduced;
                    from[j] = column;
                }
                if shortest[j] < step {
                    step = shortest[j];
                    next = j;
                }
            }
            for j in 0..=n {
                if done[j] {
                    row_potential[row_of[j]] += step;
                    column_potential[j] -= step;
                } else if j < n {
                    shortest[j] -= step;
                }
            }
            column = next;
        }
        while column != none {
            let before = from[column];
            row_of[column] = row_of[before];
            column = before;
        }
    }
    let mut column_of = vec![0; n];
    for (j, &i) in row_of[..n].iter().enumerate() {
        column_of[i] = j;
    }
    Ok(column_of)
}

/// Computes an estimate of the squared maximum mean discrepancy between two sets of points, with a Gaussian
/// kernel. The estimate is unbiased (Gretton et al. 2012, eq. 3). The mean of the estimate is 0 for two
/// samples of the same distribution, so the estimate is sometimes negative.
///
/// The kernel is `exp(-|x - y|^2 / (2 h^2))`. Its width h is the median distance between points of the
/// second set, so the second set should be the sample of the target distribution.
///
/// # Errors
/// [`Error::Shape`] for a set of fewer than two points, and for sets of different dimensions;
/// [`Error::NonFinite`] for a coordinate that isn't finite.
pub fn maximum_mean_discrepancy(a: &Reals, b: &Reals) -> Result<f64> {
    if a.len() < 2 || b.len() < 2 || a.width() != b.width() {
        return Err(Error::shape(
            "two sets of points to be compared",
            [a.len().max(2) as i64, a.width() as i64],
            [b.len() as i64, b.width() as i64],
            "give two sets of the same dimension, of at least two points each",
        ));
    }
    // Dividing all coordinates by a common unit has no influence on the result, because the kernel's width is
    // proportional to the distances.
    let (a, b, _) = in_units(a, b)?;
    let a = &a;
    let b = &b;
    let pairs = (0..b.len()).flat_map(|i| (0..i).map(move |j| squared(b.row(i), b.row(j))));
    let mut distances: Vec<f64> = pairs.collect();
    let middle = distances.len() / 2;
    let (_, median, _) = distances.select_nth_unstable_by(middle, f64::total_cmp);
    // The median distance is 0 if many points coincide. The kernel's width h is then 1, in the unit of
    // `in_units`.
    let scale = if *median > 0.0 { -0.5 / *median } else { -0.5 };
    let kernel = |x: &[f64], y: &[f64]| (scale * squared(x, y)).exp();
    let within = |points: &Reals| {
        let n = points.len();
        let sum: f64 = (0..n)
            .flat_map(|i| (0..i).map(move |j| (i, j)))
            .map(|(i, j)| kernel(points.row(i), points.row(j)))
            .sum();
        2.0 * sum / (n * (n - 1)) as f64
    };
    let between: f64 = a.rows().map(|x| b.rows().map(|y| kernel(x, y)).sum::<f64>()).sum();
    Ok(within(a) + within(b) - 2.0 * between / (a.len() * b.len()) as f64)
}

fn squared(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// Divides the coordinates of two sets of points by a common unit, so that squares of coordinates neither
/// overflow nor underflow. The unit is about the largest coordinate, and is a power of two, so that the
/// division doesn't round. Returns both sets and the unit, or an error for a coordinate that isn't finite.
fn in_units(a: &Reals, b: &Reals) -> Result<(Reals, Reals, f64)> {
    check_finite(a)?;
    check_finite(b)?;
    let largest = a.values().iter().chain(b.values()).fold(0.0, |largest: f64, x| largest.max(x.abs()));
    // If all points are at the origin, `largest` is 0. A positive number replaces it, because 0 has no
    // logarithm.
    let exponent = largest.max(f64::MIN_POSITIVE).log2().floor() as i32;
    let unit = 2f64.powi(exponent.clamp(-1000, 1000));
    let scaled =
        |points: &Reals| Reals::from_flat(points.width(), points.values().iter().map(|x| x / unit).collect());
    Ok((scaled(a)?, scaled(b)?, unit))
}

fn check_finite(points: &Reals) -> Result<()> {
    match points.values().iter().position(|x| !x.is_finite()) {
        None => Ok(()),
        Some(k) => Err(Error::non_finite(
            "coordinate of a point",
            k / points.width(),
            points.values()[k],
            "compare points whose coordinates are finite",
        )),
    }
}
