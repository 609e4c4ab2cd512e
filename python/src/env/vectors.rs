//! Environments of vectors.

use gfn::Result;
use gfn::env::{VectorEnv, VectorRules};
use gfn::policy::SequenceLayout;
use gfn_gym::bit_sequence::{BitSequence, NonAutoregressiveBitSequence, PrependAppendBitSequence, Words};
use gfn_gym::discrete_ebm::DiscreteEbm;
use gfn_gym::hypergrid::HyperGrid;
use gfn_gym::perfect_tree::PerfectBinaryTree;
use gfn_gym::phylo_tree::PhyloTree;
use gfn_gym::sequence::TokenSequence;
use gfn_gym::set_addition::SetAddition;
use gfn_gym::toy_dag::ToyDag;
use serde::Deserialize;

use super::AnyVectorEnv;

/// Their settings, by the name of the class in Python.
#[derive(Clone, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) enum VectorSpec {
    HyperGrid { ndim: usize, height: usize },
    BitSequence { word_size: usize, seq_size: usize },
    PrependAppendBitSequence { word_size: usize, seq_size: usize },
    NonAutoregressiveBitSequence { word_size: usize, seq_size: usize },
    TokenSequence { n_tokens: usize, length: usize, min_length: Option<usize> },
    DiscreteEbm { n: usize },
    SetAddition { n_items: usize, max_items: usize, fixed_length: bool },
    PerfectBinaryTree { depth: usize },
    PhyloTree { n: usize },
    ToyDag {},
}

/// An environment of vectors, and what networks must know of it.
#[derive(Clone)]
pub(crate) struct Vectors {
    pub(crate) env: AnyVectorEnv,
    /// Values of an entry.
    pub(crate) values: usize,
    /// Where what is written is read from left to right.
    pub(crate) sequence: Option<SequenceLayout>,
}

impl Vectors {
    pub(super) fn of<R: VectorRules + 'static>(env: VectorEnv<R>, values: usize) -> Self {
        let width = env.width();
        Self { env: AnyVectorEnv::new(env, width), values, sequence: None }
    }

    fn written(self) -> Self {
        let layout = SequenceLayout { values: self.values, length: self.env.width(), unset: 0 };
        Self { sequence: Some(layout), ..self }
    }
}

impl VectorSpec {
    pub(super) fn build(&self) -> Result<Vectors> {
        Ok(match *self {
            Self::HyperGrid { ndim, height } => Vectors::of(HyperGrid::new(ndim, height)?, height),
            Self::BitSequence { word_size, seq_size } => {
                let values = Words::new(word_size, seq_size)?.values();
                Vectors::of(BitSequence::new(word_size, seq_size)?, values).written()
            }
            Self::PrependAppendBitSequence { word_size, seq_size } => {
                let values = Words::new(word_size, seq_size)?.values();
                Vectors::of(PrependAppendBitSequence::new(word_size, seq_size)?, values)
            }
            Self::NonAutoregressiveBitSequence { word_size, seq_size } => {
                let values = Words::new(word_size, seq_size)?.values();
                Vectors::of(NonAutoregressiveBitSequence::new(word_size, seq_size)?, values)
            }
            Self::TokenSequence { n_tokens, length, min_length } => {
                let env = match min_length {
                    None => TokenSequence::fixed(n_tokens, length)?,
                    Some(least) => TokenSequence::variable(n_tokens, least, length)?,
                };
                let values = env.values();
                Vectors::of(env, values).written()
            }
            Self::DiscreteEbm { n } => Vectors::of(DiscreteEbm::new(n)?, 3),
            Self::SetAddition { n_items, max_items, fixed_length } => {
                Vectors::of(SetAddition::new(n_items, max_items, fixed_length)?, 2)
            }
            Self::PerfectBinaryTree { depth } => Vectors::of(PerfectBinaryTree::new(depth)?, 3),
            Self::PhyloTree { n } => Vectors::of(PhyloTree::new(n)?, n),
            Self::ToyDag {} => Vectors::of(VectorEnv(ToyDag), ToyDag::N_STATES),
        })
    }
}
