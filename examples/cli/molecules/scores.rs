//! The scores that the flags name.

use std::sync::Arc;

use clap::{Args, ValueEnum};
use gfn::{Error, Result};
use gfn_gym::molecule::{
    ExternalScorer, ExternalScorerConfig, LogWindow, Molecule, MoleculeScore, Product, RingTarget,
};

/// What is rewarded, and how.
#[derive(Args, Clone, Debug)]
pub struct ScoreArgs {
    /// What is rewarded
    #[arg(long, value_enum, default_value = "heteroatoms")]
    pub reward: RewardName,
    /// Program for `--reward external`: reads a SMILES per line, writes a score of 0 or more per line
    #[arg(long, required_if_eq("reward", "external"))]
    pub command: Option<String>,
    /// Processes of that program; 2 if not given
    #[arg(long, requires = "command")]
    pub workers: Option<usize>,
    /// R is the score to this power
    #[arg(long, default_value_t = 1.0)]
    pub beta: f64,
}

/// What is rewarded.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum RewardName {
    /// Every molecule alike
    Constant,
    /// 0.1 and the share of atoms that aren't carbon
    Heteroatoms,
    /// exp(number of rings)
    Rings,
    /// exp(donors + acceptors)
    HydrogenBonds,
    /// A weight of 100 to 300 and a polar surface of 40 to 90
    DrugLike,
    /// What an external program says
    External,
}

/// A score that the reward and the report share.
#[derive(Clone)]
pub struct Shared(Arc<dyn MoleculeScore>);

impl MoleculeScore for Shared {
    fn log_scores(&self, molecules: &[Molecule]) -> Result<Vec<f64>> {
        self.0.log_scores(molecules)
    }
}

/// The score to the power of `--beta`, of at least e^-20 so that every molecule has a finite log-reward.
pub fn score(args: &ScoreArgs) -> Result<Shared> {
    if let Some(command) = args.command.as_ref().filter(|_| args.reward != RewardName::External) {
        let expected = "--reward external beside it";
        return Err(Error::Config { setting: "--command", got: command.clone(), expected });
    }
    let score: Box<dyn MoleculeScore> = match args.reward {
        RewardName::Constant => Box::new(|_: &Molecule| 1.0),
        RewardName::Heteroatoms => Box::new(|molecule: &Molecule| 0.1 + molecule.heteroatom_share()),
        RewardName::Rings => Box::new(RingTarget { most: usize::MAX }),
        RewardName::HydrogenBonds => {
            Box::new(|molecule: &Molecule| ((molecule.n_donors() + molecule.n_acceptors()) as f64).exp())
        }
        RewardName::DrugLike => {
            Box::new(Product::new().times(LogWindow::new(Molecule::weight, 100.0, 300.0, 50.0)?).times(LogWindow::new(
                Molecule::polar_surface,
                40.0,
                90.0,
                20.0,
            )?))
        }
        RewardName::External => {
            let command = args.command.as_deref().unwrap_or_default().split_whitespace();
            let config =
                ExternalScorerConfig { workers: args.workers.unwrap_or(2), ..ExternalScorerConfig::new(command) };
            Box::new(ExternalScorer::new(config)?)
        }
    };
    Ok(Shared(Arc::new(score.clamped((-20f64).exp(), f64::MAX)?.to_the(args.beta)?)))
}
