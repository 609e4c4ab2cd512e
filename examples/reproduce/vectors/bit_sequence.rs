//! Bit sequences near some hidden modes, written from left to right, at both ends, or word by word in any order.

use clap::{Parser, ValueEnum};
use gfn::env::VectorEnv;
use gfn::nn::{BackwardPolicy, SequenceKind, SequenceNetConfig};
use gfn::policy::{KHot, SequenceLayout, SequencePolicy, SequencePolicyConfig};
use gfn::replay::ReplayBuffer;
use gfn::train::Trainer;
use gfn::{Result, Rng};
use gfn_gym::bit_sequence::{
    BitSequence, HammingReward, NonAutoregressiveBitSequence, PrependAppendBitSequence, Words, motif_tilings,
    standard_motifs,
};
use serde_json::json;

use super::perceptron;
use crate::flags::{Common, refuse};
use crate::run::{Recipe, Run};

/// Train a policy to write bit sequences near hidden modes
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Order in which sequences are written
    #[arg(long, value_enum, default_value = "append")]
    order: Order,
    /// Network that reads them; all but the perceptron read them from left to right, as --order append writes them
    #[arg(long, value_enum, default_value = "mlp")]
    policy: PolicyName,
    /// Bits per word
    #[arg(long, default_value_t = 1)]
    word_size: usize,
    /// Bits per sequence
    #[arg(long, default_value_t = 8)]
    seq_size: usize,
    /// Number of modes
    #[arg(long, default_value_t = 4)]
    n_modes: usize,
    /// Seed of the modes
    #[arg(long, default_value_t = 0)]
    mode_seed: u64,
    /// log R = -(distance from the nearest mode) / temperature
    #[arg(long, default_value_t = 1.0)]
    reward_temperature: f64,
    #[command(flatten)]
    common: Common,
}

/// How sequences are written.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    /// Word by word from left to right
    Append,
    /// Words at either end
    PrependAppend,
    /// Words in any order
    Any,
}

/// The network.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum PolicyName {
    /// A perceptron on all words at once
    Mlp,
    /// Long short-term memory
    Lstm,
    /// Gated recurrent units
    Gru,
    /// A causal transformer, four heads
    Transformer,
}

impl PolicyName {
    fn reads(self) -> Option<SequenceKind> {
        match self {
            Self::Mlp => None,
            Self::Lstm => Some(SequenceKind::Lstm),
            Self::Gru => Some(SequenceKind::Gru),
            Self::Transformer => Some(SequenceKind::Transformer { heads: 4 }),
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.policy != PolicyName::Mlp && args.order != Order::Append {
        refuse(&["--policy"], "mlp, or --order append: other networks read from left to right")?;
    }
    match args.order {
        Order::Append => train(args, BitSequence::new(args.word_size, args.seq_size)?.env()),
        Order::PrependAppend => train(args, PrependAppendBitSequence::new(args.word_size, args.seq_size)?.env()),
        Order::Any => train(args, NonAutoregressiveBitSequence::new(args.word_size, args.seq_size)?.env()),
    }
}

fn train(args: &Args, env: VectorEnv) -> Result<()> {
    let common = &args.common;
    let words = Words::new(args.word_size, args.seq_size)?;
    let modes = modes(args)?;
    let reward = HammingReward::with_temperature(&words, &modes, args.reward_temperature)?;
    let title = format!("sequences of {} bits, {} modes", args.seq_size, modes.len());
    let run = Run::begin(common, "bit_sequence", title, Recipe { steps: 1_000, batch: 16, ..Recipe::default() })?;
    let (log_z, features) = (reward.log_z(), KHot::new(words.entries(), words.values()));
    let task = json!({ "order": format!("{:?}", args.order), "word_size": args.word_size, "seq_size": args.seq_size,
        "modes": modes, "temperature": args.reward_temperature });
    let Some(kind) = args.policy.reads() else {
        return learn(&run, perceptron(&run, env, features, reward, BackwardPolicy::Uniform, &task)?, log_z);
    };
    refuse(&["--backward"], "no such flag: a sequence has one parent, without its end")?;
    let layout = SequenceLayout { values: words.values(), length: words.entries(), unset: 0 };
    let (width, layers) = (common.embedding.unwrap_or(64), common.layers.unwrap_or(2) as i64);
    let (net, estimators) = (SequenceNetConfig { kind, width, layers }, common.objective.estimators());
    let config = SequencePolicyConfig { net, estimators, ..SequencePolicyConfig::default() };
    let (mut rng, (device, float)) = (run.rng(), run.tensors());
    let description = json!({ "example": run.example, "task": task, "network": config });
    let policy = SequencePolicy::new(&env, layout, config, device, float, &mut rng)?;
    let trainer = Trainer::new(env, reward, policy, run.objective()?, run.config.clone(), rng)?;
    learn(&run, trainer.described_by(&description)?, log_z)
}

fn learn(run: &Run<'_>, trainer: Trainer<VectorEnv>, log_z: Option<f64>) -> Result<()> {
    let trainer = run.replayed(trainer, ReplayBuffer::new)?;
    let Some(mut learned) = run.learn(trainer, "objects", Vec::new())? else { return Ok(()) };
    let error = learned.exact.as_ref().map(|exact| {
        let ends = exact.graph.ends();
        let error: f64 = ends.iter().map(|&state| (exact.probs[state] - exact.target.probs[state]).abs()).sum();
        error / ends.len() as f64
    });
    learned.report.set("mean_absolute_error", error);
    log_z.iter().for_each(|log_z| learned.report.set("log_z_true", log_z));
    learned.print()
}

/// Tilings of motifs of eight bits, or of every second bit of them where those would be all there is.
fn modes(args: &Args) -> Result<Vec<Vec<bool>>> {
    let motifs = if args.seq_size.is_multiple_of(8) && args.seq_size > 8 {
        standard_motifs()
    } else {
        standard_motifs().into_iter().map(|motif| motif.into_iter().step_by(2).collect()).collect()
    };
    motif_tilings(args.seq_size, args.n_modes, &motifs, &mut Rng::seeded(args.mode_seed))
}
