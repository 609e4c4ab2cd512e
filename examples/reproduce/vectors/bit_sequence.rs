//! Bit sequences near some hidden modes, written from left to right, at both ends, or word by word in any order.

use clap::{Parser, ValueEnum};
use gfn::env::{DiscreteEnv, EnumerableEnv, Slots, VectorStates};
use gfn::nn::SequenceKind;
use gfn::policy::{KHot, SequenceLayout};
use gfn::{Result, Rng};
use gfn_gym::bit_sequence::{
    BitSequence, HammingReward, NonAutoregressiveBitSequence, PrependAppendBitSequence, Words, motif_tilings,
    standard_motifs,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::cli::{Common, Defaults, Extra, VectorRun, VectorTask, refuse};

/// Train a policy to write bit sequences near hidden modes
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// How sequences are written
    #[arg(long, value_enum, default_value = "append")]
    order: Order,
    /// What reads them; all but the perceptron read them from left to right, as --order append writes them
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

/// States up to which the distribution is exact.
const EXACT_LIMIT: usize = 100_000;

pub(crate) fn run(args: &Args) -> Result<()> {
    let elsewhere = args.policy != PolicyName::Mlp && args.order != Order::Append;
    refuse("--policy", elsewhere, "mlp, or --order append: other networks read from left to right")?;
    match args.order {
        Order::Append => train(args, BitSequence::new(args.word_size, args.seq_size)?),
        Order::PrependAppend => train(args, PrependAppendBitSequence::new(args.word_size, args.seq_size)?),
        Order::Any => train(args, NonAutoregressiveBitSequence::new(args.word_size, args.seq_size)?),
    }
}

fn train<E>(args: &Args, env: E) -> Result<()>
where
    E: EnumerableEnv + DiscreteEnv<States = VectorStates, Actions = Slots> + Clone + 'static,
    E::Key: Serialize + DeserializeOwned + 'static,
{
    let words = Words::new(args.word_size, args.seq_size)?;
    let modes = modes(args)?;
    let reward = HammingReward::with_temperature(&words, &modes, args.reward_temperature)?;
    let task = VectorTask {
        example: "bit_sequence",
        title: format!("sequences of {} bits, {} modes", args.seq_size, modes.len()),
        env,
        features: KHot::new(words.entries(), words.values()),
        defaults: Defaults { steps: 1_000, batch: 16, epsilon: 0.1, lr: 3e-3, ..Defaults::default() },
        exact_limit: EXACT_LIMIT,
        log_z_true: reward.log_z(),
        reward,
        description: json!({ "order": format!("{:?}", args.order), "word_size": args.word_size,
            "seq_size": args.seq_size, "modes": modes, "temperature": args.reward_temperature }),
        adjust: Box::new(|config| config),
        diverse: None,
        is_mode: None,
    };
    match args.policy.reads() {
        None => task.run(&args.common, extra),
        Some(kind) => {
            let layout = SequenceLayout { values: words.values(), length: words.entries(), unset: 0 };
            task.run_reading(&args.common, (layout, kind), extra)
        }
    }
}

fn extra<E: EnumerableEnv + DiscreteEnv<Actions = Slots>, P>(run: &VectorRun<E, P>) -> Result<Extra> {
    let mut extra = run.modes()?;
    let error = run.exact.as_ref().map(|(exact, probs)| {
        let ends = exact.graph.ends();
        let error: f64 = ends.iter().map(|&state| (probs[state] - exact.target.probs[state]).abs()).sum();
        error / ends.len() as f64
    });
    extra.push(("mean_absolute_error", json!(error)));
    Ok((extra, Vec::new()))
}

/// Tilings of motifs of eight bits, or of every second bit of them where those would be all there is.
fn modes(args: &Args) -> Result<Vec<Vec<bool>>> {
    let motifs = match args.seq_size.is_multiple_of(8) && args.seq_size > 8 {
        true => standard_motifs(),
        false => standard_motifs().into_iter().map(|motif| motif.into_iter().step_by(2).collect()).collect(),
    };
    motif_tilings(args.seq_size, args.n_modes, &motifs, &mut Rng::seeded(args.mode_seed))
}
