//! Tasks on strings: bit sequences near hidden modes, DNA sequences of eight letters, and molecules that are
//! strings of five small building blocks.

use gfn::nn::{SequenceKind, SequenceNetConfig};
use gfn::policy::{SequenceLayout, SequencePolicy, SequencePolicyConfig};
use gfn_gym::bit_sequence::{BitSequence, HammingReward, Words, motif_tilings, standard_motifs};
use gfn_gym::sequence::{Alphabet, TableReward, TokenSequence};
use gfn_molecules::qm9str::{Qm9Str, Qm9StrReward};

use crate::prelude::*;

/// Train a policy to write bit sequences near hidden modes
#[derive(Args)]
pub(crate) struct BitSequences {
    /// Network of the policy. All networks but the perceptron read the bits from left to right
    #[arg(long, value_parser = choice(NETWORKS), default_value = "mlp")]
    policy: Selection<Option<SequenceKind>>,
    #[command(flatten)]
    common: Common,
}

const NETWORKS: &[Choice<Option<SequenceKind>>] = &[
    ("mlp", None, "A perceptron on all bits at once"),
    ("lstm", Some(SequenceKind::Lstm), "Long short-term memory"),
    ("gru", Some(SequenceKind::Gru), "Gated recurrent units"),
    ("transformer", Some(SequenceKind::Transformer { heads: 4 }), "A causal transformer, four heads"),
];

/// The number of bits in a sequence.
const N_BITS: usize = 8;
/// The number of hidden modes.
const N_MODES: usize = 4;

impl Task for BitSequences {
    fn run(&self) -> Result<()> {
        let common = &self.common;
        let env = BitSequence::new(1, N_BITS)?.env();
        let words = Words::new(1, N_BITS)?;
        // Modes are joined from short bit patterns, the motifs. A standard motif is as long as a sequence, so
        // each mode would be a single motif. Therefore, only every second bit of each standard motif is used.
        let motifs = standard_motifs().into_iter().map(|motif| motif.into_iter().step_by(2).collect());
        let modes = motif_tilings(N_BITS, N_MODES, &motifs.collect::<Vec<_>>(), &mut Rng::seeded(0))?;
        let reward = HammingReward::with_temperature(&words, &modes, 1.0)?;
        let run = Run::begin(common, Recipe { steps: 1_000, batch: 16, ..Recipe::default() })?;
        let log_z = reward.log_z();
        let task = json!({ "n_bits": N_BITS, "modes": modes });
        let trainer = match self.policy.value {
            None => run.perceptron(env, reward, common.perceptron(BackwardPolicy::Uniform), task)?,
            Some(kind) => {
                refuse(
                    &["--backward"],
                    "a command without this flag, because each sequence has a single parent, the sequence \
                     without its last token",
                )?;
                let layout = SequenceLayout { values: words.values(), length: words.n_words(), unset: 0 };
                let width = common.embedding.unwrap_or(64);
                let layers = common.layers.unwrap_or(2) as i64;
                let net = SequenceNetConfig { kind, width, layers };
                let config = SequencePolicyConfig {
                    net,
                    estimators: common.estimators(),
                    ..SequencePolicyConfig::default()
                };
                run.build(env, reward, config, task, run.rng(), |env, config, device, kind, rng| {
                    SequencePolicy::new(env, layout, config, device, kind, rng)
                })?
            }
        };
        run.learn(trainer, "objects", Vec::new(), |report, _, _| {
            report.set_log_z(log_z);
            Ok(())
        })
    }
}

/// Train a perceptron to write DNA that a transcription factor binds
#[derive(Args)]
pub(crate) struct TfBind8 {
    /// CSV file with the scores of all sequences, under the header `sequence,reward`. The script
    /// scripts/tfbind8_table.py makes it from the published file
    #[arg(long)]
    table: PathBuf,
    #[command(flatten)]
    common: Common,
}

/// The exponent of the reward. The reward is this power of a sequence's score.
const TFBIND8_EXPONENT: f64 = 3.0;

impl Task for TfBind8 {
    fn run(&self) -> Result<()> {
        let sequence = TokenSequence::tf_bind_8();
        let reward = TableReward::read(&sequence, &Alphabet::dna(), &self.table, None)?;
        let recipe = Recipe { steps: 10_000, epsilon: 0.05, lr: 2e-3, ..Recipe::default() };
        let run = Run::begin(&self.common, recipe)?;
        let reward = reward.with_exponent(TFBIND8_EXPONENT)?;
        learn(&run, sequence.env(), reward, "sequences", None)
    }
}

/// Train a perceptron to build molecules from five blocks
#[derive(Args)]
pub(crate) struct Qm9Strings {
    #[command(flatten)]
    common: Common,
}

/// The exponent of the reward. The reward is this power of a molecule's score.
const QM9_EXPONENT: f64 = 5.0;

impl Task for Qm9Strings {
    fn run(&self) -> Result<()> {
        let reward = Qm9StrReward::with_exponent(QM9_EXPONENT)?;
        // `exact_up_to` is larger than the number of states, so exact distances are computed.
        let recipe =
            Recipe { steps: 20_000, epsilon: 0.05, lr: 2e-3, exact_up_to: 200_000, ..Recipe::default() };
        let run = Run::begin(&self.common, recipe)?;
        let log_z = reward.log_z();
        learn(&run, Qm9Str.env(), reward, "objects", Some(log_z))
    }
}

/// Trains a perceptron, and reports the rank correlation between the learned probabilities of objects and
/// their rewards.
fn learn(
    run: &Run<'_>,
    env: VectorEnv,
    reward: impl Reward<VectorStates> + 'static,
    objects: &str,
    log_z: Option<f64>,
) -> Result<()> {
    let network = run.common.perceptron(BackwardPolicy::Uniform);
    let trainer = run.perceptron(env, reward, network, json!({}))?;
    run.learn(trainer, objects, Vec::new(), |report, _, exact| {
        report.set_log_z(log_z);
        if let Some(exact) = exact {
            let probs = exact.end_values(&exact.probs);
            let log_rewards = exact.end_values(&exact.target.log_rewards);
            report.set("spearman", Correlation::between(&probs, &log_rewards)?.spearman);
        }
        Ok(())
    })
}
