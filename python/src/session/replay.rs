//! A replay buffer by its settings.

use gfn::env::Env;
use gfn::replay::{Diversity, ReplayBuffer, ReplayConfig};
use gfn::{Error, Result};
use serde::Deserialize;

use crate::objects::Encoding;

/// The settings of a buffer.
#[derive(Deserialize)]
pub(super) struct Replay {
    /// Whether each object is in it once.
    distinct: bool,
    /// The least distance between two objects once it is full.
    diverse: Option<Diverse>,
    /// Whether objects are kept without the ways to them.
    objects_alone: bool,
    #[serde(flatten)]
    config: ReplayConfig,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(deny_unknown_fields)]
struct Diverse {
    cutoff: f64,
    norm: Norm,
}

/// How the difference of two vectors is measured.
#[derive(Deserialize, Clone, Copy)]
enum Norm {
    L1,
    L2,
    Max,
}

impl Norm {
    fn p(self) -> f64 {
        match self {
            Self::L1 => 1.0,
            Self::L2 => 2.0,
            Self::Max => f64::INFINITY,
        }
    }
}

impl Replay {
    /// The buffer; `distinct` makes one that holds each object once, `features` are the vectors that distances are between.
    pub(super) fn build<E: Env>(
        self,
        distinct: impl Fn(ReplayConfig) -> Result<ReplayBuffer<E>>,
        features: Option<Encoding<E::States>>,
    ) -> Result<ReplayBuffer<E>>
    where
        E::States: 'static,
    {
        let mut buffer = if self.distinct { distinct(self.config)? } else { ReplayBuffer::new(self.config)? };
        if let Some(Diverse { cutoff, norm }) = self.diverse {
            let Some(features) = features else {
                let expected = "None, where states aren't vectors of one width";
                return Err(Error::config("diverse", cutoff, expected));
            };
            buffer = buffer.diverse(Diversity::new(cutoff, norm.p(), features)?);
        }
        Ok(if self.objects_alone { buffer.terminal_only() } else { buffer })
    }
}
