use std::sync::Arc;

use gfn::env::{Reals, Reward, Rows, log_rewards};
use gfn::{Error, Result, Rng};
use gfn_extras::explore::{ObjectSearch, SearchResults};
use serde::{Deserialize, Serialize};

use super::kernel::Normals;
use super::target::{Target, check_dim, checked_gradient, checked_log_density, gradient, log_density};
use super::{DiffusionSampling, DiffusionStates};
use crate::rewards::positive;

/// Settings of a [`Mala`].
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct MalaConfig {
    /// The number of steps that each chain takes, burn-in included.
    pub steps: usize,
    /// The number of steps of each chain before its first point is kept. The step size is adapted during
    /// these steps, and stays fixed afterwards.
    pub burn_in: usize,
    /// The number of steps of a chain from one kept point to the next.
    pub thin: usize,
    /// The step size with which the adaptation begins.
    pub step_size: f64,
    /// The desired share of accepted proposals. The step size is adapted so that the chains reach this share.
    pub acceptance: f64,
}

impl Default for MalaConfig {
    /// Returns settings with 200 steps, of which the first 100 are burn-in and every tenth later point is
    /// kept, an acceptance of 0.574, and an initial step size of 0.01.
    fn default() -> Self {
        Self { steps: 200, burn_in: 100, thin: 10, step_size: 0.01, acceptance: 0.574 }
    }
}

/// The Metropolis-adjusted Langevin algorithm as a local search (Sendera et al. 2024). From each object a
/// chain makes proposals `x + h grad log R + sqrt(2 h) e`, with e a standard normal vector. Proposals are
/// accepted by the Metropolis-Hastings rule, which leaves the target's distribution unchanged.
///
/// All chains of a search share one step size, which is adapted to an acceptance of 0.574 by default (Roberts
/// and Rosenthal 1998). After the burn-in the step size is fixed, as detailed balance requires. (Other
/// libraries continue to adapt the step size.) A proposal of density 0 or NaN is never accepted.
///
/// The chains follow the target's density. The points that they find are recorded with the trainer's reward,
/// which may differ from that density. Evaluations of the density and of the reward both count as reward
/// calls.
///
/// ```
/// use gfn_gym::diffusion::{DiffusionSampling, Mala, MalaConfig, Mixture, Process, ProcessKind};
/// let env = DiffusionSampling::new(2, Process::new(ProcessKind::PinnedBrownian, 1.0, 10)?)?;
/// let mala = Mala::new(&env, std::sync::Arc::new(Mixture::two_modes()), MalaConfig::default())?;
/// // trainer.with_replay(buffer).with_refill(Search::new(mala, 100, 300)?)?
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone)]
pub struct Mala {
    target: Arc<dyn Target>,
    config: MalaConfig,
}

impl std::fmt::Debug for Mala {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mala").field("config", &self.config).finish_non_exhaustive()
    }
}

/// The rate at which the step size adapts: its log changes by this number times the difference between the
/// share of accepted proposals and the desired share.
const ADAPTATION: f64 = 0.2;

impl Mala {
    /// Builds a search whose chains follow the gradient of a target.
    ///
    /// # Errors
    /// [`Error::Config`] for a target of another dimension than the environment's, if the settings keep no
    /// point, if the step size isn't positive, and if the acceptance isn't in (0, 1).
    pub fn new(env: &DiffusionSampling, target: Arc<dyn Target>, config: MalaConfig) -> Result<Self> {
        check_dim(env, target.as_ref())?;
        let MalaConfig { steps, burn_in, thin, step_size, acceptance } = config;
        if thin == 0 || steps < burn_in + thin {
            return Err(Error::config(
                "the search's steps",
                format!("{steps} with a burn-in of {burn_in}, thinned by {thin}"),
                "a thinning of at least 1, and enough steps for at least one point after the burn-in",
            ));
        }
        positive("the search's step size", step_size)?;
        if !(acceptance > 0.0 && acceptance < 1.0) {
            return Err(Error::config("the search's acceptance", acceptance, "a rate between 0 and 1"));
        }
        Ok(Self { target, config })
    }

    /// Runs a chain from each of these points. Returns the kept points, their log-densities, and the share of
    /// proposals accepted after the burn-in.
    ///
    /// # Errors
    /// The errors of the target, and [`Error::Contract`] for a start whose density or gradient isn't finite.
    pub fn run(&self, start: &Reals, rng: &mut Rng) -> Result<(Reals, Vec<f64>, f64)> {
        let n = start.len();
        let width = start.width();
        let MalaConfig { steps, burn_in, thin, acceptance, .. } = self.config;
        let mut h = self.config.step_size;
        let mut x = start.clone();
        let mut log_p = checked_log_density(self.target.as_ref(), &x)?;
        let mut slope = checked_gradient(self.target.as_ref(), &x)?;
        let mut kept = (x.select(&[]), Vec::new());
        let mut normals = Normals::default();
        let mut accepted_later = 0usize;
        for step in 0..steps {
            let mut proposed = x.clone();
            for (y, g) in proposed.values_mut().iter_mut().zip(slope.values()) {
                *y += h * g + (2.0 * h).sqrt() * normals.next(rng);
            }
            let new_log_p = log_density(self.target.as_ref(), &proposed)?;
            let new_gradient = gradient(self.target.as_ref(), &proposed)?;
            let mut accepted = 0usize;
            for i in 0..n {
                let u = rng.uniform();
                // This closure returns the squared distance between `to` and the end of a gradient step from
                // `from`, divided by 4 h, with h the step size.
                let apart = |to: &[f64], from: &[f64], g: &[f64]| -> f64 {
                    to.iter().zip(from).zip(g).map(|((a, b), g)| (a - b - h * g).powi(2)).sum::<f64>()
                        / (4.0 * h)
                };
                let there = apart(proposed.row(i), x.row(i), slope.row(i));
                let back = apart(x.row(i), proposed.row(i), new_gradient.row(i));
                // A comparison with NaN is false, so a proposal of NaN is not accepted.
                if new_log_p[i].is_finite() && u.ln() < new_log_p[i] - log_p[i] + there - back {
                    accepted += 1;
                    log_p[i] = new_log_p[i];
                    let row = i * width..(i + 1) * width;
                    x.values_mut()[row.clone()].copy_from_slice(proposed.row(i));
                    slope.values_mut()[row].copy_from_slice(new_gradient.row(i));
                }
            }
            if step < burn_in {
                h *= (ADAPTATION * (accepted as f64 / n.max(1) as f64 - acceptance)).exp();
                continue;
            }
            accepted_later += accepted;
            if (step - burn_in + 1).is_multiple_of(thin) {
                kept.0.append(x.clone());
                kept.1.extend_from_slice(&log_p);
            }
        }
        let share = accepted_later as f64 / ((steps - burn_in) * n.max(1)) as f64;
        Ok((kept.0, kept.1, share))
    }
}

impl ObjectSearch<DiffusionSampling> for Mala {
    fn search(
        &self,
        env: &DiffusionSampling,
        objects: &DiffusionStates,
        reward: &dyn Reward<DiffusionStates>,
        rng: &mut Rng,
    ) -> Result<SearchResults<DiffusionStates>> {
        let found = env.terminal(self.run(&objects.points, rng)?.0);
        // Objects are recorded with the trainer's reward instead of the chains' log-density, because a
        // clipped or tempered reward differs from it.
        let log_rewards = log_rewards(reward, &found, None)?;
        let reward_calls = objects.len() * (self.config.steps + 1) + found.len();
        Ok(SearchResults { objects: found, log_rewards, reward_calls })
    }
}
