//! What a certificate says.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{FlowConsistency, Interval, LogProb};

/// Bounds on log Z.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogZBounds {
    /// The log of the sum of the rewards of all objects that were seen, each once: log Z is at least that.
    pub seen: f64,
    /// log Z is at least that with a probability of 97.5 %, whatever the policy is: `seen`, or by Markov's inequality on weighted samples
    /// of the policy and of uniform random walks.
    pub at_least: f64,
    /// A lower bound: the mean of log w over the policy's trajectories (ELBO).
    pub lower: Interval,
    /// The log of the mean of w, by importance; `None` where too few samples carry it ([`Finding::FewEffectiveSamples`]).
    pub estimate: Option<Interval>,
    /// An upper bound: the mean of log w over the target's trajectories (EUBO).
    pub upper: Interval,
    /// Where `upper` comes from.
    pub upper_from: UpperBound,
}

/// The trajectories that an upper bound on log Z is the mean of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpperBound {
    /// Those back from objects of the target that were given: a bound whatever the policy is.
    Target,
    /// The policy's own, reweighted: a bound only if the policy reaches all that has mass.
    Reweighted,
}

/// Bounds on the total variation between the policy and the target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TvBounds {
    /// It is at least that, by objects that are more or less probable than their rewards allow.
    pub at_least: f64,
    /// It is at most that, by the trajectories' weights (`E[max(0, 1 - w / Z)]`): 1 where nothing is known.
    pub at_most: f64,
    /// The log Z that both assume to be no less than the true one; `None` where none is known.
    pub if_log_z_at_most: Option<f64>,
}

/// Where an object was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeSource {
    /// Drawn by the policy.
    Policy,
    /// The end of a uniform random walk.
    Uniform,
    /// The end of a local search for rewards, which began at a uniform random walk's.
    Search,
}

/// An object that the policy's probability was estimated of.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// Its log-probability.
    pub log_prob: LogProb,
    /// Its log-reward.
    pub log_reward: f64,
    /// The source that found it first.
    pub source: ProbeSource,
}

/// A reason not to trust a policy, or its certificate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// So few samples, weighted equally, carry as much information as the policy's: log Z and an upper bound on total variation aren't known.
    FewEffectiveSamples {
        /// Their number.
        effective: f64,
    },
    /// Objects that have less than a tenth of the probability that they should have.
    Neglected {
        /// Their number, of those that were found.
        objects: usize,
        /// The share of the target's mass that they have, at least.
        mass: f64,
    },
    /// log Z is larger than the policy's own samples say: it misses mass.
    LogZContradicted {
        /// log Z is at least that.
        at_least: f64,
        /// The upper end of the interval by the policy's samples.
        estimated: f64,
    },
    /// Learned and wanted probabilities differ by more than noise makes.
    Inconsistent {
        /// The lower end of flow consistency.
        at_least: f64,
    },
}

/// The knowledge of a policy that samples alone give. Each bound holds by itself with a probability of 95 % or more, each interval, meant for
/// 95 %, with 88 to 98 % where `reproduce certificates` measured it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// The policy's trajectories.
    pub samples: usize,
    /// The number of equally weighted ones that carry as much information.
    pub effective_samples: f64,
    /// Bounds on log Z.
    pub log_z: LogZBounds,
    /// Bounds on the total variation to the target.
    pub tv: TvBounds,
    /// Flow consistency on subsets of the probes.
    pub consistency: FlowConsistency,
    /// Reasons not to trust the policy; none says that none was found.
    pub findings: Vec<Finding>,
    /// The objects that were looked at.
    pub probes: Vec<Probe>,
}

impl Certificate {
    /// `true` if nothing was found against the policy.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FewEffectiveSamples { effective } => {
                write!(f, "only {effective:.1} effective samples: log Z and the largest TV aren't known")
            }
            Self::Neglected { objects, mass } => {
                write!(f, "{objects} objects with at least {:.2} % of the target are hardly ever sampled", 100.0 * mass)
            }
            Self::LogZContradicted { at_least, estimated } => {
                write!(
                    f,
                    "log Z is at least {at_least:.3}, the policy's samples say at most {estimated:.3}: it misses mass"
                )
            }
            Self::Inconsistent { at_least } => {
                write!(f, "flow consistency is at least {at_least:.3}: probabilities don't follow rewards")
            }
        }
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.4} ({:.4} to {:.4})", self.estimate, self.low, self.high)
    }
}

/// A table of it, and what isn't known.
impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let z = &self.log_z;
        writeln!(f, "samples            {} ({:.0} effective)", self.samples, self.effective_samples)?;
        writeln!(f, "log Z              at least {:.4}; of objects seen {:.4}", z.at_least, z.seen)?;
        writeln!(f, "  lower bound      {}", z.lower)?;
        match &z.estimate {
            Some(estimate) => writeln!(f, "  by importance    {estimate}")?,
            None => writeln!(f, "  by importance    not known")?,
        }
        let from = match z.upper_from {
            UpperBound::Target => "objects of the target",
            UpperBound::Reweighted => "the policy's samples reweighted",
        };
        writeln!(f, "  upper bound      {}, by {from}", z.upper)?;
        let assumed = self.tv.if_log_z_at_most.map_or(String::new(), |z| format!(" if log Z is at most {z:.4}"));
        writeln!(f, "TV to the target   {:.4} to {:.4}{assumed}", self.tv.at_least, self.tv.at_most)?;
        writeln!(f, "flow consistency   {}, noise {:.4}", self.consistency.fcs, self.consistency.floor)?;
        writeln!(f, "objects looked at  {}", self.probes.len())?;
        for finding in &self.findings {
            writeln!(f, "! {finding}")?;
        }
        let nothing = if self.is_clean() { "Nothing was found against the policy. " } else { "" };
        write!(f, "{nothing}Objects that neither it, nor random walks, nor a search came to aren't judged.")
    }
}
