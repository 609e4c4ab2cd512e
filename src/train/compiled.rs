//! The trainer's code for an environment, and where it is compiled.

use super::trainer::Beginning;
use super::{Batch, BatchScores, Ended, Fit, StepStats, Trainer};
use crate::Result;
use crate::env::{Env, VectorEnv};
use crate::graph::GraphEnv;
use crate::rollout::ReplayEnv;

/// An environment that a [`Trainer`] can train on.
///
/// For [`GraphEnv`] and [`VectorEnv`] the trainer is compiled in this library, so that programs compile fast. For any other environment it
/// is compiled in the program, and an empty implementation is enough: `impl TrainEnv for MyEnv {}`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` isn't an environment to train on yet",
    note = "if it implements `Env`, write `impl gfn::train::TrainEnv for MyEnv {{}}`",
    note = "rules become an environment by `.env()`, `VectorEnv::new` or `GraphEnv::new`"
)]
pub trait TrainEnv: ReplayEnv {
    /// Returns the trainer's functions for this environment. An implementation with this very body, never inlined, has them compiled in its
    /// own crate.
    #[doc(hidden)]
    fn trainer_code() -> TrainerCode<Self> {
        TrainerCode::new()
    }
}

impl TrainEnv for GraphEnv {
    #[inline(never)]
    fn trainer_code() -> TrainerCode<Self> {
        TrainerCode::new()
    }
}

impl TrainEnv for VectorEnv {
    #[inline(never)]
    fn trainer_code() -> TrainerCode<Self> {
        TrainerCode::new()
    }
}

type StepBy<'a, E> = &'a mut dyn FnMut(&mut Trainer<E>) -> Result<StepStats>;
type FitBy<E> = fn(Fit<'_, E>, &mut Trainer<E>, StepBy<'_, E>) -> Result<Ended>;

/// The functions of a [`Trainer`] that are much code: each is what the public method of its name calls.
#[doc(hidden)]
#[derive(Debug)]
pub struct TrainerCode<E: Env> {
    pub(super) begin: fn(Beginning<E>) -> Result<Trainer<E>>,
    pub(super) step: fn(&mut Trainer<E>) -> Result<StepStats>,
    pub(super) draw: fn(&mut Trainer<E>) -> Result<Batch<E>>,
    pub(super) score: fn(&mut Trainer<E>, &mut Batch<E>) -> Result<BatchScores>,
    pub(super) advance: fn(&mut Trainer<E>, Batch<E>, &BatchScores, f64) -> Result<StepStats>,
    pub(super) fit: FitBy<E>,
    pub(super) prefill: fn(&mut Trainer<E>, usize) -> Result<usize>,
    pub(super) save: fn(&Trainer<E>, &std::path::Path) -> Result<()>,
    pub(super) resume: fn(&mut Trainer<E>, &std::path::Path) -> Result<()>,
}

impl<E: TrainEnv> TrainerCode<E> {
    #[allow(clippy::new_without_default, reason = "a default would be compiled in the program")]
    pub fn new() -> Self {
        Self {
            begin: Trainer::begin,
            step: Trainer::make_step,
            draw: Trainer::draw_own,
            score: Trainer::score_own,
            advance: Trainer::advance_own,
            fit: |fit, trainer, step| fit.fit(trainer, step),
            prefill: Trainer::fill,
            save: Trainer::save_to,
            resume: Trainer::resume_from,
        }
    }
}
