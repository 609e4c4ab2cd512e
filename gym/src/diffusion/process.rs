use gfn::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::rewards::positive;

/// The linear diffusion that a policy steers forwards and that a fixed backward kernel reverses.
///
/// Every process starts in the origin and runs over one unit of time in steps of `dt = 1 / steps`. The
/// discretisation is exact.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessKind {
    /// The Brownian motion `dx = sigma dW`, whose end follows N(0, sigma^2). Given the end, the process is a
    /// Brownian bridge (Zhang and Chen, *Path Integral Sampler*, 2022; Sendera et al. 2024).
    PinnedBrownian,
    /// The Ornstein-Uhlenbeck process `dx = -rate x dt + sigma dW`, whose end follows N(0, sigma^2 (1 -
    /// exp(-2 rate)) / (2 rate)).
    OrnsteinUhlenbeck {
        /// The rate at which the process forgets its state, per unit of time.
        rate: f64,
    },
    /// The variance-preserving process (Vargas et al., *Denoising Diffusion Samplers*, 2023). The first step
    /// draws from N(0, sigma^2), and all later steps keep this distribution: `x' = sqrt(1 - beta) x + sigma
    /// sqrt(beta) e`, with e standard normal. The number beta falls linearly from `beta_max` at the second
    /// step to `beta_min` at the last.
    VariancePreserving {
        /// The beta of the last step, which leads to the sample.
        beta_min: f64,
        /// The largest beta, which belongs to the second step. The first step has no beta: it draws from N(0,
        /// sigma^2).
        beta_max: f64,
    },
}

/// A step of the process under a drift u: `x' ~ N(decay x + gain u, sd^2)`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ForwardKernel {
    /// The factor of the current point in the mean of the next point.
    pub decay: f64,
    /// The factor of the drift in the mean of the next point.
    pub gain: f64,
    /// The standard deviation of each coordinate of the next point.
    pub sd: f64,
}

/// The reverse of a step of the process without drift: given the later point x', the earlier point is `x ~
/// N(shrink x', sd^2)`. The step back to the origin is a point mass, with `shrink = sd = 0`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BackwardKernel {
    /// The factor of the later point in the mean of the earlier point.
    pub shrink: f64,
    /// The standard deviation of each coordinate of the earlier point.
    pub sd: f64,
}

/// A linear diffusion that starts in the origin and takes a number of steps, forwards and in reverse.
///
/// Without drift, step k is `x' = a_k x + b_k e` with e standard normal, and v_k is the variance of each
/// coordinate after k steps (`v_0 = 0`, `v_{k+1} = a_k^2 v_k + b_k^2`). The reverse of the step is `x | x' ~
/// N(a_k v_k / v_{k+1} x', v_k b_k^2 / v_{k+1})`. For the pinned Brownian motion this reverse is the Brownian
/// bridge of variance `sigma^2 dt (t - dt) / t` around `x' (t - dt) / t`. The drift's factor is `b_k^2 /
/// sigma^2` at step k, which is dt for the pinned Brownian motion.
///
/// Without drift, the forward and backward kernels satisfy trajectory balance for the target N(0, v_T), with
/// T the number of steps.
///
/// torchgfn scales the forward kernel by `sqrt(t_scale)` but not the bridge, so that its backward kernel
/// isn't the reverse of its forward kernel. Here the scale is part of sigma.
///
/// ```
/// use gfn_gym::diffusion::{Process, ProcessKind};
/// let process = Process::new(ProcessKind::PinnedBrownian, 5.0, 32)?;
/// assert!((process.forward(3).sd - 5.0 / 32f64.sqrt()).abs() < 1e-12);
/// assert!((process.backward(2).sd - 0.625).abs() < 1e-12);
/// assert_eq!(process.backward(1).sd, 0.0);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Process {
    kind: ProcessKind,
    sigma: f64,
    forward: Vec<ForwardKernel>,
    variances: Vec<f64>,
}

impl Process {
    /// Builds a process of this kind with `steps` steps.
    ///
    /// # Errors
    /// [`Error::Config`] if `steps` is 0, if sigma or a rate isn't positive and finite, and if the betas lie
    /// outside `(0, 1)` or `beta_min` exceeds `beta_max`.
    pub fn new(kind: ProcessKind, sigma: f64, steps: usize) -> Result<Self> {
        if steps == 0 || u32::try_from(steps).is_err() {
            let expected = "at least one step, and fewer than 2^32 steps";
            return Err(Error::config("the process's number of steps", steps, expected));
        }
        positive("the process's sigma", sigma)?;
        let dt = 1.0 / steps as f64;
        let coefficients: Box<dyn Fn(usize) -> (f64, f64)> = match kind {
            ProcessKind::PinnedBrownian => Box::new(move |_| (1.0, sigma * sigma * dt)),
            ProcessKind::OrnsteinUhlenbeck { rate } => {
                positive("the process's rate", rate)?;
                let decay = (-rate * dt).exp();
                // The function `exp_m1` keeps the precision of the variance if the rate is small.
                let variance = sigma * sigma * -(-2.0 * rate * dt).exp_m1() / (2.0 * rate);
                Box::new(move |_| (decay, variance))
            }
            ProcessKind::VariancePreserving { beta_min, beta_max } => {
                if !(beta_min > 0.0 && beta_min <= beta_max && beta_max < 1.0) {
                    return Err(Error::config(
                        "the process's betas",
                        format!("{beta_min} and {beta_max}"),
                        "0 < beta_min <= beta_max < 1",
                    ));
                }
                let last = steps.saturating_sub(2).max(1) as f64;
                let beta = move |step: usize| beta_max + (beta_min - beta_max) * (step - 1) as f64 / last;
                Box::new(move |step| match step {
                    0 => (0.0, sigma * sigma),
                    step => ((1.0 - beta(step)).sqrt(), sigma * sigma * beta(step)),
                })
            }
        };
        let mut variances = vec![0.0];
        let mut forward = Vec::with_capacity(steps);
        for step in 0..steps {
            let (decay, variance) = coefficients(step);
            forward.push(ForwardKernel { decay, gain: variance / (sigma * sigma), sd: variance.sqrt() });
            variances.push(decay * decay * variances[step] + variance);
        }
        Ok(Self { kind, sigma, forward, variances })
    }

    /// The kind of the process, with its settings.
    #[must_use]
    pub fn kind(&self) -> ProcessKind {
        self.kind
    }

    /// Returns sigma, the scale of the noise of the process.
    #[must_use]
    pub fn sigma(&self) -> f64 {
        self.sigma
    }

    /// Returns the number of steps that the process takes.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.forward.len()
    }

    /// The variance of each coordinate after `step` steps without drift.
    ///
    /// # Panics
    /// Panics if the process has fewer than `step` steps.
    #[must_use]
    pub fn variance(&self, step: usize) -> f64 {
        self.variances[step]
    }

    /// Returns the kernel of the step that follows the first `step` steps. After the last step of the process
    /// the kernel is a point mass at the current point.
    #[must_use]
    pub fn forward(&self, step: usize) -> ForwardKernel {
        self.forward.get(step).copied().unwrap_or(ForwardKernel { decay: 1.0, gain: 0.0, sd: 0.0 })
    }

    /// Returns the kernel of the backward step from the state after `step` steps to the state after `step -
    /// 1` steps. A `step` of 0, which has no earlier state, gives a point mass at the origin.
    ///
    /// # Panics
    /// Panics if the process has fewer than `step` steps.
    #[must_use]
    pub fn backward(&self, step: usize) -> BackwardKernel {
        if step == 0 {
            return BackwardKernel { shrink: 0.0, sd: 0.0 };
        }
        let ForwardKernel { decay, sd, .. } = self.forward[step - 1];
        let before = self.variances[step - 1];
        let after = self.variances[step];
        BackwardKernel { shrink: decay * before / after, sd: sd * (before / after).sqrt() }
    }
}
