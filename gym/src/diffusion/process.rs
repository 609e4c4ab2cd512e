use gfn::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::rewards::positive;

/// The linear diffusion that the forward kernels steer and the fixed backward kernels reverse.
///
/// All of them start in the origin and are discretised exactly over the unit of time, `dt = 1 / steps`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessKind {
    /// `dx = sigma dW`, which ends in N(0, sigma^2); pinned to the origin and to its end it is the Brownian
    /// bridge (Zhang and Chen, *Path Integral Sampler*, 2022; Sendera et al. 2024).
    PinnedBrownian,
    /// Ornstein-Uhlenbeck: `dx = -rate x dt + sigma dW`, which ends in N(0, sigma^2 (1 - exp(-2 rate)) / (2
    /// rate)).
    OrnsteinUhlenbeck {
        /// The rate at which the process forgets its state, per unit of time.
        rate: f64,
    },
    /// Variance-preserving (Vargas et al., *Denoising Diffusion Samplers*, 2023): the first step draws from
    /// N(0, sigma^2), all others keep that law, `x' = sqrt(1 - beta) x + sigma sqrt(beta) e`. beta falls in a
    /// straight line from the noise's end to the data's.
    VariancePreserving {
        /// beta of the last step, the one into the data.
        beta_min: f64,
        /// The largest beta, that of the second step. The first step has none: it draws from N(0, sigma^2).
        beta_max: f64,
    },
}

/// `x' ~ N(decay x + gain u, sd^2)`: one step of the process under a drift u.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ForwardKernel {
    /// The factor of the point.
    pub decay: f64,
    /// The factor of the drift.
    pub gain: f64,
    /// Standard deviation of each coordinate.
    pub sd: f64,
}

/// `x ~ N(shrink x', sd^2)`: one step of the process without drift, reversed. Into step 0 it is a point mass,
/// `shrink = sd = 0`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BackwardKernel {
    /// The factor of the point.
    pub shrink: f64,
    /// Standard deviation of each coordinate.
    pub sd: f64,
}

/// A linear diffusion from the origin in a number of steps, forwards and in reverse.
///
/// With `x' = a_k x + b_k e` from step k to k + 1, and v_k the variance after k steps (`v_0 = 0`,
/// `v_{k+1} = a_k^2 v_k + b_k^2`), the reversal is `x | x' ~ N(a_k v_k / v_{k+1} x', v_k b_k^2 / v_{k+1})`.
/// For the pinned Brownian motion that is the bridge of variance `sigma^2 dt (t - dt) / t` around
/// `x' (t - dt) / t`. A drift counts `b_k^2 / sigma^2` per step, which is dt there.
///
/// Without drift, forwards and backwards balance for the target N(0, v_T): log Z is then that of the target,
/// on every path.
///
/// torchgfn scales the forward kernel by `sqrt(t_scale)` but not the bridge, so that its backward kernel
/// isn't the reversal of its forward kernel. Here the scale is part of sigma.
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
    /// [`Error::Config`] for no step, a sigma or a rate that isn't positive and finite, and betas outside
    /// `(0, 1)` or out of order.
    pub fn new(kind: ProcessKind, sigma: f64, steps: usize) -> Result<Self> {
        if steps == 0 || u32::try_from(steps).is_err() {
            let expected = "at least one, and fewer than 2^32";
            return Err(Error::config("the process's number of steps", steps, expected));
        }
        positive("the process's sigma", sigma)?;
        let dt = 1.0 / steps as f64;
        let coefficients: Box<dyn Fn(usize) -> (f64, f64)> = match kind {
            ProcessKind::PinnedBrownian => Box::new(move |_| (1.0, sigma * sigma * dt)),
            ProcessKind::OrnsteinUhlenbeck { rate } => {
                positive("the process's rate", rate)?;
                let decay = (-rate * dt).exp();
                // expm1 keeps the digits of a slow process.
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

    /// The kind of process.
    #[must_use]
    pub fn kind(&self) -> ProcessKind {
        self.kind
    }

    /// The scale of its noise.
    #[must_use]
    pub fn sigma(&self) -> f64 {
        self.sigma
    }

    /// The number of steps.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.forward.len()
    }

    /// The variance of each coordinate after `step` steps without drift.
    ///
    /// # Panics
    /// If the process has fewer steps.
    #[must_use]
    pub fn variance(&self, step: usize) -> f64 {
        self.variances[step]
    }

    /// Returns the kernel from `step` to the next. After the last step it is a point mass that keeps its
    /// place.
    #[must_use]
    pub fn forward(&self, step: usize) -> ForwardKernel {
        self.forward.get(step).copied().unwrap_or(ForwardKernel { decay: 1.0, gain: 0.0, sd: 0.0 })
    }

    /// Returns the kernel of the backward move from the state after `step` steps to the state after `step -
    /// 1`. For `step` 0, which has no state before it, it is a point mass at the origin.
    ///
    /// # Panics
    /// If the process has fewer steps.
    #[must_use]
    pub fn backward(&self, step: usize) -> BackwardKernel {
        if step == 0 {
            return BackwardKernel { shrink: 0.0, sd: 0.0 };
        }
        let ForwardKernel { decay, sd, .. } = self.forward[step - 1];
        let (before, after) = (self.variances[step - 1], self.variances[step]);
        BackwardKernel { shrink: decay * before / after, sd: sd * (before / after).sqrt() }
    }
}
