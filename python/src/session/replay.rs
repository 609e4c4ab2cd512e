//! A replay buffer by its settings.

use gfn::env::Env;
use gfn::replay::{Diversity, ReplayBuffer, ReplayConfig};
use gfn::{Error, Result};
use serde::Deserialize;

use crate::objects::Encoding;
use crate::parts::CalledPriority;

/// The settings of a buffer.
#[derive(Deserialize)]
pub(super) struct Replay {
    /// `true` if each object is in it once.
    distinct: bool,
    /// The least distance between two objects once it is full.
    diverse: Option<Diverse>,
    /// `true` if objects are kept without the ways to them.
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

/// Makes buffers in which each object is once; by a rule of Python's, if there is one.
pub(super) type Distinct<E> = fn(ReplayConfig, Option<CalledPriority>) -> Result<ReplayBuffer<E>>;

impl Replay {
    /// The buffer; `distinct` makes one that holds each object once, `features` are the vectors that distances are between, `priority` is
    /// what Python draws by.
    pub(super) fn build<E: Env>(
        self,
        distinct: Distinct<E>,
        features: Option<Encoding<E::States>>,
        priority: Option<CalledPriority>,
    ) -> Result<ReplayBuffer<E>>
    where
        E::States: 'static,
    {
        let mut buffer = match (self.distinct, priority) {
            (true, priority) => distinct(self.config, priority)?,
            (false, Some(priority)) => ReplayBuffer::by_priority(self.config, priority)?,
            (false, None) => ReplayBuffer::new(self.config)?,
        };
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
