//! Environments of vectors.

use gfn::Result;
use gfn::env::VectorEnv;
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
    pub(crate) env: VectorEnv,
    /// Values of an entry.
    pub(crate) values: usize,
    /// Where what is written is read from left to right.
    pub(crate) sequence: Option<SequenceLayout>,
}

impl Vectors {
    pub(super) fn new(env: VectorEnv, values: usize) -> Self {
        Self { env, values, sequence: None }
    }

    fn written(self) -> Self {
        let layout = SequenceLayout { values: self.values, length: self.env.width(), unset: 0 };
        Self { sequence: Some(layout), ..self }
    }
}

impl VectorSpec {
    pub(super) fn build(&self) -> Result<Vectors> {
        Ok(match *self {
            Self::HyperGrid { ndim, height } => Vectors::new(HyperGrid::new(ndim, height)?.env(), height),
            Self::BitSequence { word_size, seq_size } => {
                let values = Words::new(word_size, seq_size)?.values();
                Vectors::new(BitSequence::new(word_size, seq_size)?.env(), values).written()
            }
            Self::PrependAppendBitSequence { word_size, seq_size } => {
                let values = Words::new(word_size, seq_size)?.values();
                Vectors::new(PrependAppendBitSequence::new(word_size, seq_size)?.env(), values)
            }
            Self::NonAutoregressiveBitSequence { word_size, seq_size } => {
                let values = Words::new(word_size, seq_size)?.values();
                Vectors::new(NonAutoregressiveBitSequence::new(word_size, seq_size)?.env(), values)
            }
            Self::TokenSequence { n_tokens, length, min_length } => {
                let sequence = match min_length {
                    None => TokenSequence::fixed(n_tokens, length)?,
                    Some(least) => TokenSequence::variable(n_tokens, least, length)?,
                };
                let values = sequence.values();
                Vectors::new(sequence.env(), values).written()
            }
            Self::DiscreteEbm { n } => Vectors::new(DiscreteEbm::new(n)?.env(), 3),
            Self::SetAddition { n_items, max_items, fixed_length } => {
                Vectors::new(SetAddition::new(n_items, max_items, fixed_length)?.env(), 2)
            }
            Self::PerfectBinaryTree { depth } => Vectors::new(PerfectBinaryTree::new(depth)?.env(), 3),
            Self::PhyloTree { n } => Vectors::new(PhyloTree::new(n)?.env(), n),
            Self::ToyDag {} => Vectors::new(ToyDag.env(), ToyDag::N_STATES),
        })
    }
}
