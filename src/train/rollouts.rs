//! The samplers of a trainer, and the place where its roll-outs evaluate the policy.

use std::time::Instant;

use tch::Device;

use super::Context;
use crate::env::{Direction, Env};
use crate::policy::Policy;
use crate::rollout::{RolloutPlace, RolloutTimes, Sampler};
use crate::{Result, Rng};

impl<E: Env> Context<E> {
    /// Returns a sampler for an environment and a policy, with the limit of steps and the place of roll-outs
    /// of this trainer. A source of trajectories samples its policy with it, in the context's environment.
    #[must_use]
    pub fn sampler<'a>(&self, env: &'a E, policy: &'a dyn Policy<E>) -> Sampler<'a, E> {
        // Other policies than the measured one may have no copy on the host, so `Host` isn't demanded here.
        let place = match self.rollout_times.map(|times| times.faster()) {
            Some(RolloutPlace::Device) => RolloutPlace::Device,
            Some(_) => RolloutPlace::Measured,
            None => self.config.rollouts,
        };
        Sampler::new(env, policy).max_steps(self.config.max_steps).place(place)
    }

    /// Returns the place where forward roll-outs of the trainer's policy evaluate it: the host or the device.
    /// Before the first step of a trainer on a GPU this is the host, if the place isn't set.
    #[must_use]
    pub fn rollout_place(&self) -> RolloutPlace {
        match (self.rollout_times, self.config.rollouts) {
            (Some(times), _) => times.faster(),
            (None, RolloutPlace::Measured) if self.has_host_copy() => RolloutPlace::Host,
            (None, RolloutPlace::Host) => RolloutPlace::Host,
            (None, _) => RolloutPlace::Device,
        }
    }

    fn has_host_copy(&self) -> bool {
        self.conditions.is_none() && self.policy.on_host(Direction::Forward).is_some()
    }

    /// Measures the times of roll-outs on the host and on the device, unless the place of roll-outs is set or
    /// there is only one. Parameters on the CPU are always evaluated on the host, so that results don't
    /// depend on the time. The roll-outs draw from a separate random stream.
    pub(super) fn measure_rollouts(&mut self, is_sampled_outside: bool) -> Result<()> {
        let on_device = self.policy.parameters().is_some_and(|parameters| parameters.device() != Device::Cpu);
        let is_open = self.rollout_times.is_none() && self.config.rollouts == RolloutPlace::Measured;
        if on_device && is_open && self.has_host_copy() {
            // A trainer that never samples has nothing to measure, but takes part in the exchange.
            let none = RolloutTimes { host: 0.0, device: 0.0 };
            let times = if is_sampled_outside { none } else { self.time_rollouts()? };
            // All replicas sample in the place that is faster on the first one.
            let host = self.broadcast_from_first(times.host)?;
            let device = self.broadcast_from_first(times.device)?;
            self.rollout_times = (host > 0.0).then_some(RolloutTimes { host, device });
        }
        Ok(())
    }

    fn time_rollouts(&self) -> Result<RolloutTimes> {
        RolloutTimes::measure(|place| {
            let started = Instant::now();
            let sampler = self.sampler(&self.env, self.policy()).place(place);
            sampler.walks(self.share(), &mut Rng::seeded(0))?;
            Ok(started.elapsed().as_secs_f64())
        })
    }
}

#[cfg(test)]
mod tests {
    use tch::{Kind, Tensor};

    use super::*;
    use crate::env::{Rows, VectorStates};
    use crate::examples::word_env;
    use crate::objective::TrajectoryBalance;
    use crate::policy::{KHot, MlpPolicy, MlpPolicyConfig};
    use crate::train::{Trainer, TrainerConfig};

    #[test]
    fn samplers_use_the_faster_place_after_a_measurement() {
        let (env, rng) = (word_env(2, 3), &mut Rng::seeded(0));
        let config = MlpPolicyConfig::default();
        let policy =
            MlpPolicy::new(&env, KHot::from_env(&env), config, Device::Cpu, Kind::Float, rng).unwrap();
        let reward = |words: &VectorStates, _: Option<&Tensor>| Ok(vec![0.0; words.len()]);
        let config = TrainerConfig { batch: 4, ..TrainerConfig::default() };
        let mut trainer =
            Trainer::new(env, reward, policy, TrajectoryBalance, config, Rng::seeded(1)).unwrap();
        let place = |context: &Context<_>| {
            let sampler = format!("{:?}", context.sampler(&context.env, context.policy()));
            let places = [RolloutPlace::Measured, RolloutPlace::Host, RolloutPlace::Device];
            (
                context.rollout_place(),
                places.into_iter().find(|place| sampler.contains(&format!("{place:?}"))),
            )
        };
        trainer.step().unwrap();
        assert!(trainer.context.rollout_times.is_none(), "nothing is measured on the CPU");
        assert_eq!(place(&trainer.context), (RolloutPlace::Host, Some(RolloutPlace::Measured)));
        for (times, expected) in [
            (RolloutTimes { host: 1.0, device: 2.0 }, (RolloutPlace::Host, Some(RolloutPlace::Measured))),
            (RolloutTimes { host: 2.0, device: 1.0 }, (RolloutPlace::Device, Some(RolloutPlace::Device))),
        ] {
            trainer.context.rollout_times = Some(times);
            assert_eq!(place(&trainer.context), expected);
        }
        let times = trainer.context.time_rollouts().unwrap();
        assert!(times.host > 0.0 && times.device > 0.0, "{times:?}");
    }
}
