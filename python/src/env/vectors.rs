//! Environments of vectors.

use gfn::Result;
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

use crate::kinds::{AnySpace, ByKind, Space};

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

impl VectorSpec {
    pub(super) fn build(&self) -> Result<AnySpace> {
        let (env, values, is_sequence) = match *self {
            Self::HyperGrid { ndim, height } => (HyperGrid::new(ndim, height)?.env(), height, false),
            Self::BitSequence { word_size, seq_size } => {
                let values = Words::new(word_size, seq_size)?.values();
                (BitSequence::new(word_size, seq_size)?.env(), values, true)
            }
            Self::PrependAppendBitSequence { word_size, seq_size } => {
                let values = Words::new(word_size, seq_size)?.values();
                (PrependAppendBitSequence::new(word_size, seq_size)?.env(), values, false)
            }
            Self::NonAutoregressiveBitSequence { word_size, seq_size } => {
                let values = Words::new(word_size, seq_size)?.values();
                (NonAutoregressiveBitSequence::new(word_size, seq_size)?.env(), values, false)
            }
            Self::TokenSequence { n_tokens, length, min_length } => {
                let sequence = match min_length {
                    None => TokenSequence::fixed(n_tokens, length)?,
                    Some(least) => TokenSequence::variable(n_tokens, least, length)?,
                };
                let values = sequence.values();
                (sequence.env(), values, true)
            }
            Self::DiscreteEbm { n } => (DiscreteEbm::new(n)?.env(), 3, false),
            Self::SetAddition { n_items, max_items, fixed_length } => {
                (SetAddition::new(n_items, max_items, fixed_length)?.env(), 2, false)
            }
            Self::PerfectBinaryTree { depth } => (PerfectBinaryTree::new(depth)?.env(), 3, false),
            Self::PhyloTree { n } => (PhyloTree::new(n)?.env(), n, false),
            Self::ToyDag {} => (ToyDag.env(), ToyDag::N_STATES, false),
        };
        let mut space = Space::vectors(env, values);
        if is_sequence {
            space.facts.sequence = Some(SequenceLayout { values, length: space.env.width(), unset: 0 });
        }
        space.facts.spec = Some(self.clone());
        Ok(ByKind::Vectors(space))
    }
}
