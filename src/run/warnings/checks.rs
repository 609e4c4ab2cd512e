//! The checks made after each step: collapse onto one object, sparse rewards, and a loss or log Z that stops
//! changing.

use super::diagnostics::StepDiagnostics;
use super::recent::not_logarithms;
use super::{Best, Warnings};
use crate::env::{Env, Rows};
use crate::error::Warning;
use crate::train::StepStats;

/// The smallest share of a batch's trajectories that counts as nearly all of them.
const NEARLY_ALL: f64 = 0.95;
/// A collapse is reported after this number of consecutive steps in which nearly all trajectories end in one
/// object. This limit holds if another object of comparable reward was sampled earlier.
const ONE_OBJECT_STEPS: usize = 50;
/// A collapse is reported after this number of consecutive steps in which nearly all trajectories end in one
/// object. This limit holds if no other sampled object has a comparable reward. It is larger than
/// `ONE_OBJECT_STEPS`, because the target itself may be concentrated on one object.
const UNPROVEN_STEPS: usize = 200;
/// A difference of log R. Another object's reward counts as comparable if its log R is lower than that of the
/// object in which nearly all trajectories end by less than this difference, or if it is higher. If an object
/// has 95 % of the total reward, the log R of any other object is lower by at least 2.9, so no other reward
/// is comparable.
const COMPARABLE: f64 = 2.0;
/// The number of consecutive steps with a loss near 0 and constant log Z after which training counts as
/// stalled.
const STILL_STEPS: usize = 100;
/// The limit below which a loss counts as near 0.
const STILL_LOSS: f64 = 1e-3;
/// The limit on the change of log Z over steps with a loss near 0. Below this limit log Z counts as constant.
/// The change is measured since the first of these steps.
const STILL_LOG_Z: f64 = 0.02;
/// The margin by which log Z must be below the best log-reward for a warning that training has stalled. If
/// the loss were near 0 for all objects, log Z couldn't be this far below a log-reward.
const BELOW: f64 = 0.2;
/// The margin below the best log-reward from which a learned log Z counts as far below it.
const FAR_BELOW: f64 = 10.0;
/// The number of consecutive steps with log Z far below the best log-reward after which a warning is raised.
const FAR_STEPS: usize = 200;
/// The number of consecutive steps after which rewards count as sparse. In each of these steps nearly all
/// rewards have the lowest value so far.
const FLOOR_STEPS: usize = 200;
/// A step counts towards `FLOOR_STEPS` if at least this share of its rewards has the lowest value so far.
const AT_FLOOR: f64 = 0.99;

impl<S: Rows> Warnings<S> {
    /// Checks the sampled objects, loss and log Z of a step.
    pub(super) fn check<E: Env<States = S>>(&mut self, step: &StepDiagnostics<'_, E>) {
        self.has_explored |= step.explores;
        if step.step == 1
            && let Some(warning) = not_logarithms(step.log_rewards)
        {
            self.raise(warning);
        }
        // An object has a different reward under each condition, so rewards of a batch with conditions can't
        // be compared.
        if step.is_conditional {
            return;
        }
        if let Some(warning) = self.recent.add_rewards(step.step, step.log_rewards) {
            self.raise(warning);
        }
        self.keep_best(step);
        self.check_collapse(step);
        self.check_sparse(step);
        self.check_loss(step);
    }

    /// Updates the object with the best log-reward so far, and the best log-reward of any other object.
    fn keep_best<E: Env<States = S>>(&mut self, step: &StepDiagnostics<'_, E>) {
        for (row, &log_reward) in step.log_rewards.iter().enumerate() {
            let Some(best) = &mut self.best else {
                self.best =
                    Some(Best { object: step.objects.select(&[row]), log_reward, second_log_reward: None });
                continue;
            };
            if log_reward > best.log_reward {
                *best = Best {
                    object: step.objects.select(&[row]),
                    log_reward,
                    second_log_reward: Some(best.log_reward),
                };
            } else if log_reward < best.log_reward
                && best.second_log_reward.is_none_or(|other| log_reward > other)
            {
                best.second_log_reward = Some(log_reward);
            }
        }
        let Some(best) = &mut self.best else { return };
        if best.second_log_reward != Some(best.log_reward) {
            let ties = step.rows_with(best.log_reward);
            if step.with_best(&best.object, &ties).is_some_and(|grouping| grouping.first.len() > 1) {
                best.second_log_reward = Some(best.log_reward);
            }
        }
    }

    fn check_collapse<E: Env<States = S>>(&mut self, step: &StepDiagnostics<'_, E>) {
        let concentrated = self.one_object(step);
        self.one_object_steps = if concentrated.is_some() { self.one_object_steps + 1 } else { 0 };
        let Some((share, log_reward, other)) = concentrated else { return };
        let other = other.filter(|other| *other > log_reward - COMPARABLE);
        let steps = if other.is_some() { ONE_OBJECT_STEPS } else { UNPROVEN_STEPS };
        if self.one_object_steps >= steps {
            self.raise(Warning::OneObject { step: step.step, share, log_reward, other });
        }
    }

    /// Finds the object in which nearly all trajectories end. Returns the share of the trajectories that end
    /// in it, its log-reward, and the best log-reward of any other object so far; `None` if there is no such
    /// object.
    fn one_object<E: Env<States = S>>(
        &self,
        step: &StepDiagnostics<'_, E>,
    ) -> Option<(f64, f64, Option<f64>)> {
        let best = self.best.as_ref()?;
        let n = step.log_rewards.len();
        let mut sorted = step.log_rewards.to_vec();
        sorted.sort_by(f64::total_cmp);
        // If nearly all trajectories end in one object, the median of all log-rewards is the log-reward of
        // this object.
        let log_reward = sorted[n / 2];
        let least = (NEARLY_ALL * n as f64).ceil() as usize;
        let rows = step.rows_with(log_reward);
        if rows.len() < least {
            return None;
        }
        let objects = step.objects.select(&rows);
        let classes = step.env.symmetry().classes(&objects);
        let grouping = classes.map_or_else(|| objects.group(), |classes| classes.grouping);
        let mut counts = vec![0; grouping.first.len()];
        for &group in &grouping.group_of {
            counts[group] += 1;
        }
        let (group, count) = counts.into_iter().enumerate().max_by_key(|&(_, count)| count)?;
        if count < least {
            return None;
        }
        let row = rows[grouping.first[group]];
        let is_best = log_reward == best.log_reward
            && step.with_best(&best.object, &[row]).is_none_or(|grouping| grouping.first.len() == 1);
        let other = if is_best { best.second_log_reward } else { Some(best.log_reward) };
        Some((count as f64 / n as f64, log_reward, other))
    }

    fn check_sparse<E: Env<States = S>>(&mut self, step: &StepDiagnostics<'_, E>) {
        let log_rewards = step.log_rewards;
        let floor = log_rewards.iter().copied().chain(self.floor).fold(f64::INFINITY, f64::min);
        let lower = self.floor.replace(floor).is_some_and(|before| floor < before);
        let share = step.rows_with(floor).len() as f64 / log_rewards.len() as f64;
        let before = if lower { 0 } else { self.floor_steps };
        self.floor_steps = if share >= AT_FLOOR && !self.has_explored { before + 1 } else { 0 };
        // No warning is raised unless some object has a log-reward above the lowest one so far, because
        // otherwise all objects may have the same reward.
        if self.floor_steps >= FLOOR_STEPS && self.best.as_ref().is_some_and(|best| best.log_reward > floor) {
            self.raise(Warning::NoExploration { step: step.step, share, floor });
        }
    }

    fn check_loss<E: Env<States = S>>(&mut self, step: &StepDiagnostics<'_, E>) {
        let &StepStats { loss, log_z, .. } = step.stats;
        let still = step.has_one_target && !step.explores && loss < STILL_LOSS;
        let (steps, since) = self.still;
        self.still = if still && steps > 0 && (log_z - since).abs() < STILL_LOG_Z {
            (steps + 1, since)
        } else {
            (usize::from(still), log_z)
        };
        let Some(&Best { log_reward: best, .. }) = self.best.as_ref() else { return };
        let is_far = step.has_one_target && step.learns_log_z && log_z < best - FAR_BELOW;
        self.far_steps = if is_far { self.far_steps + 1 } else { 0 };
        if self.still.0 >= STILL_STEPS && log_z < best - BELOW && step.bounds_log_z() {
            self.raise(Warning::Stalled { step: step.step, loss, log_z, best });
        }
        if self.far_steps >= FAR_STEPS && step.bounds_log_z() {
            self.raise(Warning::LogZFarBelow { step: step.step, log_z, best });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::{Chain, Positions};

    /// The warnings of a simulated run, and its number of steps.
    struct Run(Warnings<Positions>, usize);

    impl Run {
        fn new() -> Self {
            Self(Warnings::default(), 0)
        }

        fn steps(
            &mut self,
            n: usize,
            batch: &[(u32, f64)],
            (loss, log_z): (f64, f64),
            explores: bool,
        ) -> &mut Self {
            let (positions, log_rewards): (Vec<u32>, Vec<f64>) = batch.iter().copied().unzip();
            for _ in 0..n {
                self.1 += 1;
                let stats = StepStats { loss, log_z, ..StepStats::default() };
                let step = StepDiagnostics {
                    env: &Chain::new(100),
                    objects: &Positions(positions.clone()),
                    log_rewards: &log_rewards,
                    is_conditional: false,
                    stats: &stats,
                    step: self.1,
                    explores,
                    has_one_target: true,
                    learns_log_z: true,
                    learns_nothing: false,
                };
                self.0.check(&step);
            }
            self
        }
    }

    fn mixed() -> Vec<(u32, f64)> {
        (0..20).map(|x| (x, -f64::from(x))).collect()
    }

    #[test]
    fn one_object_is_a_collapse_if_others_were_as_good() {
        let on = |x, log_reward| [(x, log_reward); 20];
        let loss = (1.0, 0.0);
        // Two objects of log-reward 0 are sampled in the first step. From the second step on, only one of
        // them is sampled, which raises a warning after 50 steps.
        let mut run = Run::new();
        run.steps(1, &[(1, 0.0), (2, 0.0), (3, -9.0)].repeat(4), loss, true).steps(
            49,
            &on(1, 0.0),
            loss,
            true,
        );
        assert!(run.0.warnings.is_empty());
        run.steps(100, &on(1, 0.0), loss, true);
        let expected = Warning::OneObject { step: 51, share: 1.0, log_reward: 0.0, other: Some(0.0) };
        assert_eq!(run.0.warnings, [expected]);
        // A warning is also expected if the only object still sampled has a lower reward than an object of
        // the first step.
        let mut run = Run::new();
        run.steps(1, &mixed(), loss, true).steps(50, &on(7, -7.0), loss, true);
        assert!(
            matches!(run.0.warnings[..], [Warning::OneObject { other: Some(0.0), .. }]),
            "{:?}",
            run.0.warnings
        );
        // If no other object with a comparable reward was sampled, the target itself may be concentrated on
        // one object. So the trainer waits longer in this case: it warns after 200 steps instead of 50.
        for before in [mixed(), on(50, 9.0).to_vec()] {
            let mut run = Run::new();
            run.steps(1, &before, loss, true).steps(198, &on(50, 9.0), (0.0, 9.0), true);
            assert!(run.0.warnings.is_empty(), "{:?}", run.0.warnings);
            run.steps(2, &on(50, 9.0), (0.0, 9.0), true);
            assert!(
                matches!(run.0.warnings[..], [Warning::OneObject { other: None, .. }]),
                "{:?}",
                run.0.warnings
            );
        }
        // A warning is expected if 19 of 20 trajectories end in one object (nearly all), and none if only 18
        // do.
        let batch = |others: usize| [vec![(9, -9.0); others], on(1, 0.0)[others..].to_vec()].concat();
        assert_eq!(
            Run::new().steps(1, &mixed(), loss, true).steps(60, &batch(1), loss, true).0.warnings.len(),
            1
        );
        assert!(
            Run::new().steps(1, &mixed(), loss, true).steps(60, &batch(2), loss, true).0.warnings.is_empty()
        );
    }

    #[test]
    fn a_loss_of_zero_is_a_collapse_if_log_z_is_below_a_reward() {
        let two = [(3, -3.0), (4, -4.0)].repeat(10);
        let after = |steps, figures, explores| {
            let mut run = Run::new();
            run.steps(1, &mixed(), (9.0, 0.0), false).steps(steps, &two, figures, explores);
            run.0.warnings
        };
        let expected = Warning::Stalled { step: 101, loss: 1e-6, log_z: -2.7, best: 0.0 };
        assert_eq!(after(100, (1e-6, -2.7), false), [expected]);
        // No warning is expected for too few steps, a large loss, exploration, or a log Z above the best
        // log-reward.
        for (steps, figures, explores) in [
            (99, (1e-6, -2.7), false),
            (300, (0.1, -2.7), false),
            (300, (1e-6, -2.7), true),
            (300, (1e-6, 0.4), false),
        ] {
            assert_eq!(after(steps, figures, explores), [], "{steps} {figures:?} {explores}");
        }
        // No warning is expected while log Z still rises, although it is below the best log-reward.
        let mut run = Run::new();
        run.steps(1, &mixed(), (9.0, 0.0), false);
        for k in 0..300 {
            run.steps(1, &two, (1e-6, -9.0 + 0.001 * f64::from(k)), false);
        }
        assert_eq!(run.0.warnings, []);
        // No warning is expected if no object is sampled twice, because rewards may then be densities, which
        // can exceed Z.
        let mut run = Run::new();
        assert_eq!(run.steps(300, &mixed(), (1e-6, -2.7), false).0.warnings, []);
    }

    #[test]
    fn a_log_z_that_stays_far_below_a_reward_is_reported() {
        let high = [(3, 250.0), (4, 251.0)].repeat(10);
        let after = |steps, log_z: f64| {
            let mut run = Run::new();
            run.steps(steps, &high, (9e4, log_z), true);
            run.0
                .warnings
                .into_iter()
                .filter(|one| matches!(one, Warning::LogZFarBelow { .. }))
                .collect::<Vec<_>>()
        };
        assert_eq!(after(200, 139.0), [Warning::LogZFarBelow { step: 200, log_z: 139.0, best: 251.0 }]);
        assert_eq!(after(199, 139.0), []);
        assert_eq!(after(900, 242.0), []);
        // No warning is expected if log Z comes near the best log-reward in one of the steps, because the
        // count starts again.
        let mut run = Run::new();
        run.steps(150, &high, (9e4, 139.0), true).steps(1, &high, (9e4, 245.0), true).steps(
            150,
            &high,
            (9e4, 139.0),
            true,
        );
        assert_eq!(run.0.warnings, []);
        // No warning is expected if no object is sampled twice, because rewards may then be densities, which
        // can exceed Z.
        assert_eq!(Run::new().steps(300, &mixed()[..10], (9.0, -20.0), true).0.warnings, []);
    }

    #[test]
    fn rewards_at_the_floor_call_for_exploration() {
        let floor: Vec<(u32, f64)> = (0..20).map(|x| (x, -20.0)).collect();
        let run = |explores| {
            let mut run = Run::new();
            run.steps(1, &[(30, 0.0); 8], (1.0, 0.0), false).steps(200, &floor, (1.0, 0.0), explores);
            run.0.warnings
        };
        assert_eq!(run(false), [Warning::NoExploration { step: 201, share: 1.0, floor: -20.0 }]);
        assert_eq!(run(true), []);
        // No warning is expected if two of twenty trajectories have a reward above the lowest reward of the
        // run.
        let mut found = Run::new();
        let batch = [floor[2..].to_vec(), vec![(40, 0.0); 2]].concat();
        assert_eq!(found.steps(400, &batch, (1.0, 0.0), false).0.warnings, []);
    }
}
