//! What the examples on molecules share: scores by name, samples, and what is written of them.

mod files;
mod outputs;
mod scores;

use gfn::Result;
use gfn::graph::{GraphEnv, GraphState};
use gfn::nn::GraphNet;
use gfn::policy::{GraphPolicy, UniformPolicy};
use gfn::sampler::Sampler;
use gfn::train::Trainer;
use gfn_gym::molecule::Molecule;

pub use files::{Entry, write_molecules};
pub use outputs::{of_samples, of_symmetry, tv_of_molecules, write};
pub use scores::{RewardName, ScoreArgs, Shared, score};

/// Molecules that are sampled at once.
const CHUNK: usize = 1_000;

/// `n` molecules by the trained policy, or (`random`) by the masks alone; `molecule` reads a state.
pub fn sample<E: GraphEnv>(
    trainer: &Trainer<E, GraphPolicy<GraphNet>>,
    (n, random): (usize, bool),
    molecule: impl Fn(&GraphState) -> Result<Molecule>,
) -> Result<Vec<Molecule>> {
    let (env, mut rng) = (trainer.env(), trainer.evaluation_rng());
    let mut out = Vec::with_capacity(n);
    while out.len() < n {
        let chunk = CHUNK.min(n - out.len());
        let sampled = match random {
            true => Sampler::new(env, &UniformPolicy).forward(chunk, &mut rng)?,
            false => Sampler::new(env, trainer.policy()).forward(chunk, &mut rng)?,
        };
        for graph in sampled.terminal_states().graphs() {
            out.push(molecule(graph)?);
        }
    }
    Ok(out)
}
