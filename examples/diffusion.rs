//! Sampling from a density: Brownian motion is steered so that it ends as the density says, by trajectory balance.

use std::error::Error;
use std::fs;
use std::sync::Arc;

use gfn::metrics::estimate_log_z;
use gfn::objective::TrajectoryBalance;
use gfn::optim::Schedule;
use gfn::rollout::Sampler;
use gfn::runtime::{DeviceKind, Runtime};
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Rng, tch};
use gfn_gym::diffusion::{
    DiffusionPolicy, DiffusionPolicyConfig, DiffusionSampling, Energy, Mixture, Process, ProcessKind, Target,
};
use gfn_gym::transport::wasserstein2;
use gfn_plot::Table;
use gfn_plot::{Figure, Panel};

const STEPS: usize = 600;
const SAMPLES: usize = 1_000;

fn main() -> Result<(), Box<dyn Error>> {
    let (runtime, mut rng) = (Runtime::new(1, DeviceKind::Cpu)?, Rng::seeded(0));
    // Two Gaussians in the plane. Any density will do, normalised or not: what is estimated is the log of its integral.
    let target = Arc::new(Mixture::two_modes());
    let process = Process::new(ProcessKind::PinnedBrownian, 5.0, 16)?;
    let env = DiffusionSampling::new(target.dim(), process)?;
    let energy = Energy::new(target.clone()).along(env.process());

    let config = DiffusionPolicyConfig::default();
    let policy = DiffusionPolicy::new(&env, config, None, runtime.device(), tch::Kind::Float, &mut rng)?;
    let config = TrainerConfig {
        batch: 200,
        // Wider steps than the policy's own at first: both modes are met.
        noise: Schedule::Linear { from: 0.2, to: 0.0, steps: STEPS / 2 },
        lr_scale: Schedule::Constant(1.0),
        ..TrainerConfig::default()
    };
    let mut trainer = Trainer::new(env, energy.clone(), policy, TrajectoryBalance, config, rng)?;
    let mut table = Table::new(["step", "loss", "lower bound of log Z", "log Z, reweighted"]);
    while trainer.steps_done() < STEPS {
        let stats = trainer.step()?;
        if trainer.steps_done() % 150 == 0 {
            let rng = &mut trainer.evaluation_rng();
            let estimate = estimate_log_z(trainer.env(), trainer.policy(), &energy, SAMPLES, rng)?;
            let (bound, log_z) = (estimate.elbo.mean, estimate.log_z);
            table.push([trainer.steps_done().into(), stats.loss.into(), bound.into(), log_z.into()]);
        }
    }
    println!("{table}\nThe density is normalised: the true log Z is 0.");

    let mut rng = trainer.evaluation_rng();
    let sampler = Sampler::new(trainer.env(), trainer.policy());
    let points = sampler.forward(SAMPLES, &mut rng)?.terminal_states().points.clone();
    let mut figure = Figure::new("two modes");
    let plane = |points: &gfn::env::Reals| points.rows().map(|x| (x[0], x[1])).collect::<Vec<_>>();
    if let (Some(exact), Some(again)) = (target.sample(SAMPLES, &mut rng), target.sample(SAMPLES, &mut rng)) {
        let (learned, perfect) = (wasserstein2(&points, &exact)?, wasserstein2(&again, &exact)?);
        println!("W2 to {SAMPLES} exact samples: {learned:.3}; of as many exact ones: {perfect:.3}.");
        figure = figure.panel(Panel::scatter("exact samples", plane(&exact)).equal_aspect());
    }
    fs::create_dir_all("out")?;
    figure.panel(Panel::scatter("learned", plane(&points)).equal_aspect()).write("out/diffusion.svg")?;
    println!("Samples are drawn in out/diffusion.svg.");
    Ok(())
}
