use gfn::env::{Reals, Rows};
use gfn::{Error, Result};

/// States of a diffusion: points, each with the number of steps that it has made.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffusionStates {
    /// The points of the states, `[n, d]`.
    pub points: Reals,
    /// The number of steps that each point has made, from 0 to the process's number of steps.
    pub steps: Vec<u32>,
}

impl DiffusionStates {
    /// Builds states from points that have all made `step` steps.
    #[must_use]
    pub fn at(points: Reals, step: usize) -> Self {
        let steps = vec![step as u32; points.len()];
        Self { points, steps }
    }

    /// Refuses states whose points have another dimension than `dim`, and states with more than `steps`
    /// steps.
    pub(super) fn check(&self, dim: usize, steps: usize) -> Result<()> {
        let got = [self.points.len(), self.points.width()];
        let expected = [self.steps.len(), dim];
        if got != expected {
            return Err(Error::shape(
                "the points of a diffusion's states",
                expected.map(|n| n as i64).to_vec(),
                got.map(|n| n as i64).to_vec(),
                "give one point of the environment's dimension for each state",
            ));
        }
        match self.steps.iter().position(|&step| step as usize > steps) {
            None => Ok(()),
            Some(row) => Err(Error::contract(
                "a state has made at most as many steps as the process has",
                format!("row {row} has made {} steps, but the process has {steps}", self.steps[row]),
            )),
        }
    }
}

impl Rows for DiffusionStates {
    fn len(&self) -> usize {
        self.steps.len()
    }
    fn select(&self, rows: &[usize]) -> Self {
        Self { points: self.points.select(rows), steps: rows.iter().map(|&row| self.steps[row]).collect() }
    }
    fn append(&mut self, mut other: Self) {
        self.points.append(other.points);
        self.steps.append(&mut other.steps);
    }
}
