//! The goal directions of `--focus`, and the cone around a goal direction, in which molecules are rewarded.
//! Training uses a wider cone than the cone in which samples are counted for the report. The wider cone
//! guides molecules into the narrow one.

use gfn::env::{Reals, Rows};
use gfn_extras::condition::{Directions, Focus, cosine_of};

/// The factor of the reward on the surface of the narrow cone, in which samples are counted for the report.
/// The factor is applied before the reward is raised to the power beta.
const SURFACE: f64 = 0.8;
/// The power that turns the narrow cone of the report into the wider cone of training. The cosine of the
/// narrow cone's angle and the factor `SURFACE` are both raised to this power.
const WIDTH: i32 = 20;

/// Returns the cone of goals for training. It is wider than the narrow cone that `cosine` defines, in which
/// samples are counted for the report: `cosine` and `SURFACE` are both raised to the power `WIDTH`.
///
/// The narrow cone can't be used for training. With a cosine of 0.98, it contains less than 3 % of all
/// directions in the space of four objectives. Most batches would have hardly any object inside. All objects
/// outside of a cone have the same log-reward, so the policy would learn hardly anything. If every objective
/// is between `least` and 1, no object outside of the wider cone has a larger reward than an object inside.
pub(crate) fn focus(cosine: f64, beta: f64, least: f64, directions: Directions) -> Focus {
    let limit = SURFACE.powi(WIDTH);
    Focus { cosine: cosine.powi(WIDTH), limit, outside: beta * (least * limit).ln(), directions }
}

/// Returns at most `n` of the objective vectors, which are the rows of `objectives`, with directions that are
/// far apart. The selection begins with the first vector, and repeatedly adds the vector whose direction is
/// farthest from the directions of all chosen vectors. The time is proportional to the number of rows times
/// n^2.
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
