use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// A number that depends on the training step, such as a share of random actions, a temperature, or a factor
/// on learning rates.
///
/// The number depends on nothing else, so a resumed run continues with the right value.
///
/// ```
/// use gfn::optim::Schedule;
/// let epsilon = Schedule::Linear { from: 0.1, to: 0.0, steps: 100 };
/// assert_eq!((epsilon.at(0), epsilon.at(50), epsilon.at(1000)), (0.1, 0.05, 0.0));
/// let lr_scale = Schedule::Milestones { from: 1.0, then: vec![(100, 0.5), (200, 0.1)] };
/// assert_eq!((lr_scale.at(99), lr_scale.at(100), lr_scale.at(500)), (1.0, 0.5, 0.1));
/// assert!(Schedule::Exponential { from: 1.0, to: 0.0, steps: 100 }.check().is_err());
/// let decay = Schedule::Cosine { from: 1.0, to: 0.0, steps: 90 };
/// let warm = Schedule::WarmUp { steps: 10, then: Box::new(decay) };
/// assert_eq!((warm.at(0), warm.at(4), warm.at(9), warm.at(10), warm.at(100)), (0.1, 0.5, 1.0, 1.0, 0.0));
/// let custom = Schedule::from_fn(|step| if step % 2 == 0 { 0.1 } else { 0.0 });
/// assert_eq!((custom.at(4), custom.at(5)), (0.1, 0.0));
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Schedule {
    /// A constant value at all steps.
    Constant(f64),
    /// A linear change from `from` to `to` over `steps` steps. The value stays `to` afterwards.
    Linear {
        /// The value at step 0.
        from: f64,
        /// The value from step `steps` on.
        to: f64,
        /// The number of steps of the change; at least 1.
        steps: usize,
    },
    /// An exponential change from `from` to `to`: each step multiplies the value by the same factor, `(to /
    /// from)^(1 / steps)`. The value stays `to` afterwards.
    Exponential {
        /// The value at step 0, which must not be 0.
        from: f64,
        /// The value from step `steps` on, which must have the sign of `from` and not be 0.
        to: f64,
        /// The number of steps of the change; at least 1.
        steps: usize,
    },
    /// A change from `from` to `to` along half a cosine wave: slow, then fast, then slow (Loshchilov and
    /// Hutter, *SGDR*, 2017, without restarts). The value stays `to` afterwards.
    Cosine {
        /// The value at step 0.
        from: f64,
        /// The value from step `steps` on.
        to: f64,
        /// The number of steps of the change; at least 1.
        steps: usize,
    },
    /// A value that falls as `from / sqrt(1 + step / steps)`, for the learning rate of a run of unknown
    /// length. The sum of the learning rates is infinite, so training can reach the target from any distance.
    /// The learning rates tend to 0, so the effect of noisy gradients does, too (Robbins and Monro, 1951).
    InverseRoot {
        /// The value at step 0.
        from: f64,
        /// The step at which the value is `from` divided by the square root of 2; at least 1.
        steps: usize,
    },
    /// A value that is constant except for jumps at some steps.
    Milestones {
        /// The value before the first step listed in `then`.
        from: f64,
        /// The steps at which the value jumps, in increasing order, each with the new value.
        then: Vec<(usize, f64)>,
    },
    /// A linear increase to the first value of the schedule `then`, followed by `then`. During the increase
    /// the value at step `t` is `(t + 1) / steps` times the first value of `then`. The steps of `then` are
    /// counted from the end of the increase.
    WarmUp {
        /// The number of steps over which the value increases; at least 1.
        steps: usize,
        /// The schedule that follows the increase.
        then: Box<Self>,
    },
    /// A custom function of the step ([`from_fn`](Self::from_fn)). A custom function can't be saved as a
    /// setting. If one of its values is invalid, the training step that uses the value returns an error.
    #[serde(skip)]
    Custom(Curve),
}

/// A custom function of the step. Two such functions compare equal only if one is a clone of the other.
#[derive(Clone)]
pub struct Curve(Arc<dyn Fn(usize) -> f64 + Send + Sync>);

impl PartialEq for Curve {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl std::fmt::Debug for Curve {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a closure")
    }
}

impl Schedule {
    /// Creates a schedule from a function of the step, counted from 0. The function should depend only on the
    /// step, so that a resumed run continues with the right value.
    pub fn from_fn(curve: impl Fn(usize) -> f64 + Send + Sync + 'static) -> Self {
        Self::Custom(Curve(Arc::new(curve)))
    }

    /// Returns the value at a step. If [`check`](Self::check) fails, the value may be NaN.
    #[must_use]
    pub fn at(&self, step: usize) -> f64 {
        let part = |steps: usize| step as f64 / steps as f64;
        match *self {
            Self::WarmUp { steps, ref then } if step < steps => {
                then.at(0) * ((step + 1) as f64 / steps as f64)
            }
            Self::WarmUp { steps, ref then } => then.at(step - steps),
            Self::Custom(ref curve) => (curve.0)(step),
            Self::Constant(value) => value,
            Self::Linear { to, steps, .. }
            | Self::Exponential { to, steps, .. }
            | Self::Cosine { to, steps, .. }
                if step >= steps =>
            {
                to
            }
            Self::Linear { from, to, steps } => from + (to - from) * part(steps),
            Self::Exponential { from, to, steps } => from * (to / from).powf(part(steps)),
            Self::Cosine { from, to, steps } => {
                to + (from - to) * 0.5 * (1.0 + (std::f64::consts::PI * part(steps)).cos())
            }
            Self::InverseRoot { from, steps } => from / (1.0 + part(steps)).sqrt(),
            Self::Milestones { from, ref then } => {
                let passed = then.partition_point(|(at, _)| *at <= step);
                passed.checked_sub(1).map_or(from, |last| then[last].1)
            }
        }
    }

    /// Checks that the settings of the schedule are valid and its values finite.
    ///
    /// # Errors
    /// [`Error::Config`] for values that aren't finite, a change over 0 steps, an exponential change between
    /// values of different signs or from or to 0, and milestones out of order.
    pub fn check(&self) -> Result<()> {
        let refuse = |expected| Err(Error::config("a schedule", format!("{self:?}"), expected));
        match self {
            Self::Exponential { from, to, .. } if from * to <= 0.0 => refuse(
                "an exponential schedule between two values of the same sign, neither of them 0 (a cosine or \
                 linear schedule can reach 0)",
            ),
            Self::Linear { steps: 0, .. }
            | Self::Exponential { steps: 0, .. }
            | Self::Cosine { steps: 0, .. } => refuse(
                "a change over at least one step (for one value in all steps use `Schedule::Constant`)",
            ),
            Self::InverseRoot { steps: 0, .. } => refuse("an inverse root with at least one step"),
            Self::WarmUp { steps: 0, .. } => refuse("a warm-up of at least one step"),
            Self::WarmUp { then, .. } => then.check(),
            Self::Milestones { then, .. } if !then.is_sorted_by(|a, b| a.0 < b.0) => {
                refuse("milestones in ascending order, each step at most once")
            }
            _ if self.landmarks().iter().any(|&step| !self.at(step).is_finite()) => {
                refuse("a schedule with finite values")
            }
            _ => Ok(()),
        }
    }

    /// Returns `true` if the value is 0 at `step` and at all later steps. Returns `false` for a custom
    /// function, whose later values aren't known.
    pub(crate) fn stays_zero(&self, step: usize) -> bool {
        match self {
            Self::Custom(_) => false,
            Self::WarmUp { steps, then } => then.stays_zero(step.saturating_sub(*steps)),
            _ => std::iter::once(step)
                .chain(self.landmarks())
                .all(|other| other < step || self.at(other) == 0.0),
        }
    }

    /// Returns steps that include the steps of the largest and the smallest value, for checks of bounds.
    /// Between successive returned steps the value only rises or only falls. For a custom function only step
    /// 0 is returned.
    #[must_use]
    pub fn landmarks(&self) -> Vec<usize> {
        if matches!(self, Self::Custom(_)) {
            // The largest value of a custom function is unknown, so its value is checked at each step that
            // uses it.
            return vec![0];
        }
        if let Self::WarmUp { steps, then } = self {
            let later = then.landmarks().into_iter().map(|step| step.saturating_add(*steps));
            return std::iter::once(0).chain(later).collect();
        }
        let jumps: &[(usize, f64)] = if let Self::Milestones { then, .. } = self { then } else { &[] };
        let jumps = jumps.iter().map(|(step, _)| *step);
        std::iter::once(0).chain(jumps).chain([usize::MAX]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_those_of_their_equations() {
        let values = |schedule: &Schedule| [0, 25, 50, 75, 100, 101].map(|step| schedule.at(step));
        let near = |got: [f64; 6], expected: [f64; 6]| {
            assert!(got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{got:?} for {expected:?}");
        };
        let half = std::f64::consts::FRAC_1_SQRT_2 / 2.0;
        near(
            values(&Schedule::Cosine { from: 3.0, to: 1.0, steps: 100 }),
            [3.0, 2.0 + 2.0 * half, 2.0, 2.0 - 2.0 * half, 1.0, 1.0],
        );
        near(
            values(&Schedule::Exponential { from: 16.0, to: 1.0, steps: 100 }),
            [16.0, 8.0, 4.0, 2.0, 1.0, 1.0],
        );
        let milestones = Schedule::Milestones { from: 1.0, then: vec![(50, 0.2), (101, 0.7)] };
        assert_eq!(values(&milestones), [1.0, 1.0, 0.2, 0.2, 0.2, 0.7]);
        let root = 1.0 / 2f64.sqrt();
        let falling = Schedule::InverseRoot { from: 2.0, steps: 100 };
        assert!(
            (falling.at(0), falling.at(300)) == (2.0, 1.0) && (falling.at(100) - 2.0 * root).abs() < 1e-12
        );
        assert!(falling.at(usize::MAX) > 0.0);
        assert_eq!(Schedule::Milestones { from: 4.0, then: vec![] }.at(9), 4.0);
    }

    #[test]
    fn senseless_ones_are_refused() {
        let wrong = [
            (Schedule::Constant(f64::NAN), "finite"),
            (Schedule::Linear { from: f64::INFINITY, to: 0.0, steps: 5 }, "finite"),
            (Schedule::Cosine { from: 1.0, to: f64::NAN, steps: 5 }, "finite"),
            (Schedule::Exponential { from: 1.0, to: 0.0, steps: 5 }, "neither of them 0"),
            (Schedule::Exponential { from: 0.0, to: 1.0, steps: 5 }, "neither of them 0"),
            (Schedule::Exponential { from: -1.0, to: 1.0, steps: 5 }, "the same sign"),
            (Schedule::InverseRoot { from: 1.0, steps: 0 }, "at least one step"),
            (Schedule::Linear { from: 1.0, to: 0.0, steps: 0 }, "at least one step"),
            (Schedule::Cosine { from: 1.0, to: 0.5, steps: 0 }, "at least one step"),
            (Schedule::Exponential { from: 1.0, to: 0.5, steps: 0 }, "at least one step"),
            (Schedule::InverseRoot { from: f64::NAN, steps: 3 }, "finite"),
            (Schedule::Milestones { from: 1.0, then: vec![(5, 0.1), (5, 0.2)] }, "ascending"),
            (Schedule::Milestones { from: 1.0, then: vec![(5, f64::NAN)] }, "finite"),
            (Schedule::WarmUp { steps: 0, then: Box::new(Schedule::Constant(1.0)) }, "at least one step"),
            (Schedule::WarmUp { steps: 5, then: Box::new(Schedule::Constant(f64::NAN)) }, "finite"),
            (Schedule::from_fn(|_| f64::NAN), "finite"),
        ];
        for (schedule, word) in wrong {
            let message = schedule.check().unwrap_err().to_string();
            assert!(message.contains(word), "{message}");
        }
        Schedule::Exponential { from: -1.0, to: -0.1, steps: 5 }.check().unwrap();
        Schedule::Milestones { from: 1.0, then: vec![(0, 0.5), (5, 2.0)] }.check().unwrap();
    }

    #[test]
    fn an_end_at_zero_is_told_from_a_pause() {
        let line = Schedule::Linear { from: 1.0, to: 0.0, steps: 10 };
        assert_eq!([9, 10, 999].map(|step| line.stays_zero(step)), [false, true, true]);
        let warm = Schedule::WarmUp { steps: 5, then: Box::new(line) };
        assert_eq!([0, 14, 15].map(|step| warm.stays_zero(step)), [false, false, true]);
        let pause = Schedule::Milestones { from: 1.0, then: vec![(5, 0.0), (8, 1.0), (20, 0.0)] };
        assert_eq!([4, 5, 8, 20].map(|step| pause.stays_zero(step)), [false, false, false, true]);
        assert!(Schedule::Constant(0.0).stays_zero(0) && !Schedule::Constant(1e-9).stays_zero(0));
        assert!(!Schedule::Linear { from: 0.0, to: 1.0, steps: 3 }.stays_zero(0));
        assert!(!Schedule::from_fn(|_| 0.0).stays_zero(7));
    }
}
