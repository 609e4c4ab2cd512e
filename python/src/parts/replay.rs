//! A replay buffer by its settings.

use gfn::replay::{Diversity, ReplayBuffer, ReplayConfig};
use gfn::{Error, Result};
use serde::Deserialize;

use super::PyPriority;
use crate::kinds::{PyEnv, Space};

/// The settings of a buffer.
#[derive(Deserialize)]
pub(crate) struct ReplaySettings {
    /// `true` if each object is in it once.
    distinct: bool,
    /// The least distance between two objects once it is full.
    diverse: Option<DiversitySettings>,
    /// `true` if objects are kept without the ways to them.
    objects_alone: bool,
    #[serde(flatten)]
    config: ReplayConfig,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(deny_unknown_fields)]
struct DiversitySettings {
    cutoff: f64,
    norm: Norm,
}

/// The norm of the difference of two vectors.
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

impl ReplaySettings {
    /// Builds the buffer; `priority` is the function of Python that it draws by.
    pub(crate) fn build<E: PyEnv>(self, space: &Space<E>, priority: Option<PyPriority>) -> Result<ReplayBuffer<E>> {
        let mut buffer = match (self.distinct, E::discrete(), priority) {
            (true, Some(discrete), priority) => (discrete.distinct)(self.config, priority)?,
            (true, None, _) => {
                let expected = "false, where states are points: no two are equal";
                return Err(Error::config("distinct", true, expected));
            }
            (false, _, Some(priority)) => ReplayBuffer::by_priority(self.config, priority)?,
            (false, _, None) => ReplayBuffer::new(self.config)?,
        };
        if let Some(DiversitySettings { cutoff, norm }) = self.diverse {
            let Some(features) = space.border.features() else {
                let expected = "None, where states aren't vectors of one width";
                return Err(Error::config("diverse", cutoff, expected));
            };
            buffer = buffer.diverse(Diversity::new(cutoff, norm.p(), features)?);
        }
        Ok(if self.objects_alone { buffer.terminal_only() } else { buffer })
    }
}
