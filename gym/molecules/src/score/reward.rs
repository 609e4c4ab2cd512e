use gfn::Result;
use gfn::env::Reward;
use gfn::graph::{GraphState, GraphStates};
use gfn::runtime::Threads;

use super::{MoleculeScore, checked_logs};
use crate::fragments::FragmentLibrary;
use crate::{Molecule, MoleculeCodec};

/// A type that converts states into molecules.
pub trait GraphReader: Clone + Send + Sync {
    /// Converts a state into a molecule.
    ///
    /// # Errors
    /// [`Error::Config`](gfn::Error::Config) for a graph that isn't a molecule.
    fn molecule(&self, graph: &GraphState) -> Result<Molecule>;
}

impl GraphReader for MoleculeCodec {
    fn molecule(&self, graph: &GraphState) -> Result<Molecule> {
        Self::molecule(self, graph)
    }
}

impl GraphReader for FragmentLibrary {
    fn molecule(&self, graph: &GraphState) -> Result<Molecule> {
        Self::molecule(self, graph)
    }
}

/// The reward of a [`MoleculeEnv`](crate::MoleculeEnv) that is computed from a score of molecules. All
/// Kekule forms of a molecule get the same score. The environment divides the reward among them, as it does
/// with any reward.
///
/// ```
/// use gfn::env::Reward;
/// use gfn_molecules::{Molecule, MoleculeConfig, MoleculeEnv, MoleculeReward};
/// let env = MoleculeEnv::new(MoleculeConfig::new(8))?;
/// let reward = MoleculeReward::new(env.codec(), |_: &Molecule| 3.0);
/// let xylene = env.codec().graph(&Molecule::from_smiles("Cc1ccccc1C")?)?;
/// assert_eq!(reward.log_reward(&vec![xylene].into(), None)?, [3f64.ln()]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MoleculeReward<S, C = MoleculeCodec> {
    codec: C,
    score: S,
}

impl<S: MoleculeScore, C: GraphReader> MoleculeReward<S, C> {
    /// Creates the reward from a score. `codec` converts states into molecules: it is the codec of the
    /// environment, or the library of fragments if states are trees of fragments.
    pub fn new(codec: &C, score: S) -> Self {
        Self { codec: codec.clone(), score }
    }

    /// Returns the score that the reward is computed from.
    pub fn score(&self) -> &S {
        &self.score
    }
}

/// The smallest number of molecules per thread. A further thread is only started if each thread gets this
/// many.
const MIN_PER_THREAD: usize = 32;

impl<S: MoleculeScore, C: GraphReader> Reward<GraphStates> for MoleculeReward<S, C> {
    fn log_reward(&self, states: &GraphStates, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        let molecules: Vec<Molecule> =
            Threads::try_map(states.graphs(), MIN_PER_THREAD, |graph| self.codec.molecule(graph))?;
        checked_logs(&self.score, &molecules)
    }
}
