//! What the diffusion tasks share: targets by name, how good samples are, and pictures.

use std::sync::Arc;

use clap::ValueEnum;
use gfn::env::{Reals, Rows};
use gfn::metrics::{estimate_log_z, eubo, sample_objects};
use gfn::policy::Policy;
use gfn::rollout::Sampler;
use gfn::{Error, Result, Rng};
use gfn_gym::diffusion::{CoxProcess, DiffusionSampling, Energy, FromTensors, Funnel, ManyWell, Mixture, Target};
use gfn_gym::transport::{maximum_mean_discrepancy, wasserstein2};
use gfn_plot::{Curve, Figure, Panel, contours};
use serde_json::{Value, json};

use crate::cli::{Common, refuse};

/// What is sampled from.
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
        refuse("--script", script.is_some() && self != Self::Script, "no script but with --target script")?;
        let fixed = matches!(self, Self::TwoModes | Self::TwentyFiveModes | Self::NineModes | Self::FortyModes);
        refuse("--dim", dim.is_some() && fixed, "no such flag: this target lies in the plane")?;
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
    match side * side == cells {
        true => Ok(side),
        false => Err(Error::config("--dim", cells, "the number of cells of a square grid, such as 64, 100 or 1600")),
    }
}

/// Trajectories that log Z is estimated from (Sendera et al. 2024).
pub(crate) const EVALUATED: usize = 2_000;
/// Points that are paired with exact samples: pairing takes the third power of their number.
const PAIRED: usize = 1_000;

/// What a policy's trajectories say of log Z, and its samples.
pub(crate) fn estimates<P: Policy<DiffusionSampling>>(
    env: &DiffusionSampling,
    policy: &P,
    energy: &Energy,
    rng: &mut Rng,
) -> Result<(Vec<(&'static str, Value)>, Reals)> {
    let target = energy.target();
    let estimate = estimate_log_z(env, policy, energy, EVALUATED, rng)?;
    let log_z = target.log_z();
    let error = |value: f64| json!(log_z.map(|true_value| (value - true_value).abs()));
    let points = sample_objects(env, policy, EVALUATED, rng)?.points;
    let mut out = vec![
        ("log_z_bound", json!(estimate.elbo.mean)),
        ("log_z_error", error(estimate.elbo.mean)),
        ("log_z_reweighted", json!(estimate.log_z)),
        ("log_z_reweighted_interval", json!([estimate.interval.0, estimate.interval.1])),
        ("log_z_reweighted_error", error(estimate.log_z)),
        ("ess", json!(estimate.effective_samples / EVALUATED as f64)),
    ];
    if let Some(exact) = target.sample(EVALUATED, rng) {
        out.push(("eubo", json!(eubo(env, policy, energy, &env.terminal(exact), rng)?.mean)));
    }
    Ok((out, points))
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

/// Points along each axis of the grid that contours are drawn over.
const GRID: usize = 120;
/// Trajectories of the fan.
const FAN: usize = 40;

/// Samples of a policy over the contours of a target in the plane of the first two coordinates, and its trajectories over time; `of` is
/// what is sampled, where there is more than one such thing.
pub(crate) fn panels<P: Policy<DiffusionSampling>>(
    of: &str,
    env: &DiffusionSampling,
    policy: &P,
    target: &dyn Target,
    rng: &mut Rng,
) -> Result<Vec<Panel>> {
    let trajectories = Sampler::new(env, policy).forward(EVALUATED, rng)?;
    let points = &trajectories.terminal_states().points;
    let mut out = Vec::new();
    let of = if of.is_empty() { String::new() } else { format!("{of}, ") };
    if env.dim() >= 2 {
        let of_points = points.rows().flat_map(|x| [x[0].abs(), x[1].abs()]).fold(1.0, f64::max).min(60.0);
        // Modes are shown whole, sampled or not.
        let of_modes = target.modes().map_or(0.0, |(centres, radius)| {
            centres.rows().flat_map(|x| [x[0].abs(), x[1].abs()]).fold(0.0, f64::max) + radius
        });
        let reach = of_points.max(of_modes) * 1.05;
        let shown = points.rows().filter(|x| x[0].abs() <= reach && x[1].abs() <= reach).map(|x| (x[0], x[1]));
        let mut panel = Panel::scatter(format!("{of}{EVALUATED} samples"), shown).equal_aspect();
        // Other coordinates at 0: a slice, not a marginal.
        let at = |k: usize| -reach + 2.0 * reach * k as f64 / (GRID - 1) as f64;
        let mut grid = Reals::filled(env.dim(), GRID * GRID, 0.0);
        for (k, point) in grid.values_mut().chunks_exact_mut(env.dim()).enumerate() {
            (point[0], point[1]) = (at(k % GRID), at(k / GRID));
        }
        let heights = target.log_density(&grid)?;
        let top = heights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let levels = [0.5, 2.0, 4.5, 8.0].map(|below| top - below);
        panel = panel.outlines(contours(&heights, GRID, (-reach, reach), (-reach, reach), &levels));
        out.push(panel.labels("x1", "x2"));
    }
    // Coordinate 1 of some trajectories against time.
    let (mut fan, offsets) = (Vec::new(), trajectories.offsets());
    for (i, ends) in offsets.windows(2).take(FAN).enumerate() {
        let before = (ends[0]..ends[1]).map(|row| trajectories.states().points.row(row)[0]);
        let path = before.chain([points.row(i)[0]]);
        let steps = env.process().steps() as f64;
        fan.push(path.enumerate().map(|(k, x)| (k as f64 / steps, x)).collect::<Vec<_>>());
    }
    let last = fan.pop().unwrap_or_default();
    let fan = Panel::new(format!("{of}{FAN} trajectories")).labels("time", "x1").outlines(fan);
    out.push(fan.curve(Curve::new("one of them", last)));
    Ok(out)
}

/// Writes panels as one picture, SVG and PNG.
pub(crate) fn draw(common: &Common, name: &str, title: &str, panels: &[Panel]) -> Result<()> {
    let figure = panels.iter().cloned().fold(Figure::new(title), Figure::panel);
    common.draw(name, |path| figure.write(path))
}
