//! Metrics of sets of objective vectors: the vectors that no other vector dominates, the volume that the
//! set dominates, and how well the set covers a given front.
//!
//! A row of [`Reals`] holds the objectives of one object. All objectives are to be maximised.

mod front;
mod hypervolume;
mod indicators;

pub use front::pareto_front;
pub use hypervolume::hypervolume;
pub use indicators::{focus_accuracy, inverted_generational_distance, r2_indicator, simplex_grid};

use gfn::env::{Reals, Rows};
use gfn::{Error, Result};

/// Returns an error for the first coordinate that isn't finite.
fn check_finite(what: &'static str, points: &Reals) -> Result<()> {
    match points.values().iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(place) => Err(Error::non_finite(
            what,
            place / points.width(),
            points.values()[place],
            "give finite objectives: leave out objects that have none",
        )),
    }
}

/// Returns an error unless the vector has as many entries as each point has coordinates, and all entries are
/// finite.
fn check_vector(what: &'static str, points: &Reals, vector: &[f64]) -> Result<()> {
    if vector.len() != points.width() {
        return Err(wrong_width(what, points.width(), vector.len()));
    }
    match vector.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(row) => {
            Err(Error::non_finite(what, row, vector[row], "give a finite number for each objective"))
        }
    }
}

fn wrong_width(what: &str, expected: usize, got: usize) -> Error {
    Error::shape(what, [expected as i64], [got as i64], "give one number for each objective")
}

/// Returns an error for an empty set of points, because the mean over an empty set isn't defined.
fn check_not_empty(what: &'static str, points: &Reals) -> Result<()> {
    if points.is_empty() { Err(Error::config(what, "none", "at least one")) } else { Ok(()) }
}
