//! Trains a policy on the unit box, whose states are continuous. The policy has densities instead of
//! probabilities. Sampler, objective and trainer are the same as for graphs.

use std::error::Error;
use std::fs;

use gfn::env::Reals;
use gfn::prelude::*;
use gfn_gym::boxes::{BoxEnv, BoxPolicy, BoxPolicyConfig, BoxReward, GridHistogram};
use gfn_plot::{Figure, Panel, Table};

const STEPS: usize = 1_500;
const SAMPLES: usize = 10_000;
/// The number of cells along each axis of the histogram that compares samples with the target.
const BINS: usize = 50;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::new(1, DeviceKind::Cpu)?;
    let mut rng = Rng::seeded(0);
    // Trajectories start at the origin, and each step has a length of at least 0.25 along each axis. The
    // reward is largest near the four corners.
    let env = BoxEnv::cartesian(2, 0.25)?;
    let reward = BoxReward::default();
    let policy = BoxPolicy::new(&env, BoxPolicyConfig::default(), runtime.device(), Kind::Float, &mut rng)?;
    let config = TrainerConfig {
        batch: 128,
        epsilon: Some(Schedule::Linear { from: 0.1, to: 0.0, steps: STEPS / 2 }),
        lr_scale: Schedule::Linear { from: 1.0, to: 0.0, steps: STEPS },
        // Gradients are clipped: a density has no upper bound, so its gradient may be very large.
        adam: AdamConfig { lr: 3e-3, log_z_lr: 1e-2, max_norm: Some(10.0), ..AdamConfig::default() },
        ..TrainerConfig::default()
    };
    let mut trainer = Trainer::new(env, reward, policy, TrajectoryBalance, config, rng)?;

    let grid = GridHistogram::new(BINS, reward.cells(BINS))?;
    let floor = grid.floor(SAMPLES, 20, &mut Rng::seeded(1))?;
    let mut table = Table::new(["step", "loss", "log Z", "JSD of samples"]);
    while trainer.steps_done() < STEPS {
        let stats = trainer.step()?;
        if trainer.steps_done() % 300 == 0 {
            let jsd = grid.jsd(&samples(&trainer)?)?;
            table.push([trainer.steps_done().into(), stats.loss.into(), stats.log_z.into(), jsd.into()]);
        }
    }
    println!("{table}\nThe true log Z is {:.4}; perfect samples have a JSD of {floor:.4}.", reward.log_z(2));

    let points = samples(&trainer)?;
    let shares: Vec<f64> = grid.counts(&points)?.iter().map(|count| count / SAMPLES as f64).collect();
    let max = grid.target().iter().copied().fold(0.0, f64::max);
    let mut figure = Figure::new("unit box");
    for (title, values) in [("target", grid.target()), ("samples", &shares)] {
        figure = figure.panel(
            Panel::heat_map(title, BINS, values.iter().copied(), max)
                .labels("x", "y")
                .colour_label("probability"),
        );
    }
    fs::create_dir_all("out")?;
    figure.write("out/box.svg")?;
    println!("Target and samples are drawn in out/box.svg.");
    Ok(())
}

/// Samples points from the trainer's policy.
fn samples(trainer: &Trainer<BoxEnv>) -> gfn::Result<Reals> {
    let sampler = Sampler::new(trainer.env(), trainer.policy());
    Ok(sampler.forward(SAMPLES, &mut trainer.evaluation_rng())?.terminal_states().clone())
}
