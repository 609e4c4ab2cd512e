use gfn::env::Reward;
use gfn::graph::GraphStates;
use gfn::{Error, Result};
use rayon::prelude::*;

use super::{MoleculeScore, checked_logs};
use crate::{Molecule, MoleculeCodec};

/// A score as the reward of a [`MoleculeEnv`](crate::MoleculeEnv), divided between the Kekule forms of a molecule.
///
/// A molecule with `k` Kekule forms that are different graphs (o-xylene has two) is `k` states. Each has the reward R / k, so that
/// the molecule is sampled in proportion to R, whatever `k` is. [`per_kekule_form`](Self::per_kekule_form) turns that off.
///
/// ```
/// use gfn::env::Reward;
/// use gfn_molecules::{Molecule, MoleculeConfig, MoleculeEnv, MoleculeReward};
/// let env = MoleculeEnv::new(MoleculeConfig::new(8))?;
/// let reward = MoleculeReward::new(env.codec(), |_: &Molecule| 3.0);
/// let xylene = env.codec().graph(&Molecule::from_smiles("Cc1ccccc1C")?)?;
/// assert!((reward.log_reward(&vec![xylene].into(), None)?[0] - 1.5f64.ln()).abs() < 1e-12);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MoleculeReward<S> {
    codec: MoleculeCodec,
    score: S,
    divides: bool,
}

impl<S: MoleculeScore> MoleculeReward<S> {
    /// The reward that this score is, in the environment of the codec.
    pub fn new(codec: &MoleculeCodec, score: S) -> Self {
        Self { codec: codec.clone(), score, divides: true }
    }

    /// The same without the division: a molecule with `k` Kekule forms counts `k` times.
    #[must_use]
    pub fn per_kekule_form(mut self) -> Self {
        self.divides = false;
        self
    }

    /// The score.
    pub fn score(&self) -> &S {
        &self.score
    }
}

/// Fewer molecules than that stay on one thread.
const MIN_PER_THREAD: usize = 32;

impl<S: MoleculeScore> Reward<GraphStates> for MoleculeReward<S> {
    fn log_reward(&self, states: &GraphStates, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        let graphs = states.graphs().par_iter().with_min_len(MIN_PER_THREAD);
        let read = graphs.map(|graph| {
            let molecule = self.codec.molecule(graph)?;
            let forms = if self.divides { log_forms(&molecule)? } else { 0.0 };
            Ok((molecule, forms))
        });
        let (molecules, log_forms): (Vec<Molecule>, Vec<f64>) = read.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let logs = checked_logs(&self.score, &molecules)?;
        Ok(logs.into_iter().zip(log_forms).map(|(log, forms)| log - forms).collect())
    }
}

fn log_forms(molecule: &Molecule) -> Result<f64> {
    match molecule.n_kekule_forms() {
        Some(forms) => Ok((forms as f64).ln()),
        None => Err(Error::config(
            "a molecule to be rewarded",
            molecule.smiles(),
            "one whose Kekule forms can be counted: ring systems with at most 65,536 placements of double bonds \
                       each, not so large that the search for them is given up, and a number of forms that fits into \
                       64 bits; `per_kekule_form` doesn't count them",
        )),
    }
}
