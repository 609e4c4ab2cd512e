use gfn::env::{Reals, Rows};
use gfn::{Error, Result};

use super::{check_finite, check_not_empty, check_vector, wrong_width};
use crate::condition::cosine_of;

/// Computes the inverted generational distance (IGD; Coello and Reyes Sierra 2004). This is the mean
/// distance from a point of a reference front to the nearest objective vector. The distance is 0 if the
/// objective vectors include the whole front.
///
/// ```
/// use gfn::env::Reals;
/// use gfn_extras::pareto::inverted_generational_distance;
/// let front = Reals::from_rows([[0.0, 1.0], [1.0, 0.0]]);
/// let found = Reals::from_rows([[0.0, 1.0], [0.0, 0.0]]);
/// assert_eq!(inverted_generational_distance(&found, &front)?, 0.5);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Config`] if one of the sets is empty; [`Error::Shape`] for sets of different widths;
/// [`Error::NonFinite`] for a coordinate that isn't finite.
pub fn inverted_generational_distance(objectives: &Reals, front: &Reals) -> Result<f64> {
    check_sets("the reference front", objectives, front)?;
    let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt();
    let nearest =
        |point: &[f64]| objectives.rows().map(|row| distance(point, row)).fold(f64::INFINITY, f64::min);
    Ok(front.rows().map(nearest).sum::<f64>() / front.len() as f64)
}

/// Computes the R2 indicator (Brockhoff, Wagner and Trautmann, 2012, *On the properties of the R2 indicator*)
/// of objective vectors y, given weight vectors w and a utopian point u. The weighted distance of y from u is
/// `max_k w_k |u_k - y_k|`. For each w, the smallest weighted distance of any y is taken. The indicator is
/// the mean of these distances over the weight vectors. Smaller values are better.
///
/// [`simplex_grid`] returns evenly spread weight vectors. recursionpharma/gflownet divides the sum of the
/// distances by the Frobenius norm of all weight vectors instead of their number. This differs from the
/// published definition, and the result depends on the number of vectors.
///
/// ```
/// use gfn::env::Reals;
/// use gfn_extras::pareto::{r2_indicator, simplex_grid};
/// let objectives = Reals::from_rows([[1.0, 0.5]]);
/// // The weighted distances for the weights (0, 1), (0.5, 0.5) and (1, 0) are 0.5, 0.25 and 0.
/// assert_eq!(r2_indicator(&objectives, &simplex_grid(2, 2)?, &[1.0, 1.0])?, 0.25);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Config`] if one of the sets is empty or a weight is negative; [`Error::Shape`] for vectors of
/// different widths; [`Error::NonFinite`] for a number that isn't finite.
pub fn r2_indicator(objectives: &Reals, weights: &Reals, utopia: &[f64]) -> Result<f64> {
    check_sets("the weight vectors", objectives, weights)?;
    check_vector("the utopian point", objectives, utopia)?;
    check_not_negative("the weights of the R2 indicator", weights.values())?;
    let far = |weights: &[f64], row: &[f64]| {
        let terms = weights.iter().zip(utopia.iter().zip(row)).map(|(w, (u, y))| w * (u - y).abs());
        terms.fold(0.0, f64::max)
    };
    let least = |w: &[f64]| objectives.rows().map(|row| far(w, row)).fold(f64::INFINITY, f64::min);
    Ok(weights.rows().map(least).sum::<f64>() / weights.len() as f64)
}

/// Returns all weight vectors for `n` objectives whose entries are multiples of `1 / steps` and sum to 1 (Das
/// and Dennis 1998), in lexicographic order.
///
/// # Errors
/// [`Error::Config`] for 0 objectives or 0 steps, for more than a million vectors, and for more than ten
/// million numbers in all vectors together.
pub fn simplex_grid(n: usize, steps: usize) -> Result<Reals> {
    const MOST: usize = 1_000_000;
    let refuse = |expected| Err(Error::config("a grid of weights", format!("{n}, {steps}"), expected));
    if n == 0 || steps == 0 {
        return refuse("at least one objective and one step");
    }
    // The number of vectors is a binomial coefficient. It is computed factor by factor, and each division is
    // exact.
    let mut count = 1usize;
    for k in 1..n {
        count = count.saturating_mul(steps.saturating_add(k)) / k;
        if count > MOST || count.saturating_mul(n) > 10 * MOST {
            return refuse("no more than a million vectors, and ten million numbers in all");
        }
    }
    let mut row = vec![0; n];
    row[n - 1] = steps;
    let mut values = Vec::with_capacity(count * n);
    for _ in 0..count {
        values.extend(row.iter().map(|&part| part as f64 / steps as f64));
        // The entries of `row` are whole numbers that sum to `steps`. For the next row in lexicographic
        // order, the last nonzero entry other than entry 0 is split: 1 of it is added to the entry before it,
        // and the rest becomes the last entry of the row.
        let Some(from) = (1..n).rev().find(|&k| row[k] > 0) else { break };
        let left = std::mem::take(&mut row[from]);
        row[from - 1] += 1;
        row[n - 1] = left - 1;
    }
    Reals::from_flat(n, values)
}

/// Computes the share of objective vectors that are in a cone around a direction. A vector is in the cone
/// if the cosine of the angle between the vector and the direction is at least `cosine`.
///
/// The zero vector has no direction, so it is outside of every cone.
///
/// ```
/// use gfn::env::Reals;
/// use gfn_extras::pareto::focus_accuracy;
/// let objectives = Reals::from_rows([[1.0, 1.1], [2.0, 2.0], [1.0, 0.0], [0.0, 0.0]]);
/// assert_eq!(focus_accuracy(&objectives, &[0.5, 0.5], 0.98)?, 0.5);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Config`] for an empty set of objective vectors, for a cosine that isn't between -1 and 1, and
/// for a direction that is zero; [`Error::Shape`] for a direction with another number of entries than the
/// objective vectors; [`Error::NonFinite`] for a number that isn't finite.
pub fn focus_accuracy(objectives: &Reals, direction: &[f64], cosine: f64) -> Result<f64> {
    check_not_empty("objective vectors", objectives)?;
    check_finite("an objective", objectives)?;
    check_vector("the direction of focus", objectives, direction)?;
    if !(-1.0..=1.0).contains(&cosine) {
        return Err(Error::config("the cosine of a focus", cosine, "a number from -1 to 1"));
    }
    if direction.iter().all(|x| *x == 0.0) {
        return Err(Error::config("the direction of focus", "only zeros", "a vector that isn't zero"));
    }
    let inside = objectives.rows().filter(|row| cosine_of(row, direction).is_some_and(|c| c >= cosine));
    Ok(inside.count() as f64 / objectives.len() as f64)
}

fn check_sets(what: &'static str, objectives: &Reals, other: &Reals) -> Result<()> {
    check_not_empty("objective vectors", objectives)?;
    check_not_empty(what, other)?;
    if other.width() != objectives.width() {
        return Err(wrong_width(what, objectives.width(), other.width()));
    }
    check_finite("an objective", objectives)?;
    check_finite(what, other)
}

fn check_not_negative(setting: &'static str, values: &[f64]) -> Result<()> {
    match values.iter().find(|value| **value < 0.0) {
        None => Ok(()),
        Some(bad) => Err(Error::config(setting, bad, "numbers of at least 0")),
    }
}
