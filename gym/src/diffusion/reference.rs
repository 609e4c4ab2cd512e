//! Policies without parameters: the process without drift, and the exact policy for a Gaussian target.

use gfn::env::{Direction, Rows};
use gfn::objective::Quantities;
use gfn::policy::{Evaluation, Policy};
use gfn::{Error, Result};
use tch::Tensor;

use super::{BackwardKernel, DiffusionSampling, DiffusionStates, ForwardKernel, GaussianSteps, Process};

/// Builds for each state, with its point x, a step with mean `shrink x + shift`. The closure `kernel` takes
/// the number of steps that the state has made, and returns shrink, shift and standard deviation.
fn steps(
    env: &DiffusionSampling,
    direction: Direction,
    states: &DiffusionStates,
    kernel: impl Fn(usize) -> (f64, f64, f64),
) -> GaussianSteps {
    let mut mean = Vec::with_capacity(states.len() * env.dim());
    let mut sds = Vec::with_capacity(states.len());
    for (&step, point) in states.steps.iter().zip(states.points.rows()) {
        let (shrink, shift, sd) = kernel(step as usize);
        // The shift is added even if it is 0, because the addition turns -0 into 0.
        mean.extend(point.iter().map(|x| shrink * x + shift));
        sds.push(sd);
    }
    GaussianSteps::new(env.dim(), direction, mean, sds)
}

/// Returns steps of the process without drift. A finished object stays at its point.
pub(super) fn forward_steps(env: &DiffusionSampling, states: &DiffusionStates) -> GaussianSteps {
    steps(env, Direction::Forward, states, |step| {
        let ForwardKernel { decay, sd, .. } = env.process().forward(step);
        (decay, 0.0, sd)
    })
}

/// Returns steps of the reversed process. A state that has made no step stays at the origin.
pub(super) fn backward_steps(env: &DiffusionSampling, states: &DiffusionStates) -> GaussianSteps {
    steps(env, Direction::Backward, states, |step| {
        let BackwardKernel { shrink, sd } = env.process().backward(step);
        (shrink, 0.0, sd)
    })
}

/// The policy that follows the process without drift. This policy is exact for the target N(0, v), with v the
/// variance at the end of the process. For other targets use the policy to fill replay buffers and to sample
/// backward trajectories from data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReferencePolicy;

impl Policy<DiffusionSampling> for ReferencePolicy {
    fn evaluate(
        &self,
        env: &DiffusionSampling,
        states: &DiffusionStates,
        _: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GaussianSteps>> {
        env.check_states(states)?;
        Ok(Evaluation::from_directions(wants, |direction| match direction {
            Direction::Forward => forward_steps(env, states),
            Direction::Backward => backward_steps(env, states),
        }))
    }
}

/// The exact policy for a target with independent coordinates N(mean, sd^2). Training finds this policy if
/// the standard deviation of P_F is learned freely.
///
/// The reversed process leads from the target to N(m_k, s_k^2) after k steps, so P_F from k to k + 1 is the
/// Gaussian `N(m_{k+1} + c s_{k+1}^2 / s_k^2 (x - m_k), s_{k+1}^2 b^2 / s_k^2)`, with c and b the shrink and
/// the standard deviation of the backward kernel. Therefore the trajectory balance residual of every
/// trajectory is log Z minus the log of the target's integral. Tests use this fact to check the kernels.
///
/// ```
/// use gfn::{metrics::estimate_log_z, Rng};
/// use gfn_gym::diffusion::{DiffusionSampling, Energy, Mixture, OptimalGaussian, Process, ProcessKind};
/// let env = DiffusionSampling::new(3, Process::new(ProcessKind::PinnedBrownian, 2.0, 10)?)?;
/// let target = Energy::new(std::sync::Arc::new(Mixture::gaussian(vec![1.0; 3], 0.5)?));
/// let policy = OptimalGaussian::new(&env, 1.0, 0.5)?;
/// let estimate = estimate_log_z(&env, &policy, &target, 10, &mut Rng::seeded(0))?;
/// assert!(estimate.log_z.abs() < 1e-9);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct OptimalGaussian {
    process: Process,
    /// The coefficients of each step of P_F: the factor of the current point, the shift, and the standard
    /// deviation.
    kernels: Vec<(f64, f64, f64)>,
}

impl OptimalGaussian {
    /// Builds the policy for a target whose coordinates all have this mean and this standard deviation.
    ///
    /// # Errors
    /// [`Error::Config`] unless the mean is finite and the standard deviation is positive and finite.
    pub fn new(env: &DiffusionSampling, mean: f64, sd: f64) -> Result<Self> {
        if !(mean.is_finite() && sd > 0.0 && sd.is_finite()) {
            let got = format!("{mean} and {sd}");
            let expected = "a finite mean and a positive standard deviation";
            return Err(Error::config("the Gaussian's mean and standard deviation", got, expected));
        }
        let steps = env.process().steps();
        let mut m = mean;
        let mut s2 = sd * sd;
        let mut kernels = vec![(0.0, 0.0, 0.0); steps];
        for step in (0..steps).rev() {
            let BackwardKernel { shrink, sd } = env.process().backward(step + 1);
            let before_m = shrink * m;
            let before_s2 = shrink * shrink * s2 + sd * sd;
            kernels[step] = match step {
                0 => (0.0, m, s2.sqrt()),
                _ => {
                    let slope = shrink * s2 / before_s2;
                    (slope, m - slope * before_m, sd * (s2 / before_s2).sqrt())
                }
            };
            (m, s2) = (before_m, before_s2);
        }
        Ok(Self { process: env.process().clone(), kernels })
    }
}

impl Policy<DiffusionSampling> for OptimalGaussian {
    fn evaluate(
        &self,
        env: &DiffusionSampling,
        states: &DiffusionStates,
        _: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GaussianSteps>> {
        if *env.process() != self.process {
            return Err(Error::config(
                "the environment's process",
                format!("{:?} in {} steps", env.process().kind(), env.process().steps()),
                "the process that the policy was built for, with the same sigma and number of steps",
            ));
        }
        env.check_states(states)?;
        let kernel = |step| self.kernels.get(step).copied().unwrap_or((1.0, 0.0, 0.0));
        Ok(Evaluation::from_directions(wants, |direction| match direction {
            Direction::Forward => steps(env, direction, states, kernel),
            Direction::Backward => backward_steps(env, states),
        }))
    }
}
