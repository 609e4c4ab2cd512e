//! The common part of the diffusion tasks: targets by name, how good samples are, and pictures.

use std::sync::Arc;

use clap::ValueEnum;
use gfn::env::{Reals, Rows};
use gfn::metrics::{LogZEstimate, estimate_log_z, eubo};
use gfn::policy::Policy;
use gfn::{Error, Result, Rng};
use gfn_extras::transport::{maximum_mean_discrepancy, wasserstein2};
use gfn_gym::diffusion::{CoxProcess, DiffusionSampling, Energy, FromTensors, Funnel, ManyWell, Mixture, Target};
use serde_json::{Value, json};

use crate::flags::{Common, refuse};
use crate::plot::{Figure, Panel};
use crate::run::sample;

/// Targets by name.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TargetName {
    /// A Gaussian off the origin, in --dim coordinates
    Gaussian,
    /// Two Gaussians in the plane
    TwoModes,
    /// 25 Gaussians on a grid in the plane
    TwentyFiveModes,
    /// 9 of these with unequal weights
    NineModes,
    /// 40 Gaussians anywhere in the plane
    FortyModes,
    /// Neal's funnel, 10 coordinates unless --dim says otherwise
    Funnel,
    /// Double wells, 32 coordinates unless --dim says otherwise
    ManyWell,
    /// Log-Gaussian Cox process on a square grid of --dim cells, 100 unless told otherwise
    Cox,
    /// The TorchScript file of --script, in --dim coordinates
    Script,
}

impl TargetName {
    /// The target, in as many coordinates as the flag says.
    pub(crate) fn build(self, dim: Option<usize>, script: Option<&std::path::Path>) -> Result<Arc<dyn Target>> {
        if self != Self::Script {
            refuse(&["--script"], "no script but with --target script")?;
        }
        if matches!(self, Self::TwoModes | Self::TwentyFiveModes | Self::NineModes | Self::FortyModes) {
            refuse(&["--dim"], "no such flag: this target lies in the plane")?;
        }
        if dim == Some(0) {
            return Err(Error::config("--dim", "0", "at least one coordinate"));
        }
        let given = |default: usize| dim.unwrap_or(default);
        Ok(match self {
            Self::Gaussian => Arc::new(Mixture::gaussian(vec![1.0; given(2)], 0.5)?),
            Self::TwoModes => Arc::new(Mixture::two_modes()),
            Self::TwentyFiveModes => Arc::new(Mixture::twenty_five_modes()),
            Self::NineModes => Arc::new(Mixture::nine_modes()),
            Self::FortyModes => Arc::new(Mixture::forty_modes(0)),
            Self::Funnel => Arc::new(Funnel::new(given(10), 1.0)?),
            Self::ManyWell => Arc::new(ManyWell::new(given(32))?),
            Self::Cox => Arc::new(CoxProcess::generated(side(given(100))?, &mut Rng::seeded(0))?),
            Self::Script => {
                let path = script.unwrap_or(std::path::Path::new(""));
                Arc::new(FromTensors::load(path, given(2), tch::Kind::Float, tch::Device::Cpu)?)
            }
        })
    }

    /// The scale of the process that reaches the target, unless told otherwise: sigma^2 is 5 for the grids, 1 in many dimensions (Sendera
    /// et al. 2024).
    pub(crate) fn sigma(self) -> f64 {
        match self {
            Self::TwentyFiveModes | Self::NineModes => 5f64.sqrt(),
            Self::TwoModes => 5.0,
            Self::FortyModes => 20.0,
            _ => 1.0,
        }
    }
}

/// The side of a square grid of so many cells.
fn side(cells: usize) -> Result<usize> {
    let side = cells.isqrt();
    if side * side == cells {
        Ok(side)
    } else {
        Err(Error::config("--dim", cells, "the number of cells of a square grid, such as 64, 100 or 1600"))
    }
}

/// Trajectories that log Z is estimated from (Sendera et al. 2024).
pub(crate) const EVALUATED: usize = 2_000;
/// Points that are paired with exact samples: pairing takes the third power of their number.
const PAIRED: usize = 1_000;

/// Estimates of log Z by a policy's trajectories, and its samples.
pub(crate) fn estimates(
    env: &DiffusionSampling,
    policy: &dyn Policy<DiffusionSampling>,
    energy: &Energy,
    rng: &mut Rng,
) -> Result<(Vec<(&'static str, Value)>, Reals)> {
    let target = energy.target();
    let estimate = estimate_log_z(env, policy, energy, EVALUATED, rng)?;
    let points = sample(env, policy, EVALUATED, rng)?.points;
    let error = |value: f64| json!(target.log_z().map(|true_value| (value - true_value).abs()));
    let mut out = of_log_z(&estimate);
    out.extend([("log_z_error", error(estimate.elbo.mean)), ("log_z_reweighted_error", error(estimate.log_z))]);
    if let Some(exact) = target.sample(EVALUATED, rng) {
        out.push(("eubo", json!(eubo(env, policy, energy, &env.terminal(exact), rng)?.mean)));
    }
    Ok((out, points))
}

/// An estimate of log Z in figures.
pub(crate) fn of_log_z(estimate: &LogZEstimate) -> Vec<(&'static str, Value)> {
    vec![
        ("log_z_bound", json!(estimate.elbo.mean)),
        ("log_z_reweighted", json!(estimate.log_z)),
        ("log_z_reweighted_interval", json!([estimate.interval.0, estimate.interval.1])),
        ("ess", json!(estimate.effective_samples / EVALUATED as f64)),
    ]
}

/// Distances of samples from a target's exact ones, and the modes among them.
pub(crate) fn sample_figures(points: &Reals, target: &dyn Target, rng: &mut Rng) -> Result<Vec<(&'static str, Value)>> {
    let mut out = Vec::new();
    if let Some(exact) = target.sample(2 * PAIRED, rng) {
        let part = |points: &Reals, from: usize| points.select(&(from..from + PAIRED).collect::<Vec<_>>());
        let (samples, first, second) = (part(points, 0), part(&exact, 0), part(&exact, PAIRED));
        out.extend([
            ("w2", json!(wasserstein2(&samples, &first)?)),
            ("w2_perfect", json!(wasserstein2(&second, &first)?)),
            ("mmd", json!(maximum_mean_discrepancy(&samples, &first)?)),
        ]);
    }
    if let Some((centres, radius)) = target.modes() {
        let near = |centre: &[f64]| {
            points.rows().any(|x| x.iter().zip(centre).map(|(a, b)| (a - b).powi(2)).sum::<f64>() <= radius * radius)
        };
        let found = centres.rows().filter(|centre| near(centre)).count();
        out.extend([("modes_found", json!(found)), ("modes_total", json!(centres.len()))]);
    }
    Ok(out)
}

/// Draws samples in the plane of the first two coordinates beside exact ones of the target, where there are any.
pub(crate) fn draw(common: &Common, title: &str, samples: &[(&str, &Reals)]) -> Result<()> {
    let panel = |(name, points): &(&str, &Reals)| {
        let shown = points.rows().filter(|x| x.len() > 1).map(|x| (x[0], x[1])).collect::<Vec<_>>();
        Panel::scatter(*name, shown).equal_aspect().labels("x1", "x2")
    };
    let figure = samples.iter().map(panel).fold(Figure::new(title), Figure::panel);
    common.draw("samples", |path| figure.write(path))
}
