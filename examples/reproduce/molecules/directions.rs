//! Samples of a conditional policy under several conditions. A condition holds preferences among objectives,
//! and may hold a direction of focus: the goal direction in the space of objectives.

use gfn_extras::condition::Condition;
use gfn_extras::pareto::focus_accuracy;
use gfn_molecules::{Fingerprint, internal_diversity};

use crate::prelude::*;

/// The molecules that were sampled under all conditions, their objectives, and a row of results for each
/// condition.
pub(super) struct ConditionSamples {
    pub(super) molecules: Vec<Molecule>,
    pub(super) objectives: Reals,
    pub(super) rows: Vec<Value>,
}

/// The settings for sampling a policy under several conditions.
pub(super) struct ConditionSampler<'a> {
    pub(super) reward: &'a ConditionedReward<GraphStates>,
    pub(super) beta: f64,
    /// The smallest cosine of the angle between the direction of focus and a molecule's objectives at which
    /// the molecule counts as a hit. `None` if conditions hold only preferences.
    pub(super) focus: Option<f64>,
    pub(super) samples: usize,
    pub(super) read: &'a dyn Fn(&GraphState) -> Result<Molecule>,
}

impl ConditionSampler<'_> {
    /// Samples the policy under each direction. A direction is used as preferences and, if conditions hold a
    /// focus, also as the direction of focus. `measure` returns the row of results for a direction. The
    /// arguments of `measure` are the direction, the encoded condition, the samples' objectives, and the
    /// sampled molecules.
    pub(super) fn sample(
        &self,
        trainer: &Trainer<GraphEnv>,
        directions: &[Vec<f64>],
        rng: &mut Rng,
        mut measure: impl FnMut(&[f64], &Tensor, &Reals, &[Molecule]) -> Result<Value>,
    ) -> Result<ConditionSamples> {
        let objectives = Reals::filled(self.reward.conditioning().n_rewards(), 0, 0.0);
        let mut all = ConditionSamples { molecules: Vec::new(), objectives, rows: Vec::new() };
        for direction in directions {
            let focus = self.focus.map(|_| direction.clone());
            let condition = Condition { beta: self.beta, preferences: direction.clone(), focus };
            let vector = self.reward.conditioning().encode(&[condition])?;
            let conditions = vector.expand([self.samples as i64, -1], false);
            let sampled =
                Sampler::new(trainer.env(), trainer.policy()).forward_conditional(&conditions, rng)?;
            let states = sampled.terminal_states();
            let molecules = read_all(states, self.read)?;
            let objectives = self.reward.objectives(states)?;
            let mut row = measure(direction, &vector, &objectives, &molecules)?;
            row["internal_diversity"] = json!(diversity(&molecules)?);
            if let Some(cosine) = self.focus {
                row["focus_accuracy"] = json!(focus_accuracy(&objectives, direction, cosine)?);
            }
            all.rows.push(row);
            all.molecules.extend(molecules);
            all.objectives.append(objectives);
        }
        Ok(all)
    }
}

/// Returns the molecule of each graph. `read` converts a graph to a molecule.
pub(super) fn read_all(
    states: &GraphStates,
    read: impl Fn(&GraphState) -> Result<Molecule>,
) -> Result<Vec<Molecule>> {
    states.graphs().iter().map(read).collect()
}

/// Returns the mean Tanimoto distance over all pairs of molecules.
pub(super) fn diversity(molecules: &[Molecule]) -> Result<f64> {
    internal_diversity(&molecules.iter().map(Fingerprint::from_molecule).collect::<Vec<_>>())
}

/// Returns the mean of objective `k` over all molecules. `objectives` has a row for each molecule.
pub(super) fn mean(objectives: &Reals, k: usize) -> f64 {
    objectives.rows().map(|row| row[k]).sum::<f64>() / objectives.len().max(1) as f64
}
