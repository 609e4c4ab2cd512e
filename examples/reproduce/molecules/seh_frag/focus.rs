//! Directions of focus that can be reached, and a reward that guides molecules outside of a cone into it.

use gfn::env::{Reals, Rows};
use gfn_extras::condition::{Directions, Focus, cosine_of};

/// The factor of the reward on the surface of the reported cone, before it is raised to the power beta.
const SURFACE: f64 = 0.8;
/// The power to which the cosine and the factor of the reported cone are raised to give those of the trained
/// cone.
const WIDTH: i32 = 20;

/// Returns the focus by which a policy is trained. Its cone is wider than the reported cone of `cosine`: the
/// cosine and the factor on the surface are both raised to the power `WIDTH`. A cone of 0.98 contains less
/// than 3 % of the directions of four objectives, so most batches would have hardly any object inside, and
/// the same log-reward for all others. If each reward is at least `least` and at most 1, no object outside of
/// the trained cone has a larger reward than an object inside.
pub(crate) fn focus(cosine: f64, beta: f64, least: f64, directions: Directions) -> Focus {
    let limit = SURFACE.powi(WIDTH);
    Focus { cosine: cosine.powi(WIDTH), limit, outside: beta * (least * limit).ln(), directions }
}

/// Returns at most `n` rows whose directions are far apart: the first row, then repeatedly the row whose
/// direction is farthest from those of all chosen rows. Takes O(n^2 rows) time.
pub(crate) fn spread(objectives: &Reals, n: usize) -> Vec<Vec<f64>> {
    let mut chosen: Vec<Vec<f64>> = Vec::new();
    for _ in 0..n.min(objectives.len()) {
        let nearest = |row: &[f64]| {
            let cosines = chosen.iter().filter_map(|other| cosine_of(row, other));
            cosines.fold(f64::NEG_INFINITY, f64::max)
        };
        let next = objectives.rows().min_by(|a, b| nearest(a).total_cmp(&nearest(b))).map(<[f64]>::to_vec);
        chosen.extend(next);
    }
    chosen
}
