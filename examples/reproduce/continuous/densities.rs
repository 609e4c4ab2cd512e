//! The common part of the diffusion tasks: targets by name, how good samples are, and pictures.

use gfn::metrics::LogZEstimate;
use gfn_extras::transport::{maximum_mean_discrepancy, wasserstein2};
use gfn_gym::diffusion::{CoxProcess, Funnel, ManyWell, Mixture, Target};

use crate::prelude::*;

/// A target, and the scale of the process that reaches it: sigma^2 is 5 for the grids, 1 in many dimensions
/// (Sendera et al. 2024).
pub(super) type MakeTarget = (fn() -> Result<Arc<dyn Target>>, f64);

pub(super) const TARGETS: &[Choice<MakeTarget>] = &[
    ("gaussian", (|| Ok(Arc::new(Mixture::gaussian(vec![1.0; 2], 0.5)?)), 1.0), "A Gaussian off the origin"),
    ("two-modes", (|| Ok(Arc::new(Mixture::two_modes())), 5.0), "Two Gaussians in the plane"),
    (
        "twenty-five-modes",
        (|| Ok(Arc::new(Mixture::twenty_five_modes())), GRID_SIGMA),
        "25 Gaussians on a grid in the plane",
    ),
    ("nine-modes", (|| Ok(Arc::new(Mixture::nine_modes())), GRID_SIGMA), "9 of these with unequal weights"),
    ("forty-modes", (|| Ok(Arc::new(Mixture::forty_modes(0))), 20.0), "40 Gaussians anywhere in the plane"),
    ("funnel", (|| Ok(Arc::new(Funnel::new(10, 1.0)?)), 1.0), "Neal's funnel, 10 coordinates"),
    ("many-well", (|| Ok(Arc::new(ManyWell::new(32)?)), 1.0), "Double wells, 32 coordinates"),
    (
        "cox",
        (|| Ok(Arc::new(CoxProcess::generated(10, &mut Rng::seeded(0))?)), 1.0),
        "Log-Gaussian Cox process, 10 x 10 cells",
    ),
];

/// The square root of 5.
const GRID_SIGMA: f64 = 2.236_067_977_499_79;
/// Trajectories that log Z is estimated from (Sendera et al. 2024).
pub(super) const EVALUATED: usize = 2_000;
/// Points that are paired with exact samples: pairing takes the third power of their number.
const PAIRED: usize = 1_000;

/// Reports an estimate of log Z.
pub(super) fn report_log_z(estimate: &LogZEstimate, report: &mut Report) {
    report.extend(json!({ "log_z_bound": estimate.elbo.mean, "log_z_reweighted": estimate.log_z,
        "log_z_reweighted_interval": [estimate.interval.0, estimate.interval.1],
        "ess": estimate.effective_samples / EVALUATED as f64 }));
}

/// Reports distances of samples from a target's exact ones, and the modes among them.
pub(super) fn report_samples(points: &Reals, target: &dyn Target, rng: &mut Rng, report: &mut Report) -> Result<()> {
    if let Some(exact) = target.sample(2 * PAIRED, rng) {
        let part = |points: &Reals, from: usize| points.select(&(from..from + PAIRED).collect::<Vec<_>>());
        let (samples, first, second) = (part(points, 0), part(&exact, 0), part(&exact, PAIRED));
        report.extend(json!({ "w2": wasserstein2(&samples, &first)?, "w2_perfect": wasserstein2(&second, &first)?,
            "mmd": maximum_mean_discrepancy(&samples, &first)? }));
    }
    if let Some((centres, radius)) = target.modes() {
        let is_near = |centre: &[f64]| {
            points.rows().any(|x| x.iter().zip(centre).map(|(a, b)| (a - b).powi(2)).sum::<f64>() <= radius * radius)
        };
        let found = centres.rows().filter(|centre| is_near(centre)).count();
        report.extend(json!({ "modes_found": found, "modes_total": centres.len() }));
    }
    Ok(())
}

/// Draws sets of points in the plane of the first two coordinates.
pub(super) fn draw(run: &Run<'_>, sets: &[(&str, &Reals)]) -> Result<()> {
    let mut figure = Figure::new(&run.title);
    for (name, points) in sets {
        let shown = points.rows().filter(|x| x.len() > 1).map(|x| (x[0], x[1])).collect::<Vec<_>>();
        figure = figure.panel(Panel::scatter(*name, shown).equal_aspect().labels("x1", "x2"));
    }
    run.common.draw("samples", |path| figure.write(path))
}
