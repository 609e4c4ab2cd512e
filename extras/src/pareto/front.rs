use super::check_finite;
use gfn::Result;
use gfn::env::Reals;

/// Returns the indices of the objective vectors that no other vector dominates, in ascending order. The
/// vectors are the rows of `objectives`. A vector dominates another one if it is at least as large in every
/// objective and larger in at least one objective. If several vectors are equal, only the first of them is
/// returned.
///
/// ```
/// use gfn::env::Reals;
/// use gfn_extras::pareto::pareto_front;
/// let objectives = Reals::from_rows([[1.0, 3.0], [2.0, 2.0], [1.0, 2.0], [3.0, 0.0], [2.0, 2.0]]);
/// assert_eq!(pareto_front(&objectives)?, [0, 1, 3]);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::NonFinite`](gfn::Error::NonFinite) for an objective that isn't finite.
pub fn pareto_front(objectives: &Reals) -> Result<Vec<usize>> {
    check_finite("an objective", objectives)?;
    let rows: Vec<&[f64]> = objectives.rows().collect();
    Ok(front_of(&rows))
}

/// Returns the indices of the objective vectors (`rows`) that no other vector dominates, in ascending order.
/// If several vectors are equal, only one of them is returned.
pub(in crate::pareto) fn front_of(rows: &[&[f64]]) -> Vec<usize> {
    // Objective vectors are visited in descending lexicographic order, so a vector comes after all vectors
    // that dominate it. One pass is therefore enough, and each vector is compared only with the front so far.
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|&i, &j| compare(rows[j], rows[i]));
    let mut front: Vec<usize> = Vec::new();
    for i in order {
        if !front.iter().any(|&j| covers(rows[j], rows[i])) {
            front.push(i);
        }
    }
    front.sort_unstable();
    front
}

/// Compares two objective vectors lexicographically.
fn compare(a: &[f64], b: &[f64]) -> std::cmp::Ordering {
    // The comparison uses `partial_cmp` instead of `total_cmp`, so that 0 and -0 are equal.
    let pairs = a.iter().zip(b).map(|(x, y)| x.partial_cmp(y).unwrap_or(std::cmp::Ordering::Equal));
    pairs.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
}

/// Returns `true` if `a` is at least as large as `b` in every objective.
pub(in crate::pareto) fn covers(a: &[f64], b: &[f64]) -> bool {
    a.iter().zip(b).all(|(x, y)| x >= y)
}
