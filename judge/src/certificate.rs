//! The report that [`certify`](crate::certify()) returns. Probes are the objects whose probability under the
//! policy was estimated for this report.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{FlowConsistency, Interval, LogProb};

/// Bounds on log Z, and estimates of log Z.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogZBounds {
    /// The log of the sum of the rewards of all distinct objects that were found. This number is at most the
    /// true log Z.
    pub from_found_objects: f64,
    /// A lower bound on log Z, which is false with a probability of at most 1 % for any policy. The bound is
    /// the largest of three bounds: `from_found_objects`, and two bounds that follow from `E[w] <= Z`, for
    /// trajectories of the policy and for uniform random trajectories. The importance weight w of a
    /// trajectory is R(x) P_B / P_F.
    pub at_least: f64,
    /// An upper bound on log Z, which is false with a probability of at most 1 % for any policy. The bound
    /// follows from `E[1 / w] <= 1 / Z`, with w = R(x) P_B / P_F, for backward trajectories from objects
    /// drawn independently from the target. n such objects may all be outside of a part of the target whose
    /// probability is about 5 / n, so the bound is raised by about 5 / n. The bound is never below
    /// `at_least`. `None` if there are no objects from the target, because the policy's own samples give no
    /// upper bound.
    pub at_most: Option<f64>,
    /// An estimate of log Z, not a bound: the mean of log w, with w = R(x) P_B / P_F, over the policy's
    /// trajectories (ELBO), with a normal interval. The true mean is at most log Z.
    pub elbo: Interval,
    /// An estimate of log Z, not a bound: the log of the mean importance weight w = R(x) P_B / P_F over the
    /// policy's trajectories (importance sampling). The interval holds only if the policy can sample all
    /// trajectories that contribute much to Z. Whether this condition holds can't be seen from the policy's
    /// own trajectories. `None` if one of the certificate's [`Limit`]s makes the estimate unreliable.
    pub estimate: Option<Interval>,
}

/// Bounds on the total variation between the policy and the target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TvBounds {
    /// A lower bound on the total variation, which is false with a probability of at most 5 % for any policy
    /// and any Z. The bound compares how often the policy samples two sets of objects, and the total rewards
    /// of these sets.
    pub at_least: f64,
    /// An upper bound on the total variation, which is false with a probability of at most 5 % for any
    /// policy. The bound is `E[max(0, 1 - w / Z)]` over the policy's trajectories, with w = R(x) P_B / P_F
    /// and with the upper bound `log_z.at_most` for log Z. The bound is 1 if no objects drawn from the target
    /// were given.
    pub at_most: f64,
    /// An upper bound on the total variation that holds only if log Z is at most `if_log_z_at_most`. The
    /// policy's own samples can't show that this condition is true. `None` if log Z has no estimate.
    pub at_most_by_importance: Option<f64>,
    /// The upper end of the interval of `log_z.estimate`. The bound `at_most_by_importance` holds if log Z is
    /// at most this number.
    pub if_log_z_at_most: Option<f64>,
}

/// The source that an object comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeSource {
    /// The object was sampled from the policy.
    Policy,
    /// The object is the end of a uniform random trajectory.
    Uniform,
    /// The object was found by a local search for large rewards, which started from the end of a uniform
    /// random trajectory.
    Search,
}

/// An object whose probability under the policy was estimated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// The log-probability of the object under the policy.
    pub log_prob: LogProb,
    /// The log-reward of the object.
    pub log_reward: f64,
    /// The first of the sources that found the object.
    pub source: ProbeSource,
}

/// A reason not to trust a policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The policy isn't exact, because the lower bound [`TvBounds::at_least`] is 0.01 or more.
    TotalVariation {
        /// The lower bound on the total variation between policy and target.
        at_least: f64,
    },
    /// The policy samples some objects less than a tenth as often as it should, relative to the other objects
    /// that were found. This is false with a probability of at most 1 %.
    Neglected {
        /// The number of objects that are sampled too rarely.
        objects: usize,
        /// The total reward of the objects that are sampled too rarely, divided by the total reward of all
        /// objects that were compared.
        mass: f64,
    },
}

/// A reason why a certificate lacks an estimate. This isn't evidence against the policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The policy's samples carry only as much information as `effective` equally weighted samples. If this
    /// number is below 400, log Z isn't estimated.
    FewEffectiveSamples {
        /// The number of equally weighted samples that carry as much information as the policy's samples.
        effective: f64,
    },
    /// The estimate of log Z by importance sampling is outside of the bounds on log Z, and therefore left
    /// out. The policy's trajectories miss objects, or paths to objects. Even an exact policy may miss paths.
    LogZContradicted {
        /// The estimate of log Z that was discarded.
        estimated: f64,
    },
    /// P_F builds objects in other orders than P_B removes their parts. Even an exact policy may do so.
    /// Trajectories of P_F then don't show how P_B behaves, and trajectories of P_B don't show how P_F
    /// behaves. The certificate therefore has no estimate of log Z and no flow consistency, and the estimated
    /// log-probabilities of objects may be far too low.
    PathsDisagree {
        /// The symmetric Kullback-Leibler divergence between the trajectories of P_F and of P_B to the same
        /// object, averaged over the policy's samples. Estimates are left out if this divergence is 2 nats or
        /// more.
        nats: f64,
    },
    /// The estimated log-probabilities of some probes (objects of [`Certificate::probes`]) have a
    /// [`bias`](LogProb::bias) above 0.1. These probes are left out of flow consistency.
    UncertainProbes {
        /// The number of probes (objects of [`Certificate::probes`]) that are left out of flow consistency.
        objects: usize,
    },
}

/// A report on the quality of a policy, computed from samples; see [`certify`](crate::certify()).
///
/// Fields named `at_least` and `at_most` are bounds; the documentation of each gives the probability that the
/// bound is false. All other numbers are estimates. The interval of an estimate is meant to hold for 95 % of
/// all policies whose samples miss nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// The number of trajectories that were sampled from the policy. An equal number of uniform random
    /// trajectories was sampled, too.
    pub samples: usize,
    /// An estimate of the number of equally weighted trajectories that would carry as much information as the
    /// policy's samples.
    pub effective_samples: f64,
    /// Bounds on log Z, and estimates of log Z.
    pub log_z: LogZBounds,
    /// Bounds on the total variation between the policy and the target.
    pub tv: TvBounds,
    /// An estimate of flow consistency on subsets of the objects in `probes`. `None` if the trajectories of
    /// P_F and of P_B differ too much, or if the log-probabilities of most of these objects are uncertain.
    pub consistency: Option<FlowConsistency>,
    /// Reasons not to trust the policy. If the list is empty, nothing was found against the policy. This
    /// doesn't prove that the policy is right.
    pub findings: Vec<Finding>,
    /// Reasons why estimates are left out, or why objects in `probes` are left out of flow consistency.
    pub limits: Vec<Limit>,
    /// The objects whose probability under the policy was estimated.
    pub probes: Vec<Probe>,
}

impl Certificate {
    /// Returns `true` if nothing was found against the policy. Check `limits`, too, because an estimate that
    /// was left out can't reveal an error.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TotalVariation { at_least } => {
                write!(f, "total variation to the target is at least {at_least:.4}")
            }
            Self::Neglected { objects, mass } => {
                let percent = 100.0 * mass;
                write!(
                    f,
                    "{objects} objects with {percent:.2} % of all rewards found are hardly ever sampled"
                )
            }
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::FewEffectiveSamples { effective } => {
                write!(f, "log Z has no estimate: it needs 400 effective samples, these are {effective:.1}")
            }
            Self::LogZContradicted { estimated } => {
                write!(f, "log Z has no estimate: {estimated:.4}, by importance, is outside its bounds. ")?;
                write!(f, "The samples miss objects, or ways to build them")
            }
            Self::PathsDisagree { nats } => {
                write!(
                    f,
                    "log Z and flow consistency have no estimate: P_F builds objects in other orders than \
                     P_B "
                )?;
                write!(f, "takes them apart ({nats:.1} nats, 2 are too many)")
            }
            Self::UncertainProbes { objects } => {
                write!(
                    f,
                    "flow consistency leaves out {objects} objects of uncertain probability (bias above 0.1)"
                )
            }
        }
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.4} ({:.4} to {:.4})", self.estimate, self.low, self.high)
    }
}

/// Formats the certificate as a table of its bounds, estimates, findings and limits.
impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let z = &self.log_z;
        let tv = &self.tv;
        writeln!(f, "samples            {} ({:.0} effective)", self.samples, self.effective_samples)?;
        let at_most = z.at_most.map_or("unknown".to_owned(), |most| format!("{most:.4}"));
        writeln!(
            f,
            "log Z              at least {:.4}, at most {at_most} (each at a risk of 1 %)",
            z.at_least
        )?;
        writeln!(f, "  found objects    {:.4}", z.from_found_objects)?;
        let estimate = z.estimate.map_or("unknown".to_owned(), |estimate| estimate.to_string());
        writeln!(f, "  estimates        {estimate} by importance, {} ELBO", z.elbo)?;
        writeln!(
            f,
            "TV to the target   at least {:.4}, at most {:.4} (each at a risk of 5 %)",
            tv.at_least, tv.at_most
        )?;
        if let (Some(most), Some(log_z)) = (tv.at_most_by_importance, tv.if_log_z_at_most) {
            writeln!(f, "  if log Z <= {log_z:.4}, at most {most:.4}")?;
        }
        match &self.consistency {
            Some(known) => writeln!(f, "flow consistency   about {}, noise {:.4}", known.fcs, known.floor)?,
            None => writeln!(f, "flow consistency   unknown")?,
        }
        writeln!(f, "objects looked at  {}", self.probes.len())?;
        self.findings.iter().try_for_each(|finding| writeln!(f, "! {finding}"))?;
        self.limits.iter().try_for_each(|limit| writeln!(f, "? {limit}"))?;
        let nothing = match (self.is_clean(), z.estimate) {
            (false, _) => "",
            (true, Some(_)) => "Nothing was found against the policy. ",
            (true, None) => {
                "Nothing was found, but without an estimate of log Z the policy may still be far off: train \
                 it for longer, or give more samples. "
            }
        };
        write!(
            f,
            "{nothing}Objects that neither the policy, nor random trajectories, nor a search found aren't \
             judged."
        )
    }
}
