//! The place where roll-outs evaluate a policy.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Result;

/// The place where roll-outs evaluate a policy. It doesn't change the distribution of trajectories, but speed
/// and rounding. If trajectories have several lengths, a seed gives other trajectories on a device whose
/// states are a tensor, because other random numbers are drawn.
///
/// Roll-outs of a policy without parameters have a single place. There is no copy on the host under
/// conditions.
///
/// ```
/// use gfn::{Rng, env::Rows, examples::word_env, policy::{KHot, MlpPolicy, MlpPolicyConfig}};
/// use gfn::rollout::{RolloutPlace, Sampler};
/// let (env, rng) = (word_env(2, 3), &mut Rng::seeded(0));
/// let (device, kind) = (tch::Device::Cpu, tch::Kind::Float);
/// let policy = MlpPolicy::new(&env, KHot::from_env(&env), MlpPolicyConfig::default(), device, kind, rng)?;
/// for place in [RolloutPlace::Host, RolloutPlace::Device] {
///     assert_eq!(Sampler::new(&env, &policy).place(place).walks(4, rng)?.terminal.len(), 4);
/// }
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum RolloutPlace {
    /// The copy of the policy on the host, if the policy has a copy; otherwise its device. A trainer whose
    /// parameters are on another device than the CPU measures at its first step if the host or the device is
    /// faster, and then keeps to the faster place. On the CPU nothing is measured, so results don't depend on
    /// the time.
    #[default]
    Measured,
    /// The copy of the policy for roll-outs ([`Policy::on_host`](crate::policy::Policy::on_host)). It is an
    /// error if the policy has no copy for forward roll-outs. Backward roll-outs of a policy without a copy
    /// of P_B, such as a uniform P_B, evaluate the policy on the device of its parameters. The copy of a
    /// [`SequencePolicy`](crate::policy::SequencePolicy) computes on the device, too, but reads only the
    /// newest entry of each sequence.
    Host,
    /// Tensors on the device of the policy's parameters
    /// ([`Policy::evaluate`](crate::policy::Policy::evaluate)). If environment and policy take states as a
    /// tensor ([`TensorForm`](crate::env::TensorForm), [`Policy::on_tensors`]), the whole roll-out stays on
    /// the device: moves, masks, probabilities and draws.
    ///
    /// [`Policy::on_tensors`]: crate::policy::Policy::on_tensors
    Device,
}

impl fmt::Display for RolloutPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Measured => "measured",
            Self::Host => "host",
            Self::Device => "device",
        })
    }
}

/// The number of roll-outs that are timed in each place.
const TIMED_ROLLOUTS: usize = 3;

/// The seconds that a roll-out takes in each place.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct RolloutTimes {
    pub(crate) host: f64,
    pub(crate) device: f64,
}

impl RolloutTimes {
    /// Measures both places in turn. `seconds` makes a roll-out and returns its time. The first roll-out of
    /// each place isn't counted, because it includes the set-up of the device; of the others the shortest
    /// time counts.
    pub(crate) fn measure(mut seconds: impl FnMut(RolloutPlace) -> Result<f64>) -> Result<Self> {
        seconds(RolloutPlace::Host)?;
        seconds(RolloutPlace::Device)?;
        let mut times = Self { host: f64::INFINITY, device: f64::INFINITY };
        for _ in 0..TIMED_ROLLOUTS {
            times.host = times.host.min(seconds(RolloutPlace::Host)?);
            times.device = times.device.min(seconds(RolloutPlace::Device)?);
        }
        Ok(times)
    }

    /// Returns the faster place.
    pub(crate) fn faster(&self) -> RolloutPlace {
        if self.host <= self.device { RolloutPlace::Host } else { RolloutPlace::Device }
    }
}

impl fmt::Display for RolloutTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, device } = self;
        let place = self.faster();
        write!(
            f,
            "a roll-out takes {host:.2e} s on the host and {device:.2e} s on the device, so this run samples \
             on the {place} (the setting `rollouts` chooses the place)"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn the_shortest_time_of_each_place_counts_but_not_its_first() {
        let measure = |host: [f64; 4], device: [f64; 4]| {
            let [mut host, mut device] = [host, device].map(IntoIterator::into_iter);
            RolloutTimes::measure(|place| {
                let times = if place == RolloutPlace::Host { &mut host } else { &mut device };
                times.next().ok_or(Error::missing("a test", "another time", "give more times"))
            })
        };
        let times = measure([0.1, 3.0, 2.0, 4.0], [9.0, 1.0, 5.0, 5.0]).unwrap();
        assert_eq!((times, times.faster()), (RolloutTimes { host: 2.0, device: 1.0 }, RolloutPlace::Device));
        let times = measure([9.0, 8.0, 8.0, 0.5], [0.1, 3.0, 2.0, 4.0]).unwrap();
        assert_eq!((times, times.faster()), (RolloutTimes { host: 0.5, device: 2.0 }, RolloutPlace::Host));
        let line = times.to_string();
        assert!(line.contains("5.00e-1 s on the host") && line.contains("samples on the host"), "{line}");
    }

    #[test]
    fn a_failed_rollout_ends_the_measurement() {
        let failed = RolloutTimes::measure(|_| Err(Error::missing("a test", "a policy", "build one")));
        assert!(matches!(failed, Err(Error::Missing { .. })));
    }
}
