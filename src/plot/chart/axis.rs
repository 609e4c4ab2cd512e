//! One axis of a chart: positions of values, and ticks.

/// The scale of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Scale {
    /// Equal differences have equal distances.
    #[default]
    Linear,
    /// Equal ratios have equal distances; values that aren't positive aren't drawn.
    Log,
}

/// An axis over a range of values.
#[derive(Clone, Copy, Debug)]
pub(in crate::plot) struct Axis {
    scale: Scale,
    /// The range, in the coordinates of the scale.
    low: f64,
    high: f64,
    /// Whether all values are whole numbers, such as counts: ticks between them would say nothing.
    whole: bool,
}

/// A tick on an axis; small ticks have no label.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::plot) struct Tick {
    pub(in crate::plot) place: f64,
    pub(in crate::plot) label: Option<String>,
    pub(in crate::plot) rank: Rank,
}

/// Which labels give way where there is no room for all, the last first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::plot) enum Rank {
    /// Ticks at equal distances: all of them, or every second one, and so on.
    Even,
    /// Ticks between them, such as 2 and 5 times a power of ten.
    Between,
    /// The rest, such as 3 and 9 times a power of ten.
    Fine,
}

impl Axis {
    /// An axis that includes all values that can be shown, with a margin if `padded`.
    pub(in crate::plot) fn over(scale: Scale, values: impl Iterator<Item = f64>, padded: bool) -> Self {
        let coordinates = values.filter_map(|value| coordinate(scale, value));
        let (low, high, whole) = coordinates.fold((f64::INFINITY, f64::NEG_INFINITY, true), |(low, high, whole), c| {
            (low.min(c), high.max(c), whole && c.fract() == 0.0)
        });
        let (low, high) = if low > high { (0.0, 1.0) } else { (low, high) };
        // From 0 to 1 it may be a share of which only the ends were met.
        let whole = whole && high - low >= 2.0;
        // A single value gets a range of its own size; a range too narrow for f64 to tell ticks apart is widened as
        // well.
        let least = match scale {
            Scale::Linear => 1e-300,
            Scale::Log => 1.0,
        };
        let narrow = 1e-9 * low.abs().max(high.abs()).max(least);
        let (low, high) = if high - low <= narrow {
            let half = match scale {
                Scale::Linear => (0.05 * low.abs()).max(if low == 0.0 { 1.0 } else { 0.0 }),
                Scale::Log => 0.5,
            };
            (low - half, high + half)
        } else {
            (low, high)
        };
        let room = if padded { 0.05 * (high / 2.0 - low / 2.0) * 2.0 } else { 0.0 };
        Self { scale, low: (low - room).max(-f64::MAX / 4.0), high: (high + room).min(f64::MAX / 4.0), whole }
    }

    /// The position of a value, from 0 at the low end to 1 at the high end; `None` if it can't be shown.
    pub(in crate::plot) fn place(&self, value: f64) -> Option<f64> {
        let c = coordinate(self.scale, value)?.clamp(-f64::MAX / 4.0, f64::MAX / 4.0);
        Some((c - self.low) / (self.high - self.low))
    }

    /// The length of the range, in the coordinates of the scale.
    pub(in crate::plot) fn length(&self) -> f64 {
        self.high - self.low
    }

    /// Ticks at round values within the range, about six of them with labels.
    pub(in crate::plot) fn ticks(&self) -> Vec<Tick> {
        match self.scale {
            Scale::Linear => self.round_ticks(),
            Scale::Log if self.high - self.low < 1.0 => {
                let ticks = self.ticks_of_decades(&[1, 2, 3, 4, 5, 6, 7, 8, 9], 1);
                if ticks.len() >= 3 { ticks } else { self.narrow_log_ticks() }
            }
            Scale::Log if self.high - self.low < 2.5 => self.ticks_of_decades(&[1, 2, 5], 1),
            Scale::Log => {
                let every = ((self.high - self.low) / 6.0).ceil() as i32;
                self.ticks_of_decades(&[1], every)
            }
        }
    }

    fn round_ticks(&self) -> Vec<Tick> {
        let least = if self.whole { 1.0 } else { 0.0 };
        let step = round_step(self.high - self.low).max(least);
        let largest = self.low.abs().max(self.high.abs());
        multiples(step, self.low, self.high)
            .map(|value| Tick {
                place: (value - self.low) / (self.high - self.low),
                label: Some(label(value, step, largest)),
                rank: Rank::Even,
            })
            .collect()
    }

    /// Ticks of a log axis over much less than a decade: at round values, as on a linear axis.
    fn narrow_log_ticks(&self) -> Vec<Tick> {
        let (low, high) = (10f64.powf(self.low), 10f64.powf(self.high));
        let step = round_step(high - low);
        multiples(step, low, high)
            .filter_map(|value| {
                let place = self.place(value)?;
                let label = Some(label(value, step, high));
                Some(Tick { place, label, rank: Rank::Between })
            })
            .collect()
    }

    /// Ticks at `m * 10^d`, with labels for the given `m` and each `every`-th decade `d`.
    fn ticks_of_decades(&self, labelled: &[i32], every: i32) -> Vec<Tick> {
        let mut ticks = Vec::new();
        for decade in self.low.floor() as i32..=self.high.floor() as i32 {
            for m in 1..=9 {
                let place = (f64::from(m).log10() + f64::from(decade) - self.low) / (self.high - self.low);
                let shown = labelled.contains(&m) && decade % every == 0;
                // If decades are skipped, the ticks within them would merge.
                if (-1e-9..=1.0 + 1e-9).contains(&place) && (m == 1 || every == 1) {
                    let rank = match m {
                        1 => Rank::Even,
                        2 | 5 => Rank::Between,
                        _ => Rank::Fine,
                    };
                    ticks.push(Tick { place, label: shown.then(|| power_label(m, decade)), rank });
                }
            }
        }
        ticks
    }
}

fn coordinate(scale: Scale, value: f64) -> Option<f64> {
    match scale {
        Scale::Linear => value.is_finite().then_some(value),
        Scale::Log => (value.is_finite() && value > 0.0).then(|| value.log10()),
    }
}

/// The largest of 1, 2 and 5 times a power of ten that divides the range into four to nine pieces.
fn round_step(range: f64) -> f64 {
    let rough = range / 4.0;
    let power = 10f64.powf(rough.log10().floor());
    let factor = [5.0, 2.0].into_iter().find(|factor| factor * power <= rough);
    factor.unwrap_or(1.0) * power
}

fn multiples(step: f64, low: f64, high: f64) -> impl Iterator<Item = f64> {
    let first = (low / step - 1e-9).ceil();
    let n = (high / step + 1e-9).floor() - first;
    // Ten at most by the choice of the step; the clamp is for ranges at the limits of f64.
    (0..=n.clamp(0.0, 20.0) as u32).map(move |i| {
        // Adding zero turns -0 into 0.
        (first + f64::from(i)) * step + 0.0
    })
}

fn label(value: f64, step: f64, largest: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if largest >= 1e5 || step < 1e-4 {
        let digits = (largest.log10().floor() - step.log10().floor()).clamp(0.0, 12.0) as usize;
        let written = format!("{value:.digits$e}");
        let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
        let mantissa =
            if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
        return format!("{mantissa}e{exponent}");
    }
    let digits = (-step.log10() - 1e-9).ceil().clamp(0.0, 12.0) as usize;
    format!("{value:.digits$}")
}

fn power_label(m: i32, decade: i32) -> String {
    match decade {
        -3..0 => format!("{:.*}", -decade as usize, f64::from(m) * 10f64.powi(decade)),
        0..=4 => format!("{}", i64::from(m) * 10i64.pow(decade as u32)),
        _ => format!("{m}e{decade}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, values: &[f64], padded: bool) -> Vec<String> {
        let axis = Axis::over(scale, values.iter().copied(), padded);
        axis.ticks().into_iter().filter_map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_stand_at_round_values() {
        assert_eq!(labels(Scale::Linear, &[0.0, 1.0], false), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(Scale::Linear, &[0.0, 5000.0], false), ["0", "1000", "2000", "3000", "4000", "5000"]);
        assert_eq!(labels(Scale::Linear, &[-1.0, 6.4], true), ["0", "2", "4", "6"]);
        assert_eq!(labels(Scale::Linear, &[1.0, 4.0], true), ["1", "2", "3", "4"], "whole numbers");
        assert_eq!(labels(Scale::Linear, &[0.0, 2e6], false), ["0", "5e5", "1e6", "1.5e6", "2e6"]);
        assert_eq!(labels(Scale::Log, &[1e-4, 1e3], false), ["1e-4", "0.01", "1", "100"]);
        assert_eq!(labels(Scale::Log, &[0.01, 1.0], false), ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1"]);
        assert_eq!(labels(Scale::Log, &[0.25, 0.95], false), ["0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"]);
    }

    #[test]
    fn what_cannot_be_shown_is_left_out() {
        let axis = Axis::over(Scale::Log, [0.0, -1.0, f64::NAN, f64::INFINITY, 10.0, 1000.0].into_iter(), false);
        assert_eq!(axis.place(0.0), None);
        assert_eq!(axis.place(f64::NAN), None);
        assert!((axis.place(100.0).unwrap() - 0.5).abs() < 1e-12);
    }

    #[test]
    fn any_range_has_a_few_ticks_in_order() {
        let cases: &[&[f64]] = &[
            &[],
            &[0.0],
            &[3.0],
            &[-7e300, 8e300],
            &[f64::MIN, f64::MAX],
            &[1e-300, 2e-300],
            &[1.0, 1.0 + 1e-12],
            &[1e9, 1e9 + 1.0],
            &[0.3, 0.31],
            &[f64::NAN],
            &[5e-324],
        ];
        for values in cases {
            for scale in [Scale::Linear, Scale::Log] {
                for padded in [false, true] {
                    let axis = Axis::over(scale, values.iter().copied(), padded);
                    let ticks = axis.ticks();
                    assert!((1..=40).contains(&ticks.len()), "{values:?} {scale:?}: {ticks:?}");
                    assert!(ticks.is_sorted_by(|a, b| a.place < b.place), "{values:?} {scale:?}: {ticks:?}");
                    let labels: Vec<_> = ticks.iter().filter_map(|tick| tick.label.as_ref()).collect();
                    assert!(labels.len() <= 11 && labels.windows(2).all(|w| w[0] != w[1]), "{values:?}: {labels:?}");
                }
            }
        }
    }
}
