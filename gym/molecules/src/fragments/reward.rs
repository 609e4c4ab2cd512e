use gfn::Result;
use gfn::env::Reward;
use gfn::graph::GraphStates;
use gfn::runtime::Threads;

use super::FragmentLibrary;
use crate::{Molecule, MoleculeScore, checked_logs};

/// A score of molecules as the reward of [`Fragments`](super::Fragments): that of the molecule that a tree is.
///
/// The target is over trees: a molecule that is several trees is sampled in proportion to how many they are, times its score.
///
/// ```
/// use gfn::{env::Reward, policy::UniformPolicy, rollout::Sampler, Rng};
/// use gfn_molecules::fragments::{FragmentLibrary, FragmentReward, Fragments};
/// use gfn_molecules::Molecule;
///
/// let trees = Fragments::new(&FragmentLibrary::standard()?, 5)?;
/// let reward = FragmentReward::new(trees.library(), |molecule: &Molecule| 0.1 + molecule.heteroatom_share());
/// let samples = Sampler::new(trees.env(), &UniformPolicy).forward(4, &mut Rng::seeded(0))?;
/// assert!(reward.log_reward(samples.terminal_states(), None)?.iter().all(|log| log.is_finite()));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FragmentReward<S> {
    library: FragmentLibrary,
    score: S,
}

impl<S: MoleculeScore> FragmentReward<S> {
    /// The reward that this score is, in environments of the library.
    pub fn new(library: &FragmentLibrary, score: S) -> Self {
        Self { library: library.clone(), score }
    }

    /// The score.
    pub fn score(&self) -> &S {
        &self.score
    }
}

/// Fewer molecules than that stay on one thread.
const MIN_PER_THREAD: usize = 32;

impl<S: MoleculeScore> Reward<GraphStates> for FragmentReward<S> {
    fn log_reward(&self, states: &GraphStates, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        let molecules: Vec<Molecule> =
            Threads::try_map(states.graphs(), MIN_PER_THREAD, |graph| self.library.molecule(graph))?;
        checked_logs(&self.score, &molecules)
    }
}
