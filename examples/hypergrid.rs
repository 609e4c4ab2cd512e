//! Trains a policy on a hyper-grid, whose states are vectors of small integers. Prints exact distances to the
//! target, and compares the policy's samples with samples of a perfect sampler.

use std::error::Error;
use std::fs;

use gfn::metrics::NoiseFloor;
use gfn::prelude::*;
use gfn_gym::hypergrid::{HyperGrid, OriginalReward};
use gfn_plot::{Figure, Panel, Table};

const STEPS: usize = 1_500;
const SAMPLES: usize = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::new(1, DeviceKind::Cpu)?;
    let mut rng = Rng::seeded(0);
    let grid = HyperGrid::new(2, 8)?;
    let env = grid.env();
    let reward = OriginalReward::standard(&grid)?;
    // `space` lists all 64 points, so that their target probabilities can be computed.
    let space = StateGraph::build(&env, 64)?;
    let target = space.target_distribution(&reward, None)?;

    let config = MlpPolicyConfig::default();
    let policy = MlpPolicy::new(&env, KHot::from_env(&env), config, runtime.device(), Kind::Float, &mut rng)?;
    let config = TrainerConfig {
        batch: 16,
        lr_scale: Schedule::Linear { from: 1.0, to: 0.0, steps: STEPS },
        ..TrainerConfig::default()
    };
    let mut trainer = Trainer::new(env.clone(), reward, policy, TrajectoryBalance, config, rng)?;
    let mut table = Table::new(["step", "loss", "log Z", "total variation"]);
    while trainer.steps_done() < STEPS {
        let stats = trainer.step()?;
        if trainer.steps_done() % 300 == 0 {
            let learned = space.terminating_distribution(&env, trainer.policy(), None)?;
            let tv = Distances::between(&learned.probs, &target.probs)?.tv;
            table.push([trainer.steps_done().into(), stats.loss.into(), stats.log_z.into(), tv.into()]);
        }
    }
    println!("{table}\nThe true log Z is {:.4}.", target.log_z);

    // Samples can also be compared with the target if the policy's exact probabilities aren't known. The
    // distance then includes sampling noise.
    let samples = Sampler::new(&env, trainer.policy()).forward(SAMPLES, &mut trainer.evaluation_rng())?;
    let shares = space.empirical(&env, samples.terminal_states())?;
    let floor = NoiseFloor::simulate(&target.probs, SAMPLES, 20, &mut Rng::seeded(1))?;
    let tv = Distances::between(&shares, &target.probs)?.tv;
    let noise = floor.tv;
    println!(
        "Total variation of {SAMPLES} samples: {tv:.4}; of as many perfect ones, on average: {noise:.4}."
    );

    // Trajectories give access to their transitions and to all visited states, too.
    let steps = samples.transitions();
    let visited = samples.visited_states();
    let distinct = visited.states().group().first.len();
    println!(
        "They took {} steps through {} states, {distinct} of them distinct.",
        steps.len(),
        visited.len()
    );

    let learned = space.terminating_distribution(&env, trainer.policy(), None)?.probs;
    let max = target.probs.iter().chain(&learned).copied().fold(0.0, f64::max);
    let mut figure = Figure::new("grid of 8 x 8");
    for (title, probs) in [("target", &target.probs), ("learned", &learned)] {
        let mut cells = vec![0.0; probs.len()];
        for (point, &p) in space.states().rows().zip(probs) {
            cells[grid.index(point) as usize] = p;
        }
        figure = figure.panel(
            Panel::heat_map(title, grid.height(), cells, max).labels("x", "y").colour_label("probability"),
        );
    }
    fs::create_dir_all("out")?;
    figure.write("out/hypergrid.svg")?;
    println!("Both distributions are drawn in out/hypergrid.svg.");
    Ok(())
}
