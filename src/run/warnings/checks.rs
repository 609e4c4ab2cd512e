//! The checks of one step: collapse onto one object, sparse rewards, a loss and a log Z that stand still.

use super::diagnostics::StepDiagnostics;
use super::recent::not_logarithms;
use super::same_objects::{bounds_log_z, objects, with_best};
use super::{Best, Warnings};
use crate::env::{Env, Rows};
use crate::error::Warning;
use crate::train::StepStats;

/// The share of a batch that is nearly all of it.
const NEARLY_ f64 = 0.95;
/// Steps in a row before one object counts as a collapse.
const ONE_OBJECT_STEPS: usize = 50;
/// The same where nothing seen is as good: the target may be that peaked, or the others were never found.
const UNPROVEN_STEPS: usize = 200;
/// By how much log R of another object may be lower at most: at 95 % of the mass on one, all others together have exp(-2.9) of it.
const COMPARABLE: f64 = 2.0;
/// Steps in a row before a loss next to 0 counts as an end.
const STILL_STEPS: usize = 100;
/// A loss next to 0.
const STILL_LOSS: f64 = 1e-3;
/// By how much log Z moves within these steps where it stands still.
const STILL_LOG_Z: f64 = 0.02;
/// By how much log Z must be below a log-reward: more than a small loss allows.
const BELOW: f64 = 0.2;
/// By how much a learned log Z must be below a log-reward to be far below it.
const FAR_BELOW: f64 = 10.0;
/// Steps in a row before a log Z that is far below counts as one that doesn't get there.
const FAR_STEPS: usize = 200;
/// Steps in a row before rewards at the floor count as sparse.
const FLOOR_STEPS: usize = 200;
/// The share at the floor where rewards are sparse.
const AT_FLOOR: f64 = 0.99;

impl<S: Rows> Warnings<S> {
    /// Checks the objects and figures of a step.
    pub(super) fn check<E: Env<States = S>>(
        &mut self,
        env: &E,
        terminal: &S,
        is_conditional: bool,
        log_rewards: &[f64],
        step: &StepDiagnostics<'_>,
    ) {
        self.has_explored |= step.explores;
        if step.step == 1
            && let Some(warning) = not_logarithms(log_rewards)
        {
            self.raise(warning);
        }
        // Under conditions each object has several rewards.
        if is_conditional {
            return;
        }
        if let Some(warning) = self.recent.add_rewards(step.step, log_rewards) {
            self.raise(warning);
        }
        self.keep_best(env, terminal, log_rewards);
        self.check_collapse(env, terminal, log_rewards, step);
        self.check_sparse(log_rewards, step);
        self.check_loss(env, terminal, step);
    }

    /// Keeps the best object and the reward of the best other one.
    fn keep_best<E: Env<States = S>>(&mut self, env: &E, terminal: &S, log_rewards: &[f64]) {
        for (row, &log_reward) in log_rewards.iter().enumerate() {
            let Some(best) = &mut self.best else {
                self.best = Some(Best { object: terminal.select(&[row]), log_reward, other: None });
                continue;
            };
            if log_reward > best.log_reward {
                *best = Best { object: terminal.select(&[row]), log_reward, other: Some(best.log_reward) };
            } else if log_reward < best.log_reward && best.other.is_none_or(|other| log_reward > other) {
                best.other = Some(log_reward);
            }
        }
        let Some(best) = &mut self.best else { return };
        if best.other != Some(best.log_reward) {
            let ties: Vec<usize> = (0..log_rewards.len()).filter(|&i| log_rewards[i] == best.log_reward).collect();
            let tie = with_best(env, &best.object, terminal, &ties).is_some_and(|grouping| grouping.first.len() > 1);
            best.other = if tie { Some(best.log_reward) } else { best.other };
        }
    }

    fn check_collapse<E: Env<States = S>>(
        &mut self,
        env: &E,
        terminal: &S,
        log_rewards: &[f64],
        step: &StepDiagnostics<'_>,
    ) {
        let concentrated = self.one_object(env, terminal, log_rewards);
        self.one_object_steps = if concentrated.is_some() { self.one_object_steps + 1 } else { 0 };
        let Some((share, log_reward, other)) = concentrated else { return };
        let other = other.filter(|other| *other > log_reward - COMPARABLE);
        let steps = if other.is_some() { ONE_OBJECT_STEPS } else { UNPROVEN_STEPS };
        if self.one_object_steps >= steps {
            self.raise(Warning::OneObject { step: step.step, share, log_reward, other });
        }
    }

    /// The object that nearly all trajectories end in: their share, its log-reward, and the best one of another that was ever seen.
    fn one_object<E: Env<States = S>>(
        &self,
        env: &E,
        terminal: &S,
        log_rewards: &[f64],
    ) -> Option<(f64, f64, Option<f64>)> {
        let best = self.best.as_ref()?;
        let mut sorted = log_rewards.to_vec();
        sorted.sort_by(f64::total_cmp);
        // What more than half of them have is the middle one.
        let log_reward = sorted[sorted.len() / 2];
        let least = (NEARLY_ALL * log_rewards.len() as f64).ceil() as usize;
        let rows: Vec<usize> = (0..log_rewards.len()).filter(|&i| log_rewards[i] == log_reward).collect();
        if rows.len() < least {
            return None;
        }
        let grouping = objects(env, &terminal.select(&rows));
        let mut counts = vec![0; grouping.first.len()];
        grouping.of.iter().for_each(|&group| counts[group] += 1);
        let (group, count) = counts.into_iter().enumerate().max_by_key(|&(_, count)| count)?;
        if count < least {
            return None;
        }
        let row = rows[grouping.first[group]];
        let is_best = log_reward == best.log_reward
            && with_best(env, &best.object, terminal, &[row]).is_none_or(|grouping| grouping.first.len() == 1);
        let other = if is_best { best.other } else { Some(best.log_reward) };
        Some((count as f64 / log_rewards.len() as f64, log_reward, other))
    }

    fn check_sparse(&mut self, log_rewards: &[f64], step: &StepDiagnostics<'_>) {
        let floor = log_rewards.iter().copied().chain(self.floor).fold(f64::INFINITY, f64::min);
        let lower = self.floor.replace(floor).is_some_and(|before| floor < before);
        let at = log_rewards.iter().filter(|&&log_reward| log_reward == floor).count();
        let share = at as f64 / log_rewards.len() as f64;
        let before = if lower { 0 } else { self.floor_steps };
        self.floor_steps = if share >= AT_FLOOR && !self.has_explored { before + 1 } else { 0 };
        // A reward that is the same everywhere isn't rare.
        if self.floor_steps >= FLOOR_STEPS && self.best.as_ref().is_some_and(|best| best.log_reward > floor) {
            self.raise(Warning::NoExploration { step: step.step, share, floor });
        }
    }

    fn check_loss<E: Env<States = S>>(&mut self, env: &E, terminal: &S, step: &StepDiagnostics<'_>) {
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
        if self.still.0 >= STILL_STEPS && log_z < best - BELOW && bounds_log_z(env, terminal) {
            self.raise(Warning::Stalled { step: step.step, loss, log_z, best });
        }
        if self.far_steps >= FAR_STEPS && bounds_log_z(env, terminal) {
            self.raise(Warning::LogZFarBelow { step: step.step, log_z, best });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Chain, Positions};

    /// A run whose batches end at these positions, each of which has this log-reward, loss 0 and log Z, for so many steps.
    struct Run(Warnings<Positions>, usize);

    impl Run {
        fn new() -> Self {
            Self(Warnings::default(), 0)
        }

        fn steps(&mut self, n: usize, batch: &[(u32, f64)], (loss, log_z): (f64, f64), explores: bool) -> &mut Self {
            let (positions, log_rewards): (Vec<u32>, Vec<f64>) = batch.iter().copied().unzip();
            for _ in 0..n {
                self.1 += 1;
                let stats = StepStats { loss, log_z, ..StepStats::default() };
                let step = StepDiagnostics {
                    stats: &stats,
                    step: self.1,
                    explores,
                    has_one_target: true,
                    learns_log_z: true,
                    learns_nothing: false,
                };
                self.0.check(&Chain::new(100), &Positions(positions.clone()), false, &log_rewards, &step);
            }
            self
        }
    }

    fn mixed() -> Vec<(u32, f64)> {
        (0..20).map(|x| (x, -f64::from(x))).collect()
    }

    #[test]
    fn one_object_is_a_collapse_where_others_were_as_good() {
        let on = |x, log_reward| [(x, log_reward); 20];
        let loss = (1.0, 0.0);
        // Two objects of reward 1 were seen; one of them is all that is left.
        let mut run = Run::new();
        run.steps(1, &[(1, 0.0), (2, 0.0), (3, -9.0)].repeat(4), loss, true).steps(49, &on(1, 0.0), loss, true);
        assert!(run.0.raised.is_empty());
        run.steps(100, &on(1, 0.0), loss, true);
        let expected = Warning::OneObject { step: 51, share: 1.0, log_reward: 0.0, other: Some(0.0) };
        assert_eq!(run.0.raised, [expected]);
        // All that is left is worse than what was seen.
        let mut run = Run::new();
        run.steps(1, &mixed(), loss, true).steps(50, &on(7, -7.0), loss, true);
        assert!(matches!(run.0.raised[..], [Warning::OneObject { other: Some(0.0), .. }]), "{:?}", run.0.raised);
        // Nothing seen comes near it, or nothing else was seen: the target may be that peaked, and it takes longer.
        for before in [mixed(), on(50, 9.0).to_vec()] {
            let mut run = Run::new();
            run.steps(1, &before, loss, true).steps(198, &on(50, 9.0), (0.0, 9.0), true);
            assert!(run.0.raised.is_empty(), "{:?}", run.0.raised);
            run.steps(2, &on(50, 9.0), (0.0, 9.0), true);
            assert!(matches!(run.0.raised[..], [Warning::OneObject { other: None, .. }]), "{:?}", run.0.raised);
        }
        // One of twenty elsewhere is nearly all, two aren't.
        let batch = |others: usize| [vec![(9, -9.0); others], on(1, 0.0)[others..].to_vec()].concat();
        assert_eq!(Run::new().steps(1, &mixed(), loss, true).steps(60, &batch(1), loss, true).0.raised.len(), 1);
        assert!(Run::new().steps(1, &mixed(), loss, true).steps(60, &batch(2), loss, true).0.raised.is_empty());
    }

    #[test]
    fn a_loss_of_zero_is_a_collapse_where_log_z_is_below_a_reward() {
        let two = [(3, -3.0), (4, -4.0)].repeat(10);
        let after = |steps, figures, explores| {
            let mut run = Run::new();
            run.steps(1, &mixed(), (9.0, 0.0), false).steps(steps, &two, figures, explores);
            run.0.raised
        };
        let expected = Warning::Stalled { step: 101, loss: 1e-6, log_z: -2.7, best: 0.0 };
        assert_eq!(after(100, (1e-6, -2.7), false), [expected]);
        // Too early, a loss, exploration, a log Z that goes with the best reward.
        for (steps, figures, explores) in
            [(99, (1e-6, -2.7), false), (300, (0.1, -2.7), false), (300, (1e-6, -2.7), true), (300, (1e-6, 0.4), false)]
        {
            assert_eq!(after(steps, figures, explores), [], "{steps} {figures:?} {explores}");
        }
        // log Z moves.
        let mut run = Run::new();
        run.steps(1, &mixed(), (9.0, 0.0), false);
        for k in 0..300 {
            run.steps(1, &two, (1e-6, -9.0 + 0.001 * f64::from(k)), false);
        }
        assert_eq!(run.0.raised, []);
        // Where no object is ever met twice, rewards may be densities, which exceed Z.
        let mut run = Run::new();
        assert_eq!(run.steps(300, &mixed(), (1e-6, -2.7), false).0.raised, []);
    }

    #[test]
    fn a_log_z_that_stays_far_below_a_reward_is_told_of() {
        let high = [(3, 250.0), (4, 251.0)].repeat(10);
        let after = |steps, log_z: f64| {
            let mut run = Run::new();
            run.steps(steps, &high, (9e4, log_z), true);
            run.0.raised.into_iter().filter(|one| matches!(one, Warning::LogZFarBelow { .. })).collect::<Vec<_>>()
        };
        assert_eq!(after(200, 139.0), [Warning::LogZFarBelow { step: 200, log_z: 139.0, best: 251.0 }]);
        assert_eq!(after(199, 139.0), []);
        assert_eq!(after(900, 242.0), []);
        // It gets there in between.
        let mut run = Run::new();
        run.steps(150, &high, (9e4, 139.0), true).steps(1, &high, (9e4, 245.0), true).steps(
            150,
            &high,
            (9e4, 139.0),
            true,
        );
        assert_eq!(run.0.raised, []);
        // Where no object is ever met twice, rewards may be densities, which exceed Z.
        assert_eq!(Run::new().steps(300, &mixed()[..10], (9.0, -20.0), true).0.raised, []);
    }

    #[test]
    fn rewards_at_the_floor_call_for_exploration() {
        let floor: Vec<(u32, f64)> = (0..20).map(|x| (x, -20.0)).collect();
        let run = |explores| {
            let mut run = Run::new();
            run.steps(1, &[(30, 0.0); 8], (1.0, 0.0), false).steps(200, &floor, (1.0, 0.0), explores);
            run.0.raised
        };
        assert_eq!(run(false), [Warning::NoExploration { step: 201, share: 1.0, floor: -20.0 }]);
        assert_eq!(run(true), []);
        // Two of twenty found something.
        let mut found = Run::new();
        let batch = [floor[2..].to_vec(), vec![(40, 0.0); 2]].concat();
        assert_eq!(found.steps(400, &batch, (1.0, 0.0), false).0.raised, []);
    }
}
