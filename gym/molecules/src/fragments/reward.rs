use super::FragmentLibrary;
use crate::MoleculeReward;

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
pub type FragmentReward<S> = MoleculeReward<S, FragmentLibrary>;
