//! Sampling from densities by controlled diffusions.
//!
//! | part | meaning |
//! |---|---|
//! | [`DiffusionSampling`] | the environment: points that take Gaussian steps from the origin |
//! | [`Process`] | pinned Brownian, Ornstein-Uhlenbeck or variance-preserving steps, and their reversal |
//! | [`DiffusionPolicy`] | a policy whose drift is a network of point and time (PIS-GradNet), with settings for a Langevin parametrisation, learned variances, and a fixed or learned P_B |
//! | [`ReferencePolicy`], [`OptimalGaussian`] | the policy without drift; the exact policy for a Gaussian target |
//! | [`Target`], [`Energy`] | a density with its gradient, and the reward that equals this density |
//! | [`Mala`] | local search by Langevin steps, for the replay buffer |
//!
//! | target | log Z | exact samples | gradient |
//! |---|---|---|---|
//! | [`Mixture`]: Gaussian, 2, 25, 9 and 40 modes | 0 | yes | analytic |
//! | [`Posterior`]: 9 modes over a prior of 25 | none, because the density has no finite integral | no | analytic |
//! | [`Funnel`] | 0 | yes | analytic |
//! | [`ManyWell`] | by quadrature | yes | analytic |
//! | [`CoxProcess`] (LGCP) | unknown | no | analytic |
//! | [`FromTensors`]: a closure or a TorchScript file | set by the user | no | autograd |

mod env;
mod kernel;
mod mala;
mod network;
mod policy;
mod process;
mod reference;
mod states;
mod target;

pub use env::DiffusionSampling;
pub use kernel::GaussianSteps;
pub use mala::{Mala, MalaConfig};
pub use network::GradNetConfig;
pub use policy::{BackwardSteps, DiffusionPolicy, DiffusionPolicyConfig};
pub use process::{BackwardKernel, ForwardKernel, Process, ProcessKind};
pub use reference::{OptimalGaussian, ReferencePolicy};
pub use states::DiffusionStates;
pub use target::{CoxProcess, Energy, FromTensors, Funnel, ManyWell, Mixture, Posterior, Target};
