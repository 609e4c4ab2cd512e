//! Directions of focus that objects can reach, and a wide cone for training, which guides molecules into the
//! narrow cone that is reported.

use gfn::env::{Reals, Rows};
use gfn_extras::condition::{Directions, Focus, cosine_of};

/// The number by which rewards are multiplied on the surface of the reported cone, before they are raised to
/// the power beta.
const SURFACE: f64 = 0.8;
/// The power that turns the reported cone into the wider cone of training. The cosine of the cone and
/// `SURFACE` are both raised to this power.
const WIDTH: i32 = 20;

/// Returns the focus that a policy is trained with. The cone of this focus is wider than the reported cone of
/// `cosine`: the cosine and `SURFACE` are both raised to the power `WIDTH`.
///
/// The reported cone is too narrow for training. A cone with a cosine of 0.98 contains less than 3 % of the
/// directions of four objectives. Most batches would have hardly any object inside the cone, and all objects
/// outside of the cone have the same log-reward. If every objective is between `least` and 1, no object
/// outside of the trained cone has a larger reward than an object inside.
pub(crate) fn focus(cosine: f64, beta: f64, least: f64, directions: Directions) -> Focus {
    let limit = SURFACE.powi(WIDTH);
    Focus { cosine: cosine.powi(WIDTH), limit, outside: beta * (least * limit).ln(), directions }
}

/// Returns at most `n` rows whose directions are far apart. The selection begins with the first row, and
/// repeatedly adds the row whose direction is farthest from the directions of all chosen rows. Takes O(n^2
/// rows) time.
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
